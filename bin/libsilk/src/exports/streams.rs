//! `fdopen`, `freopen`, and what asks for a stream's descriptor.

use crate::real;
use crate::reopen::reopen;
use crate::stdio;
use libc::{FILE, c_char, c_int};

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe { stdio::open(fd, mode) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fileno(stream: *mut FILE) -> c_int {
    // SAFETY: as above.
    stdio::descriptor(stream).unwrap_or_else(|| unsafe { real::fileno(stream as usize) })
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fileno_unlocked(stream: *mut FILE) -> c_int {
    // SAFETY: as above.
    stdio::descriptor(stream).unwrap_or_else(|| unsafe { real::fileno_unlocked(stream as usize) })
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fclose(stream: *mut FILE) -> c_int {
    let _outlives_it = stdio::forget(stream);
    // SAFETY: as above.
    unsafe { real::fclose(stream as usize) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
    // SAFETY: as above.
    unsafe { reopen(stream, |stream| real::freopen(path, mode, stream as usize) as *mut FILE) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
    // SAFETY: as above.
    unsafe { reopen(stream, |stream| real::freopen64(path, mode, stream as usize) as *mut FILE) }
}
