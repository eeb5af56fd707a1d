//! What members have used of the processor lately, to tell those that use less than their part of it from those that
//! use more. Time is cut into stretches; the present one and the one before it count.

use crate::reserve::WHOLE;
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;

/// A stretch: what was used up to two of them ago counts.
const STRETCH: Duration = Duration::from_millis(500);

/// Use of the processor, lately.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    members: Vec<Tally>,
    all: Tally,
    /// Members that used any: in the stretch before, and in this one.
    users: [u32; 2],
}

/// Nanoseconds used.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// The stretch that `this` is of.
    stretch: u64,
    before: u64,
    this: u64,
}

impl Tally {
    /// As it is in a later stretch, or in the same.
    fn at(self, stretch: u64) -> Self {
        match stretch.saturating_sub(self.stretch) {
            0 => self,
            1 => Self { stretch, before: self.this, this: 0 },
            _ => Self { stretch, before: 0, this: 0 },
        }
    }

    fn sum(self) -> u64 {
        self.before.saturating_add(self.this)
    }
}

fn stretch_of(now: Instant) -> u64 {
    now.nanos() / STRETCH.as_nanos() as u64
}

impl Recent {
    /// Makes room for members below `len`.
    pub(crate) fn reach(&mut self, len: usize) {
        if self.members.len() < len {
            self.members.resize(len, Tally::default());
        }
    }

    /// `member` has used so much until `now`.
    pub(crate) fn charge(&mut self, member: usize, used: Duration, now: Instant) {
        let used = u64::try_from(used.as_nanos()).unwrap_or(u64::MAX);
        self.turn(stretch_of(now));
        let stretch = self.all.stretch;
        let Some(tally) = self.members.get_mut(member).filter(|_| used > 0) else { return };
        *tally = tally.at(stretch);
        self.users[1] += u32::from(tally.this == 0);
        tally.this = tally.this.saturating_add(used);
        self.all.this = self.all.this.saturating_add(used);
    }

    /// Forgets what `member` has used; it is another one's number from now on.
    pub(crate) fn forget(&mut self, member: usize) {
        if let Some(tally) = self.members.get_mut(member) {
            *tally = Tally { stretch: self.all.stretch, ..Tally::default() };
        }
    }

    /// Whether `member` has used no more than an equal part of what all have that used any, or than so many millionths of the processor,
    /// which it has `reserved`.
    pub(crate) fn is_light(&mut self, member: usize, reserved: u32, now: Instant) -> bool {
        self.turn(stretch_of(now));
        let used = self.members.get(member).map_or(0, |tally| tally.at(self.all.stretch).sum());
        let users = self.users[0].max(self.users[1]);
        used.saturating_mul(users.into()) <= self.all.sum() || used <= self.part(reserved, now)
    }

    /// So many millionths of the processor, as long as use of it counts, ns.
    fn part(&self, millionths: u32, now: Instant) -> u64 {
        let since = u128::from(self.all.stretch.saturating_sub(1)) * STRETCH.as_nanos();
        let part = u128::from(now.nanos()).saturating_sub(since) * u128::from(millionths) / u128::from(WHOLE);
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// It is this stretch now; one that has passed is not returned to.
    fn turn(&mut self, stretch: u64) {
        if stretch > self.all.stretch {
            let before = if stretch - self.all.stretch == 1 { self.users[1] } else { 0 };
            self.users = [before, 0];
            self.all = self.all.at(stretch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(members: &[(usize, u64, u64)]) -> Recent {
        let mut recent = Recent::default();
        recent.reach(8);
        for &(member, millis, at) in members {
            recent.charge(member, Duration::from_millis(millis), Instant::from_millis(at));
        }
        recent
    }

    #[test]
    fn who_uses_less_than_an_equal_part_is_light() {
        let mut recent = used(&[(0, 40, 100), (1, 50, 200), (2, 2, 300)]);
        let now = Instant::from_millis(400);
        assert_eq!([0, 1, 2, 3].map(|member| recent.is_light(member, 0, now)), [false, false, true, true]);
    }

    #[test]
    fn what_was_used_counts_for_a_stretch_more_and_no_longer() {
        let mut recent = used(&[(0, 40, 100), (1, 10, 200)]);
        assert!(!recent.is_light(0, 0, Instant::from_millis(999)));
        assert!(recent.is_light(0, 0, Instant::from_millis(1000)));
        recent.charge(1, Duration::from_millis(1), Instant::from_millis(1001));
        assert!(recent.is_light(0, 0, Instant::from_millis(1002)));
    }

    #[test]
    fn who_uses_what_it_has_reserved_is_light() {
        // Use counts since 500 ms: at 1 250 ms a tenth of that is 75 ms.
        let mut recent = used(&[(0, 75, 1_100), (1, 5, 1_200)]);
        let is_light = |reserved| recent.is_light(0, reserved, Instant::from_millis(1_250));
        assert_eq!([0, 99_999, 100_000].map(is_light), [false, false, true]);
    }

    #[test]
    fn time_that_goes_back_and_members_that_nobody_knows_do_no_harm() {
        let mut recent = used(&[(0, 40, 5000), (1, 10, 100), (77, 1, 5000)]);
        assert!(!recent.is_light(0, 0, Instant::from_millis(100)) && recent.is_light(77, 0, Instant::ZERO));
        recent.forget(0);
        recent.forget(77);
        assert!(recent.is_light(0, 0, Instant::from_millis(5000)));
    }
}
