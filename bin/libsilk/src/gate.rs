//! What nobody may be half-way through at a fork or an exec: taking a socket or letting go of one, which changes
//! both what the daemon's book says of this process and its own tables. Of the first the child gets a
//! copy when the fork is prepared, of the second when it happens; what changed in between would be held
//! by a child that does not know it, or used by one that does not hold it.
//!
//! Any number of threads may be inside; a fork shuts the gate and waits until all are out. An exec does
//! so too: what a thread that it ends had half done would be held for ever. Nobody waits
//! for the network inside. A signal's handler that jumps out is not waited for.

use crate::jump::{Jump, Place};
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
    static MINE: Cell<Mine> = const { Cell::new(OUTSIDE) };
}

/// What the gate knows of a thread.
#[derive(Clone, Copy)]
struct Mine {
    /// How often it has passed: by itself, below a signal handler, or as the one that forks.
    depth: u32,
    /// It is one of [`INSIDE`].
    counted: bool,
    /// Where on its stack it has passed first, while it is inside. Not of one that forks.
    place: Option<Place>,
}

const OUTSIDE: Mine = Mine { depth: 0, counted: false, place: None };

/// While it lives, its thread is inside.
pub struct Passage(PhantomData<*const ()>);

/// Goes inside, once no fork is in the way. A thread that is inside already goes on; one that has no
/// others beside it need not be counted.
#[inline]
pub fn pass() -> Passage {
    let mut mine = MINE.get();
    if mine.depth == 0 {
        mine.place = Some(Place::here());
        if !is_alone() {
            enter();
            mine.counted = true;
        }
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
        mine.depth = mine.depth.saturating_sub(1);
        if mine.depth > 0 {
            MINE.set(mine);
        } else {
            leave(mine.counted);
        }
    }
}

fn leave(counted: bool) {
    MINE.set(OUTSIDE);
    if counted && INSIDE.fetch_sub(1, SeqCst) & SHUT != 0 {
        wake::wake(&INSIDE, i32::MAX);
    }
}

/// This thread leaves by a `jump` what it was doing inside. (One that comes between the thread's count and its note of that
/// leaves it counted.)
pub fn abandon(jump: impl FnOnce() -> Jump) {
    let mine = MINE.get();
    if mine.place.is_some_and(|place| jump().leaves(place)) {
        leave(mine.counted);
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
    use crate::jump::tests::{far_below, handlers_place};
    use std::sync::atomic::AtomicBool;
    use std::sync::{Mutex, PoisonError};
    use std::thread;

    /// There is one gate for all tests.
    static IN_TURN: Mutex<()> = Mutex::new(());

    #[test]
    fn who_leaves_by_a_jump_is_not_inside_any_more() {
        let _turn = IN_TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = || INSIDE.load(SeqCst);
        let jumps = || {
            let outside = Place::here();
            far_below(|| {
                std::mem::forget((pass(), pass()));
                abandon(|| Jump::towards(handlers_place()));
                assert_eq!(inside(), 1, "a handler jumps within itself");
                abandon(|| Jump::towards(outside));
                assert_eq!(inside(), 0);
                abandon(|| unreachable!("it is not inside"));
            });
            let _again = pass();
            assert_eq!(inside(), 1);
        };
        thread::scope(|scope| _ = scope.spawn(jumps));
        assert_eq!(inside(), 0);
    }

    #[test]
    fn a_shut_gate_waits_for_those_inside_and_lets_nobody_in() {
        let _turn = IN_TURN.lock().unwrap_or_else(PoisonError::into_inner);
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
