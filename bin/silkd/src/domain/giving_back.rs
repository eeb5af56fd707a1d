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

/// Where a period's looking begins.
const FIRST: Option<(FamilyIndex, u32)> = Some((0, 0));

/// How far the looking has come.
#[derive(Debug)]
pub struct GivingBack {
    /// When it goes on; `FAR` while there is nothing to look at.
    pub at: Instant,
    /// The next socket; `None`: the free rings are next.
    pub next: Option<(FamilyIndex, u32)>,
    /// Memory is short.
    hurried: bool,
}

impl Default for GivingBack {
    fn default() -> Self {
        Self { at: Instant::FAR, next: FIRST, hurried: false }
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
        match self.giving_back.next {
            Some((family, slot)) => self.giving_back.next = self.look_at_sockets(family, slot),
            None => return self.look_at_free_rings(now),
        }
        self.giving_back.at = now + PAUSE;
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

    /// Looks at the rings that nobody has; then the period is over.
    fn look_at_free_rings(&mut self, now: Instant) {
        let left = self.families.values_mut().map(|family| family.pool.give_back(RINGS)).max();
        let next = now + self.giving_back.period();
        (self.giving_back.at, self.giving_back.next) = match left.unwrap_or(Left::Nothing) {
            Left::More => (now + PAUSE, None),
            Left::Nothing if self.sockets.is_empty() => (Instant::FAR, FIRST),
            Left::Nothing | Left::Later => (next, FIRST),
        };
    }
}
