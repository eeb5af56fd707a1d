//! Chance that repeats: a generator whose whole state is its seed. SplitMix64 (G. L. Steele, D. Lea,
//! C. H. Flood, *Fast Splittable Pseudorandom Number Generators*, 2014): small, and good enough for
//! weather. It must never guard a secret.

use std::ops::RangeInclusive;

/// A seeded source of chance. Two with the same seed give the same numbers.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice that begin at `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub const fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; 0 for a limit of 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        ((self.word() as u128 * limit as u128) >> 64) as u64
    }

    /// A number of `range`, its ends included; the start of a range without numbers.
    pub const fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let width = range.end().saturating_sub(*range.start());
        *range.start() + self.below(width.saturating_add(1))
    }

    /// Whether something of this probability, from 0 to 1, happens this time.
    pub fn falls(&mut self, probability: f64) -> bool {
        // 53 bits are what an f64 holds exactly.
        ((self.word() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_paper() {
        let mut dice = Dice::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([dice.word(), dice.word(), dice.word()], expected);
    }

    #[test]
    fn what_is_sure_happens_and_what_is_impossible_does_not() {
        let mut dice = Dice::new(1);
        assert!((0..1_000).all(|_| dice.falls(1.0) && !dice.falls(0.0) && !dice.falls(f64::NAN)));
    }

    #[test]
    fn a_range_is_reached_from_end_to_end_and_never_left() {
        let mut dice = Dice::new(1);
        let mut seen = [0; 4];
        (0..400).for_each(|_| seen[dice.within(2..=5) as usize - 2] += 1);
        assert!(seen.iter().all(|times| (60..140).contains(times)), "{seen:?}");
        assert_eq!((dice.within(7..=7), dice.within(9..=u64::MAX) >= 9, dice.below(0)), (7, true, 0));
    }
}
