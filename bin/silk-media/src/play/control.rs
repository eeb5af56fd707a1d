//! The player's socket for `silk why`: one line asked, the answer, the end.

use super::{described, misses};
use crate::trouble::Trouble;
use silk_appliance::Appliance;
use silk_player::Player;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a player listens and `silk why` asks, where nothing else is said.
pub const SOCKET: &str = "/run/silk/play.sock";

/// How long a caller may keep the player waiting: it has pictures to show.
const PATIENCE: Duration = Duration::from_millis(2);
/// The longest question, bytes.
const QUESTION: usize = 256;

/// A listening socket, removed at its end.
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Listens at `path`, in place of a player that is gone; of nothing else.
    pub fn open(path: &Path) -> Result<Self, Trouble> {
        let failed = |error| Trouble::Unwritable(path.display().to_string(), error);
        if UnixStream::connect(path).is_ok() {
            return Err(Trouble::Program(format!("another player listens at `{}`", path.display())));
        }
        match std::fs::symlink_metadata(path) {
            Ok(there) if !there.file_type().is_socket() => {
                return Err(Trouble::Usage(format!(
                    "`{}` is there, and is no player's socket",
                    path.display()
                )));
            }
            Ok(_) => std::fs::remove_file(path).map_err(failed)?,
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            Err(_) => {}
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Readable when somebody asks.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers one caller. One who does not ask at once, or does not take the answer, gets none.
    pub fn answer(&self, player: &Player, appliance: &Appliance) {
        let Ok((mut caller, _)) = self.listener.accept() else { return };
        let patient = caller.set_read_timeout(Some(PATIENCE)).and(caller.set_write_timeout(Some(PATIENCE)));
        if patient.is_err() {
            return;
        }
        let mut question = [0; QUESTION];
        let Ok(length) = caller.read(&mut question) else { return };
        let answer = match std::str::from_utf8(&question[..length]) {
            Ok(question) => answered(question.trim(), player, appliance),
            Err(_) => "that is no text\n".into(),
        };
        let _ = caller.write_all(answer.as_bytes());
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// `why NAME`, `why` for every stream, `list`.
fn answered(question: &str, player: &Player, appliance: &Appliance) -> String {
    let mut words = question.split_whitespace();
    let (verb, name) = (words.next().unwrap_or_default(), words.next());
    let tell = match verb {
        "why" => misses,
        "list" => |figures: &_| described(figures) + "\n",
        _ => return format!("`{question}`: only `why [STREAM]` and `list` are answered here\n"),
    };
    let wanted = player.streams().filter(|(_, known)| name.is_none_or(|name| name == *known));
    let told: String =
        wanted.filter_map(|(path, _)| player.figures(appliance, path)).map(|f| tell(&f)).collect();
    if told.is_empty() {
        return match name {
            Some(name) => format!("there is no stream `{name}`; `list` says which there are\n"),
            None => "nothing is playing\n".into(),
        };
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_takes_the_place_of_a_socket_that_is_left_and_of_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let (left, clip) = (folder.path().join("left"), folder.path().join("clip.mpg"));
        drop(UnixListener::bind(&left).unwrap());
        assert!(left.exists());
        Control::open(&left).unwrap();
        std::fs::write(&clip, "a film").unwrap();
        let refused = Control::open(&clip).err().unwrap().to_string();
        assert!(refused.ends_with("is there, and is no player's socket"), "{refused}");
        assert_eq!(std::fs::read(&clip).unwrap(), b"a film");
    }
}
