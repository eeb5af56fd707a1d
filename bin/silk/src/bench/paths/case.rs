//! How a case is measured: in rounds over all cases, so that a slow minute of the machine is everybody's,
//! and within a round in samples so short that most of them are not interrupted.

use super::super::ratio::median;
use super::row::{Peers, Round, Row, Unit};
use std::time::{Duration, Instant};

/// A sample takes about this long: much longer than reading the clock, much shorter than a time slice.
const SAMPLE: Duration = Duration::from_micros(100);
/// The fewest samples of a round.
const SAMPLES: usize = 5;

/// Something that can be done again and again.
pub trait Work {
    /// Does it `operations` times and says how long that took. What has to be put right before or after
    /// is not in that time.
    fn run(&mut self, operations: u64) -> Duration;
    /// Uses all the memory that it looks into, before a round: what was left alone for a second, the host of a
    /// virtual machine may have taken away, and gives it back at its own leisure.
    fn warm(&mut self) {}
}

impl<F: FnMut(u64) -> Duration> Work for F {
    fn run(&mut self, operations: u64) -> Duration {
        self(operations)
    }
}

/// One question: some work, and what to compare its cost with.
pub struct Case {
    what: String,
    peers: Peers,
    work: Box<dyn Work>,
    rounds: Vec<Round>,
}

impl Case {
    /// A case that has not been measured yet.
    pub fn new(what: impl Into<String>, peers: Peers, work: impl Work + 'static) -> Self {
        Self { what: what.into(), peers, work: Box::new(work), rounds: Vec::new() }
    }

    /// Measures it once more, for about `time`, after a warm-up that also finds the length of a sample.
    pub fn round(&mut self, time: Duration) {
        self.work.warm();
        let each = self.operations_of_a_sample();
        let (mut samples, mut spent) = (Vec::new(), Duration::ZERO);
        while spent < time || samples.len() < SAMPLES {
            let took = self.work.run(each);
            spent += took;
            samples.push(took.as_nanos() as f64 / each as f64);
        }
        samples.sort_by(f64::total_cmp);
        let operations = each * samples.len() as u64;
        self.rounds.push(Round { middle: median(&samples), best: samples[0], operations });
    }

    /// How many operations last for a sample. One run may be long because it was interrupted; several one after
    /// the other are not.
    fn operations_of_a_sample(&mut self) -> u64 {
        let mut each = 1;
        while each < 1 << 30 && (0..SAMPLES).any(|_| self.work.run(each) < SAMPLE) {
            each *= 2;
        }
        each
    }

    /// What was found out; nothing before the first round.
    pub fn row(self) -> Option<Row> {
        (!self.rounds.is_empty()).then(|| Row::new(self.what, Unit::Ns, self.peers, &self.rounds))
    }
}

/// How long `work` takes.
pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// How long `work` takes when it is done for 0, 1, … up to `operations`.
pub fn repeated(operations: u64, work: impl FnMut(u64)) -> Duration {
    timed(|| (0..operations).for_each(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_makes_no_sample_short() {
        let mut runs = 0;
        let interrupted = move |operations: u64| {
            runs += 1;
            Duration::from_nanos(500 * operations) + if runs < 4 { SAMPLE } else { Duration::ZERO }
        };
        assert_eq!(Case::new("interrupted", Peers::NONE, interrupted).operations_of_a_sample(), 256);
    }

    #[test]
    fn a_round_counts_what_it_timed_and_not_the_warm_up() {
        let new = || Case::new("half a microsecond", Peers::NONE, |n: u64| Duration::from_nanos(500 * n));
        assert!(new().row().is_none());
        let mut case = new();
        case.round(Duration::from_millis(1));
        let row = case.row().unwrap();
        // 256 operations take 128 µs; eight such samples fill a millisecond.
        assert_eq!((row.median, row.best, row.operations), (500.0, 500.0, 8 * 256));
    }
}
