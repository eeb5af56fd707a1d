//! A receive queue of its own for a preferred client: the thread that polls it interrupts all others while it has work, and
//! the others' thread interrupts nobody.

use crate::host::Silk;
use crate::programs::{beside, said, skipped, text, within};
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED, SERVER, signal};
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

/// How long anything here may take.
const LONG: Duration = Duration::from_secs(20);

/// Queues and manners of the threads that receive.
fn receivers(silk: &Silk) -> Vec<(u64, String)> {
    let report = silk.report();
    let receivers = report["receivers"].as_array().expect("they are told").iter();
    let told = receivers.map(|of| (of["queue"].as_u64().expect("it is known"), of["manner"].clone()));
    told.map(|(queue, manner)| (queue, manner.as_str().expect("a word").to_owned())).collect()
}

fn are(silk: &Silk, manners: [&str; 2]) -> bool {
    receivers(silk) == [(0, manners[0].to_owned()), (1, manners[1].to_owned())]
}

/// One request from this address.
fn ask(silk: &Silk, from: Ipv4Addr) {
    let mut curl: Command = silk.on_peer("curl");
    curl.args(["-sf", "--max-time", "20", "--interface", &from.to_string()]);
    assert!(text(curl.arg(format!("http://{SERVER}:8000/"))).contains("Directory listing"));
}

#[test]
fn only_the_queue_that_brings_preferred_packets_is_received_promptly() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nnapi = \"threaded\"\n");
    let classes = format!(
        "[[class]]\nname = \"preferred\"\npriority = 2\nsource = \"{PREFERRED}\"\n\n\
         [[class]]\nname = \"standard\"\npriority = 0\ndefault = true\n"
    );
    let Some(mut silk) = Silk::with_queues(2, &device, &classes) else { return };
    silk.start_daemon();
    if silk.log("silkd").contains("cannot be scheduled") {
        silk_testkit::skip("no real-time priorities");
        return;
    }
    let mut steer = silk.on_peer(&beside("silk").display().to_string());
    steer.args(["bench", "end", "steer", "--interface", INTERFACE, "--queue", "1"]);
    let steering = silk.start_logged(steer.args(["--source", &PREFERRED.to_string()]), "steer");
    silk.until_says("steer", "steers");
    let server = silk.serve("python3", &["-u", "-m", "http.server", "8000"], 8000);

    // Where nobody preferred has asked for a while, nobody is interrupted.
    assert!(within(LONG, || are(&silk, ["fair"; 2])), "{:?}", receivers(&silk));
    let prompt = || {
        ask(&silk, PREFERRED);
        ask(&silk, CLIENT);
        are(&silk, ["fair", "prompt"])
    };
    assert!(within(LONG, prompt), "{:?}", receivers(&silk));
    assert!(within(LONG, || are(&silk, ["fair"; 2])), "{:?}", receivers(&silk));

    // Without steering its packets come by the first queue, or by both.
    drop(steering);
    let first = || {
        ask(&silk, PREFERRED);
        receivers(&silk).first() == Some(&(0, "prompt".to_owned()))
    };
    assert!(within(LONG, first), "{:?}", receivers(&silk));
    drop(server);
    silk.linux_saw_nothing();
}

/// Numbers of the threads that receive.
fn numbers(silk: &Silk) -> Vec<u64> {
    let report = silk.report();
    let receivers = report["receivers"].as_array().expect("they are told").iter();
    receivers.map(|of| of["tid"].as_u64().expect("a number")).collect()
}

#[test]
fn the_threads_that_receive_are_others_once_the_interface_was_down_and_are_treated_alike() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nnapi = \"threaded\"\nnapi_cpu = 0\n");
    let classes = "[[class]]\nname = \"standard\"\npriority = 0\ndefault = true\n";
    let Some(mut silk) = Silk::with_queues(2, &device, classes) else { return };
    silk.start_daemon();
    let server = silk.serve("python3", &["-u", "-m", "http.server", "8000"], 8000);
    let before = numbers(&silk);
    assert_eq!(before.len(), 2);
    for change in ["down", "up"] {
        let mut ip = silk.on_linux("ip");
        text(ip.args(["link", "set", INTERFACE, change]));
    }
    let others = || {
        let now = numbers(&silk);
        now.len() == 2 && now.iter().all(|number| !before.contains(number))
    };
    assert!(within(LONG, others), "{before:?} {:?}", numbers(&silk));
    for number in numbers(&silk) {
        let said = |program: &str| text(Command::new(program).args(["-p", &number.to_string()]));
        assert!(said("taskset").trim_end().ends_with(": 1"), "one bit: CPU 0");
        assert!(said("chrt").contains("SCHED_BATCH"), "{}", said("chrt"));
    }
    ask(&silk, CLIENT);
    drop(server);
}

/// A daemon whose receive thread stays, as a card's does, though there is no program in the driver any more, and has a priority;
/// and the thread.
fn with_thread(classes: &str, mut start: impl FnMut(&mut Silk)) -> Option<(Silk, String)> {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nnapi = \"threaded\"\n");
    let mut silk = Silk::without_daemon(&device, classes)?;
    text(silk.on_linux("ethtool").args(["-K", INTERFACE, "gro", "on"]));
    silk.start_daemon();
    if silk.log("silkd").contains("cannot be scheduled") {
        return skipped("no real-time priorities");
    }
    let thread = numbers(&silk)[0].to_string();
    start(&mut silk);
    Some((silk, thread))
}

/// How a thread is scheduled.
fn scheduled(thread: &str) -> String {
    text(Command::new("chrt").args(["-p", thread]))
}

const URGENT: &str = "[[class]]\nname = \"preferred\"\npriority = 2\ndefault = true\n";

/// The daemon's heir, if it has one that runs.
fn heir(daemon: u32) -> Option<u32> {
    let number = |process: std::fs::DirEntry| process.file_name().to_str()?.parse::<u32>().ok();
    let is_heir = |process: &u32| {
        let read =
            |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
        read("cmdline").contains("--heir") && read("status").contains(&format!("PPid:\t{daemon}\n"))
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(number).find(is_heir)
}

/// Until its thread has a real-time priority.
fn become_prompt(silk: &Silk, thread: &str) {
    let prompt = || {
        ask(silk, CLIENT);
        scheduled(thread).contains("SCHED_FIFO")
    };
    assert!(within(LONG, prompt), "{}", scheduled(thread));
}

fn becomes_ordinary(thread: &str) {
    assert!(within(LONG, || scheduled(thread).contains("SCHED_OTHER")), "{}", scheduled(thread));
}

#[test]
fn the_threads_that_receive_are_ordinary_ones_when_the_daemon_is_killed() {
    let Some((mut silk, thread)) = with_thread(URGENT, |_| ()) else { return };
    let _server = silk.serve("python3", &["-u", "-m", "http.server", "8000"], 8000);
    become_prompt(&silk, &thread);
    signal(&[silk.daemon().id()], "KILL");
    becomes_ordinary(&thread);
}

#[test]
fn they_are_so_too_where_who_sees_to_that_was_killed_before() {
    let Some((mut silk, thread)) = with_thread(URGENT, |_| ()) else { return };
    let _server = silk.serve("python3", &["-u", "-m", "http.server", "8000"], 8000);
    let daemon = silk.daemon().id();
    let first = heir(daemon).expect("it has one");
    signal(&[first], "KILL");
    let another = || heir(daemon).is_some_and(|heir| heir != first);
    assert!(within(LONG, another), "it has none");
    become_prompt(&silk, &thread);
    signal(&[daemon], "KILL");
    becomes_ordinary(&thread);
}

#[test]
fn who_sees_to_that_late_changes_nothing_for_a_daemon_that_was_started_since() {
    // Where no class has a priority the threads are never scheduled otherwise, which would put right what was changed.
    let ordinary = "[[class]]\nname = \"standard\"\npriority = 0\ndefault = true\n";
    let mut held = None;
    let Some((mut silk, _)) = with_thread(ordinary, |silk| {
        let heir = heir(silk.daemon().id()).expect("it has one");
        // As long as this is open it does not see that the daemon ends.
        let pipe = std::fs::OpenOptions::new().write(true).open(format!("/proc/{heir}/fd/0")).unwrap();
        held = Some((heir, pipe));
    }) else {
        return;
    };
    let (heir, pipe) = held.unwrap();
    signal(&[silk.daemon().id()], "KILL");
    silk.restart_daemon(LONG);
    let thread = numbers(&silk)[0].to_string();
    let is_fair = || scheduled(&thread).contains("SCHED_BATCH");
    assert!(within(LONG, is_fair), "{}", scheduled(&thread));
    drop(pipe);
    let has_ended = || {
        let status = std::fs::read_to_string(format!("/proc/{heir}/status")).unwrap_or_default();
        status.is_empty() || status.contains("State:\tZ")
    };
    assert!(within(LONG, has_ended));
    assert!(within(LONG, is_fair), "{}", scheduled(&thread));
}

#[test]
fn a_daemon_that_cannot_start_leaves_the_threads_that_receive_as_they_were() {
    let Some((mut silk, thread)) = with_thread(URGENT, |_| ()) else { return };
    silk.stop_daemon(LONG);
    becomes_ordinary(&thread);
    silk.write("control.sock", "no socket");
    let said = said(silk.on_linux(&beside("silkd").display().to_string()).args(["--config", "silk.toml"]));
    assert!(!said.ok && said.errors.contains("is there and is no socket"), "{}", said.errors);
    assert!(scheduled(&thread).contains("SCHED_OTHER"), "{}", scheduled(&thread));
}

/// Packets by queues that silk does not serve are lost: by those that were added since it began (`ethtool -L`), or that it is to leave.
#[test]
fn what_comes_by_a_queue_that_is_not_served_is_told() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nqueues = [0]\nmode = \"native\"\n");
    let Some(mut silk) = Silk::with_queues(2, &device, "[[class]]\nname = \"all\"\ndefault = true\n") else {
        return;
    };
    silk.start_daemon();
    let told = || silk.report().to_string().contains("device: a queue that is not served");
    assert!(!told(), "before anybody asked");
    let mut server = silk.on_paths("python3");
    let _server = silk.start_logged(server.args(["-u", "-m", "http.server", "8000"]), "server");
    silk.until_says("server", "Serving");
    let mut steer = silk.on_peer(&beside("silk").display().to_string());
    steer.args(["bench", "end", "steer", "--interface", INTERFACE, "--queue", "1"]);
    let _steering = silk.start_logged(steer.args(["--source", &CLIENT.to_string()]), "steer");
    silk.until_says("steer", "steers");
    let mut curl = silk.on_peer("curl");
    curl.args(["-sf", "--max-time", "0.5", "--interface", &CLIENT.to_string()]);
    let asked = said(curl.arg(format!("http://{SERVER}:8000/")));
    assert!(!asked.ok, "it came by the other queue");
    assert!(told(), "{}", silk.report());
}
