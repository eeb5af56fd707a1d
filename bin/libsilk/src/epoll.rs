//! Event sets. A real epoll descriptor holds what is the kernel's; sockets of ours are
//! members of a table beside it, and a [`Bell`](crate::bell::Bell) in the real set wakes who sleeps there. A
//! look costs as much as sockets changed, never as much as there are sockets.
//!
//! A member is known by its descriptor, as in Linux: a socket that has two is two members.

use crate::epoll_fired;
use crate::epoll_member::{Home, Inner, Member};
use crate::epoll_place::ensure_bell;
use crate::epoll_set::{self, Epoll};
use crate::epoll_watch;
use crate::errno::{Answer, check};
use crate::internal;
use crate::lock::Guard;
use crate::real;
use crate::socket::Socket;
use crate::table::{self, Entry};
use libc::epoll_event;
use std::ffi::c_int;
use std::sync::atomic::{Ordering, fence};

/// `EPOLLEXCLUSIVE`, and what may be asked for with it.
const EXCLUSIVE: u32 = libc::EPOLLEXCLUSIVE as u32;
const BESIDE_EXCLUSIVE: u32 = EXCLUSIVE
    | (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP | libc::EPOLLWAKEUP | libc::EPOLLET)
        as u32;

impl Epoll {
    /// One fewer, `fd`, which is not in the table any more; the last one empties it.
    pub fn drop_descriptor(&self, fd: c_int) {
        // None: the members are cleared before the set is used again.
        let mut inner = self.inner.lock_unless_own();
        if self.descriptors.load(Ordering::Acquire) == 1 {
            inner.as_mut().into_iter().for_each(|inner| inner.clear());
            self.number.store(-1, Ordering::Release);
            self.uses.fetch_add(1, Ordering::SeqCst);
        } else if self.number.load(Ordering::Acquire) == fd {
            let is_it = |entry: &Entry| matches!(entry, Entry::Epoll(set) if std::ptr::eq(*set, self));
            let other = table::within(0, u32::MAX).find(|(_, entry)| is_it(entry));
            self.number.store(other.map_or(-1, |(fd, _)| fd), Ordering::Release);
        }
        self.descriptors.fetch_sub(1, Ordering::AcqRel);
    }

    /// Its members, as they are.
    pub fn lock(&self) -> Guard<'_, Inner> {
        let mut inner = self.inner.lock();
        if self.outdated.load(Ordering::Relaxed) && self.outdated.swap(false, Ordering::AcqRel) {
            self.put_right(&mut inner);
        }
        inner
    }

    /// What was the kernel's to look at of a socket is silk's.
    fn take_over(&self, inner: &mut Inner, socket: &Socket) {
        let epfd = self.number.load(Ordering::Acquire);
        for (fd, is_once) in inner.undecided(socket) {
            let has_fired = is_once && epoll_fired::has_fired(epfd, fd);
            // SAFETY: a deletion reads no event.
            unsafe { real::epoll_ctl(epfd, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
            inner.count_kernels(libc::EPOLL_CTL_DEL);
            inner.take_over(fd, has_fired);
            self.tell_sleepers(inner, epfd);
        }
    }

    /// Does to the members what a signal's handler could not.
    fn put_right(&self, inner: &mut Inner) {
        for (fd, socket) in inner.descriptors() {
            let is_it = table::socket(fd).is_some_and(|named| std::ptr::eq(named, socket));
            if !(is_it && inner.is_of_this_use(fd)) {
                inner.remove(fd);
            } else if socket.is_served() {
                self.take_over(inner, socket);
            }
        }
        inner.queue_all();
    }

    /// Changes the members, or has it made up for where this is a handler that has interrupted its own thread's work on them.
    fn change(&self, what: impl FnOnce(&mut Inner)) {
        match self.inner.lock_unless_own() {
            Some(mut inner) => what(&mut inner),
            None => self.outdated.store(true, Ordering::Release),
        }
    }

    /// Wakes a thread that sleeps in the set, if there is one, to look again, and who watches it if there is anything to tell.
    fn tell_sleepers(&self, inner: &mut Inner, epfd: c_int) {
        if self.watched.load(Ordering::SeqCst) {
            epoll_watch::show_held(self, inner, epfd);
        }
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            ensure_bell(self, inner, epfd);
            if let Some(bell) = &inner.bell {
                bell.wake();
            }
        }
    }
}

/// `epoll_create1(2)`.
///
/// # Errors
/// As Linux.
pub fn create(flags: c_int) -> Answer<c_int> {
    // SAFETY: a plain number.
    let fd = check(unsafe { real::epoll_create1(flags) })?;
    if let Some(set) = epoll_set::claim() {
        set.number.store(fd, Ordering::Release);
        set.change(Inner::clear);
        set.watched.store(false, Ordering::Release);
        set.nested.store(0, Ordering::Release);
        if !table::put(fd, Entry::Epoll(set)) {
            set.drop_descriptor(fd);
        }
    }
    Ok(fd)
}

/// `epoll_ctl(2)` on a set of ours.
///
/// # Errors
/// As Linux.
///
/// # Safety
/// `event` is null or points to an event.
pub unsafe fn control(set: &Epoll, epfd: c_int, op: c_int, fd: c_int, event: *mut epoll_event) -> Answer<()> {
    let mut inner = set.lock();
    let Some(announced) = Watchable::announce(fd) else {
        drop(inner);
        if internal::is(fd) {
            return Err(libc::EBADF);
        }
        // SAFETY: as the caller promises.
        check(unsafe { real::epoll_ctl(epfd, op, fd, event) })?;
        set.inner.lock().count_kernels(op);
        epoll_watch::note(set, op, fd);
        return Ok(());
    };
    // SAFETY: as the caller promises; the event may be unaligned.
    let asked = if event.is_null() { None } else { Some(unsafe { event.read_unaligned() }) };
    let socket = announced.0;
    if !socket.is_served() {
        // SAFETY: as the caller promises.
        check(unsafe { real::epoll_ctl(epfd, op, fd, event) })?;
        inner.count_kernels(op);
        inner.note_undecided(socket, fd, op, asked);
        return Ok(());
    }
    match op {
        libc::EPOLL_CTL_ADD => {
            let asked = asked.ok_or(libc::EFAULT)?;
            if asked.events & EXCLUSIVE != 0 && asked.events & !BESIDE_EXCLUSIVE != 0 {
                return Err(libc::EINVAL);
            }
            if inner.find(fd).is_some() {
                return Err(libc::EEXIST);
            }
            inner.add(Member::new(socket, fd, Home::Silk, asked));
        }
        libc::EPOLL_CTL_MOD => {
            let asked = asked.ok_or(libc::EFAULT)?;
            if asked.events & EXCLUSIVE != 0 {
                return Err(libc::EINVAL);
            }
            let member = inner.find(fd).ok_or(libc::ENOENT)?;
            if member.asked() & EXCLUSIVE != 0 {
                return Err(libc::EINVAL);
            }
            member.change(asked);
        }
        libc::EPOLL_CTL_DEL => {
            if inner.is_kernels(fd) {
                // Served since a moment ago, and not taken over yet.
                // SAFETY: a deletion reads no event.
                unsafe { real::epoll_ctl(epfd, op, fd, std::ptr::null_mut()) };
                inner.count_kernels(op);
            }
            inner.remove(fd).then_some(()).ok_or(libc::ENOENT)?;
        }
        _ => return Err(libc::EINVAL),
    }
    if op != libc::EPOLL_CTL_DEL {
        inner.queue(fd);
        set.tell_sleepers(&mut inner, epfd);
    }
    Ok(())
}

/// A socket that may become a member of a set, whose lock is held. While this lives it counts as watched: so who closes its
/// descriptor at the same moment, or decides who serves it, looks at the set when this has done with it.
struct Watchable(&'static Socket);

impl Watchable {
    /// What `fd` names, if silk serves it or may come to.
    fn announce(fd: c_int) -> Option<Self> {
        let named = table::socket(fd)?;
        named.watched.fetch_add(1, Ordering::SeqCst);
        let one = Self(named);
        // Pairs with `is_watched`: one of the two sees the other.
        fence(Ordering::SeqCst);
        let is_it = table::socket(fd).is_some_and(|socket| std::ptr::eq(socket, named));
        (is_it && named.may_be_silks()).then_some(one)
    }
}

impl Drop for Watchable {
    fn drop(&mut self) {
        self.0.watched.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether a set may have a socket as a member, of which something has changed just before.
fn is_watched(socket: &Socket) -> bool {
    fence(Ordering::SeqCst);
    socket.watched.load(Ordering::SeqCst) > 0
}

/// The program's descriptor `fd` is being closed: the table does not have it any more.
pub fn forget_descriptor(socket: &Socket, fd: c_int) {
    if is_watched(socket) {
        epoll_set::used().for_each(|set| {
            set.change(|inner| {
                inner.remove(fd);
            });
        });
    }
}

/// Silk has just begun to serve a socket that may be in sets already: the kernel's part is
/// taken out of the real sets and the socket put in its place.
pub fn now_served(socket: &'static Socket) {
    if !is_watched(socket) {
        return;
    }
    epoll_set::used().for_each(|set| set.change(|inner| set.take_over(inner, socket)));
}

/// Linux has just begun to serve a socket that silk has served: its members go into the real sets.
pub fn now_linuxs(socket: &'static Socket) {
    if !is_watched(socket) {
        return;
    }
    for set in epoll_set::used() {
        let mut inner = set.inner.lock();
        let epfd = set.number.load(Ordering::Acquire);
        for (fd, mut asked) in inner.let_go(socket) {
            // SAFETY: the event is read only.
            unsafe { real::epoll_ctl(epfd, libc::EPOLL_CTL_ADD, fd, &raw mut asked) };
            inner.count_kernels(libc::EPOLL_CTL_ADD);
        }
    }
}

/// This process has changed a socket by itself (a shutdown), of which no executor tells.
pub fn changed(socket: &Socket) {
    if !is_watched(socket) {
        return;
    }
    let (slot, _) = socket.name();
    for set in epoll_set::used() {
        set.change(|inner| {
            if let Some(bell) = inner.bell.as_ref().filter(|_| inner.has_slot(socket)) {
                bell.mark(slot);
            }
        });
    }
}

/// Holds every set across a fork; that of a handler's own thread is held already.
pub fn hold_all() {
    for set in epoll_set::known() {
        let Some(mut inner) = set.inner.lock_unless_own() else { continue };
        if set.is_used() {
            inner.note_fork();
        }
        // Held until `open_all`.
        std::mem::forget(inner);
        set.held.store(true, Ordering::Release);
    }
}

/// Lets them go in the parent. Other threads may have made further ones meanwhile.
pub fn open_all() {
    epoll_set::known()
        .iter()
        .filter(|set| set.held.swap(false, Ordering::AcqRel))
        .for_each(|set| set.inner.bare().open());
}

/// Lets them go in the child.
pub fn force_open_all() {
    for set in epoll_set::known() {
        set.held.store(false, Ordering::Release);
        set.inner.bare().force_open();
        set.sleepers.store(0, Ordering::Release);
    }
}
