//! Random calls, by a seed, on both stacks: what they answer is compared, line by line (`random_calls/`). It finds what
//! nobody has thought of writing down for `behaviour.rs`. One program makes calls that never wait; the processes of the other
//! share sockets, and their threads wait. `SILK_SEED` is the first of the seeds, `SILK_ROUNDS` how many.

use crate::host::Silk;
use crate::programs::text;
use silk_testkit::netns::{CLIENT, CLIENT6, INTERFACE, SERVER, SERVER6};
use std::process::Command;

const FILES: [(&str, &str); 3] = [
    ("program.py", include_str!("random_calls/program.py")),
    ("processes.py", include_str!("random_calls/processes.py")),
    ("peer.py", include_str!("random_calls/peer.py")),
];
/// Calls of each run.
const CALLS: &str = "120";
/// What a call causes has so long to happen, seconds; where two answers differ, both stacks are asked again and given longer.
const MOMENTS: [&str; 2] = ["0.006", "0.06"];

/// Where the peer is.
#[derive(Clone, Copy)]
enum Peer {
    OnAnotherHost,
    OnTheSame,
}

impl Peer {
    fn addresses(self) -> [String; 2] {
        match self {
            Self::OnAnotherHost => [CLIENT.to_string(), CLIENT6.to_string()],
            Self::OnTheSame => [SERVER.to_string(), SERVER6.to_string()],
        }
    }
}

/// What the program in `file` says over one stack. Each run has ports of its own.
fn run(
    silk: &Silk,
    (mut python, file, at): (Command, &str, Peer),
    (seed, moment): (u64, &str),
    (name, ports): (&str, u64),
) -> Vec<String> {
    let name = format!("{name}-{seed}-{moment}");
    let control = silk.path(&format!("{name}.sock"));
    let control = control.to_str().unwrap();
    let there = at.addresses();
    let mut peer = match at {
        Peer::OnAnotherHost => silk.on_peer("python3"),
        Peer::OnTheSame => silk.on_linux("python3"),
    };
    let _peer = silk.start_logged(peer.args(["peer.py", control]).args(&there), &name);
    silk.until_says(&name, "listening");
    let own = [SERVER.to_string(), SERVER6.to_string()];
    python.args([file, control, &seed.to_string(), CALLS, &ports.to_string(), moment]);
    let said = text(python.args(own).args(there));
    said.lines().map(str::to_owned).collect()
}

/// How far two lines go on alike.
enum Both {
    Same,
    /// They part for a reason that `docs/differences.md` lists, and say nothing of each other any more.
    Part,
    Differ,
}

fn compare(linux: &str, ours: &str) -> Both {
    let (Some((call, theirs)), Some((same, silks))) = (linux.split_once(" = "), ours.split_once(" = "))
    else {
        return Both::Differ;
    };
    let word = call.split(' ').nth(1).unwrap_or_default();
    let datagrams = call.contains(" udp");
    match (word, theirs, silks) {
        _ if linux == ours => Both::Same,
        _ if call != same => Both::Differ,
        // A connected datagram socket keeps its address, and with it its IP.
        ("connect", _, "ENETUNREACH") if datagrams => Both::Part,
        // Accepted connections are not taken apart by a connection to nobody.
        ("connect", "0", "ENOTSUP") if call.contains("nobody") => Both::Part,
        // A socket keeps the name that it has had.
        ("bind", "0", "refused") | ("bind", "refused", "0") => Both::Part,
        ("getsockname", ..) => Both::Part,
        ("setsockopt", "0", "EINVAL") if call.contains(" 41/26 ") => Both::Part,
        // Of two things that are wrong either may be told.
        ("send", "ENETUNREACH", "EINVAL") if datagrams => Both::Part,
        ("sendmsg", "EINVAL", "EPIPE") => Both::Part,
        // Nor has one that has listened to be alone at its port to do so again.
        ("listen", "EADDRINUSE", "0") => Both::Part,
        // Linux's third state of a socket that is not connected, after a connection that failed was shut down.
        ("connect", "EINVAL", _) => Both::Part,
        _ => Both::Differ,
    }
}

/// The first line that differs, after the last that mattered for it.
fn difference(linux: &[String], ours: &[String]) -> Option<String> {
    for (theirs, silks) in linux.iter().zip(ours) {
        match compare(theirs, silks) {
            Both::Same => {}
            Both::Part => return None,
            Both::Differ => return Some(format!("over Linux {theirs}\nover silk  {silks}")),
        }
    }
    (linux.len() != ours.len()).then(|| format!("{} and {} lines", linux.len(), ours.len()))
}

/// Everything that silk has answered the program in `file` with this seed, and where the two differ.
fn asked(silk: &Silk, file: &str, at: Peer, (seed, moment): (u64, &str), ports: u64) -> Option<String> {
    let linux = run(silk, (silk.on_linux("python3"), file, at), (seed, moment), ("linux", ports));
    let ours = run(silk, (silk.on_paths("python3"), file, at), (seed, moment), ("paths", ports + 5));
    difference(&linux, &ours)
        .map(|differs| format!("{}\nseed {seed} ({moment} s): {differs}\n", ours.join("\n")))
}

/// Compares both stacks by the program in `file`.
fn compared_by(file: &str, at: Peer) {
    let Some(silk) = Silk::start() else { return };
    FILES.iter().for_each(|(name, text)| _ = silk.write(name, text));
    // Each refusal is told.
    let unlimited = ["-q", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0"];
    for host in [&silk.rig.client, &silk.rig.server] {
        host.run("sysctl", unlimited).unwrap();
        // Over Linux, groups of IPv4 are not reached without.
        host.ip(["route", "add", "224.0.0.0/4", "dev", INTERFACE]).unwrap();
    }
    let number = |name| std::env::var(name).ok().and_then(|said| said.parse().ok());
    let (first, rounds) = (number("SILK_SEED").unwrap_or(1), number("SILK_ROUNDS").unwrap_or(12));
    let mut differ = Vec::new();
    for (round, seed) in (first..first + rounds).enumerate() {
        let ports = 20_000 + 20 * round as u64;
        let hasty = asked(&silk, file, at, (seed, MOMENTS[0]), ports);
        differ.extend(hasty.and_then(|_| asked(&silk, file, at, (seed, MOMENTS[1]), ports + 10)));
    }
    assert!(differ.is_empty(), "\n{}", differ.join("\n"));
}

#[test]
fn both_stacks_answer_the_same() {
    compared_by("program.py", Peer::OnAnotherHost);
}

#[test]
fn both_stacks_answer_a_program_whose_peer_is_on_its_machine_the_same() {
    compared_by("program.py", Peer::OnTheSame);
}

#[test]
fn both_stacks_answer_processes_that_share_sockets_and_threads_that_wait_the_same() {
    compared_by("processes.py", Peer::OnAnotherHost);
}

#[test]
fn and_with_a_peer_on_their_machine() {
    compared_by("processes.py", Peer::OnTheSame);
}
