//! Memory shared with the kernel, as atomics: nothing in it can be borrowed as plain memory,
//! so whatever the other side writes, a reader sees some value and never breaks a rule of the
//! language.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// What a huge page holds, in bytes.
const HUGE: usize = 2 << 20;

/// A mapping of memory, unmapped when dropped.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory that belongs to the process, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference it gives atomics only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed memory of our own, in huge pages where it is large and there are any.
    pub fn anonymous(len: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        if len < HUGE {
            return Self::new(len, flags, -1, 0);
        }
        let len = len.next_multiple_of(HUGE);
        Self::new(len, flags | libc::MAP_HUGETLB, -1, 0).or_else(|_| Self::transparent(len))
    }

    /// The same without reserved huge pages: the kernel is asked to find some.
    fn transparent(len: usize) -> io::Result<Self> {
        let mapping = Self::new(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)?;
        // SAFETY: the range is our own mapping; the advice changes no content. Refused advice
        // leaves ordinary pages, which serve as well.
        unsafe { libc::madvise(mapping.base.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
        Ok(mapping)
    }

    /// What `fd` maps at `offset`, shared with the kernel.
    pub fn of(fd: BorrowedFd<'_>, len: usize, offset: i64) -> io::Result<Self> {
        Self::new(len, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd(), offset)
    }

    fn new(len: usize, flags: i32, fd: i32, offset: i64) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: without MAP_FIXED the kernel chooses a range that nobody uses.
        let base = unsafe { libc::mmap(null_mut(), len, access, flags, fd, offset) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::EFAULT))?;
        Ok(Self { base, len })
    }

    /// Where it is.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// The `count` words of 32 bits from byte `offset` on; `None` where they are not inside.
    pub fn words32(&self, offset: usize, count: usize) -> Option<&[AtomicU32]> {
        let base = self.inside::<AtomicU32>(offset, count)?;
        // SAFETY: `inside` says that they are inside the mapping and aligned; the memory is
        // initialised, lives as long as `self`, and is only ever given out as atomics.
        Some(unsafe { slice::from_raw_parts(base, count) })
    }

    /// The `count` words of 64 bits from byte `offset` on; `None` where they are not inside.
    pub fn words64(&self, offset: usize, count: usize) -> Option<&[AtomicU64]> {
        let base = self.inside::<AtomicU64>(offset, count)?;
        // SAFETY: as in `words32`.
        Some(unsafe { slice::from_raw_parts(base, count) })
    }

    fn inside<T>(&self, offset: usize, count: usize) -> Option<*const T> {
        let end = count.checked_mul(size_of::<T>())?.checked_add(offset)?;
        let fits = end <= self.len && offset.is_multiple_of(align_of::<T>());
        fits.then(|| self.base.as_ptr().wrapping_add(offset).cast_const().cast())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is what mmap gave us, and every borrow of it borrowed `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
