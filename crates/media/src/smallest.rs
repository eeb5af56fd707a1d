//! What a picture costs however small it is (Scout §4.4): waking, and caches that have gone cold. No stream tells that
//! part of its pictures' cost apart from what their size costs, and it changes with what else the processor
//! does. So a picture of one macroblock, which nobody sees, is decoded now and then, in the moment at which a
//! stream's own picture would have been.

use crate::decoder::{Decoder, Unit};
use alloc::boxed::Box;
use core::time::Duration;
use silk_instant::Instant;

/// A grey picture of 16 by 16 samples that stands alone, as MPEG-1 (ISO 11172-2 §2.4.2): sequence header, group,
/// picture, slice.
const FIRST: &[u8] = &[
    0, 0, 1, 0xb3, 1, 0, 0x10, 0x13, 0xff, 0xff, 0xe0, 0x18, 0, 0, 1, 0xb8, 0, 8, 0, 0x40, 0, 0, 1, 0, 0,
    0x0f, 0xff, 0xf8, 0, 0, 1, 1, 0x13, 0x5a, 0x52, 0x91, 0x10,
];
/// The same again, as a P picture whose macroblock is the one before.
const NEXT: &[u8] = &[0, 0, 1, 0, 0, 0x57, 0xff, 0xf8, 0x80, 0, 0, 1, 1, 0x12, 0x70];
/// The time from one to the next, of the clock: a thousandth of the processor goes to them at most.
const BETWEEN: Duration = Duration::from_millis(50);
/// What a picture takes beside decoding is a mean over so many.
const OVER: f64 = 32.0;

/// The stream of one macroblock.
pub struct Smallest {
    decoder: Box<dyn Decoder>,
    coming: u32,
    due: Instant,
    // What a picture takes beside decoding, ns.
    beside: f64,
}

impl Smallest {
    /// One that is decoded with `decoder`, of MPEG video; `None` where that cannot.
    pub fn new(decoder: Box<dyn Decoder>) -> Option<Self> {
        let mut this = Self { decoder, coming: 0, due: Instant::ZERO, beside: 0.0 };
        this.decode(FIRST).then_some(this)
    }

    /// Decodes the next picture; whether it could.
    pub fn again(&mut self) -> bool {
        self.decode(NEXT)
    }

    /// It is time for the next one; then the next but one is due later.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let due = self.due <= now;
        if due {
            self.due = now + BETWEEN;
        }
        due
    }

    /// A stream's picture has taken so long beside decoding, ns.
    pub(crate) fn add_beside(&mut self, nanos: f64) {
        self.beside += (nanos - self.beside) / OVER;
    }

    /// What one that took `decoding` nanoseconds to decode would have taken a path, ns.
    pub(crate) fn whole(&self, decoding: f64) -> f64 {
        decoding + self.beside
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        let unit = Unit { bytes, stamp: self.coming, first: true, last: true, gap: false };
        self.coming = self.coming.wrapping_add(1);
        self.decoder.decode(unit, &mut |_| ()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::DecodeError;
    use crate::picture::Picture;

    /// Takes what begins as MPEG does, or nothing.
    struct Picky(bool);

    impl Decoder for Picky {
        fn decode(&mut self, unit: Unit<'_>, _: &mut dyn FnMut(Box<dyn Picture>)) -> Result<(), DecodeError> {
            (self.0 && unit.bytes.starts_with(&[0, 0, 1])).then_some(()).ok_or(DecodeError::Malformed)
        }

        fn finish(&mut self, _: &mut dyn FnMut(Box<dyn Picture>)) {}

        fn memory(&self) -> u64 {
            0
        }
    }

    #[test]
    fn one_is_due_now_and_then_and_costs_what_is_beside_decoding_too() {
        assert!(Smallest::new(Box::new(Picky(false))).is_none());
        let mut smallest = Smallest::new(Box::new(Picky(true))).unwrap();
        assert!(smallest.again());
        let due = [0, 49, 50, 60, 300, 301].map(|ms| smallest.is_due(Instant::from_millis(ms)));
        assert_eq!(due, [true, false, true, false, true, false]);
        (0..1000).for_each(|_| smallest.add_beside(12_000.0));
        assert!((smallest.whole(30_000.0) - 42_000.0).abs() < 1.0);
    }
}
