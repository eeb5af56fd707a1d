//! What a signal does to a call that waits. Linux restarts a socket call after a handler
//! that was installed with `SA_RESTART` and ends it with `EINTR` otherwise; calls with a time
//! limit, and `poll` and its kin, always end. Of the kernel's waits on words `futex_waitv(2)` is
//! restarted as those calls are, and `futex(2)` with a limit always ends; so whoever waits takes the
//! one that does as Linux would, if the program has handlers for which that matters.

use crate::real;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Signals that have a handler without `SA_RESTART`, a bit each.
static ENDING: AtomicU64 = AtomicU64::new(0);
/// Signals that have one with it.
static RESTARTING: AtomicU64 = AtomicU64::new(0);

/// Whether a handler may run after which a call on a socket ends.
pub fn may_end() -> bool {
    ENDING.load(Relaxed) != 0
}

/// Whether one may run after which it is restarted.
pub fn may_restart() -> bool {
    RESTARTING.load(Relaxed) != 0
}

/// Signals of the program's own faults: they never arrive during a wait.
const FAULTS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];

/// Notes how `signal` is handled from now on.
pub fn note(signal: c_int, handler: libc::sighandler_t, restarts: bool) {
    if FAULTS.contains(&signal) {
        return;
    }
    let Some(bit) = u32::try_from(signal - 1).ok().and_then(|n| 1u64.checked_shl(n)) else { return };
    let caught = handler != libc::SIG_IGN && handler != libc::SIG_DFL;
    for (signals, is) in [(&ENDING, caught && !restarts), (&RESTARTING, caught && restarts)] {
        if is {
            signals.fetch_or(bit, Relaxed);
        } else {
            signals.fetch_and(!bit, Relaxed);
        }
    }
}

/// A handler was installed by a call of the C library's that looks itself whether calls are ended (`siginterrupt(3)`).
pub fn note_installed(signal: c_int) {
    let now = installed(signal);
    note(signal, now.sa_sigaction, now.sa_flags & libc::SA_RESTART != 0);
}

/// `siginterrupt(3)`: changes only whether calls are ended.
pub fn note_interrupt(signal: c_int, ends: bool) {
    note(signal, installed(signal).sa_sigaction, !ends);
}

/// The present action.
fn installed(signal: c_int) -> libc::sigaction {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the present action only; the buffer is of the right type, and zeroed
    // memory is a valid one.
    unsafe {
        real::sigaction(signal, std::ptr::null(), now.as_mut_ptr());
        now.assume_init()
    }
}

/// Raises `SIGPIPE` in this thread, as a write to a closed connection does.
pub fn broken_pipe() {
    // SAFETY: a signal to the calling thread itself.
    unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE) };
}

/// While it lives no signal is delivered to this thread: a handler that makes a socket call
/// of its own would otherwise wait for ever for a lock that its own thread holds.
pub struct Blocked(libc::sigset_t);

impl Blocked {
    /// Blocks every signal.
    pub fn all() -> Self {
        let mut before = std::mem::MaybeUninit::zeroed();
        // SAFETY: both sets are valid for writing; zeroed memory is a valid, empty set.
        unsafe {
            let mut all = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, before.as_mut_ptr());
            Self(before.assume_init())
        }
    }
}

/// While it lives no handler comes in the middle of what this thread does. A program that has none pays nothing.
pub struct Undisturbed(#[expect(dead_code, reason = "held until it is dropped")] Option<Blocked>);

impl Undisturbed {
    /// From now on.
    pub fn begin() -> Self {
        Self((may_end() || may_restart()).then(Blocked::all))
    }
}

/// The signals of a wait that takes several sleeps in the kernel: what arrives between two of them must end the
/// next, as it would end Linux's one.
#[derive(Default)]
pub struct Held {
    has_slept: bool,
    held: Option<Blocked>,
}

impl Held {
    /// A sleep begins. From the second on, where another may follow, signals arrive while one lasts only, if any has a
    /// handler. Not from the first: each wait would cost two system calls more, for what arrives in the microsecond
    /// between that and the second.
    pub fn before_sleep(&mut self, another_may_follow: bool) {
        if self.has_slept && another_may_follow && self.held.is_none() && (may_end() || may_restart()) {
            self.held = Some(Blocked::all());
        }
        self.has_slept = true;
    }

    /// The mask to sleep with: the program's, `asked` with the call or in force before.
    pub fn mask(&self, asked: *const libc::sigset_t) -> *const libc::sigset_t {
        match &self.held {
            Some(Blocked(before)) if asked.is_null() => before,
            _ => asked,
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set is the one that was in force before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// Does what may raise `SIGPIPE` in this thread, and takes such a signal back.
pub fn without_broken_pipe(write: impl FnOnce()) {
    let _quiet = Blocked::all();
    let pending = || {
        let mut set = std::mem::MaybeUninit::zeroed();
        // SAFETY: the set is valid for writing; zeroed memory is a valid, empty one.
        unsafe {
            libc::sigpending(set.as_mut_ptr());
            libc::sigismember(set.as_ptr(), libc::SIGPIPE) == 1
        }
    };
    let before = pending();
    write();
    if !before && pending() {
        take_back_broken_pipe();
    }
}

/// Takes back the `SIGPIPE` that this thread has pending. It must be blocked.
fn take_back_broken_pipe() {
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut broken = std::mem::MaybeUninit::zeroed();
    // SAFETY: the sets and the time are valid; nothing is asked about the signal.
    unsafe {
        libc::sigemptyset(broken.as_mut_ptr());
        libc::sigaddset(broken.as_mut_ptr(), libc::SIGPIPE);
        libc::sigtimedwait(broken.as_ptr(), std::ptr::null_mut(), &at_once);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_one_handler_which_restarts_or_not() {
        note(libc::SIGSEGV, 4096, false);
        note(libc::SIGUSR1, 4096, true);
        assert_eq!((may_end(), may_restart()), (false, true));
        note(libc::SIGUSR1, 4096, false);
        assert_eq!((may_end(), may_restart()), (true, false));
        note(libc::SIGUSR1, libc::SIG_IGN, false);
        assert_eq!((may_end(), may_restart()), (false, false));
    }
}
