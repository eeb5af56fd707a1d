//! Sequence numbers: a 32-bit circle on which only distances below half the circle have an order
//! (RFC 9293 §3.4). They have no `Ord` on purpose, because "before" on a circle is not transitive;
//! nothing here may compare two raw values. What is said here is proven in `seq_tests`, for every difference that
//! there is, which is why all of it is `inline`: a call takes longer than the operation.

use core::ops::{Add, AddAssign, Sub};

/// A TCP sequence or acknowledgement number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNumber(u32);

impl SeqNumber {
    /// The sequence number whose wire value is `raw`.
    #[inline]
    pub const fn new(raw: u32) -> Self {
        Self(raw)
    }

    /// The value on the wire.
    #[inline]
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// Whether this comes before `other`: `self < other` in RFC 9293's arithmetic.
    #[inline]
    pub const fn before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether this comes after `other`.
    #[inline]
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// `self =< other`.
    #[inline]
    pub const fn at_or_before(self, other: Self) -> bool {
        !other.before(self)
    }

    /// `self >= other`.
    #[inline]
    pub const fn at_or_after(self, other: Self) -> bool {
        !self.before(other)
    }

    /// The later of the two.
    #[inline]
    pub const fn max(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }

    /// The earlier of the two.
    #[inline]
    pub const fn min(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }

    /// How many numbers lie from `earlier` up to this one; zero when it is not after it.
    #[inline]
    pub const fn since(self, earlier: Self) -> u32 {
        if self.before(earlier) { 0 } else { self.0.wrapping_sub(earlier.0) }
    }
}

impl Add<u32> for SeqNumber {
    type Output = Self;
    #[inline]
    fn add(self, numbers: u32) -> Self {
        Self(self.0.wrapping_add(numbers))
    }
}

impl AddAssign<u32> for SeqNumber {
    #[inline]
    fn add_assign(&mut self, numbers: u32) {
        *self = *self + numbers;
    }
}

impl Sub<u32> for SeqNumber {
    type Output = Self;
    #[inline]
    fn sub(self, numbers: u32) -> Self {
        Self(self.0.wrapping_sub(numbers))
    }
}

/// The distance around the circle; meaningful when `self` is known not to come before `earlier`.
impl Sub for SeqNumber {
    type Output = u32;
    #[inline]
    fn sub(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seq(raw: u32) -> SeqNumber {
        SeqNumber::new(raw)
    }

    #[test]
    fn order_survives_the_wrap() {
        assert!(seq(u32::MAX).before(seq(0)));
        assert!(seq(3).after(seq(u32::MAX - 3)));
        assert!(seq(7).at_or_before(seq(7)) && seq(7).at_or_after(seq(7)));
        assert_eq!(seq(u32::MAX).max(seq(2)), seq(2));
        assert_eq!(seq(u32::MAX).min(seq(2)), seq(u32::MAX));
    }

    #[test]
    fn distances_survive_the_wrap() {
        assert_eq!(seq(4) - seq(u32::MAX), 5);
        assert_eq!(seq(u32::MAX) + 5, seq(4));
        assert_eq!(seq(4) - 5, seq(u32::MAX));
        assert_eq!(seq(4).since(seq(9)), 0);
        assert_eq!(seq(9).since(seq(4)), 5);
    }
}

#[cfg(test)]
#[path = "seq_tests.rs"]
mod proof;
