//! `silk why`: asks a running player about its last missed deadlines.

use crate::play::SOCKET;
use crate::trouble::Trouble;
use std::io::{Read, Write, stdout};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
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
    let mut player = UnixStream::connect(&options.control).map_err(nobody)?;
    player.set_read_timeout(Some(Duration::from_secs(5))).map_err(nobody)?;
    let verb = if options.list { "list" } else { "why" };
    let question = format!("{verb} {}\n", options.stream.as_deref().unwrap_or_default());
    player.write_all(question.as_bytes()).map_err(nobody)?;
    let mut answer = String::new();
    player.read_to_string(&mut answer).map_err(nobody)?;
    stdout().write_all(answer.as_bytes()).map_err(|error| Trouble::Unwritable("the answer".into(), error))?;
    Ok(ExitCode::SUCCESS)
}
