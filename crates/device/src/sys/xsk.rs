//! AF_XDP sockets (Documentation/networking/af_xdp.rst).

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::arena::Arena;
use super::check;
use super::mapping::Mapping;
use super::socket::set_option;

/// Packets may come as chains of frames (`XDP_USE_SG` of linux/if_xdp.h).
const USE_SG: u16 = 1 << 4;

/// How a socket is bound to its queue.
#[derive(Clone, Copy)]
pub(crate) enum Binding<'s> {
    /// The first of all: it brought the frames.
    First,
    /// It shares the frames of a socket; of another queue or of this one.
    Sharing(BorrowedFd<'s>),
}

/// One AF_XDP socket, not bound: rings are made and mapped before that.
pub(crate) fn open() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = check(unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the kernel just gave this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Gives the kernel the frames of `arena`. The arena must be kept as long as frames are to be
/// received; the kernel holds its pages itself, so an early end of it loses frames, no more.
pub(crate) fn register(fd: BorrowedFd<'_>, arena: &Arena, frame: u32) -> io::Result<()> {
    let (addr, len) = arena.region();
    // SAFETY: all-zero is a valid xdp_umem_reg.
    let mut region: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
    region.addr = addr;
    region.len = len;
    region.chunk_size = frame;
    set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &region)
}

/// Binds the socket to a queue of an interface; frames may arrive from then on.
pub(crate) fn bind(fd: BorrowedFd<'_>, interface: u32, queue: u32, binding: Binding<'_>) -> io::Result<()> {
    let (flags, shared) = match binding {
        Binding::First => (libc::XDP_USE_NEED_WAKEUP | USE_SG, 0),
        Binding::Sharing(with) => (libc::XDP_SHARED_UMEM, with.as_raw_fd() as u32),
    };
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: shared,
    };
    let len = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    // SAFETY: the pointer is to a sockaddr_xdp of the given length that lives through the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(())
}

/// Tells the driver that there are frames to fill again.
pub(crate) fn wake(fd: BorrowedFd<'_>) {
    // SAFETY: no buffer is given. The result says nothing that could be acted on.
    unsafe { libc::recvfrom(fd.as_raw_fd(), null_mut(), 0, libc::MSG_DONTWAIT, null_mut(), null_mut()) };
}

/// What the kernel counted for a socket.
pub(crate) struct Losses {
    /// Frames that found the receive ring full.
    pub ring_full: u64,
    /// Frames that did not fit a buffer, and times the kernel found no buffer.
    pub dropped: u64,
}

/// Asks the kernel what a socket lost.
pub(crate) fn losses(fd: BorrowedFd<'_>) -> io::Result<Losses> {
    // struct xdp_statistics: dropped, invalid rx, invalid tx, ring full, fill empty, tx empty.
    let mut counts = [0u64; 6];
    let mut len = size_of::<[u64; 6]>() as libc::socklen_t;
    // SAFETY: both pointers live through the call and `len` is the size of what `counts` holds.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_STATISTICS,
            (&raw mut counts).cast(),
            &raw mut len,
        )
    })?;
    Ok(Losses { dropped: counts[0], ring_full: counts[3] })
}

/// Which ring of a socket.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    /// Frames that arrived: two words each, the address and the length.
    Receive,
    /// Frames to be filled: one word each, the address.
    Fill,
    /// Frames that were sent: one word each. The kernel wants it to exist.
    Completion,
}

impl Which {
    fn numbers(self) -> (i32, i64, usize) {
        match self {
            Self::Receive => (libc::XDP_RX_RING, libc::XDP_PGOFF_RX_RING, 2),
            Self::Fill => (libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_PGOFF_FILL_RING as i64, 1),
            Self::Completion => {
                (libc::XDP_UMEM_COMPLETION_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, 1)
            }
        }
    }
}

/// Makes a ring of `size` entries, a power of two.
pub(crate) fn make_ring(fd: BorrowedFd<'_>, which: Which, size: u32) -> io::Result<()> {
    set_option(fd, libc::SOL_XDP, which.numbers().0, &size)
}

/// A mapped ring.
pub(crate) struct Ring {
    map: Mapping,
    at: libc::xdp_ring_offset,
    words: usize,
}

impl Ring {
    /// Maps the ring of `size` entries that [`make_ring`] made.
    pub fn map(fd: BorrowedFd<'_>, which: Which, size: u32) -> io::Result<Self> {
        let offsets = offsets(fd)?;
        let at = match which {
            Which::Receive => offsets.rx,
            Which::Fill => offsets.fr,
            Which::Completion => offsets.cr,
        };
        let (_, page, entry) = which.numbers();
        let words = size as usize * entry;
        let ring = Self { map: Mapping::of(fd, at.desc as usize + words * 8, page)?, at, words };
        // So that the accessors below cannot fail.
        let inside = [at.producer, at.consumer, at.flags].iter().all(|&field| ring.field(field).is_some());
        let fits = inside && ring.map.words64(at.desc as usize, words).is_some();
        if fits { Ok(ring) } else { Err(io::Error::from_raw_os_error(libc::EPROTO)) }
    }

    fn field(&self, offset: u64) -> Option<&AtomicU32> {
        self.map.words32(offset as usize, 1).map(|words| &words[0])
    }

    /// Where its producer is.
    pub fn producer(&self) -> &AtomicU32 {
        self.field(self.at.producer).expect("checked when it was mapped")
    }

    /// Where its consumer is.
    pub fn consumer(&self) -> &AtomicU32 {
        self.field(self.at.consumer).expect("checked when it was mapped")
    }

    /// Whether the kernel asks to be woken.
    pub fn flags(&self) -> &AtomicU32 {
        self.field(self.at.flags).expect("checked when it was mapped")
    }

    /// Its entries.
    pub fn entries(&self) -> &[AtomicU64] {
        self.map.words64(self.at.desc as usize, self.words).expect("checked when it was mapped")
    }
}

fn offsets(fd: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: all-zero is a valid xdp_mmap_offsets.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::xdp_mmap_offsets>() as libc::socklen_t;
    // SAFETY: both pointers live through the call and `len` is the size of `offsets`.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            (&raw mut offsets).cast(),
            &raw mut len,
        )
    })?;
    Ok(offsets)
}
