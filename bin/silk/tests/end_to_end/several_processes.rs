//! Processes that hold one socket and use it at the same time, as pre-forking servers of datagrams do, and programs that
//! write to one connection from several: each call is one call, whoever dies in the middle of one.

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, SERVER};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const PORT: &str = "4000";

fn start() -> Option<Silk> {
    let silk = Silk::start()?;
    silk.write("several_processes.py", include_str!("several_processes.py"));
    Some(silk)
}

/// What the peer counts of all that several processes write over one connection, as `how` says.
fn counted(silk: &Silk, how: &str) -> String {
    let mut counter = silk.on_peer("python3");
    let counter = silk.start_logged(counter.args(["several_processes.py", "count", PORT]), "counted");
    silk.until_says("counted", "listening");
    text(silk.on_paths("python3").args(["several_processes.py", how, &CLIENT.to_string(), PORT]));
    silk.until_says("counted", "broken");
    counter.stop(PATIENCE);
    silk.log("counted").lines().last().unwrap_or_default().to_owned()
}

#[test]
fn what_several_write_arrives_whole() {
    let Some(silk) = start() else { return };
    let expected = "0 broken, {'A': 3000, 'B': 3000, 'C': 3000, 'D': 3000, 'P': 0}";
    assert_eq!(counted(&silk, "write"), expected);
}

#[test]
fn who_is_killed_while_it_writes_holds_nobody_up() {
    let Some(silk) = start() else { return };
    let counted = counted(&silk, "killed");
    assert!(counted.starts_with("0 broken, ") && counted.ends_with("'P': 1000}"), "{counted}");
}

#[test]
fn each_datagram_is_heard_by_one() {
    let Some(silk) = start() else { return };
    let at = SERVER.to_string();
    let mut readers = silk.on_paths("python3");
    let readers = silk.start_logged(readers.args(["several_processes.py", "read", &at, PORT]), "read");
    silk.until_says("read", "reading");
    text(silk.on_peer("python3").args(["several_processes.py", "flood", &at, PORT]));
    assert!(within(PATIENCE, || silk.log("read").lines().count() == 2), "{}", silk.log("read"));
    readers.stop(PATIENCE);
    let log = silk.log("read");
    let counts: Vec<u32> = log.lines().last().unwrap().split(' ').map(|word| word.parse().unwrap()).collect();
    assert!(counts[0] == counts[1] && counts[0] > 5_000, "{counts:?} heard, different ones");
}
