//! One ring of a socket, with where it lies in the arena.

use silk_stream::{Arena, Bytes, RingPlace, Slot};
use std::sync::Arc;

/// Bytes of a cache line, of which all rings have whole ones.
const LINE: u64 = 64;

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
    /// It was idle at the last look, and has been ever since.
    idle: bool,
    /// Where it stood then, the halves of that added without carry: of 65 536 that have moved on one is taken for idle.
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
            idle: false,
            looked_at: u16::MAX,
        })
    }

    pub fn ring(&self) -> RingPlace {
        RingPlace { place: u64::from(self.place) * LINE, size: self.size }
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
        let at = (at ^ at >> 16) as u16;
        let idle = std::mem::replace(&mut self.looked_at, at) == at && is_empty;
        !std::mem::replace(&mut self.idle, idle) && idle
    }
}
