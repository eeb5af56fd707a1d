//! How much of an arena has been taken, for the books of all domains.

use crate::layout::RINGS_AT;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Ring memory is taken from the arena in pieces of this size, bytes.
pub(crate) const CHUNK: u64 = 4 << 20;

/// What the books of one arena share: how much of it has been taken.
pub(crate) struct Taken {
    /// The next slot block and ring chunk that nobody has taken yet.
    pub slot: AtomicU32,
    pub chunk: AtomicU64,
    /// Bytes of rings that were given out and not returned.
    pub rings: AtomicU64,
}

impl Default for Taken {
    fn default() -> Self {
        Self { slot: AtomicU32::new(0), chunk: AtomicU64::new(RINGS_AT as u64), rings: AtomicU64::new(0) }
    }
}
