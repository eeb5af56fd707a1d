//! What went wrong with a command: said on standard error, with whose fault it is and what to
//! do next, and turned into an exit status.

use rustix::io::Errno;
use silk_config::{Faults, Unreadable};
use silk_control::Refusal;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;
use std::{fmt, io};

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub enum Trouble {
    /// Files that are not right, and those that could not even be read.
    Files(Vec<Faults>, Vec<Unreadable>),
    /// A file or folder that cannot be written.
    Unwritable(String, io::Error),
    /// What was to be printed was not, or not all of it.
    Output(io::Error),
    /// A configuration, where a graph was to be drawn.
    NoGraph(String),
    /// The daemon cannot be spoken to.
    Daemon(String),
    /// It refused.
    Refused(Refusal),
    /// A program that cannot be run, with the exit status a shell would give.
    Program(u8, String),
    /// Arguments that do not go together.
    Arguments(String),
    /// A link that cannot be emulated.
    Netem(String),
    /// An experiment without a result.
    Bench(String),
}

/// Prints what a command was asked for. A reader that has seen enough closes the pipe, which is no trouble.
pub fn print(text: &[u8]) -> Result<(), Trouble> {
    let mut out = stdout().lock();
    printed(out.write_all(text).and_then(|()| out.flush()))
}

/// What came of printing.
pub fn printed(done: io::Result<()>) -> Result<(), Trouble> {
    match done {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => Err(Trouble::Output(why)),
        _ => Ok(()),
    }
}

impl Trouble {
    /// Says it and gives the exit status: 2 where a file's contents or the command line are at fault, else 1.
    pub fn tell(&self) -> ExitCode {
        // Standard error that is closed cannot be told anything.
        let _ = self.write(&mut stderr().lock());
        match self {
            Self::Files(faults, unreadable)
                if !faults.is_empty() || unreadable.iter().any(Unreadable::is_of_contents) =>
            {
                ExitCode::from(2)
            }
            Self::NoGraph(_) | Self::Arguments(_) => ExitCode::from(2),
            // What it was to read anew has a fault.
            Self::Refused(refusal) if refusal.errno == Errno::INVAL.raw_os_error() => ExitCode::from(2),
            Self::Program(status, _) => ExitCode::from(*status),
            _ => ExitCode::FAILURE,
        }
    }

    fn write(&self, out: &mut (impl Write + IsTerminal)) -> io::Result<()> {
        let Self::Files(faults, unreadable) = self else { return writeln!(out, "silk: {self}") };
        for one in faults {
            if out.is_terminal() { draw(one, out) } else { writeln!(out, "{one}") }?;
        }
        unreadable.iter().try_for_each(|why| writeln!(out, "silk: {why}"))
    }
}

/// Draws faults for a person at a terminal.
fn draw(faults: &Faults, out: &mut impl Write) -> io::Result<()> {
    let handler = miette::GraphicalReportHandler::new();
    for fault in faults.drawn() {
        let mut drawing = String::new();
        match handler.render_report(&mut drawing, &fault) {
            Ok(()) => writeln!(out, "{drawing}")?,
            Err(_) => return writeln!(out, "{faults}"),
        }
    }
    writeln!(out, "{}", faults.summary())
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(faults, unreadable) => {
                faults.iter().try_for_each(|faults| writeln!(f, "{faults}"))?;
                unreadable.iter().try_for_each(|why| writeln!(f, "{why}"))
            }
            Self::Unwritable(what, why) => write!(f, "`{what}` cannot be written: {why}"),
            Self::NoGraph(name) => write!(
                f,
                "`{name}` is a configuration and no graph: what silkd runs is `graphs/web.toml`, unless it says `graph = …`"
            ),
            Self::Refused(refusal) => write!(f, "the daemon refused: {}", refusal.why),
            Self::Output(why) => write!(f, "standard output cannot be written: {why}"),
            Self::Arguments(why)
            | Self::Daemon(why)
            | Self::Program(_, why)
            | Self::Netem(why)
            | Self::Bench(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<Unreadable> for Trouble {
    fn from(why: Unreadable) -> Self {
        Self::Files(Vec::new(), vec![why])
    }
}

impl From<Faults> for Trouble {
    fn from(faults: Faults) -> Self {
        Self::Files(vec![faults], Vec::new())
    }
}
