//! Where the bell of an event set hangs. As long as one process waits in the set, in the real
//! set. But the kernel gives an eventfd's edge to one of all who sleep there, and a bell
//! concerns its own process alone: where a fork has left a set to several that wait in it, each
//! has a set of the kernel's apart, with its bell and the real set in it, and none hangs in
//! the real one.

use crate::bell::Bell;
use crate::epoll_apart::Apart;
use crate::epoll_member::Inner;
use crate::epoll_set::Epoll;
use crate::errno::{Answer, check};
use crate::real;
use libc::epoll_event;
use std::ffi::c_int;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// What the bell is called in the kernel's sets. A program that names a socket so by chance
/// would not hear of it; nor by the next.
pub const MARKER: u64 = 0x5117_be11_7e57_ab1e;
/// What the real set is called in a set apart.
pub const REAL: u64 = MARKER + 1;

const ADD: c_int = libc::EPOLL_CTL_ADD;
const IN: u32 = libc::EPOLLIN as u32;
/// Edge-triggered, so that the eventfd need not be read.
const EDGE: u32 = IN | libc::EPOLLET as u32;

/// How often, and for how long each time, somebody who sleeps in the real set is given the time to leave it.
const TRIES: u32 = 50;
const TRY: Duration = Duration::from_millis(1);

fn ask(epfd: c_int, op: c_int, fd: c_int, events: u32, data: u64) -> Answer<()> {
    let mut event = epoll_event { events, u64: data };
    // SAFETY: the event outlives the call.
    check(unsafe { real::epoll_ctl(epfd, op, fd, &mut event) }).map(|_| ())
}

/// Where this process sleeps for the set that the program knows as `epfd`.
pub fn bed(inner: &Inner, epfd: c_int) -> c_int {
    inner.apart.as_ref().map_or(epfd, Apart::descriptor)
}

/// Gives the set a bell, when somebody waits there for sockets of ours: not before, as a server
/// of many processes may make a set in each and never wait in it, and every bell at a listener
/// is rung for each connection. A set that a fork left to this process gets a bell of its own;
/// both processes then hear of every socket that either has put in before. Where the family
/// has too many bells the set has none, and is looked at every now and then.
pub fn ensure_bell(set: &Epoll, inner: &mut Inner, epfd: c_int) {
    if let Some(bell) = &inner.bell {
        if bell.is_mine() {
            if inner.apart.is_none() && (inner.shared || bell.is_crowded()) {
                part(set, inner, epfd);
            }
            return;
        }
        inherit(inner, epfd);
    }
    let Ok(bell) = Bell::make() else { return };
    if inner.shared {
        inner.change_bell(bell);
        part(set, inner, epfd);
    } else if ask(epfd, ADD, bell.descriptor(), EDGE, MARKER).is_ok() {
        inner.change_bell(bell);
    }
}

/// The set was another process's, whose bell may hang in the real set: no longer, as this one is
/// going to wait there.
fn inherit(inner: &mut Inner, epfd: c_int) {
    if let Some(bell) = inner.bell.as_ref().filter(|_| !inner.shared) {
        for _ in 0..TRIES {
            if bell.crowd() {
                break;
            }
            bell.wake();
            std::thread::sleep(TRY);
        }
        // From now on nobody goes to sleep there for its sake.
        let _ = ask(epfd, libc::EPOLL_CTL_DEL, bell.descriptor(), 0, 0);
    }
    inner.shared = true;
    // What is in it is the other's.
    inner.apart = None;
}

/// The bell moves to a set apart.
fn part(set: &Epoll, inner: &mut Inner, epfd: c_int) {
    inner.shared = true;
    let (Some(bell), Ok(apart)) = (&inner.bell, Apart::make()) else { return };
    let place = apart.descriptor();
    if ask(place, ADD, bell.descriptor(), EDGE, MARKER).is_err() || ask(place, ADD, epfd, IN, REAL).is_err() {
        return;
    }
    let _ = ask(epfd, libc::EPOLL_CTL_DEL, bell.descriptor(), 0, 0);
    if set.sleepers.load(SeqCst) > 0 {
        // Another thread of this process, which does not know yet where to sleep: once.
        let _ = ask(epfd, ADD, bell.descriptor(), EDGE | libc::EPOLLONESHOT as u32, MARKER);
        bell.wake();
    }
    inner.apart = Some(apart);
}
