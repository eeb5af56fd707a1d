//! `mmap` and its kin: only looked at, so that what a program writes from a mapped file can be sent from
//! the file itself. `mlockall` leaves the arena alone, of which nearly nothing is ever touched.

use crate::family;
use crate::mappings;
use crate::real;
use libc::{c_int, off_t, size_t};

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: usize,
    len: size_t,
    allowed: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> usize {
    if flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) == libc::MAP_FIXED {
        mappings::forget(at, len);
    }
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    let mapped = unsafe { real::mmap(at, len, allowed, flags, fd, offset) };
    mappings::note(mapped, len, allowed, flags, fd, offset);
    mapped
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    at: usize,
    len: size_t,
    allowed: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> usize {
    // SAFETY: as above; the two are one on 64-bit machines.
    unsafe { mmap(at, len, allowed, flags, fd, offset) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(at: usize, len: size_t) -> c_int {
    mappings::forget(at, len);
    // SAFETY: as above.
    unsafe { real::munmap(at, len) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(at: usize, len: size_t, allowed: c_int) -> c_int {
    mappings::forget(at, len);
    // SAFETY: as above.
    unsafe { real::mprotect(at, len, allowed) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pkey_mprotect(at: usize, len: size_t, allowed: c_int, key: c_int) -> c_int {
    mappings::forget(at, len);
    // SAFETY: as above.
    unsafe { real::pkey_mprotect(at, len, allowed, key) }
}

/// # Safety
/// As the C library's. `to` can be taken where it was not given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(at: usize, len: size_t, new_len: size_t, flags: c_int, to: usize) -> usize {
    mappings::forget(at, len);
    if flags & libc::MREMAP_FIXED != 0 {
        mappings::forget(to, new_len);
    }
    // SAFETY: as above.
    unsafe { real::mremap(at, len, new_len, flags, to) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remap_file_pages(
    at: usize,
    len: size_t,
    allowed: c_int,
    page: size_t,
    flags: c_int,
) -> c_int {
    mappings::forget(at, len);
    // SAFETY: as above.
    unsafe { real::remap_file_pages(at, len, allowed, page, flags) }
}

/// Locks what is there already as the program asks. From then on, and of the arena, what is touched is
/// locked: all of it would be as much memory as `[memory] arena` says.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    let touched = flags | libc::MCL_ONFAULT;
    // SAFETY: as above.
    unsafe {
        if family::joined().is_none() && flags & libc::MCL_CURRENT != 0 {
            let done = real::mlockall(flags & !libc::MCL_FUTURE);
            if done != 0 {
                return done;
            }
        }
        real::mlockall(touched)
    }
}
