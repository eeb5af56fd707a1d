//! `longjmp` and its kin: a signal's handler may leave by them what its thread was in the middle of.

use crate::gate;
use crate::jump::Jump;
use crate::own_turn;
use crate::real;
use libc::{c_int, c_void};

/// # Safety
/// As the C library's.
unsafe fn leave(jump: unsafe fn(*mut c_void, c_int) -> c_int, to: *mut c_void, value: c_int) -> ! {
    // SAFETY: the program jumps to what it has set.
    let this = || unsafe { Jump::by(to) };
    own_turn::abandon(this);
    gate::abandon(this);
    // SAFETY: the program keeps the contract of the function it calls, which does not return.
    unsafe {
        jump(to, value);
        libc::abort()
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn longjmp(to: *mut c_void, value: c_int) -> ! {
    // SAFETY: as above; so throughout.
    unsafe { leave(real::longjmp, to, value) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _longjmp(to: *mut c_void, value: c_int) -> ! {
    // SAFETY: as above.
    unsafe { leave(real::longjmp, to, value) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn siglongjmp(to: *mut c_void, value: c_int) -> ! {
    // SAFETY: as above.
    unsafe { leave(real::siglongjmp, to, value) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __longjmp_chk(to: *mut c_void, value: c_int) -> ! {
    // SAFETY: as above.
    unsafe { leave(real::__longjmp_chk, to, value) }
}
