//! The turn of a thread at one end of a socket, among the threads of its process and among the processes that hold the socket
//! ([`shared`]). A signal's handler that comes in the middle of its own thread's turn goes on without one; one that leaves that
//! turn by `siglongjmp` ends it. Where it forks, the turn is the parent's to end, and not the child's.

use crate::ending;
use crate::errno::Answer;
use crate::family;
use crate::jump::{Jump, Place};
use crate::lock::Turn;
use crate::shared;
use crate::socket::{self, Found, Socket};
use crate::state;
use silk_stream::{SharedLock, vacate};
use std::cell::Cell;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU32, compiler_fence};

/// What a thread is in the middle of, at one socket.
#[derive(Clone, Copy)]
enum Doing {
    Receiving,
    Sending,
    /// And it is counted among those who write ([`vacate::enter`]).
    SendingCounted,
}

/// One of several turns that a thread is in the middle of.
struct Level {
    /// What it is doing, at the socket with this record.
    what: Cell<Option<(u32, Doing)>>,
    /// Where on its stack it does that.
    place: Cell<Place>,
}

impl Level {
    const fn new() -> Self {
        Self { what: Cell::new(None), place: Cell::new(Place::LOWEST) }
    }
}

/// What a thread is in the middle of, where handlers come in the middle of handlers; what is further in is not noted.
const NESTED: usize = 8;

thread_local! {
    /// How many turns this thread is in the middle of: its own, one of a handler that has interrupted it, and so on.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// They. Beyond the depth there is nothing, whenever a handler looks.
    static MINE: [Level; NESTED] = const { [const { Level::new() }; NESTED] };
}

/// How many forks lie between the first process that had this memory and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// In a forked child, whose thread may be in the middle of turns, if a handler of a signal forks.
pub fn begin_child() {
    FORKS.fetch_add(1, Relaxed);
    (0..NESTED).for_each(|at| note(at, None));
}

fn note(at: usize, what: Option<(u32, Doing)>) {
    MINE.with(|mine| mine.get(at).into_iter().for_each(|level| level.what.set(what)));
}

/// From before a turn is taken until it has ended.
struct Noted {
    /// In the middle of so many others.
    at: usize,
    /// What [`FORKS`] was then.
    forks: u32,
}

impl Noted {
    fn begin(socket: &Socket, doing: Doing) -> Self {
        let (at, place) = (DEPTH.get(), Place::here());
        let noted = Self { at, forks: FORKS.load(Relaxed) };
        // A handler that comes between these two notes what it does behind this.
        DEPTH.set(at + 1);
        MINE.with(|mine| {
            if let Some(level) = mine.get(at) {
                level.place.set(place);
                // A handler that sees what it has interrupted knows where.
                compiler_fence(Release);
                level.what.set(Some((socket.index(), doing)));
            }
        });
        noted
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        note(self.at, None);
        DEPTH.set(self.at);
    }
}

/// The turn of a thread at one end of a socket, among its process's and among processes.
pub struct OwnTurn<'a> {
    held: Option<&'static SharedLock>,
    // Dropped in this order.
    turn: Turn<'a>,
    noted: Noted,
}

impl<'a> OwnTurn<'a> {
    /// The next reader's turn.
    #[inline]
    pub fn reading(socket: &'a Socket) -> Self {
        let noted = Noted::begin(socket, Doing::Receiving);
        let turn = socket.reading.turn();
        let mut own = Self { held: None, turn, noted };
        own.held = shared::of(socket).and_then(|shared| take(&shared.reading, &own.turn));
        own
    }

    /// The next writer's turn.
    #[inline]
    pub fn writing(socket: &'a Socket) -> Self {
        let noted = Noted::begin(socket, Doing::Sending);
        let turn = socket.writing.turn();
        let mut own = Self { held: None, turn, noted };
        own.held = shared::of(socket).and_then(|shared| take(&shared.writing, &own.turn));
        own
    }
}

/// Waits for turns at a socket. Whoever closes it waits for them as well, and may have been first.
///
/// # Errors
/// `EBADF` where the record is not what was found any more, or nobody's: nothing of it is to be touched.
pub fn while_it_lasts<T>(socket: Found, wait: impl FnOnce(&'static Socket) -> T) -> Answer<T> {
    let before = socket.name();
    let turns = wait(socket.record());
    let lasts = socket.is_still_it() && socket.name() == before && socket.is_served();
    if lasts {
        return Ok(turns);
    }
    drop(turns);
    ending::heed();
    Err(libc::EBADF)
}

impl OwnTurn<'_> {
    /// Whether this is the turn of a signal's handler that may have come in the middle of a write to the same socket.
    pub fn interrupts(&self, socket: &Socket) -> bool {
        let is_write = |level: &Level| {
            let what = level.what.get();
            what.is_some_and(|(index, doing)| index == socket.index() && !matches!(doing, Doing::Receiving))
        };
        MINE.with(|mine| mine.get(..self.noted.at).is_none_or(|outer| outer.iter().any(is_write)))
    }

    /// Whether a handler has forked in the middle of it, and this is the child: the turn is the parent's.
    pub fn is_parents(&self) -> bool {
        self.noted.forks != FORKS.load(Relaxed)
    }
}

/// The thread, which has the turn to write to `socket`, is counted among its writers, or not any more.
#[inline]
pub fn note_counted(socket: &Socket, is_counted: bool) {
    let doing = if is_counted { Doing::SendingCounted } else { Doing::Sending };
    if let Some(at) = DEPTH.get().checked_sub(1) {
        note(at, Some((socket.index(), doing)));
    }
}

/// This thread leaves by a `jump` (`siglongjmp` out of a signal's handler) what it is in the middle of: it is another's turn. What
/// it was writing is not written. To what a handler has interrupted that jumps within itself it comes back.
pub fn abandon(jump: impl FnOnce() -> Jump) {
    if DEPTH.get() == 0 {
        return;
    }
    let jump = jump();
    while let Some(at) = DEPTH.get().checked_sub(1) {
        let noted = |level: &Level| level.what.get().map(|what| (what, level.place.get()));
        let now = MINE.with(|mine| mine.get(at).and_then(noted));
        if now.is_some_and(|(_, place)| !jump.leaves(place)) {
            return;
        }
        note(at, None);
        DEPTH.set(at);
        now.into_iter().for_each(|((index, doing), _)| leave(index, doing));
    }
}

/// The thread does not go on with what it was doing at the socket with this record.
fn leave(index: u32, doing: Doing) {
    let Some(socket) = socket::at(index) else { return };
    let lock = if matches!(doing, Doing::Receiving) { &socket.reading } else { &socket.writing };
    if !lock.is_mine() {
        // It was still waiting, or had done with it.
        return;
    }
    if !matches!(doing, Doing::Receiving) {
        socket.cursor.abandon();
    }
    if matches!(doing, Doing::SendingCounted) {
        socket.slot().into_iter().for_each(|slot| vacate::leave(&slot.tx_writers));
    }
    if let Some(shared) = shared::of(socket) {
        let lock = if matches!(doing, Doing::Receiving) { &shared.reading } else { &shared.writing };
        lock.let_go(family::process());
    }
    lock.abandon();
}

#[inline]
fn take(lock: &'static SharedLock, turn: &Turn<'_>) -> Option<&'static SharedLock> {
    // The process has it itself where a signal's handler has come in the middle of its thread's turn, which has taken none of
    // its own then; or, with several threads, where it has the socket twice, as two that were passed to it.
    lock.take(family::process(), |own| !(state::is_dead() || own && !turn.is_taken())).then_some(lock)
}

impl Drop for OwnTurn<'_> {
    fn drop(&mut self) {
        match self.held {
            // Unless the child itself has taken it.
            Some(lock) if self.is_parents() => lock.let_go(family::process()),
            Some(lock) => lock.open(),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jump::tests::{far_below, handlers_place};
    use crate::socket::stage;
    use std::thread;

    fn socket() -> &'static Socket {
        socket::make(stage::UNDECIDED, 0, 0).unwrap()
    }

    #[test]
    fn a_turn_ends_where_it_is_left_and_not_where_what_has_interrupted_it_jumps_within_itself() {
        let jumps = || {
            let (one, other, outside) = (socket(), socket(), Place::here());
            let has = || [one, other].map(|socket| socket.writing.is_mine());
            far_below(|| {
                let turn = OwnTurn::writing(one);
                abandon(|| Jump::towards(handlers_place()));
                assert_eq!(has(), [true, false]);
                // A handler, which is left by one that has interrupted it.
                far_below(|| {
                    let within = Place::here();
                    far_below(|| std::mem::forget(OwnTurn::writing(other)));
                    assert_eq!(has(), [true, true]);
                    abandon(|| Jump::towards(within));
                });
                assert_eq!(has(), [true, false]);
                abandon(|| Jump::towards(outside));
                assert_eq!(has(), [false, false]);
                std::mem::forget(turn);
            });
            abandon(|| unreachable!("it is in the middle of nothing"));
        };
        // With a second thread, so that turns are taken.
        thread::scope(|scope| _ = scope.spawn(jumps));
    }

    #[test]
    fn a_child_that_a_handler_has_forked_ends_no_turn_of_its_parents() {
        let lock: &'static SharedLock = Box::leak(Box::<SharedLock>::default());
        let is_free = || lock.take(8, |_| false);
        let mut turn = OwnTurn::writing(socket());
        assert!(!turn.is_parents() && lock.take(7, |_| true));
        turn.held = Some(lock);
        begin_child();
        assert!(turn.is_parents());
        drop(turn);
        assert!(!is_free());
        lock.let_go(7);
        assert!(is_free());
    }
}
