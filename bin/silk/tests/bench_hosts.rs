//! `silk bench tcp` and `silk bench web` on real hosts: they answer for all systems, and when a server hangs the first keeps what
//! there is to be seen and ends with an error that says where. No figure is looked at: the machine may be busy.
//!
//! Apart from all other tests with hosts, which run one after this: it sends all that can be sent, and the queue of a CPU in which
//! Linux then finds no room is that of all hosts of the machine. Beside it others lost datagrams, over silk and over Linux.

#[path = "end_to_end/programs.rs"]
mod programs;

use programs::{beside, said, skipped, text, within};
use serde_json::Value;
use silk_testkit::netns::signal;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// One experiment at a time: each pins its work to the same CPUs.
static TURN: Mutex<()> = Mutex::new(());

/// An experiment that runs. If its test is over before it is, it is told to end, and takes its hosts with it.
struct Experiment(Child);

impl Drop for Experiment {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(None)) {
            return;
        }
        signal(&[self.0.id()], "TERM");
        if !within(Duration::from_secs(30), || !matches!(self.0.try_wait(), Ok(None))) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

fn can_run() -> Option<()> {
    let root = text(Command::new("id").arg("-u")) == "0\n";
    let built = ["silkd", "libsilk.so"].iter().all(|program| beside(program).exists());
    if root && built { Some(()) } else { skipped("the TCP experiment needs root and the daemon built") }
}

fn bench(rows: &str, json: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
    command.args(["bench", "tcp", "--quick", "--rounds", "1", "--rows", rows, "--json"]).arg(json);
    command
}

#[test]
fn both_systems_answer_and_are_compared() {
    let Some(()) = can_run() else { return };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = TempDir::new().unwrap();
    let json = folder.path().join("tcp.json");
    let done = said(&mut bench("send,c,d,datagrams,kept", &json));
    assert!(done.ok, "{}", done.errors);
    let results: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let measured = |row: &str, system: &str, of: &str| {
        let mut all = results["measurements"].as_array().unwrap().iter();
        let one = all.find(|one| one["row"] == row && one["system"] == system && one["of"] == of);
        one.unwrap_or_else(|| panic!("{row} {system} {of}"))["value"].as_f64().unwrap()
    };
    for system in ["linux", "silk"] {
        for (row, of) in [("send", "goodput"), ("ping-pong", "p99"), ("connections", "rate")] {
            assert!(measured(row, system, of) > 0.0, "{row} {system}");
        }
        for of in ["received at most", "0.8 million sent: received", "all that can be sent: received"] {
            assert!(measured("datagrams", system, of) > 0.0, "{of} {system}");
        }
        assert!(measured("kept", system, "100 connections: rate") > 0.0);
    }
    let judged: Vec<&Value> = results["comparisons"].as_array().unwrap().iter().collect();
    assert!(judged.iter().any(|one| one["row"] == "send" && one["against"] == "linux"), "{judged:?}");
    assert!(results.get("incomplete").is_none(), "{results}");
}

#[test]
fn the_rows_of_much_work_answer_for_both_systems_too() {
    let Some(()) = can_run() else { return };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = TempDir::new().unwrap();
    let json = folder.path().join("tcp.json");
    let done = said(&mut bench("receive,opening,syn-flood", &json));
    assert!(done.ok, "{}", done.errors);
    let results: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let all = results["measurements"].as_array().unwrap();
    for row in ["receive", "opening", "syn-flood"] {
        // Some are called by what of them was measured, too: `silk-preferred`.
        let of = |system: &str| {
            let is_its = |one: &&Value| one["system"].as_str().is_some_and(|name| name.starts_with(system));
            let mut own = all.iter().filter(|one| one["row"] == row).filter(is_its);
            own.any(|one| one["value"].as_f64().is_some_and(|value| value > 0.0))
        };
        assert!(of("linux") && of("silk"), "{row}: {results}");
    }
    assert!(results.get("incomplete").is_none(), "{results}");
}

/// Every system answers every request, in every phase; the page and the tables are made.
#[test]
fn the_web_experiment_has_no_failures_and_tells_of_every_system() {
    let Some(()) = can_run() else { return };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = TempDir::new().unwrap();
    let [json, page] = ["web.json", "web.html"].map(|name| folder.path().join(name));
    let systems = ["linux", "haproxy", "silk-equal", "silk-extended", "silk-queues"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
    command.args(["bench", "web", "--sizes", "1", "--clients", "0,2", "--rounds", "1", "--seconds", "1"]);
    let done = said(
        command.args(["--systems", &systems.join(",")]).arg("--json").arg(&json).arg("--html").arg(&page),
    );
    assert!(done.ok, "{}", done.errors);
    let results: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let cells = results["cells"].as_array().unwrap();
    assert!(cells.iter().all(|cell| cell["failed"] == 0), "{cells:?}");
    for system in systems {
        for clients in [0, 2] {
            let mut own = cells.iter().filter(|cell| cell["system"] == system && cell["clients"] == clients);
            let answered =
                |cell: &Value| cell["preferred_us"]["mean"].as_f64().is_some_and(|mean| mean > 0.0);
            assert!(own.any(answered), "{system} {clients}: {cells:?}");
        }
    }
    let table = String::from_utf8(done.bytes).unwrap();
    assert!(table.contains("preferred mean beside a flood"), "{table}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && systems.iter().all(|system| page.contains(system)));
}

#[test]
fn a_server_that_hangs_leaves_evidence_and_an_error() {
    let Some(()) = can_run() else { return };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = TempDir::new().unwrap();
    let json = folder.path().join("tcp.json");
    let mut command = bench("ping-pong", &json);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut running = Experiment(child);
    // The first system's server stops where it is; those of the others serve.
    assert!(within(Duration::from_secs(30), || stop_the_server(&running.0)), "no server was seen");
    let kept = folder.path().join("tcp.hang-1");
    let errors = ends_within(&mut running.0, Duration::from_secs(120));
    assert!(
        errors.contains(&format!("ping hangs. How everything was then is kept in {}", kept.display())),
        "{errors}"
    );
    let read = |name: &str| fs::read_to_string(kept.join(name)).unwrap();
    assert!(read("threads.txt").lines().any(|line| line.contains(" T ")), "{}", read("threads.txt"));
    assert!(read("server-sockets.txt").contains("10.99.0.1:7000"), "{}", read("server-sockets.txt"));
    assert!(read("client-counters.txt").contains("TcpActiveOpens"));
    let results: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(results["incomplete"].as_array().unwrap().len(), 1, "the others were measured");
}

/// Stops the echo server among the experiment's children, once its client has connected.
fn stop_the_server(experiment: &Child) -> bool {
    let children = format!("/proc/{0}/task/{0}/children", experiment.id());
    let children = fs::read_to_string(children).unwrap_or_default();
    let is = |process: &&str, words: &str| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
    };
    let server = children.split_whitespace().find(|process| is(process, "bench end serve echo"));
    let Some(server) = server.filter(|server| has_a_client(server)) else { return false };
    Command::new("kill").args(["-s", "STOP", server]).status().is_ok_and(|status| status.success())
}

/// Whether a connection to port 7000 (hexadecimal 1B58) is established (01) on the host of a process.
fn has_a_client(process: &str) -> bool {
    let sockets = fs::read_to_string(format!("/proc/{process}/net/tcp")).unwrap_or_default();
    let established = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(1).is_some_and(|local| local.ends_with(":1B58")) && fields.get(3) == Some(&"01")
    };
    sockets.lines().any(established)
}

/// What a program that must fail has written to its standard error.
fn ends_within(running: &mut Child, limit: Duration) -> String {
    let mut status = None;
    let ended = within(limit, || {
        status = running.try_wait().unwrap();
        status.is_some()
    });
    assert!(ended, "it goes on for ever");
    let errors = std::io::read_to_string(running.stderr.take().unwrap()).unwrap();
    assert_eq!(status.and_then(|status| status.code()), Some(1), "{errors}");
    errors
}
