//! `setrlimit`, `getrlimit` and `prlimit`: a limit of the address space is the program's own, without this library's arena.

use crate::address_space;
use crate::errno::int;
use crate::family;
use crate::real;
use libc::{c_int, pid_t, rlimit};
use std::ptr;

const ADDRESS_SPACE: c_int = libc::RLIMIT_AS as c_int;

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prlimit(
    process: pid_t,
    resource: c_int,
    new: *const rlimit,
    old: *mut rlimit,
) -> c_int {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe {
        let myself = process == 0 || process == libc::getpid();
        if resource != ADDRESS_SPACE || !myself {
            return real::prlimit(process, resource, new, old);
        }
        let before = address_space::change(new.as_ref().copied(), family::arena_length());
        int(before.map(|before| {
            if let Some(old) = old.as_mut() {
                *old = before;
            }
            0
        }))
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prlimit64(
    process: pid_t,
    resource: c_int,
    new: *const rlimit,
    old: *mut rlimit,
) -> c_int {
    // SAFETY: as above; the two are one on 64-bit machines, as are those below.
    unsafe { prlimit(process, resource, new, old) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setrlimit(resource: c_int, new: *const rlimit) -> c_int {
    // SAFETY: as above.
    unsafe { prlimit(0, resource, new, ptr::null_mut()) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setrlimit64(resource: c_int, new: *const rlimit) -> c_int {
    // SAFETY: as above.
    unsafe { setrlimit(resource, new) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrlimit(resource: c_int, old: *mut rlimit) -> c_int {
    // SAFETY: as above.
    unsafe { prlimit(0, resource, ptr::null(), old) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrlimit64(resource: c_int, old: *mut rlimit) -> c_int {
    // SAFETY: as above.
    unsafe { getrlimit(resource, old) }
}
