//! The rate of a stream of H.264 by its stamps (RFC 6184 §5.1: when each picture was sampled). Streams of cameras
//! often do not tell their rate, and some tell another than theirs.

use crate::timing::{Rate, TICKS};

/// Stamps farther apart than this, in ticks, are no rate: something is missing, or the clock was set.
const APART: u32 = 10 * TICKS as u32;
/// Steps from one picture to the next, of which the middle one is believed.
const STEPS: usize = 8;
/// A rate that differs by less than one of so many parts from a known one is that.
const PARTS: u32 = 16;

/// What the stamps tell, of the pictures in the order of showing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cadence {
    last: Option<u32>,
    steps: [u32; STEPS],
    // How many of them there are.
    count: usize,
    // The stream's rate as it tells it, and as it is.
    told: Option<Rate>,
    rate: Rate,
    // It was told, or seen in as many steps as there may be.
    firm: bool,
}

impl Cadence {
    /// A stream that is taken to have this rate until it is seen.
    pub fn new(rate: Rate) -> Self {
        Self { last: None, steps: [0; STEPS], count: 0, told: None, rate, firm: false }
    }

    /// The stream tells its rate: whether that is another than it told before.
    pub fn tells(&mut self, rate: Rate) -> bool {
        let news = self.told.replace(rate) != Some(rate);
        if news {
            (self.rate, self.firm, self.count) = (rate, true, 0);
        }
        news
    }

    /// The next picture has this stamp. The stream's rate, where that turns out to be another.
    pub fn note(&mut self, stamp: u32) -> Option<Rate> {
        let step = stamp.wrapping_sub(self.last.replace(stamp)?);
        if !(1..=APART).contains(&step) {
            return None;
        }
        self.steps[self.count] = step;
        self.count += 1;
        // The first step of all is better than nothing.
        if self.count < STEPS && (self.firm || self.count > 1) {
            return None;
        }
        let steps = &mut self.steps[..self.count];
        steps.sort_unstable();
        let middle = steps[(self.count - 1) / 2];
        let full = self.count == STEPS;
        self.count %= STEPS;
        let known = self.rate.ticks();
        let near = if self.firm { known / PARTS } else { 0 };
        self.firm |= full;
        let rate = Rate::from_millis((TICKS * 1000 / u64::from(middle)) as u32)?;
        (middle.abs_diff(known) > near).then(|| self.rate = rate)?;
        Some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn rate(millis: u32) -> Rate {
        Rate::from_millis(millis).unwrap()
    }

    /// The rates that steps from picture to picture tell.
    fn found(cadence: &mut Cadence, steps: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let mut stamp = cadence.last.unwrap_or(u32::MAX - 9000);
        cadence.note(stamp);
        let mut note = |step| {
            stamp = stamp.wrapping_add(step);
            cadence.note(stamp).map(Rate::millis)
        };
        steps.into_iter().filter_map(&mut note).collect()
    }

    #[test]
    fn a_stream_that_tells_nothing_has_the_rate_of_its_stamps() {
        for (step, millis) in [(1500, 60_000), (1800, 50_000), (3600, 25_000), (3003, 29_970)] {
            assert_eq!(found(&mut Cadence::new(Rate::USUAL), [step; 100]), [millis]);
        }
        assert_eq!(found(&mut Cadence::new(Rate::USUAL), [3000; 100]), []);
    }

    #[test]
    fn lost_pictures_and_stamps_that_are_not_even_hardly_matter() {
        let uneven = [3900, 3400, 3700, 3600, 7300, 3500, 3580, 3650];
        let rates = found(&mut Cadence::new(Rate::USUAL), uneven.repeat(20));
        assert_eq!(rates, [23_076, 25_000]);
        assert_eq!(found(&mut Cadence::new(Rate::USUAL), [0, 1 << 31, APART + 1]), []);
    }

    #[test]
    fn what_is_told_is_believed_unless_the_stamps_say_something_else() {
        let mut cadence = Cadence::new(Rate::USUAL);
        assert!(cadence.tells(rate(25_000)) && !cadence.tells(rate(25_000)));
        assert_eq!(found(&mut cadence, [3700; 50]), []);
        assert_eq!(found(&mut cadence, [1800; 50]), [50_000]);
        assert!(!cadence.tells(rate(25_000)), "it says that again and again");
        assert!(cadence.tells(rate(30_000)));
    }
}
