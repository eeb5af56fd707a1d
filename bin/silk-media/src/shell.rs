//! `silk shell`: a command for a player on another host, by its SHELL (Scout §4.1).

use crate::trouble::Trouble;
use silk_modules::shell::{MAX_REQUEST, PORT};
use std::io::{Write, stdout};
use std::net::{ToSocketAddrs, UdpSocket};
use std::process::ExitCode;
use std::time::Duration;

/// Whom to tell what.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The player
    #[arg(value_name = "HOST[:PORT]")]
    host: String,
    /// The command, see below
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// How often a command is sent before the player is given up; it is done once all the same.
const TRIES: u32 = 5;
/// How long to wait for each answer.
const PATIENCE: Duration = Duration::from_millis(400);

/// Sends the command and prints the answer.
///
/// # Errors
/// A host that is not found, a player that does not answer, a command that it refuses.
pub fn run(options: &Options) -> Result<ExitCode, Trouble> {
    let Options { host, command } = options;
    let unknown = |why| Trouble::Usage(format!("`{host}` is no host, or not found: {why}"));
    let found = host.to_socket_addrs().or_else(|_| (host.as_str(), PORT).to_socket_addrs());
    let to = found.map_err(|error| unknown(error.to_string()))?.next();
    let to = to.ok_or_else(|| unknown("no address".into()))?;
    let failed = |error| Trouble::Program(format!("cannot reach {to}: {error}"));
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.connect(to).map_err(failed)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let number = silk_appliance::random() as u32;
    let request = request(number, &command.join(" "));
    for _ in 0..TRIES {
        socket.send(request.as_bytes()).map_err(failed)?;
        if let Some(answer) = answer(&socket, number) {
            writeln!(stdout(), "{answer}")
                .map_err(|error| Trouble::Unwritable("the answer".into(), error))?;
            return Ok(if answer.starts_with("ok") || command[0] == "list" {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
    }
    Err(Trouble::Program(format!(
        "no answer from {to}: does a player with a SHELL run there, and is this host one of its controllers?"
    )))
}

/// The datagram: as long as may be, for a reply is never longer than its command.
fn request(number: u32, command: &str) -> String {
    let text = format!("{number} {command}");
    format!("{text:<MAX_REQUEST$}")
}

/// The answer with this number, without it.
fn answer(socket: &UdpSocket, number: u32) -> Option<String> {
    let mut bytes = [0; MAX_REQUEST];
    loop {
        let length = socket.recv(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes[..length]);
        let mut parts = text.trim_end().splitn(2, ' ');
        if parts.next().and_then(|first| first.parse().ok()) == Some(number) {
            return Some(parts.next().unwrap_or_default().to_owned());
        }
    }
}
