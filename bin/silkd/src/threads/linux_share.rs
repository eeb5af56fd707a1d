//! Linux's share of the processor, where the policy divides it (SILK §3.2's "Linux thread"): for all
//! that the executor uses, Linux is owed its part, in turns of a quantum. While it is Linux's turn the
//! executor runs only when nothing else wants to (`SCHED_IDLE`), so what Linux does not need is not
//! wasted. What Linux gets while the executor sleeps counts too. That is Linux as one more member of
//! the schedule, which always has work while a path has.
//!
//! What counts is the CPU time of the executor's thread: what its paths use, and what it needs
//! besides, such as the system calls by which it sends, wakes and sleeps. What others had while it was
//! preempted is not in it. Where it cannot be read, what paths have used counts.

use rustix::time::{ClockId, DynamicClockId, clock_gettime_dynamic};
use silk_config::Percent;
use silk_instant::Instant;
use std::time::Duration;

/// CPU time that the calling thread has used since it began: 0.2 to 0.4 µs a reading.
pub fn own_time() -> Option<Duration> {
    let time = clock_gettime_dynamic(DynamicClockId::Known(ClockId::ThreadCPUTime)).ok()?;
    Duration::try_from(time).ok()
}

/// What the executor of a domain owes Linux.
#[derive(Clone, Copy, Debug)]
pub struct LinuxShare {
    /// Millionths of the processor.
    share: u32,
    quantum: Duration,
    owed: Duration,
    /// Since when it is Linux's turn.
    turn: Option<Instant>,
    /// The executor's CPU time, as far as it is counted; `None`: it was not read the last time.
    counted: Option<Duration>,
}

/// What the executor is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// As it did.
    Same,
    /// Linux's turn begins.
    Linux,
    /// It is over.
    Paths,
}

/// All of the processor.
const WHOLE: u32 = Percent::WHOLE.millionths();

impl LinuxShare {
    /// Linux has `share` of the processor, in turns of `quantum`.
    pub fn new(share: Percent, quantum: Duration) -> Self {
        // All of it would leave the paths nothing: the configuration does not allow that.
        let share = share.millionths().min(WHOLE - 1);
        Self { share, quantum, owed: Duration::ZERO, turn: None, counted: None }
    }

    /// How long a turn is at least.
    pub fn quantum(&self) -> Duration {
        self.quantum
    }

    /// How long the turn that has just begun is.
    pub fn turn(&self) -> Duration {
        self.owed.saturating_sub(self.quantum).max(self.quantum)
    }

    /// Until `now` the executor has used `own` since it began, and its paths have run for `paths` since
    /// the last time. What it does in Linux's turn, Linux did not need. A turn lasts for as many
    /// quanta as are owed.
    pub fn ran(&mut self, paths: Duration, own: Option<Duration>, now: Instant) -> Turn {
        let used = self.used_until(own).unwrap_or(paths);
        match self.turn {
            Some(since) => {
                let had = now.since(since);
                if had < self.turn() {
                    return Turn::Same;
                }
                self.turn = None;
                self.had(had);
                Turn::Paths
            }
            None => {
                self.owe_for(used);
                if self.owed < self.quantum {
                    return Turn::Same;
                }
                self.turn = Some(now);
                Turn::Linux
            }
        }
    }

    /// The executor is about to sleep, which is better than a turn. Whether there was one, which is
    /// over now.
    pub fn rest(&mut self, now: Instant) -> bool {
        let since = self.turn.take();
        self.had(since.map_or(Duration::ZERO, |since| now.since(since)));
        since.is_some()
    }

    /// The executor has slept for `slept`, and has used `own` since it began. Linux had the processor but
    /// for what the executor needed to fall asleep and to wake: that is all of a sleep that ends at once.
    pub fn slept(&mut self, slept: Duration, own: Option<Duration>) {
        let used = self.used_until(own).unwrap_or_default();
        self.owe_for(used);
        self.had(slept.saturating_sub(used));
    }

    /// What the executor has used since it was last counted; `None`: that cannot be told.
    fn used_until(&mut self, own: Option<Duration>) -> Option<Duration> {
        let before = std::mem::replace(&mut self.counted, own);
        Some(own?.saturating_sub(before?))
    }

    /// Linux is owed its part of what the executor has used.
    fn owe_for(&mut self, used: Duration) {
        self.owed += used * self.share / (WHOLE - self.share);
    }

    /// Linux had the processor for so long. What it had beyond what it was owed is not kept for
    /// later (a member that has no work saves nothing up).
    fn had(&mut self, had: Duration) {
        self.owed = self.owed.saturating_sub(had);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_micros(500);

    /// Of a long time with work always there, on both sides, Linux's part. The executor uses `beside`
    /// times as much beside its paths as they do. Its CPU time can be `read`, or cannot.
    fn part_of_linux(share: Percent, beside: u32, read: bool) -> f64 {
        let (mut linux, mut now, mut given) =
            (LinuxShare::new(share, QUANTUM), Instant::ZERO, Duration::ZERO);
        let (mut turn, mut own) = (Turn::Paths, Duration::ZERO);
        for run in 0..200_000u64 {
            // Runs of 0.2 to 40 µs; in Linux's turn the executor does not get to run until later.
            let paths = Duration::from_nanos(200 + run * 7919 % 40_000);
            let used = paths * (1 + beside);
            now += used;
            own += used;
            if turn == Turn::Linux {
                now += QUANTUM;
                given += QUANTUM + used;
            }
            match linux.ran(paths, read.then_some(own), now) {
                Turn::Same => {}
                other => turn = other,
            }
        }
        given.as_secs_f64() / now.since(Instant::ZERO).as_secs_f64()
    }

    #[track_caller]
    fn has_its_part(beside: u32, read: bool) {
        for hundredths in [10, 50, 80] {
            let part = part_of_linux(Percent::of_hundred(hundredths), beside, read);
            let share = f64::from(hundredths) / 100.0;
            assert!((part - share).abs() < 0.02, "{hundredths} %: {part}");
        }
    }

    #[test]
    fn linux_has_its_part_while_paths_have_work() {
        has_its_part(0, true);
    }

    #[test]
    fn linux_has_its_part_of_what_an_executor_uses_beside_its_paths_too() {
        has_its_part(1, true);
    }

    #[test]
    fn where_cpu_time_cannot_be_read_what_paths_use_counts() {
        has_its_part(0, false);
        let (mut linux, mut now) = (LinuxShare::new(Percent::of_hundred(50), QUANTUM), Instant::ZERO);
        // What was used since it could be read last is not known.
        for own in [Some(QUANTUM * 9), None, Some(QUANTUM * 99)] {
            now += QUANTUM;
            assert_eq!(linux.ran(QUANTUM / 4, own, now), Turn::Same);
        }
        assert_eq!(linux.ran(Duration::ZERO, Some(QUANTUM * 100), now + QUANTUM), Turn::Linux);
    }

    #[test]
    fn what_others_had_in_the_middle_of_a_run_is_not_the_executors() {
        let (mut linux, mut own) = (LinuxShare::new(Percent::of_hundred(50), QUANTUM), Duration::ZERO);
        linux.ran(Duration::ZERO, Some(own), Instant::ZERO);
        for run in 1..5 {
            own += QUANTUM / 5;
            let now = Instant::ZERO + QUANTUM * 20 * run;
            assert_eq!(linux.ran(QUANTUM * 20, Some(own), now), Turn::Same);
        }
    }

    #[test]
    fn a_turn_lasts_while_a_quantum_is_owed() {
        let mut linux = LinuxShare::new(Percent::of_hundred(50), QUANTUM);
        let at = |tenths: u32| Instant::ZERO + QUANTUM * tenths / 10;
        let mut ran = |own: u32, tenths| linux.ran(Duration::ZERO, Some(QUANTUM * own / 10), at(tenths));
        assert_eq!(ran(0, 0), Turn::Same);
        assert_eq!(ran(25, 25), Turn::Linux);
        assert_eq!([35, 39].map(|until| ran(25, until)), [Turn::Same; 2]);
        assert_eq!(ran(27, 41), Turn::Paths);
        // Linux has had 1.6 quanta of 2.5; what the executor has used in its turn does not count.
        assert_eq!(ran(27, 42), Turn::Same);
        assert_eq!(ran(28, 43), Turn::Linux);
    }

    #[test]
    fn a_sleep_that_ends_at_once_is_not_linuxs() {
        let mut linux = LinuxShare::new(Percent::of_hundred(50), QUANTUM);
        let mut own = Duration::ZERO;
        assert_eq!(linux.ran(Duration::ZERO, Some(own), Instant::ZERO), Turn::Same);
        for _ in 0..10 {
            own += QUANTUM / 10;
            linux.slept(QUANTUM / 10, Some(own));
        }
        assert_eq!(linux.ran(Duration::ZERO, Some(own), Instant::ZERO), Turn::Linux);
    }

    #[test]
    fn an_idle_time_saves_nothing_up() {
        let mut linux = LinuxShare::new(Percent::of_hundred(50), QUANTUM);
        let mut own = Duration::ZERO;
        linux.slept(Duration::from_secs(9), Some(own));
        let mut ran = |linux: &mut LinuxShare, used: Duration, now| {
            own += used;
            linux.ran(used, Some(own), Instant::from_micros(now))
        };
        assert_eq!(ran(&mut linux, QUANTUM, 500), Turn::Linux);
        assert_eq!(ran(&mut linux, QUANTUM / 2, 750), Turn::Same);
        assert_eq!(ran(&mut linux, QUANTUM / 2, 1000), Turn::Paths);
        assert!(!linux.rest(Instant::from_micros(1000)), "it is nobody's turn");
        assert_eq!(ran(&mut linux, QUANTUM, 1500), Turn::Linux);
        assert!(linux.rest(Instant::from_micros(1600)), "a sleep ends it");
    }

    #[test]
    fn a_thread_that_works_uses_cpu_time() {
        let before = own_time();
        assert!(before.is_some());
        while own_time() == before {}
    }
}
