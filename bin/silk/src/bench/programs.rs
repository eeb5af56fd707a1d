//! Where the programs are: those that were built with this one, and those that the machine has.

use super::Failure;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The programs are built together: each is found beside this one.
pub fn beside(program: &str) -> PathBuf {
    let here = env::current_exe().unwrap_or_default();
    here.with_file_name(program)
}

/// Whether a program is where programs are.
pub fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Servers are where a user's shell does not look: where PATH has not all of these folders, becomes this same command line again with
/// one that has.
///
/// # Errors
/// When that is not possible.
pub fn find_servers() -> Result<(), Failure> {
    let Some(path) = with_servers(&env::var_os("PATH").unwrap_or_default()) else { return Ok(()) };
    let myself = env::current_exe().map_err(Failure::file(MYSELF))?;
    let error = Command::new(myself).args(env::args_os().skip(1)).env("PATH", path).exec();
    Err(Failure::file(MYSELF)(error))
}

/// This command, as it is called where it cannot be executed again.
const MYSELF: &str = "/proc/self/exe";

/// Where Debian has what only root is thought to start.
const SERVERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// A `PATH` in which servers are found, if this one is not.
fn with_servers(path: &OsStr) -> Option<OsString> {
    let mut folders: Vec<PathBuf> = env::split_paths(path).collect();
    let missing = SERVERS.map(PathBuf::from).into_iter().filter(|folder| !folders.contains(folder));
    let missing: Vec<PathBuf> = missing.collect();
    folders.extend(missing.iter().cloned());
    // What was taken apart at colons has none.
    if missing.is_empty() { None } else { env::join_paths(folders).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_found_behind_what_is_found_already() {
        let path = |path: &str| with_servers(OsStr::new(path));
        assert_eq!(
            path("/bin:/home/me/bin"),
            Some("/bin:/home/me/bin:/usr/local/sbin:/usr/sbin:/sbin".into())
        );
        assert_eq!(path("/sbin:/bin:/usr/local/sbin"), Some("/sbin:/bin:/usr/local/sbin:/usr/sbin".into()));
        assert_eq!(path("/usr/local/sbin:/usr/sbin:/usr/bin:/sbin"), None);
    }
}
