//! An average of what is measured again and again: how long a message takes, or a round trip.

use core::num::NonZeroU64;

/// An exponentially weighted average of times, an eighth for the newest. That of a message's is kept by the *measure*
/// transformation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Average(
    // One more than it is, so that "not measured" takes no room beside it.
    NonZeroU64,
);

impl Default for Average {
    fn default() -> Self {
        Self(NonZeroU64::MIN)
    }
}

impl Average {
    /// Takes one more measurement, in ns, into the average.
    pub fn add(&mut self, ns: u64) {
        let before = self.ns();
        let now = if before == 0 { ns } else { before - before / 8 + ns / 8 };
        self.0 = NonZeroU64::MIN.saturating_add(now);
    }

    /// The average, in ns.
    pub fn ns(self) -> u64 {
        self.0.get() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_follows_slowly() {
        let mut average = Average::default();
        average.add(800);
        average.add(1600);
        assert_eq!(average.ns(), 900);
    }
}
