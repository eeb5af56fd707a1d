//! Event descriptors, and asking whether a descriptor is readable.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::check;

/// A counter that is readable while it is not zero.
pub(crate) struct Event(OwnedFd);

impl Event {
    /// A new event, not raised.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })?;
        // SAFETY: the kernel just gave this descriptor to us alone.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes the descriptor readable. It cannot fail but by overflowing, when it is readable.
    pub fn raise(&self) {
        // SAFETY: the pointer is to eight readable bytes that live through the call.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const ONE).cast(), 8) };
    }

    /// Makes the descriptor unreadable.
    pub fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: the pointer is to eight writable bytes that live through the call.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

static ONE: u64 = 1;

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Puts something that is never readable in the place of what `fd` names: an epoll set of nothing. Whoever watches
/// the old by epoll stops doing so, for it is closed.
pub(crate) fn silence(fd: BorrowedFd<'_>) {
    // SAFETY: takes no pointers.
    let Ok(quiet) = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }) else { return };
    // SAFETY: the kernel just gave this descriptor to us alone.
    let quiet = unsafe { OwnedFd::from_raw_fd(quiet) };
    // SAFETY: takes no pointers. The descriptor stays valid and its owner's; to read from such a set, or to write to
    // it, fails.
    unsafe { libc::dup3(quiet.as_raw_fd(), fd.as_raw_fd(), libc::O_CLOEXEC) };
}

/// Several descriptors as one: readable while any of them is.
pub(crate) struct Readiness(OwnedFd);

impl Readiness {
    /// Of these descriptors; each drops out when it is closed.
    pub fn of<'f>(fds: impl Iterator<Item = BorrowedFd<'f>>) -> io::Result<Self> {
        // SAFETY: takes no pointers.
        let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the kernel just gave this descriptor to us alone.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        for fd in fds {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            let (this, add) = (epoll.as_raw_fd(), libc::EPOLL_CTL_ADD);
            // SAFETY: the pointer is to one epoll_event that lives through the call.
            check(unsafe { libc::epoll_ctl(this, add, fd.as_raw_fd(), &raw mut event) })?;
        }
        Ok(Self(epoll))
    }
}

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until the descriptor is readable, `timeout` at most, and says whether it is. For
/// programs with one descriptor to watch; an executor has its own way of sleeping.
pub fn readable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the pointer is to one pollfd that lives through the call.
    Ok(check(unsafe { libc::poll(&raw mut poll, 1, millis) })? > 0)
}
