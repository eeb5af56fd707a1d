//! Tests of loss recovery, RACK and NewReno.

use super::*;

const TIMEOUT: Duration = Duration::from_millis(200);
const MSS: u32 = 1000;
const MILLI: Duration = Duration::from_millis(1);

const fn seq(raw: u32) -> SeqNumber {
    SeqNumber::new(raw)
}

const fn out(una: u32, nxt: u32) -> Outstanding {
    Outstanding { una: seq(una), nxt: seq(nxt), mss: MSS }
}

const fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Octets 1 to 10 001 are outstanding, the n-th segment sent at n ms.
fn ten(sack: bool) -> (Recovery, Outstanding) {
    let mut recovery = Recovery::new(seq(0));
    recovery.agree(sack);
    (0..10).for_each(|n| recovery.sent_new(at(n), seq(1 + MSS * (n as u32 + 1)), MSS));
    (recovery, out(1, 10_001))
}

/// A block of SACK comes at `millis`; answers what RACK found.
fn sack(recovery: &mut Recovery, millis: u64, ranges: &[(u32, u32)], out: Outstanding) -> Detected {
    let mut blocks = SackBlocks::default();
    for (start, end) in ranges {
        blocks.push(seq(*start), seq(*end));
    }
    let _ = recovery.on_sack(at(millis), &blocks, false, out);
    recovery.detect(at(millis), 100 * MILLI, out)
}

fn next(recovery: &Recovery, out: Outstanding) -> Option<(u32, u32)> {
    recovery.next_lost(out).map(|hole| (hole.start.raw(), hole.end.raw()))
}

/// Sends all of the next hole again and answers where it was.
fn send(recovery: &mut Recovery, millis: u64, out: Outstanding) -> Option<(u32, u32)> {
    let hole = recovery.next_lost(out)?;
    recovery.sent_again(at(millis), hole, hole.end, out.una);
    Some((hole.start.raw(), hole.end.raw()))
}

// RFC 6298 §3.
#[test]
fn of_what_the_peer_holds_the_last_that_was_sent_once_is_measured() {
    let (mut recovery, out) = ten(true);
    let arrives = |recovery: &mut Recovery, start, end| {
        let mut blocks = SackBlocks::default();
        blocks.push(seq(start), seq(end));
        recovery.on_sack(at(30), &blocks, false, out).map(|sending| sending.at)
    };
    assert_eq!(arrives(&mut recovery, 4_001, 6_001), Some(at(5)));
    assert_eq!(arrives(&mut recovery, 4_001, 6_001), None, "that is no news");
    let lost = recovery.lost_ever();
    recovery.start_anew(at(30), out);
    assert_eq!(recovery.lost_ever(), lost, "no sign of congestion");
    while send(&mut recovery, 30, out).is_some() {}
    assert_eq!(arrives(&mut recovery, 2_001, 4_001), None, "it was sent twice");
}

#[test]
fn without_sack_the_third_duplicate_starts_fast_retransmit_of_the_first_segment() {
    let (mut recovery, out) = ten(false);
    assert_eq!([(); 3].map(|()| recovery.on_duplicate(out)), [false, false, true]);
    recovery.start_fast(at(50), out);
    assert_eq!(next(&recovery, out), Some((1, 1_001)));
    assert!(recovery.forced());
    assert_eq!(recovery.pipe(out), 6_000);
}

#[test]
fn a_partial_acknowledgement_reveals_the_next_hole() {
    let (mut recovery, first) = ten(false);
    (0..3).for_each(|_| assert!(recovery.on_duplicate(first) || recovery.dupacks < 3));
    recovery.start_fast(at(50), first);
    send(&mut recovery, 50, first);
    assert_eq!(next(&recovery, first), None);
    let partial = out(3_001, 10_001);
    recovery.on_ack(at(100), Echo::NONE, 3_000, partial);
    assert_eq!(next(&recovery, partial), Some((3_001, 4_001)));
    recovery.on_ack(at(100), Echo::NONE, 7_000, out(10_001, 10_001));
    assert!(recovery.is_calm());
}

// RFC 6582 §3.2.
#[test]
fn duplicates_after_a_timeout_do_not_start_another_episode_without_sack() {
    let (mut recovery, first) = ten(false);
    recovery.start_loss(at(50), MILLI, TIMEOUT, first);
    recovery.on_ack(at(60), Echo::NONE, 10_000, out(10_001, 10_001));
    assert_eq!(recovery.phase(), Phase::Open);
    recovery.sent_new(at(60), seq(14_001), 4_000);
    assert!(![(); 4].map(|()| recovery.on_duplicate(out(10_001, 14_001))).contains(&true));
}

// RFC 6675 §4.
#[test]
fn three_segments_held_mean_that_all_before_them_is_lost() {
    let (mut recovery, out) = ten(true);
    sack(&mut recovery, 50, &[(2_001, 3_001)], out);
    sack(&mut recovery, 51, &[(4_001, 5_001)], out);
    assert!(!recovery.is_overdue());
    sack(&mut recovery, 52, &[(6_001, 7_001)], out);
    assert!(recovery.is_overdue());
    recovery.start_fast(at(52), out);
    assert_eq!(send(&mut recovery, 52, out), Some((1, 2_001)));
    // Of ten segments three are held, four lost and two of those sent again.
    assert_eq!(recovery.pipe(out), 5_000);
    assert_eq!(send(&mut recovery, 52, out), Some((3_001, 4_001)));
    assert_eq!(send(&mut recovery, 52, out), Some((5_001, 6_001)));
    assert_eq!(send(&mut recovery, 52, out), None);
}

// RFC 8985 §4.
#[test]
fn one_segment_held_means_loss_after_a_quarter_of_a_round_trip() {
    let (mut recovery, out) = ten(true);
    // The third segment, sent at 2, arrives: a round trip of 40 ms, a window of 10.
    let detected = sack(&mut recovery, 42, &[(2_001, 3_001)], out);
    assert_eq!(detected, Detected { repair_lost: false, again_at: Some(at(51)) });
    recovery.detect(at(50), 100 * MILLI, out);
    assert_eq!(recovery.flight.lost(), 1_000);
    recovery.detect(at(51), 100 * MILLI, out);
    assert_eq!(recovery.flight.lost(), 2_000);
}

#[test]
fn a_timeout_spares_what_was_sent_a_moment_ago() {
    let (mut recovery, first) = ten(true);
    recovery.on_ack(at(20), Echo::NONE, 1_000, out(1_001, 10_001));
    // A round trip of 20 ms: of nine segments those sent until 5 ms are overdue at 25 ms.
    recovery.start_loss(at(25), MILLI, TIMEOUT, out(1_001, first.nxt.raw()));
    assert_eq!(next(&recovery, out(1_001, 10_001)), Some((1_001, 6_001)));
    assert_eq!(recovery.pipe(out(1_001, 10_001)), 4_000);
}

/// (Found by `fuzz/fuzz_targets/tcp_legal.rs`.)
#[test]
fn a_timeout_spares_nothing_that_is_older_than_it_after_one_long_round_trip() {
    let (mut recovery, first) = ten(true);
    recovery.on_ack(at(900_000), Echo::NONE, 1_000, out(1_001, first.nxt.raw()));
    recovery.start_loss(at(900_200), MILLI, TIMEOUT, out(1_001, first.nxt.raw()));
    assert_eq!(recovery.pipe(out(1_001, 10_001)), 0);
}

#[test]
fn after_a_timeout_what_is_held_is_not_sent_again() {
    let (mut recovery, out) = ten(true);
    sack(&mut recovery, 20, &[(2_001, 3_001)], out);
    recovery.start_loss(at(300), MILLI, TIMEOUT, out);
    assert_eq!(recovery.pipe(out), 0);
    assert_eq!(send(&mut recovery, 300, out), Some((1, 2_001)));
    assert_eq!(send(&mut recovery, 300, out), Some((3_001, 10_001)));
}

#[test]
fn a_retransmission_is_lost_when_younger_text_arrives() {
    let (mut recovery, first) = ten(true);
    sack(&mut recovery, 50, &[(1_001, 10_001)], first);
    recovery.start_fast(at(50), first);
    assert_eq!(send(&mut recovery, 50, first), Some((1, 1_001)));
    recovery.sent_new(at(51), seq(11_001), MSS);
    let more = out(1, 11_001);
    let detected = sack(&mut recovery, 95, &[(1_001, 11_001)], more);
    assert_eq!(detected, Detected { repair_lost: true, again_at: None });
    assert_eq!(next(&recovery, more), Some((1, 1_001)));
}

// RFC 8985 §4, §7.2, §7.3.
#[test]
fn a_probe_is_waited_for_only_with_sack_and_while_nothing_is_wrong() {
    let (plain, first) = ten(false);
    assert_eq!(plain.probe_timeout(10_000, first), None);
    let (mut recovery, first) = ten(true);
    assert_eq!(recovery.probe_timeout(10_000, first), Some(20_000));
    recovery.tail.sent(seq(10_001), true);
    assert_eq!(recovery.probe_timeout(10_000, first), None);
    let (mut recovery, first) = ten(true);
    sack(&mut recovery, 50, &[(1_001, 2_001)], first);
    assert_eq!(recovery.probe_timeout(10_000, first), None);
}

#[test]
fn a_report_counts_also_where_half_the_circle_was_acknowledged_since_the_last() {
    let (mut recovery, first) = ten(true);
    let report = |recovery: &mut Recovery, out| {
        let _ = recovery.on_sack(at(20), &SackBlocks::default(), true, out);
        recovery.rack.reordering_window(false, Duration::from_secs(1))
    };
    report(&mut recovery, first);
    recovery.on_ack(at(40), Echo::NONE, 10_000, out(10_001, 10_001));
    // None of these brings a block: they are predicted.
    let mut una = 10_001;
    for _ in 0..3 {
        una += 1 << 30;
        recovery.sent_new(at(50), seq(una), MSS);
        recovery.on_ack(at(90), Echo::NONE, 1 << 30, out(una, una));
    }
    // Three quarters of the least round trip of 31 ms.
    assert_eq!(report(&mut recovery, out(una, una)), Duration::from_micros(23_250));
}
