//! The memory of an empty ring is given back by its reader, although its writer, in another process, may begin at any
//! moment. Each says what it is about to do before it looks whether the other does the same (as in Dekker's
//! algorithm): of two that begin at once one sees the other at least. A reader that does leaves the memory where it is; a
//! writer waits, some microseconds every half a minute. In the same way a ring is exchanged for a larger one.
//!
//! Of a writer that is killed in the middle its count is left, and whatever rings the slot has keep their memory. It is never
//! set to zero again: a thread that is still in the middle when its socket is closed under it, and the slot given to another,
//! takes back what it has added.

use crate::sync::{AtomicU32, Ordering, fence};

/// Of a writer, before it looks for room: from now on until [`leave`] the memory stays. Calls `wait` with what
/// `vacating` is as long as it is just being given back; once that says `false` it is not waited for any longer.
#[inline]
pub fn enter(writers: &AtomicU32, vacating: &AtomicU32, mut wait: impl FnMut(u32) -> bool) {
    writers.fetch_add(1, Ordering::Relaxed);
    // Pairs with the one in `vacate`.
    fence(Ordering::SeqCst);
    loop {
        let seen = vacating.load(Ordering::Acquire);
        if seen & 1 == 0 || !wait(seen) {
            return;
        }
    }
}

/// Of a writer, after it has told how far it has written.
#[inline]
pub fn leave(writers: &AtomicU32) {
    writers.fetch_sub(1, Ordering::Release);
}

/// Of the reader: gives memory back by `give_back` if nobody writes, and `is_empty`, which looks how far the
/// writer has told that it has written. Whether it did.
pub fn vacate(
    writers: &AtomicU32,
    vacating: &AtomicU32,
    is_empty: impl FnOnce() -> bool,
    give_back: impl FnOnce(),
) -> bool {
    let begun = vacating.load(Ordering::Relaxed) | 1;
    vacating.store(begun, Ordering::Relaxed);
    // Pairs with the one in `enter`.
    fence(Ordering::SeqCst);
    let gives = writers.load(Ordering::Acquire) == 0 && is_empty();
    if gives {
        give_back();
    }
    vacating.store(begun.wrapping_add(1), Ordering::Release);
    gives
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn whoever_writes_keeps_the_memory_and_a_full_ring_too() {
        let (writers, vacating) = (AtomicU32::new(0), AtomicU32::new(0));
        let mut given = 0;
        enter(&writers, &vacating, |_| unreachable!());
        assert!(!vacate(&writers, &vacating, || true, || given += 1));
        leave(&writers);
        assert!(!vacate(&writers, &vacating, || false, || given += 1));
        assert!(vacate(&writers, &vacating, || true, || given += 1));
        assert_eq!((given, vacating.load(Ordering::SeqCst) & 1), (1, 0));
    }

    #[test]
    fn a_writer_waits_while_memory_is_given_back_but_not_for_ever() {
        let (writers, vacating) = (AtomicU32::new(0), AtomicU32::new(5));
        let mut waited = 0;
        enter(&writers, &vacating, |seen| {
            waited += seen;
            vacating.store(6, Ordering::SeqCst);
            true
        });
        assert_eq!(waited, 5);
        vacating.store(7, Ordering::SeqCst);
        enter(&writers, &vacating, |_| false);
        assert_eq!(writers.load(Ordering::SeqCst), 2);
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
        writers: AtomicU32,
        vacating: AtomicU32,
        write: AtomicU32,
        memory: [UnsafeCell<u32>; 2],
    }

    // SAFETY: the cells are what the test is about: loom finds accesses that meet.
    unsafe impl Sync for Shared {}

    #[test]
    fn what_is_written_is_never_given_back_before_it_is_read() {
        loom::model(|| {
            let ring = Arc::new(Shared::default());
            let theirs = ring.clone();
            let writer = thread::spawn(move || {
                for n in 0..2 {
                    enter(&theirs.writers, &theirs.vacating, |_| {
                        thread::yield_now();
                        true
                    });
                    // SAFETY: loom checks that nobody else is here.
                    theirs.memory[n].with_mut(|cell| unsafe { *cell = 7 });
                    theirs.write.store(n as u32 + 1, Ordering::SeqCst);
                    leave(&theirs.writers);
                }
            });
            let write = || ring.write.load(Ordering::SeqCst);
            let empty = |cell: &UnsafeCell<u32>| cell.with_mut(|cell| unsafe { *cell = 0 });
            vacate(&ring.writers, &ring.vacating, || write() == 0, || ring.memory.iter().for_each(empty));
            let written = write() as usize;
            // SAFETY: as above.
            ring.memory[..written].iter().for_each(|cell| assert_eq!(cell.with(|cell| unsafe { *cell }), 7));
            writer.join().unwrap();
        });
    }
}
