//! RACK-TLP (RFC 8985) from outside: what is lost is seen by time, reordered text is waited for, and
//! the tail is probed before the time-out.

use std::time::Duration;

use silk_tcp::{Config, Flags, Progress, Segment, SeqNumber};

use crate::link::Weather;
use crate::pair::{Pair, pattern};
use crate::solo::{OURS, Solo, THEIRS, ack, sacked, text, with_sack};

const MILLI: Duration = Duration::from_millis(1);
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// The first octet of the n-th segment, from 0.
fn segment(n: u32) -> u32 {
    OURS + 1_000 * n
}

/// Segments of 1000 octets were sent at intervals of 1 ms, the first of them arrived after a round
/// trip of 40 ms, and nine are outstanding.
fn nine_outstanding() -> Solo {
    let config = Config { nodelay: true, ..with_sack() };
    let mut solo = Solo::established_after(&config, ROUND_TRIP);
    for _ in 0..10 {
        solo.write(1_000);
        assert_eq!(solo.sent().len(), 1);
        solo.after(MILLI);
    }
    solo.after(ROUND_TRIP - 10 * MILLI);
    solo.arrive(ack(segment(1))).unwrap();
    solo
}

/// The last of them was sent again as a probe and acknowledged; and the window before.
fn probed() -> (Solo, u32) {
    let mut solo = nine_outstanding();
    solo.arrive(ack(segment(9))).unwrap();
    let cwnd = solo.connection.info().cwnd;
    solo.next_timeout();
    assert_eq!(solo.text_sent(), [(segment(9), 1_000)]);
    solo.after(ROUND_TRIP);
    solo.arrive(ack(segment(10))).unwrap();
    (solo, cwnd)
}

// RFC 8985 §6.2.
#[test]
fn a_gap_is_repaired_after_a_quarter_of_a_round_trip() {
    let mut solo = nine_outstanding();
    // The third segment arrives without the second, one millisecond later than that would have.
    solo.after(2 * MILLI);
    solo.arrive(sacked(ack(segment(1)), &[(segment(2), segment(3))])).unwrap();
    assert_eq!(solo.text_sent(), []);
    assert_eq!(solo.next_timeout(), Some((9 * MILLI, Progress::NONE)));
    assert_eq!(solo.text_sent(), [(segment(1), 1_000)]);
    let info = solo.connection.info();
    assert_eq!((info.fast_recoveries, info.timeouts), (1, 0));
}

#[test]
fn a_segment_that_was_only_late_is_not_sent_again_and_teaches_patience() {
    let mut solo = nine_outstanding();
    solo.after(2 * MILLI);
    solo.arrive(sacked(ack(segment(1)), &[(segment(2), segment(3))])).unwrap();
    solo.after(3 * MILLI);
    solo.arrive(ack(segment(3))).unwrap();
    assert_eq!(solo.connection.info().fast_recoveries, 0);
    // Reordering was seen: even three segments are no proof any more, but time is.
    solo.arrive(sacked(ack(segment(3)), &[(segment(4), segment(10))])).unwrap();
    assert_eq!(solo.text_sent(), []);
    assert_eq!(solo.next_timeout().map(|timeout| timeout.1), Some(Progress::NONE));
    assert_eq!(solo.text_sent(), [(segment(3), 1_000)]);
}

// RFC 8985 §3.3.2.
#[test]
fn three_segments_beyond_a_gap_repair_it_at_once_while_nothing_was_reordered() {
    let mut solo = nine_outstanding();
    solo.after(4 * MILLI);
    solo.arrive(sacked(ack(segment(1)), &[(segment(2), segment(5))])).unwrap();
    assert_eq!(solo.text_sent(), [(segment(1), 1_000)]);
}

// RFC 8985 §6.2.
#[test]
fn one_acknowledgement_that_advances_and_reports_says_nothing_of_order() {
    let lost_after = |blocks: &[(u32, u32)]| {
        let mut solo = nine_outstanding();
        solo.after(6 * MILLI);
        // The first of the nine was acknowledged late, together with what came after the gap.
        solo.arrive(sacked(ack(segment(2)), blocks)).unwrap();
        let reordered = solo.connection.info().reordered;
        (solo.text_sent(), reordered)
    };
    let at_once = (vec![(segment(2), 1_000)], 0);
    assert_eq!(lost_after(&[(segment(3), segment(6))]), at_once);
    // The latest block comes first.
    assert_eq!(lost_after(&[(segment(5), segment(6)), (segment(3), segment(4))]).1, 0);
    // A block that fills in behind what was acknowledged before does.
    let mut solo = nine_outstanding();
    solo.arrive(sacked(ack(segment(2)), &[(segment(4), segment(6))])).unwrap();
    solo.arrive(sacked(ack(segment(2)), &[(segment(3), segment(6))])).unwrap();
    assert_eq!(solo.connection.info().reordered, 1);
}

// RFC 8985 §3.3.2, §4.
#[test]
fn a_report_of_a_needless_repair_widens_the_window() {
    let patience = |reports: u32| {
        let mut solo = nine_outstanding();
        for _ in 0..reports {
            solo.arrive(sacked(ack(segment(1)), &[(segment(0), segment(1))])).unwrap();
        }
        solo.after(2 * MILLI);
        solo.arrive(sacked(ack(segment(1)), &[(segment(2), segment(3))])).unwrap();
        solo.connection.poll_timeout().map(|at| at - solo.now)
    };
    // Once and twice a quarter of the round trip.
    assert_eq!([patience(0), patience(1)], [Some(9 * MILLI), Some(19 * MILLI)]);
}

// RFC 8985 §7.2, §7.3, §8.
#[test]
fn the_last_segment_is_sent_again_after_two_round_trips() {
    let mut solo = nine_outstanding();
    let (waited, progress) = solo.next_timeout().unwrap();
    let srtt = solo.connection.info().srtt;
    assert_eq!((waited, progress), (2 * srtt, Progress::NONE));
    assert_eq!(solo.text_sent(), [(segment(9), 1_000)]);
    let info = solo.connection.info();
    assert_eq!((info.timeouts, info.backoff, info.segments_again), (0, 0, 1));
    // Only one: what comes next is the time-out.
    assert_eq!(solo.next_timeout(), Some((info.rto, Progress::NONE)));
    assert_eq!((solo.connection.info().timeouts, solo.text_sent()[0]), (1, (segment(1), 1_000)));
}

// RFC 8985 §7.3.
#[test]
fn new_text_is_the_better_probe_even_beyond_the_congestion_window() {
    let mut solo = nine_outstanding();
    solo.after(5 * MILLI);
    solo.write(20_000);
    let before = solo.sent().len();
    assert!(before < 20);
    solo.next_timeout();
    // The silence is counted from the last transmission.
    assert_eq!(solo.text_sent(), []);
    solo.next_timeout();
    assert_eq!(solo.text_sent(), [(segment(10 + before as u32), 1_000)]);
    assert_eq!(solo.connection.info().segments_again, 0);
}

#[test]
fn a_probe_shows_what_was_lost_before_it() {
    let mut solo = nine_outstanding();
    solo.next_timeout();
    assert_eq!(solo.text_sent(), [(segment(9), 1_000)]);
    solo.after(ROUND_TRIP);
    solo.arrive(sacked(ack(segment(1)), &[(segment(9), segment(10))])).unwrap();
    assert_eq!(solo.text_sent()[0], (segment(1), 1_000));
    let info = solo.connection.info();
    assert_eq!((info.fast_recoveries, info.timeouts), (1, 0));
}

// RFC 8985 §7.4.2.
#[test]
fn a_loss_that_the_probe_itself_repaired_still_halves_the_window() {
    let (mut solo, cwnd) = probed();
    assert_eq!(solo.connection.info().cwnd, cwnd);
    // No D-SACK came after it, so the first transmission had not arrived.
    solo.write(1_000);
    solo.sent();
    solo.after(ROUND_TRIP);
    solo.arrive(ack(segment(11))).unwrap();
    // By what the window was, and not by the lone segment that told of it.
    let left = cwnd * 7 / 10;
    assert!((left - 1..left + 1_000).contains(&solo.connection.info().cwnd), "of {cwnd}");
}

// RFC 8985 §7.4.2.
#[test]
fn a_probe_that_was_not_needed_costs_nothing() {
    let mut solo = nine_outstanding();
    solo.arrive(ack(segment(9))).unwrap();
    let cwnd = solo.connection.info().cwnd;
    solo.next_timeout();
    solo.sent();
    solo.arrive(ack(segment(10))).unwrap();
    solo.arrive(sacked(ack(segment(10)), &[(segment(9), segment(10))])).unwrap();
    solo.write(1_000);
    solo.sent();
    solo.arrive(ack(segment(11))).unwrap();
    assert!(solo.connection.info().cwnd >= cwnd);
}

#[test]
fn a_lost_fin_is_probed() {
    let mut solo = nine_outstanding();
    solo.arrive(ack(segment(10))).unwrap();
    solo.connection.shutdown_write();
    assert_eq!(solo.flags_sent(), [Flags::FIN | Flags::ACK]);
    // A lone segment: its acknowledgement may be delayed by 200 ms, and the time-out is no longer.
    let rto = solo.connection.info().rto;
    assert_eq!(solo.next_timeout(), Some((rto, Progress::NONE)));
    assert_eq!(solo.flags_sent(), [Flags::FIN | Flags::ACK]);
    assert_eq!(solo.connection.info().timeouts, 0);
}

#[test]
fn a_tail_that_is_lost_needs_no_time_out() {
    let mut pair = Pair::established(&Config::default());
    // Of ten segments the last three are lost once.
    let mut texts = 0;
    pair.to_server.lose = Box::new(move |_, packet| {
        texts += u32::from(!packet.text.is_empty());
        !packet.text.is_empty() && (8..=10).contains(&texts)
    });
    pair.client.program.to_write = pattern(14_480, 1);
    pair.drive_until(Duration::from_secs(1), |pair| pair.server.program.received.len() == 14_480);
    let info = pair.client.connection().info();
    assert_eq!((info.timeouts, info.fast_recoveries), (0, 1));
}

#[test]
fn a_network_that_reorders_is_not_taken_for_one_that_loses() {
    let weather = Weather { reordering: 100, ..Weather::FAIR };
    let mut pair = Pair::new(&Config { receive_window: 1 << 20, ..Config::default() }, weather, 3);
    pair.client.program.to_write = pattern(1 << 20, 1);
    pair.drive_until(Duration::from_secs(60), |pair| pair.server.program.received.len() == 1 << 20);
    let info = pair.client.connection().info();
    // Held up by as much as twice the round trip, which no window of half a one waits for.
    assert!(info.segments_again < 40 && info.timeouts == 0, "{info:?}");
}

// RFC 8985 §7.3.
#[test]
fn where_the_round_trip_grows_beyond_the_probes_timer_the_next_text_is_measured_and_not_probed() {
    let mut solo = nine_outstanding();
    solo.arrive(ack(segment(9))).unwrap();
    solo.sent();
    solo.arrive(ack(segment(10))).unwrap();
    solo.offload = 65_000;
    let ask = |solo: &mut Solo, first: u32| {
        solo.write(2_000);
        assert_eq!(solo.text_sent(), [(segment(first), 2_000)]);
        solo.next_timeout().expect("something is waited for").0
    };
    let pto = ask(&mut solo, 10);
    assert_eq!(solo.text_sent(), [(segment(11), 1_000)]);
    let long = pto + ROUND_TRIP;
    solo.after(ROUND_TRIP);
    solo.arrive(ack(segment(12))).unwrap();
    // Of what was sent twice nothing is measured, so there is no other probe: the time-out waits longer.
    let rto = solo.connection.info().rto;
    assert!(long < rto, "{long:?} {rto:?}");
    solo.write(2_000);
    solo.sent();
    solo.after(long);
    assert_eq!(solo.text_sent(), []);
    solo.arrive(ack(segment(14))).unwrap();
    // Now there is: with the round trip that was measured.
    let later = ask(&mut solo, 14);
    assert!(later > pto, "{later:?} {pto:?}");
    assert_eq!(solo.text_sent(), [(segment(15), 1_000)]);
}

/// New text that left in a recovery, before the last of what was sent again, and has not arrived with that.
#[test]
fn a_loss_behind_the_end_of_a_recovery_is_seen_with_the_acknowledgement_that_ends_it() {
    let mut solo = Solo::established(&with_sack());
    solo.write(11_000);
    assert_eq!(solo.sent().len(), 10);
    solo.after(10 * MILLI);
    solo.arrive(sacked(ack(OURS), &[(OURS + 1_000, OURS + 8_000)])).unwrap();
    assert_eq!(solo.text_sent(), [(OURS, 1_000), (OURS + 10_000, 1_000)]);
    solo.after(2 * MILLI);
    let held = [(OURS + 9_000, OURS + 10_000), (OURS + 1_000, OURS + 8_000)];
    solo.arrive(sacked(ack(OURS), &held)).unwrap();
    assert_eq!(solo.text_sent()[0], (OURS + 8_000, 1_000));
    solo.after(10 * MILLI);
    solo.arrive(ack(OURS + 10_000)).unwrap();
    assert_eq!(solo.text_sent(), []);
    // It is waited for no longer than reordered text is.
    assert_eq!(solo.next_timeout(), Some((MILLI, Progress::NONE)));
    assert_eq!(solo.text_sent(), [(OURS + 10_000, 1_000)]);
    assert_eq!(solo.connection.info().fast_recoveries, 2);
}

// RFC 8985 §7.3.
#[test]
fn text_that_trickles_puts_the_probe_off_no_longer_than_the_time_out() {
    let mut solo = nine_outstanding();
    for _ in 0..6 {
        solo.after(30 * MILLI);
        assert_eq!(solo.text_sent(), []);
        solo.write(100);
        assert_eq!(solo.sent().len(), 1);
    }
    // The oldest left 39 ms before, and the time-out is 240 ms: that is over after 201 ms.
    solo.after(30 * MILLI);
    assert_eq!(solo.text_sent(), [(segment(9) + 600, 1_000)]);
    assert_eq!(solo.connection.info().timeouts, 0);
}

// RFC 8985 §7.4.2.
#[test]
fn text_of_the_peer_does_not_say_that_a_probe_was_not_needed() {
    let (mut solo, cwnd) = probed();
    solo.arrive(Segment { ack: SeqNumber::new(segment(10)), ..text(THEIRS, b"x") }).unwrap();
    solo.write(1_000);
    solo.sent();
    solo.after(ROUND_TRIP);
    solo.arrive(Segment { seq: SeqNumber::new(THEIRS + 1), ..ack(segment(11)) }).unwrap();
    let left = cwnd * 7 / 10;
    assert!((left - 1..left + 1_000).contains(&solo.connection.info().cwnd), "of {cwnd}");
}
