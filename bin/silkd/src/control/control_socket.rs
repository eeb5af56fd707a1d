//! The control socket as a file: where it is made, who may open it, and what must not be taken away for it. A socket that
//! a dead daemon has left makes room; anything else at its place is somebody's, and stays.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use silk_config::Control;
use silk_control::Lifeline;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// How often others are asked for, and how long is between.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Opens it, with the rights that the configuration gives.
///
/// # Errors
/// A sentence that says which file could not be opened and what to do.
pub fn open(control: &Control) -> Result<OwnedFd, String> {
    let path = &control.socket;
    let failed = |e: io::Error| format!("the control socket {} cannot be opened: {e}", path.display());
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(failed)?;
    // Of two that begin at once the second would take the first one's for a dead one's, which nobody listens at yet.
    let alone = alone_in(folder).map_err(failed)?;
    make_room(path)?;
    let made = make(control).map_err(failed);
    drop(alone);
    made
}

/// Keeps other daemons that begin out of a folder until it is dropped. Who keeps it for longer than a daemon does is none, and is not waited for.
fn alone_in(folder: &Path) -> io::Result<File> {
    let folder = File::open(folder)?;
    for _ in 0..TRIES {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => sleep(PAUSE),
            // A file system may know no locks.
            _ => break,
        }
    }
    Ok(folder)
}

/// Takes away what a dead daemon has left.
///
/// # Errors
/// A daemon lives there, or it is no socket.
fn make_room(path: &Path) -> Result<(), String> {
    let shown = path.display();
    if Lifeline::connect(path).is_ok() {
        return Err(format!(
            "another silkd answers on {shown}: stop it, or set [control] socket to another path"
        ));
    }
    if fs::symlink_metadata(path).is_ok_and(|file| !file.file_type().is_socket()) {
        return Err(format!(
            "{shown} is there and is no socket: set [control] socket to another path, or take it away"
        ));
    }
    take_away(path);
    Ok(())
}

fn make(control: &Control) -> io::Result<OwnedFd> {
    let path = &control.socket;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    let open_to = || -> io::Result<()> {
        fs::set_permissions(path, Permissions::from_mode(control.mode.bits()))?;
        if let Some(group) = &control.group {
            // Its members may use it.
            std::os::unix::fs::chown(path, None, Some(group_id(group)?))?;
        }
        Ok(listen(&socket, 128)?)
    };
    // A failed start leaves nothing behind.
    open_to().inspect_err(|_| take_away(path))?;
    Ok(socket)
}

/// Removes the file, if it is a socket.
pub fn take_away(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        let _ = fs::remove_file(path);
    }
}

/// The number of a group of this machine.
///
/// # Errors
/// A sentence: there is none of this name.
pub fn group_id(name: &str) -> io::Result<u32> {
    let groups = fs::read_to_string("/etc/group")?;
    let mut lines = groups.lines().map(|line| line.split(':'));
    let id = lines.find_map(|mut fields| (fields.next() == Some(name)).then(|| fields.nth(1))?);
    let id = id.and_then(|id| id.parse().ok());
    id.ok_or_else(|| io::Error::other(format!("[control] group: there is no group `{name}`")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_config::Config;
    use std::time::Instant;

    /// A folder, and the configuration of a control socket in it.
    fn control() -> (tempfile::TempDir, Control) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("control.sock");
        let text = format!("[device]\ninterface = \"eth0\"\n[control]\nsocket = {socket:?}\n");
        let config = Config::parse("test", &text).unwrap_or_else(|faults| panic!("{faults}"));
        (folder, config.control)
    }

    #[test]
    fn what_a_dead_daemon_has_left_makes_room_and_a_living_one_does_not() {
        let (_folder, control) = control();
        let first = open(&control).unwrap();
        assert!(open(&control).unwrap_err().starts_with("another silkd answers on "));
        drop(first);
        assert!(control.socket.exists());
        open(&control).unwrap();
    }

    #[test]
    fn of_several_that_begin_at_once_one_does() {
        let (_folder, control) = control();
        for round in 0..100 {
            // That round's is dead by now, and its file is there.
            let opened: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| open(&control))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(opened.iter().filter(|opened| opened.is_ok()).count(), 1, "round {round}: {opened:?}");
            Lifeline::connect(&control.socket).unwrap();
            drop(opened);
            // A child that another test starts has it, too, until it executes its program.
            let patience = Instant::now() + Duration::from_secs(20);
            while Lifeline::connect(&control.socket).is_ok() && Instant::now() < patience {}
        }
    }

    #[test]
    fn a_group_that_is_not_there_leaves_nothing_behind() {
        let (folder, mut control) = control();
        control.group = Some("no such group".to_owned());
        assert!(open(&control).unwrap_err().contains("there is no group `no such group`"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_no_socket_stays_as_it_is() {
        let (folder, control) = control();
        fs::write(&control.socket, "precious").unwrap();
        let why = open(&control).unwrap_err();
        assert!(why.contains("is there and is no socket"), "{why}");
        take_away(&control.socket);
        assert_eq!(fs::read_to_string(&control.socket).unwrap(), "precious");

        fs::rename(&control.socket, folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", &control.socket).unwrap();
        open(&control).unwrap_err();
        assert!(control.socket.is_symlink());
    }
}
