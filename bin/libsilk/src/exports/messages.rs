//! `sendmsg`, `recvmsg` and their plural forms.

use crate::clock::now;
use crate::errno::{Answer, int, size};
use crate::nameless;
use crate::passing;
use crate::real;
use crate::socket::Found;
use crate::state;
use crate::table;
use crate::transfer;
use crate::vectors::Vectors;
use libc::{c_int, c_uint, mmsghdr, msghdr, ssize_t, timespec};
use std::time::Duration;

/// Linux's `UIO_MAXIOV`: more messages are not sent at once.
const MOST: c_uint = 1024;

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, msg: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe {
        match nameless::reader(fd, flags, true) {
            Ok(None) => {
                let got = real::recvmsg(fd, msg, flags);
                if got >= 0 {
                    passing::received(msg, flags);
                }
                got
            }
            Ok(Some(socket)) => size(transfer::receive_message(&socket, msg, flags)),
            Err(errno) => size(Err(errno)),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match serving(fd, flags, msg) {
            Err(errno) => size(Err(errno)),
            Ok(None) if passing::is_passed_by(msg) => passing::send(fd, msg, flags),
            Ok(None) => real::sendmsg(fd, msg, flags),
            Ok(Some(socket)) => size(transfer::send_message(&socket, msg, flags)),
        }
    }
}

/// The socket of ours that a message goes through, decided by the message if need be.
///
/// # Safety
/// `msg` is valid or null.
unsafe fn serving(fd: c_int, flags: c_int, msg: *const msghdr) -> Answer<Option<Found>> {
    let Some(socket) = table::found(fd) else { return Ok(None) };
    if socket.is_served() {
        return Ok(Some(socket));
    }
    // SAFETY: as the caller promises.
    let Some(header) = (unsafe { msg.as_ref() }) else { return Ok(None) };
    let Ok((name, len)) = transfer::name_of(header) else { return Ok(None) };
    // SAFETY: as the caller promises.
    let ours = unsafe { transfer::decide((socket.record(), fd), flags, name, len) }?;
    Ok(ours.then_some(socket))
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(fd: c_int, msgs: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    // SAFETY: as above.
    unsafe {
        let first = if count == 0 || msgs.is_null() { std::ptr::null() } else { &raw const (*msgs).msg_hdr };
        match serving(fd, flags, first) {
            Err(errno) => return int(Err(errno)),
            Ok(None) if !passing_any(msgs, count) => return real::sendmmsg(fd, msgs, count, flags),
            Ok(None) => {}
            Ok(Some(_)) => {}
        }
        each(msgs, count, |message| usize::try_from(sendmsg(fd, &message.msg_hdr, flags)).ok())
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmmsg(
    fd: c_int,
    msgs: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    limit: *mut timespec,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        match nameless::reader(fd, flags, count > 0) {
            Ok(None) => {
                let got = real::recvmmsg(fd, msgs, count, flags, limit);
                for n in 0..usize::try_from(got).unwrap_or(0) {
                    passing::received(&raw const (*msgs.add(n)).msg_hdr, flags);
                }
                got
            }
            Ok(Some(socket)) => int(receive_many(&socket, (msgs, count), flags, limit.as_mut())),
            Err(errno) => int(Err(errno)),
        }
    }
}

/// `recvmmsg(2)`. As in Linux the limit is looked at between the messages only, and told back as what is left of it.
///
/// # Safety
/// `msgs` has `count` entries, each valid with all it points to.
unsafe fn receive_many(
    socket: &Found,
    (msgs, count): (*mut mmsghdr, c_uint),
    flags: c_int,
    mut limit: Option<&mut timespec>,
) -> Answer<c_int> {
    let time = |limit: &timespec| {
        let nanos = u32::try_from(limit.tv_nsec).ok().filter(|nanos| *nanos < 1_000_000_000)?;
        Some(Duration::new(limit.tv_sec.try_into().ok()?, nanos))
    };
    let end = limit.as_deref().map(|limit| time(limit).ok_or(libc::EINVAL)).transpose()?;
    let end = end.map(|limit| now().saturating_add(limit));
    if flags & libc::MSG_ERRQUEUE == 0
        && let Some(errno) = state::take_error(socket.slot()?)
    {
        return Err(errno);
    }
    let mut each = flags & !libc::MSG_WAITFORONE;
    for n in 0..count {
        // SAFETY: `n < count`.
        let message = unsafe { &mut *msgs.add(n as usize) };
        // SAFETY: as the caller promises.
        match unsafe { transfer::receive_message(socket, &raw mut message.msg_hdr, each) } {
            Ok(got) => message.msg_len = c_uint::try_from(got).unwrap_or(c_uint::MAX),
            Err(errno) if n == 0 => return Err(errno),
            Err(errno) => {
                // What is wrong, and not only now, is told by the next call.
                if ![libc::EAGAIN, libc::EINTR].contains(&errno)
                    && let Ok(slot) = socket.slot()
                {
                    state::put_error(slot, errno);
                }
                return Ok(n.cast_signed());
            }
        }
        if flags & libc::MSG_WAITFORONE != 0 {
            each |= libc::MSG_DONTWAIT;
        }
        let left = end.map(|end| end.saturating_sub(now()));
        if let (Some(left), Some(limit)) = (left, limit.as_deref_mut()) {
            limit.tv_sec = left.as_secs().cast_signed();
            limit.tv_nsec = left.subsec_nanos().into();
        }
        if left.is_some_and(|left| left.is_zero()) || message.msg_hdr.msg_flags & libc::MSG_OOB != 0 {
            return Ok((n + 1).cast_signed());
        }
    }
    Ok(count.cast_signed())
}

/// Whether one of so many messages passes a socket of ours.
///
/// # Safety
/// `msgs` is null or has `count` entries, each valid with all it points to.
unsafe fn passing_any(msgs: *const mmsghdr, count: c_uint) -> bool {
    let count = if msgs.is_null() { 0 } else { count.min(MOST) };
    // SAFETY: as the caller promises.
    (0..count as usize).any(|n| unsafe { passing::is_passed_by(&raw const (*msgs.add(n)).msg_hdr) })
}

/// The bytes of a message.
///
/// # Safety
/// Its vectors are as it says.
unsafe fn wanted(message: &msghdr) -> usize {
    let count = c_int::try_from(message.msg_iovlen).unwrap_or(0);
    // SAFETY: as the caller promises.
    unsafe { Vectors::at(message.msg_iov, count) }.map_or(0, |all| all.total())
}

/// Sends messages until one fails, or only a part of it was sent; how many were, or the first one's error, which the
/// call has left in `errno`.
///
/// # Safety
/// `msgs` has `count` entries.
unsafe fn each(
    msgs: *mut mmsghdr,
    count: c_uint,
    mut one: impl FnMut(&mut mmsghdr) -> Option<usize>,
) -> c_int {
    for n in 0..count.min(MOST) {
        // SAFETY: `n < count`.
        let message = unsafe { &mut *msgs.add(n as usize) };
        match one(message) {
            Some(moved) => {
                message.msg_len = c_uint::try_from(moved).unwrap_or(c_uint::MAX);
                // What follows a part of a message would be in the place of its rest. SAFETY: the message was sent, so it is valid.
                if moved < unsafe { wanted(&message.msg_hdr) } {
                    return (n + 1).cast_signed();
                }
            }
            None if n == 0 => return -1,
            None => return n.cast_signed(),
        }
    }
    count.min(MOST).cast_signed()
}
