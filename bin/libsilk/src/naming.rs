//! From a new socket to one that somebody serves: `socket`, `bind`, `listen`, `connect`,
//! `shutdown` and the names of both ends. Each socket starts as the kernel's, undecided; its
//! first address decides, by the daemon's word, whether silk serves it or Linux does.

use crate::address::{self, ANY};
use crate::datagram_io;
use crate::descriptor;
use crate::disconnect;
use crate::environment;
use crate::epoll;
use crate::errno::{Answer, check, last};
use crate::family::{self, Family};
use crate::given_up;
use crate::groups;
use crate::naming_turn::NamingTurn;
use crate::options;
use crate::real;
use crate::settings::flag;
use crate::shared::Alteration;
use crate::socket::{self, Role, Socket, shape, state as stage};
use crate::spares;
use crate::state;
use crate::stream_io::shut;
use crate::unserved;
use crate::wait::{self, Change, Deadline};
use libc::{sockaddr, socklen_t};
use silk_control::{Kind, PF_SCOUT, Reply, Request};
use silk_stream::{Slot, request, status};
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

/// Who serves a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// Silk; what was asked for is done.
    Silk,
    /// Linux; the caller passes the call on.
    Linux,
}

fn decided(socket: &'static Socket, reply: Reply, role: Role) -> Answer<Server> {
    match reply {
        Reply::Socket { slot, generation } => {
            socket.serve(slot, generation, role);
            options::pass_on_all(socket);
            options::tell_foreign(socket)?;
            socket.early.tell(socket);
            epoll::now_served(socket);
            Ok(Server::Silk)
        }
        Reply::NotOurs => {
            socket.leave_to_linux();
            if environment::is_strict() { Err(libc::ENETDOWN) } else { Ok(Server::Linux) }
        }
        _ => Err(libc::EPROTO),
    }
}

/// Without a daemon Linux serves everything, and what is bound to another interface than silk's in any case, unless
/// the program is strict.
fn join(socket: &Socket) -> Answer<bool> {
    match family::join() {
        Ok(family) if is_elsewhere(socket, family) => {
            unserved::tell("SO_BINDTODEVICE to an interface that is not silk's", libc::ENODEV)?;
            socket.leave_to_linux();
            Ok(false)
        }
        Ok(_) => Ok(true),
        Err(errno) if environment::is_strict() => Err(errno),
        Err(_) => {
            socket.leave_to_linux();
            Ok(false)
        }
    }
}

fn is_elsewhere(socket: &Socket, family: &Family) -> bool {
    let number = socket.settings.interface.load(Relaxed);
    number != 0 && !family.arena.header().usual.has_interface(number)
}

fn role_of(socket: &Socket) -> Role {
    if socket.is(shape::DATAGRAM) { Role::Datagram } else { Role::Stream }
}

/// Nobody's address is the same of either IP.
fn plain(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { SocketAddr::new(ANY.ip(), address.port()) } else { address }
}

/// Every address of ours that a socket of this family can have, and any port.
fn any_of(socket: &Socket) -> SocketAddr {
    if socket.is(shape::INET6) { SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0) } else { ANY }
}

/// `bind(2)` of an undecided socket.
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
        return unsafe { scout(socket, turn, addr, len) };
    }
    // SAFETY: as the caller promises. What is no address is Linux's to refuse.
    let Ok(local) = (unsafe { named(socket, addr, len, false) }) else { return Ok(Server::Linux) };
    if !join(socket)? {
        return Ok(Server::Linux);
    }
    if local.is_ipv6() && !local.ip().is_unspecified() {
        // As in Linux: one address of IPv6 hears nothing of IPv4, and says so.
        socket.settings.set_flag(flag::ONLY_INET6, true);
    }
    bind_to(socket, local)
}

/// The address that `bind` or `connect` names: of the socket's own family, or of IPv4 too where a
/// socket of IPv6 `takes_both`.
///
/// # Safety
/// As [`address::parse`].
unsafe fn named(
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

/// `bind` or `connect` of a `PF_SCOUT` socket: its address is the name of a path, which either builds.
///
/// # Safety
/// `addr` points to `len` readable bytes or is null.
unsafe fn scout(
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
    let uses = socket.uses();
    drop(turn);
    // A byte stream that names its remote end connects; one that does not is to listen.
    let connects = || socket.slot().is_ok_and(|slot| slot.status.load(SeqCst) != 0);
    if socket.kind() == Kind::Stream && connects() {
        if socket.is_nonblocking(0) {
            return Err(libc::EINPROGRESS);
        }
        finish(socket, uses)?;
    }
    Ok(server)
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
    listen_on(socket)?;
    socket.set_role(Role::Listener);
    Ok(Server::Silk)
}

/// Tells the daemon the terms a socket listens under: at first, and whenever they change.
///
/// # Errors
/// What the daemon refuses with.
pub fn listen_on(socket: &Socket) -> Answer<()> {
    let (backlog, defer_accept) =
        (socket.settings.backlog.load(SeqCst), socket.settings.defer_accept.load(SeqCst));
    let (slot, generation) = socket.name();
    family::ask(&Request::Listen { slot, generation, backlog, defer_accept }, &[])?;
    Ok(())
}

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
        return unsafe { scout(socket, turn, addr, len) };
    }
    let _told = Alteration::begin(socket);
    // SAFETY: as the caller promises.
    let nobody = unsafe { address::is_of(libc::AF_UNSPEC, addr, len) };
    if nobody && socket.is_undecided() && !socket.is(shape::DATAGRAM) {
        // It is as if it had never been shut down.
        socket.shut.store(0, SeqCst);
    }
    if nobody && socket.is_served() && socket.role() != Role::Datagram {
        return disconnect::by_program(socket).map(|()| Server::Silk);
    }
    if socket.is_served() && !socket.is(shape::DATAGRAM) {
        // What it names is looked at only where the connection begins.
        if addr.is_null() || (len as usize) < size_of::<libc::sa_family_t>() {
            return Err(libc::EINVAL);
        }
        match progress(socket)? {
            Progress::Fresh => {}
            Progress::Done => return Ok(Server::Silk),
            Progress::Going => {
                let uses = socket.uses();
                drop(turn);
                // Who has waited in vain is told so the first time only.
                let told = |errno| if errno == libc::EINPROGRESS { libc::EALREADY } else { errno };
                return finish(socket, uses).map_err(told).map(|()| Server::Silk);
            }
        }
    }
    // Who is IPv6's alone does not look at the rest of such an address.
    // SAFETY: as the caller promises.
    let is_plain = unsafe { address::is_of(libc::AF_INET, addr, len) };
    if is_plain && socket.is(shape::INET6) && socket.settings.has_flag(flag::ONLY_INET6) {
        return Err(libc::EAFNOSUPPORT);
    }
    // SAFETY: as the caller promises.
    let peer = match unsafe { named(socket, addr, len, socket.is(shape::DATAGRAM)) } {
        Ok(peer) if socket.is(shape::DATAGRAM) && socket.is_served() => {
            address::of_itself(peer, local(socket)?.ip().to_canonical())
        }
        Ok(peer) => plain(peer),
        // AF_UNSPEC dissolves a datagram socket's association.
        Err(_) if nobody && socket.is_served() => ANY,
        Err(errno) if socket.is_served() => return Err(errno),
        Err(_) => return Ok(Server::Linux),
    };
    if !socket.is(shape::DATAGRAM) && (groups::is_broadcast(peer) || peer.ip().is_multicast()) {
        return Err(libc::ENETUNREACH);
    }
    if socket.settings.has_flag(flag::ONLY_INET6) && peer.is_ipv4() && peer != ANY {
        return Err(libc::ENETUNREACH);
    }
    if socket.is(shape::DATAGRAM) && socket.is_served() && !datagram_io::may_send_to(socket, peer) {
        return Err(libc::EACCES);
    }
    let bound = socket.is_served().then(|| socket.name());
    if bound.is_none() && !join(socket)? {
        return Ok(Server::Linux);
    }
    let may_claim = bound.is_none() && socket.kind() == Kind::Stream;
    let claimed = may_claim.then(|| spares::claim(peer)).flatten();
    let reply = match claimed {
        Some((slot, generation)) => Reply::Socket { slot, generation },
        None => asked(&connection(socket, socket.kind(), bound, peer), peer)?,
    };
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
    if let Some((slot, _)) = claimed {
        spares::connect(slot);
    }
    let server = server?;
    if server == Server::Linux {
        return Ok(server);
    }
    if socket.kind() == Kind::Datagram {
        let bit = shape::CONNECTED;
        if peer == ANY {
            socket.shape.fetch_and(!bit, Relaxed)
        } else {
            socket.shape.fetch_or(bit, Relaxed)
        };
        return Ok(Server::Silk);
    }
    let uses = socket.uses();
    drop(turn);
    if socket.is_nonblocking(0) {
        // Even if it has succeeded already: that is told by the next look.
        return Err(libc::EINPROGRESS);
    }
    finish(socket, uses)?;
    Ok(Server::Silk)
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
pub fn connection(socket: &Socket, kind: Kind, bound: Option<(u32, u32)>, peer: SocketAddr) -> Request {
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

/// Whether Linux serves it, as somebody else has decided meanwhile.
fn is_linuxs(socket: &Socket) -> bool {
    !socket.is_served() && !socket.is_undecided()
}

/// How far the connection is that a stream socket may have.
enum Progress {
    /// It has none.
    Fresh,
    /// Who has a part in it may wait for it.
    Going,
    /// It is there, as the program is told now.
    Done,
}

/// A stream socket of silk's on which `connect` is called, once more perhaps.
fn progress(socket: &Socket) -> Answer<Progress> {
    if socket.role() == Role::Listener {
        return Err(libc::EISCONN);
    }
    let slot = socket.slot()?;
    let now = state::status(slot);
    if now & (status::CONNECTED | status::CONNECTING | status::FAILED) == 0 {
        // What was told of an earlier connection is past.
        state::take_error(slot);
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
        socket.shape.fetch_or(shape::GREETED, Relaxed);
        return Ok(Progress::Done);
    }
    if socket.is_nonblocking(0) { Err(libc::EALREADY) } else { Ok(Progress::Going) }
}

/// Waits until the connection is established or has failed.
fn finish(socket: &Socket, uses: u32) -> Answer<()> {
    let deadline = Deadline::after(socket.settings.send_limit());
    let over = |slot: &Slot| state::status(slot) & status::CONNECTING == 0 || state::is_dead();
    loop {
        let slot = socket.slot_of(uses)?;
        let now = state::status(slot);
        if now & status::FAILED != 0 {
            return Err(disconnect::of_failed(socket, slot));
        }
        if now & status::CONNECTED != 0 {
            socket.shape.fetch_or(shape::GREETED, Relaxed);
            return Ok(());
        }
        match wait::sleep(socket, slot, Change::Writable(1), deadline, over) {
            Err(libc::EAGAIN) => return Err(libc::EINPROGRESS),
            other => other?,
        }
    }
}

/// What of reading and writing `shutdown` ends, as bits of [`shut`].
fn ends(how: c_int) -> Option<u32> {
    match how {
        libc::SHUT_RD => Some(shut::READ),
        libc::SHUT_WR => Some(shut::WRITE),
        libc::SHUT_RDWR => Some(shut::READ | shut::WRITE),
        _ => None,
    }
}

/// A socket that nobody serves yet is shut down: as in Linux that counts once it is connected, though the call fails.
pub fn note_early_shutdown(socket: &Socket, how: c_int) {
    if socket.is_undecided() {
        socket.shut.fetch_or(ends(how).unwrap_or(0), SeqCst);
    }
}

/// `shutdown(2)` of a socket that silk serves.
///
/// # Errors
/// As Linux.
pub fn shutdown(socket: &Socket, how: c_int) -> Answer<()> {
    let bits = ends(how).ok_or(libc::EINVAL)?;
    let asked = [(shut::READ, request::SHUT_READ), (shut::WRITE, request::SHUT_WRITE)];
    let asked = asked.into_iter().filter(|(bit, _)| bits & bit != 0).fold(0, |all, (_, ask)| all | ask);
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
        wake_who_waits(socket, slot);
        return Err(libc::ENOTCONN);
    }
    match socket.role() {
        // A listener has nothing to write.
        Role::Listener if bits & shut::READ == 0 => return Ok(()),
        Role::Listener => return disconnect::by_program(socket),
        // What is not connected yet is given up, whichever direction is meant.
        Role::Stream if now & status::CONNECTING != 0 && !socket.is(shape::SCOUT) => {
            return disconnect::by_program(socket);
        }
        Role::Stream | Role::Datagram => {}
    }
    if socket.role() == Role::Stream {
        // Who shuts it down knows that it is connected: it does not ask again by `connect`.
        socket.shape.fetch_or(shape::GREETED, Relaxed);
    }
    let family = family::joined().ok_or(libc::ENOTCONN)?;
    note_shut(socket, alteration, bits);
    if socket.role() == Role::Stream {
        family.request(socket.name().0, slot, asked);
    }
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
fn is_over(now: u32) -> bool {
    now & (status::FAILED | status::SEND_CLOSED) != 0
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
            now & status::CONNECTED != 0 && !is_over(now)
        }
    };
    let peer = address::shared(&slot.peer);
    // A datagram socket that is connected to port 0 has no peer.
    if connected && peer.port() != 0 { Ok(peer) } else { Err(libc::ENOTCONN) }
}

/// Passes a call on to Linux, where silk does not serve the socket.
pub fn or_linux(answer: Answer<Server>, linux: impl FnOnce() -> c_int) -> Answer<()> {
    match answer? {
        Server::Silk => Ok(()),
        Server::Linux if linux() < 0 => Err(last()),
        Server::Linux => Ok(()),
    }
}
