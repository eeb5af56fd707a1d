//! A stream socket that begins again: its connection failed, or the program takes it apart, or a
//! listener is shut down. It is then as it was when it was bound, with the slot, the descriptors and
//! the event sets that it has.

use crate::epoll;
use crate::errno::Answer;
use crate::family;
use crate::listener;
use crate::own_turn::{OwnTurn, while_it_lasts};
use crate::shared::Alteration;
use crate::socket::{Found, Role, Socket, shape};
use crate::state;
use crate::wait;
use silk_control::Request;
use silk_stream::{Slot, status};
use std::ffi::c_int;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// `connect` with `AF_UNSPEC`, and `shutdown` of a listener or of a connection that is not open yet.
///
/// # Errors
/// `EOPNOTSUPP` where the socket was accepted, or is one of `PF_SCOUT`; `ECONNRESET` when the daemon
/// is gone.
pub fn by_program(socket: Found) -> Answer<()> {
    let turns = until_others_are_done(socket)?;
    let slot = socket.slot()?;
    let now = state::status(slot);
    let listened = socket.role() == Role::Listener;
    let over = status::FAILED | status::SEND_CLOSED;
    let alive = !listened && now & (status::CONNECTED | status::CONNECTING) != 0 && now & over == 0;
    // As Linux has it, what was alive has been reset, by whom is not said; and what had failed is still to be told.
    let error = if alive { libc::ECONNRESET.unsigned_abs() } else { slot.error.load(SeqCst) };
    begin_again(&socket, slot)?;
    slot.error.store(error, SeqCst);
    drop(turns);
    wait::disturb(slot);
    epoll::changed(&socket);
    Ok(())
}

/// Why a connection has failed before the program knew that it was open, told once; the socket can
/// then try again.
pub fn of_failed(socket: Found, slot: &Slot) -> c_int {
    let _turns = match until_others_are_done(socket) {
        Ok(turns) => turns,
        Err(errno) => return errno,
    };
    let why = state::take_error(slot).unwrap_or(libc::ECONNABORTED);
    if state::status(slot) & status::FAILED != 0 {
        // Else another thread was told before this one, and may have begun the next attempt. If it cannot, it stays at its end, where
        // nothing but closing it makes sense.
        let _ = begin_again(&socket, slot);
    }
    why
}

/// Who reads or writes is done with the rings before they are another connection's; and who takes the socket apart has said why. While
/// these live nobody begins to.
///
/// # Errors
/// `EBADF` where it was closed meanwhile.
pub fn until_others_are_done(socket: Found) -> Answer<[OwnTurn<'static>; 2]> {
    while_it_lasts(socket, |socket| [OwnTurn::reading(socket), OwnTurn::writing(socket)])
}

fn begin_again(socket: &Socket, slot: &Slot) -> Answer<()> {
    if socket.is(shape::SCOUT) {
        return Err(libc::EOPNOTSUPP);
    }
    let family = family::joined().ok_or(libc::ECONNRESET)?;
    let (number, generation) = socket.name();
    let alteration = Alteration::begin(socket);
    let role = socket.role();
    socket.set_role(Role::Stream);
    family::ask(&Request::Disconnect { slot: number, generation }, &[])
        .inspect_err(|_| socket.set_role(role))?;
    socket.shape.fetch_and(!shape::GREETED, Relaxed);
    socket.shut.store(0, SeqCst);
    // Processes that share it know of that before their threads are woken.
    drop(alteration);
    if role == Role::Listener {
        listener::disturb(family, slot);
    }
    // Another thread that closes it meanwhile waits for the turns, and then lets go of what it is now.
    if socket.is_served() { Ok(()) } else { Err(libc::EBADF) }
}
