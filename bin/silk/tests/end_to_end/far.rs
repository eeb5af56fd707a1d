//! Silk and Linux over the emulated link (`silk netem`): connections in both roles, over both versions of
//! IP, on networks that delay, lose, repeat, break and reorder. Every stream arrives whole both ways, and
//! every connection ends in order whoever ends its half first.

use crate::host::Silk;
use crate::netem::join;
use crate::programs::within;
use silk_testkit::netns::{Host, Running, signal};
use std::process::Command;
use std::time::Duration;

/// Silk's addresses on the link, and the peer's, with what each is at on Ethernet.
const OURS: [&str; 3] = ["02:00:00:00:00:01", "10.98.0.1", "fd98::1"];
const PEERS: [&str; 3] = ["02:00:00:00:00:02", "10.98.0.2", "fd98::2"];
/// One port for each way to end.
const PORTS: [&str; 2] = ["7000", "7001"];
/// A bad network may need many time-outs, one after the other.
const PATIENCE: Duration = Duration::from_secs(120);

/// Hosts that are joined by an emulated link alone, and the daemon on it.
struct Far {
    silk: Silk,
    _link: Running,
}

fn address(host: &Host, own: [&str; 3], other: [&str; 3]) {
    host.ip(["link", "set", "wan", "address", own[0]]).unwrap();
    host.ip(["address", "add", &format!("{}/24", own[1]), "dev", "wan"]).unwrap();
    host.ip(["address", "add", &format!("{}/64", own[2]), "dev", "wan", "nodad"]).unwrap();
    for at in &other[1..] {
        host.ip(["neigh", "add", at, "lladdr", other[0], "dev", "wan", "nud", "permanent"]).unwrap();
    }
}

fn start(properties: &str) -> Option<Far> {
    let class = "[[class]]\nname = \"standard\"\ndefault = true\n";
    let mut silk = Silk::without_daemon("kind = \"xdp\"\ninterface = \"wan\"\n", class)?;
    let properties: Vec<&str> = properties.split_whitespace().collect();
    let link = join(&silk.rig, &silk.path("netem.log"), &properties);
    address(&silk.rig.server, OURS, PEERS);
    address(&silk.rig.client, PEERS, OURS);
    silk.start_daemon();
    silk.write("streams.py", include_str!("streams.py"));
    Some(Far { silk, _link: link })
}

/// Starts the program in one role; it logs under this name.
fn streams(silk: &Silk, mut python: Command, at: &str, role: &str, name: &str) -> Running {
    silk.start_logged(python.args(["streams.py", at, role]).args(PORTS), name)
}

/// Every connection at once: in both roles and over both versions of IP, ended either way.
fn carry(properties: &str) {
    let Some(Far { silk, _link }) = start(properties) else { return };
    let mut running = Vec::new();
    for (ours, peers) in [(OURS[1], PEERS[1]), (OURS[2], PEERS[2])] {
        let [here, there] = [format!("silk serves {ours}"), format!("Linux serves {peers}")];
        running.push((streams(&silk, silk.on_paths("python3"), ours, "serve", &here), here));
        running.push((streams(&silk, silk.on_peer("python3"), peers, "serve", &there), there));
    }
    let ready = |name: &str| silk.log(name).matches("ready").count() == PORTS.len();
    for (_, name) in &running {
        assert!(within(PATIENCE, || ready(name)), "{name}: {}", silk.log(name));
    }
    for (ours, peers) in [(OURS[1], PEERS[1]), (OURS[2], PEERS[2])] {
        let [here, there] = [format!("silk connects to {peers}"), format!("Linux connects to {ours}")];
        running.push((streams(&silk, silk.on_paths("python3"), peers, "connect", &here), here));
        running.push((streams(&silk, silk.on_peer("python3"), ours, "connect", &there), there));
    }
    for (program, name) in &mut running {
        let ended = program.wait(PATIENCE).is_some_and(|status| status.success());
        let log = silk.log(name);
        assert!(ended && log.matches("whole").count() == PORTS.len(), "{name}: {log}");
    }
    silk.linux_saw_nothing();
}

#[test]
fn streams_are_whole_over_a_long_way() {
    carry("--rate 100mbit --delay 20ms --jitter 5ms --queue 300 --seed 1");
}

#[test]
fn streams_are_whole_over_a_way_that_loses() {
    carry("--rate 50mbit --delay 3ms --loss 3% --burst 2 --queue 200 --codel --seed 2");
}

#[test]
fn streams_are_whole_over_a_way_that_confuses() {
    carry(
        "--rate 50mbit --delay 2ms --jitter 2ms --duplicate 3% --corrupt 2% --reorder 10% --reorder-by 8ms \
         --queue 200 --seed 3",
    );
}

/// The rings that a connection has at first are far less than this way holds, a megabyte.
#[test]
fn rings_grow_over_a_fast_and_long_way() {
    let Some(Far { silk, _link }) = start("--rate 200mbit --delay 20ms --queue 500 --seed 4") else { return };
    silk.write("there_and_back.py", include_str!("there_and_back.py"));
    let run = |mut python: Command, at: &str, role: &str, name: &str| {
        silk.start_logged(python.args(["there_and_back.py", at, role, "7000"]), name)
    };
    let serves = [(OURS[1], silk.on_paths("python3")), (PEERS[1], silk.on_peer("python3"))];
    let connects = [(OURS[1], silk.on_peer("python3")), (PEERS[1], silk.on_paths("python3"))];
    for ((at, serve), (_, connect)) in serves.into_iter().zip(connects) {
        let [here, there] = [format!("serving at {at}"), format!("connecting to {at}")];
        let mut ends = vec![(run(serve, at, "serve", &here), here.clone())];
        silk.until_says(&here, "ready");
        ends.push((run(connect, at, "connect", &there), there.clone()));
        for (program, name) in &mut ends {
            let ended = program.wait(PATIENCE).is_some_and(|status| status.success());
            let log = silk.log(name);
            assert!(ended && log.matches("whole").count() == 3, "{name}: {log}");
        }
        let ours = silk.log(if at == OURS[1] { &here } else { &there });
        for line in ours.lines().filter(|line| line.starts_with("whole")) {
            let sizes: Vec<u32> = line.split(' ').skip(1).map(|size| size.parse().unwrap()).collect();
            assert!(sizes[0] > 128 << 10 && sizes[1] > 512 << 10, "{ours}");
        }
    }
    silk.linux_saw_nothing();
}

/// What it had of larger rings is there for others again, also where it is killed in the middle of using them.
#[test]
fn rings_that_have_grown_return_when_their_program_is_killed() {
    let Some(Far { silk, _link }) = start("--rate 200mbit --delay 20ms --queue 500 --seed 5") else { return };
    silk.write("endless.py", include_str!("endless.py"));
    let mut python = silk.on_paths("python3");
    let _server = silk.start_logged(python.args(["endless.py", "serve", "7000"]), "server");
    silk.until_says("server", "ready");
    let (before, mut charged) = (silk.kept(), Vec::new());
    for turn in ["first", "second"] {
        let mut python = silk.on_peer("python3");
        let mut asking = silk.start_logged(python.args(["endless.py", "ask", OURS[1], "7000"]), turn);
        let child = || silk.log(turn).trim().parse::<u32>().ok();
        assert!(within(PATIENCE, || child().is_some()), "{}", silk.log(turn));
        // Those it began with are 640 KB.
        assert!(silk.kept().2 > before.2 + (4 << 20), "{:?} before, {:?} now", before, silk.kept());
        signal(&[child().unwrap()], "KILL");
        assert!(asking.wait(PATIENCE).is_some(), "{}", silk.log(turn));
        assert!(silk.log(turn).contains("reset by peer"), "{}", silk.log(turn));
        let returned = within(PATIENCE, || (silk.kept().0, silk.kept().2) == (before.0, before.2));
        assert!(returned, "{before:?} before, {:?} after", silk.kept());
        charged.push(silk.kept().1);
    }
    // What is known of a peer once it has been there is kept, and no more for the second connection.
    assert_eq!(charged[0], charged[1]);
    silk.linux_saw_nothing();
}
