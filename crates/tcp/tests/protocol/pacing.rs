//! Pacing as values, and BBR, which needs it (draft-ietf-ccwg-bbr).

use std::time::Duration;

use silk_tcp::{Algorithm, Config, Info, Progress, Repair};

use crate::growing::{BOTTLENECK, config, goodput};
use crate::link::Weather;
use crate::pair::{Pair, pattern};
use crate::solo::{OURS, Solo, ack, plain, sacked, with_sack};

const MILLI: Duration = Duration::from_millis(1);

#[test]
fn a_rate_lets_portions_go_and_says_when_the_next_may() {
    let mut solo = Solo::established(&plain());
    solo.offload = 65_000;
    solo.connection.set_max_pacing_rate(Some(1_000_000));
    solo.write(6_000);
    assert_eq!(solo.text_sent(), [(OURS, 2_000)]);
    solo.after(MILLI);
    assert_eq!(solo.text_sent(), []);
    assert_eq!(solo.next_timeout(), Some((MILLI, Progress::NONE)));
    assert_eq!(solo.text_sent(), [(OURS + 2_000, 2_000)]);
    // An acknowledgement does not shorten the pause.
    solo.arrive(ack(OURS + 4_000)).unwrap();
    assert_eq!(solo.text_sent(), []);
    solo.after(2 * MILLI);
    assert_eq!(solo.text_sent(), [(OURS + 4_000, 2_000)]);
    solo.connection.set_max_pacing_rate(None);
    solo.after(2 * MILLI);
    solo.write(10_000);
    assert_eq!(solo.text_sent(), [(OURS + 6_000, 8_000)]);
}

#[test]
fn another_rate_ends_the_pause_of_the_one_before() {
    let mut solo = Solo::established(&plain());
    solo.connection.set_max_pacing_rate(Some(1));
    solo.write(6_000);
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    solo.after(MILLI);
    solo.connection.set_max_pacing_rate(Some(1));
    assert_eq!(solo.text_sent(), []);
    solo.connection.set_max_pacing_rate(Some(1_000_000));
    assert_eq!(solo.text_sent(), [(OURS + 1_000, 1_000)]);
}

#[test]
fn what_is_sent_again_is_paced_too() {
    let mut solo = Solo::established(&plain());
    solo.connection.set_max_pacing_rate(Some(1_000_000));
    solo.write(2_000);
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    solo.after(MILLI);
    solo.sent();
    (0..4).for_each(|_| _ = solo.arrive(ack(OURS)));
    assert_eq!(solo.text_sent(), []);
    solo.after(MILLI);
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
}

#[test]
fn what_a_time_out_sends_again_does_not_wait_and_the_rate_holds_for_what_follows() {
    let mut solo = Solo::established(&plain());
    solo.connection.set_max_pacing_rate(Some(2_000));
    solo.write(2_000);
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    let (waited, _) = solo.next_timeout().unwrap();
    assert!(waited < 500 * MILLI, "{waited:?}");
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    // Two thousand octets have left, which take a second.
    solo.arrive(ack(OURS + 1_000)).unwrap();
    assert_eq!(solo.text_sent(), []);
    solo.after(1_000 * MILLI - waited - MILLI);
    assert_eq!(solo.text_sent(), []);
    solo.after(MILLI);
    assert_eq!(solo.text_sent(), [(OURS + 1_000, 1_000)]);
}

#[test]
fn the_time_out_of_what_is_sent_again_begins_when_its_rate_lets_it_go() {
    let mut solo = Solo::established(&plain());
    solo.write(2_000);
    solo.sent();
    solo.connection.set_max_pacing_rate(Some(2_000));
    solo.write(1_000);
    assert_eq!(solo.text_sent(), [(OURS + 2_000, 1_000)]);
    (0..4).for_each(|_| _ = solo.arrive(ack(OURS)));
    assert_eq!(solo.text_sent(), []);
    // The third segment's half second is not over, and nothing has left that could be overdue.
    let (waited, progress) = solo.next_timeout().unwrap();
    assert!(waited < 500 * MILLI && progress == Progress::NONE, "{waited:?}");
    assert_eq!(solo.text_sent(), []);
    assert_eq!(solo.next_timeout(), Some((500 * MILLI - waited, Progress::NONE)));
    assert_eq!(solo.text_sent(), [(OURS, 1_000)]);
    let info = solo.connection.info();
    assert_eq!((info.fast_recoveries, info.timeouts, info.backoff), (1, 0, 0));
}

/// The share of a link's rate that arrives.
fn share(algorithm: Algorithm, weather: Weather) -> f64 {
    goodput(&config(algorithm, true), weather, 3_000 * MILLI) / weather.rate as f64
}

#[test]
fn bbr_keeps_a_bottleneck_busy() {
    let share = share(Algorithm::Bbr, BOTTLENECK);
    assert!(share > 0.85, "{share:.2} of the rate");
}

#[test]
fn bbr_does_not_take_scattered_losses_for_congestion() {
    let lossy = Weather { loss: 10, ..BOTTLENECK };
    let (bbr, cubic) = (share(Algorithm::Bbr, lossy), share(Algorithm::Cubic, lossy));
    assert!(bbr > 0.75 && bbr > 1.5 * cubic, "BBR {bbr:.2}, CUBIC {cubic:.2} of the rate");
}

#[test]
fn bbr_leaves_a_deep_queue_nearly_empty() {
    let deep = Weather { queue: 500, ..BOTTLENECK };
    let mut pair = Pair::new(&config(Algorithm::Bbr, true), deep, 7);
    pair.client.program.send_buffer = 4 << 20;
    pair.client.program.to_write = pattern(8 << 20, 1);
    pair.drive_for(3_000 * MILLI);
    let info = pair.client.connection().info();
    // The path holds 100 KB; its queue would hold 700 KB more.
    assert!(info.in_flight < 300_000 && info.srtt < 100 * MILLI, "{info:?}");
    assert_eq!((info.segments_again, info.timeouts), (0, 0));
}

#[test]
fn bbr_goes_on_after_a_time_in_which_nothing_was_sent() {
    let mut pair = Pair::new(&config(Algorithm::Bbr, true), BOTTLENECK, 7);
    pair.client.program.send_buffer = 4 << 20;
    for _ in 0..3 {
        pair.client.program.to_write = pattern(2 << 20, 1);
        pair.server.program.received.clear();
        pair.drive_until(Duration::from_secs(2), |pair| pair.server.program.received.len() == 2 << 20);
        pair.drive_for(Duration::from_secs(20));
    }
}

#[test]
fn bbr_without_sack_comes_to_an_end() {
    let lossy = Weather { loss: 20, ..BOTTLENECK };
    let mut pair =
        Pair::new(&Config { congestion: Algorithm::Bbr, ..config(Algorithm::Bbr, false) }, lossy, 7);
    pair.client.program.to_write = pattern(1 << 20, 1);
    pair.drive_until(Duration::from_secs(120), |pair| pair.server.program.received.len() == 1 << 20);
}

/// All that the window lets go is sent; the number after it.
fn send_all(solo: &mut Solo) -> u32 {
    solo.write(20_000);
    let mut end = 0;
    loop {
        end = solo.text_sent().last().map_or(end, |(seq, len)| seq + *len as u32);
        if solo.connection.poll_timeout().is_none_or(|at| at - solo.now >= 10 * MILLI) {
            return end;
        }
        solo.next_timeout();
    }
}

/// That is acknowledged after 100 ms.
fn round(solo: &mut Solo) -> Info {
    let end = send_all(solo);
    solo.now += 100 * MILLI;
    solo.arrive(ack(end)).unwrap();
    solo.connection.info()
}

/// BBR cruises: neither faster nor slower than the path was seen to be.
fn cruising() -> Solo {
    let config = Config { congestion: Algorithm::Bbr, ..with_sack() };
    let mut solo = Solo::established_after(&config, 100 * MILLI);
    let gains = |info: Info| info.model.map_or(0, |model| model.pacing_gain);
    let seen: Vec<_> = (0..6).map(|_| gains(round(&mut solo))).collect();
    assert_eq!(seen, [277, 277, 277, 277, 90, 100]);
    solo
}

#[test]
fn bbr_hears_of_losses_that_timers_find() {
    let window_after = |arrives: bool| {
        let mut solo = cruising();
        let (before, first) =
            (solo.connection.info().cwnd, solo.connection.info().octets_acked as u32 + OURS);
        let end = send_all(&mut solo);
        solo.now += 100 * MILLI;
        // The second segment arrives, or nothing does.
        if arrives {
            solo.arrive(sacked(ack(first), &[(first + 1_000, first + 2_000)])).unwrap();
        }
        while solo.connection.info().lost == 0 {
            solo.sent();
            solo.next_timeout();
        }
        assert_eq!(solo.connection.info().timeouts, u32::from(!arrives));
        assert_eq!(solo.text_sent()[0], (first, 1_000));
        solo.now += 100 * MILLI;
        solo.arrive(ack(end)).unwrap();
        (0..3).for_each(|_| _ = round(&mut solo));
        (before, solo.connection.info().cwnd)
    };
    for arrives in [true, false] {
        let (before, after) = window_after(arrives);
        // BBR.Beta.
        assert!(after < before * 8 / 10, "{arrives}: {before}, then {after}");
    }
}

/// The time-out comes with all that the window let go outstanding; the windows before it, and the first and the last number.
fn time_out(solo: &mut Solo) -> (u32, u32, u32) {
    let (before, first) = (solo.connection.info().cwnd, solo.connection.info().octets_acked as u32 + OURS);
    let end = send_all(solo);
    while solo.connection.info().timeouts == 0 {
        solo.sent();
        solo.next_timeout();
    }
    assert_eq!((solo.text_sent(), solo.connection.info().cwnd), (vec![(first, 1_000)], 1_000));
    (before, first, end)
}

#[test]
fn when_a_time_out_is_repaired_bbr_has_its_window_again_but_for_what_the_losses_cost() {
    let mut solo = cruising();
    let (before, _, end) = time_out(&mut solo);
    solo.now += 100 * MILLI;
    solo.arrive(ack(end)).unwrap();
    let info = solo.connection.info();
    // BBR.Beta.
    assert_eq!((info.repair, info.cwnd), (Repair::Open, before * 7 / 10));
}

#[test]
fn a_time_out_that_was_only_a_delay_costs_bbr_nothing() {
    let mut solo = cruising();
    let (before, first, _) = time_out(&mut solo);
    // Acknowledgements go on for text that was not sent again (RFC 5682).
    solo.now += 10 * MILLI;
    solo.arrive(ack(first + 1_000)).unwrap();
    solo.sent();
    solo.arrive(ack(first + 2_000)).unwrap();
    let info = solo.connection.info();
    assert_eq!((info.undone, info.repair, info.lost), (1, Repair::Open, 0));
    assert!(info.cwnd >= before, "{before}, then {info:?}");
    assert!(solo.text_sent().iter().all(|(seq, _)| *seq > first + 2_000), "nothing is sent again");
}
