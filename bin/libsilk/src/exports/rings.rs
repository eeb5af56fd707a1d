//! liburing's ways to an `io_uring(7)`, which make their system calls themselves. A ring reaches past this library: what it is told of a socket of
//! silk's goes to Linux's part of it. So programs on silk get none, as where the kernel has none or a container forbids it, and fall back.

use crate::errno::Answer;
use crate::family;
use crate::real;
use crate::unserved;
use std::ffi::{c_int, c_uint, c_void};

/// Whether this program may have an `io_uring`: where there is no daemon its sockets are Linux's anyway.
///
/// # Errors
/// `ENOSYS`.
pub fn may_have_one() -> Answer<()> {
    if family::join().is_err() {
        return Ok(());
    }
    unserved::tell("io_uring_setup", libc::ENOSYS)?;
    Err(libc::ENOSYS)
}

/// # Safety
/// As liburing's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_queue_init(entries: c_uint, ring: *mut c_void, flags: c_uint) -> c_int {
    match may_have_one() {
        // SAFETY: as above.
        Ok(()) => unsafe { real::io_uring_queue_init(entries, ring, flags) },
        Err(errno) => -errno,
    }
}

/// # Safety
/// As liburing's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_queue_init_params(
    entries: c_uint,
    ring: *mut c_void,
    parameters: *mut c_void,
) -> c_int {
    match may_have_one() {
        // SAFETY: as above.
        Ok(()) => unsafe { real::io_uring_queue_init_params(entries, ring, parameters) },
        Err(errno) => -errno,
    }
}

/// # Safety
/// As liburing's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_queue_init_mem(
    entries: c_uint,
    ring: *mut c_void,
    parameters: *mut c_void,
    memory: *mut c_void,
    len: usize,
) -> c_int {
    match may_have_one() {
        // SAFETY: as above.
        Ok(()) => unsafe { real::io_uring_queue_init_mem(entries, ring, parameters, memory, len) },
        Err(errno) => -errno,
    }
}
