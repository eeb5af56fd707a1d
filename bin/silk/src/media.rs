//! The commands of video: `silk play` and the like become the program `silk-media`, which alone needs
//! the libraries that decode and show. What may follow them is that program's to know.

use crate::run::Program;
use crate::trouble::Trouble;
use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// What the other program gets.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Options {
    /// See --help of this command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// The program's name.
const NAME: &str = "silk-media";

/// Becomes `silk-media` with these words and the arguments behind them. Returns only when it cannot.
pub fn run(words: &[&str], options: &Options) -> Result<Infallible, Trouble> {
    let program = find()?;
    // Under this command's name, so that its help is that of `silk play`.
    let error = Command::new(&program.path).arg0("silk").args(words).args(&options.arguments).exec();
    Err(program.cannot_start(&error))
}

/// Beside this command first, then where a shell would look.
fn find() -> Result<Program, Trouble> {
    let beside = env::current_exe().unwrap_or_default().with_file_name(NAME);
    if beside.is_file() {
        return Ok(Program { path: beside });
    }
    Program::find(OsStr::new(NAME)).map_err(|_| missing(beside))
}

fn missing(beside: PathBuf) -> Trouble {
    let why = format!(
        "video needs the program `{NAME}`, which is neither `{}` nor in PATH; `make build-video` builds it",
        beside.display()
    );
    Trouble::Program(1, why)
}
