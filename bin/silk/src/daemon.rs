//! Speaking to the daemon, for the commands that do.

use crate::trouble::Trouble;
use silk_control::{DEFAULT_SOCKET, Lifeline, Reply, Report, Request, SOCKET_VARIABLE, WireError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// How long an answer takes at most: executors that do not get to run are waited for one after the other.
const PATIENCE: Duration = Duration::from_secs(40);

/// Where the daemon listens: what `SILK_SOCKET` says, or the usual place.
pub fn socket() -> PathBuf {
    let said = std::env::var_os(SOCKET_VARIABLE).filter(|said| !said.is_empty());
    said.map_or_else(|| PathBuf::from(DEFAULT_SOCKET), PathBuf::from)
}

/// A connection to the daemon.
pub fn connect() -> Result<Lifeline, Trouble> {
    connect_to(Before::Unknown)
}

/// What is known of the daemon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing.
    Unknown,
    /// It answered a moment ago.
    Answered,
}

fn connect_to(before: Before) -> Result<Lifeline, Trouble> {
    use io::ErrorKind::{ConnectionRefused, NotFound};
    let socket = socket();
    Lifeline::connect(&socket).map_err(|error| {
        let place = socket.display();
        Trouble::Daemon(match error.kind() {
            NotFound | ConnectionRefused if before == Before::Answered => format!("the daemon at {place} has ended"),
            NotFound => format!(
                "no daemon listens at {place}: start `silkd --config FILE`, or name its socket in {SOCKET_VARIABLE}"
            ),
            ConnectionRefused => {
                format!("the daemon that listened at {place} is gone: start `silkd --config FILE` again")
            }
            io::ErrorKind::PermissionDenied => format!(
                "you may not speak to the daemon at {place}: be root, or in the group of `[control]` in its configuration"
            ),
            _ => format!("the daemon at {place} cannot be spoken to: {error}"),
        })
    })
}

/// The same, for a command that only asks: an answer is waited for as long as it can take.
pub fn connect_to_ask() -> Result<Lifeline, Trouble> {
    patient(connect()?)
}

fn patient(lifeline: Lifeline) -> Result<Lifeline, Trouble> {
    lifeline.wait_for_at_most(PATIENCE).map_err(|error| broken(WireError::Io(error)))?;
    Ok(lifeline)
}

/// Asks, and waits for the answer; a refusal is an error.
pub fn ask(lifeline: &Lifeline, request: &Request) -> Result<Reply, Trouble> {
    let reply = lifeline.ask::<_, Reply>(request, &[]).map_err(broken)?.message;
    match reply {
        Reply::Refused(refusal) => Err(Trouble::Refused(refusal)),
        reply => Ok(reply),
    }
}

/// Everything the daemon reports about its paths.
pub fn report() -> Result<Report, Trouble> {
    reported(&connect_to_ask()?)
}

/// The same, again.
pub fn report_again() -> Result<Report, Trouble> {
    reported(&patient(connect_to(Before::Answered)?)?)
}

fn reported(lifeline: &Lifeline) -> Result<Report, Trouble> {
    let mut whole = Report::default();
    let mut reply = ask(lifeline, &Request::Report)?;
    loop {
        let Reply::Report { part, more } = reply else { return Err(unexpected()) };
        whole.add(*part);
        if !more {
            return Ok(whole);
        }
        reply = lifeline.receive().map_err(broken)?.message;
    }
}

fn broken(error: WireError) -> Trouble {
    Trouble::Daemon(match error {
        WireError::WouldBlock => format!(
            "the daemon at {} has not answered for {} s: it is stopped (SIGSTOP, a debugger), or gets no processor",
            socket().display(),
            PATIENCE.as_secs()
        ),
        error => format!("the daemon did not answer: {error}"),
    })
}

/// An answer to another question: a daemon of another release.
pub fn unexpected() -> Trouble {
    Trouble::Daemon("the daemon's answer makes no sense: is it of the same release?".to_owned())
}
