//! `select`, by way of `poll`: the sets become an array and the answers bits again. The
//! meaning of the three sets is Linux's (`POLLIN_SET`, `POLLOUT_SET`, `POLLEX_SET`).

use crate::errno::Answer;
use crate::poll;
use crate::real;
use libc::{fd_set, pollfd, sigset_t};
use std::ffi::{c_int, c_short};
use std::time::Duration;

const READ: c_short = libc::POLLIN | libc::POLLHUP | libc::POLLERR | libc::POLLRDNORM | libc::POLLRDBAND;
const WRITE: c_short = libc::POLLOUT | libc::POLLERR | libc::POLLWRNORM | libc::POLLWRBAND;
const EXCEPT: c_short = libc::POLLPRI;

/// The program's three sets, as words of bits. Programs allocate larger ones than
/// `FD_SETSIZE`, so they are read and written as memory of `count` bits.
#[derive(Clone, Copy)]
pub struct Sets {
    /// Descriptors below this count.
    pub count: c_int,
    /// Read, write, except; each null or with room for `count` bits.
    pub sets: [*mut fd_set; 3],
}

impl Sets {
    fn word(set: *mut fd_set, fd: c_int) -> (*mut u64, u64) {
        (set.cast::<u64>().wrapping_add(fd.unsigned_abs() as usize / 64), 1 << (fd % 64))
    }

    /// # Safety
    /// The sets must be as the fields say.
    unsafe fn has(&self, which: usize, fd: c_int) -> bool {
        let Some(set) = self.sets.get(which).filter(|set| !set.is_null()) else { return false };
        let (word, bit) = Self::word(*set, fd);
        // SAFETY: `fd < count`, for which there is room.
        unsafe { word.read_unaligned() & bit != 0 }
    }

    /// # Safety
    /// As [`Sets::has`].
    unsafe fn set(&self, which: usize, fd: c_int, on: bool) {
        let Some(set) = self.sets.get(which).filter(|set| !set.is_null()) else { return };
        let (word, bit) = Self::word(*set, fd);
        // SAFETY: as in `has`.
        unsafe {
            let before = word.read_unaligned();
            word.write_unaligned(if on { before | bit } else { before & !bit });
        }
    }

    /// Whether a socket of ours is in any set, or one that may become so while the call `waits`.
    ///
    /// # Safety
    /// As [`Sets::has`].
    pub unsafe fn concern_us(&self, waits: bool) -> bool {
        // SAFETY: as the caller promises.
        (0..self.count)
            .any(|fd| poll::may_be_ours(fd, waits) && (0..3).any(|which| unsafe { self.has(which, fd) }))
    }

    /// # Safety
    /// As [`Sets::has`].
    unsafe fn array(&self) -> Vec<pollfd> {
        let events = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
        (0..self.count)
            .filter_map(|fd| {
                // SAFETY: as the caller promises.
                let wanted = (0..3).zip(events).filter(|(which, _)| unsafe { self.has(*which, fd) });
                let events = wanted.fold(0, |all, (_, event)| all | event);
                (events != 0).then_some(pollfd { fd, events, revents: 0 })
            })
            .collect()
    }
}

/// `pselect(2)` on sets with sockets of ours.
///
/// # Errors
/// As Linux.
///
/// # Safety
/// The sets must be as their fields say; `mask` is null or a signal set.
pub unsafe fn select(sets: Sets, limit: Option<Duration>, mask: *const sigset_t) -> Answer<c_int> {
    // SAFETY: as the caller promises, here and below.
    let mut fds = unsafe { sets.array() };
    // SAFETY: as above.
    unsafe { poll::poll(&mut fds, limit, mask) }?;
    if fds.iter().any(|one| one.revents & libc::POLLNVAL != 0) {
        return Err(libc::EBADF);
    }
    let mut ready = 0;
    for one in &fds {
        for (which, meaning) in [READ, WRITE, EXCEPT].into_iter().enumerate() {
            // SAFETY: as above.
            unsafe {
                let on = sets.has(which, one.fd) && one.revents & meaning != 0;
                sets.set(which, one.fd, on);
                ready += c_int::from(on);
            }
        }
    }
    Ok(ready)
}

/// Passes a call that is Linux's on.
///
/// # Safety
/// As the C library's `select`.
pub unsafe fn linux(sets: Sets, timeout: *mut libc::timeval) -> c_int {
    let [read, write, except] = sets.sets;
    // SAFETY: as the caller promises.
    unsafe { real::select(sets.count, read, write, except, timeout) }
}
