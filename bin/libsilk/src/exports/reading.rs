//! `read`, `recv` and their kin.

use crate::errno::{Answer, size};
use crate::nameless;
use crate::real;
use crate::socket::Found;
use crate::table;
use crate::transfer;
use crate::vectors::{Vectors, single};
use libc::{c_int, c_void, iovec, off_t, size_t, sockaddr, socklen_t, ssize_t};

/// What `read` and `readv` do. As in Linux nothing is looked at for who has room for nothing: no datagram is lost to him,
/// and he does not wait for one.
fn receive(socket: &Found, into: &Vectors<'_>, flags: c_int) -> Answer {
    if into.total() == 0 { Ok(0) } else { transfer::receive(socket, into, flags) }
}

/// Flags of `preadv2(2)` and `pwritev2(2)` as a socket's: of those that Linux takes most mean nothing to one.
///
/// # Errors
/// `EOPNOTSUPP`, as Linux says of others.
pub fn of_vectors(flags: c_int) -> Answer<c_int> {
    const NOTHING: c_int = libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC | libc::RWF_APPEND;
    match flags & !NOTHING {
        0 => Ok(0),
        libc::RWF_NOWAIT => Ok(libc::MSG_DONTWAIT),
        _ => Err(libc::EOPNOTSUPP),
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe {
        match nameless::reader(fd, 0, len > 0) {
            Ok(None) => real::read(fd, buf, len),
            Ok(Some(socket)) => size(receive(&socket, &Vectors::new(&single(buf, len)), 0)),
            Err(errno) => size(Err(errno)),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readv(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match nameless::reader(fd, 0, count > 0) {
            Ok(None) => real::readv(fd, iov, count),
            Ok(Some(socket)) => size(Vectors::at(iov, count).and_then(|into| receive(&socket, &into, 0))),
            Err(errno) => size(Err(errno)),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(fd: c_int, buf: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match nameless::reader(fd, flags, true) {
            Ok(None) => real::recv(fd, buf, len, flags),
            Ok(Some(socket)) => size(transfer::receive(&socket, &Vectors::new(&single(buf, len)), flags)),
            Err(errno) => size(Err(errno)),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    buf: *mut c_void,
    len: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match nameless::reader(fd, flags, true) {
            Ok(None) => real::recvfrom(fd, buf, len, flags, from, from_len),
            Ok(Some(socket)) => {
                let into = single(buf, len);
                size(transfer::receive_from(&socket, &Vectors::new(&into), flags, from, from_len))
            }
            Err(errno) => size(Err(errno)),
        }
    }
}

/// A socket has no places: `ESPIPE`, as for a pipe. One before the beginning nothing has: `EINVAL`.
pub fn no_place(at: off_t) -> ssize_t {
    size(Err(if at < 0 { libc::EINVAL } else { libc::ESPIPE }))
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread(fd: c_int, buf: *mut c_void, len: size_t, at: off_t) -> ssize_t {
    // SAFETY: as above.
    unsafe { if table::served(fd).is_some() { no_place(at) } else { real::pread(fd, buf, len, at) } }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread64(fd: c_int, buf: *mut c_void, len: size_t, at: off_t) -> ssize_t {
    // SAFETY: as above; the two are one on 64-bit machines.
    unsafe { pread(fd, buf, len, at) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv(fd: c_int, iov: *const iovec, count: c_int, at: off_t) -> ssize_t {
    // SAFETY: as above.
    unsafe { if table::served(fd).is_some() { no_place(at) } else { real::preadv(fd, iov, count, at) } }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv64(fd: c_int, iov: *const iovec, count: c_int, at: off_t) -> ssize_t {
    // SAFETY: as above.
    unsafe { preadv(fd, iov, count, at) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv2(
    fd: c_int,
    iov: *const iovec,
    count: c_int,
    at: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above. Place -1 means: where the descriptor stands.
    unsafe {
        match table::served(fd) {
            None => real::preadv2(fd, iov, count, at, flags),
            Some(_) if at != -1 => no_place(at),
            Some(socket) => size(of_vectors(flags).and_then(|flags| {
                let into = Vectors::at(iov, count)?;
                receive(&socket, &into, flags)
            })),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv64v2(
    fd: c_int,
    iov: *const iovec,
    count: c_int,
    at: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    unsafe { preadv2(fd, iov, count, at, flags) }
}
