//! silk on the server: silkd on its interface, and the program's sockets on paths.

use super::Failure;
use super::rights::Rights;
use super::stage::{SERVER_CPU, Stage};
use silk_testkit::netns::{INTERFACE, PREFERRED, Running, SERVER};
use std::env;
use std::fs::{self, File};
use std::path::PathBuf;
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

/// The command that puts a program's sockets on paths.
pub fn runner() -> Vec<String> {
    vec![beside("silk").to_string_lossy().into_owned(), "run".into(), "--".into()]
}

/// Starts silkd on the server and waits for the line that says it is ready.
pub fn start(stage: &Stage, experiment: Experiment) -> Result<Running, Failure> {
    if stage.rights != Rights::Root {
        // The packet device has its own address: Linux must not answer for it as well.
        stage.rig.server.ip(["addr", "flush", "dev", INTERFACE])?;
    }
    let config = stage.scratch.write("silk.toml", &config(experiment, stage.rights))?;
    let log = stage.scratch.path().join("silkd.out");
    let out = File::create(&log).map_err(Failure::file(&log))?;
    let errors = out.try_clone().map_err(Failure::file(&log))?;
    let mut command = stage.rig.server.command("taskset");
    command.args(["-c", SERVER_CPU]).arg(beside("silkd")).arg("--config").arg(config);
    let mut daemon = Running::start(command.stdout(out).stderr(errors))?;
    let ready = || {
        let ready = self::log(stage).contains("ready");
        (ready || daemon.ended().is_some()).then_some(ready)
    };
    match stage.watch.until(Duration::from_secs(10), ready)? {
        Some(true) => Ok(daemon),
        _ => Err(Failure::NotServing { system: "silkd", log: self::log(stage) }),
    }
}

/// What silkd said since it was started.
pub fn log(stage: &Stage) -> String {
    fs::read_to_string(stage.scratch.path().join("silkd.out")).unwrap_or_default()
}

/// The programs are built together: each is found beside this one.
fn beside(program: &str) -> PathBuf {
    let here = env::current_exe().unwrap_or_default();
    here.with_file_name(program)
}

/// The receive work is charged to the server's CPU by a threaded NAPI that is pinned there.
fn config(experiment: Experiment, rights: Rights) -> String {
    let device = match rights {
        Rights::Root => format!("kind = \"xdp\"\nnapi = \"threaded\"\nnapi_cpu = {SERVER_CPU}"),
        _ => format!("kind = \"packet\"\naddress = \"{SERVER}/24\""),
    };
    let extend = experiment == Experiment::Extended;
    let preferred = match experiment {
        Experiment::Equal => String::new(),
        _ => format!("[[class]]\nname = \"preferred\"\npriority = 2\nsource = [\"{PREFERRED}/32\"]\n\n"),
    };
    format!(
        "[device]
interface = \"{INTERFACE}\"
{device}

[scheduler]
policy = \"fixed-priority\"
extend = {extend}

[listen]
priority = 1

{preferred}[[class]]
name = \"standard\"
priority = 0
default = true
"
    )
}
