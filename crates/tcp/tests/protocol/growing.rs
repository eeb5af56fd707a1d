//! How fast a connection becomes, in virtual time: over a bottleneck with a queue the window finds
//! the rate and keeps it, and random loss costs only what it must.

use std::num::NonZeroU64;
use std::time::Duration;

use silk_tcp::{Algorithm, Config};
use silk_testkit::emulator::Conditions;

use crate::link::Weather;
use crate::pair::{Pair, pattern};

const MILLI: Duration = Duration::from_millis(1);
const MICRO: Duration = Duration::from_micros(1);

/// 20 Mb/s with a round trip of 40 ms and a queue for as much again.
pub const BOTTLENECK: Weather =
    Weather { delay: Duration::from_millis(20), rate: 2_500_000, queue: 70, ..Weather::FAIR };

pub fn config(congestion: Algorithm, sack: bool) -> Config {
    Config { congestion, sack, receive_window: 1 << 20, ..Config::default() }
}

/// Octets per second received over this link in `time`, after the handshake.
pub fn goodput(config: &Config, weather: Weather, time: Duration) -> f64 {
    let mut pair = Pair::new(config, weather, 7);
    pair.client.program.send_buffer = 1 << 20;
    pair.client.program.to_write = pattern(8 << 20, 1);
    pair.drive_for(time);
    pair.server.program.received.len() as f64 / time.as_secs_f64()
}

#[test]
fn slow_start_doubles_each_round_trip() {
    let mut pair = Pair::established(&Config { receive_window: 1 << 20, ..Config::default() });
    pair.client.program.send_buffer = 1 << 20;
    pair.client.program.to_write = pattern(1 << 20, 1);
    let windows: Vec<u32> = (0..4)
        .map(|_| {
            pair.settle();
            let cwnd = pair.client.connection().info().cwnd;
            pair.drive_for(10 * MILLI);
            cwnd / 1_460
        })
        .collect();
    // A window update and a delayed acknowledgement may cost one segment at the beginning.
    assert!(windows == [10, 20, 40, 80] || windows == [10, 18, 36, 72], "{windows:?}");
}

#[test]
fn a_bottleneck_is_kept_busy() {
    for algorithm in [Algorithm::Cubic, Algorithm::Reno] {
        for sack in [true, false] {
            let rate = goodput(&config(algorithm, sack), BOTTLENECK, 3_000 * MILLI);
            let share = rate / BOTTLENECK.rate as f64;
            let enough = if sack { 0.75 } else { 0.5 };
            assert!(share > enough, "{algorithm:?}, SACK {sack}: {share:.2} of the rate");
        }
    }
}

#[test]
fn losses_at_a_full_queue_are_repaired_without_time_outs() {
    // CUBIC ends slow start before the queue is full (`train`).
    let mut pair = Pair::new(&config(Algorithm::Reno, true), BOTTLENECK, 7);
    pair.client.program.send_buffer = 1 << 20;
    pair.client.program.to_write = pattern(6 << 20, 1);
    pair.drive_until(Duration::from_secs(20), |pair| pair.server.program.received.len() == 6 << 20);
    let info = pair.client.connection().info();
    assert!(info.fast_recoveries > 0, "the queue was never full");
    assert_eq!(info.timeouts, 0, "{info:?}");
}

#[test]
fn one_loss_in_a_thousand_costs_little_with_sack() {
    let lossy = Weather { loss: 1, ..BOTTLENECK };
    let share = goodput(&config(Algorithm::Cubic, true), lossy, 3_000 * MILLI) / BOTTLENECK.rate as f64;
    assert!(share > 0.6, "{share:.2} of the rate");
}

#[test]
fn cubic_is_faster_than_reno_on_a_long_fat_path() {
    // 40 Mb/s with 100 ms: Reno regains a segment in each round trip, and there are hundreds to
    // regain.
    let long = Weather { delay: Duration::from_millis(50), rate: 5_000_000, queue: 100, ..Weather::FAIR };
    let rate = |algorithm| {
        let config = Config { receive_window: 4 << 20, ..config(algorithm, true) };
        let mut pair = Pair::new(&config, long, 7);
        pair.client.program.send_buffer = 4 << 20;
        pair.client.program.to_write = pattern(40 << 20, 1);
        pair.drive_for(Duration::from_secs(6));
        pair.server.program.received.len()
    };
    let (cubic, reno) = (rate(Algorithm::Cubic), rate(Algorithm::Reno));
    assert!(cubic > reno, "CUBIC {cubic}, Reno {reno}");
}

#[test]
fn slow_start_ends_without_a_loss_where_the_round_trip_grows() {
    // A queue that no window here can fill.
    let deep = Weather { queue: 2_000, ..BOTTLENECK };
    let mut pair = Pair::new(&config(Algorithm::Cubic, true), deep, 7);
    pair.client.program.send_buffer = 4 << 20;
    pair.client.program.to_write = pattern(6 << 20, 1);
    pair.drive_until(Duration::from_secs(4), |pair| pair.server.program.received.len() == 6 << 20);
    let info = pair.client.connection().info();
    assert_eq!((info.fast_recoveries, info.timeouts), (0, 0), "{info:?}");
    assert!(info.ssthresh < 2 << 20, "{info:?}");
}

#[test]
fn a_window_of_thousands_of_segments_is_reduced_by_an_overflow_and_not_lost() {
    // 200 Mb/s with 100 ms that differ by 2, a queue of 1000: 2700 segments fit, in more than a thousand transmissions.
    let config =
        Config { receive_window: 8 << 20, receive_window_max: 8 << 20, ..config(Algorithm::Reno, true) };
    let way = Conditions {
        delay: 50 * MILLI,
        jitter: 2 * MILLI,
        rate: NonZeroU64::new(200_000_000),
        queue: 1_000,
        ..Conditions::default()
    };
    let back = Conditions { delay: 50 * MILLI, ..Conditions::default() };
    for seed in [2, 3, 10, 11] {
        let mut pair = Pair::over(&[config.clone(), config.clone()], &[way.clone(), back.clone()], seed);
        pair.client.program.send_buffer = 8 << 20;
        pair.client.program.to_write = pattern(32 << 20, 1);
        pair.drive_for(2_000 * MILLI);
        let info = pair.client.connection().info();
        assert!(info.fast_recoveries > 0, "seed {seed}: the queue was never full");
        let segments = info.ssthresh / u32::from(info.mss);
        assert!(segments > 400, "seed {seed}: a threshold of {segments} segments");
    }
}

/// Mb/s received in so many seconds of connections with these seeds, in the mean, over a way with these conditions; whoever
/// brings packets is late by up to so much as a rule, and up to so much now and then.
fn mean_goodput(way: &Conditions, late: Option<[Duration; 2]>, seconds: u64, seeds: u64) -> f64 {
    let config =
        Config { receive_window: 8 << 20, receive_window_max: 8 << 20, ..config(Algorithm::Cubic, true) };
    let back = Conditions { delay: way.delay, ..Conditions::default() };
    let received: usize = (0..seeds)
        .map(|seed| {
            let mut pair = Pair::over(&[config.clone(), config.clone()], &[way.clone(), back.clone()], seed);
            if let Some([usually, sometimes]) = late {
                pair.to_server.set_late(usually, sometimes, seed + 1);
                pair.to_client.set_late(usually, sometimes, seed + 77);
            }
            pair.client.program.send_buffer = 8 << 20;
            pair.client.program.to_write =
                pattern(way.rate.map_or(0, |rate| rate.get() / 8 * seconds) as usize, 1);
            pair.drive_for(Duration::from_secs(seconds));
            pair.server.program.received.len()
        })
        .sum();
    received as f64 * 8.0 / 1e6 / (seconds * seeds) as f64
}

#[test]
fn slow_start_finds_the_rate_where_hosts_are_late() {
    let way = Conditions {
        delay: 50 * MILLI,
        rate: NonZeroU64::new(200_000_000),
        queue: 250,
        ..Conditions::default()
    };
    let rate = mean_goodput(&way, Some([300 * MICRO, 2 * MILLI]), 3, 6);
    assert!(rate > 100.0, "{rate:.0} Mb/s");
}

#[test]
fn its_own_pace_is_not_taken_for_the_rate_where_delays_differ() {
    let way = Conditions {
        delay: 12_500 * MICRO,
        jitter: MILLI,
        rate: NonZeroU64::new(1_000_000_000),
        queue: 2_000,
        ..Conditions::default()
    };
    let rate = mean_goodput(&way, None, 1, 4);
    assert!(rate > 600.0, "{rate:.0} Mb/s");
}
