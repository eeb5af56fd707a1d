//! How far a domain has come in looking for memory that nobody needs.

use crate::between::idle_memory::period;
use crate::between::names::FamilyIndex;
use silk_instant::Instant;
use std::time::Duration;

/// Where a period's looking begins.
pub const FIRST: Option<(FamilyIndex, u32)> = Some((0, 0));

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
