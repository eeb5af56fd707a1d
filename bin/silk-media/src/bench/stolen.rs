//! When a hypervisor had which CPU: what a late picture waited for that no schedule can give.

use crate::clock::now;
use crate::place;
use silk_instant::Instant;
use silk_testkit::ticks::Ticks;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

/// How often is looked: once in a tick of the kernel's count.
const EVERY: Duration = Duration::from_millis(10);
/// Where the one who looks runs: with the sources.
const HERE: usize = 0;

/// What was taken of a CPU between one look and the next.
#[derive(Clone, Copy, Debug)]
struct Taken {
    from: Instant,
    to: Instant,
    time: Duration,
}

/// What was taken of a CPU, and when.
#[derive(Debug, Default)]
pub struct Stolen(Vec<Taken>);

impl Stolen {
    /// What was taken in this time, give or take a look. The kernel tells ticks of 10 ms: a part of one is told with
    /// the next, which may be later.
    pub fn between(&self, from: Instant, to: Instant) -> Duration {
        self.0.iter().filter(|taken| taken.from <= to && taken.to >= from).map(|taken| taken.time).sum()
    }

    /// A look at `now`, after one at `before`.
    fn look(&mut self, (before, then): (Duration, Instant), (now, at): (Duration, Instant)) {
        let time = now.saturating_sub(before);
        if !time.is_zero() {
            self.0.push(Taken { from: then, to: at, time });
        }
    }
}

/// Looks until it is stopped.
#[derive(Debug)]
pub struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Stolen>,
}

impl Watch {
    /// Begins to look at a CPU.
    pub fn start(cpu: &str) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (cpu, until) = (cpu.to_owned(), over.clone());
        let thread = spawn(move || {
            // Where it cannot, it looks from wherever it is.
            let _ = place::pin(HERE);
            let look = || (Ticks::now(&cpu).stolen(), now());
            let (mut stolen, mut before) = (Stolen::default(), look());
            while !until.load(Ordering::Relaxed) {
                sleep(EVERY);
                let now = look();
                stolen.look(before, now);
                before = now;
            }
            stolen
        });
        Self { over, thread }
    }

    /// What it has seen.
    pub fn stop(self) -> Stolen {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_found_by_when_it_was() {
        let (millis, at) = (Duration::from_millis, Instant::from_millis);
        let mut stolen = Stolen::default();
        for (before, now, then) in [(0, 10, 100), (10, 10, 110), (10, 40, 120)] {
            stolen.look((millis(before), at(then)), (millis(now), at(then + 10)));
        }
        let between = |from, to| stolen.between(at(from), at(to)).as_millis();
        assert_eq!((between(0, 99), between(0, 100), between(111, 119)), (0, 10, 0));
        assert_eq!((between(115, 125), between(105, 300)), (30, 40));
    }

    #[test]
    fn one_that_looks_can_be_stopped() {
        let watch = Watch::start("0");
        let begun = now();
        sleep(EVERY);
        let stolen = watch.stop();
        assert!(stolen.between(begun, now()) < Duration::from_secs(3600));
    }
}
