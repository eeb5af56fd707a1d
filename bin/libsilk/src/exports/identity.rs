//! `fstat` and its kin: which file a descriptor is.

use crate::errno::int;
use crate::inode;
use crate::real;
use libc::{c_char, c_int, c_uint, stat};

/// Whether a path below a descriptor means the descriptor itself.
///
/// # Safety
/// `path` is null or a C string.
unsafe fn is_itself(path: *const c_char, flags: c_int) -> bool {
    // SAFETY: as the caller promises.
    flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || unsafe { *path } == 0)
}

/// Puts right what the kernel says of `fd`, if it has answered.
///
/// # Safety
/// `about` is what it has filled.
unsafe fn corrected(answer: c_int, fd: c_int, about: *mut stat) -> c_int {
    if answer == 0
        && let Some(inode) = inode::of(fd)
    {
        // SAFETY: as the caller promises.
        unsafe { (*about).st_ino = inode };
    }
    answer
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstat(fd: c_int, about: *mut stat) -> c_int {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe { corrected(real::fstat(fd, about), fd, about) }
}

/// # Safety
/// As the C library's: 64 bits are what there is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstat64(fd: c_int, about: *mut stat) -> c_int {
    // SAFETY: as above.
    unsafe { fstat(fd, about) }
}

/// What programs call that were built for a C library before 2.33. Both versions of the structure are the same.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __fxstat(version: c_int, fd: c_int, about: *mut stat) -> c_int {
    if !matches!(version, 0 | 1) {
        return int(Err(libc::EINVAL));
    }
    // SAFETY: as above.
    unsafe { fstat(fd, about) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __fxstat64(version: c_int, fd: c_int, about: *mut stat) -> c_int {
    // SAFETY: as above.
    unsafe { __fxstat(version, fd, about) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstatat(fd: c_int, path: *const c_char, about: *mut stat, flags: c_int) -> c_int {
    // SAFETY: as above.
    unsafe {
        let answer = real::fstatat(fd, path, about, flags);
        if answer == 0 && is_itself(path, flags) { corrected(answer, fd, about) } else { answer }
    }
}

/// As `__fxstat` below a folder.
///
/// # Safety
/// As the C library's.
pub unsafe fn fstatat_of_version(
    version: c_int,
    fd: c_int,
    path: *const c_char,
    about: *mut stat,
    flags: c_int,
) -> c_int {
    if !matches!(version, 0 | 1) {
        return int(Err(libc::EINVAL));
    }
    // SAFETY: as above.
    unsafe { fstatat(fd, path, about, flags) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstatat64(fd: c_int, path: *const c_char, about: *mut stat, flags: c_int) -> c_int {
    // SAFETY: as above.
    unsafe { fstatat(fd, path, about, flags) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statx(
    fd: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    about: *mut libc::statx,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let answer = real::statx(fd, path, flags, mask, about);
        if answer == 0
            && is_itself(path, flags)
            && let Some(inode) = inode::of(fd)
        {
            (*about).stx_ino = inode;
        }
        answer
    }
}
