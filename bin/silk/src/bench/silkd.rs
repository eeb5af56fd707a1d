//! silk on the server: silkd on its interface, and the program's sockets on paths.

use super::cpus::SERVER_CPU;
use super::rights::Rights;
use super::stage::Stage;
use super::{Failure, programs};
use serde::Deserialize;
use silk_control::SOCKET_VARIABLE;
use silk_testkit::netns::{INTERFACE, PREFERRED, Running, SERVER, output};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Which of SILK's three experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// One class for everybody (§4.1).
    Equal,
    /// Paths have priorities, programs have not (§4.2).
    Path,
    /// Programs run at the priority of the path they serve (§4.3).
    Extended,
}

/// Preferred threads that were unblocked, and how long until they ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unblocked {
    count: u64,
    nanos: u64,
}

impl Unblocked {
    /// The mean since an earlier look, in microseconds; `None` where nothing was unblocked.
    pub fn mean_since(&self, earlier: &Self) -> Option<f64> {
        let count = self.count.checked_sub(earlier.count).filter(|count| *count > 0)?;
        let nanos = self.nanos.saturating_sub(earlier.nanos);
        Some(nanos as f64 / count as f64 / 1e3)
    }
}

/// What `silk paths --json` says about wake-ups; the rest of it does not matter here.
#[derive(Deserialize)]
struct Paths {
    unblock_ns: Vec<Wakes>,
}

/// The wake-ups of one class: how many, and their mean in nanoseconds.
#[derive(Deserialize)]
struct Wakes {
    class: String,
    count: u64,
    mean: u64,
}

/// Asks the daemon how long preferred threads took from being unblocked to running (SILK table 2).
pub fn unblocked(stage: &Stage) -> Option<Unblocked> {
    let mut command = Command::new(programs::beside("silk"));
    command.env(SOCKET_VARIABLE, socket(stage)).args(["paths", "--json"]);
    let paths: Paths = serde_json::from_str(&output(&mut command).ok()?).ok()?;
    let wakes = paths.unblock_ns.into_iter().find(|wakes| wakes.class == "preferred")?;
    Some(Unblocked { count: wakes.count, nanos: wakes.count * wakes.mean })
}

/// The command that puts a program's sockets on paths.
pub fn runner(stage: &Stage) -> Vec<String> {
    let socket = format!("{SOCKET_VARIABLE}={}", socket(stage).display());
    vec![
        "env".into(),
        socket,
        programs::beside("silk").to_string_lossy().into_owned(),
        "run".into(),
        "--".into(),
    ]
}

/// Where this experiment's daemon listens: not where another one may.
pub fn socket(stage: &Stage) -> PathBuf {
    stage.scratch.path().join("control.sock")
}

/// Where packets are received and told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// As the interface does.
    Inherited,
    /// In its driver, by a kernel thread on the server's CPU that interrupts ordinary work.
    Prompt,
    /// The same, but the thread interrupts nothing.
    Batched,
    /// By XDP in Linux's receive path, steered to the server's CPU (RPS) as Linux's own packets are.
    Steered,
    /// The same at the ingress of traffic control.
    Marked,
}

/// How the daemon is set up where an experiment has reasons of its own.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Classes and extended paths.
    pub experiment: Experiment,
    /// The interface it shares with Linux.
    pub interface: &'static str,
    /// Where packets are received and told apart.
    pub reception: Reception,
    /// Further sections of the configuration.
    pub more: String,
}

impl Setup {
    /// What the experiments use.
    pub fn usual(experiment: Experiment) -> Self {
        Self { experiment, interface: INTERFACE, reception: Reception::Prompt, more: String::new() }
    }
}

/// Starts silkd on the server and waits for the line that says it is ready.
pub fn start(stage: &Stage, setup: &Setup) -> Result<Running, Failure> {
    if stage.rights != Rights::Root {
        // The packet device has its own address: Linux must not answer for it as well.
        stage.rig.server.ip(["addr", "flush", "dev", INTERFACE])?;
    }
    let config = stage.scratch.write("silk.toml", &config(setup, stage))?;
    let mut command = stage.rig.server.command("taskset");
    command.args(["-c", SERVER_CPU]).arg(programs::beside("silkd")).arg("--config").arg(config);
    let mut daemon = stage.scratch.start(&mut command, "silkd.out")?;
    let ready = || {
        let ready = log(stage).contains("ready");
        (ready || daemon.ended().is_some()).then_some(ready)
    };
    match stage.watch.until(Duration::from_secs(10), ready)? {
        Some(true) => Ok(daemon),
        _ => Err(Failure::NotServing { system: "silkd", log: log(stage) }),
    }
}

/// What silkd said since it was started.
pub fn log(stage: &Stage) -> String {
    fs::read_to_string(stage.scratch.path().join("silkd.out")).unwrap_or_default()
}

/// The receive work is charged to the server's CPU: packets are steered there, or a threaded NAPI is pinned there.
fn config(setup: &Setup, stage: &Stage) -> String {
    let Setup { experiment, interface, more, .. } = setup;
    let socket = socket(stage);
    let socket = socket.display();
    let threaded = |receive| {
        format!("kind = \"xdp\"\nnapi = \"threaded\"\nnapi_cpu = {SERVER_CPU}\nreceive = \"{receive}\"")
    };
    let device = match (stage.rights, setup.reception) {
        (Rights::Root, Reception::Prompt) => threaded("prompt"),
        (Rights::Root, Reception::Batched) => threaded("batched"),
        (Rights::Root, Reception::Steered) => "kind = \"xdp\"\nmode = \"generic\"".to_owned(),
        (Rights::Root, Reception::Marked) => "kind = \"xdp\"\nmode = \"ingress\"".to_owned(),
        (Rights::Root, Reception::Inherited) => "kind = \"xdp\"".to_owned(),
        _ => format!("kind = \"packet\"\naddress = \"{SERVER}/24\""),
    };
    let extend = *experiment == Experiment::Extended;
    let preferred = match experiment {
        Experiment::Equal => String::new(),
        _ => format!("[[class]]\nname = \"preferred\"\npriority = 2\nsource = [\"{PREFERRED}/32\"]\n\n"),
    };
    format!(
        "[device]
interface = \"{interface}\"
{device}

[control]
socket = \"{socket}\"

[scheduler]
policy = \"fixed-priority\"
extend = {extend}

[listen]
priority = 1

{preferred}[[class]]
name = \"standard\"
priority = 0
default = true

{more}"
    )
}
