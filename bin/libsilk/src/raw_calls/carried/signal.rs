//! The signals that a carried program handles. Its handlers look at its thread-local memory, and a signal may come while the C library's
//! is there instead: so the kernel calls a handler of ours, which sees to that first (`silk_carried_signal` in `entry`).

use crate::real;
use crate::signals;
use libc::{c_int, c_long};
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// There are no more signals.
const SIGNALS: usize = 65;
/// Bytes of the kernel's set of them.
const SET: usize = 8;

/// The program's handlers.
pub static HANDLERS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];

unsafe extern "C" {
    /// Calls the program's; no function of Rust's or C's.
    fn silk_carried_signal();
}

/// What the kernel knows of a signal.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

fn ours() -> usize {
    (silk_carried_signal as *const ()).addr()
}

/// `rt_sigaction(2)`.
///
/// # Safety
/// The program keeps its contract.
pub unsafe fn action(signal: c_int, new: usize, old: usize, size: usize) -> c_long {
    let place = usize::try_from(signal).ok().and_then(|signal| HANDLERS.get(signal));
    let (Some(place), SET) = (place, size) else { return -c_long::from(libc::EINVAL) };
    let before = place.load(SeqCst);
    // SAFETY: null, or the kernel's record, as the program promises.
    let mut wanted = unsafe { with_exposed_provenance::<Action>(new).as_ref() }.copied();
    if let Some(wanted) = &mut wanted {
        let is_one = wanted.handler != libc::SIG_DFL && wanted.handler != libc::SIG_IGN;
        signals::note(signal, wanted.handler, wanted.flags & libc::SA_RESTART as u64 != 0);
        if is_one && wanted.handler != ours() {
            place.store(wanted.handler, SeqCst);
            wanted.handler = ours();
        }
    }
    let new = wanted.as_ref().map_or(0, |wanted| (&raw const *wanted).expose_provenance());
    // SAFETY: as the program promises; `new` is a record of ours.
    unsafe {
        if real::syscall(libc::SYS_rt_sigaction, signal as usize, new, old, size, 0, 0) < 0 {
            place.store(before, SeqCst);
            return -c_long::from(crate::errno::last());
        }
        if let Some(old) = with_exposed_provenance_mut::<Action>(old).as_mut()
            && old.handler == ours()
        {
            old.handler = before;
        }
    }
    0
}
