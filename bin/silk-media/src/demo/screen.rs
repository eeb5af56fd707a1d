//! The display that windows are shown on: the one that there is, or a virtual one (`Xvfb`) that is started for the
//! demonstration and ends with it.

use crate::trouble::Trouble;
use silk_testkit::netns::Running;
use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;
use x11rb::rust_connection::RustConnection;

/// Room for two windows of small pictures, shown twice as large.
const SIZE: &str = "1424x480x24";

/// A display with windows.
pub struct Display {
    /// Its name, as in `DISPLAY`.
    pub name: String,
    /// The connection by which it is looked at.
    pub connection: RustConnection,
    virtual_server: Option<Running>,
}

impl Display {
    /// The one that `DISPLAY` names, where it answers; else a virtual one.
    ///
    /// # Errors
    /// There is none, and none can be started.
    pub fn open() -> Result<Self, Trouble> {
        if let Ok(name) = env::var("DISPLAY")
            && let Ok((connection, _)) = x11rb::connect(Some(&name))
        {
            return Ok(Self { name, connection, virtual_server: None });
        }
        let (server, name) = start()?;
        let connected = x11rb::connect(Some(&name));
        let (connection, _) = connected
            .map_err(|error| Trouble::Program(format!("Xvfb does not answer at {name}: {error}")))?;
        Ok(Self { name, connection, virtual_server: Some(server) })
    }

    /// What it is, for people.
    pub fn described(&self) -> String {
        match self.virtual_server {
            Some(_) => format!("there is no screen, so the windows are on a virtual one, {}", self.name),
            None => format!("the windows are on your screen, {}", self.name),
        }
    }
}

impl Drop for Display {
    /// Ends the virtual server as it wants to be ended: so it leaves no lock behind.
    fn drop(&mut self) {
        if let Some(server) = self.virtual_server.take() {
            server.stop(Duration::from_secs(2));
        }
    }
}

/// Starts a virtual server, which chooses a free name and says it when it is ready.
fn start() -> Result<(Running, String), Trouble> {
    let mut command = Command::new("setpriv");
    command.args([
        "--pdeathsig",
        "KILL",
        "Xvfb",
        "-displayfd",
        "1",
        "-screen",
        "0",
        SIZE,
        "-nolisten",
        "tcp",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Running::start(&mut command)
        .map_err(|error| Trouble::Program(format!("no virtual screen: {error}")))?;
    let mut line = String::new();
    if let Some(out) = server.child().stdout.take() {
        // At its end, which comes where it cannot run, nothing is read.
        let _ = BufReader::new(out).read_line(&mut line);
    }
    match line.trim().parse::<u32>() {
        Ok(number) => Ok((server, format!(":{number}"))),
        Err(_) => {
            Err(Trouble::Program("Xvfb, the virtual screen, does not start (Debian's package xvfb)".into()))
        }
    }
}
