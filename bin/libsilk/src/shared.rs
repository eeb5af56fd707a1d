//! A socket that other processes hold, too: forked ones, or one that it was passed to. As on Linux they take turns at its
//! rings, and what one of them sets, shuts down or makes of it is so for all ([`silk_stream::Shared`]). While a process has
//! its sockets for itself none of this costs anything.

use crate::family;
use crate::lock::Turn;
use crate::record;
use crate::socket::{self, Socket};
use crate::state;
use silk_stream::{SHARED_WORDS, Shared, SharedLock, vacate};
use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// What the holders share of a socket that has several, or had.
#[inline]
fn of(socket: &Socket) -> Option<&'static Shared> {
    if socket.is_shared.load(Acquire) { record(socket) } else { None }
}

fn record(socket: &Socket) -> Option<&'static Shared> {
    family::joined()?.arena.shared(socket.name().0)
}

/// Another process is about to hold a socket that silk serves.
pub fn begin(socket: &Socket) {
    let Some(shared) = record(socket).filter(|_| !socket.is_shared.load(Acquire)) else { return };
    socket.known.store(shared.begin(&record::shared_words(socket)), Relaxed);
    socket.is_shared.store(true, Release);
    // Other threads that began before they could know of it.
    socket.reading.outlast();
    socket.writing.outlast();
}

/// A socket that this process has been given by another, which has begun to share it.
pub fn join(socket: &Socket) {
    if let Some(shared) = record(socket) {
        // Whatever has changed since it was described.
        socket.known.store(shared.changes().wrapping_sub(1), Relaxed);
        socket.is_shared.store(true, Release);
        catch_up(socket);
    }
}

/// A socket that this process has had before it executed this program. A thread that ended with that may have had a turn.
pub fn resume(socket: &Socket) {
    if let Some(shared) = record(socket) {
        shared.let_go(family::process());
    }
    join(socket);
}

/// Takes over what others have changed.
#[inline]
pub fn catch_up(socket: &Socket) {
    if let Some(shared) = of(socket)
        && shared.changes() != socket.known.load(Relaxed)
    {
        take_over(socket, shared);
    }
}

#[cold]
fn take_over(socket: &Socket, shared: &Shared) {
    socket.known.store(shared.changes(), Relaxed);
    record::take_over(socket, &shared.words());
}

/// Something about a socket is being changed: the others are told when that is done.
pub struct Alteration<'a> {
    socket: &'a Socket,
    before: Option<[u32; SHARED_WORDS]>,
}

impl<'a> Alteration<'a> {
    /// Before it is changed.
    #[inline]
    pub fn begin(socket: &'a Socket) -> Self {
        catch_up(socket);
        Self { socket, before: of(socket).map(|_| record::shared_words(socket)) }
    }
}

impl Drop for Alteration<'_> {
    fn drop(&mut self) {
        if let (Some(before), Some(shared)) = (&self.before, of(self.socket)) {
            let after = record::shared_words(self.socket);
            if after != *before {
                let known = shared.tell(before, &after);
                // Unless another process has changed something meanwhile.
                let last = known.wrapping_sub(1);
                let _ = self.socket.known.compare_exchange(last, known, Relaxed, Relaxed);
            }
        }
    }
}

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
        own.held = of(socket).and_then(|shared| take(&shared.reading, &own.turn));
        own
    }

    /// The next writer's turn.
    #[inline]
    pub fn writing(socket: &'a Socket) -> Self {
        let noted = Noted::begin(socket, Doing::Sending);
        let turn = socket.writing.turn();
        let mut own = Self { held: None, turn, _noted: noted };
        own.held = of(socket).and_then(|shared| take(&shared.writing, &own.turn));
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
    if let Some(shared) = of(socket) {
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
