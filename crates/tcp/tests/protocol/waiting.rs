//! Idle connections: keep-alive (RFC 9293 §3.8.4) and the silence of machines with nothing to do.

use std::time::Duration;

use silk_tcp::{Config, Flags, KeepaliveConfig, Progress, Segment, SeqNumber, State};

use crate::pair::Pair;
use crate::solo::{OURS, Solo, THEIRS, ack, plain, text};

const SECOND: Duration = Duration::from_secs(1);

fn alive() -> Config {
    let keepalive = KeepaliveConfig { idle: 60 * SECOND, interval: 5 * SECOND, probes: 3 };
    Config { keepalive: Some(keepalive), ..plain() }
}

// RFC 9293 MUST-25.
#[test]
fn an_idle_connection_waits_for_nothing() {
    let mut pair = Pair::established(&Config::default());
    assert_eq!(pair.client.connection().poll_timeout(), None);
    assert_eq!(pair.server.connection().poll_timeout(), None);
    pair.drive_for(3_600 * SECOND);
    assert_eq!((pair.client.sent.len(), pair.server.sent.len()), (0, 0));
}

// RFC 9293 MUST-27, SHLD-12.
#[test]
fn a_silent_peer_is_probed_and_then_reset() {
    let mut solo = Solo::established(&alive());
    let mut waits = vec![];
    let end = loop {
        let (waited, progress) = solo.next_timeout().unwrap();
        waits.push(waited.as_secs());
        if !progress.is_empty() {
            break progress;
        }
        let sent = solo.sent();
        assert_eq!((sent.len(), sent[0].header.seq, sent[0].len), (1, SeqNumber::new(OURS - 1), 0));
    };
    assert_eq!(waits, [60, 5, 5, 5]);
    assert_eq!(end, Progress::TIMED_OUT | Progress::CLOSED);
    assert_eq!(solo.flags_sent(), [Flags::RST | Flags::ACK]);
}

#[test]
fn an_answer_to_a_probe_starts_the_wait_again() {
    let mut solo = Solo::established(&alive());
    solo.next_timeout();
    solo.sent();
    solo.arrive(ack(OURS)).unwrap();
    let (first, _) = solo.next_timeout().unwrap();
    assert_eq!(solo.sent(), []);
    let (second, _) = solo.next_timeout().unwrap();
    assert_eq!((first + second, solo.sent().len()), (60 * SECOND, 1));
}

// RFC 9293 MUST-26.
#[test]
fn traffic_postpones_the_probe() {
    let mut solo = Solo::established(&alive());
    solo.after(30 * SECOND);
    solo.arrive(text(THEIRS, b"x")).unwrap();
    solo.after(SECOND);
    solo.sent();
    solo.after(29 * SECOND);
    assert_eq!(solo.sent(), []);
    assert_eq!(solo.next_timeout(), Some((30 * SECOND, Progress::NONE)));
    assert_eq!(solo.sent().len(), 1);
}

#[test]
fn a_probe_is_answered() {
    let mut solo = Solo::established(&plain());
    let probe = Segment { seq: SeqNumber::new(THEIRS - 1), ..ack(OURS) };
    assert!(solo.arrive(probe).is_err());
    assert_eq!(solo.acks_sent(), [THEIRS]);
    let with_octet = Segment { payload: b"?", ..probe };
    assert!(solo.arrive(with_octet).is_err());
    assert_eq!(solo.acks_sent(), [THEIRS]);
}

#[test]
fn a_user_timeout_gives_up_a_silent_peer_before_all_probes_are_sent() {
    let mut solo = Solo::established(&Config { user_timeout: Some(62 * SECOND), ..alive() });
    let mut outcomes = vec![];
    while let Some((waited, progress)) = solo.next_timeout() {
        outcomes.push((waited.as_secs(), progress));
        solo.sent();
    }
    let end = Progress::TIMED_OUT | Progress::CLOSED;
    assert_eq!(outcomes, [(60, Progress::NONE), (5, end)]);
}

// RFC 9293 MUST-24.
#[test]
fn keepalive_can_be_turned_on_and_off() {
    let mut solo = Solo::established(&plain());
    solo.connection.set_keepalive(solo.now, alive().keepalive);
    assert_eq!(solo.connection.poll_timeout(), Some(solo.now + 60 * SECOND));
    solo.connection.set_keepalive(solo.now, None);
    assert_eq!(solo.connection.poll_timeout(), None);
}

#[test]
fn what_is_set_anew_does_not_begin_the_probes_anew_and_silence_that_has_passed_counts() {
    let mut solo = Solo::established(&alive());
    for wait in [60, 5] {
        assert_eq!(solo.next_timeout(), Some((wait * SECOND, Progress::NONE)));
        assert_eq!(solo.sent().len(), 1);
    }
    solo.connection.set_keepalive(solo.now, alive().keepalive);
    assert_eq!(solo.next_timeout(), Some((5 * SECOND, Progress::NONE)));
    assert_eq!(solo.next_timeout(), Some((5 * SECOND, Progress::TIMED_OUT | Progress::CLOSED)));

    let mut solo = Solo::established(&alive());
    solo.after(50 * SECOND);
    for (idle, left) in [(70, 20), (40, 0)] {
        let keepalive = KeepaliveConfig { idle: idle * SECOND, interval: 5 * SECOND, probes: 3 };
        solo.connection.set_keepalive(solo.now, Some(keepalive));
        assert_eq!(solo.connection.poll_timeout(), Some(solo.now + left * SECOND));
    }
}

#[test]
fn two_machines_keep_an_idle_connection_alive_for_a_day() {
    let mut pair = Pair::established(&Config { timestamps: true, sack: true, ..alive() });
    pair.drive_for(24 * 3_600 * SECOND);
    assert_eq!((pair.client.state(), pair.server.state()), (State::Established, State::Established));
    assert!(pair.client.sent.len() > 1_000);
}

#[test]
fn a_dead_peer_is_noticed() {
    let mut pair = Pair::established(&alive());
    pair.to_server.lose = Box::new(|_, _| true);
    pair.to_client.lose = Box::new(|_, _| true);
    pair.drive_for(100 * SECOND);
    assert!(pair.client.progress.contains(Progress::TIMED_OUT));
    assert!(pair.server.progress.contains(Progress::TIMED_OUT));
}
