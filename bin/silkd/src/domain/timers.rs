//! When each path of a domain wants its timer. A path asks for another time with nearly every segment, and nearly always for a
//! later one: that is written down here, and its entry in the wheel stays where it is. What comes up and is not wanted yet is
//! placed anew, without asking the path. And before a sleep those that would end it soon are, so that nobody is
//! interrupted for nothing.

use crate::domain::wheel::Wheel;
use silk_instant::Instant;
use std::time::Duration;

/// Timers that come up within this are looked at before a sleep: somewhat longer than two of the kernel's ticks, which are
/// interrupts anyhow.
pub const SOON: Duration = Duration::from_millis(10);
/// Entries of the wheel that were overtaken by earlier ones, beside one for each path, before all of them are thrown out.
const OVERTAKEN: usize = 1024;

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
    fn revise(&mut self, at: Instant, overtaken: &mut usize) -> Option<Instant> {
        // One that was overtaken by an earlier one is nobody's.
        if self.placed != at {
            *overtaken = overtaken.saturating_sub(1);
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
    /// Entries of the wheel that are nobody's. A far one that a near one overtakes would stay there for as long as it is far: of a
    /// connection that is to be probed in two hours, one for each time that it is busy and silent again.
    overtaken: usize,
}

impl Timers {
    /// None; it is `now`.
    pub fn new(now: Instant) -> Self {
        Self { wheel: Wheel::new(now), of: Vec::new(), overtaken: 0 }
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
            let overtakes = std::mem::replace(&mut timer.placed, at) != Instant::FAR;
            self.wheel.arm(path, at);
            self.overtaken += usize::from(overtakes);
            if self.overtaken > self.of.len() + OVERTAKEN {
                self.throw_out();
            }
        }
    }

    /// Entries that are nobody's leave the wheel.
    #[cold]
    fn throw_out(&mut self) {
        self.wheel.retain(|path, at| self.of.get(path as usize).is_some_and(|timer| timer.placed == at));
        self.overtaken = 0;
    }

    /// Puts the indices of the paths whose timers are due into `due`; those are off now.
    pub fn expire(&mut self, now: Instant, due: &mut Vec<u32>) {
        let Self { wheel, of, overtaken } = self;
        wheel.advance(now, |path, at| {
            let timer = of.get_mut(path as usize)?;
            if timer.placed == at && timer.wanted <= now {
                *timer = Timer::OFF;
                due.push(path);
                return None;
            }
            timer.revise(at, overtaken)
        });
    }

    /// When to look next. It is `now`.
    pub fn next(&mut self, now: Instant) -> Option<Instant> {
        let Self { wheel, of, overtaken } = self;
        wheel.revise(now + SOON, |path, at| of.get_mut(path as usize)?.revise(at, overtaken));
        wheel.next()
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

    #[test]
    fn a_timer_that_is_far_and_near_in_turn_takes_no_more_room_and_disturbs_nobody() {
        let (mut timers, mut now) = (Timers::new(START), START);
        timers.set(1, START + 900_000 * MS);
        for _ in 0..10_000 {
            // A connection is to be probed, is busy, and is silent again.
            timers.set(3, now + 7_200_000 * MS);
            timers.set(3, now + 40 * MS);
            now += 50 * MS;
            assert_eq!(due(&mut timers, now), [3]);
        }
        assert!(timers.wheel.len() <= 2 * OVERTAKEN, "{} entries", timers.wheel.len());
        timers.set(3, now + 7_200_000 * MS);
        assert_eq!(due(&mut timers, START + 900_002 * MS), [1]);
        assert_eq!(due(&mut timers, now + 7_200_002 * MS), [3]);
        assert_eq!((timers.wheel.len(), timers.overtaken), (0, 0));
    }
}
