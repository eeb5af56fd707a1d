//! What all arenas of a daemon may use together. An arena's rings are memory only as far as somebody has
//! touched them, so how much that is has to be asked of the kernel: now and then, when rings are taken or
//! given back.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The bound, and how much is known to be used.
#[derive(Debug)]
pub struct Budget {
    most: u64,
    used: AtomicU64,
    short: AtomicBool,
}

impl Budget {
    /// What a byte stream gets by with while memory is short, bytes each way: some segments.
    pub const REACH: u32 = 16 << 10;

    /// At most so many bytes.
    pub fn of(most: u64) -> Arc<Self> {
        Arc::new(Self { most, used: AtomicU64::new(0), short: AtomicBool::new(false) })
    }

    /// The bound, bytes.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Bytes that were used when each arena was last measured.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Whether memory is short, when that was judged last.
    pub fn is_short(&self) -> bool {
        self.short.load(Relaxed)
    }

    /// Judges by what is used whether memory is short: from three quarters of the bound on, until it is half.
    pub fn judge(&self) -> bool {
        let limit = if self.is_short() { self.most / 2 } else { self.most / 4 * 3 };
        let short = self.used() >= limit;
        self.short.store(short, Relaxed);
        short
    }

    /// Whether nothing more is to be begun.
    pub fn is_over(&self) -> bool {
        self.is_over_with(0)
    }

    /// The same, of who has to leave so many bytes to others.
    pub(crate) fn is_over_with(&self, kept: u64) -> bool {
        self.used() >= self.most.saturating_sub(kept)
    }
}

/// What one arena uses of a budget.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    measured: AtomicU64,
}

impl Share {
    pub fn of(budget: &Arc<Budget>) -> Self {
        Self { budget: budget.clone(), measured: AtomicU64::new(0) }
    }

    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// It has been measured. Of two that do so at once both count.
    pub fn measured(&self, bytes: u64) {
        let before = self.measured.swap(bytes, Relaxed);
        self.budget.used.fetch_add(bytes.wrapping_sub(before), Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.measured(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_short_from_three_quarters_on_until_it_is_half() {
        let budget = Budget::of(1000);
        let share = Share::of(&budget);
        let mut judged = Vec::new();
        for used in [749, 750, 500, 499, 749, 1200, 0] {
            share.measured(used);
            judged.push(budget.judge());
        }
        assert_eq!(judged, [false, true, true, false, false, true, false]);
    }
}
