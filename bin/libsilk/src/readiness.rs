//! What `poll`, `select` and `epoll` say of a socket of ours, as Linux's `tcp_poll` and
//! `datagram_poll` would.

use crate::error_queue;
use crate::lanes;
use crate::listener;
use crate::socket::{Role, Socket, shape, shut};
use crate::state;
use crate::urgent;
use crate::wait::{self, Change};
use silk_stream::{Slot, status};
use std::sync::atomic::Ordering::Relaxed;

/// `POLLIN` and its synonym.
pub const IN: u32 = (libc::POLLIN | libc::POLLRDNORM) as u32;
/// `POLLPRI`.
const URGENT: u32 = libc::POLLPRI as u32;
/// `POLLOUT` and its synonym.
pub const OUT: u32 = (libc::POLLOUT | libc::POLLWRNORM) as u32;
/// What Linux says besides of a datagram socket that has room.
const OUT_OF_BAND: u32 = libc::POLLWRBAND as u32;
/// `POLLRDHUP`.
pub const READ_HUNG_UP: u32 = libc::POLLRDHUP as u32;
/// `POLLHUP`, which is always told.
pub const HUNG_UP: u32 = libc::POLLHUP as u32;
/// `POLLERR`, which is always told.
pub const FAILED: u32 = libc::POLLERR as u32;

/// Everything that holds of the socket now.
pub fn of(socket: &Socket) -> u32 {
    match socket.slot() {
        Err(_) => FAILED | HUNG_UP,
        Ok(slot) => match socket.role() {
            Role::Listener if state::is_dead() => FAILED | HUNG_UP,
            Role::Listener => {
                if listener::is_waiting(slot) {
                    IN
                } else {
                    0
                }
            }
            Role::Datagram => datagram(socket, slot),
            Role::Stream => stream(socket, slot),
        },
    }
}

fn stream(socket: &Socket, slot: &Slot) -> u32 {
    let status = state::status(slot);
    let shut = socket.shut.load(Relaxed);
    let has = |bits| status & bits != 0;
    let failed = has(status::FAILED);
    // An end that has failed or never began is `TCP_CLOSE`.
    let closed = failed || !has(status::CONNECTED | status::CONNECTING);
    let read_over = has(status::PEER_FIN) || failed || shut & shut::READ != 0;
    let write_over = has(status::SEND_CLOSED) || failed || shut & shut::WRITE != 0;
    let mut ready = 0;
    if closed || (read_over && write_over) {
        ready |= HUNG_UP;
    }
    if read_over {
        ready |= IN | READ_HUNG_UP;
    }
    if state::has_error(slot) {
        ready |= FAILED;
    }
    if urgent::readable(socket, slot) >= state::low_water(socket, slot) {
        ready |= IN;
    }
    if urgent::is_waiting(socket, slot) {
        ready |= URGENT;
    }
    let room = has(status::CONNECTED)
        && state::writable(slot) >= state::worthwhile(slot)
        && !state::is_held_back(slot);
    if write_over || closed || room {
        ready |= OUT;
    }
    ready
}

fn datagram(socket: &Socket, slot: &Slot) -> u32 {
    let mut ready = 0;
    if state::has_error(slot) || error_queue::is_waiting(socket, slot) {
        ready |= FAILED;
    }
    if state::is_dead() {
        ready |= HUNG_UP | OUT;
    }
    if lanes::have_any(slot) {
        ready |= IN;
    }
    let shut = socket.shut.load(Relaxed);
    if shut & shut::READ != 0 {
        ready |= IN | READ_HUNG_UP;
    }
    if shut & shut::READ != 0 && shut & shut::WRITE != 0 {
        ready |= HUNG_UP;
    }
    if socket.is(shape::SCOUT) || state::writable(slot) >= state::worthwhile(slot) {
        ready |= OUT | OUT_OF_BAND;
    }
    ready
}

/// Says in the slot that somebody waits for what `interest` names.
pub fn announce(socket: &Socket, slot: &Slot, interest: u32) {
    // Errors and hang-ups wake both kinds of sleepers, and are always waited for.
    let stream = socket.role() == Role::Stream && interest & URGENT == 0;
    let least = if stream { state::low_water(socket, slot) } else { 1 };
    wait::announce(slot, Change::Readable(least));
    if interest & OUT != 0 && socket.role() != Role::Listener {
        wait::announce(slot, Change::Writable(state::worthwhile(slot)));
    }
}
