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
    // Of the last slot that was seen: stamps wrap, slots do not.
    seen: Option<Seen>,
}

/// A picture's place.
#[derive(Clone, Copy, Debug)]
struct Seen {
    stamp: u32,
    slot: u64,
    // By how much the stamp is after its slot, of [`SLOT`] parts. Kept, so that a rate that is not quite the stream's
    // does not lead away from its stamps.
    after: i64,
}

/// Parts of a slot: ticks of a second, by thousandths of a picture.
const SLOT: i64 = TICKS as i64 * 1000;
/// A stamp that is nearer to its slot than one of so many parts of it is that slot's: ticks are whole, and rates are
/// told in thousandths.
const NEAR: i64 = 4096;

/// The slot of picture number 0, or of the first tick seen: far from zero, for pictures may come
/// that are shown before it.
pub(crate) const FIRST: u64 = 1 << 32;

impl Slots {
    /// No picture has been seen yet.
    pub const fn new(stamps: Stamps) -> Self {
        Self { stamps, seen: None }
    }

    /// The stream's own rate is `rate`: what ticks are counted by, from the last slot on.
    pub fn set_own(&mut self, rate: Rate) {
        if let Stamps::Ticks(known) = &mut self.stamps {
            let before = core::mem::replace(known, rate);
            let after = |seen: Seen| seen.after * i64::from(rate.0) / i64::from(before.0);
            self.seen = self.seen.map(|seen| Seen { after: after(seen), ..seen });
        }
    }

    /// The stamp of the picture in `slot`, once one was seen.
    pub fn stamp_of(&self, slot: u64) -> Option<u32> {
        let seen = self.seen?;
        let distance = slot.wrapping_sub(seen.slot) as i64;
        let moved = match self.stamps {
            Stamps::Numbers => distance,
            Stamps::Ticks(rate) => {
                nearest(distance.saturating_mul(SLOT).saturating_sub(seen.after), i64::from(rate.0))
            }
        };
        Some(seen.stamp.wrapping_add(moved as u32))
    }

    /// The stamp of the last picture that was seen.
    pub(crate) fn last_stamp(&self) -> Option<u32> {
        self.seen.map(|seen| seen.stamp)
    }

    /// The slot of a picture. Stamps near each other give slots near each other, also where they
    /// wrap.
    pub fn of(&mut self, stamp: u32) -> u64 {
        let here = self.place(stamp);
        if self.seen.is_none_or(|seen| here.slot > seen.slot) {
            self.seen = Some(here);
        }
        here.slot
    }

    /// The same of a picture that may never come.
    pub fn look(&self, stamp: u32) -> u64 {
        self.place(stamp).slot
    }

    /// Stamps jump: the picture of this one is in `slot`.
    pub fn jump(&mut self, stamp: u32, slot: u64) {
        self.seen = Some(Seen { stamp, slot, after: 0 });
    }

    fn place(&self, stamp: u32) -> Seen {
        let Some(seen) = self.seen else {
            let slot = FIRST + if self.stamps == Stamps::Numbers { u64::from(stamp) } else { 0 };
            return Seen { stamp, slot, after: 0 };
        };
        let distance = i64::from(stamp.wrapping_sub(seen.stamp) as i32);
        let (moved, after) = match self.stamps {
            Stamps::Numbers => (distance, 0),
            Stamps::Ticks(rate) => {
                let parts = distance * i64::from(rate.0) + seen.after;
                let moved = nearest(parts, SLOT);
                (moved, parts - moved * SLOT)
            }
        };
        let after = if after.abs() < SLOT / NEAR { 0 } else { after };
        Seen { stamp, slot: seen.slot.saturating_add_signed(moved), after }
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
    fn a_rate_that_is_not_the_streams_leads_no_farther_from_its_stamps_than_half_a_slot() {
        let mut slots = Slots::new(Stamps::Ticks(Rate::USUAL));
        let first = slots.of(9);
        for number in 1..1000u64 {
            // Of 25 pictures a second the tenth is due in 0.4 s, which is slot 12 of 30 in a second.
            let exact = number as f64 * 1.2;
            let slot = slots.of(9 + number as u32 * 3600) - first;
            assert!((slot as f64 - exact).abs() <= 0.51, "{number}: {slot}");
        }
    }

    #[test]
    fn another_rate_counts_from_the_last_slot_on() {
        let mut slots = Slots::new(Stamps::Ticks(Rate::from_millis(50_000).unwrap()));
        let first = slots.of(0);
        assert_eq!([1800, 3600].map(|stamp| slots.of(stamp)), [first + 1, first + 2]);
        slots.set_own(Rate::from_millis(25_000).unwrap());
        assert_eq!([7200, 10_800].map(|stamp| slots.of(stamp)), [first + 3, first + 4]);
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
