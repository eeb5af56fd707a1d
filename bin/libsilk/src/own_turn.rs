//! The turn of a thread at one end of a socket, among the threads of its process and among the processes that hold the socket
//! ([`shared`]). A signal's handler that comes in the middle of its own thread's turn goes on without one; one that leaves that
//! turn by `siglongjmp` ends it. Where it forks, the turn is the parent's to end, and not the child's; but one that was still
//! waited for the child gets for itself.

use crate::ending;
use crate::errno::Answer;
use crate::family;
use crate::jump::{Jump, Place};
use crate::lock::{Lock, Turn};
use crate::shared;
use crate::socket::{self, Found, Socket};
use crate::state;
use silk_stream::{Shared, SharedLock, vacate};
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
    /// Where on its stack it does that, or is about to: known as soon as the level counts.
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
    /// What [`FORKS`] was when the turn was taken.
    forks: u32,
}

impl Noted {
    fn begin(socket: &Socket, doing: Doing) -> Self {
        let (at, place) = (DEPTH.get(), Place::here());
        MINE.with(|mine| {
            let level = mine.get(at);
            let put_place = || level.into_iter().for_each(|level| level.place.set(place));
            // A handler that sees what it has interrupted knows where.
            put_place();
            compiler_fence(Release);
            // One that comes behind this notes what it does at the next level.
            DEPTH.set(at + 1);
            compiler_fence(Release);
            // One that came before it was at this level itself.
            put_place();
            compiler_fence(Release);
            level.into_iter().for_each(|level| level.what.set(Some((socket.index(), doing))));
        });
        Self { at, forks: FORKS.load(Relaxed) }
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
        Self::next(noted, socket, &socket.reading, |shared| &shared.reading)
    }

    /// The next writer's turn.
    #[inline]
    pub fn writing(socket: &'a Socket) -> Self {
        let noted = Noted::begin(socket, Doing::Sending);
        Self::next(noted, socket, &socket.writing, |shared| &shared.writing)
    }

    #[inline]
    fn next(
        noted: Noted,
        socket: &'a Socket,
        lock: &'a Lock,
        end: impl FnOnce(&'static Shared) -> &'static SharedLock,
    ) -> Self {
        let mut own = Self { held: None, turn: lock.turn(), noted };
        // A handler that has forked while it was waited for has done so before it: it is this process's.
        own.noted.forks = FORKS.load(Relaxed);
        if let Some(shared) = shared::of(socket) {
            own.take(end(shared), state::is_dead);
        }
        own
    }

    /// Takes the lock among processes, for this one: which is another once a handler has forked in the middle of the wait.
    fn take(&mut self, lock: &'static SharedLock, is_dead: impl Fn() -> bool) {
        loop {
            let forks = FORKS.load(Relaxed);
            self.noted.forks = forks;
            let turn = &self.turn;
            // The process has it itself where a signal's handler has come in the middle of its thread's turn, which has taken
            // none of its own then; or, with several threads, where it has the socket twice, as two that were passed to it.
            let has = lock.take(family::process(), |own| {
                FORKS.load(Relaxed) == forks && !(is_dead() || own && !turn.is_taken())
            });
            if has {
                self.held = Some(lock);
            }
            if has || FORKS.load(Relaxed) == forks {
                return;
            }
        }
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
        let now = MINE.with(|mine| mine.get(at).map(|level| (level.what.get(), level.place.get())));
        if now.is_some_and(|(_, place)| !jump.leaves(place)) {
            return;
        }
        note(at, None);
        DEPTH.set(at);
        now.and_then(|(what, _)| what).into_iter().for_each(|(index, doing)| leave(index, doing));
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

impl Drop for OwnTurn<'_> {
    fn drop(&mut self) {
        // Where it is the parent's, that opens it.
        if let Some(lock) = self.held
            && !self.is_parents()
        {
            lock.open();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jump::tests::{far_below, handlers_place};
    use crate::socket::stage;
    use std::thread;
    use std::time::Duration;

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
    fn a_turn_that_is_about_to_begin_is_left_by_who_jumps_out_alone() {
        let outside = Place::here();
        far_below(|| {
            // A handler has come before it is noted what for.
            MINE.with(|mine| mine[0].place.set(Place::here()));
            DEPTH.set(1);
            abandon(|| Jump::towards(handlers_place()));
            assert_eq!(DEPTH.get(), 1);
        });
        abandon(|| Jump::towards(outside));
        assert_eq!(DEPTH.get(), 0);
    }

    /// One test, since all share one count of forks.
    #[test]
    fn a_child_that_a_handler_has_forked_ends_no_turn_of_its_parents_and_gets_what_it_waits_for() {
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
        lock.open();
        let socket = socket();
        socket.writing.hold();
        thread::scope(|scope| {
            let waits = scope.spawn(|| OwnTurn::writing(socket).is_parents());
            thread::sleep(Duration::from_millis(10));
            begin_child();
            socket.writing.open();
            assert!(!waits.join().unwrap());
        });
        // Of another process's turn, which ends after that.
        assert!(lock.take(9, |_| true));
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let mut turn = OwnTurn::writing(socket);
                turn.take(lock, || false);
                (turn.held.is_some(), turn.is_parents())
            });
            thread::sleep(Duration::from_millis(10));
            begin_child();
            lock.open();
            assert_eq!(waits.join().unwrap(), (true, false));
        });
        assert!(is_free());
    }
}
