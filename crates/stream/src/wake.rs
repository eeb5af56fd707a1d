//! Sleeping on a word of an arena and waking who sleeps there (`futex(2)`), and the event
//! descriptors that reach a side which sleeps in the kernel.

use crate::slot::waiting;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;
use std::{io, ptr};

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Woken, or the word had changed already; look again.
    Changed,
    /// The time is up.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
    /// The kernel does not wait on several words: it is older than 5.16, or a filter of system calls refuses it.
    Refused,
}

/// Sleeps while `word` is `expected`, for at most `timeout`. The word may lie in memory
/// shared between processes.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Woken {
    let limit = timeout.map(|t| libc::timespec {
        tv_sec: t.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: t.subsec_nanos().into(),
    });
    let limit_at = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `word` is a valid, aligned futex word for the whole call; the time-out is null
    // or points to a timespec that outlives the call.
    let result =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, limit_at) };
    match (result, io::Error::last_os_error().raw_os_error()) {
        (0, _) => Woken::Changed,
        (_, Some(libc::ETIMEDOUT)) => Woken::TimedOut,
        (_, Some(libc::EINTR)) => Woken::Interrupted,
        _ => Woken::Changed,
    }
}

/// One word to wait on, with the value it must still have: an entry of `futex_waitv(2)`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct WaitEntry {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

impl WaitEntry {
    /// Waits on `word` while it is `expected`. The word must stay mapped until the wait ends.
    pub fn new(word: &AtomicU32, expected: u32) -> Self {
        const FUTEX2_SIZE_U32: u32 = 2;
        Self { value: expected.into(), address: word.as_ptr() as u64, flags: FUTEX2_SIZE_U32, reserved: 0 }
    }
}

/// The most words one [`wait_any`] can wait on (`FUTEX_WAITV_MAX`).
pub const WAIT_ANY: usize = 128;

/// Sleeps until one of the words changes or is woken, until `deadline` on CLOCK_MONOTONIC
/// (absolute, seconds and nanoseconds since boot), or a signal.
pub fn wait_any(entries: &[WaitEntry], deadline: Option<Duration>) -> Woken {
    let limit = deadline.map(|t| libc::timespec {
        tv_sec: t.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: t.subsec_nanos().into(),
    });
    let limit_at = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    let count = entries.len().min(WAIT_ANY) as u32;
    // SAFETY: the entries point to mapped futex words (`WaitEntry::new`), the kernel reads
    // `count` of them, and the time-out is null or outlives the call.
    let result = unsafe {
        libc::syscall(libc::SYS_futex_waitv, entries.as_ptr(), count, 0, limit_at, libc::CLOCK_MONOTONIC)
    };
    match (result, io::Error::last_os_error().raw_os_error()) {
        (0.., _) | (_, Some(libc::EAGAIN)) => Woken::Changed,
        (_, Some(libc::ETIMEDOUT)) => Woken::TimedOut,
        (_, Some(libc::EINTR)) => Woken::Interrupted,
        // Filters answer what they like, mostly ENOSYS or EPERM.
        _ => Woken::Refused,
    }
}

/// Wakes at most `count` threads that sleep on `word`; how many it woke.
pub fn wake(word: &AtomicU32, count: i32) -> usize {
    // SAFETY: `word` is a valid, aligned futex word; waking dereferences nothing else.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
    usize::try_from(woken).unwrap_or(0)
}

/// Takes those who wait for what `bits` name from the word of who waits ([`crate::Slot::waiting`]), and who sleeps on the
/// slot's event word with them. Whether anybody did: then all who sleep there are to be woken, and to look.
pub fn take_sleepers(waiting: &AtomicU32, bits: u32) -> bool {
    waiting.fetch_and(!(bits | waiting::ASLEEP), Ordering::SeqCst) & waiting::ASLEEP != 0
}

/// A new eventfd, not blocking and closed on exec.
///
/// # Errors
/// What `eventfd(2)` says, such as too many open files.
pub fn event() -> io::Result<OwnedFd> {
    // SAFETY: eventfd takes no pointers; a descriptor it returns is ours to own.
    unsafe {
        let fd = libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Makes an eventfd readable, waking who waits for it. `false`: somebody has made it let writers wait, and filled it, and this one
/// was interrupted.
pub fn notify(event: BorrowedFd<'_>) -> bool {
    let one = 1u64;
    // SAFETY: eight bytes are read from `one`.
    let written = unsafe { libc::write(event.as_raw_fd(), ptr::from_ref(&one).cast(), 8) };
    // A full counter (EAGAIN) is readable already.
    written >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted
}

/// Makes an eventfd unreadable again.
pub fn drain(event: BorrowedFd<'_>) {
    let mut count = 0u64;
    // SAFETY: eight bytes are written to `count`; an empty counter answers EAGAIN.
    unsafe { libc::read(event.as_raw_fd(), ptr::from_mut(&mut count).cast(), 8) };
}

/// Rings: if the other side sleeps, wakes it through its eventfd. To be called after the
/// news has been written; pairs with the sleeper storing 1 and then looking once more. `false` as [`notify`].
pub fn ring(sleeping: &AtomicU32, event: BorrowedFd<'_>) -> bool {
    !is_to_be_woken(sleeping) || notify(event)
}

/// Whether the other side sleeps, and nobody else wakes it: as [`ring`], where the caller wakes it in a way of its own.
pub fn is_to_be_woken(sleeping: &AtomicU32) -> bool {
    fence(Ordering::SeqCst);
    sleeping.load(Ordering::SeqCst) != 0 && sleeping.swap(0, Ordering::SeqCst) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::sync::Arc;

    #[test]
    fn a_changed_word_does_not_sleep() {
        assert_eq!(wait(&AtomicU32::new(2), 1, None), Woken::Changed);
    }

    #[test]
    fn who_waits_for_an_event_set_is_not_asleep() {
        let word = AtomicU32::new(waiting::READ | waiting::WRITE);
        assert!(!take_sleepers(&word, waiting::READ));
        assert_eq!(word.load(Ordering::SeqCst), waiting::WRITE);
        word.fetch_or(waiting::ASLEEP, Ordering::SeqCst);
        assert!(take_sleepers(&word, waiting::READ), "whoever sleeps looks for itself");
        assert_eq!(word.load(Ordering::SeqCst), waiting::WRITE);
    }

    #[test]
    fn a_wait_ends_by_time() {
        assert_eq!(wait(&AtomicU32::new(1), 1, Some(Duration::from_millis(1))), Woken::TimedOut);
    }

    #[test]
    fn any_of_several_words_wakes() {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let sleeper = {
            let words = words.clone();
            std::thread::spawn(move || {
                while words[1].load(Ordering::SeqCst) == 0 {
                    wait_any(&[WaitEntry::new(&words[0], 0), WaitEntry::new(&words[1], 0)], None);
                }
            })
        };
        words[1].store(1, Ordering::SeqCst);
        while !sleeper.is_finished() {
            wake(&words[1], 1);
            std::thread::yield_now();
        }
        sleeper.join().unwrap();
    }

    #[test]
    fn ringing_writes_the_event_only_when_somebody_sleeps() {
        let event = event().unwrap();
        let readable = || {
            let mut poll = libc::pollfd { fd: event.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one pollfd, no waiting.
            unsafe { libc::poll(&mut poll, 1, 0) == 1 }
        };
        let sleeping = AtomicU32::new(0);
        ring(&sleeping, event.as_fd());
        assert!(!readable());
        sleeping.store(1, Ordering::SeqCst);
        ring(&sleeping, event.as_fd());
        assert!(readable());
        drain(event.as_fd());
        assert!(!readable());
    }
}
