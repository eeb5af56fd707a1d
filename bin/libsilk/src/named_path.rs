//! `PF_SCOUT`: a socket whose address is the name of a path that the graph allows.

use crate::errno::Answer;
use crate::family;
use crate::naming_turn::NamingTurn;
use crate::progress::finish;
use crate::server::{Server, decided, role_of};
use crate::socket::{Found, Socket, shape};
use libc::{sockaddr, socklen_t};
use silk_control::{Kind, Request};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// `bind` or `connect` of a `PF_SCOUT` socket: its address is the name of a path, which either builds.
///
/// # Errors
/// What the daemon refuses with, and the error of a connection that failed.
///
/// # Safety
/// `addr` points to `len` readable bytes or is null.
pub unsafe fn build(
    socket: &'static Socket,
    turn: NamingTurn,
    addr: *const sockaddr,
    len: socklen_t,
) -> Answer<Server> {
    let len = len as usize;
    if addr.is_null() || len <= 2 || len > 256 {
        return Err(libc::EINVAL);
    }
    // SAFETY: `len` bytes are there, of which the first two are the family's.
    let name = unsafe { std::slice::from_raw_parts(addr.cast::<u8>().add(2), len - 2) };
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = std::str::from_utf8(name).map_err(|_| libc::EINVAL)?.to_owned();
    family::join()?;
    let reply = family::ask(&Request::Scout { kind: socket.kind(), name }, &[])?;
    let server = decided(socket, reply, role_of(socket))?;
    socket.shape.fetch_or(shape::BOUND, Relaxed);
    let found = Found::now(socket);
    drop(turn);
    // A byte stream that names its remote end connects; one that does not is to listen.
    let connects = || socket.slot().is_ok_and(|slot| slot.status.load(SeqCst) != 0);
    if socket.kind() == Kind::Stream && connects() {
        if socket.is_nonblocking(0) {
            return Err(libc::EINPROGRESS);
        }
        finish(&found)?;
    }
    Ok(server)
}
