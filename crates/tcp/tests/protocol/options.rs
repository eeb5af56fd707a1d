//! What a program sets on a connection while it runs, or before.

use std::time::Duration;

use silk_tcp::{Algorithm, Config};

use crate::link::Weather;
use crate::pair::{Pair, pattern};

#[test]
fn congestion_control_changes_in_the_middle_of_a_lossy_stream_and_nothing_is_lost() {
    let weather = Weather { loss: 20, ..Weather::FAIR };
    for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 2)].map(|(a, b)| (Algorithm::ALL[a], Algorithm::ALL[b])) {
        let config = Config { congestion: from, ..Config::default() };
        let mut pair = Pair::new(&config, weather, 7);
        let content = pattern(400_000, 3);
        let expected: Vec<u8> = content.iter().copied().collect();
        pair.client.program.to_write = content;
        pair.client.program.shuts_down = true;
        pair.drive_until(Duration::from_secs(60), |pair| pair.server.program.received.len() > 100_000);
        pair.client.connection().set_congestion(to);
        assert_eq!(pair.client.connection().info().algorithm, to);
        pair.drive_until(Duration::from_secs(600), |pair| pair.server.program.received.len() == 400_000);
        assert!(pair.server.program.received == expected, "{from:?} to {to:?}: {}", pair.describe());
    }
}
