//! Waiting in an event set: first what changed of ours, then what the kernel has, then sleep
//! in the kernel, with the bell armed.

use crate::bell::Bell;
use crate::epoll_member::Inner;
use crate::epoll_place::{self, MARKER, REAL};
use crate::epoll_set::Epoll;
use crate::epoll_watch;
use crate::errno::{Answer, check};
use crate::family;
use crate::lock::Guard;
use crate::poll;
use crate::real;
use crate::signals::Held;
use crate::wait::Deadline;
use libc::{epoll_event, pollfd, sigset_t};
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// How often a set without a bell is looked at.
const WITHOUT_BELL: Duration = Duration::from_millis(2);

/// The program's array, and how much of it is filled.
struct Output {
    start: *mut epoll_event,
    room: usize,
    filled: usize,
    /// The kernel's set apart says that the real set has something.
    behind: bool,
}

impl Output {
    fn put(&mut self, event: epoll_event) {
        if self.filled < self.room {
            // SAFETY: the array has `room` places, of which this one is the next.
            unsafe { self.start.add(self.filled).write_unaligned(event) };
            self.filled += 1;
        }
    }

    /// Takes what the kernel wrote behind what is filled already; whether any of
    /// it was not for the program.
    fn take_kernels(&mut self, count: usize) -> bool {
        let (mut from, mut rung) = (self.filled, false);
        for _ in 0..count {
            // SAFETY: the kernel has written `count` events there, within the array.
            let event = unsafe { self.start.add(from).read_unaligned() };
            from += 1;
            let name = event.u64;
            match name {
                MARKER => rung = true,
                REAL => (rung, self.behind) = (true, true),
                _ => self.put(event),
            }
        }
        rung
    }

    /// Asks the kernel, waiting for at most `millis`.
    fn ask_kernel(&mut self, epfd: c_int, millis: c_int, mask: *const sigset_t) -> Answer<bool> {
        let room = c_int::try_from(self.room - self.filled).unwrap_or(c_int::MAX);
        // SAFETY: the array has `room` places left.
        let got = unsafe {
            let start = self.start.add(self.filled);
            if millis == 0 {
                // Under the set's lock, where no thread is to be cancelled.
                let [set, room] = [epfd, room].map(|number| number as usize);
                real::syscall(libc::SYS_epoll_pwait, set, start.expose_provenance(), room, 0, 0, 0) as c_int
            } else {
                real::epoll_pwait(epfd, start, room, millis, mask)
            }
        };
        let got = check(got)?;
        Ok(self.take_kernels(got.unsigned_abs() as usize))
    }
}

/// `epoll_pwait(2)` on a set of ours.
///
/// # Errors
/// As Linux.
///
/// # Safety
/// `events` must have `max` places; `mask` is null or a signal set.
pub unsafe fn wait(
    set: &Epoll,
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    limit: Option<Duration>,
    mask: *const sigset_t,
) -> Answer<c_int> {
    let room = usize::try_from(max).ok().filter(|room| *room > 0).ok_or(libc::EINVAL)?;
    if events.is_null() {
        return Err(libc::EFAULT);
    }
    let mut out = Output { start: events, room, filled: 0, behind: false };
    let at_once = limit == Some(Duration::ZERO);
    let deadline = if at_once { Deadline::NEVER } else { Deadline::after(limit) };
    let mut held = Held::default();
    let (uses, mut has_slept) = (set.uses.load(SeqCst), false);
    loop {
        epoll_watch::show_nested(set);
        let mut inner = set.lock();
        if !set.is_still(uses) {
            drop(inner);
            return match (out.filled, has_slept) {
                (0, false) => Err(libc::EBADF),
                (0, true) => outlast(deadline, &mut held, mask),
                (filled, _) => Ok(c_int::try_from(filled).unwrap_or(c_int::MAX)),
            };
        }
        if inner.has_ours() {
            epoll_place::ensure_bell(set, &mut inner, epfd);
        }
        // Events that the kernel gave while this slept must not come twice in one answer.
        let asked = out.filled > 0
            || inner.is_kernels_turn() && {
                out.ask_kernel(epfd, 0, ptr::null())?;
                true
            };
        let found = inner.collect(out.room - out.filled, |event| out.put(event));
        // Where it goes to sleep in the kernel it is asked there.
        if !asked && (found > 0 || at_once) && out.filled < out.room && inner.has_kernels() {
            out.ask_kernel(epfd, 0, ptr::null())?;
        }
        if out.filled > 0 || at_once {
            leave_rest(set, &mut inner);
            return Ok(c_int::try_from(out.filled).unwrap_or(c_int::MAX));
        }
        let Some(mut nap) = deadline.nap() else {
            leave_rest(set, &mut inner);
            return Ok(0);
        };
        held.before_sleep(deadline.outlasts(nap));
        if inner.has_ours() && !inner.has_bell() {
            nap = nap.min(WITHOUT_BELL);
        }
        has_slept = true;
        sleep((set, uses), inner, &mut out, epfd, nap, held.mask(mask))?;
    }
}

/// The set was closed while this slept: nothing more is told of it, least of all of another that has its place by now, and the call
/// lasts for as long as it was to.
fn outlast(deadline: Deadline, held: &mut Held, mask: *const sigset_t) -> Answer<c_int> {
    while let Some(nap) = deadline.nap() {
        held.before_sleep(deadline.outlasts(nap));
        poll::in_kernel(&mut [], Some(nap), held.mask(mask))?;
    }
    Ok(0)
}

/// Other threads that sleep in the set, or watch it, are told of what this one leaves to them.
fn leave_rest(set: &Epoll, inner: &mut Inner) {
    let watched = set.watched.load(SeqCst);
    if !watched && set.sleepers.load(SeqCst) == 0 {
        return;
    }
    let marked = inner.own_bell().is_some_and(Bell::arm);
    let has_rest = if watched { inner.has_news() } else { marked || inner.has_queued() };
    if has_rest && let Some(bell) = inner.own_bell() {
        bell.wake();
    }
}

/// Sleeps in the kernel, unless something changed just before.
fn sleep(
    (set, uses): (&Epoll, u32),
    inner: Guard<'_, Inner>,
    out: &mut Output,
    epfd: c_int,
    nap: Duration,
    mask: *const sigset_t,
) -> Answer<()> {
    let bed = epoll_place::bed(&inner, epfd);
    // In the real set others may be asleep as well.
    let is_public = bed == epfd && inner.own_bell().is_some();
    if let Some(bell) = inner.own_bell() {
        bell.name_sleeper(Some(inner.has_datagrams()));
        if bell.arm() || is_public && !bell.enter() {
            bell.disarm();
            return Ok(());
        }
    }
    set.sleepers.fetch_add(1, SeqCst);
    drop(inner);
    let result = nap_in(set, out, bed, nap, mask);
    let mut inner = set.inner.lock();
    if !set.is_still(uses) {
        return result.map(drop);
    }
    let is_last = set.sleepers.fetch_sub(1, SeqCst) == 1;
    if let Some(bell) = inner.own_bell() {
        if is_public {
            bell.leave();
        }
        // Who watches the set as a descriptor may sleep on.
        if is_last && !set.watched.load(SeqCst) {
            bell.disarm();
        }
    }
    let rung = result?;
    if std::mem::take(&mut out.behind) {
        out.ask_kernel(epfd, 0, ptr::null())?;
    }
    if !rung && out.filled == 0 {
        notice_silence(&mut inner);
    }
    Ok(())
}

/// Whether the sleep ended by anything that was not for the program.
fn nap_in(set: &Epoll, out: &mut Output, bed: c_int, nap: Duration, mask: *const sigset_t) -> Answer<bool> {
    if set.nested.load(SeqCst) == 0 {
        // Rounded up: never back before the time is up.
        let millis = c_int::try_from(nap.as_micros().div_ceil(1000)).unwrap_or(1000);
        return out.ask_kernel(bed, millis, mask);
    }
    // The bell of a set that is in this one may have been rung for what nobody asked for: that is looked at
    // before the program is told.
    let mut one = [pollfd { fd: bed, events: libc::POLLIN, revents: 0 }];
    let woken = poll::in_kernel(&mut one, Some(nap), mask)? > 0;
    epoll_watch::show_nested(set);
    out.ask_kernel(bed, 0, ptr::null())?;
    Ok(woken)
}

/// After a long sleep without news: nobody tells of the daemon's death but its lifeline. And
/// every member is looked at, lest a word that was lost between an executor and a bell it did
/// not know yet be lost for good.
fn notice_silence(inner: &mut Inner) {
    if inner.has_ours() {
        if let Some(family) = family::joined() {
            family.feel_pulse();
        }
        inner.queue_all();
    }
}
