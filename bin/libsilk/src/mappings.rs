//! Which of the program's memory is which file: what it has mapped to read, and neither unmapped nor
//! made writable since. A program that writes from there to a stream writes the file's bytes, which
//! can then be sent from the file ([`crate::files`]).
//!
//! What is mapped otherwise than by the C library's functions is not known, and copied like all else.

use crate::family;
use crate::lock::{Guarded, Lock};
use crate::real;
use libc::{c_int, off_t};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The least that is worth it, bytes.
pub const LEAST: usize = 16 << 10;
/// Mappings that are remembered at one time; of programs with more, the rest is copied.
const MOST: usize = 64;

/// A part of a file, and where it may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The device that the file is on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
    /// Where the part begins, bytes.
    pub offset: u64,
    /// Its length, bytes.
    pub len: usize,
    /// The descriptor that it was mapped from; it may be another file's by now.
    pub fd: c_int,
}

struct Mapping {
    start: usize,
    part: Part,
}

impl Mapping {
    /// The place of an address in it.
    fn holds(&self, address: usize) -> Option<usize> {
        address.checked_sub(self.start).filter(|skip| *skip < self.part.len)
    }
}

/// An array: memory asked for under this lock would be asked of the program's own allocator, which
/// may come back here by `munmap`.
static MAPPINGS: Guarded<[Option<Mapping>; MOST]> = Guarded::new([const { None }; MOST]);
/// How many there are, for those who need not look further.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The identity and length of a regular file; `None` of everything else.
pub fn identify(fd: c_int) -> Option<(u64, u64, u64)> {
    let about = real::about(fd)?;
    let is_file = about.st_mode & libc::S_IFMT == libc::S_IFREG;
    is_file.then_some((about.st_dev, about.st_ino, u64::try_from(about.st_size).ok()?))
}

/// The program has mapped something.
pub fn note(start: usize, len: usize, allowed: c_int, flags: c_int, fd: c_int, offset: off_t) {
    let plain = allowed == libc::PROT_READ && flags & libc::MAP_ANONYMOUS == 0 && fd >= 0;
    if !plain || len < LEAST || start == usize::MAX || family::joined().is_none() {
        return;
    }
    let Some((device, inode, _)) = identify(fd) else { return };
    let Ok(offset) = u64::try_from(offset) else { return };
    remember(Mapping { start, part: Part { device, inode, offset, len, fd } });
}

fn remember(mapping: Mapping) {
    let mut mappings = MAPPINGS.lock();
    if let Some(free) = mappings.iter_mut().find(|place| place.is_none()) {
        *free = Some(mapping);
        COUNT.fetch_add(1, SeqCst);
    }
}

/// The program does something else with its memory from `start` on.
pub fn forget(start: usize, len: usize) {
    if COUNT.load(SeqCst) == 0 {
        return;
    }
    let end = start.saturating_add(len);
    let mut mappings = MAPPINGS.lock();
    for place in mappings.iter_mut() {
        let touches = |one: &mut Mapping| one.start < end && start < one.start.saturating_add(one.part.len);
        if place.take_if(touches).is_some() {
            COUNT.fetch_sub(1, SeqCst);
        }
    }
}

/// The part of a file that the memory from `start` on is, as far as it goes.
pub fn find(start: usize, len: usize) -> Option<Part> {
    if COUNT.load(SeqCst) == 0 {
        return None;
    }
    let mappings = MAPPINGS.lock();
    let (part, skip) = mappings.iter().flatten().find_map(|one| Some((one.part, one.holds(start)?)))?;
    Some(Part { offset: part.offset.checked_add(skip as u64)?, len: len.min(part.len - skip), ..part })
}

/// The lock, to be held across a fork.
pub fn lock() -> &'static Lock {
    MAPPINGS.bare()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if the program had mapped 32 KB of a file there, from its second page on.
    fn mapped(start: usize) -> Part {
        let part = Part { device: 1, inode: 2, offset: 4096, len: 32 << 10, fd: 3 };
        remember(Mapping { start, part });
        part
    }

    #[test]
    fn memory_is_the_part_of_the_file_that_was_mapped_there() {
        const START: usize = 0x10_0000;
        let part = mapped(START);
        let at = |skip: usize, len| find(START + skip, len).map(|part| (part.offset, part.len));
        assert_eq!([at(0, 10), at(100, 50)], [Some((4096, 10)), Some((4196, 50))]);
        assert_eq!(at(part.len - 5, 50), Some((4096 + part.len as u64 - 5, 5)), "as far as it goes");
        assert_eq!([at(part.len, 1), find(START - 1, 10).map(|part| (part.offset, part.len))], [None, None]);
    }

    #[test]
    fn what_touches_a_mapping_ends_it_and_what_lies_beside_does_not() {
        const START: usize = 0x20_0000;
        let end = START + mapped(START).len;
        for (from, len, stays) in
            [(START - 1, 1, true), (end, 9, true), (START + 1, 1, false), (end - 1, 9, false)]
        {
            forget(START, usize::MAX);
            mapped(START);
            forget(from, len);
            assert_eq!(find(START, 1).is_some(), stays, "{from:#x} {len}");
        }
    }
}
