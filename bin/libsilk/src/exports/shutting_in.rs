//! `prctl(2)` and `seccomp(2)`, by which a thread shuts itself in: afterwards it may do no more than its filter of system calls
//! lets it, which was written without knowing of this library.

use crate::{poll, real};
use libc::{c_int, c_uint, c_ulong};

/// # Safety
/// As the C library's. Five integer arguments can be taken where fewer were given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, b: c_ulong, c: c_ulong, e: c_ulong, f: c_ulong) -> c_int {
    if option == libc::PR_SET_SECCOMP {
        poll::before_shutting_in();
    }
    // SAFETY: the program keeps the contract of the function it calls.
    unsafe { real::prctl(option, b, c, e, f) }
}

/// Before `seccomp(2)` does this, for which the C library has no function.
pub fn before(operation: c_uint) {
    if matches!(operation, libc::SECCOMP_SET_MODE_STRICT | libc::SECCOMP_SET_MODE_FILTER) {
        poll::before_shutting_in();
    }
}
