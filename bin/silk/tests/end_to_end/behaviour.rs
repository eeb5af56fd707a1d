//! The same program on both stacks: it makes every system call of sockets in every state and says what
//! they answer (`behaviour/`). What silk answers is what Linux answers, but for what
//! `docs/differences.md` lists: a difference that is not listed fails, and so does one that is listed and
//! does not occur.

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, CLIENT6, SERVER, SERVER6};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

const FILES: [(&str, &str); 11] = [
    ("connecting.py", include_str!("behaviour/connecting.py")),
    ("datagrams.py", include_str!("behaviour/datagrams.py")),
    ("ending.py", include_str!("behaviour/ending.py")),
    ("holding.py", include_str!("behaviour/holding.py")),
    ("main.py", include_str!("behaviour/main.py")),
    ("moving.py", include_str!("behaviour/moving.py")),
    ("naming.py", include_str!("behaviour/naming.py")),
    ("peer.py", include_str!("behaviour/peer.py")),
    ("suite.py", include_str!("behaviour/suite.py")),
    ("urgent.py", include_str!("behaviour/urgent.py")),
    ("watching.py", include_str!("behaviour/watching.py")),
];
const LISTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/differences.md");

/// Whom the program speaks with, as rows of the document begin that are for one kind alone.
const PEERS: [&str; 3] = ["IPv4", "IPv6", "own machine"];

/// What each step of each case answered.
type Answers = BTreeMap<String, String>;

/// Runs the suite, or some of its files, and gives what it said. Each run has ports of its own: what the last has left
/// in TIME-WAIT is not to be met.
fn answers(
    silk: &Silk,
    mut program: Command,
    [own, peer]: [&str; 2],
    (name, first_port): (&str, &str),
    files: &[&str],
) -> Answers {
    let control = silk.path(&format!("{name}.sock"));
    let control = control.to_str().unwrap();
    let mut other = if own == peer { silk.on_linux("python3") } else { silk.on_peer("python3") };
    let _peer = silk.start_logged(other.args(["peer.py", control]), name);
    silk.until_says(name, "listening");
    let said = text(program.args(["main.py", own, peer, control, first_port]).args(files));
    let split =
        |line: &str| line.split_once(" = ").map(|(step, answer)| (step.to_owned(), answer.to_owned()));
    said.lines().map(|line| split(line).unwrap_or_else(|| panic!("not a step: {line}"))).collect()
}

/// Every step at which the two are not the same: Linux's answer and silk's.
fn different(linux: &Answers, ours: &Answers) -> BTreeMap<String, [String; 2]> {
    let steps = linux.keys().chain(ours.keys());
    let none = || "nothing".to_owned();
    let both = |step: &String| [linux, ours].map(|of| of.get(step).cloned().unwrap_or_else(none));
    steps.map(|step| (step.clone(), both(step))).filter(|(_, [a, b])| a != b).collect()
}

/// The rows of the document's tables that concern these steps, and peers of this kind.
fn listed(peers: &str, linux: &Answers, ours: &Answers) -> BTreeMap<String, [String; 2]> {
    let mut rows = BTreeMap::new();
    for row in fs::read_to_string(LISTED)
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix("` |"))
    {
        let cells: Vec<&str> = row.split("` | `").collect();
        let [step, theirs, silks] = cells[..] else { panic!("not a row of three: {row}") };
        let step =
            match PEERS.iter().find_map(|kind| Some((*kind, step.strip_prefix(kind)?.strip_prefix(": ")?))) {
                None => step,
                Some((kind, step)) if kind == peers => step,
                Some(_) => continue,
            };
        let case = step.split(": ").next().unwrap_or(step).to_owned() + ": ";
        // Files that were not run say nothing.
        if linux.keys().chain(ours.keys()).any(|step| step.starts_with(&case)) {
            let twice = rows.insert(step.to_owned(), [theirs.to_owned(), silks.to_owned()]);
            assert_eq!(twice, None, "{step} is listed twice");
        }
    }
    rows
}

fn compare(peers: &str, addresses: [&str; 2], files: &[&str]) {
    let Some(silk) = Silk::start() else { return };
    FILES.iter().for_each(|(name, content)| _ = silk.write(name, content));
    // Both hosts know each other before anything is compared.
    let answers_ping = || silk.rig.server.run("ping", ["-q", "-c", "1", "-W", "1", addresses[1]]).is_ok();
    assert!((0..10).any(|_| answers_ping()), "{} does not answer", addresses[1]);
    let linux = answers(&silk, silk.on_linux("python3"), addresses, ("linux", "20000"), files);
    let ours = answers(&silk, silk.on_paths("python3"), addresses, ("paths", "25000"), files);
    let (found, listed) = (different(&linux, &ours), listed(peers, &linux, &ours));
    assert!(linux.len() > 100, "{linux:?}");
    let row =
        |step: &String, [theirs, silks]: &[String; 2]| format!("| `{step}` | `{theirs}` | `{silks}` |\n");
    let rows_of = |these: &BTreeMap<String, [String; 2]>, others: &BTreeMap<String, [String; 2]>| {
        let only = these.iter().filter(|(step, both)| others.get(*step) != Some(both));
        only.map(|(step, both)| row(step, both)).collect::<String>()
    };
    let (unlisted, gone) = (rows_of(&found, &listed), rows_of(&listed, &found));
    assert!(
        unlisted.is_empty() && gone.is_empty(),
        "docs/differences.md does not list:\n{unlisted}and lists what is not so:\n{gone}silk dropped: {}",
        silk.report()["drops"]
    );
}

// RFC 9293 MUST-33.
#[test]
fn a_program_sees_what_it_would_on_linux_but_for_what_is_listed() {
    compare("IPv4", [&SERVER.to_string(), &CLIENT.to_string()], &[]);
}

/// Names, opening and datagrams; the rest does not know of which version its peer is.
#[test]
fn over_ipv6_too() {
    compare("IPv6", [&SERVER6.to_string(), &CLIENT6.to_string()], &["connecting", "datagrams", "naming"]);
}

/// What happens to a connection that has come over Linux's own TCP; how sockets are named and watched does not differ.
#[test]
fn with_a_peer_on_the_same_machine_too() {
    let own = SERVER.to_string();
    compare("own machine", [&own, &own], &["ending", "moving", "urgent"]);
}

/// Its `close` comes when the executor has not heard of it yet.
#[test]
fn connections_that_are_closed_at_once_are_gone() {
    const CLOSING: &str = "import socket, sys, time
for n in range(200):
    end = socket.socket()
    end.setblocking(False)
    end.connect_ex((sys.argv[1], 9))
    end.close()
print('closed', flush=True)
time.sleep(60)
";
    let Some(silk) = Silk::start() else { return };
    // Nobody answers, so that they would stay for minutes.
    silk.rig.client.run("ip", ["route", "add", "blackhole", &format!("{SERVER}/32")]).unwrap();
    let paths = || silk.kept().0;
    let before = paths();
    let mut program = silk.on_paths("python3");
    let _program = silk.start_logged(program.args(["-c", CLOSING, &CLIENT.to_string()]), "closing");
    silk.until_says("closing", "closed");
    assert!(within(Duration::from_secs(20), || paths() == before), "{} more paths", paths() - before);
}

#[test]
fn every_difference_is_explained() {
    for section in fs::read_to_string(LISTED).unwrap().split("\n## ").skip(1) {
        let (heading, rest) = section.split_once('\n').unwrap_or((section, ""));
        let prose = rest.lines().filter(|line| !line.starts_with('|') && !line.trim().is_empty());
        assert!(rest.contains("\n| `") && prose.count() > 0, "{heading}: no rows, or no reason");
    }
}
