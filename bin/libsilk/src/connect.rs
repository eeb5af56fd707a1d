//! `connect`, and a datagram socket's first destination: who is there decides, as any first address, who serves the socket.

use crate::address::{self, ANY};
use crate::datagram_io;
use crate::disconnect;
use crate::errno::Answer;
use crate::family;
use crate::given_up;
use crate::groups;
use crate::named_path;
use crate::naming::{local, named, plain};
use crate::naming_turn::NamingTurn;
use crate::progress::{Progress, finish, progress};
use crate::server::{Server, decided, is_linuxs, join, role_of};
use crate::settings::flag;
use crate::shared::Alteration;
use crate::socket::{Found, Role, Socket, shape};
use crate::spares;
use crate::state;
use libc::{sockaddr, socklen_t};
use silk_control::{Kind, Reply, Request};
use std::ffi::c_int;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// `connect(2)` of an undecided socket or one that silk serves; `fd` is its descriptor.
///
/// # Errors
/// As Linux: `EINPROGRESS` where it does not wait, `EALREADY`, `EISCONN`, and the error of a
/// connection that failed.
///
/// # Safety
/// As [`address::parse`].
pub unsafe fn connect(
    socket: &'static Socket,
    fd: c_int,
    addr: *const sockaddr,
    len: socklen_t,
) -> Answer<Server> {
    let turn = NamingTurn::begin(socket, fd)?;
    if is_linuxs(socket) {
        return Ok(Server::Linux);
    }
    if socket.is(shape::SCOUT) && socket.is_undecided() {
        // SAFETY: as the caller promises.
        return unsafe { named_path::build(socket, turn, addr, len) };
    }
    if socket.is_served() && !socket.is(shape::SCOUT) {
        // Looked at whatever has become of the socket.
        address::is_there(addr, len)?;
    }
    let told = Alteration::begin(socket);
    // SAFETY: as the caller promises.
    let nobody = unsafe { address::is_of(libc::AF_UNSPEC, addr, len) };
    if nobody && socket.is_undecided() && !socket.is(shape::DATAGRAM) {
        // It is as if it had never been shut down.
        socket.shut.store(0, SeqCst);
    }
    if nobody && socket.is_served() && socket.role() != Role::Datagram {
        // What that changes it tells itself.
        drop(told);
        return disconnect::by_program(Found::now(socket)).map(|()| Server::Silk);
    }
    if socket.is_served() && !socket.is(shape::DATAGRAM) {
        // What it names is looked at only where the connection begins.
        match progress(Found::now(socket))? {
            Progress::Fresh => {}
            Progress::Done => return Ok(Server::Silk),
            Progress::Going => {
                let found = Found::now(socket);
                drop((told, turn));
                // Who has waited in vain is told so the first time only.
                let told = |errno| if errno == libc::EINPROGRESS { libc::EALREADY } else { errno };
                return finish(&found).map_err(told).map(|()| Server::Silk);
            }
        }
    }
    // SAFETY: as the caller promises.
    let Some(peer) = (unsafe { peer_of(socket, addr, len, nobody) })? else { return Ok(Server::Linux) };
    let bound = socket.is_served().then(|| socket.name());
    if bound.is_none() && !join(socket)? {
        return Ok(Server::Linux);
    }
    let (reply, claimed) = ask_to_connect(socket, bound, peer)?;
    if bound.is_some() && reply == Reply::NotOurs {
        if socket.is(shape::DATAGRAM) {
            // Bound here, so it cannot reach what is Linux's alone.
            return Err(libc::ENETUNREACH);
        }
        // SAFETY: as the caller promises.
        let scope = unsafe { address::scope(addr, len) };
        return given_up::to_linux(socket, fd, scope).map(|()| Server::Linux);
    }
    let server = match bound {
        None => decided(socket, reply, role_of(socket)),
        Some(_) => Ok(Server::Silk),
    };
    if let Some(slot) = claimed {
        spares::connect(slot);
    }
    let server = server?;
    if server == Server::Linux {
        return Ok(server);
    }
    if socket.kind() == Kind::Datagram {
        note_peer(socket, peer);
        return Ok(Server::Silk);
    }
    let found = Found::now(socket);
    drop(turn);
    if socket.is_nonblocking(0) {
        // Even if it has succeeded already: that is told by the next look.
        return Err(libc::EINPROGRESS);
    }
    finish(&found)?;
    Ok(Server::Silk)
}

/// Whom a socket is to be connected with; [`ANY`]: with nobody any more. `None`: the address is for Linux to judge.
///
/// # Safety
/// As [`address::parse`].
unsafe fn peer_of(
    socket: &Socket,
    addr: *const sockaddr,
    len: socklen_t,
    nobody: bool,
) -> Answer<Option<SocketAddr>> {
    // Who is IPv6's alone does not look at the rest of such an address.
    // SAFETY: as the caller promises.
    let is_plain = unsafe { address::is_of(libc::AF_INET, addr, len) };
    if is_plain && socket.is(shape::INET6) && socket.settings.has_flag(flag::ONLY_INET6) {
        return Err(libc::EAFNOSUPPORT);
    }
    let (is_datagram, is_served) = (socket.is(shape::DATAGRAM), socket.is_served());
    // SAFETY: as the caller promises.
    let peer = match unsafe { named(socket, addr, len, is_datagram) } {
        Ok(peer) if is_datagram && is_served => address::of_itself(peer, local(socket)?.ip().to_canonical()),
        Ok(peer) => plain(peer),
        // AF_UNSPEC dissolves a datagram socket's association.
        Err(_) if nobody && is_served => ANY,
        Err(errno) if is_served => return Err(errno),
        Err(_) => return Ok(None),
    };
    if !is_datagram && (groups::is_broadcast(peer) || peer.ip().is_multicast()) {
        return Err(libc::ENETUNREACH);
    }
    if socket.settings.has_flag(flag::ONLY_INET6) && peer.is_ipv4() && peer != ANY {
        return Err(libc::ENETUNREACH);
    }
    if is_datagram && is_served {
        if !datagram_io::may_send_to(socket, peer) {
            return Err(libc::EACCES);
        }
        datagram_io::speaks_its_ip(socket, peer)?;
    }
    Ok(Some(peer))
}

/// What the daemon answers, and the slot of the spare connection that was taken instead of asking it.
fn ask_to_connect(
    socket: &Socket,
    bound: Option<(u32, u32)>,
    peer: SocketAddr,
) -> Answer<(Reply, Option<u32>)> {
    let may_claim = bound.is_none() && socket.kind() == Kind::Stream;
    if let Some((slot, generation)) = may_claim.then(|| spares::claim(peer)).flatten() {
        return Ok((Reply::Socket { slot, generation }, Some(slot)));
    }
    // What was told of an earlier connection is past once there is another.
    let earlier = socket.slot().ok().filter(|_| socket.kind() == Kind::Stream);
    let error = earlier.and_then(state::take_error);
    let reply = asked(&connection(socket, socket.kind(), bound, peer), peer);
    if let (Err(_), Some(slot), Some(error)) = (&reply, earlier, error) {
        state::put_error(slot, error);
    }
    Ok((reply?, None))
}

/// A datagram socket has a peer now, or none any more.
fn note_peer(socket: &Socket, peer: SocketAddr) {
    let bit = shape::CONNECTED;
    if peer == ANY {
        socket.shape.fetch_and(!bit, Relaxed);
    } else {
        socket.shape.fetch_or(bit, Relaxed);
    }
}

/// The daemon's answer to a request to connect; what comes along with it is kept for later ones.
fn asked(request: &Request, peer: SocketAddr) -> Answer<Reply> {
    Ok(match family::ask(request, &[])? {
        Reply::Sockets { slot, generation, spares } => {
            spares::add(peer, &spares);
            Reply::Socket { slot, generation }
        }
        other => other,
    })
}

/// The request to connect, with what the first packet must show already.
fn connection(socket: &Socket, kind: Kind, bound: Option<(u32, u32)>, peer: SocketAddr) -> Request {
    let service = socket.settings.service_over(peer.is_ipv6()).load(Relaxed);
    Request::Connect { kind, bound, peer, service, wishes: socket.settings.wished() }
}

/// Decides who serves an undecided datagram socket by the first destination that it sends to: it is connected there and
/// then, if that is silk's, let go to any destination.
///
/// # Errors
/// What the daemon refuses with.
pub fn decide_by_peer(socket: &'static Socket, peer: SocketAddr) -> Answer<Server> {
    if !join(socket)? {
        return Ok(Server::Linux);
    }
    let reply = family::ask(&connection(socket, Kind::Datagram, None, plain(peer)), &[])?;
    if let Reply::Socket { slot, generation } = reply {
        // Let go to any destination again, before another thread sends to one with it.
        let dissolve = connection(socket, Kind::Datagram, Some((slot, generation)), ANY);
        if let Err(errno) = family::ask(&dissolve, &[]) {
            family::tell(&Request::Release { slot, generation });
            return Err(errno);
        }
    }
    decided(socket, reply, Role::Datagram)
}

/// Decides about an undecided socket by its first destination.
///
/// # Errors
/// What the daemon refuses with.
pub fn decide_by_destination(socket: &'static Socket, fd: c_int, peer: SocketAddr) -> Answer<()> {
    let _turn = NamingTurn::begin(socket, fd)?;
    // Another thread may have sent its first datagram meanwhile.
    if socket.is_undecided() { decide_by_peer(socket, peer).map(drop) } else { Ok(()) }
}
