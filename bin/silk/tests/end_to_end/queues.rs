//! A receive queue of its own for a preferred client: the thread that polls it interrupts all others while it has work, and
//! the others' thread interrupts nobody.

use crate::host::{Silk, beside, skipped, text, within};
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
        let _: Option<()> = skipped("no real-time priorities");
        return;
    }
    let mut steer = silk.on_peer(&beside("silk").display().to_string());
    steer.args(["bench", "end", "steer", "--interface", INTERFACE, "--queue", "1"]);
    let steering = silk.start_logged(steer.args(["--source", &PREFERRED.to_string()]), "steer");
    assert!(within(LONG, || silk.log("steer").contains("steers")), "{}", silk.log("steer"));
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
    for change in ["down", "up"] {
        let mut ip = silk.on_linux("ip");
        text(ip.args(["link", "set", INTERFACE, change]));
    }
    let others = || numbers(&silk).iter().all(|number| !before.contains(number));
    assert!(within(LONG, others), "{before:?} {:?}", numbers(&silk));
    for number in numbers(&silk) {
        let said = |program: &str| text(Command::new(program).args(["-p", &number.to_string()]));
        assert!(said("taskset").trim_end().ends_with(": 1"), "one bit: CPU 0");
        assert!(said("chrt").contains("SCHED_BATCH"), "{}", said("chrt"));
    }
    ask(&silk, CLIENT);
    drop(server);
}

#[test]
fn the_threads_that_receive_are_ordinary_ones_when_the_daemon_is_killed() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nnapi = \"threaded\"\n");
    let classes = "[[class]]\nname = \"preferred\"\npriority = 2\ndefault = true\n";
    let Some(mut silk) = Silk::without_daemon(&device, classes) else { return };
    // As a card's, they stay though there is no program in the driver any more.
    text(silk.on_linux("ethtool").args(["-K", INTERFACE, "gro", "on"]));
    silk.start_daemon();
    if silk.log("silkd").contains("cannot be scheduled") {
        let _: Option<()> = skipped("no real-time priorities");
        return;
    }
    let thread = numbers(&silk)[0].to_string();
    let scheduled = || text(Command::new("chrt").args(["-p", &thread]));
    let _server = silk.serve("python3", &["-u", "-m", "http.server", "8000"], 8000);
    let prompt = || {
        ask(&silk, CLIENT);
        scheduled().contains("SCHED_FIFO")
    };
    assert!(within(LONG, prompt), "{}", scheduled());
    signal(&[silk.daemon().id()], "KILL");
    assert!(within(LONG, || scheduled().contains("SCHED_OTHER")), "{}", scheduled());
}
