//! When which path wants its timer: a hierarchical timing wheel (Varghese & Lauck 1987),
//! four levels of 64 slots over a tick of about a millisecond, 4.7 hours in all.
//!
//! Arming costs a push and cancelling nothing: an entry carries the instant it was armed
//! for, and its owner, asked when it comes up, knows whether that is still what it wants.
//! TCP re-arms on nearly every segment, so a path that asks for a later time than it is
//! armed for stays where it is and is armed again when it comes up, or a moment before
//! ([`Wheel::revise`]).

use silk_instant::Instant;

const TICK_BITS: u32 = 20;
const LEVEL_BITS: u32 = 6;
const LEVELS: usize = 4;
const SLOTS: usize = 1 << LEVEL_BITS;
/// A slot that holds no more is looked through.
const FEW: usize = 16;

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
        let last = (1 << (LEVEL_BITS * LEVELS as u32)) - 1;
        let ahead = due(at).saturating_sub(self.tick).clamp(1, last);
        let level = ((63 - ahead.leading_zeros()) / LEVEL_BITS) as usize;
        let place = place(level, self.tick + ahead);
        self.slot[level][place].push((key, at));
        self.occupied[level] |= 1 << place;
    }

    /// When the earliest entry may come up, not later than it really does: exactly, where its slot holds few.
    pub fn next(&self) -> Option<Instant> {
        let earliest = |(level, begins): (usize, u64)| {
            let (entries, length) =
                (&self.slot[level][place(level, begins)], 1 << (LEVEL_BITS * level as u32));
            let first = entries.iter().filter(|_| entries.len() <= FEW).map(|(_, at)| due(*at)).min();
            first.map_or(begins, |first| first.clamp(begins, begins + length))
        };
        self.firsts().map(earliest).min().map(|tick| Instant::from_nanos(tick << TICK_BITS))
    }

    /// The first slot of each level that holds something: the level, and the tick at which it begins.
    fn firsts(&self) -> impl Iterator<Item = (usize, u64)> + use<K> {
        let (tick, occupied) = (self.tick, self.occupied);
        (0..LEVELS).filter(move |level| occupied[*level] != 0).map(move |level| {
            let shift = LEVEL_BITS * level as u32;
            let turned = occupied[level].rotate_right(place(level, tick) as u32);
            // The slot at our own place in an upper level is a full turn away.
            let ahead = match turned & !1 {
                0 => SLOTS as u64,
                later => u64::from(later.trailing_zeros()),
            };
            (level, ((tick >> shift) + ahead) << shift)
        })
    }

    /// Asks about the entries of the first slots that come up until then, where these hold few: when each is wanted now, `None` if not at all.
    pub fn revise(&mut self, until: Instant, mut each: impl FnMut(K, Instant) -> Option<Instant>) {
        let until = until.nanos() >> TICK_BITS;
        for (level, begins) in self.firsts().filter(|(_, begins)| *begins <= until) {
            let place = place(level, begins);
            if self.slot[level][place].len() > FEW {
                continue;
            }
            self.occupied[level] &= !(1 << place);
            let mut entries =
                std::mem::replace(&mut self.slot[level][place], std::mem::take(&mut self.spare));
            for (key, at) in entries.drain(..) {
                each(key, at).into_iter().for_each(|at| self.arm(key, at));
            }
            self.spare = entries;
        }
    }

    /// Moves on to `now` and hands out who has come up, with the instant armed for, who may say when to come up again.
    pub fn advance(&mut self, now: Instant, mut each: impl FnMut(K, Instant) -> Option<Instant>) {
        let until = now.nanos() >> TICK_BITS;
        while self.tick < until {
            let Some(next) = self.firsts().map(|(_, begins)| begins).min() else {
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
                for (key, at) in due.drain(..) {
                    each(key, at).into_iter().for_each(|at| self.arm(key, at));
                }
                self.spare = due;
            }
        }
    }

    /// Throws out the entries that are not to be kept.
    pub fn retain(&mut self, mut keep: impl FnMut(K, Instant) -> bool) {
        for (slots, occupied) in self.slot.iter_mut().zip(&mut self.occupied) {
            for (place, entries) in slots.iter_mut().enumerate().filter(|(_, entries)| !entries.is_empty()) {
                entries.retain(|(key, at)| keep(*key, *at));
                entries.shrink_to(2 * entries.len());
                if entries.is_empty() {
                    *occupied &= !(1 << place);
                }
            }
        }
    }

    /// How many entries there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.slot.iter().flatten().map(Vec::len).sum()
    }

    /// When a turn of the level below has ended, spreads what this level held for it.
    fn bring_down(&mut self, level: usize) {
        let shift = LEVEL_BITS * level as u32;
        if self.tick & ((1 << shift) - 1) != 0 {
            return;
        }
        let place = place(level, self.tick);
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

/// The first tick at which what is wanted at `at` is not woken before its time.
fn due(at: Instant) -> u64 {
    (at.nanos() >> TICK_BITS) + 1
}

/// Which slot of its level holds a tick.
fn place(level: usize, tick: u64) -> usize {
    (tick >> (LEVEL_BITS * level as u32)) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn run_until(wheel: &mut Wheel<u32>, now: Instant) -> Vec<u32> {
        let mut woken = Vec::new();
        wheel.advance(now, |key, at| {
            assert!(at <= now, "{key} woken at {now}, before {at}");
            woken.push(key);
            None
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

    #[test]
    fn of_few_it_tells_exactly_when_the_first_comes_up() {
        let mut wheel = Wheel::new(Instant::ZERO);
        for ms in [40, 200, 5_000, 900_000, 15_000_000] {
            let at = Instant::from_millis(ms);
            wheel.arm(1, at);
            let next = wheel.next().unwrap();
            assert!(next > at && next.since(at) <= Duration::from_nanos(1 << TICK_BITS), "{ms} ms: {next}");
            wheel.revise(next, |_, _| None);
            assert_eq!(wheel.next(), None, "{ms} ms");
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Arm(u64),
        Revise(u64, u64),
        Advance(u64),
        /// As long as it says.
        Sleep,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let us = || prop_oneof![0..5_000u64, 0..300_000u64, 0..30_000_000_000u64];
        let step = prop_oneof![
            4 => us().prop_map(Step::Arm),
            1 => (0..20_000u64, us()).prop_map(|(within, after)| Step::Revise(within, after)),
            1 => us().prop_map(Step::Advance),
            2 => Just(Step::Sleep),
        ];
        prop::collection::vec(step, 1..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Beside a list that is searched.
        #[test]
        fn everybody_is_woken_within_two_ticks_and_nobody_early(steps in steps()) {
            let tick = Duration::from_nanos(1 << TICK_BITS);
            let mut now = Instant::from_millis(77);
            let mut wheel = Wheel::new(now);
            // Each entry has a name of its own.
            let (mut names, mut want) = (0.., BTreeMap::new());
            for step in steps {
                match step {
                    Step::Arm(after) => {
                        let (name, at) = (names.next().unwrap(), now + Duration::from_micros(after));
                        want.insert(name, at);
                        wheel.arm(name, at);
                    }
                    Step::Revise(within, after) => wheel.revise(now + Duration::from_micros(within), |name, at| {
                        assert_eq!(want[&name], at);
                        // Every third goes, the others are put off.
                        let at = (name % 3 != 0).then_some(at + Duration::from_micros(after));
                        want.remove(&name);
                        at.map(|at| *want.entry(name).or_insert(at))
                    }),
                    Step::Advance(_) | Step::Sleep => {
                        now = match (step, wheel.next()) {
                            (Step::Advance(after), _) => now + Duration::from_micros(after),
                            (_, next) => next.map_or(now, |next| next.max(now)),
                        };
                        wheel.advance(now, |name, at| {
                            assert!(at <= now && want.remove(&name) == Some(at), "{name} woken at {now}, wanted at {at}");
                            None
                        });
                        prop_assert!(want.values().all(|at| *at + tick >= now), "somebody was forgotten");
                    }
                }
                if let Some(first) = want.values().min() {
                    let next = wheel.next().unwrap();
                    prop_assert!(next <= (*first + tick).max(now + tick), "it sleeps until {next}, and {first} is wanted");
                }
            }
        }
    }
}
