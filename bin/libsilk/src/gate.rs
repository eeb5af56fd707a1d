//! What nobody may be half-way through at a fork or an exec: taking a socket or letting go of one, which changes
//! both what the daemon's book says of this process and its own tables. Of the first the child gets a
//! copy when the fork is prepared, of the second when it happens; what changed in between would be held
//! by a child that does not know it, or used by one that does not hold it.
//!
//! Any number of threads may be inside; a fork shuts the gate and waits until all are out. An exec does
//! so too: what a thread that it ends had half done would be held for ever. Nobody waits
//! for the network inside.

use crate::lock::is_alone;
use silk_stream::wake;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// The gate is shut; below it, how many are inside.
const SHUT: u32 = 1 << 31;

static INSIDE: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static MINE: Cell<Mine> = const { Cell::new(Mine { depth: 0, counted: false }) };
}

/// What the gate knows of a thread.
#[derive(Clone, Copy)]
struct Mine {
    /// How often it has passed: by itself, below a signal handler, or as the one that forks.
    depth: u32,
    /// It is one of [`INSIDE`].
    counted: bool,
}

/// While it lives, its thread is inside.
pub struct Passage(PhantomData<*const ()>);

/// Goes inside, once no fork is in the way. A thread that is inside already goes on; one that has no
/// others beside it need not be counted.
#[inline]
pub fn pass() -> Passage {
    let mut mine = MINE.get();
    if mine.depth == 0 && !is_alone() {
        enter();
        mine.counted = true;
    }
    mine.depth += 1;
    MINE.set(mine);
    Passage(PhantomData)
}

fn enter() {
    let mut now = INSIDE.load(Relaxed);
    loop {
        if now & SHUT != 0 {
            // Bounded, as every wait for another thread here.
            wake::wait(&INSIDE, now, Some(Duration::from_secs(1)));
            now = INSIDE.load(Relaxed);
            continue;
        }
        match INSIDE.compare_exchange_weak(now, now + 1, SeqCst, Relaxed) {
            Ok(_) => return,
            Err(other) => now = other,
        }
    }
}

impl Drop for Passage {
    #[inline]
    fn drop(&mut self) {
        let mut mine = MINE.get();
        mine.depth -= 1;
        let leaves = mine.depth == 0 && std::mem::take(&mut mine.counted);
        MINE.set(mine);
        if leaves && INSIDE.fetch_sub(1, SeqCst) & SHUT != 0 {
            wake::wake(&INSIDE, i32::MAX);
        }
    }
}

/// Before a fork or an exec: nobody but this thread comes in any more, and nobody else is inside. (A fork in a
/// signal handler may have interrupted its own thread there.)
pub fn shut() {
    let mut mine = MINE.get();
    mine.depth += 1;
    MINE.set(mine);
    let mut now = INSIDE.fetch_or(SHUT, SeqCst) | SHUT;
    while now & !SHUT > u32::from(mine.counted) {
        wake::wait(&INSIDE, now, Some(Duration::from_secs(1)));
        now = INSIDE.load(SeqCst);
    }
}

/// After the fork, in the parent, or after an exec that failed.
pub fn open() {
    let mut mine = MINE.get();
    mine.depth -= 1;
    MINE.set(mine);
    INSIDE.fetch_and(!SHUT, SeqCst);
    wake::wake(&INSIDE, i32::MAX);
}

/// Waits a moment until nobody is inside: what another thread has half let go of is gone then. Not for a thread that is
/// inside itself.
pub fn settle() {
    for _ in 0..10 {
        let now = INSIDE.load(SeqCst);
        if now & !SHUT == 0 {
            return;
        }
        wake::wait(&INSIDE, now, Some(Duration::from_millis(1)));
    }
}

/// After the fork, in the child, which has no other threads.
pub fn force_open() {
    let mut mine = MINE.get();
    mine.depth -= 1;
    MINE.set(mine);
    INSIDE.store(u32::from(mine.counted), SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[test]
    fn a_shut_gate_waits_for_those_inside_and_lets_nobody_in() {
        let (inside, shut_now) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let first = pass();
            let nested = pass();
            scope.spawn(|| {
                shut();
                shut_now.store(true, SeqCst);
                // Whoever shuts it passes, as a signal handler of its thread would.
                drop(pass());
                assert!(!inside.load(SeqCst));
                open();
            });
            while INSIDE.load(SeqCst) & SHUT == 0 {
                thread::yield_now();
            }
            scope.spawn(|| {
                let _passage = pass();
                inside.store(true, SeqCst);
                assert!(shut_now.load(SeqCst));
            });
            drop(nested);
            assert!(!shut_now.load(SeqCst) && !inside.load(SeqCst));
            drop(first);
        });
        assert!(inside.load(SeqCst));
        assert_eq!(INSIDE.load(SeqCst), 0);
    }
}
