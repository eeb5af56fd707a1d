//! A set of the kernel's beside that which the program knows ([why](crate::epoll_place)).

use crate::errno::{Answer, check};
use crate::internal;
use crate::real;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A set of the kernel's of this process alone.
pub struct Apart(Option<OwnedFd>);

impl Apart {
    /// A new one.
    ///
    /// # Errors
    /// As `epoll_create1(2)`.
    pub fn make() -> Answer<Self> {
        // SAFETY: a plain number; what it makes is ours alone.
        let fd = unsafe {
            let fd = check(real::epoll_create1(libc::EPOLL_CLOEXEC))?;
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self(Some(internal::keep(fd))))
    }

    /// Its number.
    pub fn descriptor(&self) -> c_int {
        self.0.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(fd) = self.0.take() {
            internal::close(fd);
        }
    }
}
