//! A socket that other processes hold, too: forked ones, or one that it was passed to. As on Linux they take turns at its
//! rings, and what one of them sets, shuts down or makes of it is so for all ([`silk_stream::Shared`]). While a process has
//! its sockets for itself none of this costs anything.

use crate::family;
use crate::record;
use crate::socket::Socket;
use silk_stream::{SHARED_WORDS, Shared};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// What the holders share of a socket that has several, or had.
#[inline]
pub fn of(socket: &Socket) -> Option<&'static Shared> {
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
