//! One ring of a socket, with where it lies in the arena.

use silk_stream::{Arena, Bytes, RingPlace, Slot};
use std::sync::Arc;

/// Bytes of a cache line, of which all rings have whole ones.
const LINE: u64 = 64;

/// The bit of [`Side::looked_at`] that is no place.
const IDLE: u16 = 1 << 15;

/// One ring of a socket, as its daemon's end sees it.
pub(super) struct Side {
    pub arena: Arc<Arena>,
    pub slot: u32,
    /// Where the ring lies in the arena, in cache lines.
    pub place: u32,
    /// Its bytes.
    pub size: u32,
    /// The program has not been told of all that has come, or that there is more room.
    pub news: bool,
    /// A ring of 2 to the power of this bytes would be of use; 0: this one is large enough.
    pub wanted: u8,
    /// Where it stood at the last look, fifteen bits at a time added without carry: of 32 768 that have moved on one is taken
    /// for idle. The highest bit: it was idle then, and has been ever since.
    looked_at: u16,
}

impl Side {
    /// `None` where there is no such ring in the arena.
    pub fn new(arena: &Arc<Arena>, slot: u32, ring: RingPlace) -> Option<Self> {
        arena.ring(ring.place, ring.size)?;
        let place = u32::try_from(ring.place / LINE).ok().filter(|_| ring.place.is_multiple_of(LINE))?;
        Some(Self {
            arena: arena.clone(),
            slot,
            place,
            size: ring.size,
            news: false,
            wanted: 0,
            looked_at: !IDLE,
        })
    }

    pub fn ring(&self) -> RingPlace {
        RingPlace { place: u64::from(self.place) * LINE, size: self.size }
    }

    /// The ring is another one from now on, of the same arena.
    pub fn lie_in(&mut self, ring: RingPlace) {
        self.place = u32::try_from(ring.place / LINE).expect("arenas are smaller");
        self.size = ring.size;
    }

    /// So many bytes would be of use.
    #[inline]
    pub fn want(&mut self, n: usize) {
        if n > self.size as usize {
            // Powers of two that a number of bytes can have are far below 256.
            self.wanted = n.saturating_sub(1).checked_ilog2().map_or(0, |below| below as u8 + 1);
        }
    }

    pub fn slot(&self) -> &Slot {
        self.arena.slot(self.slot).expect("checked when the end was made; arenas do not shrink")
    }

    /// The ring, with index `first` at the start of its memory.
    pub fn bytes_from(&self, first: u32) -> Bytes<'_> {
        let ring = self.arena.ring(self.ring().place, self.size);
        ring.expect("checked when the end was made").beginning_at(first)
    }

    /// Somebody looks once in a period, and the ring stands `at`: whether this is the first time that it is empty and
    /// has not moved on since the last.
    pub fn has_become_idle(&mut self, at: u32, is_empty: bool) -> bool {
        let at = (at ^ at >> 15 ^ at >> 30) as u16 & !IDLE;
        let (then, was_idle) = (self.looked_at & !IDLE, self.looked_at & IDLE != 0);
        let idle = then == at && is_empty;
        self.looked_at = at | if idle { IDLE } else { 0 };
        idle && !was_idle
    }
}
