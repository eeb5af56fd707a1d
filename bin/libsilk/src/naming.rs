//! From a new socket to one that somebody [serves](crate::server): `socket`, `bind`, `listen` (`connect` is in `connect.rs`),
//! and the names of both ends. Each socket starts as the kernel's, undecided.

use crate::address::{self, ANY};
use crate::descriptor;
use crate::errno::{Answer, check};
use crate::family;
use crate::listener;
use crate::named_path;
use crate::naming_turn::NamingTurn;
use crate::options;
use crate::real;
use crate::server::{Server, decided, is_linuxs, join, role_of};
use crate::settings::flag;
use crate::shared::Alteration;
use crate::shutdown;
use crate::socket::{self, Role, Socket, shape, stage};
use crate::state;
use libc::{sockaddr, socklen_t};
use silk_control::{PF_SCOUT, Request};
use silk_stream::status;
use std::ffi::c_int;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// `socket(2)`.
///
/// # Errors
/// As Linux.
pub fn socket(family: c_int, kind: c_int, protocol: c_int) -> Answer<c_int> {
    let sort = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    let scout = family == PF_SCOUT;
    let known = matches!(
        (family, sort, protocol),
        // Multipath TCP (RFC 8684) with a peer that does not speak it is TCP, and we do not.
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP | libc::IPPROTO_MPTCP)
            | (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP)
    ) || (scout && matches!(sort, libc::SOCK_STREAM | libc::SOCK_DGRAM));
    // SAFETY: plain numbers; of a PF_SCOUT socket the kernel's part is of Unix's family.
    let fd = check(unsafe {
        if scout { real::socket(libc::AF_UNIX, kind, 0) } else { real::socket(family, kind, protocol) }
    })?;
    if known {
        let bits = [
            (sort == libc::SOCK_DGRAM, shape::DATAGRAM),
            (family == libc::AF_INET6, shape::INET6),
            (scout, shape::SCOUT),
        ];
        let bits = bits.into_iter().filter(|(is, _)| *is).fold(0, |sum, (_, bit)| sum | bit);
        if let Some(socket) = socket::make(stage::UNDECIDED, bits, (kind & libc::SOCK_NONBLOCK) as u32)
            && !descriptor::name(fd, socket)
        {
            socket.free();
        }
    }
    Ok(fd)
}

/// Nobody's address is the same of either IP.
pub fn plain(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { SocketAddr::new(ANY.ip(), address.port()) } else { address }
}

/// Every address of ours that a socket of this family can have, and any port.
fn any_of(socket: &Socket) -> SocketAddr {
    if socket.is(shape::INET6) { SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0) } else { ANY }
}

/// `bind(2)` of a socket that silk serves, which has its address, or of one that is undecided.
///
/// # Errors
/// As Linux, and what the daemon refuses with.
///
/// # Safety
/// As [`address::parse`].
pub unsafe fn bind(
    socket: &'static Socket,
    fd: c_int,
    addr: *const sockaddr,
    len: socklen_t,
) -> Answer<Server> {
    let turn = NamingTurn::begin(socket, fd)?;
    if !socket.is_undecided() {
        return if socket.is_served() { Err(libc::EINVAL) } else { Ok(Server::Linux) };
    }
    if socket.is(shape::SCOUT) {
        // SAFETY: as the caller promises.
        return unsafe { named_path::build(socket, turn, addr, len) };
    }
    // SAFETY: as the caller promises. What is no address is Linux's to refuse.
    let Ok(local) =
        (unsafe { named(socket, addr, len, false).or_else(|_| any_without_family(socket, addr, len)) })
    else {
        return Ok(Server::Linux);
    };
    if !join(socket)? {
        return Ok(Server::Linux);
    }
    if local.is_ipv6() && !local.ip().is_unspecified() {
        // As in Linux: one address of IPv6 hears nothing of IPv4, and says so, once it is bound.
        let before = socket.settings.has_flag(flag::ONLY_INET6);
        socket.settings.set_flag(flag::ONLY_INET6, true);
        return bind_to(socket, local).inspect_err(|_| socket.settings.set_flag(flag::ONLY_INET6, before));
    }
    bind_to(socket, local)
}

/// The address that `bind` or `connect` names: of the socket's own family, or of IPv4 too where a
/// socket of IPv6 `takes_both`.
///
/// # Safety
/// As [`address::parse`].
pub unsafe fn named(
    socket: &Socket,
    addr: *const sockaddr,
    len: socklen_t,
    takes_both: bool,
) -> Answer<SocketAddr> {
    // SAFETY: as the caller promises; `parse` has seen that the family's bytes are there.
    let (address, family) =
        unsafe { (address::parse(addr, len)?, addr.cast::<libc::sa_family_t>().read_unaligned()) };
    let six = i32::from(family) == libc::AF_INET6;
    let fits = six == socket.is(shape::INET6) || (!six && takes_both);
    if fits { Ok(address) } else { Err(libc::EAFNOSUPPORT) }
}

/// Every address of IPv4 where the program has left the family out, as old ones do and Linux understands.
///
/// # Safety
/// As [`address::parse`].
unsafe fn any_without_family(socket: &Socket, addr: *const sockaddr, len: socklen_t) -> Answer<SocketAddr> {
    // SAFETY: as the caller promises.
    let address = unsafe {
        match address::is_of(libc::AF_UNSPEC, addr, len) && !socket.is(shape::INET6) {
            true => address::parse_as_ip4(addr, len)?,
            false => return Err(libc::EAFNOSUPPORT),
        }
    };
    if address.ip().is_unspecified() { Ok(address) } else { Err(libc::EAFNOSUPPORT) }
}

fn bind_to(socket: &'static Socket, local: SocketAddr) -> Answer<Server> {
    let reply = family::ask(
        &Request::Bind {
            kind: socket.kind(),
            local,
            reuse_address: socket.settings.has_flag(flag::REUSE_ADDRESS),
            reuse_port: socket.settings.has_flag(flag::REUSE_PORT),
            only_v6: socket.settings.has_flag(flag::ONLY_INET6),
        },
        &[],
    )?;
    socket.shape.fetch_or(shape::BOUND, Relaxed);
    decided(socket, reply, role_of(socket))
}

/// `listen(2)` of a socket that silk serves, or of one that was never bound.
///
/// # Errors
/// As Linux, and what the daemon refuses with.
pub fn listen(socket: &'static Socket, fd: c_int, backlog: c_int) -> Answer<Server> {
    let _turn = NamingTurn::begin(socket, fd)?;
    if is_linuxs(socket) {
        return Ok(Server::Linux);
    }
    if socket.is(shape::DATAGRAM) {
        return if socket.is_served() { Err(libc::EOPNOTSUPP) } else { Ok(Server::Linux) };
    }
    if socket.is_undecided() && (!join(socket)? || bind_to(socket, any_of(socket))? == Server::Linux) {
        return Ok(Server::Linux);
    }
    let _told = Alteration::begin(socket);
    if socket.role() == Role::Stream && socket.slot()?.status.load(SeqCst) != 0 {
        return Err(libc::EINVAL);
    }
    socket.settings.backlog.store(u32::try_from(backlog).unwrap_or(u32::MAX), SeqCst);
    options::pass_on_to_listen(socket);
    listener::tell_terms(socket)?;
    socket.set_role(Role::Listener);
    Ok(Server::Silk)
}

/// `getsockname(2)` of a socket that silk serves.
///
/// # Errors
/// As Linux.
pub fn local(socket: &Socket) -> Answer<SocketAddr> {
    Ok(address::shared(&socket.slot()?.local))
}

/// `getpeername(2)` of a socket that silk serves.
///
/// # Errors
/// As Linux.
pub fn peer(socket: &Socket) -> Answer<SocketAddr> {
    let slot = socket.slot()?;
    let connected = match socket.role() {
        Role::Listener => false,
        Role::Datagram => socket.is(shape::CONNECTED),
        Role::Stream => {
            let now = state::status(slot);
            now & status::CONNECTED != 0 && !shutdown::is_over(now)
        }
    };
    let peer = address::shared(&slot.peer);
    // A datagram socket that is connected to port 0 has no peer.
    if connected && peer.port() != 0 { Ok(peer) } else { Err(libc::ENOTCONN) }
}
