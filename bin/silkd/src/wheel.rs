//! When which path wants its timer: a hierarchical timing wheel (Varghese & Lauck 1987),
//! four levels of 64 slots over a tick of about a millisecond, 4.7 hours in all.
//!
//! Arming costs a push and cancelling nothing: an entry carries the instant it was armed
//! for, and its owner, asked when it comes up, knows whether that is still what it wants.
//! TCP re-arms on nearly every segment, so a path that asks for a later time than it is
//! armed for stays where it is and is armed again when it comes up.

use silk_instant::Instant;

const TICK_BITS: u32 = 20;
const LEVEL_BITS: u32 = 6;
const LEVELS: usize = 4;
const SLOTS: usize = 1 << LEVEL_BITS;

/// The wheel. `K` names who is to be woken.
pub struct Wheel<K> {
    slot: [[Vec<(K, Instant)>; SLOTS]; LEVELS],
    occupied: [u64; LEVELS],
    tick: u64,
    spare: Vec<(K, Instant)>,
}

impl<K: Copy> Wheel<K> {
    /// An empty wheel that starts at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            slot: std::array::from_fn(|_| std::array::from_fn(|_| Vec::new())),
            occupied: [0; LEVELS],
            tick: now.nanos() >> TICK_BITS,
            spare: Vec::new(),
        }
    }

    /// Wakes `key` at `at` or up to a tick later. What lies beyond the wheel's range waits at
    /// its end and is placed again from there.
    pub fn arm(&mut self, key: K, at: Instant) {
        // Rounded up, so that nothing is woken before its time.
        let due = ((at.nanos() >> TICK_BITS) + 1).max(self.tick + 1);
        let last = (1 << (LEVEL_BITS * LEVELS as u32)) - 1;
        let ahead = (due - self.tick).min(last);
        let due = self.tick + ahead;
        let level = ((63 - ahead.leading_zeros()) / LEVEL_BITS) as usize;
        let place = (due >> (LEVEL_BITS * level as u32)) as usize % SLOTS;
        self.slot[level][place].push((key, at));
        self.occupied[level] |= 1 << place;
    }

    /// When the earliest entry may come up, not later than it really does.
    pub fn next(&self) -> Option<Instant> {
        (0..LEVELS)
            .filter(|level| self.occupied[*level] != 0)
            .map(|level| {
                let shift = LEVEL_BITS * level as u32;
                let here = (self.tick >> shift) as usize % SLOTS;
                let turned = self.occupied[level].rotate_right(here as u32);
                // The slot at our own place in an upper level is a full turn away.
                let ahead = match turned & !1 {
                    0 => SLOTS as u64,
                    later => u64::from(later.trailing_zeros()),
                };
                ((self.tick >> shift) + ahead) << shift
            })
            .min()
            .map(|tick| Instant::from_nanos(tick << TICK_BITS))
    }

    /// Moves on to `now` and hands out who has come up, with the instant armed for.
    pub fn advance(&mut self, now: Instant, mut each: impl FnMut(K, Instant)) {
        let until = now.nanos() >> TICK_BITS;
        while self.tick < until {
            let Some(next) = self.next().map(|at| at.nanos() >> TICK_BITS) else {
                self.tick = until;
                return;
            };
            if next > until {
                self.tick = until;
                return;
            }
            self.tick = next;
            for level in (1..LEVELS).rev() {
                self.bring_down(level);
            }
            let place = self.tick as usize % SLOTS;
            if self.occupied[0] & (1 << place) != 0 {
                self.occupied[0] &= !(1 << place);
                let mut due = std::mem::replace(&mut self.slot[0][place], std::mem::take(&mut self.spare));
                due.drain(..).for_each(|(key, at)| each(key, at));
                self.spare = due;
            }
        }
    }

    /// When a turn of the level below has ended, spreads what this level held for it.
    fn bring_down(&mut self, level: usize) {
        let shift = LEVEL_BITS * level as u32;
        if self.tick & ((1 << shift) - 1) != 0 {
            return;
        }
        let place = (self.tick >> shift) as usize % SLOTS;
        self.occupied[level] &= !(1 << place);
        for (key, at) in std::mem::take(&mut self.slot[level][place]) {
            // Due this very tick: level 0 of this tick is emptied right after.
            if at.nanos() >> TICK_BITS < self.tick {
                let here = self.tick as usize % SLOTS;
                self.slot[0][here].push((key, at));
                self.occupied[0] |= 1 << here;
            } else {
                self.arm(key, at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn run_until(wheel: &mut Wheel<u32>, now: Instant) -> Vec<u32> {
        let mut woken = Vec::new();
        wheel.advance(now, |key, at| {
            assert!(at <= now, "{key} woken at {now}, before {at}");
            woken.push(key);
        });
        woken
    }

    #[test]
    fn nobody_is_woken_early_and_nobody_later_than_the_wheel_said() {
        let mut wheel = Wheel::new(Instant::from_millis(123_456));
        let mut want = Vec::new();
        for key in 0..2000u32 {
            let at =
                Instant::from_millis(123_456) + Duration::from_micros(u64::from(key) * u64::from(key) * 7);
            wheel.arm(key, at);
            want.push((at, key));
        }
        let mut seen = 0;
        while let Some(next) = wheel.next() {
            seen += run_until(&mut wheel, next).len();
            let tick = Duration::from_nanos(2 << TICK_BITS);
            assert!(want.iter().skip(seen).all(|(at, _)| *at + tick >= next));
        }
        assert_eq!(seen, want.len());
    }

    #[test]
    fn an_empty_wheel_sleeps_for_ever_and_jumps() {
        let mut wheel = Wheel::<u32>::new(Instant::ZERO);
        assert_eq!(wheel.next(), None);
        assert_eq!(run_until(&mut wheel, Instant::from_millis(1_000_000)), []);
        wheel.arm(1, Instant::from_millis(1_000_001));
        assert_eq!(run_until(&mut wheel, Instant::from_millis(1_000_000)), []);
        assert_eq!(run_until(&mut wheel, Instant::from_millis(1_000_004)), [1]);
    }

    #[test]
    fn what_lies_beyond_the_range_is_not_woken_early() {
        let mut wheel = Wheel::new(Instant::ZERO);
        let far = Instant::from_millis(100_000_000);
        wheel.arm(1, far);
        assert_eq!(run_until(&mut wheel, Instant::from_millis(99_999_000)), []);
        assert_eq!(run_until(&mut wheel, Instant::from_millis(100_000_010)), [1]);
    }
}
