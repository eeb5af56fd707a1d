//! One way in for every call that moves data: picks stream or datagram, and speaks the C
//! forms of messages, names and control data.

use crate::address;
use crate::arrival;
use crate::arrived::Arrived;
use crate::connect;
use crate::control::{self, Asked, Speaks, Telling};
use crate::cork;
use crate::datagram_io;
use crate::errno::Answer;
use crate::settings::flag;
use crate::socket::{Found, Role, Socket, shape};
use crate::state;
use crate::stream_io;
use crate::unserved;
use crate::urgent;
use crate::vectors::{self, Vectors};
use libc::{msghdr, sockaddr, socklen_t};
use silk_stream::status;
use std::ffi::c_int;
use std::net::SocketAddr;

/// `read`, `recv` and their kin: no name is wanted.
///
/// # Errors
/// As `recv(2)`.
#[inline]
pub fn receive(socket: &Found, into: &Vectors, flags: c_int) -> Answer {
    match socket.role() {
        Role::Stream => stream_io::receive(socket, into, flags),
        // It has no errors to tell of.
        Role::Listener if flags & libc::MSG_ERRQUEUE != 0 => Err(libc::EAGAIN),
        Role::Listener => Err(libc::ENOTCONN),
        Role::Datagram => datagram_io::receive(socket, into, flags).map(|got| length(got, flags)),
    }
}

/// What a datagram's receiver is told: the whole length where it asks for that.
fn length(got: Arrived, flags: c_int) -> usize {
    if flags & libc::MSG_TRUNC != 0 { got.whole } else { got.copied }
}

/// `write`, `send` and their kin: to the connected peer.
///
/// # Errors
/// As `send(2)`.
#[inline]
pub fn send(socket: &Found, from: &Vectors, flags: c_int) -> Answer {
    match socket.role() {
        Role::Stream => stream_io::send(socket, from, flags),
        Role::Listener => stream_io::refuse(socket, flags),
        Role::Datagram => cork::send(socket, from, None, Asked::default(), flags),
    }
}

/// `recvfrom(2)`.
///
/// # Errors
/// As Linux.
///
/// # Safety
/// The address must be as [`address::give`] wants it.
pub unsafe fn receive_from(
    socket: &Found,
    into: &Vectors,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> Answer {
    if socket.role() != Role::Datagram {
        let got = receive(socket, into, flags)?;
        // SAFETY: as the caller promises. A stream tells no names.
        unsafe { address::give_sender(None, false, from, from_len) }?;
        return Ok(got);
    }
    let got = datagram_io::receive(socket, into, flags)?;
    // SAFETY: as the caller promises.
    unsafe { address::give_sender(got.peer, socket.is(shape::INET6), from, from_len) }?;
    Ok(length(got, flags))
}

/// What Linux looks at of a name in a message at most.
const LONGEST: socklen_t = size_of::<libc::sockaddr_storage>() as socklen_t;

/// The name in a message, as far as Linux looks at it: none has no length, and what has none is none.
///
/// # Errors
/// `EINVAL` where it is shorter than nothing.
pub fn name_of(message: &msghdr) -> Answer<(*const sockaddr, socklen_t)> {
    match message.msg_namelen {
        len if message.msg_name.is_null() || len == 0 => Ok((std::ptr::null(), 0)),
        len if len.cast_signed() < 0 => Err(libc::EINVAL),
        len => Ok((message.msg_name.cast_const().cast(), len.min(LONGEST))),
    }
}

/// Who a call addresses; `None` when nobody is named.
///
/// # Safety
/// As [`address::parse`].
unsafe fn peer(socket: &Socket, to: *const sockaddr, len: socklen_t) -> Answer<Option<SocketAddr>> {
    // Linux does not look at the name of what goes on, over IPv4.
    if to.is_null() || socket.corked.has_begun() && !socket.is(shape::INET6) {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let peer = match unsafe { address::is_of(libc::AF_UNSPEC, to, len) } {
        // Linux takes it for one of IPv4, or, of a socket of IPv6, for whom that is connected to.
        true if socket.is(shape::INET6) => return Ok(None),
        // To a socket of IPv6 whatever is no address is the same fault.
        // SAFETY: as the caller promises.
        false if socket.is(shape::INET6) => unsafe { address::parse(to, len) }.map_err(|_| libc::EINVAL)?,
        // SAFETY: as the caller promises.
        true => unsafe { address::parse_as_ip4(to, len) }?,
        // SAFETY: as the caller promises.
        false => unsafe { address::parse(to, len) }?,
    };
    if !peer.ip().is_unspecified() {
        return Ok(Some(peer));
    }
    let own = socket.slot().map_or(address::ANY, |slot| address::shared(&slot.local)).ip().to_canonical();
    Ok(Some(address::of_itself(peer, own)))
}

/// `sendto(2)`.
///
/// # Errors
/// As Linux.
///
/// # Safety
/// As [`address::parse`].
pub unsafe fn send_to(
    socket: &Found,
    from: &Vectors,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> Answer {
    if !to.is_null() && to_len > LONGEST {
        // Looked at before it matters to whom it is sent.
        return Err(libc::EINVAL);
    }
    if socket.role() != Role::Datagram {
        return send(socket, from, flags);
    }
    if flags & libc::MSG_OOB != 0 && !socket.is(shape::INET6) {
        // Before it is looked at whom it is for.
        return Err(libc::EOPNOTSUPP);
    }
    // SAFETY: as the caller promises.
    let peer = unsafe { peer(socket, to, to_len) }?;
    cork::send(socket, from, peer, Asked::default(), flags)
}

/// Decides about an undecided datagram socket that is about to send.
///
/// # Errors
/// What the daemon refuses with; `EOPNOTSUPP` for TCP Fast Open.
///
/// # Safety
/// As [`address::parse`].
pub unsafe fn decide(
    (socket, fd): (&'static Socket, c_int),
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> Answer<bool> {
    if flags & libc::MSG_FASTOPEN != 0 && !socket.is(shape::DATAGRAM) {
        // Linux would connect, and the connection would be its own without a word.
        unserved::tell("sendto(MSG_FASTOPEN)", libc::EOPNOTSUPP)?;
        return Err(libc::EOPNOTSUPP);
    }
    if !socket.is_undecided() || !socket.is(shape::DATAGRAM) || socket.is(shape::SCOUT) {
        return Ok(socket.is_served());
    }
    // SAFETY: as the caller promises. What is no address, or none for such a socket, is Linux's to refuse.
    let Ok(Some(peer)) = (unsafe { peer(socket, to, to_len) }) else { return Ok(false) };
    if datagram_io::may_be_told(socket, peer).is_err() {
        return Ok(false);
    }
    connect::decide_by_destination(socket, fd, peer)?;
    Ok(socket.is_served())
}

/// How many buffers a message has.
fn count_of(message: &msghdr) -> Answer<c_int> {
    let count = c_int::try_from(message.msg_iovlen).ok();
    count.filter(|count| *count <= vectors::MOST as c_int).ok_or(libc::EMSGSIZE)
}

/// How many octets of a stream can still be read (`TCP_INQ`); 1 where only its end is left, so that it is read, too.
fn left(socket: &Socket) -> c_int {
    let Ok(slot) = socket.slot() else { return 0 };
    match urgent::readable(socket, slot) {
        0 => c_int::from(state::status(slot) & (status::PEER_FIN | status::FAILED) != 0),
        left => left.cast_signed(),
    }
}

/// `recvmsg(2)`.
///
/// # Errors
/// As Linux.
///
/// # Safety
/// `message` must be valid, with all it points to.
pub unsafe fn receive_message(socket: &Found, message: *mut msghdr, flags: c_int) -> Answer {
    // SAFETY: as the caller promises.
    let message = unsafe { message.as_mut() }.ok_or(libc::EFAULT)?;
    name_of(message)?;
    let count = count_of(message)?;
    // SAFETY: as the caller promises.
    let into = unsafe { Vectors::at(message.msg_iov, count) }?;
    if socket.role() != Role::Datagram {
        let got = receive(socket, &into, flags)?;
        let room = message.msg_controllen;
        message.msg_controllen = 0;
        if !message.msg_name.is_null() {
            message.msg_namelen = 0;
        }
        let truncated = if into.total() == 0 { libc::MSG_TRUNC } else { 0 };
        message.msg_flags = if flags & libc::MSG_OOB != 0 { libc::MSG_OOB | truncated } else { 0 };
        message.msg_flags |= flags & libc::MSG_CMSG_CLOEXEC;
        if flags & libc::MSG_OOB == 0 && socket.settings.has_flag(flag::TELL_LEFT) {
            message.msg_controllen = room;
            // SAFETY: the control buffer has as many bytes, by the caller's word.
            unsafe { Telling::new(message) }.put(libc::IPPROTO_TCP, control::TCP_INQ, left(socket));
        }
        return Ok(got);
    }
    let got = datagram_io::receive(socket, &into, flags)?;
    message.msg_flags = if got.whole > got.copied { libc::MSG_TRUNC } else { 0 };
    message.msg_flags |= flags & libc::MSG_CMSG_CLOEXEC;
    if got.error.is_some() {
        message.msg_flags |= libc::MSG_ERRQUEUE;
    }
    // SAFETY: the name has `msg_namelen` bytes, or is null.
    unsafe {
        let name = message.msg_name.cast();
        address::give_sender(got.peer, socket.is(shape::INET6), name, &mut message.msg_namelen)?;
    }
    if got.peer.is_none() {
        // Of nothing there is nothing to tell.
        message.msg_controllen = 0;
        return Ok(0);
    }
    // SAFETY: the control buffer has `msg_controllen` bytes, or is null.
    let mut telling = unsafe { Telling::new(message) };
    if let Some(told) = &got.error {
        told.put(socket.is(shape::INET6), &mut telling);
        return Ok(got.copied);
    }
    arrival::tell_time(socket, &got, &mut telling);
    if got.segment > 0 {
        telling.put(control::UDP, control::UDP_GRO, c_int::try_from(got.segment).unwrap_or(0));
    }
    arrival::tell(socket, &got, &mut telling)?;
    Ok(length(got, flags))
}

/// A stream is asked to send with control data that make no sense.
fn send_nothing(socket: &Found, flags: c_int) -> Answer {
    // SAFETY: no byte is read of no buffer.
    unsafe { send(socket, &Vectors::new(&vectors::single(std::ptr::null(), 0)), flags) }?;
    Err(libc::EINVAL)
}

/// Which IPs a datagram of this socket's has to do with.
fn speaks(socket: &Socket, peer: Option<SocketAddr>) -> Speaks {
    let six = socket.is(shape::INET6);
    let to = || socket.slot().map_or(address::ANY, |slot| peer.unwrap_or(address::shared(&slot.peer)));
    Speaks { four: !six || to().ip().to_canonical().is_ipv4(), six }
}

/// `sendmsg(2)`. Control data but UDP's are ignored: what they could ask for (`IP_PKTINFO`, …) is
/// the path's business.
///
/// # Errors
/// As Linux.
///
/// # Safety
/// `message` must be valid, with all it points to.
pub unsafe fn send_message(socket: &Found, message: *const msghdr, flags: c_int) -> Answer {
    // SAFETY: as the caller promises.
    let message = unsafe { message.as_ref() }.ok_or(libc::EFAULT)?;
    let (name, name_len) = name_of(message)?;
    let count = count_of(message)?;
    // SAFETY: as the caller promises.
    unsafe {
        let from = Vectors::at(message.msg_iov, count)?;
        if socket.role() != Role::Datagram {
            let sense = control::is_known_to_sockets(message);
            // Whether it is connected is looked at first.
            return if sense { send(socket, &from, flags) } else { send_nothing(socket, flags) };
        }
        let goes_on = socket.corked.has_begun();
        let peer = peer(socket, name, name_len)?;
        let asked = if goes_on {
            Asked::default()
        } else {
            datagram_io::is_for_somebody(socket, peer)?;
            control::asked(message, speaks(socket, peer))?
        };
        cork::send(socket, &from, peer, asked, flags)
    }
}
