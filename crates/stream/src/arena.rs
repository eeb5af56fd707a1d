//! The shared memory of one family: made by the daemon, attached by its programs; and the
//! daemon's private book of which slots and rings are in use.
//!
//! The book is split by domain, so that executors never meet: each takes slots in blocks
//! and ring memory in chunks from a shared counter, and keeps what comes back for itself. A
//! part of the arena is kept for each higher domain, which the lower ones cannot take. What has
//! not been needed for a while gives its memory back to the kernel and keeps its place.

use crate::errors::ErrorQueue;
use crate::layout::{
    Bell, DOMAINS, Doorbell, Header, Listener, MAGIC, RINGS_AT, Records, SLOTS, SharedFile, Slot, Thread,
    places_of_file,
};
use crate::ring::Bytes;
use crate::tcp_info::SharedInfo;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::{fmt, io, ptr};

/// Why an arena could not be made. The machine's fault or the configuration's.
#[derive(Debug)]
pub enum CreateError {
    /// The kernel refused the memory.
    Memory(io::Error),
    /// The configured length does not even hold the records.
    TooSmall {
        /// The least length that would do, bytes.
        least: usize,
    },
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(e) => write!(f, "the kernel gave no memory for a program's streams: {e}"),
            Self::TooSmall { least } => write!(f, "a program's arena needs at least {least} bytes"),
        }
    }
}

impl std::error::Error for CreateError {}

/// Why an arena could not be attached. The daemon's fault, or another version's.
#[derive(Debug)]
pub enum AttachError {
    /// It could not be mapped.
    Memory(io::Error),
    /// It is not an arena of this version.
    NotAnArena,
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(e) => write!(f, "the daemon's arena could not be mapped: {e}"),
            Self::NotAnArena => write!(f, "the daemon is of another version than the library"),
        }
    }
}

impl std::error::Error for AttachError {}

/// A mapped arena. Cheap to share between threads; unmapped with the last reference.
pub struct Arena {
    start: *mut u8,
    length: usize,
    file: OwnedFd,
    /// Next slot block and ring chunk nobody has taken yet (the daemon's; unused elsewhere).
    next_slot: AtomicU32,
    next_chunk: AtomicU64,
    /// Ring bytes given out and not returned, over all domains.
    rings_in_use: AtomicU64,
}

// SAFETY: the mapping is shared memory whose records are atomics and whose rings are reached
// only through copies; nothing in it belongs to one thread.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

/// What an arena is made with.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes for rings, in all. Only what is touched costs memory.
    pub rings: usize,
    /// Domains that will ring here.
    pub domains: u32,
    /// Ask for huge pages. They are used where the kernel grants them.
    pub huge_pages: bool,
}

impl Arena {
    /// Makes a new, empty arena (the daemon).
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn create(sizes: Sizes) -> Result<Arc<Self>, CreateError> {
        let length = RINGS_AT + sizes.rings.next_multiple_of(CHUNK as usize);
        if sizes.rings < CHUNK as usize {
            return Err(CreateError::TooSmall { least: CHUNK as usize });
        }
        let file = memory_file(length).map_err(CreateError::Memory)?;
        let arena = Self::map(file, length).map_err(CreateError::Memory)?;
        if sizes.huge_pages {
            // SAFETY: advice on our own mapping; ignoring it is allowed.
            unsafe {
                libc::madvise(arena.start.add(RINGS_AT).cast(), length - RINGS_AT, libc::MADV_HUGEPAGE)
            };
        }
        let header = arena.header();
        header.length.store(length as u64, Ordering::Relaxed);
        header.domains.store(sizes.domains.min(DOMAINS as u32), Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(Arc::new(arena))
    }

    /// Maps an arena that the daemon has passed (the library).
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach(file: OwnedFd) -> Result<Self, AttachError> {
        // SAFETY: fstat fills the buffer it is given.
        let length = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            if libc::fstat(file.as_raw_fd(), &mut stat) != 0 {
                return Err(AttachError::Memory(io::Error::last_os_error()));
            }
            usize::try_from(stat.st_size).unwrap_or(0)
        };
        if length < RINGS_AT {
            return Err(AttachError::NotAnArena);
        }
        let arena = Self::map(file, length).map_err(AttachError::Memory)?;
        // SAFETY: advice on our own mapping.
        unsafe { libc::madvise(arena.start.add(RINGS_AT).cast(), length - RINGS_AT, libc::MADV_HUGEPAGE) };
        if arena.header().magic.load(Ordering::Acquire) != MAGIC {
            return Err(AttachError::NotAnArena);
        }
        Ok(arena)
    }

    fn map(file: OwnedFd, length: usize) -> io::Result<Self> {
        // SAFETY: a fresh shared mapping at an address the kernel chooses.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            start: start.cast(),
            length,
            file,
            next_slot: AtomicU32::new(0),
            next_chunk: AtomicU64::new(RINGS_AT as u64),
            rings_in_use: AtomicU64::new(0),
        })
    }

    /// The file to pass to a program.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Ring bytes given out and not returned, over all domains (the daemon's book).
    pub fn rings_in_use(&self) -> u64 {
        self.rings_in_use.load(Ordering::Relaxed)
    }

    /// Bytes mapped.
    pub fn length(&self) -> usize {
        self.length
    }

    fn records(&self) -> &Records {
        // SAFETY: the mapping is at least `RINGS_AT >= size_of::<Records>()` long, page
        // aligned, zero-filled at first, and `Records` is made of atomics, for which every
        // bit pattern is valid and which other processes may change at any time.
        unsafe { &*self.start.cast::<Records>() }
    }

    /// The first page.
    pub fn header(&self) -> &Header {
        &self.records().header
    }

    /// A domain's doorbell; `None` when there is no such domain.
    pub fn doorbell(&self, domain: usize) -> Option<&Doorbell> {
        self.records().doorbell.get(domain)
    }

    /// A thread's record.
    pub fn thread(&self, number: u32) -> Option<&Thread> {
        self.records().thread.0.get(number as usize)
    }

    /// An event set.
    pub fn bell(&self, number: u32) -> Option<&Bell> {
        self.records().bell.0.get(number as usize)
    }

    /// A place for a file that is sent by reference.
    pub fn file_place(&self, number: u32) -> Option<&SharedFile> {
        self.records().file.0.get(number as usize)
    }

    /// The place and its use from which a file is sent by reference, and how long it is.
    pub fn find_file(&self, device: u64, inode: u64) -> Option<(u32, u32, u64)> {
        places_of_file(device, inode).find_map(|number| {
            let file = self.file_place(number)?;
            let generation = file.generation.load(Ordering::SeqCst);
            let is =
                file.inode.load(Ordering::Relaxed) == inode && file.device.load(Ordering::Relaxed) == device;
            let length = file.length.load(Ordering::Relaxed);
            // Not given to another meanwhile.
            let still = generation != 0 && is && file.generation.load(Ordering::SeqCst) == generation;
            still.then_some((number, generation, length))
        })
    }

    /// A listening socket's shared part.
    pub fn listener(&self, number: u32) -> Option<&Listener> {
        self.records().listener.0.get(number as usize)
    }

    /// A socket.
    pub fn slot(&self, number: u32) -> Option<&Slot> {
        self.records().slot.0.get(number as usize)
    }

    /// What was last told about a socket.
    pub fn info(&self, number: u32) -> Option<&SharedInfo> {
        self.records().info.0.get(number as usize)
    }

    /// What the network said of a datagram socket's datagrams.
    pub fn errors(&self, number: u32) -> Option<&ErrorQueue> {
        self.records().errors.0.get(number as usize)
    }

    /// Gives the memory of a ring back to the kernel: its bytes are zero from now on, and take memory
    /// again once they are written. Nobody may be reading or writing it. Smaller rings than a page,
    /// and what the kernel refuses, stay as they are.
    pub fn give_back(&self, ring: RingPlace) {
        if ring.size < 4096 || self.ring(ring.place, ring.size).is_none() {
            return;
        }
        let Ok(start) = ring.place.try_into() else { return };
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: a descriptor of our own; the mapping stays, and its length.
        unsafe { libc::fallocate(self.file.as_raw_fd(), mode, start, ring.size.into()) };
    }

    /// The ring at `place`, `size` bytes; `None` unless it lies wholly among the rings and
    /// its size is a power of two (or zero).
    pub fn ring(&self, place: u64, size: u32) -> Option<Bytes<'_>> {
        let start = usize::try_from(place).ok()?;
        let end = start.checked_add(size as usize)?;
        let sound = start >= RINGS_AT && end <= self.length && (size == 0 || size.is_power_of_two());
        // SAFETY: just checked to lie inside the mapping, behind the records.
        sound.then(|| unsafe { Bytes::new(self.start.add(start), size) })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: `start..start+length` is the mapping made in `map`, and nothing borrowed
        // from it can outlive `self`.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

fn memory_file(length: usize) -> io::Result<OwnedFd> {
    // SAFETY: the name is a C string; a descriptor that memfd_create returns is ours.
    let file = unsafe {
        let fd = libc::memfd_create(c"silk-arena".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    let size = libc::off_t::try_from(length).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: plain descriptor operations. The seals keep a program from shrinking the file
    // under the daemon, which would otherwise kill it with SIGBUS.
    let sealed = unsafe {
        libc::ftruncate(file.as_raw_fd(), size) == 0
            && libc::fcntl(
                file.as_raw_fd(),
                libc::F_ADD_SEALS,
                libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL,
            ) == 0
    };
    if sealed { Ok(file) } else { Err(io::Error::last_os_error()) }
}

/// Ring memory is taken from the arena in pieces of this size, bytes.
const CHUNK: u64 = 4 << 20;
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

/// Where a ring lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlace {
    /// Offset in the arena, bytes.
    pub place: u64,
    /// Bytes, a power of two.
    pub size: u32,
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
        let rings = arena.length as u64 - RINGS_AT as u64;
        let chunks_end = arena.length as u64 - rings / parts * above / CHUNK * CHUNK;
        let blocks = u64::from(SLOTS / SLOT_BLOCK);
        let slots_end = SLOTS - (blocks / parts * above) as u32 * SLOT_BLOCK;
        Self { arena, slots: Vec::new(), rings: BTreeMap::new(), chunk: (0, 0), slots_end, chunks_end }
    }

    /// The arena it books.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// A free slot, the most recently returned first (its lines are warm).
    pub fn take_slot(&mut self) -> Option<u32> {
        if self.slots.is_empty() {
            let next = |first: u32| Some(first + SLOT_BLOCK).filter(|end| *end <= self.slots_end);
            let first = self.arena.next_slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
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
        self.arena.next_slot.load(Ordering::Relaxed)
    }

    /// A ring of `size` bytes (a power of two, at most 4 MiB), the most recently returned
    /// first; `None` when the arena is full, but for what is kept for higher domains.
    pub fn take_ring(&mut self, size: u32) -> Option<RingPlace> {
        debug_assert!(size.is_power_of_two() && u64::from(size) <= CHUNK);
        let place = match self.rings.get_mut(&size).and_then(Free::take) {
            Some(place) => place,
            None => self.carve(size)?,
        };
        self.arena.rings_in_use.fetch_add(u64::from(size), Ordering::Relaxed);
        Some(RingPlace { place, size })
    }

    /// Whether a slot and rings of these sizes can be taken, if nobody takes them before.
    pub fn has_room(&self, sizes: [u32; 2]) -> bool {
        let arena = &self.arena;
        let slots = arena.next_slot.load(Ordering::Relaxed) + SLOT_BLOCK <= self.slots_end;
        let mut chunks = self.chunks_end.saturating_sub(arena.next_chunk.load(Ordering::Relaxed)) / CHUNK;
        let free = |size| self.rings.get(&size).map_or(0, |free| free.places.len());
        let [one, other] = sizes;
        // Of the same size the second needs one more.
        let lacks = [free(one) == 0, free(other) <= usize::from(one == other)];
        let mut chunk = self.chunk;
        let mut carves = |size: u32| {
            let (place, rest) = carved(chunk, size).or_else(|| {
                chunks = chunks.checked_sub(1)?;
                carved((0, CHUNK), size)
            })?;
            chunk = rest;
            Some(place)
        };
        let rings = sizes.into_iter().zip(lacks).all(|(size, lacks)| !lacks || carves(size).is_some());
        rings && (slots || !self.slots.is_empty())
    }

    /// Gives a ring back; any domain's book may take any ring.
    pub fn return_ring(&mut self, ring: RingPlace) {
        self.arena.rings_in_use.fetch_sub(u64::from(ring.size), Ordering::Relaxed);
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
            self.rings.values_mut().for_each(|free| free.idle = free.places.len());
        }
        left
    }

    fn carve(&mut self, size: u32) -> Option<u64> {
        let place = carved(self.chunk, size).or_else(|| {
            let next = |chunk: u64| Some(chunk + CHUNK).filter(|end| *end <= self.chunks_end);
            let chunk =
                self.arena.next_chunk.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
            carved((chunk, chunk + CHUNK), size)
        });
        let (place, rest) = place?;
        self.chunk = rest;
        Some(place)
    }
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

    fn arena() -> Arc<Arena> {
        Arena::create(Sizes { rings: 8 << 20, domains: 2, huge_pages: false }).unwrap()
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
    fn without_slots_there_is_no_room() {
        let mut pool = Pool::new(arena());
        while pool.take_slot().is_some() {}
        assert!(!pool.has_room([4096, 4096]));
        pool.return_slot(3);
        assert!(pool.has_room([4096, 4096]));
    }

    #[test]
    fn a_program_sees_what_the_daemon_wrote() {
        let daemon = arena();
        let program = Arena::attach(daemon.file().try_clone_to_owned().unwrap()).unwrap();
        daemon.slot(7).unwrap().rx_write.store(42, Ordering::Release);
        assert_eq!(program.slot(7).unwrap().rx_write.load(Ordering::Acquire), 42);
        let place = RINGS_AT as u64;
        daemon.ring(place, 4096).unwrap().write(4090, b"0123456789");
        assert_eq!(program.ring(place, 4096).unwrap().peek(4090, 10).concat(), b"0123456789");
    }

    #[test]
    fn places_outside_the_rings_are_refused() {
        let arena = arena();
        assert!(arena.ring(0, 4096).is_none());
        assert!(arena.ring(RINGS_AT as u64, 3000).is_none());
        assert!(arena.ring(u64::MAX, 4096).is_none());
        assert!(arena.ring(arena.length() as u64 - 2048, 4096).is_none());
        assert!(arena.slot(SLOTS).is_none());
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
        let arena = Arena::create(Sizes { rings: 64 << 20, domains: 2, huge_pages: false }).unwrap();
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
    fn a_program_cannot_shrink_the_arena() {
        let daemon = arena();
        // SAFETY: ftruncate on a descriptor we own.
        let shrunk = unsafe { libc::ftruncate(daemon.file().as_raw_fd(), 0) };
        assert_eq!(shrunk, -1);
    }
}
