//! Thousands of networks, each drawn from a seed: what two connections over it must do, whatever it
//! is like. Both streams arrive whole, and both ends come to their end.
//!
//! A network that fails says its seed. To run it again, and nothing else:
//! `SILK_SEED=17 cargo test -p silk-tcp --test protocol simulation`.
//! To run more of them: `SILK_NETWORKS=100000`, from `SILK_SEED` on if that is given too.

use std::env;
use std::num::NonZeroU64;
use std::time::Duration;

use silk_tcp::{Algorithm, Config, Ecn, Progress, State};
use silk_testkit::dice::Dice;
use silk_testkit::emulator::{Conditions, Discipline, Loss};

use crate::pair::{Host, Pair, pattern};

/// So many are run in every test.
const NETWORKS: u64 = 6_000;

/// Longer than anything on these networks may take. A time-out waits 10 s at most, and one after the
/// other must be lost to reach this.
const LONG: Duration = Duration::from_secs(3_600);

/// Two hosts, what they say to each other, and the way between them.
#[derive(Debug)]
struct Network {
    configs: [Config; 2],
    ways: [Conditions; 2],
    /// Octets of the request and of the response.
    octets: [usize; 2],
    /// The largest transmission of each host: segmentation offload, or single segments.
    offload: [usize; 2],
    /// The programs read for so long, then do not for as long, and so on.
    pauses: Option<Duration>,
    /// The chance of a mark on what may be marked (ECN), on the way to the client and to the server.
    marks: [f64; 2],
}

impl Network {
    fn draw(seed: u64) -> Self {
        let dice = &mut Dice::new(seed);
        Self {
            configs: [config(dice), config(dice)],
            ways: [conditions(dice), conditions(dice)],
            octets: [octets(dice), octets(dice)],
            offload: [0; 2].map(|_| if dice.falls(0.5) { 65_000 } else { 0 }),
            pauses: dice.falls(0.2).then(|| millis(dice, 1..=500)),
            marks: [chance(dice, 0.3), chance(dice, 0.3)],
        }
    }

    fn pair(&self, seed: u64) -> Pair {
        let mut pair = Pair::over(&self.configs, &self.ways, seed);
        for (at, host) in [&mut pair.client, &mut pair.server].into_iter().enumerate() {
            host.program.to_write = pattern(self.octets[at], at as u8);
            host.program.shuts_down = true;
            host.offload = self.offload[at];
        }
        for (at, link) in [&mut pair.to_client, &mut pair.to_server].into_iter().enumerate() {
            let (chance, mut dice) = (self.marks[at], Dice::new(!seed - at as u64));
            link.mark = Box::new(move |_, _| dice.falls(chance));
        }
        pair
    }
}

fn millis(dice: &mut Dice, range: std::ops::RangeInclusive<u64>) -> Duration {
    Duration::from_millis(dice.within(range))
}

/// A number of `1..=1 << bits`, each order of magnitude as likely as another.
fn magnitude(dice: &mut Dice, bits: u64) -> u64 {
    let most = 1 << dice.within(0..=bits);
    dice.within(most / 2 + 1..=most)
}

fn octets(dice: &mut Dice) -> usize {
    magnitude(dice, 16) as usize - 1
}

fn chance(dice: &mut Dice, most: f64) -> f64 {
    if dice.falls(0.5) { 0.0 } else { most * dice.within(0..=1_000) as f64 / 1_000.0 }
}

fn config(dice: &mut Dice) -> Config {
    let receive_window = dice.within(1_000..=100_000) as u32;
    Config {
        mss: dice.within(200..=1_460) as u16,
        receive_window,
        receive_window_max: receive_window << dice.within(0..=3),
        window_scaling: dice.falls(0.8),
        timestamps: dice.falls(0.8),
        sack: dice.falls(0.8),
        nodelay: dice.falls(0.5),
        ecn: if dice.falls(0.6) { Ecn::Ask } else { Ecn::Accept },
        congestion: [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr][dice.below(3) as usize],
        initial_window: dice.within(1..=10) as u16,
        max_rto: Duration::from_secs(10),
        delayed_ack: millis(dice, 0..=200),
        // Nobody gives up: what is asked is whether everything arrives at last.
        syn_retries: u8::MAX,
        syn_ack_retries: u8::MAX,
        retries: u8::MAX,
        orphan_retries: u8::MAX,
        fin_wait_2: LONG,
        // Nor does who has forgotten the connection reset whoever still asks for the last acknowledgement.
        time_wait: LONG,
        ..Config::default()
    }
}

fn conditions(dice: &mut Dice) -> Conditions {
    let delay = Duration::from_micros(magnitude(dice, 18));
    Conditions {
        duplicate: chance(dice, 0.1),
        queue: magnitude(dice, 9) as usize,
        discipline: if dice.falls(0.5) { Discipline::DropTail } else { Discipline::CoDel },
        // 64 kb/s to 1 Gb/s.
        rate: if dice.falls(0.2) { None } else { NonZeroU64::new(magnitude(dice, 14) * 64_000) },
        loss: loss(dice),
        corrupt: chance(dice, 0.05),
        delay,
        jitter: delay.mul_f64(chance(dice, 1.0)),
        reorder: chance(dice, 0.3),
        reorder_by: millis(dice, 0..=100),
        // Some ways take less than the hosts' links do, and say nothing.
        longest: if dice.falls(0.1) { NonZeroU64::new(dice.within(600..=1_600)) } else { None },
    }
}

fn loss(dice: &mut Dice) -> Loss {
    if dice.falls(0.5) {
        Loss::random(chance(dice, 0.15))
    } else {
        Loss::bursts(chance(dice, 0.1), dice.within(1..=6) as f64)
    }
}

/// Says how to repeat what is being run when it fails, however it fails.
struct Repeat<'a>(u64, &'a Network);

impl Drop for Repeat<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this network failed; repeat it with SILK_SEED={}: {:#?}", self.0, self.1);
        }
    }
}

fn ended(host: &Host) -> bool {
    host.progress.contains(Progress::ESTABLISHED) && host.state() == State::Closed
}

/// Runs one network to its end, and demands what must hold.
fn run(seed: u64) {
    let network = Network::draw(seed);
    let _repeat = Repeat(seed, &network);
    let mut pair = network.pair(seed);
    let end = pair.now + LONG;
    let mut reads = true;
    while !(ended(&pair.client) && ended(&pair.server)) {
        assert!(pair.now < end, "not done after {LONG:?}: {}", pair.describe());
        let Some(pause) = network.pauses else {
            pair.drive_until(LONG, |pair| ended(&pair.client) && ended(&pair.server));
            break;
        };
        pair.drive_for(pause);
        reads = !reads;
        (pair.client.program.reads, pair.server.program.reads) = (reads, reads);
    }
    for host in [&mut pair.client, &mut pair.server] {
        host.program.received.extend(host.rx.read());
    }
    let streams = [(&pair.server, 0), (&pair.client, 1)];
    for (host, at) in streams {
        let sent = pattern(network.octets[at], at as u8);
        assert!(sent == host.program.received, "stream {at} differs: {}", pair.describe());
        let failures = Progress::RESET | Progress::REFUSED | Progress::TIMED_OUT | Progress::LATE_TEXT;
        assert!(!host.progress.intersects(failures), "ended by {:?}", host.progress);
    }
}

fn number(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is a number, not `{value}`")))
}

#[test]
fn every_network_carries_both_streams_to_their_end() {
    let seed = number("SILK_SEED");
    let networks = number("SILK_NETWORKS").unwrap_or(if seed.is_some() { 1 } else { NETWORKS });
    let first = seed.unwrap_or(0);
    (first..first.saturating_add(networks)).for_each(run);
}

/// With each algorithm some of the networks have marks on text that is ECN-capable.
#[test]
fn networks_have_every_algorithm_and_marks() {
    for algorithm in [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr] {
        let marked = |seed: &u64| {
            let Network { configs: [client, server], marks: [_, mark], .. } = Network::draw(*seed);
            client.congestion == algorithm && client.ecn == Ecn::Ask && server.ecn != Ecn::Off && mark > 0.01
        };
        let marked = (0..NETWORKS).filter(marked).count();
        assert!(marked > NETWORKS as usize / 20, "{algorithm:?}: {marked}");
    }
}

#[test]
fn a_network_repeats() {
    for seed in 0..20 {
        let sent = || {
            let mut pair = Network::draw(seed).pair(seed);
            pair.drive_for(LONG);
            (pair.client.sent, pair.server.sent)
        };
        assert_eq!(sent(), sent());
    }
}
