//! Where the time of a picture went: from the moment the path was done with the picture before it
//! until it was ready itself. The parts add up, so a missed deadline says what to mend.

use alloc::collections::VecDeque;
use core::time::Duration;
use silk_instant::Instant;

/// How one picture came to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// When it was ready.
    pub ready: Instant,
    /// Waiting for its packets.
    pub network: Duration,
    /// Its packets had to wait in the input queue because the output queue was full.
    pub queue: Duration,
    /// Its packets were there and other paths, or other programs, had the processor.
    pub processor: Duration,
    /// Decoding it.
    pub decode: Duration,
}

/// One run of the path.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// When its packet arrived.
    pub arrival: Instant,
    /// When the output queue last stopped being full; zero: it never was.
    pub freed: Instant,
    /// When it began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
}

/// Adds up the runs that make a picture.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tracer {
    // When the run before ended; zero: there was none.
    last: Instant,
    sum: Trace,
}

impl Tracer {
    /// Adds a run.
    pub fn add(&mut self, step: Step) {
        let Step { arrival, freed, start, end } = step;
        // Nothing was waited for before the first packet.
        let from = if self.last == Instant::ZERO { arrival } else { self.last };
        let there = arrival.max(from);
        let free = freed.max(there).min(start);
        self.sum.network += there.since(from);
        self.sum.queue += free.since(there);
        self.sum.processor += start.since(free);
        self.sum.decode += end.since(start);
        self.last = end;
    }

    /// A picture is ready at the end of the run that was added last.
    pub fn finish(&mut self) -> Trace {
        Trace { ready: self.last, ..core::mem::take(&mut self.sum) }
    }
}

/// A picture that was not ready when it was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// Its stamp.
    pub stamp: u32,
    /// When it should have been shown.
    pub due: Instant,
    /// How it came to be.
    pub trace: Trace,
    /// How far the display itself was behind its clock.
    pub display: Duration,
}

/// The last missed pictures.
#[derive(Debug, Default)]
pub struct Misses(VecDeque<Missed>);

/// How many are kept.
const KEPT: usize = 64;

impl Misses {
    /// One more; the oldest goes when there are many.
    pub fn add(&mut self, missed: Missed) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(missed);
    }

    /// From the oldest to the newest.
    pub fn iter(&self) -> impl Iterator<Item = &Missed> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn step(arrival: u64, freed: u64, start: u64, end: u64) -> Step {
        Step { arrival: at(arrival), freed: at(freed), start: at(start), end: at(end) }
    }

    #[test]
    fn the_parts_add_up_to_the_time_from_picture_to_picture() {
        let mut tracer = Tracer::default();
        tracer.add(step(5, 0, 7, 10));
        tracer.finish();
        tracer.add(step(8, 14, 15, 18));
        tracer.add(step(21, 14, 22, 26));
        let trace = tracer.finish();
        let millis = [trace.network, trace.queue, trace.processor, trace.decode].map(|part| part.as_millis());
        assert_eq!(millis, [3, 4, 2, 7]);
        assert_eq!((trace.ready, u64::try_from(millis.iter().sum::<u128>()).unwrap()), (at(26), 26 - 10));
    }

    #[test]
    fn the_last_misses_are_kept() {
        let mut misses = Misses::default();
        for stamp in 0..100 {
            let missed = Missed { stamp, due: at(0), trace: Trace::default(), display: Duration::ZERO };
            misses.add(missed);
        }
        assert_eq!((misses.iter().count(), misses.iter().next().unwrap().stamp), (KEPT, 36));
    }
}
