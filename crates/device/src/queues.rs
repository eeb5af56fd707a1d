//! A set of hardware queues, of all the devices that an end is: which ones packets came by. A device has sixteen at
//! most that can be told apart, and there are four devices; it must never claim a queue for one that is not told apart.

use std::ops::{BitOr, BitOrAssign};

/// Queues of a device that have a bit each: those from this one on share the last.
const TOLD_APART: u32 = 16;
/// Devices that have bits: those from this one on share the last one's.
const DEVICES: u32 = u64::BITS / TOLD_APART;

/// The set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues(u64);

impl Queues {
    /// Every queue of every device: where packets came by is not known.
    pub const ALL: Self = Self(u64::MAX);

    /// One queue of a device, both numbered from 0.
    pub fn one(device: u32, queue: u32) -> Self {
        Self(1 << queue.min(TOLD_APART - 1)).on(device)
    }

    /// Every queue of a device.
    pub fn all_of(device: u32) -> Self {
        Self::ALL.on(device)
    }

    /// The queues that these are, said by a device that thinks it is alone, where it is the one with this number.
    #[must_use]
    pub fn on(self, device: u32) -> Self {
        let own = self.0 & ((1 << TOLD_APART) - 1);
        Self(own << (device.min(DEVICES - 1) * TOLD_APART))
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether some are in both sets.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether all of them are in the other set.
    pub fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

impl BitOr for Queues {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Queues {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_of_its_device_alone() {
        assert!(Queues::one(1, 3).is_within(Queues::all_of(1)));
        for other in [Queues::all_of(0), Queues::all_of(2), Queues::all_of(3), Queues::one(1, 2)] {
            assert!(!Queues::one(1, 3).meets(other) && !Queues::one(1, 3).is_within(other));
        }
    }

    #[test]
    fn a_device_alone_is_the_first_until_it_is_told_which_it_is() {
        let both = Queues::one(0, 2) | Queues::one(0, 5);
        assert_eq!(both.on(3), Queues::one(3, 2) | Queues::one(3, 5));
        assert_eq!(Queues::ALL.on(2), Queues::all_of(2));
        assert_eq!((0..4).map(Queues::all_of).fold(Queues::default(), |all, of| all | of), Queues::ALL);
    }

    #[test]
    fn what_has_no_bit_shares_one() {
        assert_eq!(Queues::one(0, 15), Queues::one(0, 4095));
        assert_eq!(Queues::one(3, 0), Queues::one(7, 0));
    }

    #[test]
    fn none_is_within_all_and_meets_nothing() {
        let none = Queues::default();
        assert!(none.is_empty() && none.is_within(Queues::one(0, 0)) && !none.meets(Queues::ALL));
        assert!(!Queues::one(3, 15).is_empty());
    }
}
