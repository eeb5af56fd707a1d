//! This thread's record in the arena: by which the daemon knows whom to wake in `accept`,
//! hands it connections and follows it with priorities. Asked for at the first `accept`, or where
//! it first sleeps for datagrams, and given back when the thread ends.

use crate::clock::now;
use crate::family;
use silk_control::{Reply, Request};
use silk_stream::{Slot, Thread, named};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

thread_local! {
    static RECORD: Mine = const { Mine { process: Cell::new(0), number: Cell::new(None) } };
}

/// What this thread was given, and as which process: a forked child has no use for it.
struct Mine {
    process: Cell<u32>,
    number: Cell<Option<u32>>,
}

impl Mine {
    /// Gives it back.
    fn resign(&self) {
        if let Some(thread) = self.number.get()
            && self.process.replace(0) == family::process()
        {
            family::tell(&Request::ThreadGone { thread });
        }
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        self.resign();
    }
}

/// Gives this thread's record back, and with it a connection that it was handed and has not taken. It is given another when it next
/// needs one.
pub fn resign() {
    let _ = RECORD.try_with(Mine::resign);
}

/// This thread's record, asked for now if it has none; `None` when the daemon gives none.
pub fn record() -> Option<(u32, &'static Thread)> {
    let number = RECORD
        .try_with(|mine| {
            if mine.process.get() != family::process() {
                mine.number.set(ask());
                mine.process.set(family::process());
            }
            mine.number.get()
        })
        .ok()??;
    Some((number, family::joined()?.arena.thread(number)?))
}

/// Whether this thread runs at a path's priority (SILK §3.3).
pub fn is_raised() -> bool {
    known().is_some_and(|thread| thread.extended.load(Relaxed) > 0)
}

/// This thread gives the priority of a path back, if it has one: the daemon is gone, and nobody else would take it any more, or it serves somebody
/// else next, or it becomes another program.
pub fn step_down() {
    if let Some(thread) = known().filter(|thread| thread.extended.load(Relaxed) > 0)
        && is_me(thread)
    {
        thread.extended.store(0, Relaxed);
        let own = libc::sched_param { sched_priority: 0 };
        // Lent priorities are not inherited, which only who has the right to may change.
        let ordinary = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
        // SAFETY: the pointer is to a parameter that lives through the call and is only read.
        unsafe { libc::sched_setscheduler(0, ordinary, &raw const own) };
    }
}

/// Whether that is the record of the calling thread, and not, in a child that has the memory of its parent (vfork(2)), of the one
/// that made it.
fn is_me(thread: &Thread) -> bool {
    thread.tid.load(Relaxed) == tid()
}

/// The calling thread's number.
fn tid() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// The number of this thread's record, if it has one; it is not asked for.
pub fn number() -> Option<u32> {
    RECORD.try_with(|mine| mine.number.get().filter(|_| mine.process.get() == family::process())).ok()?
}

/// This thread is about to sleep until something wakes it whose priority it gets: as a word names it ([`named`]), zero if the daemon
/// does not know it. It does from its first `accept` on, or, where it waits for datagrams (`serves_datagrams`), from now on.
pub fn as_sleeper(serves_datagrams: bool) -> u32 {
    named::word(if serves_datagrams { record().map(|(number, _)| number) } else { number() })
}

/// The same in the slots of what it waits for.
pub fn name_sleeper<'s>(serves_datagrams: bool, slots: impl IntoIterator<Item = &'s Slot>) {
    let sleeper = as_sleeper(serves_datagrams);
    if sleeper != 0 {
        slots.into_iter().for_each(|slot| slot.thread.store(sleeper | named::FOLLOWS, Relaxed));
    }
}

/// This thread's record, if it has one.
fn known() -> Option<&'static Thread> {
    family::joined()?.arena.thread(number()?)
}

/// After this thread was woken: tells the daemon how long that took (SILK Table 2).
pub fn report_wake(thread: &Thread) {
    let woken = thread.woken_at.load(Relaxed);
    if woken != 0 {
        thread.woken_at.store(0, Relaxed);
        let now = u64::try_from(now().as_nanos()).unwrap_or(u64::MAX);
        thread.woken_after.store(now.saturating_sub(woken).max(1), Relaxed);
    }
}

/// The same after a wait on a socket, if the thread has a record.
pub fn report_wake_if_known() {
    if let Some(thread) = known() {
        report_wake(thread);
    }
}

fn ask() -> Option<u32> {
    let tid = tid();
    let Ok(Reply::Thread { thread }) = family::ask(&Request::Thread { tid }, &[]) else { return None };
    let record = family::joined()?.arena.thread(thread)?;
    record.handed.store(0, Relaxed);
    record.tid.store(tid, Relaxed);
    Some(thread)
}
