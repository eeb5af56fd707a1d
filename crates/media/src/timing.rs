//! When each picture is due: the relation between a stream's stamps and the display's clock. A
//! stream's pictures fall into slots, one for each period of the rate it is played at; the rate is
//! the viewer's and need not be the stream's own (slow motion, Scout §4.3).

use core::time::Duration;
use silk_instant::Instant;

/// Thousandths of a picture a second: 29.97 pictures a second are 29 970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u32);

impl Rate {
    /// Thirty pictures a second, where nobody says otherwise.
    pub const USUAL: Self = Self(30_000);

    /// `millis` thousandths of a picture a second; `None` below one thousandth or above a thousand
    /// pictures.
    pub const fn from_millis(millis: u32) -> Option<Self> {
        if millis == 0 || millis > 1_000_000 { None } else { Some(Self(millis)) }
    }

    /// In thousandths of a picture a second.
    pub const fn millis(self) -> u32 {
        self.0
    }

    /// Ticks of RTP's clock from one picture to the next.
    pub const fn ticks(self) -> u32 {
        (TICKS * 1000 / self.0 as u64) as u32
    }

    /// The time of `slots` pictures.
    pub fn time_of(self, slots: u64) -> Duration {
        let nanos = u128::from(slots) * 1_000_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Ticks of a second (RFC 2250 §3.1).
pub(crate) const TICKS: u64 = 90_000;

/// How a stream counts its pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// A number for each picture (MFLOW).
    Numbers,
    /// Ticks of 1/90 000 s (RTP, RFC 2250 §3.1), at this rate of the stream itself.
    Ticks(Rate),
}

/// The slots of a stream, beginning with its first picture.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    stamps: Stamps,
    // A stamp that was seen, and its slot: stamps wrap, slots do not.
    seen: Option<(u32, u64)>,
}

/// The slot of picture number 0, or of the first tick seen: far from zero, for pictures may come
/// that are shown before it.
pub(crate) const FIRST: u64 = 1 << 32;

impl Slots {
    /// No picture has been seen yet.
    pub const fn new(stamps: Stamps) -> Self {
        Self { stamps, seen: None }
    }

    /// The stream's own rate is `rate`: what ticks are counted by, before the first picture.
    pub fn set_own(&mut self, rate: Rate) {
        if let (Stamps::Ticks(known), None) = (&mut self.stamps, self.seen) {
            *known = rate;
        }
    }

    /// The stamp of the picture in `slot`, once one was seen.
    pub fn stamp_of(&self, slot: u64) -> Option<u32> {
        let (stamp, seen) = self.seen?;
        let distance = slot.wrapping_sub(seen) as i64;
        let moved = match self.stamps {
            Stamps::Numbers => distance,
            Stamps::Ticks(rate) => nearest(distance.saturating_mul(90_000_000), i64::from(rate.0)),
        };
        Some(stamp.wrapping_add(moved as u32))
    }

    /// The slot of a picture. Stamps near each other give slots near each other, also where they
    /// wrap.
    pub fn of(&mut self, stamp: u32) -> u64 {
        let here = self.look(stamp);
        if self.seen.is_none_or(|(_, slot)| here > slot) {
            self.seen = Some((stamp, here));
        }
        here
    }

    /// The same of a picture that may never come.
    pub fn look(&self, stamp: u32) -> u64 {
        let Some((last, slot)) = self.seen else {
            return FIRST + if self.stamps == Stamps::Numbers { u64::from(stamp) } else { 0 };
        };
        let distance = i64::from(stamp.wrapping_sub(last) as i32);
        let moved = match self.stamps {
            Stamps::Numbers => distance,
            Stamps::Ticks(rate) => nearest(distance * i64::from(rate.0), 90_000_000),
        };
        slot.saturating_add_signed(moved)
    }
}

fn nearest(numerator: i64, denominator: i64) -> i64 {
    (numerator + numerator.signum() * denominator / 2) / denominator
}

/// When the slots are due, once the display has begun.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// When slot `origin` is due.
    pub epoch: Instant,
    /// The slot that the display began with.
    pub origin: u64,
    /// The rate it is played at.
    pub rate: Rate,
}

impl Timing {
    /// The first slot that is due at `now` or later.
    pub fn slot_at(&self, now: Instant) -> u64 {
        let passed = now.since(self.epoch).as_nanos() * u128::from(self.rate.0);
        self.origin + u64::try_from(passed.div_ceil(1_000_000_000_000)).unwrap_or(u64::MAX >> 1)
    }

    /// When a slot is due; the epoch for one before the origin.
    pub fn due(&self, slot: u64) -> Instant {
        self.epoch + self.rate.time_of(slot.saturating_sub(self.origin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_slots_and_wrap() {
        let mut slots = Slots::new(Stamps::Numbers);
        let first = slots.of(u32::MAX - 1);
        let found: alloc::vec::Vec<_> = [u32::MAX, 1, 0, u32::MAX - 2].map(|stamp| slots.of(stamp)).into();
        assert_eq!(found, [first + 1, first + 3, first + 2, first - 1]);
    }

    #[test]
    fn an_hour_of_ticks_stays_in_its_slots() {
        let ntsc = Rate::from_millis(29_970).unwrap();
        let mut slots = Slots::new(Stamps::Ticks(ntsc));
        let first = slots.of(77);
        for number in 1..108_000u64 {
            let stamp = 77u32.wrapping_add((number * 3003) as u32);
            assert_eq!(slots.of(stamp), first + number);
        }
    }

    #[test]
    fn a_slot_has_the_stamp_of_its_picture() {
        for stamps in [Stamps::Numbers, Stamps::Ticks(Rate::from_millis(25_000).unwrap())] {
            let mut slots = Slots::new(stamps);
            assert_eq!(slots.stamp_of(7), None);
            for stamp in [u32::MAX - 7199, u32::MAX - 3599, 0, 3600] {
                let slot = slots.of(stamp);
                assert_eq!(slots.stamp_of(slot), Some(stamp));
            }
        }
    }

    #[test]
    fn dues_do_not_drift() {
        let timing = Timing { epoch: Instant::ZERO, origin: 5, rate: Rate::from_millis(29_970).unwrap() };
        assert_eq!(timing.due(5 + 29_970).nanos(), 1_000_000_000_000);
        assert_eq!(timing.due(2), Instant::ZERO);
        for slot in [5, 6, 77, 40_000] {
            assert_eq!(
                timing.slot_at(Instant::from_nanos(timing.due(slot).nanos() - u64::from(slot > 5))),
                slot
            );
        }
    }
}
