//! Memory that nobody needs goes back to Linux: that of rings which no connection has, and of the
//! rings of connections that have been silent. Once in a period everything is looked at, a little at a
//! time, so that no packet waits for it.

use crate::between::idle_memory::period;
use crate::between::names::{FamilyIndex, SocketName};
use crate::domain::engine::Engine;
use silk_instant::Instant;
use silk_stream::Left;
use std::ops::Bound::{Excluded, Unbounded};
use std::time::Duration;

/// Between two parts of the work.
const PAUSE: Duration = Duration::from_millis(1);
/// Sockets that are looked at in one part.
const SOCKETS: u32 = 256;
/// Rings that are given back in one part: each is a system call of some microseconds.
const RINGS: usize = 2;

/// What is looked at next.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// The sockets of a family, from this slot on.
    Sockets(FamilyIndex, u32),
    /// The rings that nobody has, of the family of this number or the next.
    Rings(FamilyIndex),
}

/// Where a period's looking begins.
const FIRST: Next = Next::Sockets(0, 0);

/// How far the looking has come.
#[derive(Debug)]
pub struct GivingBack {
    /// When it goes on; `FAR` while there is nothing to look at.
    pub at: Instant,
    next: Next,
    /// What was left of the free rings that were looked at in this period.
    left: Left,
    /// Memory is short.
    hurried: bool,
}

impl Default for GivingBack {
    fn default() -> Self {
        Self { at: Instant::FAR, next: FIRST, left: Left::Nothing, hurried: false }
    }
}

impl GivingBack {
    /// When there is something to do.
    pub fn due(&self) -> Option<Instant> {
        Some(self.at).filter(|at| *at != Instant::FAR)
    }

    /// A connection has begun: sooner or later there will be.
    pub fn wake(&mut self, now: Instant) {
        self.at = self.at.min(now + self.period());
    }

    /// Memory has become short, or is so no longer.
    pub fn hurry(&mut self, hurried: bool, now: Instant) {
        self.hurried = hurried;
        if self.at != Instant::FAR {
            self.wake(now);
        }
    }

    /// How long a period is now.
    pub fn period(&self) -> Duration {
        period(self.hurried)
    }
}

impl Engine {
    /// Does a part of the work, when it is due.
    pub(crate) fn give_back(&mut self, now: Instant) {
        if now < self.giving_back.at {
            return;
        }
        self.giving_back.at = now + PAUSE;
        match self.giving_back.next {
            Next::Sockets(family, slot) => {
                let next = self.look_at_sockets(family, slot);
                self.giving_back.next =
                    next.map_or(Next::Rings(0), |(family, slot)| Next::Sockets(family, slot));
            }
            Next::Rings(from) => self.look_at_free_rings(from, now),
        }
    }

    /// Looks at some sockets of a family from `slot` on; where to go on.
    fn look_at_sockets(&mut self, family: FamilyIndex, slot: u32) -> Option<(FamilyIndex, u32)> {
        let mut given = 0;
        for slot in slot..slot.saturating_add(SOCKETS) {
            if given >= RINGS {
                return Some((family, slot));
            }
            let path = self.sockets.get(SocketName { family, slot }).and_then(|socket| socket.path);
            if let Some(path) = path {
                given += self.end_of(path).map_or(0, |end| end.give_back());
            }
        }
        if slot.saturating_add(SOCKETS) < self.sockets.slots_of(family) {
            return Some((family, slot + SOCKETS));
        }
        let next = self.families.range((Excluded(family), Unbounded)).next();
        next.map(|(family, _)| (*family, 0))
    }

    /// Looks at the rings that nobody of a family has, until none of them is to be given back; the family's own period is over then.
    /// After the last family the period is.
    fn look_at_free_rings(&mut self, from: FamilyIndex, now: Instant) {
        let Some((family, end)) = self.families.range_mut(from..).next() else {
            let left = std::mem::replace(&mut self.giving_back.left, Left::Nothing);
            let is_over = left == Left::Nothing && self.sockets.is_empty();
            let period = self.giving_back.period();
            (self.giving_back.at, self.giving_back.next) =
                (if is_over { Instant::FAR } else { now + period }, FIRST);
            return;
        };
        let left = end.pool.give_back(RINGS);
        self.giving_back.next =
            Next::Rings(if left == Left::More { *family } else { family.saturating_add(1) });
        if left != Left::More {
            self.giving_back.left = self.giving_back.left.max(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::family_end::FamilyEnd;
    use crate::domain::rig;
    use silk_stream::{Arena, Sizes};
    use std::sync::Arc;

    #[test]
    fn a_family_with_much_to_give_back_takes_nothing_from_the_others_and_its_time() {
        let mut engine = rig::engine("[[class]]\nname = \"all\"\ndefault = true\n");
        // The first's have lain about for a period before; the second's were given back in this one.
        for (index, rings) in [(0, 10), (1, 3)] {
            let arena = Arena::create(Sizes { rings: 8 << 20, domains: 1 }).unwrap();
            let mut family = FamilyEnd::new(arena, Arc::from([]), (0, 1));
            let taken: Vec<_> = (0..rings).map(|_| family.pool.take_ring(4096).unwrap()).collect();
            taken.into_iter().for_each(|ring| family.pool.return_ring(ring));
            if index == 0 {
                assert_eq!(family.pool.give_back(RINGS), Left::Later, "its first period");
            }
            engine.families.insert(index, family);
        }
        engine.giving_back.next = Next::Rings(0);
        let (mut parts, mut now) = (0, Instant::ZERO + Duration::from_secs(100));
        engine.giving_back.at = now;
        while !matches!(engine.giving_back.next, Next::Sockets(..)) {
            engine.give_back(now);
            (parts, now) = (parts + 1, engine.giving_back.at);
        }
        // Two in each part, a look at what is left of both, and the end.
        assert_eq!(parts, 10 / RINGS + 2);
        let kept = engine.families.get_mut(&1).unwrap();
        assert_eq!(kept.pool.give_back(1), Left::More, "they are given back in the next period");
    }
}
