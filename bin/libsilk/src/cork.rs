//! One datagram of several calls: `MSG_MORE` and `UDP_CORK` (udp(7)). What is written is [kept](crate::corked::Corked) until the last part
//! comes, or the cork is taken out. The first call says whom it is for, and how it is sent. No handler of a signal comes
//! meanwhile, for it might send a part itself.

use crate::control::Asked;
use crate::corked::Parts;
use crate::datagram_io::{self, MOST6};
use crate::errno::Answer;
use crate::settings::flag;
use crate::signals::Undisturbed;
use crate::socket::{Found, Socket};
use crate::vectors::{Vectors, single};
use std::ffi::c_int;
use std::net::SocketAddr;

/// Whether a call's bytes are a part of a datagram, rather than one.
#[inline]
fn is_part(socket: &Socket, flags: c_int) -> bool {
    waits(socket, flags) || socket.corked.has_begun()
}

/// Whether more is to follow a call's bytes.
fn waits(socket: &Socket, flags: c_int) -> bool {
    flags & libc::MSG_MORE != 0 || socket.settings.has_flag(flag::CORK)
}

/// Sends one datagram, to `peer` or to whom the socket is connected; or several, of `segment` bytes each, where that or
/// `UDP_SEGMENT` says so; or keeps a part of one, or sends all of them with the last.
///
/// # Errors
/// As `sendto(2)`. Of parts, what does not fit into one datagram is lost with all of its parts; after any other error the parts before
/// are still there.
pub fn send(socket: &Found, from: &Vectors, peer: Option<SocketAddr>, asked: Asked, flags: c_int) -> Answer {
    if is_part(socket, flags) {
        send_part(socket, from, peer, asked, flags)
    } else {
        datagram_io::send(socket, from, peer, asked, flags)
    }
}

fn send_part(socket: &Found, from: &Vectors, peer: Option<SocketAddr>, asked: Asked, flags: c_int) -> Answer {
    let _undisturbed = Undisturbed::begin();
    let mut kept = socket.corked.parts();
    let before = kept.as_ref().map(|parts| parts.data.len());
    datagram_io::may_be_urgent(socket, kept.as_ref().map_or(peer, |parts| parts.peer), flags)?;
    if before.is_none() {
        datagram_io::may_begin(socket, peer)?;
        *kept = Some(Parts { data: Vec::new(), peer, asked });
    }
    let total = from.total();
    let Some(parts) = kept.as_mut().filter(|parts| parts.data.len().saturating_add(total) <= MOST6) else {
        socket.corked.forget(&mut kept);
        return Err(libc::EMSGSIZE);
    };
    from.slices().into_iter().for_each(|part| parts.data.extend_from_slice(part));
    socket.corked.begin();
    if waits(socket, flags) {
        return Ok(total);
    }
    if let Err(errno) = send_kept(socket, &mut kept, flags) {
        match (kept.as_mut(), before) {
            (Some(parts), Some(before)) => parts.data.truncate(before),
            // There were none before: another thread has sent them meanwhile.
            _ => socket.corked.forget(&mut kept),
        }
        return Err(errno);
    }
    Ok(total)
}

/// Waits until so many bytes more may be sent, or kept: for who takes them from where they cannot be put back.
/// Another thread may use the room before he sends them.
///
/// # Errors
/// As [`send`].
pub fn until_room(socket: &Found, more: usize, flags: c_int) -> Answer<()> {
    let (before, to) = {
        let _undisturbed = Undisturbed::begin();
        let kept = socket.corked.parts();
        let nothing = (0, (None, Asked::default()));
        kept.as_ref().map_or(nothing, |parts| (parts.data.len(), (parts.peer, parts.asked)))
    };
    let whole = before.saturating_add(more);
    let answer = if !waits(socket, flags) {
        datagram_io::until_room(socket, whole, to, flags)
    } else if whole > MOST6 {
        Err(libc::EMSGSIZE)
    } else {
        datagram_io::may_begin(socket, to.0)
    };
    if before > 0 && !matches!(answer, Ok(()) | Err(libc::EAGAIN | libc::EINTR)) {
        // What is refused is lost with the parts before it.
        let _undisturbed = Undisturbed::begin();
        socket.corked.forget(&mut socket.corked.parts());
    }
    answer
}

/// Sends what has been kept, now that the cork is out.
///
/// # Errors
/// As `sendto(2)`.
pub fn let_go(socket: &Found) -> Answer<()> {
    let _undisturbed = Undisturbed::begin();
    let mut kept = socket.corked.parts();
    if kept.is_none() { Ok(()) } else { send_kept(socket, &mut kept, 0) }
}

/// Sends all parts. After an error that may pass they are still there.
fn send_kept(socket: &Found, kept: &mut Option<Parts>, flags: c_int) -> Answer<()> {
    let Some(parts) = kept.as_ref() else { return Ok(()) };
    let list = single(parts.data.as_ptr().cast(), parts.data.len());
    // SAFETY: the bytes are there until the parts are forgotten.
    let whole = unsafe { Vectors::new(&list) };
    let sent = datagram_io::send(socket, &whole, parts.peer, parts.asked, flags);
    if !matches!(sent, Err(libc::EAGAIN | libc::EINTR)) {
        socket.corked.forget(kept);
    }
    sent.map(drop)
}
