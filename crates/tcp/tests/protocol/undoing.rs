//! Recoveries that were not needed: RFC 3522, RFC 3708, RFC 4015, RFC 5682.

use std::time::Duration;

use silk_tcp::{Algorithm, Config, Ecn, Flags, Info, Options, Repair, Segment};

use crate::link::Weather;
use crate::pair::{Pair, pattern};
use crate::solo::{OURS, Solo, ack, plain, sacked, with_sack};

const MILLI: Duration = Duration::from_millis(1);

/// SACK and timestamps, so that 988 octets are a full segment.
fn both() -> Config {
    Config { timestamps: true, ..with_sack() }
}

const TEXT: u32 = 988;

/// Ten full segments are outstanding; the timestamp that they carry.
fn ten_outstanding() -> (Solo, u32) {
    let mut solo = Solo::established(&both());
    solo.write(10 * TEXT as usize);
    let sent = solo.sent();
    assert_eq!(sent.len(), 10);
    (solo, stamp(sent[0].header.options))
}

fn stamp(options: Options) -> u32 {
    options.timestamp.expect("timestamps were agreed").0
}

/// The segment with this echo of our clock.
fn echoing(seg: Segment, echo: u32) -> Segment {
    Segment { options: Options { timestamp: Some((100, echo)), ..seg.options }, ..seg }
}

fn windows(info: &Info) -> (u32, u32) {
    (info.cwnd, info.ssthresh)
}

/// The time-out comes, and the first segment is sent again; its timestamp.
fn time_out(solo: &mut Solo) -> u32 {
    while solo.connection.info().timeouts == 0 {
        solo.next_timeout().expect("a deadline");
        if solo.connection.info().timeouts == 0 {
            solo.sent();
        }
    }
    let again = solo.sent();
    assert_eq!((again.len(), again[0].header.seq.raw()), (1, OURS));
    stamp(again[0].header.options)
}

#[test]
fn a_time_out_that_was_only_a_delay_is_undone() {
    let (mut solo, first) = ten_outstanding();
    let before = windows(&solo.connection.info());
    time_out(&mut solo);
    assert!(windows(&solo.connection.info()).0 < before.0);
    solo.now += 10 * MILLI;
    solo.arrive(echoing(ack(OURS + TEXT), first)).unwrap();
    let info = solo.connection.info();
    assert_eq!((info.undone, info.repair, info.lost, info.backoff), (1, Repair::Open, 0, 0));
    assert!(info.cwnd >= before.0 && info.ssthresh == before.1, "{info:?}");
    // Nothing more is sent again, and the time-out is the longer one until a round trip is measured.
    assert_eq!(info.rto, 420 * MILLI);
    assert_eq!(solo.text_sent(), []);
}

#[test]
fn a_time_out_that_was_needed_stays() {
    let (mut solo, _) = ten_outstanding();
    let again = time_out(&mut solo);
    solo.now += 10 * MILLI;
    solo.arrive(echoing(ack(OURS + TEXT), again)).unwrap();
    let info = solo.connection.info();
    assert_eq!((info.undone, info.repair), (0, Repair::Loss));
    assert!(info.cwnd <= 3 * TEXT, "{info:?}");
}

/// Fast recovery has begun and the first segment was sent again; its timestamp.
fn recover(solo: &mut Solo, first: u32) -> u32 {
    solo.now += 20 * MILLI;
    let held = [(OURS + TEXT, OURS + 5 * TEXT)];
    solo.arrive(echoing(sacked(ack(OURS), &held), first)).unwrap();
    while solo.connection.info().fast_recoveries == 0 {
        solo.next_timeout().expect("a deadline");
    }
    let again = solo.sent();
    assert_eq!(again[0].header.seq.raw(), OURS);
    stamp(again[0].header.options)
}

#[test]
fn a_segment_that_was_only_late_costs_no_window() {
    let (mut solo, first) = ten_outstanding();
    let before = windows(&solo.connection.info());
    recover(&mut solo, first);
    assert!(windows(&solo.connection.info()).1 < before.1);
    solo.now += 2 * MILLI;
    solo.arrive(echoing(ack(OURS + 5 * TEXT), first)).unwrap();
    let info = solo.connection.info();
    assert_eq!((info.undone, info.repair, windows(&info)), (1, Repair::Open, before));
}

#[test]
fn a_segment_that_was_lost_costs_window() {
    let (mut solo, first) = ten_outstanding();
    let before = windows(&solo.connection.info());
    let again = recover(&mut solo, first);
    solo.now += 20 * MILLI;
    solo.arrive(echoing(ack(OURS + 10 * TEXT), again)).unwrap();
    let info = solo.connection.info();
    assert_eq!((info.undone, info.repair), (0, Repair::Open));
    assert!(info.ssthresh < before.1 && info.cwnd < before.0, "{info:?}");
}

#[test]
fn a_network_that_only_reorders_costs_nothing_in_the_end() {
    let reordering = Weather { reordering: 50, delay: 20 * MILLI, ..Weather::FAIR };
    let undone: u32 = (1..20)
        .map(|seed| {
            let mut pair = Pair::new(&Config::default(), reordering, seed);
            let content = pattern(300_000, 9);
            let expected: Vec<u8> = content.iter().copied().collect();
            pair.client.program.to_write = content;
            pair.drive_until(Duration::from_secs(120), |pair| {
                pair.server.program.received.len() == expected.len()
            });
            assert!(pair.server.program.received == expected, "{}", pair.describe());
            let info = pair.client.connection().info();
            assert!(info.undone <= info.fast_recoveries + info.timeouts);
            info.undone
        })
        .sum();
    assert!(undone > 0, "nothing was ever undone");
}

/// Ten segments of 1 000 octets are outstanding to a peer without timestamps, and the first was sent
/// again after a time-out; how the windows were before.
fn timed_out(config: &Config) -> (Solo, (u32, u32)) {
    let mut solo = Solo::established(config);
    solo.write(10_000);
    assert_eq!(solo.sent().len(), 10);
    let before = windows(&solo.connection.info());
    while solo.connection.info().timeouts == 0 {
        solo.sent();
        solo.next_timeout().expect("a deadline");
    }
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    (solo, before)
}

// RFC 5682 §2.1, §3.1.
#[test]
fn without_timestamps_new_text_shows_that_a_time_out_was_only_a_delay() {
    for config in [plain(), with_sack()] {
        let (mut solo, before) = timed_out(&config);
        solo.write(5_000);
        solo.arrive(ack(OURS + 1_000)).unwrap();
        assert_eq!(solo.text_sent(), [(OURS + 10_000, 1_000), (OURS + 11_000, 1_000)]);
        solo.arrive(ack(OURS + 2_000)).unwrap();
        let info = solo.connection.info();
        assert_eq!((info.undone, info.repair, info.lost), (1, Repair::Open, 0));
        assert!(info.cwnd >= before.0 && info.ssthresh == before.1, "{info:?}");
        assert!(solo.text_sent().iter().all(|(seq, _)| *seq >= OURS + 12_000), "nothing is sent again");
    }
}

#[test]
fn without_timestamps_a_time_out_that_was_needed_stays() {
    let (mut solo, _) = timed_out(&with_sack());
    solo.write(5_000);
    solo.arrive(ack(OURS + 1_000)).unwrap();
    assert_eq!(solo.text_sent().len(), 2);
    solo.arrive(sacked(ack(OURS + 1_000), &[(OURS + 10_000, OURS + 11_000)])).unwrap();
    assert_eq!(solo.text_sent()[0], (OURS + 1_000, 1_000));
    assert_eq!((solo.connection.info().undone, solo.connection.info().repair), (0, Repair::Loss));
    let (mut old, _) = timed_out(&plain());
    old.write(5_000);
    old.arrive(ack(OURS + 1_000)).unwrap();
    assert_eq!(old.text_sent().len(), 2);
    old.arrive(ack(OURS + 1_000)).unwrap();
    assert_eq!(old.text_sent()[0], (OURS + 1_000, 1_000));
    assert_eq!(old.connection.info().undone, 0);
}

#[test]
fn where_there_is_no_new_text_what_is_lost_is_sent_again_at_once() {
    let (mut solo, _) = timed_out(&with_sack());
    solo.arrive(ack(OURS + 1_000)).unwrap();
    assert_eq!(solo.text_sent(), [(OURS + 1_000, 1_000), (OURS + 2_000, 1_000)]);
}

/// Fast recovery has begun and the first of ten segments was sent again, without timestamps; how the
/// windows were before.
fn recovering() -> (Solo, (u32, u32)) {
    let mut solo = Solo::established(&with_sack());
    solo.write(10_000);
    assert_eq!(solo.sent().len(), 10);
    let before = windows(&solo.connection.info());
    solo.now += 20 * MILLI;
    solo.arrive(sacked(ack(OURS), &[(OURS + 1_000, OURS + 6_000)])).unwrap();
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    solo.now += 2 * MILLI;
    solo.arrive(ack(OURS + 10_000)).unwrap();
    assert!(windows(&solo.connection.info()).1 < before.1);
    (solo, before)
}

// RFC 3708 §2.
#[test]
fn a_peer_that_had_all_that_was_sent_again_gives_the_window_back() {
    let (mut solo, before) = recovering();
    solo.now += 18 * MILLI;
    solo.arrive(sacked(ack(OURS + 10_000), &[(OURS, OURS + 1_000)])).unwrap();
    let info = solo.connection.info();
    assert_eq!((info.undone, windows(&info)), (1, before));
}

#[test]
fn what_is_undone_does_not_bring_back_an_algorithm_that_was_changed_meanwhile() {
    let (mut solo, _) = recovering();
    solo.connection.set_congestion(Algorithm::Reno);
    let windows = windows(&solo.connection.info());
    solo.now += 18 * MILLI;
    solo.arrive(sacked(ack(OURS + 10_000), &[(OURS, OURS + 1_000)])).unwrap();
    let info = solo.connection.info();
    assert_eq!((info.algorithm, info.cwnd, info.ssthresh), (Algorithm::Reno, windows.0, windows.1));
}

// RFC 9438 §4.9.2.
#[test]
fn a_window_that_has_outgrown_what_it_was_is_not_set_back() {
    let mut solo = Solo::established(&Config { initial_window: 2, ..with_sack() });
    solo.write(20_000);
    assert_eq!(solo.sent().len(), 2);
    let before = windows(&solo.connection.info()).0;
    solo.after(20 * MILLI);
    solo.arrive(sacked(ack(OURS), &[(OURS + 1_000, OURS + 2_000)])).unwrap();
    assert_eq!(solo.text_sent(), [(OURS + 2_000, 1_000)]);
    solo.next_timeout();
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    solo.after(MILLI);
    solo.arrive(sacked(ack(OURS), &[(OURS + 1_000, OURS + 3_000)])).unwrap();
    assert_eq!(solo.text_sent(), [(OURS + 3_000, 1_000)]);
    // The recovery is over. It left two segments, which is the least, and what was sent in it opens that.
    solo.arrive(ack(OURS + 3_000)).unwrap();
    solo.sent();
    solo.arrive(ack(OURS + 4_000)).unwrap();
    let grown = windows(&solo.connection.info()).0;
    assert!(grown > before, "{grown} after {before}");
    solo.arrive(sacked(ack(OURS + 4_000), &[(OURS, OURS + 1_000)])).unwrap();
    let info = solo.connection.info();
    assert_eq!((info.undone, windows(&info).0), (1, grown));
}

#[test]
fn a_report_of_something_else_or_too_late_gives_nothing_back() {
    let (mut solo, _) = recovering();
    solo.arrive(sacked(ack(OURS + 10_000), &[(OURS - 500, OURS + 500)])).unwrap();
    assert_eq!(solo.connection.info().undone, 0);
    solo.arrive(sacked(ack(OURS + 10_000), &[(OURS, OURS + 500)])).unwrap();
    assert_eq!(solo.connection.info().undone, 0, "half of it");
    solo.write(1_000);
    solo.sent();
    solo.arrive(ack(OURS + 11_000)).unwrap();
    solo.arrive(sacked(ack(OURS + 11_000), &[(OURS + 500, OURS + 1_000)])).unwrap();
    assert_eq!(solo.connection.info().undone, 0, "a round trip later");
}

#[test]
fn a_recovery_is_not_undone_while_something_that_was_sent_again_may_have_been_needed() {
    for late in [true, false] {
        let (mut solo, first) = ten_outstanding();
        let before = windows(&solo.connection.info());
        solo.now += 20 * MILLI;
        let held = [(OURS + TEXT, OURS + 2 * TEXT), (OURS + 3 * TEXT, OURS + 8 * TEXT)];
        solo.arrive(echoing(sacked(ack(OURS), &held), first)).unwrap();
        let again = solo.sent();
        let places: Vec<_> = again.iter().map(|sent| sent.header.seq.raw()).collect();
        assert_eq!(places, [OURS, OURS + 2 * TEXT]);
        let repaired = stamp(again[1].header.options);
        solo.now += 2 * MILLI;
        // The first of the two was only late.
        solo.arrive(echoing(sacked(ack(OURS + 2 * TEXT), &held[1..]), first)).unwrap();
        assert_eq!(solo.connection.info().undone, 0);
        solo.now += 18 * MILLI;
        solo.arrive(echoing(ack(OURS + 8 * TEXT), if late { first } else { repaired })).unwrap();
        let info = solo.connection.info();
        assert_eq!((info.undone, windows(&info) == before), (u32::from(late), late));
    }
}

#[test]
fn what_a_mark_asked_for_is_not_undone_with_the_recovery_before_it() {
    let mut solo = Solo::established(&Config { ecn: Ecn::Ask, ..with_sack() });
    solo.write(12_000);
    assert_eq!(solo.sent().len(), 10);
    solo.now += 20 * MILLI;
    solo.arrive(sacked(ack(OURS), &[(OURS + 1_000, OURS + 6_000)])).unwrap();
    let sent = [(OURS, 1_000), (OURS + 10_000, 1_000), (OURS + 11_000, 1_000)];
    assert_eq!(solo.text_sent(), sent);
    solo.now += 2 * MILLI;
    solo.arrive(ack(OURS + 10_000)).unwrap();
    let repaired = windows(&solo.connection.info());
    solo.now += 18 * MILLI;
    solo.arrive(Segment { flags: Flags::ACK | Flags::ECE, ..ack(OURS + 11_000) }).unwrap();
    let marked = windows(&solo.connection.info());
    assert!(marked.0 < repaired.0, "{marked:?} after {repaired:?}");
    solo.arrive(sacked(ack(OURS + 11_000), &[(OURS, OURS + 1_000)])).unwrap();
    let info = solo.connection.info();
    assert_eq!((info.undone, windows(&info)), (0, marked));
}

#[test]
fn after_a_time_out_in_a_recovery_what_is_lost_comes_before_new_text() {
    let mut solo = Solo::established(&with_sack());
    solo.write(10_000);
    assert_eq!(solo.sent().len(), 10);
    solo.now += 20 * MILLI;
    solo.arrive(sacked(ack(OURS), &[(OURS + 1_000, OURS + 6_000)])).unwrap();
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    while solo.connection.info().timeouts == 0 {
        assert_eq!(solo.text_sent(), []);
        solo.next_timeout().expect("a deadline");
    }
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    solo.write(5_000);
    solo.now += 20 * MILLI;
    solo.arrive(ack(OURS + 6_000)).unwrap();
    assert_eq!(solo.text_sent(), [(OURS + 6_000, 1_000), (OURS + 7_000, 1_000)]);
    assert_eq!(solo.connection.info().undone, 0);
}
