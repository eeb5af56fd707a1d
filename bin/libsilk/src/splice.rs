//! `splice` from a pipe to a socket of ours: what the pipe holds is read straight into the send ring of a
//! stream, or becomes one datagram. The other way it is refused, for which programs have a way round; but
//! what lies in a pipe has been taken from somewhere, and has to get on.
//!
//! Whatever was written to the pipe at once, a datagram is all that it holds at that moment, as far as the
//! call asks for it. So it is with Linux, which gives UDP sixteen pieces of the pipe at a time, and says with
//! all but the last that more is to come. (Of a pipe of packets, `O_DIRECT`, it is the first.) What cannot be
//! sent stays in the pipe.

use crate::cork;
use crate::errno::{Answer, check, check_size, last};
use crate::real;
use crate::sendfile::read_into_ring;
use crate::socket::{Found, Role};
use crate::stream_io::{self, Extent};
use crate::transfer;
use crate::vectors::{Vectors, single};
use libc::{iovec, ssize_t};
use std::cell::Cell;
use std::ffi::{c_int, c_uint};
use std::time::Duration;

/// Those that there are (`SPLICE_F_ALL`).
const FLAGS: c_uint =
    libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK | libc::SPLICE_F_MORE | libc::SPLICE_F_GIFT;

/// Until there may be room again that another thread has used.
const MOMENT: Duration = Duration::from_millis(1);

/// Sends at most `count` bytes of those that `pipe` holds; 0 at its end. `at`: whether a place in the pipe is named, and one
/// in the socket.
///
/// # Errors
/// As `splice(2)`.
pub fn send(socket: &Found, pipe: c_int, at: [bool; 2], count: usize, flags: c_uint) -> Answer {
    if count == 0 {
        return Ok(0);
    }
    if flags & !FLAGS != 0 {
        return Err(libc::EINVAL);
    }
    match (is_pipe(pipe), at) {
        (true, [true, _]) => return Err(libc::ESPIPE),
        // To Linux a count is a signed number.
        (true, [false, false]) if isize::try_from(count).is_ok() => {}
        _ => return Err(libc::EINVAL),
    }
    // That the pipe is not waited for says nothing of the socket.
    let waits = flags & libc::SPLICE_F_NONBLOCK == 0;
    let more = if flags & libc::SPLICE_F_MORE == 0 { 0 } else { libc::MSG_MORE };
    loop {
        let want = count.min(held(pipe, waits)?);
        if want == 0 {
            // At the pipe's end nothing is asked of the socket.
            return Ok(0);
        }
        let sent = match socket.role() {
            Role::Stream => send_stream(socket, pipe, want, more)?,
            Role::Datagram => send_datagram(socket, pipe, want, more)?,
            Role::Listener => return stream_io::refuse(socket, 0),
        };
        if let Some(sent) = sent {
            return Ok(sent);
        }
    }
}

/// Sends so much over a stream; `None`: another has read the pipe empty since it was looked at.
fn send_stream(socket: &Found, pipe: c_int, want: usize, more: c_int) -> Answer<Option<usize>> {
    let is_dry = Cell::new(false);
    let portion = stream_io::portion(|| true);
    let sent = stream_io::send_with(socket, want, (more, Extent::AtMost), portion, |slot, _, place| {
        let read = read_into_ring(slot, place, |vectors, parts| take(pipe, vectors, parts));
        is_dry.set(read == Err(libc::EAGAIN));
        read
    });
    if sent == Err(libc::EAGAIN) && is_dry.get() { Ok(None) } else { sent.map(Some) }
}

/// The same as a datagram, or as a part of one. Nothing can be put back into a pipe, so nothing is taken
/// until it may be sent.
fn send_datagram(socket: &Found, pipe: c_int, want: usize, more: c_int) -> Answer<Option<usize>> {
    cork::until_room(socket, want, more)?;
    let mut bytes = vec![0u8; want];
    let room = single(bytes.as_mut_ptr().cast(), want);
    let got = match check_size(take(pipe, room.as_ptr(), 1)) {
        Ok(0) | Err(libc::EAGAIN) => return Ok(None),
        got => got?,
    };
    let part = single(bytes.as_ptr().cast(), got);
    // SAFETY: so many bytes were read into the buffer.
    let part = unsafe { Vectors::new(&part) };
    loop {
        match transfer::send(socket, &part, more) {
            // It is taken, and another thread has used the room.
            Err(libc::EAGAIN | libc::EINTR) => std::thread::sleep(MOMENT),
            sent => return sent.map(Some),
        }
    }
}

/// Reads what a pipe holds, and does not wait, where Linux can do that: nobody else can write to the socket meanwhile, nor close it,
/// and signals wait too.
fn take(pipe: c_int, vectors: *const iovec, parts: c_int) -> ssize_t {
    // SAFETY: the caller's vectors are for what is read.
    let read = unsafe { real::preadv2(pipe, vectors, parts, -1, libc::RWF_NOWAIT) };
    if read < 0 && [libc::EOPNOTSUPP, libc::ENOSYS].contains(&last()) {
        // SAFETY: as above.
        return unsafe { real::readv(pipe, vectors, parts) };
    }
    read
}

fn is_pipe(fd: c_int) -> bool {
    real::about(fd).is_some_and(|about| about.st_mode & libc::S_IFMT == libc::S_IFIFO)
}

/// How many bytes a pipe holds, as soon as it holds any; 0 once nobody can write to it.
fn held(pipe: c_int, waits: bool) -> Answer {
    loop {
        let mut bytes: c_int = 0;
        // SAFETY: the call writes one int.
        check(unsafe { real::ioctl(pipe, libc::FIONREAD, (&raw mut bytes).expose_provenance()) })?;
        if bytes > 0 {
            return Ok(usize::try_from(bytes).unwrap_or(0));
        }
        // SAFETY: no memory is involved.
        let flags = check(unsafe { real::fcntl(pipe, libc::F_GETFL, 0) })?;
        let time = if waits && flags & libc::O_NONBLOCK == 0 { -1 } else { 0 };
        let mut watched = libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry.
        match check(unsafe { real::poll(&raw mut watched, 1, time) })? {
            0 => return Err(libc::EAGAIN),
            _ if watched.revents & libc::POLLIN == 0 => return Ok(0),
            _ => {}
        }
    }
}
