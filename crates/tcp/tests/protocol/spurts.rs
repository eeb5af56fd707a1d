//! Far and fast networks, each drawn from a seed, whose programs write in spurts, both at the same time: what a first slow
//! start has read off trains of acknowledgements must not hold text back, whatever the next rounds tell.
//!
//! A network that fails says its seed: `SILK_SEED=17 cargo test -p silk-tcp --test protocol spurts` runs it again.

use std::env;
use std::num::NonZeroU64;
use std::time::Duration;

use silk_tcp::{Algorithm, Config};
use silk_testkit::dice::Dice;
use silk_testkit::emulator::{Conditions, Discipline, Loss};

use crate::pair::{Pair, pattern};

const NETWORKS: u64 = 60;
/// As many octets are written by either side.
const OCTETS: usize = 8 << 20;
/// Three times what the longest pauses between the smallest spurts add up to.
const LONG: Duration = Duration::from_secs(120);

/// How a program writes: at most so many octets, then a pause.
#[derive(Clone, Copy, Debug)]
struct Spurts {
    octets: usize,
    pause: Duration,
}

#[derive(Debug)]
struct Network {
    ways: [Conditions; 2],
    spurts: [Spurts; 2],
    send_buffer: usize,
    /// Whoever brings packets is late by so much now and then, and by a fiftieth of it as a rule: long enough that a round's
    /// acknowledgements come all at once.
    late: Option<Duration>,
}

impl Network {
    fn draw(seed: u64) -> Self {
        let dice = &mut Dice::new(seed);
        let delay = millis(dice, 2..=100);
        let ways = [0; 2].map(|_| Conditions {
            delay,
            jitter: if dice.falls(0.3) { millis(dice, 0..=3).min(delay) } else { Duration::ZERO },
            rate: NonZeroU64::new(dice.within(10..=200) * 1_000_000),
            queue: dice.within(50..=2_000) as usize,
            discipline: if dice.falls(0.8) { Discipline::DropTail } else { Discipline::CoDel },
            loss: if dice.falls(0.2) { Loss::random(0.001) } else { Loss::random(0.0) },
            ..Conditions::default()
        });
        let spurts = [0; 2].map(|_| Spurts {
            octets: 1 << dice.within(16..=23),
            pause: millis(dice, 0..=3 * delay.as_millis() as u64),
        });
        let send_buffer = 1 << dice.within(17..=22);
        Self {
            ways,
            spurts,
            send_buffer,
            late: dice.falls(0.7).then(|| millis(dice, 1..=4 * delay.as_millis() as u64)),
        }
    }

    fn pair(&self, seed: u64) -> Pair {
        let window = 4 << 20;
        let config = Config {
            congestion: Algorithm::Cubic,
            receive_window: window,
            receive_window_max: window,
            ..Config::default()
        };
        let mut pair = Pair::over(&[config.clone(), config], &self.ways, seed);
        for host in [&mut pair.client, &mut pair.server] {
            host.program.send_buffer = self.send_buffer;
        }
        if let Some(late) = self.late {
            pair.to_server.set_late(late / 50, late, seed + 1);
            pair.to_client.set_late(late / 50, late, seed + 2);
        }
        pair
    }
}

fn millis(dice: &mut Dice, range: std::ops::RangeInclusive<u64>) -> Duration {
    Duration::from_millis(dice.within(range))
}

fn run(seed: u64) {
    let network = Network::draw(seed);
    let mut pair = network.pair(seed);
    let end = pair.now + LONG;
    let mut left = [OCTETS; 2];
    let mut next = [pair.now; 2];
    let is_done =
        |pair: &Pair| [&pair.client, &pair.server].iter().all(|host| host.program.received.len() == OCTETS);
    while !is_done(&pair) {
        let what = || format!("seed {seed}: {left:?} octets to write, {}, {network:#?}", pair.describe());
        assert!(pair.now < end, "{}", what());
        for (at, host) in [&mut pair.client, &mut pair.server].into_iter().enumerate() {
            // What a spurt has no room for is written as there is some, and the pause comes after it.
            if pair.now >= next[at] && host.program.to_write.is_empty() {
                let octets = network.spurts[at].octets.min(left[at]);
                host.program.to_write.extend(pattern(octets, at as u8));
                left[at] -= octets;
                next[at] = pair.now + network.spurts[at].pause;
            }
        }
        pair.drive_for(Duration::from_millis(1));
    }
}

#[test]
fn whoever_writes_in_spurts_is_not_held_back() {
    let seed = env::var("SILK_SEED").ok().map(|seed| seed.parse().expect("SILK_SEED is a number"));
    let (first, networks) = seed.map_or((0, NETWORKS), |seed| (seed, 1));
    (first..first + networks).for_each(run);
}
