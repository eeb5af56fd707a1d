//! `silk run`: starts a program with its sockets on paths. It founds a family with the
//! daemon, preloads the library and becomes the program, so that the program keeps this
//! process's number, signals and exit status.

mod broken_pipes;
mod program;

use crate::daemon;
use crate::trouble::Trouble;
pub use program::Program;
use silk_control::{
    CARRIED_VARIABLE, CARRIER_VARIABLE, FAMILY_VARIABLE, FamilyToken, Lifeline, Reply, Request,
    SOCKET_VARIABLE, STRICT_VARIABLE,
};
use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{Write, stderr};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to run.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// What silk cannot serve fails, instead of being left to Linux
    #[arg(long)]
    strict: bool,
    /// The library to preload, instead of the one installed with this command
    #[arg(long, value_name = "FILE", env = "SILK_LIBRARY")]
    library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Becomes the program. Returns only when it cannot.
pub fn run(options: &Options) -> Result<Infallible, Trouble> {
    let library = library(options.library.as_deref())?;
    let program = Program::find(&options.program[0])?;
    let why_not = program.why_not_preloaded();
    let carries = why_not.is_none() && program.is_static();
    if let Some(why) = why_not {
        if options.strict {
            return Err(Trouble::Program(1, why));
        }
        let _ = writeln!(stderr(), "silk: {why}; Linux serves its sockets");
    }
    let lifeline = daemon::connect()?;
    let Reply::Family { family } = daemon::ask(&lifeline, &Request::Found)? else {
        return Err(daemon::unexpected());
    };
    let kept = keep(lifeline)?;
    let carrier = env::current_exe().unwrap_or_default();
    let mut command = Command::new(if carries { &carrier } else { &program.path });
    command.arg0(&options.program[0]).args(&options.program[1..]);
    command.env(CARRIER_VARIABLE, &carrier);
    if carries {
        command.env(CARRIED_VARIABLE, &program.path);
    }
    prepare(&mut command, &library, family, options.strict);
    broken_pipes::inherit(&mut command);
    let error = command.exec();
    drop(kept);
    Err(program.cannot_start(&error))
}

/// This command was executed in place of a program, to carry it, and nothing has been loaded that does: becomes that program as it is. (The
/// library, where it is loaded, has the process before this is asked.)
pub fn be_what_is_carried() -> Option<Trouble> {
    let path = env::var_os(CARRIED_VARIABLE)?;
    let mut arguments = env::args_os();
    let mut command = Command::new(&path);
    command.arg0(arguments.next().unwrap_or_default()).args(arguments).env_remove(CARRIED_VARIABLE);
    broken_pipes::inherit(&mut command);
    let error = command.exec();
    Some(Program { path: path.into() }.cannot_start(&error))
}

/// The environment the library finds.
fn prepare(command: &mut Command, library: &Path, family: FamilyToken, strict: bool) {
    // Others come first, as they would before the C library: one that leads connections elsewhere is asked before silk is.
    let mut preload = env::var_os("LD_PRELOAD").unwrap_or_default();
    if !preload.is_empty() {
        preload.push(":");
    }
    preload.push(library);
    command.env("LD_PRELOAD", preload);
    command.env(FAMILY_VARIABLE, family.to_string());
    command.env(SOCKET_VARIABLE, daemon::socket());
    if strict {
        command.env(STRICT_VARIABLE, "1");
    }
}

/// The connection, such that the program inherits it: the family lives until its first
/// process has joined. Its number is out of the way of programs that expect certain ones.
fn keep(lifeline: Lifeline) -> Result<OwnedFd, Trouble> {
    const OUT_OF_THE_WAY: i32 = 500;
    let close_on_exec = lifeline.into_descriptor();
    rustix::io::fcntl_dupfd_cloexec(&close_on_exec, OUT_OF_THE_WAY)
        .or_else(|_| rustix::io::fcntl_dupfd_cloexec(&close_on_exec, 3))
        .and_then(|kept| rustix::io::fcntl_setfd(&kept, rustix::io::FdFlags::empty()).map(|()| kept))
        .map_err(|error| Trouble::Program(1, format!("the program cannot inherit the daemon: {error}")))
}

/// The library: the one asked for, the one built or installed beside this command.
fn library(asked: Option<&Path>) -> Result<PathBuf, Trouble> {
    let candidates = match asked {
        Some(file) => vec![file.to_owned()],
        None => installed(&env::current_exe().unwrap_or_default()),
    };
    let found = candidates.iter().find_map(|file| file.canonicalize().ok().filter(|file| file.is_file()));
    let Some(found) = found else {
        let looked: Vec<String> = candidates.iter().map(|file| format!("`{}`", file.display())).collect();
        let why =
            format!("there is no library to preload at {}: name it with --library", looked.join(" or "));
        return Err(Trouble::Program(1, why));
    };
    // The dynamic linker takes these apart at spaces and colons.
    if found.as_os_str().as_encoded_bytes().iter().any(|byte| b" :".contains(byte)) {
        let why = format!("`{}` cannot be preloaded: its path has a space or a colon", found.display());
        return Err(Trouble::Program(1, why));
    }
    Ok(found)
}

fn installed(command: &Path) -> Vec<PathBuf> {
    let folder = command.parent().unwrap_or(Path::new("/"));
    ["libsilk.so", "../lib/silk/libsilk.so", "../lib/libsilk.so"]
        .map(|file| folder.join(OsStr::new(file)))
        .to_vec()
}
