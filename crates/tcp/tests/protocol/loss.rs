//! Whatever the link does, both streams arrive whole and in order, both ends come to their end, and
//! it does not take for ever.

use std::time::Duration;

use proptest::prelude::*;
use silk_tcp::{Algorithm, Config, Progress, State};

use crate::link::Weather;
use crate::pair::{Pair, pattern};

const LONG: Duration = Duration::from_secs(3_600);

/// Sends `up` octets to the server and `down` back, closes, and demands equality.
fn exchange(config: &Config, weather: Weather, seed: u64, up: usize, down: usize) -> Pair {
    let mut pair = Pair::new(config, weather, seed);
    let (request, response) = (pattern(up, 1), pattern(down, 2));
    pair.client.program.to_write = request.clone();
    pair.server.program.to_write = response.clone();
    pair.client.program.shuts_down = true;
    pair.server.program.shuts_down = true;
    pair.drive_until(LONG, |pair| {
        let done = |host: &crate::pair::Host| {
            host.progress.contains(Progress::ESTABLISHED) && host.state() == State::Closed
        };
        done(&pair.client) && done(&pair.server)
    });
    assert!(request == pair.server.program.received, "the request differs: {}", pair.describe());
    assert!(response == pair.client.program.received, "the response differs: {}", pair.describe());
    pair
}

fn configurations() -> Vec<Config> {
    let modern = Config::default();
    let reno = Config { congestion: Algorithm::Reno, ..Config::default() };
    let bbr = Config { congestion: Algorithm::Bbr, ..Config::default() };
    let old = Config { sack: false, timestamps: false, window_scaling: false, ..Config::default() };
    let small = Config { receive_window: 3_000, receive_window_max: 3_000, ..Config::default() };
    vec![modern, reno, bbr, old, small]
}

#[test]
fn fair_weather_needs_no_retransmission() {
    for config in configurations() {
        let pair = exchange(&config, Weather::FAIR, 1, 300_000, 300_000);
        assert!(pair.client.drops.is_empty() && pair.server.drops.is_empty(), "{}", pair.describe());
    }
}

#[test]
fn storms_lose_nothing() {
    let storm = Weather { loss: 100, duplication: 50, corruption: 30, reordering: 200, ..Weather::FAIR };
    for config in configurations() {
        for seed in 0..12 {
            exchange(&config, storm, seed, 60_000, 90_000);
        }
    }
}

#[test]
fn a_link_that_loses_three_of_ten_still_works() {
    let hurricane = Weather { loss: 300, ..Weather::FAIR };
    for config in configurations() {
        for seed in 0..4 {
            exchange(&config, hurricane, seed, 8_000, 8_000);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Stream equality and liveness over any weather and any features.
    #[test]
    fn any_weather(
        (loss, duplication, corruption, reordering) in (0u64..200, 0u64..200, 0u64..100, 0u64..500),
        (seed, up, down) in (any::<u64>(), 0usize..60_000, 0usize..60_000),
        (sack, timestamps, window_scaling, nodelay) in any::<(bool, bool, bool, bool)>(),
        (mss, window) in (200u16..3_000, 1_000u32..100_000),
        congestion in prop::sample::select(vec![Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr]),
    ) {
        let weather = Weather { loss, duplication, corruption, reordering, ..Weather::FAIR };
        let config = Config {
            sack, timestamps, window_scaling, nodelay, mss, congestion,
            receive_window: window, receive_window_max: window * 2, retries: 30, syn_retries: 12,
            syn_ack_retries: 12, max_rto: Duration::from_secs(10), ..Config::default()
        };
        exchange(&config, weather, seed, up, down);
    }
}
