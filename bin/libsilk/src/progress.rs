//! How far a stream socket's connection is, and waiting for it.

use crate::disconnect;
use crate::errno::Answer;
use crate::shared::Alteration;
use crate::socket::{Found, Role, Socket, shape};
use crate::state;
use crate::wait::{self, Change, Deadline};
use silk_stream::{Slot, status};
use std::sync::atomic::Ordering::Relaxed;

/// How far the connection is that a stream socket may have.
pub enum Progress {
    /// It has none.
    Fresh,
    /// Who has a part in it may wait for it.
    Going,
    /// It is there, as the program is told now.
    Done,
}

/// A stream socket of silk's on which `connect` is called, once more perhaps.
///
/// # Errors
/// As Linux: `EISCONN`, `EALREADY` where it does not wait, and the error of a connection that failed.
pub fn progress(socket: Found) -> Answer<Progress> {
    if socket.role() == Role::Listener {
        return Err(libc::EISCONN);
    }
    let slot = socket.slot()?;
    let now = state::status(slot);
    if now & (status::CONNECTED | status::CONNECTING | status::FAILED) == 0 {
        return Ok(Progress::Fresh);
    }
    // Whose connection has ended by a reset is connected all the same, to Linux.
    if socket.is(shape::GREETED) && !state::is_dead() {
        return Err(libc::EISCONN);
    }
    if now & status::FAILED != 0 {
        return Err(disconnect::of_failed(socket, slot));
    }
    if now & status::CONNECTED != 0 {
        greet(&socket);
        return Ok(Progress::Done);
    }
    if socket.is_nonblocking(0) { Err(libc::EALREADY) } else { Ok(Progress::Going) }
}

/// The program learns that it is connected, and with it all that hold the socket.
fn greet(socket: &Socket) {
    let _told = Alteration::begin(socket);
    socket.shape.fetch_or(shape::GREETED, Relaxed);
}

/// Waits until the connection is established or has failed.
///
/// # Errors
/// That of the connection; `EINPROGRESS` when the time is up, `EINTR`.
pub fn finish(socket: &Found) -> Answer<()> {
    let deadline = Deadline::after(socket.settings.send_limit());
    let over = |slot: &Slot| state::status(slot) & status::CONNECTING == 0 || state::is_dead();
    loop {
        let slot = socket.slot()?;
        let now = state::status(slot);
        if now & status::FAILED != 0 {
            return Err(disconnect::of_failed(*socket, slot));
        }
        if now & status::CONNECTED != 0 {
            greet(socket);
            return Ok(());
        }
        if now & status::CONNECTING == 0 {
            // Another thread has taken it apart, or was told before this one why it has failed.
            drop(disconnect::until_others_are_done(*socket)?);
            return Err(state::take_error(slot).unwrap_or(libc::ECONNABORTED));
        }
        match wait::sleep(socket, slot, Change::Writable(1), deadline, over) {
            Err(libc::EAGAIN) => return Err(libc::EINPROGRESS),
            other => other?,
        }
    }
}
