//! What a connection tells of where its time went, and how fast text arrived.

use std::time::Duration;

use silk_instant::Instant;
use silk_tcp::{Config, Ecn, Flags, Segment};

use crate::growing::{BOTTLENECK, config};
use crate::pair::{Pair, pattern};
use crate::solo::{OURS, Solo, ack, plain};

const MILLI: Duration = Duration::from_millis(1);

/// Milliseconds: busy, for the peer, for room.
fn waited(solo: &Solo) -> [u128; 3] {
    let (waits, now) = (solo.connection.info().waits, solo.now);
    [waits.busy(now), waits.for_the_peer(now), waits.for_room(now)].map(|time| time.as_millis())
}

#[test]
fn a_connection_is_busy_from_its_first_text_to_the_last_acknowledgement() {
    let mut solo = Solo::established(&plain());
    solo.after(5 * MILLI);
    assert_eq!(waited(&solo), [0, 0, 0]);
    for round in 1..=3 {
        solo.write(1_500);
        assert_eq!(solo.sent().len(), 2);
        solo.after(4 * MILLI);
        assert_eq!(waited(&solo)[0], (round - 1) * 10 + 4, "it is still running");
        let begins = OURS + 1_500 * (round as u32 - 1);
        solo.arrive(ack(begins + 1_000)).unwrap();
        solo.after(6 * MILLI);
        solo.arrive(ack(begins + 1_500)).unwrap();
        solo.sent();
        solo.after(30 * MILLI);
        assert_eq!(waited(&solo), [round * 10, 0, 0]);
    }
}

#[test]
fn time_in_which_the_peers_window_is_full_is_the_peers() {
    let mut solo = Solo::established(&plain());
    solo.arrive(Segment { window: 3_000, ..ack(OURS) }).unwrap();
    solo.write(8_000);
    assert_eq!(solo.sent().len(), 3);
    solo.after(7 * MILLI);
    assert_eq!(waited(&solo), [7, 7, 0]);
    // All that was sent is held; the program has not read.
    solo.arrive(Segment { window: 0, ..ack(OURS + 3_000) }).unwrap();
    assert_eq!(solo.sent().len(), 0);
    solo.after(5 * MILLI);
    assert_eq!(waited(&solo), [12, 12, 0]);
    solo.arrive(Segment { window: 20_000, ..ack(OURS + 3_000) }).unwrap();
    assert_eq!(solo.sent().len(), 5);
    solo.after(10 * MILLI);
    solo.arrive(ack(OURS + 8_000)).unwrap();
    solo.after(10 * MILLI);
    assert_eq!(waited(&solo), [22, 12, 0]);
}

#[test]
fn time_in_which_the_congestion_window_is_full_is_nobodys() {
    let mut solo = Solo::established(&plain());
    solo.write(15_000);
    assert_eq!(solo.sent().len(), 10);
    solo.after(9 * MILLI);
    assert_eq!(waited(&solo), [9, 0, 0]);
}

#[test]
fn time_in_which_the_program_has_no_room_to_write_is_the_buffers() {
    let mut solo = Solo::established(&plain());
    solo.tx.2 = true;
    solo.write(10_000);
    solo.sent();
    solo.after(3 * MILLI);
    assert_eq!(waited(&solo), [3, 0, 0], "the congestion window is full as well");
    solo.arrive(ack(OURS + 4_000)).unwrap();
    solo.sent();
    solo.after(4 * MILLI);
    assert_eq!(waited(&solo), [7, 0, 4]);
    // It is called, and writes: nothing waits for the buffer any more.
    solo.tx.2 = false;
    solo.write(2_000);
    solo.sent();
    solo.after(MILLI);
    assert_eq!(waited(&solo), [8, 0, 4]);
}

#[test]
fn the_rate_of_delivery_is_that_of_the_bottleneck() {
    for algorithm in silk_tcp::Algorithm::ALL {
        let mut pair = Pair::new(&config(algorithm, true), BOTTLENECK, 7);
        pair.client.program.send_buffer = 4 << 20;
        pair.client.program.to_write = pattern(8 << 20, 1);
        pair.drive_for(3_000 * MILLI);
        let info = pair.client.connection().info();
        let (rate, path) = (info.delivery_rate.expect("much was sent"), BOTTLENECK.rate);
        assert!(rate.abs_diff(path) < path / 10 && !info.app_limited, "{algorithm:?}: {rate} of {path}");
    }
}

#[test]
fn a_program_that_sends_little_is_the_limit_of_what_is_delivered() {
    let mut solo = Solo::established(&plain());
    for round in 1..=3 {
        solo.write(2_000);
        solo.sent();
        solo.after(10 * MILLI);
        solo.arrive(ack(OURS + 2_000 * round)).unwrap();
        solo.after(500 * MILLI);
    }
    let info = solo.connection.info();
    assert_eq!((info.delivery_rate, info.app_limited), (Some(200_000), true));
}

#[test]
fn time_outs_are_counted_in_series_with_the_time_they_cost() {
    let mut solo = Solo::established(&plain());
    solo.write(1_000);
    solo.sent();
    let first = time_out(&mut solo);
    let second = time_out(&mut solo);
    solo.after(5 * MILLI);
    let info = solo.connection.info();
    assert_eq!((info.timeouts, info.timeout_series, info.timeout_time), (2, 1, Duration::ZERO));
    solo.arrive(ack(OURS + 1_000)).unwrap();
    let info = solo.connection.info();
    assert_eq!((info.timeouts, info.timeout_series), (2, 1));
    assert_eq!(info.timeout_time, second - first + 5 * MILLI);
    solo.write(1_000);
    solo.sent();
    time_out(&mut solo);
    assert_eq!(solo.connection.info().timeout_series, 2);
}

/// The retransmission timer goes off, and text is sent again; when.
fn time_out(solo: &mut Solo) -> Instant {
    let before = solo.connection.info().timeouts;
    while solo.connection.info().timeouts == before {
        solo.next_timeout().expect("a deadline");
        solo.sent();
    }
    solo.now
}

#[test]
fn a_syn_that_was_lost_timed_out_as_well() {
    let mut solo = Solo::opening(&plain());
    solo.next_timeout();
    assert_eq!(solo.flags_sent(), [Flags::SYN]);
    solo.after(10 * MILLI);
    solo.arrive(solo.syn_ack(Default::default())).unwrap();
    let info = solo.connection.info();
    assert_eq!((info.timeouts, info.timeout_series, info.timeout_time), (1, 1, 10 * MILLI));
}

#[test]
fn what_is_acknowledged_with_an_echo_of_a_mark_is_counted() {
    let mut solo = Solo::established(&Config { ecn: Ecn::Ask, ..plain() });
    solo.write(5_000);
    solo.sent();
    let echo = |ack: Segment<'static>| Segment { flags: Flags::ACK | Flags::ECE, ..ack };
    solo.arrive(ack(OURS + 1_000)).unwrap();
    solo.arrive(echo(ack(OURS + 3_000))).unwrap();
    solo.arrive(ack(OURS + 5_000)).unwrap();
    assert_eq!(solo.connection.info().octets_marked, 2_000);
}
