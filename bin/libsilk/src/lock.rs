//! A lock for short sections, made for a library inside somebody else's program: it can be
//! forced open in a forked child (whose other threads do not exist), it costs nothing while
//! the program has one thread, and it never sleeps anywhere but in `futex(2)`.

use silk_stream::wake;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

unsafe extern "C" {
    /// glibc's hint: not zero while the process has never had a second thread.
    safe static __libc_single_threaded: AtomicU8;
}

/// Whether no other thread can be running.
pub fn is_alone() -> bool {
    __libc_single_threaded.load(Ordering::Relaxed) != 0
}

const SECOND: Duration = Duration::from_secs(1);

const FREE: u32 = 0;
const HELD: u32 = 1;
const WANTED: u32 = 2;

/// A lock without data.
#[derive(Default)]
pub struct Lock(AtomicU32);

impl Lock {
    /// An open lock.
    pub const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Takes the lock until the turn ends. A program with one thread takes nothing, so its
    /// signal handlers may interrupt a turn and take one of their own.
    #[inline]
    pub fn turn(&self) -> Turn<'_> {
        if is_alone() {
            return Turn(None);
        }
        self.hold();
        Turn(Some(self))
    }

    /// The same, for who waits no longer than a second: whoever has the lock may be the caller himself, below a signal
    /// handler.
    pub fn short_turn(&self) -> Turn<'_> {
        if is_alone() {
            return Turn(None);
        }
        let until = Instant::now() + SECOND;
        let mut is_held = self.try_hold();
        while !is_held && Instant::now() < until {
            is_held = self.0.swap(WANTED, Ordering::Acquire) == FREE;
            if !is_held {
                wake::wait(&self.0, WANTED, Some(SECOND));
            }
        }
        Turn(is_held.then_some(self))
    }

    /// Takes the lock, to be opened with [`Lock::open`], if nobody has it.
    fn try_hold(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the lock, to be opened with [`Lock::open`].
    pub fn hold(&self) {
        if self.try_hold() {
            return;
        }
        while self.0.swap(WANTED, Ordering::Acquire) != FREE {
            // Bounded, so that a holder that a fork left behind is not waited for silently
            // in one endless call.
            wake::wait(&self.0, WANTED, Some(SECOND));
        }
    }

    /// Opens the lock.
    pub fn open(&self) {
        if self.0.swap(FREE, Ordering::Release) == WANTED {
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

    /// Opens the lock in a forked child, whoever held it in the parent.
    pub fn force_open(&self) {
        self.0.store(FREE, Ordering::Release);
    }
}

/// While it lives, the lock is held.
pub struct Turn<'a>(Option<&'a Lock>);

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
    fn a_short_turn_ends_in_time_where_nobody_opens() {
        let lock = Lock::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(lock.short_turn().0.is_some());
                lock.hold();
                assert!(lock.short_turn().0.is_none(), "its own");
                lock.open();
                assert!(lock.short_turn().0.is_some());
            });
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
