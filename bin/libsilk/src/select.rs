//! `select`, by way of `poll`: the sets become an array and the answers bits again. The
//! meaning of the three sets is Linux's (`POLLIN_SET`, `POLLOUT_SET`, `POLLEX_SET`).

use crate::clock::now;
use crate::errno::Answer;
use crate::poll;
use crate::real;
use libc::{fd_set, pollfd, sigset_t};
use std::ffi::{c_int, c_short};
use std::time::Duration;

const READ: c_short = libc::POLLIN | libc::POLLHUP | libc::POLLERR | libc::POLLRDNORM | libc::POLLRDBAND;
const WRITE: c_short = libc::POLLOUT | libc::POLLERR | libc::POLLWRNORM | libc::POLLWRBAND;
const EXCEPT: c_short = libc::POLLPRI;

/// What of `poll`'s answers the three sets mean.
fn meaning(which: usize) -> c_short {
    [READ, WRITE, EXCEPT].get(which).copied().unwrap_or(0)
}

/// The program's three sets, as words of bits. Programs allocate larger ones than
/// `FD_SETSIZE`, so they are read and written as memory of `count` bits.
#[derive(Clone, Copy)]
pub struct Sets {
    /// Descriptors below this count.
    count: c_int,
    /// Read, write, except; each null or with room for `count` bits.
    sets: [*mut fd_set; 3],
}

impl Sets {
    fn word(set: *mut fd_set, fd: c_int) -> (*mut u64, u64) {
        (set.cast::<u64>().wrapping_add(fd.unsigned_abs() as usize / 64), 1 << (fd % 64))
    }

    /// As a program says. Of a count above what a set has bits for usually, as much as there can be descriptors, as Linux does: sets of programs that ask
    /// for the most that they might have end before that.
    pub fn new(count: c_int, sets: [*mut fd_set; 3]) -> Self {
        let is_usual = usize::try_from(count).is_ok_and(|count| count <= libc::FD_SETSIZE);
        let most = if is_usual || count < 0 { None } else { room_for_descriptors() };
        Self { count: most.map_or(count, |most| count.min(most)), sets }
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

    /// Takes out of the last word of each set what lies behind the count: as on Linux nothing is told of that.
    ///
    /// # Safety
    /// As [`Sets::has`].
    unsafe fn trim(&self) {
        if self.count % 64 == 0 {
            return;
        }
        for set in self.sets.iter().filter(|set| !set.is_null()) {
            let (word, behind) = Self::word(*set, self.count);
            // SAFETY: it is the last word of those that the count's bits lie in.
            unsafe { word.write_unaligned(word.read_unaligned() & (behind - 1)) };
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

/// How many descriptors the kernel has room for in this process's table, which it says it never looks behind.
#[cold]
fn room_for_descriptors() -> Option<c_int> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("FDSize:"))?.trim().parse().ok()
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
    let asked: Vec<c_int> = fds.iter().map(|one| one.fd).collect();
    // SAFETY: as above.
    let holds = |fd, which, told: c_short| unsafe { sets.has(which, fd) } && told & meaning(which) != 0;
    let is_told = |fd, told| (0..3).any(|which| holds(fd, which, told));
    let deadline = limit.and_then(|limit| now().checked_add(limit));
    loop {
        let left = deadline.map(|end| end.saturating_sub(now()));
        // SAFETY: as above.
        let reported = unsafe { poll::poll(&mut fds, left, mask) }?;
        if fds.iter().any(|one| one.revents & libc::POLLNVAL != 0) {
            return Err(libc::EBADF);
        }
        if reported == 0 || fds.iter().any(|one| is_told(one.fd, one.revents)) {
            break;
        }
        // What only `poll` tells of, an end of what is to be told of other things, ends no wait, and is not to be heard again.
        fds.iter_mut().filter(|one| one.revents != 0).for_each(|one| one.fd = -1);
    }
    let mut ready = 0;
    for (fd, one) in asked.into_iter().zip(&fds) {
        for which in 0..3 {
            let on = one.fd >= 0 && holds(fd, which, one.revents);
            // SAFETY: as above.
            unsafe { sets.set(which, fd, on) };
            ready += c_int::from(on);
        }
    }
    // SAFETY: as above.
    unsafe { sets.trim() };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_behind_the_count_goes_from_its_last_word_alone() {
        let trimmed = |count| {
            let mut words = [u64::MAX; 3];
            let none = std::ptr::null_mut();
            let sets = Sets { count, sets: [words.as_mut_ptr().cast(), none, none] };
            // SAFETY: the set has room for more bits than any count here.
            unsafe { sets.trim() };
            words
        };
        assert_eq!(trimmed(64), [u64::MAX; 3]);
        assert_eq!(trimmed(65), [u64::MAX, 1, u64::MAX]);
        assert_eq!(trimmed(127), [u64::MAX, u64::MAX >> 1, u64::MAX]);
    }
}
