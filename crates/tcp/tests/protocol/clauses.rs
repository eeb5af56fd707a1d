//! Clauses that no other test tells of: a short test for each.

use std::time::Duration;

use silk_tcp::{Flags, KeepaliveConfig, Progress, Segment, SeqNumber};

use crate::solo::{OURS, Solo, THEIRS, ack, plain, text};

const MILLI: Duration = Duration::from_millis(1);

// RFC 9293 MUST-1.
#[test]
fn a_window_with_its_highest_bit_is_a_large_one() {
    let mut solo = Solo::established(&plain());
    solo.arrive(Segment { window: 0xFFFF, ..ack(OURS) }).unwrap();
    assert_eq!(solo.connection.info().snd_wnd, 65_535);
}

// RFC 9293 SHLD-2.
#[test]
fn a_reset_that_carries_text_is_a_reset() {
    let mut solo = Solo::established(&plain());
    let reset = Segment { flags: Flags::RST, ..text(THEIRS, b"why") };
    assert_eq!(solo.arrive(reset), Ok(Progress::RESET | Progress::CLOSED));
    assert_eq!(solo.rx.read(), b"");
}

// RFC 9293 MUST-66.
#[test]
fn a_reset_counts_while_our_window_is_closed() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS, &[1; 10_000])).unwrap();
    assert_eq!(solo.sent()[0].header.window, 0);
    let reset = Segment { flags: Flags::RST, seq: SeqNumber::new(THEIRS + 10_000), ..ack(OURS) };
    assert_eq!(solo.arrive(reset), Ok(Progress::RESET | Progress::CLOSED));
}

// RFC 9293 MUST-28.
#[test]
fn an_idle_connection_is_not_probed_for_two_hours() {
    assert_eq!(KeepaliveConfig::default().idle, Duration::from_secs(7_200));
}

// RFC 6298 §5.1, §5.2, §5.3.
#[test]
fn the_timer_runs_from_the_last_news_while_something_is_outstanding() {
    let mut solo = Solo::established(&plain());
    assert_eq!(solo.connection.poll_timeout(), None);
    solo.write(2_000);
    solo.sent();
    let first = solo.connection.poll_timeout().unwrap();
    solo.after(100 * MILLI);
    solo.arrive(ack(OURS + 1_000)).unwrap();
    let second = solo.connection.poll_timeout().unwrap();
    assert!(second > first, "an acknowledgement of something new starts it anew");
    solo.arrive(ack(OURS + 2_000)).unwrap();
    assert_eq!(solo.connection.poll_timeout(), None);
}
