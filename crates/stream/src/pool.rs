//! The daemon's private books of which slots and rings of an arena are in use.
//!
//! They are split by domain, so that executors never meet: each takes slots in blocks
//! and ring memory in chunks from a shared counter, and keeps what comes back for itself. A
//! part of the arena is kept for each higher domain, which the lower ones cannot take. What has
//! not been needed for a while gives its memory back to the kernel and keeps its place.

use crate::arena::{Arena, RingPlace};
use crate::budget::Budget;
use crate::counts::SLOTS;
use crate::layout::RINGS_AT;
use crate::taken::CHUNK;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// After so many rings it is asked how much memory they use by now.
const MEASURED: u32 = 64;
/// Slots are taken from the arena in blocks of this many.
const SLOT_BLOCK: u32 = 64;

/// One domain's private book of an arena: its free slots and rings.
pub struct Pool {
    arena: Arc<Arena>,
    slots: Vec<u32>,
    rings: BTreeMap<u32, Free>,
    chunk: (u64, u64),
    /// No slot block is taken that ends behind this.
    slots_end: u32,
    /// No chunk is taken that ends behind this.
    chunks_end: u64,
    /// Of what all arenas together may use, so many bytes are kept for higher domains.
    kept: u64,
    /// Rings that were taken since the arena was last measured.
    unmeasured: Cell<u32>,
}

/// The free rings of one size. The last returned is the first taken, so those that nobody needs
/// gather at the front.
#[derive(Debug, Default)]
struct Free {
    places: Vec<u64>,
    /// So many at the front have no memory.
    empty: usize,
    /// So many were free all the time since the last period began.
    idle: usize,
}

impl Free {
    /// How many can be taken: all, or only those that have memory.
    fn available(&self, all: bool) -> usize {
        self.places.len() - if all { 0 } else { self.empty }
    }

    fn take(&mut self) -> Option<u64> {
        let place = self.places.pop();
        self.idle = self.idle.min(self.places.len());
        self.empty = self.empty.min(self.places.len());
        place
    }
}

/// What is left to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// What may be needed soon; another period shows.
    Later,
    /// More at once.
    More,
}

impl Pool {
    /// An empty book that may take all there is.
    pub fn new(arena: Arc<Arena>) -> Self {
        Self::of_domain(arena, 0, 1)
    }

    /// An empty book for `domain` of `domains`, of which the last is the highest. Half of the
    /// arena is divided among the domains, in parts that those below cannot take: connections
    /// of a low class that come and stay must not use up what a higher class will need.
    pub fn of_domain(arena: Arc<Arena>, domain: usize, domains: usize) -> Self {
        let (above, parts) = (domains.saturating_sub(domain + 1) as u64, 2 * domains as u64);
        let rings = arena.length() as u64 - RINGS_AT as u64;
        let chunks_end = arena.length() as u64 - rings / parts * above / CHUNK * CHUNK;
        let blocks = u64::from(SLOTS / SLOT_BLOCK);
        let slots_end = SLOTS - (blocks / parts * above) as u32 * SLOT_BLOCK;
        let kept = arena.budget().map_or(0, |budget| budget.most() / parts * above);
        Self {
            arena,
            slots: Vec::new(),
            rings: BTreeMap::new(),
            chunk: (0, 0),
            slots_end,
            chunks_end,
            kept,
            unmeasured: Cell::new(0),
        }
    }

    /// The arena it books.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// A free slot, the most recently returned first (its lines are warm).
    pub fn take_slot(&mut self) -> Option<u32> {
        if self.slots.is_empty() {
            let next = |first: u32| Some(first + SLOT_BLOCK).filter(|end| *end <= self.slots_end);
            let first =
                self.arena.taken.slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
            self.slots.extend((first..first + SLOT_BLOCK).rev());
        }
        self.slots.pop()
    }

    /// Gives a slot back; any domain's book may take any slot.
    pub fn return_slot(&mut self, slot: u32) {
        self.slots.push(slot);
    }

    /// How many slots of the arena have ever been used: all live ones are below it.
    pub fn slots_touched(&self) -> u32 {
        self.arena.taken.slot.load(Ordering::Relaxed)
    }

    /// A ring of `size` bytes (a power of two, at most 4 MiB), the most recently returned
    /// first; `None` when the arena is full, but for what is kept for higher domains. Whether all arenas
    /// together have memory for it is [`Pool::has_room`]'s to say, before anything is begun that could
    /// only be broken off.
    pub fn take_ring(&mut self, size: u32) -> Option<RingPlace> {
        debug_assert!(size.is_power_of_two() && u64::from(size) <= CHUNK);
        *self.unmeasured.get_mut() += 1;
        let place = match self.rings.get_mut(&size).and_then(Free::take) {
            Some(place) => place,
            None => self.carve(size)?,
        };
        self.arena.taken.rings.fetch_add(u64::from(size), Ordering::Relaxed);
        Some(RingPlace { place, size })
    }

    /// A ring for a connection that has one already and could use a larger: `None` also while memory is short, when more
    /// than half of the arena has been taken, and when all arenas use half of what they may, so that connections which
    /// are still to come find room.
    pub fn take_larger(&mut self, size: u32) -> Option<RingPlace> {
        let there = self.rings.get(&size).is_some_and(|free| free.available(true) > 0);
        let half = (RINGS_AT as u64).midpoint(self.chunks_end);
        let spare = self.arena.taken.chunk.load(Ordering::Relaxed) + CHUNK <= half;
        let is_plenty = || self.arena.budget().is_none_or(|budget| budget.used() < budget.most() / 2);
        let may = (there || spare) && self.arena.reach().is_none() && self.is_within_budget() && is_plenty();
        if may { self.take_ring(size) } else { None }
    }

    /// Whether all arenas together use less than they may. This one is measured before if that was long
    /// ago, or they did not.
    fn is_within_budget(&self) -> bool {
        if self.unmeasured.get() >= MEASURED {
            self.unmeasured.set(0);
            self.arena.measure();
            // Connections that come fast may fill their rings sooner than anybody else looks.
            if self.arena.budget().is_some_and(Budget::judge) {
                self.arena.heed_budget();
            }
        }
        let is_over = || self.arena.budget().is_some_and(|budget| budget.is_over_with(self.kept));
        if is_over() {
            self.arena.measure();
        }
        !is_over()
    }

    /// Whether a slot and rings of these sizes can be taken, if nobody takes them before. While all arenas
    /// together use what they may, that is so of rings that have their memory already.
    pub fn has_room(&self, sizes: [u32; 2]) -> bool {
        let within = self.is_within_budget();
        let arena = &self.arena;
        let slots = arena.taken.slot.load(Ordering::Relaxed) + SLOT_BLOCK <= self.slots_end;
        let mut chunks = self.chunks_end.saturating_sub(arena.taken.chunk.load(Ordering::Relaxed)) / CHUNK;
        let free = |size| self.rings.get(&size).map_or(0, |free| free.available(within));
        let [one, other] = sizes;
        // Of the same size the second needs one more.
        let lacks = [free(one) == 0, free(other) <= usize::from(one == other)];
        let mut chunk = self.chunk;
        let mut carves = |size: u32| {
            carve(&mut chunk, size, || {
                chunks = chunks.checked_sub(1)?;
                Some((0, CHUNK))
            })
        };
        let mut has = |(size, lacks): (u32, bool)| !lacks || (within && carves(size).is_some());
        let rings = sizes.into_iter().zip(lacks).all(&mut has);
        rings && (slots || !self.slots.is_empty())
    }

    /// Gives a ring back; any domain's book may take any ring.
    pub fn return_ring(&mut self, ring: RingPlace) {
        self.arena.taken.rings.fetch_sub(u64::from(ring.size), Ordering::Relaxed);
        self.rings.entry(ring.size).or_default().places.push(ring.place);
    }

    /// A period is over: gives the memory of rings back that were free all the time, at most `most` of
    /// them. As long as it answers [`Left::More`] the period is not counted as over.
    pub fn give_back(&mut self, most: usize) -> Left {
        let (mut left, mut most) = (Left::Nothing, most);
        for (size, free) in &mut self.rings {
            while free.empty < free.idle && most > 0 {
                self.arena.give_back(RingPlace { place: free.places[free.empty], size: *size });
                free.empty += 1;
                most -= 1;
            }
            left = left.max(match free.places.len() {
                _ if free.empty < free.idle => Left::More,
                all if free.empty < all => Left::Later,
                _ => Left::Nothing,
            });
        }
        if left != Left::More {
            self.arena.measure();
            self.rings.values_mut().for_each(|free| free.idle = free.places.len());
        }
        left
    }

    fn carve(&mut self, size: u32) -> Option<u64> {
        let next = |chunk: u64| Some(chunk + CHUNK).filter(|end| *end <= self.chunks_end);
        let taken = &self.arena.taken.chunk;
        carve(&mut self.chunk, size, || {
            let chunk = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
            Some((chunk, chunk + CHUNK))
        })
    }
}

/// The place of a ring of `size` bytes in what is left of a chunk, or in a `new` one; of two chunks the one of which more is left is
/// kept for the next.
fn carve(left: &mut (u64, u64), size: u32, new: impl FnOnce() -> Option<(u64, u64)>) -> Option<u64> {
    if let Some((place, rest)) = carved(*left, size) {
        *left = rest;
        return Some(place);
    }
    let (place, rest) = carved(new()?, size)?;
    if rest.1 - rest.0 > left.1 - left.0 {
        *left = rest;
    }
    Some(place)
}

/// Where a ring of `size` bytes lies in a piece of the arena, and what is left of that; `None` when it is too large.
fn carved((next, end): (u64, u64), size: u32) -> Option<(u64, (u64, u64))> {
    let place = next.next_multiple_of(u64::from(size).min(4096));
    let rest = place + u64::from(size);
    (rest <= end).then_some((place, (rest, end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Sizes;
    use std::os::fd::AsRawFd;

    fn arena() -> Arc<Arena> {
        Arena::create(Sizes { rings: 8 << 20, domains: 2 }).unwrap()
    }

    #[test]
    fn there_is_room_exactly_as_long_as_it_can_be_taken() {
        for sizes in [[64 << 10, 512 << 10], [1 << 20, 1 << 20], [4 << 20, 4 << 20], [4 << 10, 4 << 20]] {
            let mut pool = Pool::new(arena());
            let mut taken = Vec::new();
            let take = |pool: &mut Pool| {
                let slot = pool.take_slot()?;
                Some((slot, pool.take_ring(sizes[0])?, pool.take_ring(sizes[1])?))
            };
            while pool.has_room(sizes) {
                taken.push(take(&mut pool).unwrap());
            }
            assert!(!taken.is_empty(), "{sizes:?}");
            // One that goes makes room for one.
            let (slot, one, other) = taken.pop().unwrap();
            pool.return_slot(slot);
            pool.return_ring(one);
            pool.return_ring(other);
            assert!(pool.has_room(sizes), "{sizes:?}");
            assert!(take(&mut pool).is_some());
            assert!(!pool.has_room(sizes), "{sizes:?}");
            assert_eq!(take(&mut pool), None, "{sizes:?}");
        }
    }

    #[test]
    fn a_larger_ring_leaves_half_of_the_arena_to_others() {
        let arena = Arena::create(Sizes { rings: 32 << 20, domains: 1 }).unwrap();
        let mut pool = Pool::new(arena.clone());
        let larger: Vec<_> = std::iter::from_fn(|| pool.take_larger(4 << 20)).collect();
        assert_eq!(larger.len(), 4);
        assert!(pool.has_room([4 << 20; 2]));
        pool.return_ring(larger[0]);
        assert_eq!(pool.take_larger(4 << 20), Some(larger[0]), "what is free already is nobody's else");
        pool.return_ring(larger[0]);
        arena.set_reach(Some(4096));
        assert_eq!(pool.take_larger(4 << 20), None, "memory is short");
        let budget = crate::Budget::of(4 << 20);
        let arena = Arena::create_within(Sizes { rings: 32 << 20, domains: 1 }, &budget).unwrap();
        let mut pool = Pool::new(arena.clone());
        let ring = pool.take_larger(4 << 20).unwrap();
        arena.ring(ring.place, ring.size).unwrap().write(0, &[7; 2 << 20]);
        arena.measure();
        assert_eq!(pool.take_larger(4 << 20), None, "half of what may be used is used");
    }

    #[test]
    fn rings_of_different_sizes_leave_no_part_of_a_chunk_to_nobody() {
        let arena = Arena::create(Sizes { rings: 32 << 20, domains: 1 }).unwrap();
        let mut pool = Pool::new(arena);
        let pairs = (0..).take_while(|_| {
            let has = pool.has_room([64 << 10, 4 << 20]);
            let taken = pool.take_ring(64 << 10).and_then(|_| pool.take_ring(4 << 20));
            assert_eq!(has, taken.is_some());
            has
        });
        assert_eq!(pairs.count(), 7, "one chunk has all the small ones");
    }

    #[test]
    fn without_slots_there_is_no_room() {
        let mut pool = Pool::new(arena());
        while pool.take_slot().is_some() {}
        assert!(!pool.has_room([4096, 4096]));
        pool.return_slot(3);
        assert!(pool.has_room([4096, 4096]));
    }

    #[test]
    fn every_ring_comes_back() {
        let mut pool = Pool::new(arena());
        let rings: Vec<_> = (0..4).map_while(|_| pool.take_ring(2 << 20)).collect();
        assert_eq!(rings.len(), 4);
        assert_eq!(pool.take_ring(2 << 20), None);
        assert_eq!(pool.arena().rings_in_use(), 8 << 20);
        rings.into_iter().for_each(|r| pool.return_ring(r));
        assert_eq!(pool.arena().rings_in_use(), 0);
        assert!(pool.take_ring(2 << 20).is_some());
    }

    /// Bytes of memory that the arena takes.
    fn memory(arena: &Arena) -> i64 {
        // SAFETY: fstat fills the buffer it is given.
        unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            assert_eq!(libc::fstat(arena.file().as_raw_fd(), &mut stat), 0);
            stat.st_blocks * 512
        }
    }

    #[test]
    fn rings_that_are_free_for_a_period_give_their_memory_back() {
        let mut pool = Pool::new(arena());
        let before = memory(pool.arena());
        let rings: Vec<_> = (0..4).map(|_| pool.take_ring(64 << 10).unwrap()).collect();
        for ring in &rings {
            pool.arena().ring(ring.place, ring.size).unwrap().write(0, &[7; 64 << 10]);
        }
        assert_eq!(memory(pool.arena()) - before, 256 << 10);
        rings.iter().for_each(|ring| pool.return_ring(*ring));
        assert_eq!((pool.give_back(9), memory(pool.arena()) - before), (Left::Later, 256 << 10));
        // One is used again meanwhile.
        let used = pool.take_ring(64 << 10).unwrap();
        pool.return_ring(used);
        assert_eq!((pool.give_back(2), memory(pool.arena()) - before), (Left::More, 128 << 10));
        assert_eq!((pool.give_back(2), memory(pool.arena()) - before), (Left::Later, 64 << 10));
        assert_eq!((pool.give_back(2), memory(pool.arena()) - before), (Left::Nothing, 0));
        let again = pool.take_ring(64 << 10).unwrap();
        assert_eq!(pool.arena().ring(again.place, again.size).unwrap().peek(0, 3).concat(), [0; 3]);
    }

    #[test]
    fn two_domains_never_share_a_slot_or_a_ring() {
        let arena = arena();
        let (mut a, mut b) = (Pool::new(arena.clone()), Pool::new(arena));
        assert_ne!(a.take_slot(), b.take_slot());
        assert_ne!(a.take_ring(4096), b.take_ring(4096));
    }

    #[test]
    fn a_low_domain_leaves_rings_and_slots_for_the_higher() {
        let arena = Arena::create(Sizes { rings: 64 << 20, domains: 2 }).unwrap();
        let (mut low, mut high) =
            (Pool::of_domain(arena.clone(), 0, 2), Pool::of_domain(arena.clone(), 1, 2));
        let all = |pool: &mut Pool| std::iter::from_fn(|| pool.take_ring(4 << 20)).count();
        assert_eq!((all(&mut low), all(&mut high)), (12, 4));
        let all = |pool: &mut Pool| std::iter::from_fn(|| pool.take_slot()).count() as u32;
        assert_eq!((all(&mut low), all(&mut high)), (SLOTS / 4 * 3, SLOTS / 4));
        assert_eq!(high.slots_touched(), SLOTS);
        // A program that is alone may have all of it, and a small arena has nothing to keep.
        assert_eq!(Pool::new(arena.clone()).chunks_end, arena.length() as u64);
        let small = self::arena();
        assert_eq!(Pool::of_domain(small.clone(), 0, 2).chunks_end, small.length() as u64);
    }

    #[test]
    fn nothing_is_begun_while_all_arenas_together_use_what_they_may() {
        let budget = crate::Budget::of(4 << 20);
        let sizes = Sizes { rings: 64 << 20, domains: 2 };
        let make = || Arena::create_within(sizes, &budget).unwrap();
        let (one, other) = (make(), make());
        let mut pool = Pool::of_domain(one.clone(), 0, 1);
        let rings: Vec<_> = (0..16).map_while(|_| pool.take_ring(256 << 10)).collect();
        assert_eq!(rings.len(), 16, "as long as they are not touched");
        let touch = |ring: &RingPlace| one.ring(ring.place, ring.size).unwrap().write(0, &[7; 256 << 10]);
        rings[..13].iter().for_each(touch);
        let [low, high] = [0, 1].map(|domain| Pool::of_domain(other.clone(), domain, 2));
        assert!(low.has_room([4096; 2]), "nobody has measured it");
        one.measure();
        assert!(budget.used() >= 13 * (256 << 10));
        assert!(!low.has_room([4096; 2]), "a quarter is for the higher one");
        assert!(high.has_room([4096; 2]));
        rings[13..].iter().for_each(touch);
        one.measure();
        assert!(budget.is_over() && !high.has_room([4096; 2]) && !pool.has_room([4096; 2]));
        rings.into_iter().for_each(|ring| pool.return_ring(ring));
        assert!(pool.has_room([256 << 10; 2]) && !pool.has_room([4096; 2]) && !high.has_room([256 << 10; 2]));
        let again = pool.take_ring(256 << 10).expect("it has its memory");
        pool.return_ring(again);
        // Another arena's is measured when it gives memory back.
        assert_eq!(pool.give_back(100), Left::Later);
        assert_eq!(pool.give_back(100), Left::Nothing);
        assert!(high.has_room([4096; 2]) && low.has_room([4096; 2]));
        drop((pool, one));
        assert!(budget.used() < 1 << 20, "{}", budget.used());
    }
}
