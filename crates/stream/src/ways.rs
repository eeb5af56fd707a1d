//! Whether the machine knows a way to everywhere: what a program needs to know to be told at once that none leads to
//! where it sends a datagram (`ENETUNREACH`), without a question for each.

/// A word of [`crate::Header::ways`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways(u32);

/// The bits for IPv4 and IPv6; those above count.
const BITS: u32 = 2;

const fn bit(six: bool) -> u32 {
    1 << six as u32
}

impl Ways {
    /// The one behind this: whether some way leads to every address of IPv4, and of IPv6.
    #[must_use]
    pub const fn then(self, everywhere: [bool; 2]) -> Self {
        let count = (self.0 >> BITS).wrapping_add(1) << BITS;
        let [four, six] = everywhere;
        Self(count | (four as u32 * bit(false)) | (six as u32 * bit(true)))
    }

    /// As it stands in shared memory.
    pub const fn of(word: u32) -> Self {
        Self(word)
    }

    /// The same for shared memory.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// Whether some way leads to every address of IPv4, or of IPv6 (`six`). Where not, there may be one all the same.
    #[inline]
    pub const fn lead_everywhere(self, six: bool) -> bool {
        self.0 & bit(six) != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_differs_from_the_one_before() {
        let first = Ways::default().then([true, false]);
        assert_eq!([false, true].map(|six| first.lead_everywhere(six)), [true, false]);
        let second = first.then([true, false]);
        assert_ne!(first, second, "what was asked before is asked again");
        let third = Ways::of(u32::MAX).then([false, true]);
        assert_eq!([false, true].map(|six| third.lead_everywhere(six)), [false, true]);
        assert_eq!(Ways::of(third.word()), third);
    }
}
