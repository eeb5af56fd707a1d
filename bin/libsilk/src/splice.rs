//! `splice` from a pipe to a socket of ours: what the pipe holds is read straight into the send ring. The other way it is
//! refused, for which programs have a way round; but what lies in a pipe has been taken from somewhere, and has to get on.

use crate::errno::{Answer, check, last};
use crate::real;
use crate::sendfile::read_into_ring;
use crate::socket::{Found, Role};
use crate::stream_io::{self, Extent};
use libc::{iovec, ssize_t};
use std::cell::Cell;
use std::ffi::{c_int, c_uint};

/// Sends at most `count` bytes of those that `pipe` holds; 0 at its end. `at`: whether a place in the pipe is named, and one
/// in the socket.
///
/// # Errors
/// As `splice(2)`.
pub fn send(socket: &Found, pipe: c_int, at: [bool; 2], count: usize, flags: c_uint) -> Answer {
    if count == 0 {
        return Ok(0);
    }
    match (is_pipe(pipe), at) {
        (true, [true, _]) => return Err(libc::ESPIPE),
        (true, [false, false]) if socket.role() == Role::Stream => {}
        _ => return Err(libc::EINVAL),
    }
    let waits = flags & libc::SPLICE_F_NONBLOCK == 0;
    let more = if flags & libc::SPLICE_F_MORE == 0 { 0 } else { libc::MSG_MORE };
    // Another may have read it empty since it was looked at.
    let is_dry = Cell::new(false);
    loop {
        let want = count.min(held(pipe, waits)?);
        if want == 0 {
            // At the pipe's end nothing is asked of the socket.
            return Ok(0);
        }
        is_dry.set(false);
        let portion = stream_io::portion(|| true);
        let sent = stream_io::send_with(
            socket,
            want,
            // That the pipe is not waited for says nothing of the socket.
            (more, Extent::AtMost),
            portion,
            |slot, _, place| {
                let read = read_into_ring(slot, place, |vectors, parts| take(pipe, vectors, parts));
                is_dry.set(read == Err(libc::EAGAIN));
                read
            },
        );
        if sent != Err(libc::EAGAIN) || !is_dry.get() {
            return sent;
        }
    }
}

/// Reads what a pipe holds, and does not wait, where Linux can do that: nobody else can write to the socket meanwhile, nor close it,
/// and signals wait too.
fn take(pipe: c_int, vectors: *const iovec, parts: c_int) -> ssize_t {
    // SAFETY: the caller's vectors are for what is read ([`read_into_ring`]).
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
