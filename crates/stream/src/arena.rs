//! The shared memory of one family: made by the daemon, attached by its programs. Which of its slots and rings
//! are in use stands in the daemon's books ([`Pool`](crate::Pool)).

use crate::budget::{Budget, Share};
use crate::counts::DOMAINS;
use crate::errors::ErrorQueue;
use crate::layout::{
    Bell, Doorbell, Header, Listener, MAGIC, RINGS_AT, Records, SharedFile, Thread, places_of_file,
};
use crate::ring::Bytes;
use crate::shared::Shared;
use crate::slot::Slot;
use crate::taken::{CHUNK, Taken};
use crate::tcp_info::SharedInfo;
use crate::urgent::Urgent;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
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
    /// What has been taken of it (the daemon's; unused elsewhere).
    pub(crate) taken: Taken,
    /// What it uses of what all may use.
    share: Option<Share>,
    /// [`Header::reach`], the daemon's own.
    reach: AtomicU32,
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
}

/// Where a ring lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlace {
    /// Offset in the arena, bytes.
    pub place: u64,
    /// Bytes, a power of two.
    pub size: u32,
}

impl Arena {
    /// Makes a new, empty arena (the daemon).
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn create(sizes: Sizes) -> Result<Arc<Self>, CreateError> {
        Self::make(sizes).map(Arc::new)
    }

    /// The same, as one of several that may use so much together.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn create_within(sizes: Sizes, budget: &Arc<Budget>) -> Result<Arc<Self>, CreateError> {
        let mut arena = Self::make(sizes)?;
        arena.share = Some(Share::of(budget));
        arena.measure();
        Ok(Arc::new(arena))
    }

    fn make(sizes: Sizes) -> Result<Self, CreateError> {
        let length = RINGS_AT + sizes.rings.next_multiple_of(CHUNK as usize);
        if sizes.rings < CHUNK as usize {
            return Err(CreateError::TooSmall { least: CHUNK as usize });
        }
        let file = memory_file(length).map_err(CreateError::Memory)?;
        let arena = Self::map(file, length).map_err(CreateError::Memory)?;
        let header = arena.header();
        header.length.store(length as u64, Ordering::Relaxed);
        header.domains.store(sizes.domains.min(DOMAINS as u32), Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(arena)
    }

    /// Bytes that would be mapped of an arena that the daemon has passed; 0: nobody knows.
    pub fn length_of(file: &OwnedFd) -> u64 {
        status(file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Maps an arena that the daemon has passed (the library).
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach(file: OwnedFd) -> Result<Self, AttachError> {
        let stat = status(&file).map_err(AttachError::Memory)?;
        let length = usize::try_from(stat.st_size).unwrap_or(0);
        if length < RINGS_AT {
            return Err(AttachError::NotAnArena);
        }
        let arena = Self::map(file, length).map_err(AttachError::Memory)?;
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
        // Most connections use the first page or two of their rings, of which three are in one huge page.
        // SAFETY: advice on the mapping just made; ignoring it is allowed.
        unsafe { libc::madvise(start, length, libc::MADV_NOHUGEPAGE) };
        Ok(Self {
            start: start.cast(),
            length,
            file,
            taken: Taken::default(),
            share: None,
            reach: AtomicU32::new(0),
        })
    }

    /// The file to pass to a program.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Ring bytes given out and not returned, over all domains (the daemon's book).
    pub fn rings_in_use(&self) -> u64 {
        self.taken.rings.load(Ordering::Relaxed)
    }

    /// Asks the kernel how much memory there is of it, for its budget.
    pub fn measure(&self) {
        if let Some(share) = &self.share
            && let Ok(stat) = status(&self.file)
        {
            // In blocks of 512 bytes, whatever the file system's are.
            share.measured(u64::try_from(stat.st_blocks).unwrap_or(0) * 512);
        }
    }

    /// Streams get what there is for them, as its budget was judged last: [`Budget::REACH`] while memory is short.
    pub fn heed_budget(&self) {
        let short = self.budget().is_some_and(Budget::is_short);
        if short != self.reach().is_some() {
            self.set_reach(short.then_some(Budget::REACH));
        }
    }

    /// Streams use so much of their rings at most ([`Header::reach`]), or as much as there is room.
    pub fn set_reach(&self, reach: Option<u32>) {
        let reach = reach.unwrap_or(0);
        self.reach.store(reach, Ordering::Relaxed);
        self.header().reach.store(reach, Ordering::SeqCst);
    }

    /// The same as the daemon has set it, whatever stands in the memory that it shares.
    #[inline]
    pub fn reach(&self) -> Option<u32> {
        Some(self.reach.load(Ordering::Relaxed)).filter(|reach| *reach > 0)
    }

    /// Its budget.
    pub(crate) fn budget(&self) -> Option<&Budget> {
        self.share.as_ref().map(Share::budget)
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

    /// What there is to know of a socket's urgent data.
    pub fn urgent(&self, number: u32) -> Option<&Urgent> {
        self.records().urgent.0.get(number as usize)
    }

    /// What the processes that hold a socket share of it.
    pub fn shared(&self, number: u32) -> Option<&Shared> {
        self.records().shared.0.get(number as usize)
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

fn status(file: &OwnedFd) -> io::Result<libc::stat> {
    // SAFETY: fstat fills the buffer it is given, for which zeroed memory is valid.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        if libc::fstat(file.as_raw_fd(), &mut stat) == 0 { Ok(stat) } else { Err(io::Error::last_os_error()) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::SLOTS;

    fn arena() -> Arc<Arena> {
        Arena::create(Sizes { rings: 8 << 20, domains: 2 }).unwrap()
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
    fn a_program_cannot_shrink_the_arena() {
        let daemon = arena();
        // SAFETY: ftruncate on a descriptor we own.
        let shrunk = unsafe { libc::ftruncate(daemon.file().as_raw_fd(), 0) };
        assert_eq!(shrunk, -1);
    }
}
