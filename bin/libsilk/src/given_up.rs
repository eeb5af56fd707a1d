//! A stream socket of silk's that connects to where silk has no path, its own machine above all, becomes Linux's with what
//! it has: its address, its options and its places in event sets. Silk's part of it goes back to the daemon.

use crate::address;
use crate::environment;
use crate::epoll;
use crate::errno::{Answer, check};
use crate::family;
use crate::options;
use crate::real;
use crate::socket::{Socket, shape};
use crate::wait;
use libc::sockaddr;
use silk_control::Request;
use std::ffi::c_int;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

/// Linux serves `socket`, of which `fd` is a descriptor, from now on. A link-local address of it is on the link
/// `scope`. For who has the turn to name it: what other threads set meanwhile waits for that
/// ([`NamingTurn::before_connecting`](crate::naming_turn::NamingTurn::before_connecting)).
///
/// # Errors
/// `ENETUNREACH` where Linux does not give it the address that it has; `ENETDOWN` for a strict program. The socket
/// is silk's then as before.
pub fn to_linux(socket: &'static Socket, fd: c_int, scope: u32) -> Answer<()> {
    if socket.is(shape::SCOUT) {
        return Err(libc::ENETUNREACH);
    }
    if environment::is_strict() {
        return Err(libc::ENETDOWN);
    }
    let slot = socket.slot()?;
    let (number, generation) = socket.name();
    if socket.is(shape::BOUND) {
        let mut local = address::shared(&slot.local);
        if let SocketAddr::V6(local) = &mut local
            && local.ip().is_unicast_link_local()
        {
            local.set_scope_id(scope);
        }
        take_address(fd, local, socket.is(shape::INET6))?;
    }
    options::hand_over(socket, fd);
    if let Some(how) = c_int::try_from(socket.shut.load(Relaxed)).ok().filter(|bits| *bits != 0) {
        // It is not connected yet, and so the call fails; it counts all the same. The bits are `how` plus one.
        // SAFETY: plain numbers.
        unsafe { real::shutdown(fd, how - 1) };
    }
    // SAFETY: plain numbers.
    unsafe { real::fcntl(fd, libc::F_SETFL, socket.flags.load(Relaxed) as usize) };
    socket.leave_to_linux();
    epoll::now_linuxs(socket);
    wait::disturb(slot);
    family::tell(&Request::Release { slot: number, generation });
    Ok(())
}

/// Linux's part gets the address while the daemon still holds the port, so that nobody else has it in between: of two that
/// do not listen Linux lets both have it, if both say so. What the program wants said is said again by its options.
fn take_address(fd: c_int, local: SocketAddr, inet6: bool) -> Answer<()> {
    let (bytes, len) = address::bytes(local, inet6);
    let yes: c_int = 1;
    // SAFETY: a number of the length that is said, and an address.
    let bound = check(unsafe {
        let size = size_of::<c_int>() as libc::socklen_t;
        real::setsockopt(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, (&raw const yes).cast(), size);
        real::bind(fd, bytes.as_ptr().cast::<sockaddr>(), len as libc::socklen_t)
    });
    bound.map(drop).map_err(|_| libc::ENETUNREACH)
}
