//! A lock for short sections, made for a library inside somebody else's program: it can be
//! forced open in a forked child (whose other threads do not exist), it costs nothing while
//! the program has one thread, and it never sleeps anywhere but in `futex(2)`.

use crate::clock::now;
use silk_stream::wake;
use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

unsafe extern "C" {
    /// glibc's hint: not zero while the process has never had a second thread.
    safe static __libc_single_threaded: AtomicU8;
}

/// Whether no other thread can be running.
pub fn is_alone() -> bool {
    __libc_single_threaded.load(Ordering::Relaxed) != 0
}

const FREE: u32 = 0;
/// Beside the thread that has the lock: others wait for it.
const WANTED: u32 = 1 << 31;

thread_local! {
    static MYSELF: Cell<u32> = const { Cell::new(0) };
}

/// What this thread is called in a lock that it has: the kernel's number of it.
fn myself() -> u32 {
    let known = MYSELF.get();
    if known == 0 { ask_who_i_am() } else { known }
}

/// The same, asked of the kernel: once for each thread, and in a forked child, whose only thread has another number than in
/// the parent.
pub fn ask_who_i_am() -> u32 {
    // SAFETY: takes nothing and cannot fail; the numbers end far below 2^31.
    let number = unsafe { libc::gettid() }.unsigned_abs();
    MYSELF.set(number);
    number
}

/// A lock without data. Its word says who has it, so that a signal's handler knows whether it has interrupted that.
#[derive(Default)]
pub struct Lock(AtomicU32);

impl Lock {
    /// An open lock.
    pub const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Takes the lock until the turn ends. A program with one thread takes nothing, nor does a signal's
    /// handler that has interrupted a turn of its own thread.
    #[inline]
    pub fn turn(&self) -> Turn<'_> {
        if is_alone() || !self.hold_unless_own() {
            return Turn(None);
        }
        Turn(Some(self))
    }

    /// Takes the lock, to be opened with [`Lock::open`], unless this thread has it already, below a signal's
    /// handler.
    fn hold_unless_own(&self) -> bool {
        let is_own = self.0.load(Ordering::Relaxed) & !WANTED == myself();
        if !is_own {
            self.hold();
        }
        !is_own
    }

    /// Takes the lock, to be opened with [`Lock::open`], if nobody has it.
    fn try_hold(&self) -> bool {
        self.take_over(myself())
    }

    fn take_over(&self, word: u32) -> bool {
        self.0.compare_exchange(FREE, word, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// As [`Lock::turn`], but `None` if the lock is not to be had until `deadline` (of [`now`]).
    pub fn turn_until(&self, deadline: Duration) -> Option<Turn<'_>> {
        if self.is_mine() {
            return Some(Turn(None));
        }
        let is_held = self.hold_while(|| deadline.checked_sub(now()).filter(|left| !left.is_zero()));
        is_held.then(|| Turn(Some(self)))
    }

    /// Takes the lock, to be opened with [`Lock::open`].
    pub fn hold(&self) {
        // Bounded, so that a holder that a fork left behind is not waited for silently in one endless call.
        self.hold_while(|| Some(Duration::from_secs(1)));
    }

    /// Takes the lock, waiting for so long at a time; without it (`false`) when there is no time any more.
    fn hold_while(&self, time: impl Fn() -> Option<Duration>) -> bool {
        if self.try_hold() {
            return true;
        }
        // Who has waited does not know whether others do.
        while !self.take_over(myself() | WANTED) {
            let seen = self.0.load(Ordering::Relaxed);
            if seen == FREE {
                continue;
            }
            let Some(limit) = time() else { return false };
            let wanted = seen | WANTED;
            let mark = || self.0.compare_exchange(seen, wanted, Ordering::Relaxed, Ordering::Relaxed);
            if seen == wanted || mark().is_ok() {
                wake::wait(&self.0, wanted, Some(limit));
            }
        }
        true
    }

    /// Opens the lock.
    pub fn open(&self) {
        if self.0.swap(FREE, Ordering::Release) & WANTED != 0 {
            wake::wake(&self.0, 1);
        }
    }

    /// Waits until whoever has it now has opened it; a moment at most, for it may be the caller himself, below a signal
    /// handler.
    pub fn outlast(&self) {
        for _ in 0..200 {
            if is_alone() || self.0.load(Ordering::Acquire) == FREE {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Whether this thread has the lock, or needs none.
    pub fn is_mine(&self) -> bool {
        is_alone() || self.0.load(Ordering::Relaxed) & !WANTED == myself()
    }

    /// Opens the lock if this thread has it, which has left its turn in the middle.
    pub fn abandon(&self) {
        if self.0.load(Ordering::Relaxed) & !WANTED == myself() {
            self.open();
        }
    }

    /// Opens the lock in a forked child, whoever held it in the parent.
    pub fn force_open(&self) {
        self.0.store(FREE, Ordering::Release);
    }
}

/// While it lives, the lock is held.
pub struct Turn<'a>(Option<&'a Lock>);

impl Turn<'_> {
    /// Whether it has taken the lock; where not, whoever the calling thread is in the way of is itself, if anybody.
    pub fn is_taken(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(lock) = self.0 {
            lock.open();
        }
    }
}

/// Data behind a lock.
#[derive(Default)]
pub struct Guarded<T> {
    lock: Lock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through `Guard`, of which the lock allows one at a time.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// `value` behind an open lock.
    pub const fn new(value: T) -> Self {
        Self { lock: Lock::new(), value: UnsafeCell::new(value) }
    }

    /// Takes the lock. Unlike [`Lock::turn`] it is always really taken: the data are not of
    /// a kind that a signal handler could meet half-way.
    pub fn lock(&self) -> Guard<'_, T> {
        self.lock.hold();
        Guard(self)
    }

    /// Takes the lock, unless this thread has it already, below a signal's handler.
    pub fn lock_unless_own(&self) -> Option<Guard<'_, T>> {
        self.lock.hold_unless_own().then(|| Guard(self))
    }

    /// Takes the lock, if nobody has it.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.lock.try_hold().then_some(Guard(self))
    }

    /// The lock itself, to be held across a fork.
    pub fn bare(&self) -> &Lock {
        &self.lock
    }
}

/// Access to the data of a [`Guarded`].
pub struct Guard<'a, T>(&'a Guarded<T>);

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the lock is held while the guard lives.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.lock.open();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_count_together() {
        static COUNT: Guarded<u32> = Guarded::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| *COUNT.lock() += 1));
            }
        });
        assert_eq!(*COUNT.lock(), 4000);
    }

    #[test]
    fn who_has_a_lock_does_not_wait_for_himself() {
        let lock = Guarded::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let held = lock.lock();
                assert!(lock.lock_unless_own().is_none());
                assert!(lock.bare().turn().0.is_none());
                drop(held);
                assert!(lock.lock_unless_own().is_some());
                // Nor for the one before, who had it and has it no more.
                let held = lock.bare().turn();
                scope.spawn(|| *lock.lock_unless_own().unwrap() += 1);
                std::thread::sleep(Duration::from_millis(10));
                drop(held);
            });
        });
        assert_eq!(*lock.lock(), 1);
    }

    #[test]
    fn who_has_only_so_much_time_goes_on_without_the_lock() {
        let lock = Lock::new();
        let soon = || now() + Duration::from_millis(20);
        lock.hold();
        assert!(lock.turn_until(soon()).is_some_and(|turn| !turn.is_taken()), "it is its own");
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(lock.turn_until(soon()).is_none()));
        });
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                lock.turn_until(now() + Duration::from_secs(20)).is_some_and(|turn| turn.is_taken())
            });
            std::thread::sleep(Duration::from_millis(10));
            lock.open();
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn a_lock_left_behind_by_a_fork_can_be_forced() {
        let lock = Lock::new();
        lock.hold();
        lock.force_open();
        lock.hold();
        lock.open();
    }
}
