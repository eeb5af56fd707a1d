//! Handlers of signals that close, poll, fork, send and receive, and threads that are cancelled: POSIX lets them, in the middle of whatever
//! the thread was doing.

use crate::host::Silk;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(40);

/// The program that does `what` on silk says this, and ends.
fn says(what: &str, expected: &str) {
    let Some(silk) = Silk::start() else { return };
    let program = silk.compile("handlers", include_str!("handlers.c"), &[]);
    let mut running = silk.on_paths(&program.to_string_lossy());
    let mut running = silk.start_logged(running.arg(what), "said");
    assert!(running.wait(PATIENCE).is_some(), "it waits for ever: {}", silk.log("said"));
    assert_eq!(silk.log("said"), expected);
}

#[test]
fn a_handler_closes_what_its_thread_watches() {
    says("watching", "ended\n");
}

#[test]
fn a_handler_closes_sockets_while_its_thread_forks() {
    says("forking", "ended\n");
}

#[test]
fn who_is_cancelled_in_close_keeps_nobody_from_forking() {
    says("cancelling", "cancelled\nended\n");
}

#[test]
fn a_handler_polls_while_its_thread_does() {
    says("polling", "ended\n");
}

#[test]
fn a_handler_asks_for_none_of_the_memory_that_its_thread_may_be_asking_for() {
    says("allocating", "ended\n");
}

#[test]
fn a_handler_of_a_strict_program_ends_the_call_that_waits() {
    says("interrupted", "interrupted\nended\n");
}

#[test]
fn what_a_handler_sends_is_not_mixed_with_what_its_thread_sends() {
    says("sending", "all, both, whole\nended\n");
}

#[test]
fn nor_where_others_hold_the_socket() {
    says("sending-together", "all, both, whole\nended\n");
}

#[test]
fn who_jumps_within_a_handler_takes_nothing_of_what_it_has_interrupted() {
    says("jumping", "all, one, whole\nended\n");
}

#[test]
fn nor_where_handlers_have_a_stack_of_their_own() {
    says("jumping-apart", "all, one, whole\nended\n");
}

#[test]
fn what_a_handler_receives_its_thread_does_not() {
    says("receiving", "both, each once\nended\n");
}

#[test]
fn who_leaves_a_write_by_a_jump_keeps_nothing_from_being_sent() {
    says("leaving", "all, whole\nended\n");
}

#[test]
fn nor_anybody() {
    says("leaving-to-others", "all, whole\nended\n");
}

#[test]
fn nor_where_a_handler_has_interrupted_it_and_is_left_as_well() {
    says("leaving-two", "all, whole\nended\n");
}

#[test]
fn who_leaves_the_naming_of_a_socket_keeps_nobody_from_forking() {
    says("leaving-names", "ended\n");
}
