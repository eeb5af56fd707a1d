//! `write`, `send`, `sendfile` and their kin.

use crate::errno::{Answer, size};
use crate::exports::reading::{no_place, of_vectors};
use crate::real;
use crate::sendfile as files;
use crate::socket::Found;
use crate::splice;
use crate::table;
use crate::transfer;
use crate::unserved;
use crate::vectors::{Vectors, single};
use libc::{c_int, c_uint, c_void, iovec, off_t, size_t, sockaddr, socklen_t, ssize_t};

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, buf: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe {
        match table::served(fd) {
            None => real::write(fd, buf, len),
            Some(socket) => size(transfer::send(&socket, &Vectors::new(&single(buf, len)), 0)),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match table::served(fd) {
            None => real::writev(fd, iov, count),
            Some(socket) => size(Vectors::at(iov, count).and_then(|from| gather(&socket, &from, 0))),
        }
    }
}

/// What `writev` does. As in Linux nothing is looked at, and no empty datagram sent, unlike by `write`.
fn gather(socket: &Found, from: &Vectors<'_>, flags: c_int) -> Answer {
    if from.total() == 0 { Ok(0) } else { transfer::send(socket, from, flags) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(fd: c_int, buf: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match table::served(fd) {
            None => real::send(fd, buf, len, flags),
            Some(socket) => size(transfer::send(&socket, &Vectors::new(&single(buf, len)), flags)),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    buf: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match table::found(fd)
            .map(|socket| (socket, transfer::decide((socket.record(), fd), flags, to, to_len)))
        {
            None | Some((_, Ok(false))) => real::sendto(fd, buf, len, flags, to, to_len),
            Some((_, Err(errno))) => size(Err(errno)),
            Some((socket, Ok(true))) => {
                size(transfer::send_to(&socket, &Vectors::new(&single(buf, len)), flags, to, to_len))
            }
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(fd: c_int, buf: *const c_void, len: size_t, at: off_t) -> ssize_t {
    // SAFETY: as above.
    unsafe { if table::served(fd).is_some() { no_place(at) } else { real::pwrite(fd, buf, len, at) } }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(fd: c_int, buf: *const c_void, len: size_t, at: off_t) -> ssize_t {
    // SAFETY: as above; the two are one on 64-bit machines.
    unsafe { pwrite(fd, buf, len, at) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev(fd: c_int, iov: *const iovec, count: c_int, at: off_t) -> ssize_t {
    // SAFETY: as above.
    unsafe { if table::served(fd).is_some() { no_place(at) } else { real::pwritev(fd, iov, count, at) } }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64(fd: c_int, iov: *const iovec, count: c_int, at: off_t) -> ssize_t {
    // SAFETY: as above.
    unsafe { pwritev(fd, iov, count, at) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev2(
    fd: c_int,
    iov: *const iovec,
    count: c_int,
    at: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above. Place -1 means: where the descriptor stands.
    unsafe {
        match table::served(fd) {
            None => real::pwritev2(fd, iov, count, at, flags),
            Some(_) if at != -1 => no_place(at),
            Some(socket) => size(of_vectors(flags).and_then(|flags| {
                let from = Vectors::at(iov, count)?;
                gather(&socket, &from, flags)
            })),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64v2(
    fd: c_int,
    iov: *const iovec,
    count: c_int,
    at: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    unsafe { pwritev2(fd, iov, count, at, flags) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(out: c_int, from: c_int, at: *mut off_t, count: size_t) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match table::served(out) {
            None if table::served(from).is_some() => refuse("sendfile from a socket"),
            None => real::sendfile(out, from, at, count),
            Some(socket) => size(files::send(&socket, from, at, count)),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(out: c_int, from: c_int, at: *mut off_t, count: size_t) -> ssize_t {
    // SAFETY: as above.
    unsafe { sendfile(out, from, at, count) }
}

/// `EINVAL`: "the target does not support splicing", for which programs have a way round.
fn refuse(what: &str) -> ssize_t {
    let told: Answer<()> = unserved::tell(what, libc::EINVAL);
    size(told.and(Err(libc::EINVAL)))
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splice(
    from: c_int,
    from_at: *mut off_t,
    to: c_int,
    to_at: *mut off_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    match (table::served(from), table::served(to)) {
        (None, Some(socket)) => {
            size(splice::send(&socket, from, [from_at, to_at].map(|at| !at.is_null()), len, flags))
        }
        (Some(_), _) => refuse("splice"),
        // SAFETY: as above.
        (None, None) => unsafe { real::splice(from, from_at, to, to_at, len, flags) },
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmsplice(fd: c_int, iov: *const iovec, count: size_t, flags: c_uint) -> ssize_t {
    if table::served(fd).is_some() {
        return refuse("vmsplice");
    }
    // SAFETY: as above.
    unsafe { real::vmsplice(fd, iov, count, flags) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_file_range(
    from: c_int,
    from_at: *mut off_t,
    to: c_int,
    to_at: *mut off_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    if table::served(from).is_some() || table::served(to).is_some() {
        return refuse("copy_file_range");
    }
    // SAFETY: as above.
    unsafe { real::copy_file_range(from, from_at, to, to_at, len, flags) }
}
