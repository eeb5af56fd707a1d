//! `close`, `dup`, `fcntl`, `ioctl` and their kin.

use crate::close as closing;
use crate::descriptor;
use crate::errno::{Answer, check, done, int};
use crate::real;
use crate::speaking;
use crate::table;
use libc::{c_int, c_uint, c_ulong};
use std::ptr;

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe { closing::close(fd) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __close(fd: c_int) -> c_int {
    // SAFETY: as above.
    unsafe { closing::close(fd) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: as above.
    unsafe {
        if first > last || flags & !(libc::CLOSE_RANGE_UNSHARE as c_int) != 0 {
            // Ours are closed on exec already; what else there is, is none of Linux's flags.
            return real::close_range(first, last, flags);
        }
        let kernels = |first, last| check(real::close_range(first, last, flags)).map(drop);
        done(closing::close_range(first, last, kernels))
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: as above.
    unsafe { close_range(first.max(0).unsigned_abs(), c_uint::MAX, 0) };
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: as above.
    int(descriptor::copy(fd, || unsafe { real::dup(fd) }))
}

/// Descriptor `to` was to be replaced by the program, which may have made it standard error.
fn became(to: c_int, made: Answer<c_int>) -> c_int {
    if made.is_ok() {
        speaking::note(to);
    }
    int(made)
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    // SAFETY: as above.
    let made = descriptor::replace(fd, to, || unsafe { real::dup2(fd, to) });
    became(to, made)
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: as above.
    let made = descriptor::replace(fd, to, || unsafe { real::dup3(fd, to, flags) });
    became(to, made)
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(fd: c_int, command: c_int, arg: usize) -> c_int {
    // SAFETY: as above.
    unsafe {
        match table::socket(fd) {
            Some(socket) => int(descriptor::control(socket, fd, command, arg)),
            None if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) => {
                int(descriptor::copy(fd, || real::fcntl(fd, command, arg)))
            }
            None => real::fcntl(fd, command, arg),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, arg: usize) -> c_int {
    // SAFETY: as above.
    unsafe { fcntl(fd, command, arg) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, arg: usize) -> c_int {
    // SAFETY: as above.
    unsafe {
        match table::socket(fd) {
            None => real::ioctl(fd, request, arg),
            Some(socket) => int(descriptor::ioctl(socket, fd, request, arg)),
        }
    }
}

/// Within the C library it would be the kernel's.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sockatmark(fd: c_int) -> c_int {
    let mut at: c_int = 0;
    // SAFETY: the request points to an int.
    let answer = unsafe { ioctl(fd, descriptor::AT_MARK, ptr::from_mut(&mut at).expose_provenance()) };
    if answer < 0 { answer } else { at }
}
