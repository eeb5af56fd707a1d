//! Waiting in an event set: first what changed of ours, then what the kernel has, then sleep
//! in the kernel, with the bell armed.

use crate::bell::Bell;
use crate::clock;
use crate::epoll_member::Inner;
use crate::epoll_place::{self, MARKER, REAL};
use crate::epoll_set::Epoll;
use crate::epoll_watch;
use crate::errno::{self, Answer, check};
use crate::family;
use crate::lock::Guard;
use crate::poll;
use crate::real;
use crate::signals::Held;
use crate::wait::Deadline;
use libc::{epoll_event, pollfd, sigset_t, timespec};
use std::ffi::c_int;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// More events are not asked for at once (`EP_MAX_EVENTS`).
const MOST: usize = i32::MAX as usize / size_of::<epoll_event>();

/// How often a set without a bell is looked at.
const WITHOUT_BELL: Duration = Duration::from_millis(2);

/// How often the kernel is asked at once: for each bell that may hang in the real set, which is told of by edge and so once
/// (this process's, and another's that has not left it yet), and for what lies behind them.
const ASKS: u32 = 3;

/// The program's array, and how much of it is filled.
struct Output {
    start: *mut epoll_event,
    room: usize,
    filled: usize,
    /// The program counts in nanoseconds (`epoll_pwait2`), and not in milliseconds.
    exact: bool,
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

    /// The places that are left: the first, and how many.
    fn left(&self) -> (*mut epoll_event, c_int) {
        let room = c_int::try_from(self.room - self.filled).unwrap_or(c_int::MAX);
        // SAFETY: the array has `room` places, of which no more are filled.
        (unsafe { self.start.add(self.filled) }, room)
    }

    /// Asks the kernel what there is now: again, where bells have taken all places of what lies behind them.
    fn look_at_kernels(&mut self, epfd: c_int) -> Answer<()> {
        let (start, room) = self.left();
        // Under the set's lock, where no thread is to be cancelled.
        let [set, room] = [epfd, room].map(|number| number as usize);
        let filled = self.filled;
        for _ in 0..ASKS {
            // SAFETY: the array has `room` places left.
            let got = unsafe {
                real::syscall(libc::SYS_epoll_pwait, set, start.expose_provenance(), room, 0, 0, 0) as c_int
            };
            let got = check(got)?.unsigned_abs() as usize;
            self.take_kernels(got);
            if got < room || self.filled > filled || self.behind {
                break;
            }
        }
        Ok(())
    }

    /// Waits in the kernel for at most so long; whether any of what came was not for the program.
    fn wait_for_kernels(&mut self, epfd: c_int, nap: Duration, mask: *const sigset_t) -> Answer<bool> {
        let (start, room) = self.left();
        // SAFETY: the array has `room` places left.
        let got = check(unsafe { sleep_in_kernel((epfd, start, room), (nap, self.exact), mask) })?;
        Ok(self.take_kernels(got.unsigned_abs() as usize))
    }
}

/// `epoll_pwait(2)`, or `epoll_pwait2(2)` where it is to be as `exact` and the kernel has it. Rounded up: never back before the time
/// is up.
///
/// # Safety
/// `start` must have `room` places; `mask` is null or a signal set.
unsafe fn sleep_in_kernel(
    (epfd, start, room): (c_int, *mut epoll_event, c_int),
    (nap, exact): (Duration, bool),
    mask: *const sigset_t,
) -> c_int {
    let seconds = libc::time_t::try_from(nap.as_secs()).unwrap_or(libc::time_t::MAX);
    let limit = timespec { tv_sec: seconds, tv_nsec: nap.subsec_nanos().into() };
    // SAFETY: as the caller promises; the limit lives through the call.
    unsafe {
        if exact {
            let got = real::epoll_pwait2(epfd, start, room, &raw const limit, mask);
            if got >= 0 || errno::last() != libc::ENOSYS {
                return got;
            }
        }
        let millis = c_int::try_from(nap.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX);
        real::epoll_pwait(epfd, start, room, millis, mask)
    }
}

/// `epoll_pwait(2)` on a set of ours, or where it is `exact`, `epoll_pwait2(2)`.
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
    (limit, exact): (Option<Duration>, bool),
    mask: *const sigset_t,
) -> Answer<c_int> {
    let room = usize::try_from(max).ok().filter(|room| (1..=MOST).contains(room)).ok_or(libc::EINVAL)?;
    if events.is_null() {
        return Err(libc::EFAULT);
    }
    let mut out = Output { start: events, room, filled: 0, exact, behind: false };
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
                out.look_at_kernels(epfd)?;
                true
            };
        let found = inner.collect(out.room - out.filled, |event| out.put(event));
        let nap = if out.filled > 0 || at_once { None } else { deadline.nap() };
        // Where it goes to sleep in the kernel it is asked there.
        if !asked && (found > 0 || nap.is_none()) && out.filled < out.room && inner.has_kernels() {
            out.look_at_kernels(epfd)?;
        }
        let Some(mut nap) = nap else {
            leave_rest(set, &mut inner);
            return Ok(c_int::try_from(out.filled).unwrap_or(c_int::MAX));
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
        out.look_at_kernels(epfd)?;
    }
    if !rung && out.filled == 0 && inner.is_silent_for_long(clock::now()) {
        notice_silence(&mut inner);
    }
    Ok(())
}

/// Whether the sleep ended by anything that was not for the program.
fn nap_in(set: &Epoll, out: &mut Output, bed: c_int, nap: Duration, mask: *const sigset_t) -> Answer<bool> {
    if set.nested.load(SeqCst) == 0 {
        return out.wait_for_kernels(bed, nap, mask);
    }
    // The bell of a set that is in this one may have been rung for what nobody asked for: that is looked at
    // before the program is told.
    let mut one = [pollfd { fd: bed, events: libc::POLLIN, revents: 0 }];
    let woken = poll::in_kernel(&mut one, Some(nap), mask)? > 0;
    epoll_watch::show_nested(set);
    out.look_at_kernels(bed)?;
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
