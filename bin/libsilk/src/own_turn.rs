//! The turn of a thread at one end of a socket, among the threads of its process and among the processes that hold the socket
//! ([`shared`]). A signal's handler that comes in the middle of its own thread's turn goes on without one; one that leaves that
//! turn by `siglongjmp` ends it.

use crate::ending;
use crate::errno::Answer;
use crate::family;
use crate::lock::Turn;
use crate::shared;
use crate::socket::{self, Found, Socket};
use crate::state;
use silk_stream::{SharedLock, vacate};
use std::cell::Cell;

/// What a thread is in the middle of, at one socket.
#[derive(Clone, Copy)]
enum Doing {
    Receiving,
    Sending,
    /// And it is counted among those who write ([`vacate::enter`]).
    SendingCounted,
}

/// What a thread is in the middle of, where handlers come in the middle of handlers; what is further in is not noted.
const NESTED: usize = 8;

thread_local! {
    /// How many turns this thread is in the middle of: its own, one of a handler that has interrupted it, and so on.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// What it is doing in each, at the socket with this record. Beyond the depth there is nothing, whenever a handler looks.
    static MINE: [Cell<Option<(u32, Doing)>>; NESTED] = const { [const { Cell::new(None) }; NESTED] };
}

fn note(at: usize, what: Option<(u32, Doing)>) {
    MINE.with(|mine| mine.get(at).into_iter().for_each(|noted| noted.set(what)));
}

/// From before a turn is taken until it has ended.
struct Noted {
    /// In the middle of so many others.
    at: usize,
}

impl Noted {
    fn begin(socket: &Socket, doing: Doing) -> Self {
        let at = DEPTH.get();
        // A handler that comes between these two notes what it does behind this.
        DEPTH.set(at + 1);
        note(at, Some((socket.index(), doing)));
        Self { at }
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
    _noted: Noted,
}

impl<'a> OwnTurn<'a> {
    /// The next reader's turn.
    #[inline]
    pub fn reading(socket: &'a Socket) -> Self {
        let noted = Noted::begin(socket, Doing::Receiving);
        let turn = socket.reading.turn();
        let mut own = Self { held: None, turn, _noted: noted };
        own.held = shared::of(socket).and_then(|shared| take(&shared.reading, &own.turn));
        own
    }

    /// The next writer's turn.
    #[inline]
    pub fn writing(socket: &'a Socket) -> Self {
        let noted = Noted::begin(socket, Doing::Sending);
        let turn = socket.writing.turn();
        let mut own = Self { held: None, turn, _noted: noted };
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
        let is_write = |noted: &Cell<Option<(u32, Doing)>>| {
            noted
                .get()
                .is_some_and(|(index, doing)| index == socket.index() && !matches!(doing, Doing::Receiving))
        };
        MINE.with(|mine| mine.get(..self._noted.at).is_none_or(|outer| outer.iter().any(is_write)))
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

/// This thread leaves whatever it is in the middle of (`siglongjmp` out of a signal's handler): it is another's turn. What it
/// was writing is not written.
pub fn abandon() {
    while let Some(at) = DEPTH.get().checked_sub(1) {
        let left = MINE.with(|mine| mine.get(at).and_then(Cell::take));
        DEPTH.set(at);
        left.into_iter().for_each(|(index, doing)| leave(index, doing));
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
        if let Some(lock) = self.held {
            lock.open();
        }
    }
}
