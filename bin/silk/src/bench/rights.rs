//! What this machine lets the experiment do: everything for root, much less for others. Without root it
//! starts itself again as root of a user namespace of its own, and says what that cannot show.

use super::Failure;
use silk_testkit::netns::output;
use std::os::unix::process::CommandExt;
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
        Err(source) => return Failure::file("/proc/self/exe")(source),
    };
    let mut command = Command::new("unshare");
    // Nothing forks: who ends this command by its process ends the experiment.
    command.args(["-U", "-r", "-n", "-m", "sh", "-c", PREPARE, "sh"]);
    Failure::file("unshare")(command.arg(myself).args(env::args_os().skip(1)).exec())
}
