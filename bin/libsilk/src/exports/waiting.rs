//! `poll`, `select`, `epoll` and their kin.

use crate::ending;
use crate::epoll;
use crate::epoll_wait as sets;
use crate::errno::{Answer, done, int};
use crate::poll as polls;
use crate::real;
use crate::select as selects;
use crate::select::Sets;
use crate::table;
use libc::{c_int, epoll_event, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use std::ptr;
use std::time::Duration;

/// A time limit in ms; negative: none.
fn millis(timeout: c_int) -> Option<Duration> {
    u64::try_from(timeout).ok().map(Duration::from_millis)
}

/// # Errors
/// `EINVAL` for what is no time.
///
/// # Safety
/// `limit` is valid or null.
unsafe fn time(limit: *const timespec) -> Answer<Option<Duration>> {
    // SAFETY: as the caller promises.
    let Some(limit) = (unsafe { limit.as_ref() }) else { return Ok(None) };
    let nanos = u32::try_from(limit.tv_nsec).ok().filter(|nanos| *nanos < 1_000_000_000);
    match (u64::try_from(limit.tv_sec), nanos) {
        (Ok(seconds), Some(nanos)) => Ok(Some(Duration::new(seconds, nanos))),
        _ => Err(libc::EINVAL),
    }
}

/// The program's array; an empty one where Linux refuses it.
///
/// # Safety
/// `fds` has `count` entries or is null.
unsafe fn array<'a>(fds: *mut pollfd, count: nfds_t) -> &'a mut [pollfd] {
    if fds.is_null() || count == 0 || count > 1 << 20 {
        return &mut [];
    }
    if count > MANY && count > descriptors() {
        return &mut [];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts_mut(fds, count as usize) }
}

/// A program that may have fewer descriptors than this will not ask for more than it may have.
const MANY: nfds_t = 128;

/// As many as the program may have, of which Linux takes no more.
fn descriptors() -> nfds_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: fills the structure it is given.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit.rlim_cur
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe {
        let ours = array(fds, count);
        if !polls::concerns_us(ours, timeout != 0) {
            return real::poll(fds, count, timeout);
        }
        int(polls::poll(ours, millis(timeout), ptr::null()))
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let ours = array(fds, count);
        if !polls::concerns_us(ours, time(limit) != Ok(Some(Duration::ZERO))) {
            return real::ppoll(fds, count, limit, mask);
        }
        int(time(limit).and_then(|limit| polls::poll(ours, limit, mask)))
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let sets = Sets::new(count, [read, write, except]);
    // SAFETY: as above.
    unsafe {
        if !sets.concern_us(timeout.as_ref().is_none_or(|t| (t.tv_sec, t.tv_usec) != (0, 0))) {
            return selects::linux(sets, timeout);
        }
        if timeout.as_ref().is_some_and(|limit| limit.tv_sec < 0 || limit.tv_usec < 0) {
            return int(Err(libc::EINVAL));
        }
        let limit = timeout.as_ref().map(|t| {
            let whole = Duration::from_secs(t.tv_sec.max(0).unsigned_abs());
            whole.saturating_add(Duration::from_micros(t.tv_usec.max(0).unsigned_abs()))
        });
        let before = crate::clock::now();
        let answer = int(selects::select(sets, limit, ptr::null()));
        // As Linux, which writes back what is left of the time.
        if let (Some(left), Some(limit)) = (timeout.as_mut(), limit) {
            let rest = limit.saturating_sub(crate::clock::now() - before);
            left.tv_sec = rest.as_secs().try_into().unwrap_or(libc::time_t::MAX);
            left.tv_usec = rest.subsec_micros().into();
        }
        answer
    }
}

/// Whether a socket of ours is in any of these sets, of descriptors below `count`, or may be while a call waits.
///
/// # Safety
/// As of `select`.
pub unsafe fn concern_us(count: c_int, sets: [*mut fd_set; 3]) -> bool {
    // SAFETY: as the caller promises.
    unsafe { Sets::new(count, sets).concern_us(true) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let sets = Sets::new(count, [read, write, except]);
    // SAFETY: as above.
    unsafe {
        if !sets.concern_us(time(limit) != Ok(Some(Duration::ZERO))) {
            return real::pselect(count, read, write, except, limit, mask);
        }
        int(time(limit).and_then(|limit| selects::select(sets, limit, mask)))
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_create(size: c_int) -> c_int {
    if size <= 0 {
        return int(Err(libc::EINVAL));
    }
    int(epoll::create(0))
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_create1(flags: c_int) -> c_int {
    int(epoll::create(flags))
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(epfd: c_int, op: c_int, fd: c_int, event: *mut epoll_event) -> c_int {
    // SAFETY: as above.
    unsafe {
        match table::epoll(epfd) {
            None => real::epoll_ctl(epfd, op, fd, event),
            Some(set) => {
                ending::heed();
                done(epoll::control(set, epfd, op, fd, event))
            }
        }
    }
}

/// # Safety
/// As the C library's.
unsafe fn wait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        match table::epoll(epfd) {
            Some(set) => int(sets::wait(set, epfd, events, max, (millis(timeout), false), mask)),
            None => real::epoll_pwait(epfd, events, max, timeout, mask),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe { wait(epfd, events, max, timeout, ptr::null()) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as above.
    unsafe { wait(epfd, events, max, timeout, mask) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait2(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        match table::epoll(epfd) {
            Some(set) => {
                int(time(limit).and_then(|limit| sets::wait(set, epfd, events, max, (limit, true), mask)))
            }
            None => real::epoll_pwait2(epfd, events, max, limit, mask),
        }
    }
}
