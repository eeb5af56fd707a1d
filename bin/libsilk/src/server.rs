//! Who serves a socket: silk or Linux. The daemon decides by the socket's first address.

use crate::environment;
use crate::epoll;
use crate::errno::{Answer, last};
use crate::family::{self, Family};
use crate::nameless;
use crate::options;
use crate::socket::{Role, Socket, shape};
use crate::unserved;
use silk_control::Reply;
use std::ffi::c_int;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;

/// Who serves a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// Silk; what was asked for is done.
    Silk,
    /// Linux; the caller passes the call on.
    Linux,
}

/// The daemon has answered: who serves the socket from now on, in this role if it is silk.
///
/// # Errors
/// `ENOPROTOOPT` or `ENETDOWN` where the program is strict and silk does not do all that it asks.
pub fn decided(socket: &'static Socket, reply: Reply, role: Role) -> Answer<Server> {
    match reply {
        Reply::Socket { slot, generation } => {
            socket.serve(slot, generation, role);
            // Pairs with `setsockopt`: what another thread sets just now is seen here, or that silk serves it is seen there.
            fence(SeqCst);
            options::pass_on_all(socket);
            options::tell_foreign(socket)?;
            socket.early.tell(socket.name());
            epoll::now_served(socket);
            nameless::announce(socket);
            Ok(Server::Silk)
        }
        Reply::NotOurs => {
            leave_to_linux(socket);
            if environment::is_strict() { Err(libc::ENETDOWN) } else { Ok(Server::Linux) }
        }
        _ => Err(libc::EPROTO),
    }
}

fn leave_to_linux(socket: &Socket) {
    socket.leave_to_linux();
    nameless::announce(socket);
}

/// Without a daemon Linux serves everything, and what is bound to another interface than silk's in any case, unless
/// the program is strict.
pub fn join(socket: &Socket) -> Answer<bool> {
    match family::join() {
        Ok(family) if is_elsewhere(socket, family) => {
            unserved::tell("SO_BINDTODEVICE to an interface that is not silk's", libc::ENODEV)?;
            leave_to_linux(socket);
            Ok(false)
        }
        Ok(_) => Ok(true),
        Err(errno) if environment::is_strict() => Err(errno),
        Err(_) => {
            leave_to_linux(socket);
            Ok(false)
        }
    }
}

fn is_elsewhere(socket: &Socket, family: &Family) -> bool {
    let number = socket.settings.interface.load(Relaxed);
    number != 0 && !family.arena.header().usual.has_interface(number)
}

/// What a socket is to silk as long as it does not listen.
pub fn role_of(socket: &Socket) -> Role {
    if socket.is(shape::DATAGRAM) { Role::Datagram } else { Role::Stream }
}

/// Whether Linux serves it, as somebody else has decided meanwhile.
pub fn is_linuxs(socket: &Socket) -> bool {
    !socket.may_be_silks()
}

/// Passes a call on to Linux, where silk does not serve the socket.
pub fn or_linux(answer: Answer<Server>, linux: impl FnOnce() -> c_int) -> Answer<()> {
    match answer? {
        Server::Silk => Ok(()),
        Server::Linux if linux() < 0 => Err(last()),
        Server::Linux => Ok(()),
    }
}
