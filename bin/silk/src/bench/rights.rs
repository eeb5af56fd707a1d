//! What this machine lets the experiment do: everything for root, much less for others. Without root it
//! starts itself again as root of a user namespace of its own, and says what that cannot show.

use super::Failure;
use silk_testkit::netns::output;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// How far the experiment may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// The machine's root.
    Root,
    /// Root of a user namespace: hosts and a `packet` device, but no XDP, no real-time priorities, and
    /// no choice of the CPU that processes received packets.
    UserNamespace,
    /// No rights over network namespaces at all.
    Nothing,
}

/// What a run without root cannot show.
pub const WITHOUT_ROOT: &str = "\
not root, so this runs in a user namespace and cannot show:
  - silk-path, silk-extended and their variants: they need real-time priorities
  - linux-napi and linux-queues: they need the kernel's threads, and programs where packets leave
  - silk's XDP device: it uses the packet device instead
  - figures to compare: received packets are processed on whichever CPU, not on their host's
Run it as root for the whole experiment.";

/// Prepares a user namespace and runs a command line in it, with a place for namespaces' names.
const PREPARE: &str = r#"mount -t tmpfs tmpfs /run && mkdir /run/netns && exec "$@""#;

impl Rights {
    /// The rights of this process.
    pub fn here() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
        let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        match (root, map.split_whitespace().eq(["0", "0", "4294967295"])) {
            (true, true) => Self::Root,
            (true, false) => Self::UserNamespace,
            (false, _) => Self::Nothing,
        }
    }

    /// Whether real-time priorities are granted.
    pub fn realtime(self) -> bool {
        self == Self::Root && output(Command::new("chrt").args(["-f", "1", "true"])).is_ok()
    }
}

/// Becomes this same command line again, as root of a user namespace. Returns only to say why not.
pub fn enter_user_namespace() -> Failure {
    let myself = match env::current_exe() {
        Ok(myself) => myself,
        Err(source) => return Failure::file(MYSELF)(source),
    };
    let mut command = Command::new("unshare");
    // Nothing forks: who ends this command by its process ends the experiment.
    command.args(["-U", "-r", "-n", "-m", "sh", "-c", PREPARE, "sh"]);
    Failure::file("unshare")(command.arg(myself).args(env::args_os().skip(1)).exec())
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
