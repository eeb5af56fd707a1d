//! `shutdown`: one way of a socket, or both, before it is closed.

use crate::disconnect;
use crate::epoll;
use crate::errno::Answer;
use crate::family::{self, Family};
use crate::nameless;
use crate::own_turn::{OwnTurn, while_it_lasts};
use crate::shared::Alteration;
use crate::socket::{Found, Role, Socket, shape, shut};
use crate::state;
use crate::wait;
use silk_stream::{Slot, request, status};
use std::ffi::c_int;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// What of reading and writing `shutdown` ends, as bits of [`shut`].
fn ends(how: c_int) -> Option<u32> {
    match how {
        libc::SHUT_RD => Some(shut::READ),
        libc::SHUT_WR => Some(shut::WRITE),
        libc::SHUT_RDWR => Some(shut::READ | shut::WRITE),
        _ => None,
    }
}

/// What the daemon is asked to shut down, for bits of [`shut`].
fn requests(bits: u32) -> u32 {
    let asked = [(shut::READ, request::SHUT_READ), (shut::WRITE, request::SHUT_WRITE)];
    asked.into_iter().filter(|(bit, _)| bits & bit != 0).fold(0, |all, (_, ask)| all | ask)
}

/// What was shut down before it listened is so of what it accepts, as on Linux.
pub fn inherit(from: &Socket, accepted: &Socket, (number, slot): (u32, &Slot), family: &Family) {
    let bits = from.shut.load(Relaxed);
    if bits != 0 {
        accepted.shut.store(bits, Relaxed);
        family.request(number, slot, requests(bits));
    }
}

/// A socket that nobody serves yet is shut down: as in Linux that counts once it is connected, though the call fails.
pub fn note_early_shutdown(socket: &Socket, how: c_int) {
    socket.shut.fetch_or(ends(how).unwrap_or(0), SeqCst);
    nameless::announce(socket);
}

/// `shutdown(2)` of a socket that silk serves.
///
/// # Errors
/// As Linux.
pub fn shutdown(found: Found, how: c_int) -> Answer<()> {
    let socket = found.record();
    let bits = ends(how).ok_or(libc::EINVAL)?;
    // What another thread is just writing comes before the end; who comes after it is refused.
    let ends_writing = socket.role() == Role::Stream && bits & shut::WRITE != 0;
    let turn = ends_writing.then(|| while_it_lasts(found, OwnTurn::writing)).transpose()?;
    let slot = socket.slot()?;
    let alteration = Alteration::begin(socket);
    let now = state::status(slot);
    let begun = now & (status::CONNECTED | status::CONNECTING) != 0;
    let idle = match socket.role() {
        Role::Stream => !begun || is_over(now),
        Role::Datagram => !socket.is(shape::CONNECTED),
        Role::Listener => false,
    };
    if idle {
        // As in Linux it counts all the same, and ends what waits there.
        note_shut(socket, alteration, bits);
        if socket.role() == Role::Datagram
            && let Some(family) = family::joined()
        {
            family.request(socket.name().0, slot, requests(bits));
        }
        wake_who_waits(socket, slot);
        return Err(libc::ENOTCONN);
    }
    match socket.role() {
        // A listener has nothing to write.
        Role::Listener if bits & shut::READ == 0 => return Ok(()),
        Role::Listener => {
            drop((alteration, turn));
            return disconnect::by_program(found);
        }
        // What is not connected yet is given up, whichever direction is meant.
        Role::Stream if now & status::CONNECTING != 0 && !socket.is(shape::SCOUT) => {
            // What that changes it tells itself.
            drop((alteration, turn));
            return disconnect::by_program(found);
        }
        Role::Stream | Role::Datagram => {}
    }
    if socket.role() == Role::Stream {
        // Who shuts it down knows that it is connected: it does not ask again by `connect`.
        socket.shape.fetch_or(shape::GREETED, Relaxed);
    }
    let family = family::joined().ok_or(libc::ENOTCONN)?;
    note_shut(socket, alteration, bits);
    // Of datagrams nothing changes, but who watches the socket beside others' is woken.
    family.request(socket.name().0, slot, requests(bits));
    drop(turn);
    wake_who_waits(socket, slot);
    Ok(())
}

/// Nothing is read, or written, of the socket from now on. Processes that share it know of that before anybody who waits is woken for it.
fn note_shut(socket: &Socket, alteration: Alteration<'_>, bits: u32) {
    socket.shut.fetch_or(bits, SeqCst);
    drop(alteration);
}

/// Who sleeps reads or polls what has ended just now.
fn wake_who_waits(socket: &Socket, slot: &Slot) {
    wait::disturb(slot);
    epoll::changed(socket);
}

/// Whether nothing is left of a connection (`TCP_CLOSE`): it has failed, or both streams have ended and
/// been acknowledged.
pub fn is_over(now: u32) -> bool {
    now & (status::FAILED | status::SEND_CLOSED) != 0
}
