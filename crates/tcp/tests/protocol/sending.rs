//! When text leaves, and how: RFC 9293 §3.7 and §3.8.6, RFC 896, RFC 5681 §4.

use std::time::Duration;

use silk_tcp::{Algorithm, Config, Cork, Flags, Options, Progress, Segment, SeqNumber};

use crate::buffers::Count;
use crate::solo::{OURS, Solo, THEIRS, ack, plain, stamped, text, with_sack, with_timestamps};

const MILLI: Duration = Duration::from_millis(1);

fn nodelay() -> Config {
    Config { nodelay: true, ..plain() }
}

// RFC 9293 MUST-61, SHLD-27, SHLD-28.
#[test]
fn text_is_cut_into_full_segments_and_the_last_is_pushed() {
    let mut solo = Solo::established(&plain());
    solo.write(2_500);
    let sent: Vec<_> =
        solo.sent().iter().map(|t| (t.offset, t.len, t.header.flags.contains(Flags::PSH))).collect();
    assert_eq!(sent, [(0, 1_000, false), (1_000, 1_000, false), (2_000, 500, true)]);
}

#[test]
fn offload_takes_it_in_one_piece_of_whole_segments() {
    let mut solo = Solo::established(&plain());
    solo.offload = 4_500;
    solo.write(9_700);
    let sent: Vec<_> = solo.sent().iter().map(|t| (t.offset, t.len, t.gso_size)).collect();
    assert_eq!(sent, [(0, 4_000, 1_000), (4_000, 4_000, 1_000), (8_000, 1_700, 1_000)]);
}

#[test]
fn a_transmission_never_exceeds_either_window() {
    let small_window = Segment { window: 3_500, ..ack(OURS) };
    let mut solo = Solo::established(&plain());
    solo.offload = 65_000;
    solo.arrive(small_window).unwrap();
    solo.write(50_000);
    assert_eq!(solo.text_sent(), [(OURS, 3_000)]);
    let mut solo = Solo::established(&Config { initial_window: 4, ..plain() });
    solo.offload = 65_000;
    solo.write(50_000);
    assert_eq!(solo.text_sent(), [(OURS, 4_000)]);
}

#[test]
fn timestamps_and_sack_blocks_make_room_in_the_segment() {
    let mut solo = Solo::established(&Config { sack: true, ..with_timestamps() });
    solo.write(10_000);
    assert_eq!(solo.poll().map(|t| t.len), Some(1_000));
    solo.arrive(stamped(text(THEIRS + 10, b"gap"), 100)).unwrap();
    let transmit = solo.poll().unwrap();
    assert_eq!((transmit.len, transmit.header.options.encoded_len()), (988, 24));
}

// RFC 9293 SHLD-7.
#[test]
fn nagle_holds_a_second_small_segment_until_the_first_is_acknowledged() {
    let mut solo = Solo::established(&plain());
    solo.write(10);
    assert_eq!(solo.text_sent(), [(OURS, 10)]);
    solo.write(20);
    assert_eq!(solo.text_sent(), []);
    solo.arrive(ack(OURS + 10)).unwrap();
    assert_eq!(solo.text_sent(), [(OURS + 10, 20)]);
}

#[test]
fn nagle_does_not_hold_the_end_of_a_large_write() {
    let mut solo = Solo::established(&plain());
    solo.write(3_100);
    assert_eq!(solo.text_sent().last(), Some(&(OURS + 3_000, 100)));
    solo.write(1_200);
    // Full segments go; what is left waits for the small one.
    assert_eq!(solo.text_sent(), [(OURS + 3_100, 1_000)]);
}

#[test]
fn nothing_is_confused_after_gigabytes_of_full_segments() {
    let mut solo = Solo::established(&plain());
    let (mut tx, mut acked) = (Count(0), OURS);
    // Three quarters of the way around the circle.
    for _ in 0..60_000 {
        tx.0 = 50_000;
        while let Some(transmit) = solo.connection.poll_transmit(solo.now, &tx, &solo.rx, 65_000) {
            acked = acked.wrapping_add(transmit.len as u32);
            let seg = Segment { window: 60_000, ..ack(acked) };
            solo.connection.on_segment(solo.now, &seg, &mut tx, &mut solo.rx).unwrap();
        }
    }
    assert!(acked > 0xB000_0000);
    tx.0 = 10;
    let small = solo.connection.poll_transmit(solo.now, &tx, &solo.rx, 65_000);
    assert_eq!(small.map(|transmit| transmit.len), Some(10));
    // Fast retransmit still works (its recovery point was never moved by a loss).
    let acked_small = acked.wrapping_add(10);
    solo.connection
        .on_segment(solo.now, &Segment { window: 60_000, ..ack(acked_small) }, &mut tx, &mut solo.rx)
        .unwrap();
    tx.0 = 5_000;
    while solo.connection.poll_transmit(solo.now, &tx, &solo.rx, 0).is_some() {}
    for _ in 0..3 {
        let duplicate = Segment { window: 60_000, ..ack(acked_small) };
        solo.connection.on_segment(solo.now, &duplicate, &mut tx, &mut solo.rx).unwrap();
    }
    assert_eq!(solo.connection.info().fast_recoveries, 1);
}

// RFC 9293 MUST-17.
#[test]
fn without_nagle_every_write_leaves() {
    let mut solo = Solo::established(&nodelay());
    for n in 0..3 {
        solo.write(10);
        assert_eq!(solo.text_sent(), [(OURS + 10 * n, 10)]);
    }
    let mut later = Solo::established(&plain());
    later.write(10);
    later.sent();
    later.write(10);
    later.connection.set_nodelay(true);
    assert_eq!(later.text_sent(), [(OURS + 10, 10)]);
}

#[test]
fn a_cork_holds_small_segments_until_it_is_pulled() {
    let mut solo = Solo::established(&nodelay());
    solo.connection.set_cork(Cork::Tight);
    solo.write(300);
    assert_eq!(solo.text_sent(), []);
    solo.write(900);
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    solo.connection.set_cork(Cork::Out);
    assert_eq!(solo.text_sent(), [(OURS + 1_000, 200)]);
}

#[test]
fn a_cork_holds_for_200_milliseconds_at_most() {
    let mut solo = Solo::established(&nodelay());
    solo.connection.set_cork(Cork::Tight);
    solo.write(300);
    assert_eq!(solo.text_sent(), []);
    assert_eq!(solo.next_timeout(), Some((200 * MILLI, Progress::NONE)));
    assert_eq!(solo.text_sent(), [(OURS, 300)]);
    solo.arrive(ack(OURS + 300)).unwrap();
    solo.write(100);
    assert_eq!(solo.text_sent(), []);
    assert_eq!(solo.next_timeout(), Some((200 * MILLI, Progress::NONE)));
    assert_eq!(solo.text_sent(), [(OURS + 300, 100)]);
}

#[test]
fn a_loose_cork_holds_until_what_is_outstanding_is_acknowledged() {
    let mut solo = Solo::established(&nodelay());
    solo.connection.set_cork(Cork::Loose);
    solo.write(1_300);
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    solo.arrive(ack(OURS + 1_000)).unwrap();
    assert_eq!(solo.text_sent(), [(OURS + 1_000, 300)]);
    // What is written later waits anew, where nothing is outstanding for 200 ms.
    solo.arrive(ack(OURS + 1_300)).unwrap();
    solo.write(100);
    assert_eq!(solo.text_sent(), []);
    assert_eq!(solo.next_timeout(), Some((200 * MILLI, Progress::NONE)));
    assert_eq!(solo.text_sent(), [(OURS + 1_300, 100)]);
    // One that is tight holds on.
    solo.connection.set_cork(Cork::Tight);
    solo.write(1_300);
    assert_eq!(solo.text_sent(), [(OURS + 1_400, 1_000)]);
    solo.arrive(ack(OURS + 2_400)).unwrap();
    assert_eq!(solo.text_sent(), []);
}

#[test]
fn a_cork_does_not_hold_the_end_of_the_stream() {
    let mut solo = Solo::established(&nodelay());
    solo.connection.set_cork(Cork::Tight);
    solo.write(300);
    solo.connection.shutdown_write();
    assert_eq!(solo.text_sent(), [(OURS, 300)]);
}

#[test]
fn text_carries_the_acknowledgement() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS, b"GET")).unwrap();
    solo.write(500);
    let sent = solo.sent();
    assert_eq!((sent.len(), sent[0].header.ack.raw()), (1, THEIRS + 3));
    assert_eq!(solo.after(100 * MILLI), Progress::NONE);
    assert_eq!(solo.sent(), []);
}

// RFC 9293 MUST-40, MUST-58, SHLD-18, SHLD-19; RFC 5681 §4.2.
#[test]
fn every_second_segment_is_acknowledged_and_the_first_after_a_delay() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS, &[0; 1_000])).unwrap();
    assert_eq!(solo.sent(), []);
    solo.arrive(text(THEIRS + 1_000, &[0; 1_000])).unwrap();
    assert_eq!(solo.acks_sent(), [THEIRS + 2_000]);
    solo.arrive(text(THEIRS + 2_000, &[0; 1_000])).unwrap();
    assert_eq!(solo.sent(), []);
    assert_eq!(solo.next_timeout(), Some((40 * MILLI, Progress::NONE)));
    assert_eq!(solo.acks_sent(), [THEIRS + 3_000]);
    assert_eq!(solo.next_timeout(), None);
}

/// The program has read what there is.
fn reads(solo: &mut Solo) {
    solo.rx.read();
}

#[test]
fn a_short_segment_is_acknowledged_once_the_program_has_read_it_and_says_nothing() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS, b"head")).unwrap();
    reads(&mut solo);
    assert_eq!(solo.next_timeout(), Some((MILLI, Progress::NONE)));
    assert_eq!(solo.acks_sent(), [THEIRS + 4]);
    // Who talks so goes on so.
    solo.arrive(text(THEIRS + 4, b"body")).unwrap();
    assert_eq!(solo.acks_sent(), [THEIRS + 8]);
}

#[test]
fn what_the_program_has_not_read_is_acknowledged_as_late_as_anything() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS, b"GET")).unwrap();
    assert_eq!(solo.next_timeout(), Some((MILLI, Progress::NONE)));
    assert_eq!(solo.acks_sent(), []);
    assert_eq!(solo.next_timeout(), Some((39 * MILLI, Progress::NONE)));
    assert_eq!(solo.acks_sent(), [THEIRS + 3]);
}

#[test]
fn an_answer_that_nobody_has_looked_at_is_waited_for() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS, b"GET")).unwrap();
    reads(&mut solo);
    solo.tx.1 = true;
    assert_eq!(solo.next_timeout(), Some((MILLI, Progress::NONE)));
    assert_eq!(solo.acks_sent(), []);
    solo.write(100);
    assert_eq!(solo.acks_sent(), [THEIRS + 3]);
}

#[test]
fn who_is_used_to_answers_waits_for_them() {
    let mut solo = Solo::established(&plain());
    for n in 0..4 {
        solo.arrive(Segment { ack: SeqNumber::new(OURS + 2 * n), ..text(THEIRS + 3 * n, b"ask") }).unwrap();
        reads(&mut solo);
        solo.write(2);
        assert_eq!(solo.acks_sent(), [THEIRS + 3 * n + 3]);
    }
    solo.arrive(Segment { ack: SeqNumber::new(OURS + 8), ..text(THEIRS + 12, b"ask") }).unwrap();
    reads(&mut solo);
    assert_eq!(solo.next_timeout(), Some((40 * MILLI, Progress::NONE)));
    assert_eq!(solo.acks_sent(), [THEIRS + 15]);
    // Until one had to go alone.
    solo.arrive(Segment { ack: SeqNumber::new(OURS + 8), ..text(THEIRS + 15, b"ask") }).unwrap();
    assert_eq!(solo.acks_sent(), [THEIRS + 18]);
    // And again once an answer follows so soon that it would have been company.
    solo.write(2);
    solo.sent();
    solo.arrive(Segment { ack: SeqNumber::new(OURS + 10), ..text(THEIRS + 18, b"ask") }).unwrap();
    assert_eq!(solo.acks_sent(), []);
}

// RFC 9293 SHLD-19.
#[test]
fn two_full_segments_that_arrive_as_one_are_acknowledged_at_once_also_with_timestamps() {
    let mut solo = Solo::established(&with_timestamps());
    solo.arrive(stamped(text(THEIRS, &[0; 1_000]), 101)).unwrap();
    assert_eq!(solo.acks_sent(), []);
    solo.arrive(stamped(text(THEIRS + 1_000, &[0; 1_000]), 101)).unwrap();
    assert_eq!(solo.acks_sent(), [THEIRS + 2_000]);
    solo.arrive(stamped(text(THEIRS + 2_000, &[0; 2_000]), 101)).unwrap();
    assert_eq!(solo.acks_sent(), [THEIRS + 4_000]);
    assert_eq!(solo.connection.info().largest_received, 1_000);
}

#[test]
fn a_quick_acknowledgement_waits_for_no_company() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS, b"a")).unwrap();
    assert_eq!(solo.acks_sent(), []);
    solo.connection.set_quickack(true);
    assert_eq!(solo.acks_sent(), [THEIRS + 1]);
    solo.arrive(text(THEIRS + 1, b"b")).unwrap();
    assert_eq!(solo.acks_sent(), [THEIRS + 2]);
    solo.connection.set_quickack(false);
    solo.arrive(text(THEIRS + 2, b"c")).unwrap();
    assert_eq!(solo.acks_sent(), []);
}

#[test]
fn the_window_grows_with_acknowledgements_only_while_it_is_used() {
    let mut solo = Solo::established(&nodelay());
    let before = solo.connection.info().cwnd;
    for n in 1..20 {
        solo.write(100);
        solo.sent();
        solo.arrive(ack(OURS + 100 * n)).unwrap();
    }
    assert_eq!(solo.connection.info().cwnd, before);
    solo.write(100_000);
    solo.sent();
    solo.arrive(ack(OURS + 1_900 + 2_000)).unwrap();
    assert_eq!(solo.connection.info().cwnd, before + 2_000);
}

// RFC 5681 §4.1.
#[test]
fn after_an_idle_time_the_window_starts_again() {
    let mut solo = Solo::established(&Config { receive_window: 60_000, ..plain() });
    solo.offload = 65_000;
    let mut acked = OURS;
    for _ in 0..3 {
        solo.write(20_000);
        while let Some(transmit) = solo.poll() {
            acked += transmit.len as u32;
            solo.arrive(Segment { window: 60_000, ..ack(acked) }).unwrap();
        }
    }
    assert!(solo.connection.info().cwnd > 15_000);
    solo.after(Duration::from_secs(5));
    solo.write(50_000);
    assert_eq!(solo.text_sent(), [(acked, 10_000)]);
}

// RFC 1191 §3.
#[test]
fn a_smaller_path_mtu_sends_again_in_smaller_pieces() {
    let mut solo = Solo::established(&plain());
    solo.write(3_000);
    solo.sent();
    let cwnd = solo.connection.info().cwnd;
    solo.connection.on_packet_too_big(solo.now, 500);
    assert_eq!(solo.text_sent()[..2], [(OURS, 500), (OURS + 500, 500)]);
    assert_eq!((solo.connection.info().cwnd, solo.connection.info().timeouts), (cwnd, 0));
    solo.connection.on_packet_too_big(solo.now, 9_000);
    assert_eq!(solo.connection.info().mss, 500, "nobody can say that it takes more");
}

// RFC 5681 §3.1.
#[test]
fn a_path_that_takes_larger_segments_than_the_window_gets_one_at_a_time() {
    for congestion in [Algorithm::Cubic, Algorithm::Reno] {
        let mut solo = Solo::established(&Config { congestion, ..plain() });
        solo.connection.on_packet_too_big(solo.now, 500);
        solo.write(400);
        solo.sent();
        // A time-out leaves a window of one segment, and the acknowledgement adds what it is for.
        solo.next_timeout();
        solo.sent();
        solo.arrive(ack(OURS + 400)).unwrap();
        solo.connection.set_link_mtu(solo.now, 1_000);
        let info = solo.connection.info();
        assert!(info.cwnd < 1_000 && info.mss == 1_000, "{info:?}");
        solo.write(1_500);
        assert_eq!(solo.text_sent(), [(OURS + 400, 1_000)], "{congestion:?}");
    }
}

// RFC 9293 MUST-65; RFC 2018 §2; RFC 7323 §3.2.
#[test]
fn options_of_ordinary_segments_are_only_the_agreed_ones() {
    let mut solo = Solo::established(&with_sack());
    solo.write(10);
    assert_eq!(solo.sent()[0].header.options, Options::default());
}
