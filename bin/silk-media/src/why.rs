//! `silk why`: asks a running player about its last missed deadlines.

use crate::play::SOCKET;
use crate::trouble::Trouble;
use std::io::{self, ErrorKind, Read, Write, stdout};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Whom to ask about what.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The stream; all of them where none is named
    stream: Option<String>,
    /// Say how each stream is doing instead
    #[arg(long)]
    list: bool,
    /// The player's socket
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    control: PathBuf,
}

/// Times that a player is asked.
const TRIES: u32 = 20;
/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks and prints the answer.
///
/// # Errors
/// Where no player answers.
pub fn run(options: &Options) -> Result<ExitCode, Trouble> {
    let name = options.control.display().to_string();
    let nobody = |error| {
        Trouble::Program(format!(
            "no player answers at `{name}`: {error}; `silk play --control {name}` would"
        ))
    };
    let verb = if options.list { "list" } else { "why" };
    let question = format!("{verb} {}\n", options.stream.as_deref().unwrap_or_default());
    let answer = ask(&options.control, &question).map_err(nobody)?;
    stdout().write_all(answer.as_bytes()).map_err(|error| Trouble::Unwritable("the answer".into(), error))?;
    Ok(ExitCode::SUCCESS)
}

/// What a player answers. It waits for a question for a moment only, for it has pictures to show: whoever did not get
/// to run meanwhile asks again.
fn ask(control: &Path, question: &str) -> io::Result<String> {
    for _ in 1..TRIES {
        match ask_once(control, question) {
            Ok(answer) if answer.is_empty() => {}
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
            done => return done,
        }
    }
    ask_once(control, question)
}

fn ask_once(control: &Path, question: &str) -> io::Result<String> {
    let mut player = UnixStream::connect(control)?;
    player.set_read_timeout(Some(PATIENCE))?;
    player.write_all(question.as_bytes())?;
    let mut answer = String::new();
    player.read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_player_that_did_not_wait_for_the_question_is_asked_again() {
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("play.sock");
        let listener = UnixListener::bind(&control).unwrap();
        let player = std::thread::spawn(move || {
            (0..3).for_each(|_| drop(listener.accept().unwrap()));
            let (mut caller, _) = listener.accept().unwrap();
            let mut question = [0; 5];
            caller.read_exact(&mut question).unwrap();
            caller.write_all(b"nothing\n").unwrap();
        });
        assert_eq!(ask(&control, "list\n").unwrap(), "nothing\n");
        player.join().unwrap();
    }
}
