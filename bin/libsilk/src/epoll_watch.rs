//! An event set that is watched itself, by `poll` or as a member of another set. What the
//! kernel says of the real set is made to say what holds of ours too: its bell is written when
//! there is something to tell, made quiet when there is not, and armed.

use crate::epoll_member::Inner;
use crate::epoll_place::{bed, ensure_bell};
use crate::epoll_set::Epoll;
use crate::table;
use std::ffi::c_int;
use std::sync::atomic::Ordering::SeqCst;

/// How deep sets may lie in each other (`EP_MAX_NESTS`).
const DEPTH: u32 = 5;

/// Somebody is about to look at the set that the program knows as `epfd`, or to sleep until it has something
/// to tell. The descriptor that the kernel is to be asked about.
pub fn show(set: &Epoll, epfd: c_int) -> c_int {
    show_within(set, epfd, DEPTH)
}

fn show_within(set: &Epoll, epfd: c_int, depth: u32) -> c_int {
    show_members(set, depth);
    set.watched.store(true, SeqCst);
    let mut inner = set.inner.lock();
    show_held(set, &mut inner, epfd);
    bed(&inner, epfd)
}

/// The sets that are members of `set` are about to be asked for.
pub fn show_nested(set: &Epoll) {
    show_members(set, DEPTH);
}

fn show_members(set: &Epoll, depth: u32) {
    if depth == 0 || set.nested.load(SeqCst) == 0 {
        return;
    }
    // No set is held while another one is taken: forks hold them in another order.
    let members = set.inner.lock().nested.clone();
    for (fd, member) in members.into_iter().filter_map(|fd| Some((fd, table::epoll(fd)?))) {
        show_within(member, fd, depth - 1);
    }
}

/// The same of a set that is held already.
pub fn show_held(set: &Epoll, inner: &mut Inner, epfd: c_int) {
    if !inner.has_ours() {
        return;
    }
    ensure_bell(set, inner, epfd);
    let mut has_news = inner.has_news();
    if !has_news && let Some(bell) = inner.own_bell() {
        bell.hush();
        bell.name_sleeper(Some(inner.has_datagrams()));
        if bell.arm() {
            has_news = inner.has_news();
        }
    }
    if has_news && let Some(bell) = inner.own_bell() {
        bell.wake();
    }
}

/// The kernel has done `op` with `fd` in the set: if that is a set too, it is looked after from now on.
pub fn note(set: &Epoll, op: c_int, fd: c_int) {
    let member = table::epoll(fd);
    if member.is_none() && set.nested.load(SeqCst) == 0 {
        return;
    }
    let mut inner = set.inner.lock();
    // A number that was closed meanwhile may be there still.
    if op != libc::EPOLL_CTL_MOD {
        inner.nested.retain(|one| *one != fd);
    }
    if op == libc::EPOLL_CTL_ADD && member.is_some() {
        inner.nested.push(fd);
    }
    set.nested.store(inner.nested.len() as u32, SeqCst);
    drop(inner);
    // Somebody may be asleep in the set.
    if let Some(member) = member {
        show(member, fd);
    }
}
