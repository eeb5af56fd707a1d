//! Descriptor number → a word that says what it is. One load answers for every descriptor that is nothing here, without
//! locks, so that `read` on a file costs next to nothing more. What lies behind a word: [`crate::table`].

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

/// Descriptors at or above this number are always Linux's.
const DESCRIPTORS: usize = 1 << 20;
/// What kind of thing it is is in the upper bits, which one of its kind in the lower.
const SHIFT: u32 = 28;
/// One of the library's own, which the program does not know of.
pub const INTERNAL: u32 = 1 << SHIFT;
/// A socket.
pub const SOCKET: u32 = 2 << SHIFT;
/// An event set.
pub const EPOLL: u32 = 3 << SHIFT;
/// The bits that say which one.
pub const INDEX: u32 = INTERNAL - 1;

static TABLE: [AtomicU32; DESCRIPTORS] = [const { AtomicU32::new(0) }; DESCRIPTORS];
/// All that are anything are below this.
static ABOVE: AtomicU32 = AtomicU32::new(0);

#[inline]
fn cell(fd: c_int) -> Option<&'static AtomicU32> {
    TABLE.get(usize::try_from(fd).ok()?)
}

/// The word of `fd`; 0: it is nothing here.
#[inline]
pub fn word(fd: c_int) -> u32 {
    cell(fd).map_or(0, |cell| cell.load(Ordering::Acquire))
}

/// Notes what `fd` is; `false` when its number is too high to be noted.
pub fn put(fd: c_int, word: u32) -> bool {
    let Some(cell) = cell(fd) else { return false };
    cell.store(word, Ordering::Release);
    ABOVE.fetch_max(fd.unsigned_abs() + 1, Ordering::AcqRel);
    true
}

/// Notes what `fd` is instead of what it was, which is given back; 0 where it was nothing, or its number is too high to be noted.
pub fn exchange(fd: c_int, word: u32) -> u32 {
    let Some(cell) = cell(fd) else { return 0 };
    let before = cell.swap(word, Ordering::AcqRel);
    ABOVE.fetch_max(fd.unsigned_abs() + 1, Ordering::AcqRel);
    before
}

/// Whether the number of `fd` is low enough to be noted.
pub fn is_noted(fd: c_int) -> bool {
    cell(fd).is_some()
}

/// Forgets `fd`; what it was.
pub fn take(fd: c_int) -> u32 {
    let Some(cell) = cell(fd) else { return 0 };
    // A load first: most descriptors that are closed were never here.
    if cell.load(Ordering::Relaxed) == 0 { 0 } else { cell.swap(0, Ordering::AcqRel) }
}

/// Above every number that is anything.
pub fn end() -> u32 {
    ABOVE.load(Ordering::Acquire)
}
