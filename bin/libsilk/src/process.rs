//! Forking. The child holds whatever the parent holds, under a lifeline and a number of its
//! own, which are made before the fork, so that there is no moment at which the child lives
//! and nobody counts it. The C library calls these handlers for every `fork`, `daemon` and
//! `forkpty`; `vfork` is made a `fork`, since the child of a real one would write to its
//! parent's tables.

use crate::epoll;
use crate::family;
use crate::files;
use crate::internal;
use crate::lock::{Guarded, Lock};
use crate::mappings;
use crate::socket;
use crate::spares;
use crate::stdio;
use silk_control::{Lifeline, Reply, Request};
use std::os::fd::AsFd;

/// One fork at a time.
static FORKING: Lock = Lock::new();
/// The child's lifeline and number, between the preparation and the fork.
static CHILD: Guarded<Option<(Lifeline, u32)>> = Guarded::new(None);

/// What nobody may be in the middle of, in the order in which they are taken.
const LOCKS: [fn() -> &'static Lock; 5] =
    [mappings::lock, files::lock, stdio::lock, spares::lock, family::line_lock];

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> libc::c_int;
}

/// Asks the C library to call us around every fork.
pub fn watch_forks() {
    // SAFETY: three functions that live as long as the process.
    unsafe { pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
}

extern "C" fn prepare() {
    FORKING.hold();
    if family::joined().is_some() {
        let child = expect_child();
        *CHILD.lock() = child;
    }
    epoll::hold_all();
    LOCKS.iter().for_each(|lock| lock().hold());
}

fn expect_child() -> Option<(Lifeline, u32)> {
    let (ours, daemons) = Lifeline::pair().ok()?;
    let Ok(Reply::Forked { process }) = family::ask(&Request::Fork, &[daemons.as_fd()]) else { return None };
    Some((Lifeline::from_descriptor(internal::keep(ours.into_descriptor())), process))
}

extern "C" fn in_parent() {
    LOCKS.iter().for_each(|lock| lock().open());
    epoll::open_all();
    if let Some((line, _)) = CHILD.lock().take() {
        internal::close(line.into_descriptor());
    }
    FORKING.open();
}

extern "C" fn in_child() {
    LOCKS.iter().for_each(|lock| lock().force_open());
    epoll::force_open_all();
    for socket in socket::used() {
        socket.reading.force_open();
        socket.writing.force_open();
    }
    FORKING.force_open();
    spares::forget();
    match CHILD.lock().take() {
        Some((line, process)) => family::become_child(line, process),
        None if family::joined().is_some() => family::orphan(),
        None => {}
    }
}
