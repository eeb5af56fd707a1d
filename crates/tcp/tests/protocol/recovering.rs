//! Losses: RFC 5681 §3.2, RFC 6582, RFC 6675, RFC 6298 §5, RFC 2018, RFC 2883. What RACK-TLP does is
//! in `racking`.

use std::time::Duration;

use silk_tcp::{Config, MtuProbing, Options, Progress, Repair, Segment, Transmit};

use crate::solo::{OURS, Solo, THEIRS, ack, plain, sacked, stamped, text, with_sack, with_timestamps};

const MILLI: Duration = Duration::from_millis(1);

/// Ten full segments are outstanding.
fn ten_outstanding(config: &Config) -> Solo {
    let mut solo = Solo::established(config);
    solo.write(10_000);
    assert_eq!(solo.sent().len(), 10);
    solo
}

/// The first octet of the n-th segment, from 0.
fn segment(n: u32) -> u32 {
    OURS + 1_000 * n
}

// RFC 5681 §3.2; RFC 6582 §3.2.
#[test]
fn the_third_duplicate_acknowledgement_sends_the_first_segment_again() {
    let mut solo = ten_outstanding(&plain());
    for _ in 0..2 {
        solo.arrive(ack(OURS)).unwrap();
        assert_eq!(solo.text_sent(), []);
    }
    solo.arrive(ack(OURS)).unwrap();
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    assert_eq!((solo.connection.info().cwnd, solo.connection.info().ssthresh), (7_000, 7_000));
}

#[test]
fn the_first_two_duplicates_let_new_text_go() {
    let mut solo = ten_outstanding(&plain());
    solo.write(5_000);
    assert_eq!(solo.text_sent(), []);
    // RFC 3042: limited transmit.
    solo.arrive(ack(OURS)).unwrap();
    assert_eq!(solo.text_sent(), [(segment(10), 1_000)]);
    solo.arrive(ack(OURS)).unwrap();
    assert_eq!(solo.text_sent(), [(segment(11), 1_000)]);
}

#[test]
fn an_acknowledgement_with_another_window_or_with_text_is_no_duplicate() {
    let mut solo = ten_outstanding(&plain());
    for n in 0..10 {
        solo.arrive(Segment { window: 19_000 + n, ..ack(OURS) }).unwrap();
    }
    for n in 0..10 {
        solo.arrive(Segment { window: 19_009, ..text(THEIRS + n, b"x") }).unwrap();
    }
    assert_eq!(solo.connection.info().fast_recoveries, 0);
    assert!(solo.text_sent().iter().all(|sent| sent.1 == 0));
}

// RFC 5681 §4.3; RFC 6582 §3.2.
#[test]
fn newreno_repairs_one_hole_for_each_partial_acknowledgement() {
    let mut solo = ten_outstanding(&plain());
    (0..3).for_each(|_| assert!(solo.arrive(ack(OURS)).is_ok()));
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    solo.arrive(ack(segment(4))).unwrap();
    assert_eq!(solo.text_sent(), [(segment(4), 1_000)]);
    solo.arrive(ack(segment(7))).unwrap();
    assert_eq!(solo.text_sent(), [(segment(7), 1_000)]);
    solo.arrive(ack(segment(10))).unwrap();
    assert_eq!(solo.connection.info().fast_recoveries, 1);
    solo.write(20_000);
    // Congestion avoidance goes on from ssthresh.
    assert_eq!(solo.text_sent().len(), 7);
}

// RFC 5681 §4.3; RFC 2018 §5; RFC 6675 §4.
#[test]
fn sack_sends_only_the_holes_again() {
    let mut solo = ten_outstanding(&with_sack());
    solo.after(10 * MILLI);
    // Segments 0 and 3 are lost.
    let held = [(segment(1), segment(3)), (segment(4), segment(9))];
    solo.arrive(sacked(ack(OURS), &[(segment(1), segment(2))])).unwrap();
    assert_eq!(solo.text_sent(), []);
    solo.arrive(sacked(ack(OURS), &held)).unwrap();
    // The last one may yet arrive: nothing younger has.
    assert_eq!(solo.text_sent(), [(OURS, 1_000), (segment(3), 1_000)]);
    let info = solo.connection.info();
    assert_eq!((info.segments_again, info.fast_recoveries, info.sacked), (2, 1, 7_000));
    solo.arrive(ack(segment(10))).unwrap();
    assert_eq!(solo.connection.info().in_flight, 0);
}

// RFC 8985 §9.3; RFC 6675 §5.
#[test]
fn sack_keeps_within_the_congestion_window() {
    let mut solo = ten_outstanding(&with_sack());
    solo.after(10 * MILLI);
    // Only the last three arrived, all others are lost: for three that left the network four may
    // enter it (RFC 6937 §3), and then for each two.
    solo.arrive(sacked(ack(OURS), &[(segment(7), segment(10))])).unwrap();
    assert_eq!(solo.text_sent().len(), 4);
    solo.arrive(ack(segment(1))).unwrap();
    assert_eq!(solo.text_sent().len(), 2);
    assert_eq!(solo.connection.info().cwnd, 7_000);
}

// RFC 8985 §9.2, §9.3.
#[test]
fn a_retransmission_that_is_lost_is_noticed_and_blamed_on_congestion() {
    let mut solo = ten_outstanding(&with_sack());
    solo.write(10_000);
    // The first segment is lost, and so is its retransmission.
    let mut held = segment(1);
    for _ in 0..9 {
        held += 1_000;
        solo.after(10 * MILLI);
        solo.arrive(sacked(ack(OURS), &[(segment(1), held)])).unwrap();
        solo.sent();
    }
    let (once, ssthresh) = (solo.connection.info().segments_again, solo.connection.info().ssthresh);
    assert_eq!((once, held), (1, segment(10)));
    while solo.connection.info().segments_again == 1 {
        held += 1_000;
        solo.after(10 * MILLI);
        solo.arrive(sacked(ack(OURS), &[(segment(1), held)])).unwrap();
        solo.sent();
    }
    // One segment was new before the retransmission; the next left after it.
    assert!(held == segment(12) && solo.connection.info().ssthresh < ssthresh);
    solo.after(10 * MILLI);
    solo.arrive(ack(held)).unwrap();
    assert_eq!(solo.connection.info().timeouts, 0);
}

// RFC 6675 §6.
#[test]
fn what_is_sent_again_once_more_has_a_whole_time_out() {
    let mut solo = ten_outstanding(&with_sack());
    solo.write(10_000);
    let mut held = segment(1);
    while solo.connection.info().segments_again < 2 {
        held += 1_000;
        solo.after(10 * MILLI);
        solo.arrive(sacked(ack(OURS), &[(segment(1), held)])).unwrap();
        solo.sent();
    }
    assert!(solo.connection.info().segments_again == 2 && held > segment(3));
    assert_eq!(solo.connection.poll_timeout(), Some(solo.now + solo.connection.info().rto));
}

// RFC 6582 §3.2.
#[test]
fn without_sack_many_losses_end_in_a_timeout() {
    let mut solo = ten_outstanding(&plain());
    (0..3).for_each(|_| assert!(solo.arrive(ack(OURS)).is_ok()));
    solo.sent();
    solo.after(100 * MILLI);
    solo.arrive(ack(segment(1))).unwrap();
    solo.sent();
    let deadline = solo.connection.poll_timeout();
    solo.after(100 * MILLI);
    solo.arrive(ack(segment(2))).unwrap();
    solo.sent();
    assert_eq!(solo.connection.poll_timeout(), deadline);
}

#[test]
fn duplicates_without_news_are_no_sign_of_loss_with_sack() {
    let mut solo = ten_outstanding(&with_sack());
    solo.after(10 * MILLI);
    for _ in 0..10 {
        solo.arrive(sacked(ack(OURS), &[(segment(1), segment(2))])).unwrap();
    }
    assert_eq!(solo.connection.info().fast_recoveries, 0);
    assert_eq!(solo.text_sent(), []);
}

// RFC 9293 MUST-19; RFC 5681 §3.1; RFC 6298 §5.1, §5.4, §5.5, §5.6.
#[test]
fn a_timeout_starts_again_from_one_segment_and_doubles() {
    let mut solo = ten_outstanding(&Config { mtu_probing: MtuProbing::Off, ..plain() });
    let mut waits = vec![];
    for _ in 0..4 {
        waits.push(solo.next_timeout().unwrap().0.as_millis());
        assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    }
    assert_eq!(waits, [210, 420, 840, 1_680]);
    assert_eq!((solo.connection.info().cwnd, solo.connection.info().ssthresh), (1_000, 7_000));
    // Slow start over what was lost.
    solo.arrive(ack(segment(1))).unwrap();
    assert_eq!(solo.text_sent(), [(segment(1), 1_000), (segment(2), 1_000)]);
    solo.arrive(ack(segment(3))).unwrap();
    assert_eq!(solo.text_sent().len(), 3);
}

// RFC 6675 §5.1.
#[test]
fn after_a_timeout_what_the_peer_holds_is_not_sent_again() {
    let mut solo = ten_outstanding(&with_sack());
    solo.arrive(sacked(ack(OURS), &[(segment(1), segment(2))])).unwrap();
    solo.next_timeout();
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    solo.arrive(ack(segment(2))).unwrap();
    assert_eq!(solo.text_sent()[0], (segment(2), 1_000));
}

// RFC 6675 §5.1.
#[test]
fn after_a_timeout_no_fast_recovery_begins_until_all_of_it_is_acknowledged() {
    let mut solo = ten_outstanding(&with_sack());
    // Twice, for after the first one such a report tells that it was a mistake (RFC 5682).
    while solo.connection.info().timeouts < 2 {
        solo.next_timeout();
        solo.sent();
    }
    solo.arrive(sacked(ack(OURS), &[(segment(5), segment(9))])).unwrap();
    solo.sent();
    solo.after(50 * MILLI);
    let info = solo.connection.info();
    assert_eq!((info.repair, info.fast_recoveries), (Repair::Loss, 0));
    solo.arrive(ack(segment(10))).unwrap();
    solo.write(10_000);
    assert!(solo.text_sent().len() > 1);
    solo.after(10 * MILLI);
    solo.arrive(sacked(ack(segment(10)), &[(segment(11), segment(12))])).unwrap();
    solo.after(50 * MILLI);
    assert_eq!(solo.connection.info().fast_recoveries, 1);
}

// RFC 2018 §8; RFC 6675 §4.
#[test]
fn a_peer_that_takes_back_what_it_held_is_sent_everything() {
    let mut solo = ten_outstanding(&with_sack());
    solo.arrive(sacked(ack(OURS), &[(segment(1), segment(10))])).unwrap();
    solo.sent();
    solo.arrive(ack(segment(1))).unwrap();
    assert_eq!(solo.connection.info().sacked, 0);
    solo.next_timeout();
    assert_eq!(solo.text_sent()[0], (segment(1), 1_000));
}

// RFC 9293 MUST-18; RFC 6298 §3.
#[test]
fn a_segment_sent_twice_is_not_measured_without_timestamps() {
    let mut solo = ten_outstanding(&plain());
    let before = solo.connection.info().srtt;
    solo.next_timeout();
    solo.sent();
    solo.after(50 * MILLI);
    solo.arrive(ack(segment(10))).unwrap();
    let info = solo.connection.info();
    // Karn: no sample, and the backed-off time-out stays until there is one.
    assert_eq!((info.srtt, info.rto), (before, 420 * MILLI));
    solo.write(1_000);
    solo.sent();
    solo.after(10 * MILLI);
    solo.arrive(ack(segment(11))).unwrap();
    assert_eq!(solo.connection.info().rto, 210 * MILLI);
}

/// The first segment is lost, and what the peer holds tells how long the round trip has become, once in each.
// RFC 6298 §3.
#[test]
fn while_the_first_segment_is_missing_round_trips_are_measured_by_what_is_held() {
    let mut solo = ten_outstanding(&with_sack());
    assert_eq!(solo.connection.info().srtt, 10 * MILLI);
    solo.after(50 * MILLI);
    solo.arrive(sacked(ack(OURS), &[(segment(1), segment(2))])).unwrap();
    assert_eq!(solo.connection.info().srtt, 15 * MILLI, "an eighth of 50 ms, and the rest as before");
    solo.after(50 * MILLI);
    solo.arrive(sacked(ack(OURS), &[(segment(1), segment(9))])).unwrap();
    assert_eq!(solo.connection.info().srtt, 15 * MILLI, "not all of that round trip is over");
}

// RFC 6298 §3; RFC 7323 §4.1.
#[test]
fn with_timestamps_it_is_measured_by_the_echo() {
    let mut solo = ten_outstanding(&with_timestamps());
    solo.next_timeout();
    let value = solo.sent()[0].header.options.timestamp.unwrap().0;
    solo.after(30 * MILLI);
    let echo = |value| Options { timestamp: Some((100, value)), ..Options::default() };
    // An echo from before the retransmission proves nothing about it.
    solo.arrive(Segment { options: echo(value - 100), ..ack(segment(1)) }).unwrap();
    assert_eq!(solo.connection.info().srtt, 10 * MILLI);
    solo.sent();
    solo.arrive(Segment { options: echo(value + 30), ..ack(segment(2)) }).unwrap();
    assert_ne!(solo.connection.info().srtt, 10 * MILLI);
}

// RFC 9293 MUST-20.
#[test]
fn a_silent_peer_is_given_up_after_the_configured_retransmissions() {
    let mut solo = ten_outstanding(&Config { retries: 3, ..plain() });
    let outcomes: Vec<_> = std::iter::from_fn(|| {
        solo.sent();
        solo.next_timeout().map(|timeout| timeout.1)
    })
    .collect();
    let end = Progress::TIMED_OUT | Progress::CLOSED;
    assert_eq!(outcomes, [Progress::NONE, Progress::NONE, Progress::NONE, end]);
}

#[test]
fn a_user_timeout_gives_up_by_time() {
    let mut solo = ten_outstanding(&Config { user_timeout: Some(1_000 * MILLI), ..plain() });
    let waits = std::iter::from_fn(|| {
        solo.sent();
        solo.next_timeout().map(|(waited, progress)| (waited.as_millis(), progress))
    });
    // One second after the first time-out, though the next would come later.
    let end = Progress::TIMED_OUT | Progress::CLOSED;
    let expected = [(210, Progress::NONE), (420, Progress::NONE), (580, end)];
    assert_eq!(waits.collect::<Vec<_>>(), expected);
}

// RFC 9293 SHLD-31; RFC 5681 §3.2; RFC 2018 §4; RFC 6582 §5.
#[test]
fn text_out_of_order_is_answered_at_once_and_reported() {
    let mut solo = Solo::established(&with_sack());
    solo.arrive(text(THEIRS + 100, &[2; 100])).unwrap();
    let sent = solo.sent();
    let blocks: Vec<_> = sent[0].header.options.sack.iter().map(|(s, e)| (s.raw(), e.raw())).collect();
    assert_eq!((sent[0].header.ack.raw(), blocks), (THEIRS, vec![(THEIRS + 100, THEIRS + 200)]));
    // What fills the gap is acknowledged at once, and nothing is left to report.
    solo.arrive(text(THEIRS, &[1; 100])).unwrap();
    let sent = solo.sent();
    assert_eq!((sent[0].header.ack.raw(), sent[0].header.options.sack.is_empty()), (THEIRS + 200, true));
    // But for what counts such segments.
    assert_eq!(solo.connection.memory(), size_of::<silk_tcp::Connection>() + 72);
}

#[test]
fn a_peer_without_sack_gets_a_duplicate_for_each_segment_of_a_batch() {
    let mut solo = Solo::established(&plain());
    for n in 1..=3 {
        solo.arrive(text(THEIRS + 100 * n, &[2; 100])).unwrap();
    }
    assert_eq!(solo.acks_sent(), [THEIRS; 3]);
    // They are sent before text and without it; what was received in order is acknowledged first.
    solo.write(500);
    solo.arrive(text(THEIRS, &[2; 50])).unwrap();
    solo.arrive(text(THEIRS + 600, &[2; 100])).unwrap();
    let sent: Vec<_> = solo.sent().iter().map(|t| (t.header.ack.raw() - THEIRS, t.len)).collect();
    assert_eq!(sent, [(50, 0), (50, 0), (50, 500)]);
    let mut solo = Solo::established(&with_sack());
    for n in 1..=3 {
        solo.arrive(text(THEIRS + 100 * n, &[2; 100])).unwrap();
    }
    assert_eq!(solo.acks_sent(), [THEIRS]);
}

/// What acknowledgements that are sent now report, each with its blocks.
fn reported(solo: &mut Solo) -> Vec<Vec<(u32, u32)>> {
    let blocks = |sent: &Transmit| {
        sent.header.options.sack.iter().map(|(s, e)| (s.raw() - THEIRS, e.raw() - THEIRS)).collect()
    };
    solo.sent().iter().map(blocks).collect()
}

// RFC 2018 §4: a peer that is not told of a block takes it for lost.
#[test]
fn of_a_batch_with_more_gaps_than_an_acknowledgement_tells_of_nothing_is_left_out() {
    let mut solo = Solo::established(&with_sack());
    for n in [2, 4, 6, 8, 10, 12, 14] {
        solo.arrive(text(THEIRS + 100 * n, &[2; 100])).unwrap();
    }
    let [first, second] = reported(&mut solo).try_into().unwrap();
    assert_eq!(first, [(800, 900), (600, 700), (400, 500), (200, 300)]);
    assert_eq!(second, [(1400, 1500), (1200, 1300), (1000, 1100), (800, 900)]);
    let mut solo = Solo::established(&Config { sack: true, ..with_timestamps() });
    for n in [2, 4, 6, 8, 10, 12, 14] {
        solo.arrive(stamped(text(THEIRS + 100 * n, &[2; 100]), 101)).unwrap();
    }
    assert_eq!(reported(&mut solo).iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3]);
}

// RFC 2018 §4.
#[test]
fn a_peer_that_has_not_permitted_blocks_is_sent_none() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS + 200, &[2; 100])).unwrap();
    assert_eq!(reported(&mut solo), [[]]);
}

// RFC 2883 §4.
#[test]
fn text_that_waits_and_comes_again_is_reported_within_its_block() {
    let mut solo = Solo::established(&with_sack());
    for n in [2, 3, 6] {
        solo.arrive(text(THEIRS + 100 * n, &[2; 100])).unwrap();
    }
    assert_eq!(reported(&mut solo), [[(600, 700), (200, 400)]]);
    solo.arrive(text(THEIRS + 300, &[2; 100])).unwrap();
    assert_eq!(reported(&mut solo), [[(300, 400), (200, 400), (600, 700)]]);
}

#[test]
fn text_received_twice_is_reported_once() {
    let mut solo = Solo::established(&with_sack());
    solo.arrive(text(THEIRS, &[1; 100])).unwrap();
    let _ = solo.arrive(text(THEIRS, &[1; 100]));
    let sent = solo.sent();
    let blocks: Vec<_> = sent[0].header.options.sack.iter().map(|(s, e)| (s.raw(), e.raw())).collect();
    assert_eq!(blocks, [(THEIRS, THEIRS + 100)]);
    let _ = solo.arrive(Segment { window: 5, ..text(THEIRS + 100, b"x") });
    solo.after(50 * MILLI);
    assert!(solo.sent()[0].header.options.sack.is_empty());
}

#[test]
fn a_report_of_text_received_twice_is_no_sign_of_loss() {
    let mut solo = ten_outstanding(&with_sack());
    solo.after(10 * MILLI);
    for n in 1..6 {
        solo.arrive(sacked(ack(segment(n)), &[(OURS, segment(n))])).unwrap();
    }
    assert_eq!((solo.connection.info().fast_recoveries, solo.connection.info().sacked), (0, 0));
}

#[test]
fn a_late_segment_reordered_by_two_is_not_taken_for_lost() {
    let mut solo = ten_outstanding(&with_timestamps());
    for _ in 0..2 {
        solo.arrive(stamped(ack(OURS), 100)).unwrap();
    }
    solo.arrive(stamped(ack(segment(3)), 100)).unwrap();
    assert_eq!((solo.text_sent(), solo.connection.info().fast_recoveries), (vec![], 0));
}
