//! `freopen(3)` of a stream that is made of a socket. The C library's own knows such streams not and crashes. So what is
//! opened gets a stream of the C library's, which takes the other's descriptor (as Linux has it: the number stays) and, of a
//! standard stream, its place.
//!
//! Whoever still holds the old stream, as those that know that `freopen` answers what it was given, uses the same descriptor by it:
//! it is not freed.

use crate::close;
use crate::descriptor;
use crate::errno::{self, Answer, check};
use crate::real;
use crate::stdio;
use crate::succession::__fpurge;
use crate::table;
use libc::{FILE, c_int};
use std::ptr;

/// `freopen` and `freopen64`: `opens` is what the C library does of it with a stream of its own.
///
/// # Safety
/// As the C library's.
pub unsafe fn reopen(stream: *mut FILE, opens: impl FnOnce(*mut FILE) -> *mut FILE) -> *mut FILE {
    // SAFETY: as the caller promises, here and below.
    unsafe {
        let Some(fd) = stdio::descriptor(stream) else {
            // One that was there before its number became a socket's.
            let fd = real::fileno(stream as usize);
            if table::entry(fd).is_some() && vacate(fd).is_err() {
                close::close(fd);
            }
            return opens(stream);
        };
        let_flow(stream);
        let vacated = vacate(fd);
        let plain = vacated.map_or(ptr::null_mut(), |fd| stdio::plain(stream, fd));
        let opened = if plain.is_null() { plain } else { opens(plain) };
        let failure = vacated.err().unwrap_or_else(errno::last);
        if plain.is_null() {
            close::close(vacated.unwrap_or(fd));
        }
        stdio::supersede(stream, plain, if opened.is_null() { -1 } else { real::fileno(opened as usize) });
        if opened.is_null() {
            errno::set(failure);
        }
        opened
    }
}

/// What was written goes out, failing or not, and the stream keeps nothing from then on.
unsafe fn let_flow(stream: *mut FILE) {
    // SAFETY: a stream of the program's, which is not using it otherwise.
    unsafe {
        libc::fflush(stream);
        __fpurge(stream);
        libc::setvbuf(stream, ptr::null_mut(), libc::_IONBF, 0);
        libc::clearerr(stream);
    }
}

/// What is ours lets go of the number, which stays taken: by something of the kernel's that can no more be opened by its name
/// than a socket. So does one that is free. The answer is the number.
fn vacate(fd: c_int) -> Answer<c_int> {
    // SAFETY: asks about a number only.
    let is_open = check(unsafe { real::fcntl(fd, libc::F_GETFD, 0) }).is_ok();
    if is_open && table::entry(fd).is_none() {
        return Ok(fd);
    }
    // SAFETY: makes a descriptor.
    let holder = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })?;
    if fd < 0 || holder == fd {
        return Ok(holder);
    }
    // SAFETY: copies it to the number that the program gives up with its stream, and closes the first.
    unsafe {
        let made = descriptor::replace(holder, fd, || real::dup3(holder, fd, libc::O_CLOEXEC));
        real::close(holder);
        made
    }
}
