//! The library's own descriptors: moved out of the way of the program's, closed on exec, and
//! safe from programs that close every number they can think of.

use crate::numbers::{self, INTERNAL};
use crate::real;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Where our numbers start: the upper end of the first thousand (so that a kernel table of
/// ordinary size holds them), or of what the program may open.
fn above() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
    // SAFETY: fills the structure it is given.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    let end = usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX).min(1024);
    if end > 128 { end - 64 } else { end / 2 }
}

/// Keeps `fd` as one of ours, under a high number where there is one.
pub fn keep(fd: OwnedFd) -> OwnedFd {
    // SAFETY: duplicates a descriptor we own; what comes back is ours.
    let high = unsafe { real::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, above()) };
    let kept = if high < 0 {
        fd
    } else {
        // SAFETY: just made for us.
        unsafe { OwnedFd::from_raw_fd(high) }
    };
    numbers::put(kept.as_raw_fd(), INTERNAL);
    kept
}

/// Whether `fd` is one of ours.
pub fn is(fd: c_int) -> bool {
    numbers::word(fd) == INTERNAL
}

/// Closes one of ours.
pub fn close(fd: OwnedFd) {
    let number = fd.into_raw_fd();
    numbers::take(number);
    // SAFETY: the descriptor was ours and is named nowhere any more.
    unsafe { real::close_for_sure(number) };
}

/// The sockets whose copies stand for accepted connections, of IPv4 and of IPv6; -1: not made yet.
static PLACEHOLDER: AtomicI32 = AtomicI32::new(-1);
static PLACEHOLDER6: AtomicI32 = AtomicI32::new(-1);

/// An unconnected kernel socket of the process. Each accepted connection's descriptor is a
/// copy of it: of socket type and of the listener's family, so that the kernel takes the options which
/// are its part, and cheaper to make and close than a socket.
pub fn placeholder(inet6: bool) -> c_int {
    let (place, domain) = if inet6 { (&PLACEHOLDER6, libc::AF_INET6) } else { (&PLACEHOLDER, libc::AF_INET) };
    let there = place.load(Ordering::Acquire);
    if there >= 0 {
        return there;
    }
    // SAFETY: a new socket, owned by nobody else.
    let made = unsafe {
        let fd = real::socket(domain, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return -1;
        }
        keep(OwnedFd::from_raw_fd(fd))
    };
    let fd = made.as_raw_fd();
    match place.compare_exchange(-1, fd, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made.into_raw_fd(),
        Err(other) => {
            close(made);
            other
        }
    }
}

/// A copy of [`placeholder`] with the lowest free number.
///
/// # Errors
/// `EMFILE`, `ENFILE`.
pub fn stand_in(inet6: bool, close_on_exec: bool) -> crate::errno::Answer<c_int> {
    let command = if close_on_exec { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    let from = placeholder(inet6);
    if from < 0 {
        return Err(crate::errno::last());
    }
    // SAFETY: duplicates a descriptor of ours.
    crate::errno::check(unsafe { real::fcntl(from, command, 0) })
}

/// As [`stand_in`], but a socket of its own: what Linux is told of it is told of no other.
///
/// # Errors
/// `EMFILE`, `ENFILE`, `ENOBUFS`.
pub fn stand_in_alone(inet6: bool, close_on_exec: bool) -> crate::errno::Answer<c_int> {
    let domain = if inet6 { libc::AF_INET6 } else { libc::AF_INET };
    let kind = libc::SOCK_STREAM | if close_on_exec { libc::SOCK_CLOEXEC } else { 0 };
    // SAFETY: a new socket, owned by nobody else.
    crate::errno::check(unsafe { real::socket(domain, kind, 0) })
}
