//! A connection that several processes hold ends with the last of them: in order where it closes it or exits,
//! with all that was written, and with a reset where it is killed. So does one that a single process holds.

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, Running};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const PORT: &str = "4000";

/// What the peer says of the connections that programs end in these ways.
fn heard(ways: &[&str]) -> Option<Vec<String>> {
    let silk = Silk::start()?;
    silk.write("last_holder.py", include_str!("last_holder.py"));
    let mut peer = silk.on_peer("python3");
    let peer: Running = silk.start_logged(peer.args(["last_holder.py", "hear", PORT]), "heard");
    silk.until_says("heard", "listening");
    for (number, way) in ways.iter().enumerate() {
        text(silk.on_paths("python3").args(["last_holder.py", way, &CLIENT.to_string(), PORT]));
        let has_ended = || silk.log("heard").lines().count() == number + 2;
        assert!(within(PATIENCE, has_ended), "{way}: {}", silk.log("heard"));
    }
    peer.stop(PATIENCE);
    Some(silk.log("heard").lines().skip(1).map(str::to_owned).collect())
}

#[test]
fn one_that_exits_or_closes_ends_it_in_order() {
    let Some(heard) = heard(&["together", "in_turn", "survived"]) else { return };
    assert_eq!(heard, ["4000000 ended", "4000000 ended", "8000000 ended"]);
}

#[test]
fn one_that_may_make_few_system_calls_ends_it_in_order() {
    let Some(heard) = heard(&["left_from_a_cage"]) else { return };
    assert_eq!(heard, ["4000000 ended"]);
}

#[test]
fn one_that_is_killed_leaves_a_reset() {
    let Some(heard) = heard(&["killed"]) else { return };
    assert_eq!(heard, ["4000000 reset"]);
}

#[test]
fn one_whose_process_executes_another_program_ends_in_order() {
    let Some(heard) = heard(&["executed"]) else { return };
    assert_eq!(heard, ["4000000 ended"]);
}

#[test]
fn one_whose_process_could_not_and_is_killed_is_reset() {
    let Some(heard) = heard(&["executed_in_vain"]) else { return };
    assert_eq!(heard, ["4000000 reset"]);
}

#[test]
fn one_whose_process_ends_by_quick_exit_ends_in_order() {
    let Some(heard) = heard(&["left_quickly"]) else { return };
    assert_eq!(heard, ["4000000 ended"]);
}

#[test]
fn one_whose_process_ends_with_a_thread_ends_in_order() {
    let Some(heard) = heard(&["left_by_its_only_thread", "left_by_its_last_thread"]) else { return };
    assert_eq!(heard, ["4000000 ended", "4000000 ended"]);
}
