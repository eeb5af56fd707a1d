//! The variants that `_FORTIFY_SOURCE` calls: the same with the size of the buffer, which is
//! checked here as the C library would, by ending the program.

use super::reading::{pread, read, recv, recvfrom};
use super::waiting::{poll, ppoll};
use libc::{
    c_int, c_long, c_void, nfds_t, off_t, pollfd, sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec,
};

unsafe extern "C" {
    /// Says "buffer overflow detected" and ends the program.
    fn __chk_fail() -> !;
}

fn check(fits: bool) {
    if !fits {
        // SAFETY: takes nothing and does not return.
        unsafe { __chk_fail() }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(fd: c_int, buf: *mut c_void, len: size_t, size: size_t) -> ssize_t {
    check(len <= size);
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe { read(fd, buf, len) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __pread_chk(
    fd: c_int,
    buf: *mut c_void,
    len: size_t,
    at: off_t,
    size: size_t,
) -> ssize_t {
    check(len <= size);
    // SAFETY: as above.
    unsafe { pread(fd, buf, len, at) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __pread64_chk(
    fd: c_int,
    buf: *mut c_void,
    len: size_t,
    at: off_t,
    size: size_t,
) -> ssize_t {
    check(len <= size);
    // SAFETY: as above.
    unsafe { pread(fd, buf, len, at) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    fd: c_int,
    buf: *mut c_void,
    len: size_t,
    size: size_t,
    flags: c_int,
) -> ssize_t {
    check(len <= size);
    // SAFETY: as above.
    unsafe { recv(fd, buf, len, flags) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    buf: *mut c_void,
    len: size_t,
    size: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> ssize_t {
    check(len <= size);
    // SAFETY: as above.
    unsafe { recvfrom(fd, buf, len, flags, from, from_len) }
}

fn check_array(count: nfds_t, size: size_t) {
    check(size / size_of::<pollfd>() >= count as usize);
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(fds: *mut pollfd, count: nfds_t, timeout: c_int, size: size_t) -> c_int {
    check_array(count, size);
    // SAFETY: as above.
    unsafe { poll(fds, count, timeout) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    limit: *const timespec,
    mask: *const sigset_t,
    size: size_t,
) -> c_int {
    check_array(count, size);
    // SAFETY: as above.
    unsafe { ppoll(fds, count, limit, mask) }
}

/// The index of a descriptor's word in an `fd_set`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __fdelt_chk(fd: c_long) -> c_long {
    check((0..libc::FD_SETSIZE as c_long).contains(&fd));
    fd / 64
}
