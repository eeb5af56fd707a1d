//! `poll`: a set of sockets of ours alone waits on their event words, without the kernel
//! knowing of them; a mixed or a large set waits in the kernel with this thread's bell added.

use crate::bell::{Bell, Clapper};
use crate::epoll_watch;
use crate::errno::{Answer, check};
use crate::family;
use crate::gate;
use crate::lost;
use crate::nameless::{self, Call};
use crate::readiness;
use crate::real;
use crate::signals::{self, Held};
use crate::socket::{Found, Role};
use crate::state;
use crate::table::{self, Entry};
use crate::thread;
use crate::wait::{self, Deadline, asleep, nap};
use libc::{pollfd, sigset_t, timespec};
use silk_stream::wake::Woken;
use std::cell::RefCell;
use std::ffi::{c_int, c_short};
use std::ptr;
use std::time::Duration;

/// What calls a thread: its bell, or what that is to be made of.
struct Own {
    bell: Option<Bell>,
    clapper: Option<Clapper>,
}

impl Own {
    const NOTHING: Self = Self { bell: None, clapper: None };

    fn has_bell(&self) -> bool {
        self.bell.as_ref().is_some_and(Bell::is_mine)
    }

    /// The thread's bell, which is made where it has none yet; `None`: the family has too many.
    fn bell(&mut self) -> Option<&Bell> {
        if !self.has_bell() {
            let clapper = self.clapper.take().filter(Clapper::is_mine);
            self.bell = clapper.map_or_else(Clapper::make, Ok).and_then(Bell::of).ok();
        }
        self.bell.as_ref()
    }

    /// Has what a bell takes that only who is not shut in may make.
    fn prepare(&mut self) {
        if !self.has_bell() && !self.clapper.as_ref().is_some_and(Clapper::is_mine) {
            self.clapper = Clapper::make().ok();
        }
    }
}

thread_local! {
    static OWN: RefCell<Own> = const { RefCell::new(Own::NOTHING) };
}

/// Has the C library note, which takes memory of its own, that this thread's bell goes when it ends.
pub fn expect_end() {
    // A thread whose data are gone already needs nothing any more.
    let _ = OWN.try_with(|_| {});
}

/// This thread is about to shut itself in (`seccomp(2)`): what its first wait beside others' descriptors takes is made while it may.
/// The bell itself is not, of which a family has few, and most who shut themselves in never need one.
pub fn before_shutting_in() {
    if family::joined().is_some() {
        let _ = OWN.try_with(|own| own.try_borrow_mut().map(|mut own| own.prepare()));
    }
}

/// Sets of at most so many sockets wait on their event words.
const FEW: usize = 100;

/// The sockets of ours in a program's array.
fn ours(fds: &[pollfd]) -> impl Iterator<Item = (usize, Found)> {
    fds.iter().enumerate().filter_map(|(place, one)| Some((place, table::served(one.fd)?)))
}

/// Whether who waits for these follows the class of what wakes it, and if so, whether it waits for datagrams. Who waits for one
/// connection serves that, and whoever accepts others has their priority by that.
fn follows(fds: &[pollfd]) -> Option<bool> {
    let roles = || ours(fds).map(|(_, socket)| socket.role());
    let datagrams = roles().any(|role| role == Role::Datagram);
    (datagrams || roles().filter(|role| *role == Role::Stream).nth(1).is_some()).then_some(datagrams)
}

/// Whether it is a socket of ours, or a set that may have some.
fn is_ours(fd: c_int) -> bool {
    table::served(fd).is_some() || table::epoll(fd).is_some()
}

/// Whether any of them is ours, or may become so while the call `waits`; if not, the call is Linux's.
pub fn concerns_us(fds: &[pollfd], waits: bool) -> bool {
    fds.iter().any(|one| may_be_ours(one.fd, waits))
}

/// Whether it is ours, or may become so while the call `waits`. In this order: another thread may just be naming it.
pub fn may_be_ours(fd: c_int, waits: bool) -> bool {
    waits && nameless::is_nameless(fd) || family::joined().is_some() && is_ours(fd)
}

/// Writes what holds now; how many of ours are ready.
fn look(fds: &mut [pollfd]) -> usize {
    let mut ready = 0;
    for one in fds {
        let Some(socket) = table::served(one.fd) else { continue };
        let wanted = u32::from(one.events.cast_unsigned()) | readiness::FAILED | readiness::HUNG_UP;
        one.revents = (readiness::of(&socket) & wanted) as c_short;
        ready += usize::from(one.revents != 0);
    }
    ready
}

/// `ppoll(2)` on a set with sockets of ours.
///
/// # Errors
/// As Linux.
///
/// # Safety
/// `mask` is null or points to a signal set.
pub unsafe fn poll(fds: &mut [pollfd], limit: Option<Duration>, mask: *const sigset_t) -> Answer<c_int> {
    // Of one that nobody looks at, whose descriptor is negative, nothing is told.
    fds.iter_mut().for_each(|one| one.revents = 0);
    let count = ours(fds).count();
    let pure = fds.iter().filter(|one| one.fd >= 0).count() == count;
    let ready = look(fds);
    let at_once = limit == Some(Duration::ZERO) || ready > 0;
    if ready > 0 && state::is_dead() {
        lost::answer();
    }
    if at_once {
        // Where nothing is ready, a signal that the mask lets in ends even a call that does not wait.
        let mask = if ready > 0 { ptr::null() } else { mask };
        let is_asked = !pure || !mask.is_null();
        let kernels =
            if is_asked { Mixed::new(fds, NOBODY).ask(fds, Some(Duration::ZERO), mask)? } else { 0 };
        return total(ready + kernels);
    }
    let deadline = Deadline::after(limit);
    let has_nameless = fds.iter().any(|one| nameless::is_nameless(one.fd));
    let call = has_nameless.then(Call::take).flatten();
    loop {
        // SAFETY: as the caller promises.
        if let Some(ready) = unsafe { wait_once(fds, deadline, mask, call.as_ref()) }? {
            return total(ready);
        }
    }
}

/// Waits until some are ready; how many. `None`: a socket has become ours meanwhile.
///
/// # Safety
/// As [`poll`].
unsafe fn wait_once(
    fds: &mut [pollfd],
    deadline: Deadline,
    mask: *const sigset_t,
    call: Option<&Call>,
) -> Answer<Option<usize>> {
    let count = ours(fds).count();
    let pure = fds.iter().filter(|one| one.fd >= 0).count() == count;
    // Several words are waited for by a call that handlers with SA_RESTART do not end, where the kernel has it.
    let ends = count == 1 || !signals::may_restart() && wait::may_be_on_several();
    if pure
        && count > 0
        && count <= FEW
        && mask.is_null()
        && ends
        && let Some(ready) = on_words(fds, count, deadline)?
    {
        return Ok(Some(ready));
    }
    // Below a handler that has interrupted such a wait, and after the thread's own data are gone, there is none that waits.
    let own = OWN.try_with(|own| {
        let mut own = own.try_borrow_mut().ok()?;
        // SAFETY: as the caller promises.
        Some(unsafe { with_bell(fds, deadline, mask, (&mut own, call)) })
    });
    if let Ok(Some(answer)) = own {
        return answer;
    }
    // SAFETY: as the caller promises.
    unsafe { with_bell(fds, deadline, mask, (&mut { Own::NOTHING }, call)) }
}

fn total(ready: usize) -> Answer<c_int> {
    Ok(c_int::try_from(ready).unwrap_or(c_int::MAX))
}

/// Waits on the event words of sockets that are all ours, `count` of them. `None`: another thread has closed one
/// meanwhile, or put another descriptor in its place, which is the kernel's to look at.
fn on_words(fds: &mut [pollfd], count: usize, deadline: Deadline) -> Answer<Option<usize>> {
    loop {
        let mut words = Vec::with_capacity(count);
        for (place, socket) in ours(fds) {
            let (Ok(slot), Some(one)) = (socket.slot(), fds.get(place)) else { continue };
            words.push(wait::word(slot));
            readiness::announce(&socket, slot, u32::from(one.events.cast_unsigned()));
        }
        if let Some(datagrams) = follows(fds) {
            thread::name_sleeper(datagrams, ours(fds).filter_map(|(_, socket)| socket.slot().ok()));
        }
        let is_whole = words.len() == count;
        // Counted before the last look: who changes something then knows that somebody sleeps.
        let (ready, woken) = asleep(|| {
            let ready = look(fds);
            let limit = deadline.nap().filter(|_| ready == 0 && is_whole);
            (ready, limit.map(|limit| nap(&words, true, limit)))
        });
        match woken {
            Some(Woken::Changed) => thread::report_wake_if_known(),
            Some(Woken::Refused) => return Ok(None),
            Some(Woken::Interrupted) => return Err(libc::EINTR),
            Some(Woken::TimedOut) => feel_pulse(),
            None if ready > 0 || is_whole => return Ok(Some(ready)),
            None => {
                // To the kernel its part is still open until the other thread is done.
                gate::settle();
                return Ok(None);
            }
        }
    }
}

fn feel_pulse() {
    if let Some(family) = family::joined() {
        family.feel_pulse();
    }
}

/// Asks the kernel, for at most `limit`; how many are ready.
///
/// # Errors
/// As Linux.
pub fn in_kernel(fds: &mut [pollfd], limit: Option<Duration>, mask: *const sigset_t) -> Answer<c_int> {
    let limit = limit.map(|limit| timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the array is as long as said; the limit outlives the call.
    check(unsafe { real::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, limit, mask) })
}

/// The number by which the kernel knows what is its own.
fn kernels(fd: c_int) -> c_int {
    match table::entry(fd) {
        Some(Entry::Socket(socket)) if socket.is_served() => -1,
        Some(Entry::Epoll(set)) => epoll_watch::show(set, fd),
        _ => fd,
    }
}

/// Who calls a thread that waits in the kernel: the eventfds of its bell and of its [`Call`].
type Callers = [c_int; 2];

const NOBODY: Callers = [-1; 2];

/// The program's array with ours taken out, as the kernel sees it, and who calls behind it.
struct Mixed(Vec<pollfd>);

impl Mixed {
    fn new(fds: &[pollfd], callers: Callers) -> Self {
        let theirs = fds.iter().map(|one| pollfd { fd: kernels(one.fd), events: one.events, revents: 0 });
        let callers = callers.map(|fd| pollfd { fd, events: libc::POLLIN, revents: 0 });
        Self(theirs.chain(callers).collect())
    }

    /// Asks the kernel; how many of its descriptors are ready, which are written to `fds`.
    fn ask(&mut self, fds: &mut [pollfd], limit: Option<Duration>, mask: *const sigset_t) -> Answer<usize> {
        in_kernel(&mut self.0, limit, mask)?;
        let mut ready = 0;
        for (one, seen) in fds.iter_mut().zip(&self.0).filter(|(_, seen)| seen.fd >= 0) {
            one.revents = seen.revents;
            ready += usize::from(seen.revents != 0);
        }
        Ok(ready)
    }

    /// Whether the bell rang, and whether the call came.
    fn called(&self) -> [bool; 2] {
        self.0.last_chunk().map_or([false; 2], |callers: &[pollfd; 2]| callers.map(|one| one.revents != 0))
    }
}

/// Waits in the kernel, with the bell among the descriptors, and the call.
///
/// # Safety
/// As [`poll`].
unsafe fn with_bell(
    fds: &mut [pollfd],
    deadline: Deadline,
    mask: *const sigset_t,
    (own, call): (&mut Own, Option<&Call>),
) -> Answer<Option<usize>> {
    let watched: Vec<_> = ours(fds).filter_map(|(_, socket)| socket.slot().ok()).collect();
    let bell = if watched.is_empty() { None } else { own.bell() };
    if let Some(bell) = bell {
        bell.name_sleeper(follows(fds));
        watched.iter().for_each(|slot| bell.watch(slot, true));
    }
    let answer = sleep_in_kernel(fds, deadline, mask, (bell, call));
    if let Some(bell) = bell {
        bell.disarm();
        watched.iter().for_each(|slot| bell.watch(slot, false));
        bell.take(|_| {});
    }
    answer
}

/// How many of the kernel's descriptors really are ready of those that it says are: the bell of a set may have been
/// rung for what nobody asked for.
fn confirmed(fds: &mut [pollfd], ready: usize) -> Answer<usize> {
    if ready > 0 && fds.iter().any(|one| table::epoll(one.fd).is_some()) {
        return Mixed::new(fds, NOBODY).ask(fds, Some(Duration::ZERO), ptr::null());
    }
    Ok(ready)
}

fn sleep_in_kernel(
    fds: &mut [pollfd],
    deadline: Deadline,
    mask: *const sigset_t,
    (bell, call): (Option<&Bell>, Option<&Call>),
) -> Answer<Option<usize>> {
    let callers = [bell.map_or(-1, Bell::descriptor), call.map_or(-1, Call::descriptor)];
    let mut held = Held::default();
    let mut count = ours(fds).count();
    loop {
        // Another thread may have closed one of ours meanwhile; to the kernel its part is still open until that is done.
        let before = std::mem::replace(&mut count, ours(fds).count());
        if count < before {
            gate::settle();
        }
        let mut mixed = Mixed::new(fds, callers);
        if let Some(bell) = bell {
            bell.take(|_| {});
            bell.arm();
        }
        for (place, socket) in ours(fds) {
            if let (Ok(slot), Some(one)) = (socket.slot(), fds.get(place)) {
                readiness::announce(&socket, slot, u32::from(one.events.cast_unsigned()));
            }
        }
        let ready = look(fds);
        let Some(nap) = deadline.nap().filter(|_| ready == 0) else {
            return Ok(Some(ready + mixed.ask(fds, Some(Duration::ZERO), ptr::null())?));
        };
        held.before_sleep(deadline.outlasts(nap));
        // Without a bell (the family has too many) the sockets are looked at now and then.
        let nap = if bell.is_some() || ours(fds).next().is_none() {
            nap
        } else {
            nap.min(Duration::from_millis(2))
        };
        let theirs = mixed.ask(fds, Some(nap), held.mask(mask))?;
        let [rang, came] = mixed.called();
        if let Some(call) = call.filter(|_| came && theirs == 0) {
            call.hush();
            return Ok(None);
        }
        if let Some(bell) = bell.filter(|_| rang) {
            bell.hush();
        } else if theirs == 0 {
            feel_pulse();
        }
        let theirs = confirmed(fds, theirs)?;
        if theirs > 0 {
            return Ok(Some(theirs + look(fds)));
        }
    }
}
