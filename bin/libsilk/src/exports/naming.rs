//! From `socket` to `shutdown`, names and options.

use crate::accept;
use crate::address;
use crate::connect;
use crate::errno::{done, int};
use crate::groups;
use crate::naming;
use crate::options;
use crate::real;
use crate::server::or_linux;
use crate::shutdown;
use crate::socket::shape;
use crate::table;
use libc::{c_int, c_void, sockaddr, socklen_t};
use std::sync::atomic::{Ordering, fence};

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
    int(naming::socket(family, kind, protocol))
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe {
        let linux = || real::bind(fd, addr, len);
        match table::socket(fd) {
            Some(socket) if socket.may_be_silks() => {
                done(or_linux(naming::bind(socket, fd, addr, len), linux))
            }
            _ => linux(),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: as above.
    let linux = || unsafe { real::listen(fd, backlog) };
    match table::socket(fd) {
        Some(socket) if socket.may_be_silks() => done(or_linux(naming::listen(socket, fd, backlog), linux)),
        _ => linux(),
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: as above.
    unsafe {
        let linux = || real::connect(fd, addr, len);
        match table::socket(fd) {
            Some(socket) if socket.may_be_silks() => {
                done(or_linux(connect::connect(socket, fd, addr, len), linux))
            }
            _ => linux(),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    // SAFETY: as above.
    unsafe {
        match table::served(fd) {
            None => real::accept4(fd, addr, len, flags),
            Some(socket) => int(accept::accept((&socket, fd), addr, len, flags)),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: as above.
    unsafe { accept4(fd, addr, len, 0) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    // SAFETY: as above.
    let linuxs = || unsafe { real::shutdown(fd, how) };
    // In this order: another thread may just be naming it.
    let early = table::found(fd).filter(|socket| socket.is_undecided()).map(|socket| {
        // Linux tells of it as long as the socket is its own, and silk from then on.
        shutdown::note_early_shutdown(&socket, how);
        let result = linuxs();
        // Pairs with `server::decided`: who names it sees what is shut down, or its name is seen here.
        fence(Ordering::SeqCst);
        result
    });
    match table::served(fd) {
        None => early.unwrap_or_else(linuxs),
        Some(socket) => done(shutdown::shutdown(socket, how)),
    }
}

/// Whether there is less than no room: to Linux a length is a signed number.
///
/// # Safety
/// `len` points to a length or is null.
unsafe fn is_negative(len: *const socklen_t) -> bool {
    // SAFETY: as the caller promises.
    !len.is_null() && unsafe { len.read_unaligned() }.cast_signed() < 0
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: as above.
    unsafe {
        match table::served(fd) {
            None => real::getsockname(fd, addr, len),
            Some(socket) => done(
                naming::local(&socket)
                    .and_then(|local| address::give(local, socket.is(shape::INET6), addr, len)),
            ),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: as above.
    unsafe {
        match table::served(fd) {
            None => real::getpeername(fd, addr, len),
            Some(socket) => done(
                naming::peer(&socket)
                    .and_then(|peer| address::give(peer, socket.is(shape::INET6), addr, len)),
            ),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let Some(socket) = table::found(fd) else { return real::setsockopt(fd, level, name, value, len) };
        // In this order: another thread may just be naming it.
        if socket.is_undecided() {
            let early = options::set_early(socket.record(), fd, (level, name), value, len);
            // Pairs with `server::decided`: one of the two sees what the other has done.
            fence(Ordering::SeqCst);
            if early.is_err() || !socket.is_served() {
                return done(early);
            }
            if let Some(asked) = groups::read(level, name, value, len) {
                return done(asked.and_then(|asked| groups::tell_late(socket.record(), fd, asked)));
            }
        }
        match socket.is_served() {
            true if len.cast_signed() < 0 => done(Err(libc::EINVAL)),
            true => done(options::set(&socket, fd, level, name, value, len)),
            false => real::setsockopt(fd, level, name, value, len),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        match table::served(fd) {
            None => real::getsockopt(fd, level, name, value, len),
            Some(_) if is_negative(len) => done(Err(libc::EINVAL)),
            Some(socket) => done(options::get(&socket, fd, level, name, value, len)),
        }
    }
}
