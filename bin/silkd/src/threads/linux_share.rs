//! Linux's share of the processor, where the policy divides it (SILK §3.2's "Linux thread"): for all
//! that the paths use, Linux is owed its part, in turns of a quantum. While it is Linux's turn the
//! executor runs only when nothing else wants to (`SCHED_IDLE`), so what Linux does not need is not
//! wasted. What Linux gets while the executor sleeps counts too. That is Linux as one more member of
//! the schedule, which always has work while a path has.

use silk_config::Percent;
use silk_instant::Instant;
use std::time::Duration;

/// What the paths of a domain owe Linux.
#[derive(Clone, Copy, Debug)]
pub struct LinuxShare {
    /// Millionths of the processor.
    share: u32,
    quantum: Duration,
    owed: Duration,
    /// Since when it is Linux's turn.
    turn: Option<Instant>,
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
        Self { share, quantum, owed: Duration::ZERO, turn: None }
    }

    /// Paths have run for `used` until `now`. What they do in Linux's turn, Linux did not need.
    pub fn ran(&mut self, used: Duration, now: Instant) -> Turn {
        match self.turn {
            Some(since) if now.since(since) >= self.quantum => {
                self.turn = None;
                self.slept(now.since(since));
                Turn::Paths
            }
            Some(_) => Turn::Same,
            None => {
                self.owed += used * self.share / (WHOLE - self.share);
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
        self.slept(since.map_or(Duration::ZERO, |since| now.since(since)));
        since.is_some()
    }

    /// The executor has slept for `slept`: Linux had the processor. What it had beyond what it was
    /// owed is not kept for later (a member that has no work saves nothing up).
    pub fn slept(&mut self, slept: Duration) {
        self.owed = self.owed.saturating_sub(slept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_micros(500);

    /// Of a long time with work always there, on both sides, Linux's part.
    fn part_of_linux(share: Percent) -> f64 {
        let (mut linux, mut now, mut given) =
            (LinuxShare::new(share, QUANTUM), Instant::ZERO, Duration::ZERO);
        let mut turn = Turn::Paths;
        for run in 0..200_000u64 {
            // Runs of 0.2 to 40 µs; in Linux's turn the executor does not get to run until later.
            let used = Duration::from_nanos(200 + run * 7919 % 40_000);
            now += used;
            if turn == Turn::Linux {
                now += QUANTUM;
                given += QUANTUM + used;
            }
            match linux.ran(used, now) {
                Turn::Same => {}
                other => turn = other,
            }
        }
        given.as_secs_f64() / now.since(Instant::ZERO).as_secs_f64()
    }

    #[test]
    fn linux_has_its_part_while_paths_have_work() {
        for hundredths in [10, 50, 80] {
            let part = part_of_linux(Percent::of_hundred(hundredths));
            let share = f64::from(hundredths) / 100.0;
            assert!((part - share).abs() < 0.02, "{hundredths} %: {part}");
        }
    }

    #[test]
    fn an_idle_time_saves_nothing_up() {
        let mut linux = LinuxShare::new(Percent::of_hundred(50), QUANTUM);
        linux.slept(Duration::from_secs(9));
        assert_eq!(linux.ran(QUANTUM, Instant::from_micros(500)), Turn::Linux);
        assert_eq!(linux.ran(QUANTUM / 2, Instant::from_micros(750)), Turn::Same);
        assert_eq!(linux.ran(QUANTUM / 2, Instant::from_micros(1000)), Turn::Paths);
        assert!(!linux.rest(Instant::from_micros(1000)), "it is nobody's turn");
        assert_eq!(linux.ran(QUANTUM, Instant::from_micros(1500)), Turn::Linux);
        assert!(linux.rest(Instant::from_micros(1600)), "a sleep ends it");
    }
}
