//! When each path of a domain wants its timer. A path asks for another time with nearly every segment, and nearly always for a
//! later one: that is written down here, and its entry in the wheel stays where it is. What comes up and is not wanted yet is
//! placed anew, without asking the path. And before a sleep those that would end it soon are, so that nobody is
//! interrupted for nothing.

use crate::wheel::Wheel;
use silk_instant::Instant;
use std::time::Duration;

/// Timers that come up within this are looked at before a sleep: somewhat longer than two of the kernel's ticks, which are
/// interrupts anyhow.
pub const SOON: Duration = Duration::from_millis(10);

/// A path's timer.
#[derive(Clone, Copy)]
struct Timer {
    /// FAR: not at all.
    wanted: Instant,
    /// What its entry in the wheel is for, the earliest if it has several; FAR: it has none.
    placed: Instant,
}

impl Timer {
    const OFF: Self = Self { wanted: Instant::FAR, placed: Instant::FAR };

    /// An entry for `at` is at hand: which is to be in the wheel instead.
    fn revise(&mut self, at: Instant) -> Option<Instant> {
        // One that was overtaken by an earlier one is nobody's.
        if self.placed != at {
            return None;
        }
        self.placed = self.wanted;
        Some(self.wanted).filter(|wanted| *wanted != Instant::FAR)
    }
}

/// The timers of a domain's paths.
pub struct Timers {
    wheel: Wheel<u32>,
    /// By the paths' indices.
    of: Vec<Timer>,
}

impl Timers {
    /// None; it is `now`.
    pub fn new(now: Instant) -> Self {
        Self { wheel: Wheel::new(now), of: Vec::new() }
    }

    /// From now on the path with this index wants its timer `at` this time; FAR: not at all.
    pub fn set(&mut self, path: u32, at: Instant) {
        let index = path as usize;
        if index >= self.of.len() {
            self.of.resize(index + 1, Timer::OFF);
        }
        let timer = &mut self.of[index];
        timer.wanted = at;
        if at < timer.placed {
            timer.placed = at;
            self.wheel.arm(path, at);
        }
    }

    /// Puts the indices of the paths whose timers are due into `due`; those are off now.
    pub fn expire(&mut self, now: Instant, due: &mut Vec<u32>) {
        let of = &mut self.of;
        self.wheel.advance(now, |path, at| {
            let timer = of.get_mut(path as usize)?;
            if timer.placed == at && timer.wanted <= now {
                *timer = Timer::OFF;
                due.push(path);
            }
            timer.revise(at)
        });
    }

    /// When to look next. It is `now`.
    pub fn next(&mut self, now: Instant) -> Option<Instant> {
        let of = &mut self.of;
        self.wheel.revise(now + SOON, |path, at| of.get_mut(path as usize)?.revise(at));
        self.wheel.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_millis(1_000);
    const MS: Duration = Duration::from_millis(1);

    fn due(timers: &mut Timers, now: Instant) -> Vec<u32> {
        let mut due = Vec::new();
        timers.expire(now, &mut due);
        due
    }

    #[test]
    fn a_timer_that_is_put_off_again_and_again_ends_no_sleep() {
        let mut timers = Timers::new(START);
        let (mut now, mut alarm) = (START, Instant::FAR);
        for _ in 0..100_000 {
            now += Duration::from_micros(15);
            assert_eq!(due(&mut timers, now), []);
            timers.set(3, now + 40 * MS);
            // The sleeper's timer is put off where it is soon over.
            let next = timers.next(now).unwrap();
            if next < alarm || alarm.since(now) < SOON {
                alarm = next;
            }
            assert!(alarm > now, "woken for nothing");
        }
        assert_eq!(due(&mut timers, now + 39 * MS), []);
        assert_eq!(due(&mut timers, now + 42 * MS), [3]);
        assert_eq!(timers.next(now + 42 * MS), None);
    }

    #[test]
    fn who_wants_it_no_more_or_later_is_not_called() {
        let mut timers = Timers::new(START);
        timers.set(0, START + 5 * MS);
        timers.set(1, START + 5 * MS);
        timers.set(2, START + 5 * MS);
        timers.set(1, Instant::FAR);
        timers.set(2, START + 50 * MS);
        assert_eq!(due(&mut timers, START + 10 * MS), [0]);
        assert_eq!(due(&mut timers, START + 60 * MS), [2]);
        assert_eq!(due(&mut timers, START + 1_000 * MS), []);
    }

    #[test]
    fn who_wants_it_earlier_is_called_once() {
        let mut timers = Timers::new(START);
        timers.set(0, START + 50 * MS);
        timers.set(0, START + 5 * MS);
        assert!(timers.next(START).unwrap() <= START + 7 * MS);
        assert_eq!(due(&mut timers, START + 10 * MS), [0]);
        assert_eq!(due(&mut timers, START + 100 * MS), []);
    }
}
