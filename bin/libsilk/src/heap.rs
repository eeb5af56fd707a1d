//! This library's memory. A signal's handler may call `poll`, `close` or `connect` in the middle of its own thread's `malloc`
//! (POSIX lets it), and a child that another thread's `malloc` was copied with has nobody who finishes that: the C library's memory is in
//! nobody's order then. So this has its own, which is in order at any moment: pieces of a few sizes, the free ones of each size in a list
//! that is changed by one compare-and-swap. What is larger is mapped for itself.
//!
//! Pieces are used again and never given back, as there are as many as were in use at one time.

use crate::real;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// The smallest piece; all are multiples of it, and lie at such.
const LEAST: usize = 16;
/// Sizes that there are pieces of, each twice the one before.
const SIZES: usize = 12;
/// What pieces are cut from, if four fit: all of it is touched where they are small.
const PORTION: usize = 16 << 10;
/// Where programs have memory, of 48 bits, in words of [`LEAST`]: what lies above in a list's head counts its changes.
const PLACE: u64 = (1 << 44) - 1;

/// The memory.
pub struct Heap {
    lists: [List; SIZES],
}

/// Free pieces of one size: the first one's place in units of [`LEAST`], below a count that changes with every use (against ABA).
/// The first word of each is the place of the next.
#[repr(align(64))]
struct List(AtomicU64);

impl List {
    fn head(now: u64, place: u64) -> u64 {
        (now & !PLACE).wrapping_add(PLACE + 1) | place
    }

    /// Where a piece says what is behind it.
    fn word(place: u64) -> *const AtomicU64 {
        ptr::with_exposed_provenance(place as usize * LEAST)
    }

    fn pop(&self) -> Option<*mut u8> {
        let mut now = self.0.load(Acquire);
        loop {
            let place = now & PLACE;
            if place == 0 {
                return None;
            }
            // SAFETY: pieces stay mapped. If another has taken this one meanwhile, what is read is not used.
            let next = unsafe { (*Self::word(place)).load(Relaxed) } & PLACE;
            match self.0.compare_exchange_weak(now, Self::head(now, next), AcqRel, Acquire) {
                Ok(_) => return Some(ptr::with_exposed_provenance_mut(place as usize * LEAST)),
                Err(other) => now = other,
            }
        }
    }

    /// # Safety
    /// Nobody has the piece any more.
    unsafe fn push(&self, piece: *mut u8) {
        let place = (piece.expose_provenance() / LEAST) as u64;
        let mut now = self.0.load(Acquire);
        loop {
            // SAFETY: it is the caller's, and as long as a word.
            unsafe { (*Self::word(place)).store(now & PLACE, Relaxed) };
            match self.0.compare_exchange_weak(now, Self::head(now, place), AcqRel, Acquire) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
    }
}

/// Which size of piece is enough, if any is; more than to a page none is aligned.
fn size_for(layout: Layout) -> Option<usize> {
    if layout.align() > LARGEST_ALIGNMENT {
        return None;
    }
    let least = layout.size().max(layout.align()).max(LEAST).div_ceil(LEAST);
    let size = least.next_power_of_two().trailing_zeros() as usize;
    (size < SIZES).then_some(size)
}

/// Memory of the kernel's; null where there is none.
fn mapped(len: usize) -> *mut u8 {
    let (allowed, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new memory at a place of the kernel's choice.
    let at = unsafe { real::mmap(0, len, allowed, flags, -1, 0) };
    if at == usize::MAX { ptr::null_mut() } else { ptr::with_exposed_provenance_mut(at) }
}

impl Heap {
    /// One of which nothing is in use.
    pub const fn new() -> Self {
        Self { lists: [const { List(AtomicU64::new(0)) }; SIZES] }
    }

    /// Maps memory and cuts it up: the first piece, the others go to their list.
    fn cut(list: &List, size: usize) -> *mut u8 {
        let piece = LEAST << size;
        let portion = PORTION.max(4 * piece);
        let first = mapped(portion);
        if !first.is_null() {
            // The last first, so that they are given out in their order.
            for n in (1..portion / piece).rev() {
                // SAFETY: within what was mapped, and nobody's yet.
                unsafe { list.push(first.add(n * piece)) };
            }
        }
        first
    }
}

// SAFETY: pieces are as long as their size and lie at multiples of it, since portions begin at pages and none is to lie otherwise;
// what is in a list is nobody's.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match size_for(layout).and_then(|size| Some((self.lists.get(size)?, size))) {
            Some((list, size)) => list.pop().unwrap_or_else(|| Self::cut(list, size)),
            None if layout.align() > LARGEST_ALIGNMENT => ptr::null_mut(),
            None => mapped(layout.size()),
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        match size_for(layout).and_then(|size| self.lists.get(size)) {
            // SAFETY: as the caller promises, here and below.
            Some(list) => unsafe { list.push(piece) },
            None => {
                // SAFETY: mapped for itself.
                unsafe { real::munmap(piece.expose_provenance(), layout.size()) };
            }
        }
    }
}

/// That of a page.
const LARGEST_ALIGNMENT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn sizes_are_rounded_up() {
        let of = |size, align| size_for(layout(size, align));
        assert_eq!([of(1, 1), of(16, 8), of(17, 8), of(1, 64)], [Some(0), Some(0), Some(1), Some(2)]);
        assert_eq!([of(32 << 10, 8), of((32 << 10) + 1, 8)], [Some(11), None]);
    }

    #[test]
    fn each_piece_lies_as_it_is_asked_to_or_there_is_none() {
        let heap = Heap::new();
        for (size, align) in (0..16).flat_map(|n| [(8, 1 << n), (100_000, 1 << n)]) {
            for _ in 0..9 {
                // SAFETY: nothing is done with what is given. Between two portions lie nine pages.
                let piece =
                    unsafe { [heap.alloc(layout(36_000, 8)), heap.alloc(layout(size, align))][1] }.addr();
                assert_eq!(piece % align, 0, "{size} at {align}");
                assert_eq!(piece == 0, align > LARGEST_ALIGNMENT, "{size} at {align}");
            }
        }
    }

    #[test]
    fn a_list_remembers_the_highest_place_that_a_program_has() {
        // Of 48 bits, as on aarch64.
        let place = ((1 << 48) - LEAST as u64) / LEAST as u64;
        let now = (0..3).fold(0, |now, _| List::head(now, place));
        assert_eq!((now & PLACE, now / (PLACE + 1)), (place, 3));
    }

    #[test]
    fn many_threads_have_each_piece_once() {
        static HEAP: Heap = Heap::new();
        let fill = |seed: usize| {
            let mut mine: Vec<(*mut u8, Layout)> = Vec::new();
            for n in 0..20_000usize {
                let wanted = layout(1 + (n * 7919 + seed) % if n % 100 == 0 { 90_000 } else { 300 }, 8);
                // SAFETY: what is written is within what was given, and given back once.
                unsafe {
                    let piece = HEAP.alloc(wanted);
                    assert!(!piece.is_null() && piece.cast::<u64>().is_aligned());
                    piece.write_bytes(seed as u8, wanted.size());
                    mine.push((piece, wanted));
                    if n % 3 > 0 {
                        let (piece, was) = mine.swap_remove((n * 31) % mine.len());
                        let all = std::slice::from_raw_parts(piece, was.size());
                        assert!(all.iter().all(|byte| *byte == seed as u8));
                        HEAP.dealloc(piece, was);
                    }
                }
            }
            for (piece, was) in mine {
                // SAFETY: as above.
                unsafe { HEAP.dealloc(piece, was) };
            }
        };
        std::thread::scope(|scope| (1..5).for_each(|seed| drop(scope.spawn(move || fill(seed)))));
    }

    #[test]
    fn what_is_given_back_is_given_out_again() {
        let heap = Heap::new();
        // SAFETY: each is given back once.
        unsafe {
            let first: BTreeSet<_> = (0..1000).map(|_| heap.alloc(layout(40, 8))).collect();
            assert_eq!(first.len(), 1000);
            first.iter().for_each(|piece| heap.dealloc(*piece, layout(33, 8)));
            let again: BTreeSet<_> = (0..1000).map(|_| heap.alloc(layout(64, 64))).collect();
            assert_eq!(again, first);
        }
    }
}
