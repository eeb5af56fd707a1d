//! A byte ring in an arena: the arithmetic of free-running indices, and the copies.
//!
//! The memory is shared with a process that may change it at any moment, so nothing here
//! decides by what it reads from a ring: bytes are copied, or passed to the kernel.

use crate::sync::{AtomicU32, Ordering};
use std::marker::PhantomData;

/// Bytes between `read` and `write`, at most `size`: a claim beyond it is cut.
pub fn used(write: u32, read: u32, size: u32) -> u32 {
    write.wrapping_sub(read).min(size)
}

/// Bytes that may still be written.
pub fn free(write: u32, read: u32, size: u32) -> u32 {
    size - used(write, read, size)
}

/// Of whoever writes: how many bytes more it may write while memory is short, up to `reach` from the start of the
/// ring's memory: all of them where the ring is empty, since it begins there again.
#[inline]
pub fn left_of(reach: u32, first: u32, write: u32, read: u32) -> u32 {
    if write == read { reach } else { reach.saturating_sub(write.wrapping_sub(first)) }
}

/// Of whoever writes, before it does: the index that lies at the start of the memory. If all that was
/// written has been read that is `write` itself from now on, so that short exchanges use the same memory
/// again. A reader looks at `first` once it has seen that something is written, and until it has read all
/// of that.
#[inline]
pub fn begin(first: &AtomicU32, write: u32, read: &AtomicU32) -> u32 {
    let known = first.load(Ordering::Relaxed);
    if known == write || read.load(Ordering::Acquire) != write {
        return known;
    }
    first.store(write, Ordering::Relaxed);
    write
}

/// The memory of one ring. Its size is a power of two.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    start: *mut u8,
    size: u32,
    /// The index that lies at the start of the memory.
    first: u32,
    arena: PhantomData<&'a ()>,
}

impl<'a> Bytes<'a> {
    /// # Safety
    /// `start..start + size` must be mapped, readable and writable, for `'a`, and used for
    /// nothing but ring data; `size` must be a power of two or zero.
    #[cfg_attr(loom, expect(dead_code, reason = "arenas are not modelled"))]
    pub(crate) unsafe fn new(start: *mut u8, size: u32) -> Self {
        debug_assert!(size == 0 || size.is_power_of_two());
        Self { start, size, first: 0, arena: PhantomData }
    }

    /// The same ring with index `first` at the start of its memory. Writer and reader must agree: the
    /// writer may change it while the ring is empty.
    pub fn beginning_at(self, first: u32) -> Self {
        Self { first, ..self }
    }

    /// Bytes in the ring's memory.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Where a run of `len` bytes from free-running index `at` lies: two pieces, the second
    /// empty unless it wraps. `len` is cut to the size.
    fn pieces(&self, at: u32, len: usize) -> [(usize, usize); 2] {
        let len = len.min(self.size as usize);
        if len == 0 {
            return [(0, 0); 2];
        }
        let from = (at.wrapping_sub(self.first) & (self.size - 1)) as usize;
        let first = len.min(self.size as usize - from);
        [(from, first), (0, len - first)]
    }

    /// Copies `data` in from index `at`; at most the ring's size is copied.
    pub fn write(&self, at: u32, data: &[u8]) {
        let [(from, first), (_, second)] = self.pieces(at, data.len());
        // SAFETY: `pieces` keeps both runs inside `start..start+size`, which `new`'s caller
        // vouched for. `data` may be part of another ring, or of this one (`peek`): `copy` lets them overlap.
        unsafe {
            std::ptr::copy(data.as_ptr(), self.start.add(from), first);
            std::ptr::copy(data.as_ptr().add(first), self.start, second);
        }
    }

    /// Copies bytes out from index `at` until `into` is full; at most the ring's size.
    pub fn read(&self, at: u32, into: &mut [u8]) {
        let [(from, first), (_, second)] = self.pieces(at, into.len());
        // SAFETY: as in `write`, with the direction reversed; `into` is private memory, as nobody gives out the arena's to be changed.
        unsafe {
            std::ptr::copy_nonoverlapping(self.start.add(from), into.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(self.start, into.as_mut_ptr().add(first), second);
        }
    }

    /// The bytes themselves, for handing to the kernel or copying: `len` from index `at`, in
    /// two pieces. The other process may change them meanwhile, so they must not be decided
    /// upon.
    pub fn peek(&self, at: u32, len: usize) -> [&'a [u8]; 2] {
        let [(from, first), (_, second)] = self.pieces(at, len);
        if first == 0 {
            return [&[], &[]];
        }
        // SAFETY: both runs lie in the mapping, which lives for `'a`. Another process may
        // write there; every user of the slices only copies them out or gives them to a
        // system call, for which any byte value is as good as another.
        unsafe {
            [
                std::slice::from_raw_parts(self.start.add(from), first),
                std::slice::from_raw_parts(self.start, second),
            ]
        }
    }

    /// The two runs of memory that hold `len` bytes from index `at`, as addresses for
    /// `readv`-like calls that fill or drain the ring without a copy in between.
    pub fn vectors(&self, at: u32, len: usize) -> [libc::iovec; 2] {
        self.pieces(at, len).map(|(from, len)| libc::iovec {
            // SAFETY: `from` is inside the ring (or zero with no bytes).
            iov_base: unsafe { self.start.add(from) }.cast(),
            iov_len: len,
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn indices_wrap_and_lies_are_cut() {
        assert_eq!(used(5, u32::MAX - 4, 64), 10);
        assert_eq!(used(1000, 0, 64), 64);
        assert_eq!(free(1000, 0, 64), 0);
    }

    #[test]
    fn while_memory_is_short_a_ring_is_filled_from_its_start_once() {
        assert_eq!(left_of(100, 7, 7, 7), 100);
        assert_eq!(left_of(100, u32::MAX - 9, 20, 10), 70);
        assert_eq!(left_of(100, 0, 100, 10), 0);
        assert_eq!(left_of(100, 0, 5000, 4999), 0, "what ran through it before has to end first");
        assert_eq!(left_of(100, 0, 5000, 5000), 100);
    }

    #[test]
    fn what_lies_in_a_ring_can_be_written_to_it_again() {
        let mut memory = *b"0123456789abcdef";
        // SAFETY: `memory` outlives the ring and is used through it alone.
        let ring = unsafe { Bytes::new(memory.as_mut_ptr(), 16) };
        let [piece, _] = ring.peek(2, 8);
        ring.write(4, piece);
        assert_eq!(ring.peek(0, 16)[0], b"012323456789cdef");
    }

    proptest! {
        /// A ring is a bounded byte queue, whatever the pattern of writes and reads.
        #[test]
        fn a_ring_is_a_byte_queue(start in any::<u32>(), steps in prop::collection::vec((any::<bool>(), 0usize..80), 1..60)) {
            let mut memory = [0u8; 64];
            // SAFETY: `memory` outlives the ring and is used through it alone.
            let mut ring = unsafe { Bytes::new(memory.as_mut_ptr(), 64) };
            let (mut write, mut read, mut next) = (start, start, 0u8);
            let mut oracle = VecDeque::new();
            for (writing, len) in steps {
                if writing {
                    if write == read {
                        ring = ring.beginning_at(write);
                    }
                    let len = len.min(free(write, read, 64) as usize);
                    let data: Vec<u8> = (0..len).map(|i| next.wrapping_add(i as u8)).collect();
                    next = next.wrapping_add(len as u8);
                    ring.write(write, &data);
                    write = write.wrapping_add(len as u32);
                    oracle.extend(data);
                } else {
                    let len = len.min(used(write, read, 64) as usize);
                    let mut data = vec![0; len];
                    ring.read(read, &mut data);
                    prop_assert_eq!(ring.peek(read, len).concat(), data.clone());
                    read = read.wrapping_add(len as u32);
                    prop_assert_eq!(data, oracle.drain(..len).collect::<Vec<u8>>());
                }
            }
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    #[derive(Default)]
    struct Shared {
        /// Which of the rings is used.
        place: AtomicU32,
        first: AtomicU32,
        write: AtomicU32,
        read: AtomicU32,
        memory: [[UnsafeCell<u32>; 2]; 2],
    }

    // SAFETY: the cells are what the test is about: loom finds accesses that meet.
    unsafe impl Sync for Shared {}

    impl Shared {
        fn cell(&self, index: u32, first: u32) -> &UnsafeCell<u32> {
            let ring = &self.memory[self.place.load(Ordering::Relaxed) as usize];
            &ring[(index.wrapping_sub(first) & 1) as usize]
        }

        /// Waits until so many are in the ring, or fewer.
        fn wait(&self, holds: impl Fn(u32) -> bool) {
            while !holds(self.write.load(Ordering::Acquire).wrapping_sub(self.read.load(Ordering::Acquire))) {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn what_is_written_is_read_wherever_the_writer_begins() {
        loom::model(|| model(|_, _| ()));
    }

    /// As the daemon does with a larger ring. The one that it has left is another connection's at once.
    #[test]
    fn a_writer_goes_over_to_another_ring_when_the_one_it_has_is_empty() {
        loom::model(|| {
            model(|ring, n| {
                if n == 1 && ring.read.load(Ordering::SeqCst) == n {
                    ring.place.store(1, Ordering::Relaxed);
                    // SAFETY: loom checks that nobody else is here.
                    ring.memory[0].iter().for_each(|cell| cell.with_mut(|cell| unsafe { *cell = 99 }));
                }
            });
        });
    }

    /// Three values are written, the writer doing this before each, and read.
    fn model(before: impl Fn(&Shared, u32) + Send + 'static) {
        let ring = Arc::new(Shared::default());
        let theirs = ring.clone();
        let writer = thread::spawn(move || {
            for n in 0..3 {
                theirs.wait(|used| used < 2);
                before(&theirs, n);
                let first = begin(&theirs.first, n, &theirs.read);
                // SAFETY: loom checks that nobody else is here.
                theirs.cell(n, first).with_mut(|cell| unsafe { *cell = n + 7 });
                theirs.write.store(n + 1, Ordering::Release);
            }
        });
        for n in 0..3 {
            ring.wait(|used| used > 0);
            let first = ring.first.load(Ordering::Relaxed);
            // SAFETY: as above.
            assert_eq!(ring.cell(n, first).with(|cell| unsafe { *cell }), n + 7);
            ring.read.store(n + 1, Ordering::Release);
        }
        writer.join().unwrap();
    }
}
