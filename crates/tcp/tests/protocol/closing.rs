//! Closing: RFC 9293 §3.6, §3.10.4, §3.10.5, RFC 2525 §2.17, RFC 6191.

use std::time::Duration;

use silk_tcp::{Config, Connection, DropReason, Flags, IsnSecret, Progress, Segment, SeqNumber, State};

use crate::link::Weather;
use crate::pair::{Pair, pattern};
use crate::solo::{OURS, Solo, THEIRS, ack, flagged, plain, text};

const SECOND: Duration = Duration::from_secs(1);
const FIN: Flags = Flags::FIN;

fn fin(seq: u32, ack: u32) -> Segment<'static> {
    Segment { ack: SeqNumber::new(ack), ..flagged(Flags::FIN | Flags::ACK, seq) }
}

#[test]
fn the_fin_rides_on_the_last_text() {
    let mut solo = Solo::established(&plain());
    solo.write(2_300);
    solo.connection.close(solo.now);
    let sent: Vec<_> = solo.sent().iter().map(|t| (t.len, t.header.flags.fin())).collect();
    assert_eq!(sent, [(1_000, false), (1_000, false), (300, true)]);
    assert_eq!(solo.state(), State::FinWait1);
}

#[test]
fn with_offload_response_and_fin_are_one_transmission() {
    let mut solo = Solo::established(&plain());
    solo.offload = 65_000;
    solo.write(7_300);
    solo.connection.close(solo.now);
    let sent = solo.sent();
    assert_eq!((sent.len(), sent[0].len, sent[0].gso_size), (1, 7_300, 1_000));
    assert!(sent[0].header.flags.contains(FIN | Flags::PSH));
}

// RFC 9293 MUST-12.
#[test]
fn an_ordinary_close_passes_through_every_state() {
    let mut solo = Solo::established(&plain());
    solo.connection.shutdown_write();
    assert_eq!(solo.flags_sent(), [FIN | Flags::ACK]);
    assert_eq!(solo.arrive(ack(OURS + 1)), Ok(Progress::FIN_ACKED));
    assert_eq!(solo.state(), State::FinWait2);
    assert_eq!(solo.arrive(fin(THEIRS, OURS + 1)), Ok(Progress::PEER_FIN | Progress::TIME_WAIT));
    assert_eq!((solo.acks_sent(), solo.state()), (vec![THEIRS + 1], State::TimeWait));
    assert!(solo.connection.time_wait().is_some());
    assert_eq!(solo.after(60 * SECOND), Progress::CLOSED);
}

#[test]
fn the_side_that_closes_second_ends_without_time_wait() {
    let mut solo = Solo::established(&plain());
    assert_eq!(solo.arrive(fin(THEIRS, OURS)), Ok(Progress::PEER_FIN));
    assert_eq!((solo.acks_sent(), solo.state()), (vec![THEIRS + 1], State::CloseWait));
    solo.connection.close(solo.now);
    assert_eq!((solo.flags_sent(), solo.state()), (vec![FIN | Flags::ACK], State::LastAck));
    let last = Segment { seq: SeqNumber::new(THEIRS + 1), ..ack(OURS + 1) };
    assert_eq!(solo.arrive(last), Ok(Progress::FIN_ACKED | Progress::CLOSED));
    assert_eq!((solo.sent(), solo.connection.poll_timeout()), (vec![], None));
}

#[test]
fn simultaneous_closes_meet_in_time_wait() {
    let mut solo = Solo::established(&plain());
    solo.connection.close(solo.now);
    solo.sent();
    assert_eq!(solo.arrive(fin(THEIRS, OURS)), Ok(Progress::PEER_FIN));
    assert_eq!((solo.acks_sent(), solo.state()), (vec![THEIRS + 1], State::Closing));
    let last = Segment { seq: SeqNumber::new(THEIRS + 1), ..ack(OURS + 1) };
    assert_eq!(solo.arrive(last), Ok(Progress::FIN_ACKED | Progress::TIME_WAIT));
}

#[test]
fn a_fin_that_also_acknowledges_ours_goes_straight_to_time_wait() {
    let mut solo = Solo::established(&plain());
    solo.connection.close(solo.now);
    solo.sent();
    let progress = solo.arrive(fin(THEIRS, OURS + 1)).unwrap();
    assert_eq!(progress, Progress::FIN_ACKED | Progress::PEER_FIN | Progress::TIME_WAIT);
}

#[test]
fn after_a_half_close_the_peer_still_sends() {
    let mut pair = Pair::established(&Config::default());
    pair.client.program.shuts_down = true;
    pair.drive_for(SECOND);
    assert_eq!((pair.client.state(), pair.server.state()), (State::FinWait2, State::CloseWait));
    let answer = pattern(200_000, 3);
    pair.server.program.to_write = answer.clone();
    pair.server.program.shuts_down = true;
    pair.drive_for(10 * SECOND);
    assert!(answer == pair.client.program.received);
    assert_eq!((pair.client.time_wait.len(), pair.server.state()), (1, State::Closed));
}

#[test]
fn a_lost_fin_is_sent_again_with_the_text_before_it() {
    let mut solo = Solo::established(&plain());
    solo.write(300);
    solo.connection.close(solo.now);
    solo.sent();
    solo.next_timeout();
    let sent = solo.sent();
    assert_eq!((sent.len(), sent[0].len, sent[0].header.flags), (1, 300, FIN | Flags::PSH | Flags::ACK));
    solo.arrive(ack(OURS + 300)).unwrap();
    solo.next_timeout();
    let sent = solo.sent();
    let expected = (OURS + 300, 0, FIN | Flags::ACK);
    assert_eq!((sent[0].header.seq.raw(), sent[0].len, sent[0].header.flags), expected);
}

#[test]
fn a_fin_ahead_of_lost_text_waits_for_it() {
    let mut solo = Solo::established(&plain());
    let last = Segment { flags: Flags::FIN | Flags::ACK, ..text(THEIRS + 3, b"def") };
    assert_eq!(solo.arrive(last), Ok(Progress::NONE));
    assert_eq!((solo.acks_sent(), solo.state()), (vec![THEIRS], State::Established));
    assert_eq!(solo.arrive(text(THEIRS, b"abc")), Ok(Progress::READABLE | Progress::PEER_FIN));
    assert_eq!((solo.acks_sent(), solo.rx.read()), (vec![THEIRS + 7], b"abcdef".to_vec()));
}

#[test]
fn nothing_after_the_fin_belongs_to_the_stream() {
    let mut solo = Solo::established(&plain());
    solo.arrive(fin(THEIRS, OURS)).unwrap();
    assert_eq!(solo.arrive(text(THEIRS + 1, b"more")), Ok(Progress::NONE));
    assert_eq!((solo.rx.held.len(), solo.acks_sent()), (0, vec![THEIRS + 1]));
}

#[test]
fn closing_before_the_handshake_sends_nothing() {
    let mut solo = Solo::opening(&plain());
    solo.connection.close(solo.now);
    assert_eq!((solo.state(), solo.sent(), solo.connection.poll_timeout()), (State::Closed, vec![], None));
}

// RFC 9293 MUST-12.
#[test]
fn an_abort_resets_the_peer() {
    let mut pair = Pair::established(&Config::default());
    pair.client.program.to_write = pattern(3_000, 1);
    pair.settle();
    pair.client.connection().abort();
    pair.drive_for(SECOND);
    assert!(pair.server.progress.contains(Progress::RESET | Progress::CLOSED));
    assert_eq!((pair.client.state(), pair.server.state()), (State::Closed, State::Closed));
}

#[test]
fn an_abort_needs_no_reset_where_the_peer_has_finished() {
    let mut solo = Solo::established(&plain());
    solo.arrive(fin(THEIRS, OURS)).unwrap();
    solo.connection.close(solo.now);
    solo.sent();
    solo.connection.abort();
    assert_eq!((solo.state(), solo.sent()), (State::Closed, vec![]));
}

// RFC 9293 SHLD-3.
#[test]
fn text_for_a_program_that_has_closed_is_answered_with_a_reset() {
    let mut solo = Solo::established(&plain());
    solo.connection.close(solo.now);
    solo.sent();
    assert_eq!(solo.arrive(text(THEIRS, b"late")), Ok(Progress::LATE_TEXT | Progress::CLOSED));
    assert_eq!((solo.flags_sent(), solo.state()), (vec![Flags::RST | Flags::ACK], State::Closed));
}

#[test]
fn a_program_that_shut_reading_down_may_look_once_more() {
    let mut solo = Solo::established(&plain());
    solo.connection.shutdown_read();
    solo.arrive(text(THEIRS, &[7; 500])).unwrap();
    solo.arrive(text(THEIRS + 500, &[7; 500])).unwrap();
    assert_eq!((solo.acks_sent(), solo.rx.held.len()), (vec![THEIRS + 1_000], 1_000));
}

// RFC 9293 SHLD-3.
#[test]
fn a_program_that_shut_both_ways_down_hears_that_text_for_it_was_answered_with_a_reset() {
    for read_first in [true, false] {
        let mut solo = Solo::established(&plain());
        if read_first {
            solo.connection.shutdown_read();
        }
        solo.connection.shutdown_write();
        solo.sent();
        solo.connection.shutdown_read();
        solo.arrive(ack(OURS + 1)).unwrap();
        let late = Progress::RESET | Progress::LATE_TEXT | Progress::CLOSED;
        assert_eq!(solo.arrive(text(THEIRS, b"late")), Ok(late));
        assert_eq!((solo.flags_sent(), solo.state()), (vec![Flags::RST | Flags::ACK], State::Closed));
    }
    // The peer's end is no text.
    let mut solo = Solo::established(&plain());
    solo.connection.shutdown_read();
    solo.connection.shutdown_write();
    solo.sent();
    solo.arrive(ack(OURS + 1)).unwrap();
    assert!(solo.arrive(fin(THEIRS, OURS + 1)).unwrap().contains(Progress::TIME_WAIT));
}

#[test]
fn an_orphan_does_not_wait_for_a_silent_peer_for_ever() {
    let mut solo = Solo::established(&plain());
    solo.connection.close(solo.now);
    solo.sent();
    solo.arrive(ack(OURS + 1)).unwrap();
    assert_eq!(solo.state(), State::FinWait2);
    assert_eq!(solo.next_timeout(), Some((60 * SECOND, Progress::CLOSED)));
    // A half-close waits as long as the peer likes.
    let mut solo = Solo::established(&plain());
    solo.connection.shutdown_write();
    solo.sent();
    solo.arrive(ack(OURS + 1)).unwrap();
    assert_eq!(solo.next_timeout(), None);
}

#[test]
fn an_orphan_gives_up_sooner() {
    let mut solo = Solo::established(&plain());
    solo.write(100);
    solo.connection.close(solo.now);
    solo.sent();
    let mut again = 0;
    while let Some((_, progress)) = solo.next_timeout()
        && !progress.contains(Progress::TIMED_OUT)
    {
        again += solo.sent().len();
    }
    assert_eq!(again, 8);
}

#[test]
fn a_program_may_say_how_long_its_closed_end_waits() {
    let mut solo = Solo::established(&plain());
    solo.connection.set_fin_wait_2(3 * SECOND);
    solo.connection.close(solo.now);
    solo.sent();
    solo.arrive(ack(OURS + 1)).unwrap();
    assert_eq!(solo.state(), State::FinWait2);
    assert_eq!(solo.next_timeout(), Some((3 * SECOND, Progress::CLOSED)));
}

/// What was said last may not have arrived.
#[test]
fn a_reset_is_told_until_our_end_is_acknowledged_though_both_have_ended() {
    let told = Ok(Progress::RESET | Progress::CLOSED);
    for we_end_first in [false, true] {
        let mut solo = Solo::established(&plain());
        if we_end_first {
            solo.connection.shutdown_write();
            solo.sent();
        }
        solo.arrive(fin(THEIRS, OURS)).unwrap();
        solo.connection.shutdown_write();
        solo.sent();
        assert_eq!(solo.state(), if we_end_first { State::Closing } else { State::LastAck });
        assert_eq!(solo.arrive(flagged(Flags::RST, THEIRS + 1)), told);
        assert_eq!((solo.sent(), solo.connection.poll_timeout()), (vec![], None));
    }
    // Nothing is open in TIME-WAIT, and nobody hears of one there.
    let mut solo = Solo::established(&plain());
    solo.connection.shutdown_write();
    solo.sent();
    solo.arrive(fin(THEIRS, OURS + 1)).unwrap();
    assert_eq!(solo.arrive(flagged(Flags::RST, THEIRS + 1)), Err(DropReason::ResetInTimeWait));
}

/// Runs a connection through to TIME-WAIT on the client's side.
fn ended() -> Pair {
    let mut pair = Pair::established(&Config::default());
    pair.client.program.to_write = pattern(10_000, 1);
    pair.client.program.shuts_down = true;
    pair.drive_for(SECOND);
    pair.server.program.shuts_down = true;
    pair.drive_for(SECOND);
    assert_eq!((pair.client.time_wait.len(), pair.server.state()), (1, State::Closed));
    pair
}

#[test]
fn a_lost_last_acknowledgement_is_given_again_from_time_wait() {
    let mut pair = Pair::established(&Config::default());
    pair.client.program.shuts_down = true;
    pair.drive_for(SECOND);
    pair.server.program.shuts_down = true;
    let mut lost = 0;
    pair.to_server.lose = Box::new(move |_, _| {
        lost += 1;
        lost <= 2
    });
    pair.drive_for(5 * SECOND);
    assert_eq!(pair.server.state(), State::Closed);
    assert!(!pair.server.progress.contains(Progress::TIMED_OUT));
}

// RFC 9293 SHLD-4; RFC 6191 §2.
#[test]
fn the_same_ports_can_be_used_again_during_time_wait() {
    let mut pair = ended();
    // The roles change: the side that is in TIME-WAIT now listens.
    core::mem::swap(&mut pair.client.listener, &mut pair.server.listener);
    let iss = IsnSecret::new([9, 9]).iss(pair.now, &1u8);
    pair.server.connection = Some(Connection::connect(&Config::default(), iss, pair.now));
    pair.drive_for(SECOND);
    let stale = pair.client.time_wait.len();
    assert_eq!(
        (pair.client.state(), pair.server.state(), stale),
        (State::Established, State::Established, 0)
    );
}

// RFC 9293 MUST-13.
#[test]
fn time_wait_ends_after_twice_the_segment_lifetime() {
    let mut pair = ended();
    pair.drive_for(58 * SECOND);
    assert_eq!(pair.client.time_wait.len(), 1);
    pair.drive_for(2 * SECOND);
    assert_eq!(pair.client.time_wait.len(), 0);
}

#[test]
fn closing_in_a_storm_leaves_nothing_behind() {
    for seed in 0..40 {
        let storm = Weather { loss: 150, reordering: 300, duplication: 100, ..Weather::FAIR };
        let mut pair = Pair::new(&Config::default(), storm, seed);
        pair.client.program.shuts_down = true;
        pair.server.program.shuts_down = true;
        pair.drive_for(3_600 * SECOND);
        let left = (
            pair.client.state(),
            pair.server.state(),
            pair.client.time_wait.len(),
            pair.server.time_wait.len(),
        );
        assert_eq!(left, (State::Closed, State::Closed, 0, 0), "seed {seed}: {}", pair.describe());
    }
}

// RFC 9293 MUST-37.
#[test]
fn an_orphan_gives_up_also_where_the_peer_keeps_its_window_closed_and_answers() {
    let closed = Segment { window: 0, ..ack(OURS) };
    for outstanding in [false, true] {
        let mut solo = Solo::established(&plain());
        if !outstanding {
            solo.arrive(closed).unwrap();
        }
        solo.write(500);
        solo.connection.close(solo.now);
        assert_eq!(solo.sent().len(), usize::from(outstanding));
        let mut again = 0;
        let end = loop {
            solo.arrive(closed).unwrap();
            let (_, progress) = solo.next_timeout().expect("it ends");
            if progress != Progress::NONE {
                break progress;
            }
            again += solo.sent().len();
            assert!(again < 100, "it never ends");
        };
        assert_eq!((again, end), (8, Progress::TIMED_OUT | Progress::CLOSED), "{outstanding}");
    }
}
