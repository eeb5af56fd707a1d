//! silk's player as one of the systems that are compared: a process of its own, in a host of the
//! experiment, told what to play on its command line or through its SHELL.

use crate::peers::Process;
use crate::trouble::Trouble;
use serde_json::Value;
use silk_testkit::netns::{CLIENT, Host, INTERFACE, SERVER};
use std::env::current_exe;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long it may take to open its device.
const STARTING: Duration = Duration::from_secs(5);

/// A player that runs.
pub struct Player {
    process: Process,
    json: PathBuf,
    // What it says.
    log: PathBuf,
    before: Duration,
}

/// What a player has come to.
#[derive(Clone, Debug)]
pub struct Played {
    /// The figures of each stream, in the order they ended.
    pub streams: Vec<Value>,
    /// CPU time of the whole process.
    pub cpu: Duration,
}

impl Played {
    /// A figure of the stream called `name`.
    pub fn figure(&self, name: &str, figure: &str) -> Option<u64> {
        self.stream(name)[figure].as_u64()
    }

    /// The figures of the stream called `name`; nothing where there is none.
    pub fn stream(&self, name: &str) -> &Value {
        self.streams.iter().find(|stream| stream["name"] == name).unwrap_or(&Value::Null)
    }
}

impl Player {
    /// Starts one with these arguments, on this CPU, whose pictures nobody sees.
    pub fn start(host: &Host, cpu: &str, scratch: &Path, arguments: &[&str]) -> Result<Self, Trouble> {
        let mut command = host.command("taskset");
        command.args(["-c", cpu]).arg(this_program()?).args(["play", "--headless"]).args(arguments);
        Self::start_command(host, scratch, command)
    }

    /// Starts one with these arguments, whose streams keep to this CPU and whose windows are on this display.
    pub fn start_in_windows(
        host: &Host,
        (cpu, display): (&str, &str),
        scratch: &Path,
        arguments: &[&str],
    ) -> Result<Self, Trouble> {
        let mut command = host.command(this_program()?);
        command.args(["play", "--cpu", cpu]).args(arguments);
        // Drawn by this program alone, so that it is known what it costs, and whom.
        command.env("DISPLAY", display).env("SDL_VIDEODRIVER", "x11").env("SDL_RENDER_DRIVER", "software");
        Self::start_command(host, scratch, command)
    }

    fn start_command(host: &Host, scratch: &Path, mut command: Command) -> Result<Self, Trouble> {
        let (json, log) = (scratch.join("played.json"), scratch.join("player.log"));
        let _ = fs::remove_file(&json);
        let words =
            fs::File::create(&log).map_err(|error| Trouble::Unreadable(log.display().to_string(), error))?;
        command.args(["--interface", INTERFACE, "--json"]).arg(&json);
        let process = Process::start(command.stdout(Stdio::null()).stderr(words))?;
        wait_for_device(host);
        let before = process.cpu().unwrap_or_default();
        Ok(Self { process, json, log, before })
    }

    /// CPU time of the process since it was ready.
    pub fn cpu(&self) -> Duration {
        self.process.cpu().unwrap_or_default().saturating_sub(self.before)
    }

    /// Waits for its end for `patience`, then ends it.
    pub fn finish(mut self, patience: Duration) -> Result<Played, Trouble> {
        if !self.process.ends(patience) {
            self.process.interrupt();
            if !self.process.ends(Duration::from_secs(5)) {
                return Err(Trouble::Program("the player does not end".into()));
            }
        }
        let cpu = self.cpu();
        let failed = |error: io::Error| Trouble::Unreadable(self.json.display().to_string(), error);
        let Ok(text) = fs::read_to_string(&self.json) else {
            let words = fs::read_to_string(&self.log).unwrap_or_default();
            let last = words.lines().last().unwrap_or("it said nothing");
            return Err(Trouble::Program(format!("the player has not played: {last}")));
        };
        let told: Value = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
        let streams = told["streams"].as_array().cloned().unwrap_or_default();
        Ok(Played { streams, cpu })
    }
}

/// Until the XDP program is attached: then the player takes what comes.
fn wait_for_device(host: &Host) {
    let start = Instant::now();
    while start.elapsed() < STARTING {
        let link = host.run("ip", ["link", "show", INTERFACE]);
        if link.is_ok_and(|text| text.contains("xdp")) {
            break;
        }
        sleep(Duration::from_millis(20));
    }
    // Its paths are made right after.
    sleep(Duration::from_millis(100));
}

fn this_program() -> Result<PathBuf, Trouble> {
    current_exe().map_err(|error| Trouble::Program(format!("who am I? {error}")))
}

/// Starts a source of `clip` on the host `host`, on CPU 0.
pub fn source(host: &Host, clip: &Path, arguments: &[&str]) -> Result<Process, Trouble> {
    let mut command = host.command("taskset");
    command.args(["-c", "0"]).arg(this_program()?).arg("send").arg(clip).args(arguments);
    Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
}

/// Gives the player a command through its SHELL, from the host `host`.
pub fn tell(host: &Host, command: &str) -> Result<String, Trouble> {
    let mut shell = host.command(this_program()?);
    shell.args(["shell", &SERVER.to_string()]).args(command.split(' '));
    let done = shell.stdin(Stdio::null()).output();
    let done = done.map_err(|error| Trouble::Program(format!("`silk shell` cannot be started: {error}")))?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        return Ok(said);
    }
    let why = String::from_utf8_lossy(&done.stderr);
    Err(Trouble::Program(format!(
        "the player does not do `{command}`: {}{}",
        said.trim_end(),
        why.trim_end()
    )))
}

/// What the player whose socket is `control` says of the last missed deadlines of a stream.
pub fn why(control: &str, stream: &str) -> Result<String, Trouble> {
    let mut why = Command::new(this_program()?);
    why.args(["why", stream, "--control", control]);
    silk_testkit::netns::output(&mut why).map_err(|error| Trouble::Program(error.to_string()))
}

/// Where a source with this port is, as a player is told.
pub fn at(port: u16) -> String {
    format!("{CLIENT}:{port}")
}
