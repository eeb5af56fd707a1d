//! The turn of a thread at one end of a socket, among the threads of its process and among the processes that hold the socket
//! ([`shared`]). A signal's handler that comes in the middle of its own thread's turn goes on without one; one that leaves that
//! turn by `siglongjmp` ends it.

use crate::family;
use crate::lock::Turn;
use crate::shared;
use crate::socket::{self, Socket};
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

thread_local! {
    /// What this thread is doing, at the socket with this record: the last of it, where a handler does something in the middle.
    static MINE: Cell<Option<(u32, Doing)>> = const { Cell::new(None) };
}

/// From before a turn is taken until it has ended; then it is as `before`.
struct Noted {
    before: Option<(u32, Doing)>,
}

impl Noted {
    fn begin(socket: &Socket, doing: Doing) -> Self {
        Self { before: MINE.replace(Some((socket.index(), doing))) }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        MINE.set(self.before);
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

/// The thread, which has the turn to write to `socket`, is counted among its writers, or not any more.
#[inline]
pub fn note_counted(socket: &Socket, is_counted: bool) {
    MINE.set(Some((socket.index(), if is_counted { Doing::SendingCounted } else { Doing::Sending })));
}

/// This thread leaves whatever it is in the middle of (`siglongjmp` out of a signal's handler): it is another's turn. What it
/// was writing is not written.
pub fn abandon() {
    let Some((index, doing)) = MINE.take() else { return };
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
