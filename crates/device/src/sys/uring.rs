//! A small `io_uring(7)` that waits for descriptors, and polls a NAPI meanwhile.

use io_uring::{IoUring, cqueue, opcode, types};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The operation of `io_uring_register(2)` for NAPIs.
const REGISTER_NAPI: libc::c_uint = 27;

/// What it takes: `struct io_uring_napi` of Linux 6.13. Before, only zeros were allowed where the parameter is.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Napi {
    /// How long a wait polls, µs.
    pub busy_poll: u32,
    /// Whether interrupts are kept away for longer.
    pub prefer: u8,
    /// 0: how NAPIs are polled; 1: one more is polled; 2: one less.
    pub operation: u8,
    pub padding: [u8; 2],
    /// Of operation 0: whether NAPIs are named (1). Of the others: its number.
    pub parameter: u32,
    pub reserved: u32,
}

/// The ring. Only the thread that made it can use it: the kernel refuses others.
pub(crate) struct Uring(IoUring);

impl Uring {
    /// One with room for so many descriptors.
    pub fn new(entries: u32) -> io::Result<Self> {
        // News is looked at when the thread asks for it, and interrupts it at nothing else.
        Ok(Self(IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries)?))
    }

    /// Says what waits poll.
    pub fn napi(&self, mut napi: Napi) -> io::Result<()> {
        let ring = self.0.as_raw_fd();
        // SAFETY: the pointer is to one structure of the kernel's layout, which lives through the call and may be written to.
        let done =
            unsafe { libc::syscall(libc::SYS_io_uring_register, ring, REGISTER_NAPI, &raw mut napi, 1) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// From the next wait on there is news by this `name` whenever `fd` is written to; where it is `once`, there is the
    /// first time that it is found to be readable, and then no more. Whether there was room.
    pub fn watch(&mut self, fd: BorrowedFd<'_>, name: u64, once: bool) -> bool {
        let entry = opcode::PollAdd::new(types::Fd(fd.as_raw_fd()), libc::POLLIN as u32).multi(!once).build();
        // SAFETY: the entry names no memory. A descriptor that is none when the kernel looks is news of its own.
        unsafe { self.0.submission().push(&entry.user_data(name)) }.is_ok()
    }

    /// Sleeps until there is news.
    pub fn wait(&self) -> io::Result<()> {
        self.0.submit_and_wait(1).map(drop)
    }

    /// Takes the news: by which name, and whether more may come by it.
    pub fn news(&mut self) -> impl Iterator<Item = (u64, bool)> + '_ {
        self.0.completion().map(|entry| (entry.user_data(), cqueue::more(entry.flags())))
    }
}
