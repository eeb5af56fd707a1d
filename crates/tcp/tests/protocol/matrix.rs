//! The golden matrix: how much arrives over a bottleneck, for each loss, round trip, buffer and
//! congestion control. It is measured in virtual time and so is the same on every machine; the table
//! lies beside the tests, so that a change of behaviour is a change that somebody reviews.
//!
//! To accept new figures: `SILK_BLESS=1 cargo test -p silk-tcp --test protocol matrix`.

use std::fmt::Write;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use silk_tcp::{Algorithm, Config};
use silk_testkit::emulator::{Conditions, Discipline, Loss};

use crate::pair::{Pair, pattern};

const TIME: Duration = Duration::from_secs(5);
/// Each figure is the mean of one run with each.
const SEEDS: [u64; 2] = [1, 2];

const LOSSES: [(&str, Loss); 5] = [
    ("0", Loss::NONE),
    ("0.1 %", Loss::random(0.001)),
    ("1 %", Loss::random(0.01)),
    ("1 % x 4", Loss::bursts(0.01, 4.0)),
    ("3 %", Loss::random(0.03)),
];
/// Where the first slow start decides: round trips in ms and buffers of a fast bottleneck.
const FAST: [(u64, &str, usize); 4] =
    [(20, "250", 250), (20, "1000", 1_000), (100, "250", 250), (100, "1000", 1_000)];
const ROUND_TRIPS: [u64; 3] = [2, 20, 100];
const BUFFERS: [(&str, usize, Discipline); 4] = [
    ("10", 10, Discipline::DropTail),
    ("40", 40, Discipline::DropTail),
    ("160", 160, Discipline::DropTail),
    ("CoDel", 1_000, Discipline::CoDel),
];
const ALGORITHMS: [(&str, Algorithm); 3] =
    [("CUBIC", Algorithm::Cubic), ("Reno", Algorithm::Reno), ("BBR", Algorithm::Bbr)];

const HEADING: &str = "\
Goodput of one connection, in kb/s received in its first 5 s, over a bottleneck of 10 Mb/s, behind
them of 200 Mb/s; the mean of two runs. Loss: of packets on the way of the data; x 4: in bursts of
four packets on the average. RTT: in ms, without queues. Buffer: of the bottleneck, in packets,
drop-tail or CoDel.

";

/// Bits received per second, in thousands.
fn goodput(config: &Config, bottleneck: &Conditions) -> u64 {
    // Acknowledgements go back over a way that is as long and has no other fault.
    let back = Conditions { delay: bottleneck.delay, ..Conditions::default() };
    let most = bottleneck.rate.map_or(0, NonZeroU64::get) / 8 * TIME.as_secs();
    let received = |seed: u64| {
        let ways = [bottleneck.clone(), back.clone()];
        let mut pair = Pair::over(&[config.clone(), config.clone()], &ways, seed);
        pair.client.program.send_buffer = config.receive_window as usize;
        pair.client.program.to_write = pattern(most as usize, 1);
        pair.drive_for(TIME);
        pair.server.program.received.len() as u64
    };
    let octets: u64 = SEEDS.into_iter().map(received).sum();
    octets * 8 / (SEEDS.len() as u64 * TIME.as_secs() * 1_000)
}

/// A row of the table.
fn row(name: &str, round_trip: u64, buffer: &str, window: u32, bottleneck: Conditions) -> String {
    let bottleneck = Conditions { delay: Duration::from_millis(round_trip) / 2, ..bottleneck };
    let mut row = format!("{name:<9}{round_trip:>5}{buffer:>8}");
    for (_, congestion) in ALGORITHMS {
        let config =
            Config { congestion, receive_window: window, receive_window_max: window, ..Config::default() };
        let _ = write!(row, "{:>7}", goodput(&config, &bottleneck));
    }
    row + "\n"
}

fn table() -> String {
    let mut table = HEADING.to_owned();
    let names = ALGORITHMS.map(|(name, _)| format!("{name:>7}")).concat();
    let _ = writeln!(table, "{:<9}{:>5}{:>8}{names}", "loss", "RTT", "buffer");
    let rate = NonZeroU64::new(10_000_000);
    for (name, loss) in LOSSES {
        for round_trip in ROUND_TRIPS {
            for (buffer, queue, discipline) in BUFFERS {
                let bottleneck = Conditions { loss, queue, discipline, rate, ..Conditions::default() };
                table += &row(name, round_trip, buffer, 1 << 20, bottleneck);
            }
        }
    }
    let rate = NonZeroU64::new(200_000_000);
    for (round_trip, buffer, queue) in FAST {
        table += &row("0", round_trip, buffer, 8 << 20, Conditions { queue, rate, ..Conditions::default() });
    }
    table
}

#[test]
fn goodput_is_what_was_reviewed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocol/goodput.txt");
    let table = table();
    if std::env::var_os("SILK_BLESS").is_some() {
        std::fs::write(&file, &table).unwrap();
    }
    let reviewed = std::fs::read_to_string(&file).unwrap_or_default();
    let changed: Vec<_> = table.lines().filter(|line| !reviewed.lines().any(|old| old == *line)).collect();
    assert!(
        table == reviewed,
        "goodput changed; if that is meant, write it down with SILK_BLESS=1. Now:\n{}",
        changed.join("\n")
    );
}
