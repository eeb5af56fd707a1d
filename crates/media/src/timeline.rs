//! What became of a stream's pictures over time: counts for one stretch of time after the other, all equally long.
//! However long a film is, there are at most [`Timeline::MOST`] stretches: when they are used up, each two become one.

use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;

/// What became of the pictures within one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Pictures shown when they were due.
    pub shown: u64,
    /// Pictures that missed their deadlines.
    pub missed: u64,
    /// Pictures of which it turned out that they never came.
    pub lost: u64,
}

/// A stream's stretches of time, from its first picture on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    start: Option<Instant>,
    length: Duration,
    stretches: Vec<Stretch>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { start: None, length: Self::LEAST, stretches: Vec::new() }
    }
}

impl Timeline {
    /// The most stretches.
    pub const MOST: usize = 256;
    /// How long a stretch is to begin with.
    pub const LEAST: Duration = Duration::from_millis(250);

    /// How long each stretch is.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// The stretches, from the first picture on.
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// The stretch of the moment `now`, to be counted in. One before the first counts as the first.
    pub(crate) fn at(&mut self, now: Instant) -> &mut Stretch {
        let start = *self.start.get_or_insert(now);
        let passed = now.since(start).as_nanos();
        while passed / self.length.as_nanos() >= Self::MOST as u128 {
            self.join();
        }
        let index = (passed / self.length.as_nanos()) as usize;
        if index >= self.stretches.len() {
            self.stretches.resize(index + 1, Stretch::default());
        }
        &mut self.stretches[index]
    }

    /// Each two stretches become one.
    fn join(&mut self) {
        self.length *= 2;
        let sum = |pair: &[Stretch]| Stretch {
            shown: pair.iter().map(|stretch| stretch.shown).sum(),
            missed: pair.iter().map(|stretch| stretch.missed).sum(),
            lost: pair.iter().map(|stretch| stretch.lost).sum(),
        };
        self.stretches = self.stretches.chunks(2).map(sum).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn pictures_count_in_the_stretch_that_they_fall_into() {
        let mut line = Timeline::default();
        line.at(at(1000)).shown += 1;
        line.at(at(1249)).missed += 1;
        line.at(at(1750)).lost += 2;
        line.at(at(900)).shown += 1;
        let [shown, missed, lost] =
            [Stretch { shown: 2, missed: 1, lost: 0 }, Stretch::default(), Stretch::default()];
        assert_eq!(line.stretches(), [shown, missed, lost, Stretch { lost: 2, ..lost }]);
    }

    #[test]
    fn a_day_takes_no_more_room_than_a_minute_and_loses_no_count() {
        let mut line = Timeline::default();
        for second in 0..86_400 {
            line.at(at(second * 1000)).shown += 30;
        }
        assert!(line.stretches().len() <= Timeline::MOST, "{}", line.stretches().len());
        assert!(line.length() * Timeline::MOST as u32 >= Duration::from_secs(86_400));
        assert_eq!(line.stretches().iter().map(|stretch| stretch.shown).sum::<u64>(), 30 * 86_400);
        // What lies in the far future, too.
        line.at(at(u64::MAX / 2_000_000)).lost += 1;
        assert!(line.stretches().len() <= Timeline::MOST);
    }
}
