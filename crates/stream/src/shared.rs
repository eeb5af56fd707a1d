//! What the processes that hold one socket share of it beyond its slot: whose turn it is at either ring, and what they have
//! set. Each process has that for itself as long as it is alone, so that few sockets ever need any of it.

use crate::sync::AtomicU32;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
#[cfg(not(loom))]
use crate::wake;
#[cfg(not(loom))]
use std::time::Duration;

/// Words that the processes tell each other.
pub const SHARED_WORDS: usize = 39;

/// One socket's.
#[repr(C)]
pub struct Shared {
    /// Who reads from the receive ring.
    pub reading: SharedLock,
    /// Who writes to the send ring.
    pub writing: SharedLock,
    /// How often any of the words has changed.
    changes: AtomicU32,
    words: [AtomicU32; SHARED_WORDS],
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            reading: SharedLock::default(),
            writing: SharedLock::default(),
            changes: AtomicU32::new(0),
            words: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

impl Shared {
    /// The only process that holds the socket is about to share it, and says what it knows of it. How often that has
    /// changed.
    pub fn begin(&self, words: &[u32; SHARED_WORDS]) -> u32 {
        self.reading.0.store(FREE, Relaxed);
        self.writing.0.store(FREE, Relaxed);
        self.words.iter().zip(words).for_each(|(word, value)| word.store(*value, Relaxed));
        self.changes()
    }

    /// How often any of the words has changed.
    #[inline]
    pub fn changes(&self) -> u32 {
        self.changes.load(Acquire)
    }

    /// What the processes have told.
    pub fn words(&self) -> [u32; SHARED_WORDS] {
        std::array::from_fn(|at| self.words[at].load(Relaxed))
    }

    /// A process has changed these `bits` of the words; how often any has been changed now.
    pub fn tell(&self, words: &[u32; SHARED_WORDS], bits: &[u32; SHARED_WORDS]) -> u32 {
        for (word, (new, bits)) in self.words.iter().zip(words.iter().zip(bits)) {
            if *bits != 0 {
                let _ = word.fetch_update(Relaxed, Relaxed, |now| Some((now & !bits) | (new & bits)));
            }
        }
        self.changes.fetch_add(1, AcqRel).wrapping_add(1)
    }

    /// A process is gone: nobody waits for it.
    pub fn let_go(&self, process: u32) {
        self.reading.let_go(process);
        self.writing.let_go(process);
    }
}

const FREE: u32 = 0;
/// Somebody waits.
const WANTED: u32 = 1 << 31;

/// A lock that the processes of a family take in turns: its word is who has it, and whether somebody waits. That of a process
/// that dies is opened by the daemon.
#[repr(C)]
#[derive(Default)]
pub struct SharedLock(AtomicU32);

impl SharedLock {
    /// Takes the lock for `process`, which is not zero, when it is its turn. `false`: waiting is of no use, as `may_come`
    /// says, which is told whether it is the process itself that has the lock. Who has waited is asked again before he takes it.
    #[inline]
    pub fn take(&self, process: u32, may_come: impl Fn(bool) -> bool) -> bool {
        let own = process & !WANTED;
        match self.0.compare_exchange(FREE, own, Acquire, Relaxed) {
            Ok(_) => true,
            Err(now) => self.wait(own, now, may_come),
        }
    }

    #[cold]
    fn wait(&self, own: u32, mut now: u32, may_come: impl Fn(bool) -> bool) -> bool {
        loop {
            if !may_come(now & !WANTED == own) {
                if now == FREE {
                    // Who opened it has woken this one, and no other that waits.
                    rouse(&self.0, 1);
                }
                return false;
            }
            if now == FREE {
                // Others may be waiting still.
                match self.0.compare_exchange(FREE, own | WANTED, Acquire, Relaxed) {
                    Ok(_) => return true,
                    Err(other) => now = other,
                }
                continue;
            }
            if now & WANTED != 0 || self.0.compare_exchange(now, now | WANTED, Relaxed, Relaxed).is_ok() {
                sleep(&self.0, now | WANTED);
            }
            now = self.0.load(Relaxed);
        }
    }

    /// Opens the lock, which the caller has.
    #[inline]
    pub fn open(&self) {
        if self.0.swap(FREE, SeqCst) & WANTED != 0 {
            rouse(&self.0, 1);
        }
    }

    /// Opens the lock if `process` has it, which is gone, or was in the middle of its turn and has left that.
    pub fn let_go(&self, process: u32) {
        let own = process & !WANTED;
        for held in [own, own | WANTED] {
            // Once somebody waits the word stays as it is until the lock is opened.
            if self.0.compare_exchange(held, FREE, SeqCst, Relaxed).is_ok() {
                rouse(&self.0, i32::MAX);
            }
        }
    }
}

#[cfg(not(loom))]
fn sleep(word: &AtomicU32, seen: u32) {
    // Then it is looked whether waiting is of any use.
    wake::wait(word, seen, Some(Duration::from_secs(1)));
}

#[cfg(not(loom))]
fn rouse(word: &AtomicU32, count: i32) {
    wake::wake(word, count);
}

#[cfg(loom)]
fn sleep(_: &AtomicU32, _: u32) {
    loom::thread::yield_now();
}

#[cfg(loom)]
fn rouse(_: &AtomicU32, _: i32) {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn each_has_its_turn_and_only_once() {
        let (lock, count) = (SharedLock::default(), AtomicU32::new(0));
        thread::scope(|scope| {
            for process in 1..5 {
                let (lock, count) = (&lock, &count);
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        assert!(lock.take(process, |_| true));
                        let seen = count.load(Relaxed);
                        std::hint::black_box(seen);
                        count.store(seen + 1, Relaxed);
                        lock.open();
                    }
                });
            }
        });
        assert_eq!((count.load(Relaxed), lock.0.load(Relaxed)), (80_000, FREE));
    }

    #[test]
    fn who_has_it_does_not_wait_for_itself_nor_anybody_for_the_dead() {
        let lock = SharedLock::default();
        assert!(lock.take(7, |_| true));
        assert!(!lock.take(7, |own| !own), "a signal handler");
        assert!(!lock.take(8, |_| false), "waiting is of no use");
        thread::scope(|scope| {
            let waits = scope.spawn(|| lock.take(8, |own| !own));
            while lock.0.load(Relaxed) & WANTED == 0 {
                thread::yield_now();
            }
            lock.let_go(9);
            assert_eq!(lock.0.load(Relaxed), 7 | WANTED, "somebody else");
            lock.let_go(7);
            assert!(waits.join().unwrap());
        });
        lock.open();
        lock.let_go(8);
        assert_eq!(lock.0.load(Relaxed), FREE);
    }

    #[test]
    fn who_finds_that_waiting_is_of_no_use_does_not_take_what_is_free_by_then() {
        let (lock, is_of_use) = (SharedLock::default(), AtomicU32::new(1));
        assert!(lock.take(7, |_| true));
        thread::scope(|scope| {
            let waits = scope.spawn(|| lock.take(8, |_| is_of_use.load(SeqCst) != 0));
            while lock.0.load(Relaxed) & WANTED == 0 {
                thread::yield_now();
            }
            is_of_use.store(0, SeqCst);
            lock.open();
            assert!(!waits.join().unwrap());
        });
        assert_eq!(lock.0.load(Relaxed), FREE);
    }

    #[test]
    fn what_one_changes_does_not_undo_what_another_has() {
        let shared = Shared::default();
        let mut known = [0; SHARED_WORDS];
        known[3] = 5;
        let first = shared.begin(&known);
        let mut bits = [[0; SHARED_WORDS]; 2];
        let (mut one, mut other) = (known, known);
        (one[0], other[36]) = (1, 9);
        // Of one word, too.
        (one[3], other[3]) = (7, 4);
        ([bits[0][0], bits[0][3]], [bits[1][36], bits[1][3]]) = ([u32::MAX, 2], [u32::MAX, 1]);
        assert_eq!(shared.tell(&one, &bits[0]), first + 1);
        assert_eq!(shared.tell(&other, &bits[1]), first + 2);
        let words = shared.words();
        assert_eq!((words[0], words[3], words[36], shared.changes()), (1, 6, 9, first + 2));
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn one_at_a_time() {
        loom::model(|| {
            let shared = Arc::new((SharedLock::default(), UnsafeCell::new(0)));
            let count = |shared: &(SharedLock, UnsafeCell<u32>), process| {
                assert!(shared.0.take(process, |_| true));
                // SAFETY: the lock is held.
                shared.1.with_mut(|count| unsafe { *count += 1 });
                shared.0.open();
            };
            let other = shared.clone();
            let thread = thread::spawn(move || count(&other, 1));
            count(&shared, 2);
            thread.join().unwrap();
            // SAFETY: the other thread has ended.
            shared.1.with(|count| assert_eq!(unsafe { *count }, 2));
        });
    }
}
