//! What comes to a listening socket over Linux's own TCP: from this machine itself, over its
//! other interfaces. Linux's socket of the same port listens too; the domain of the default
//! class accepts from it, and the domain of the peer's class makes a path of each connection,
//! with HOST at the bottom. (Of datagrams: `host_datagrams.rs`.) A socket of Linux's may hear at both IPs for
//! several that share the port, of which not all are at both.

use crate::between::command::Command;
use crate::between::listener_hold::{Arrived, Coming, ListenerHold};
use crate::between::reserved::Reserved;
use crate::binding::any_like;
use crate::domain::engine::{BURST, Engine};
use crate::domain::host_socket::{LinuxSocket, accept, reset};
use crate::domain::linux_sockets::{complain, listen};
use crate::domain::sibling::Sibling;
use rustix::io::Errno;
use silk_instant::Instant;
use silk_modules::host;
use silk_path::{Attr, Attrs, Bell, DropReason, Endpoint, PathId, Report};
use silk_wire::ipv4;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

impl Engine {
    /// A program listens: so does Linux's socket, from now on, since the classifier keeps from
    /// it what comes over silk's device. A graph without HOST has no use for it.
    pub(crate) fn listen_on_linux(&mut self, id: PathId, hold: &ListenerHold, defer_accept: u32) {
        let accepts = self.domain == self.classes.domain(self.classes.default);
        let Some(linux) = hold.linux.as_ref().filter(|_| accepts) else { return };
        if self.core.paths.module_mut::<host::Host>().is_none() {
            return;
        }
        // It listens already, for the other IP.
        if self.host.listeners.values().any(|other| Arc::ptr_eq(other, linux)) {
            return;
        }
        let listens = listen(linux, hold, defer_accept).and_then(|()| self.host.watch.add(linux, id.index));
        match listens {
            Ok(()) => _ = self.host.listeners.insert(id.index, linux.clone()),
            Err(error) => complain(hold, &error),
        }
    }

    /// Something has changed at the socket of Linux's that the path of this index has.
    pub fn stirred(&mut self, index: u32, now: Instant) {
        let Some(id) = self.core.paths.at(index) else { return };
        if self.host.listeners.contains_key(&index) || self.host.datagrams.contains_key(&index) {
            self.host.stirred.insert(index);
            self.wake(id, now);
        } else {
            self.stir(id, now);
        }
    }

    /// A path is to look at its socket of Linux's.
    pub(crate) fn stir(&mut self, id: PathId, now: Instant) {
        let Some(name) = self.end_of(id).map(|end| end.name()) else { return };
        match self.sockets.find(name) {
            Some(socket) => socket.ready = true,
            // Its family is gone, and it goes on.
            None => _ = self.host.stirred.insert(id.index),
        }
        self.wake(id, now);
    }

    /// Those whose pause is over look again.
    pub(crate) fn try_again(&mut self, now: Instant) {
        if self.host.again > now {
            return;
        }
        self.host.again = Instant::FAR;
        for index in std::mem::take(&mut self.host.paused) {
            self.stirred(index, now);
        }
    }

    /// Takes a bounded part of what Linux's socket has for a path, if that has stirred.
    pub(crate) fn attend_to_linux(&mut self, id: PathId, now: Instant) {
        if self.host.stirred.is_empty() || !self.host.stirred.remove(&id.index) {
            return;
        }
        match self.host.listeners.get(&id.index).cloned() {
            Some(linux) => self.accept_from_linux(id, &linux, now),
            None if self.host.datagrams.contains_key(&id.index) => self.receive_from_linux(id, now),
            None => _ = self.core.report(id, Report::Ready, now),
        }
    }

    /// Takes a bounded number of connections from Linux's socket of a listen path.
    fn accept_from_linux(&mut self, id: PathId, linux: &Reserved, now: Instant) {
        for _ in 0..BURST {
            if self.has_no_room(id) || self.siblings.iter().any(Sibling::is_busy) {
                return self.host.pause(id.index, now);
            }
            match accept(linux) {
                Ok((socket, local, remote)) => {
                    let by = self.listens_at(id, local);
                    let Some(hold) = by.and_then(|by| self.next_with_room(by)) else {
                        // Whoever listened at that IP has ended.
                        reset(&socket);
                        self.core.drops.count(DropReason::HostRefused);
                        continue;
                    };
                    let coming = Coming::to(&hold);
                    self.pass_to_class(Arrived { hold, coming, socket, local, remote }, now);
                }
                // None is left; or the port has been given back.
                Err(Errno::AGAIN | Errno::INVAL) => return,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    self.core.drops.count(DropReason::HostDescriptors);
                    return self.host.pause(id.index, now);
                }
                // That one has ended already.
                Err(_) => {}
            }
        }
        self.stirred(id.index, now);
    }

    /// The listen path that has what comes to this end, whose socket of Linux's is that of path `id`.
    fn listens_at(&self, id: PathId, local: Endpoint) -> Option<PathId> {
        let end = |id: PathId| self.core.paths.path(id)?.state.attrs.local();
        if end(id).is_none_or(|own| own.is_v6() == local.is_v6()) {
            return Some(id);
        }
        // Only who is bound to any address is at both IPs.
        let there = Endpoint::new(any_like(local.ip()), local.port());
        let mut all = self.listeners.keys().filter_map(|index| self.core.paths.at(*index));
        all.find(|other| end(*other) == Some(there))
    }

    /// The listen path for which Linux's socket goes on when that of this index ends: one at the other IP.
    pub(crate) fn heir_of(&self, index: u32) -> Option<u32> {
        let linux = self.host.listeners.get(&index)?;
        let has_it =
            |hold: &Arc<ListenerHold>| hold.linux.as_ref().is_some_and(|its| Arc::ptr_eq(its, linux));
        let mut others = self.listeners.iter().filter(|(other, _)| !self.host.listeners.contains_key(*other));
        others.find(|(_, holds)| holds.iter().any(has_it)).map(|(other, _)| *other)
    }

    /// Whether a connection of some class would find as many before it, at each of the sockets
    /// that share a listen path, as the backlog allows.
    fn has_no_room(&self, id: PathId) -> bool {
        self.listeners.get(&id.index).is_none_or(|holds| holds.iter().all(|hold| self.is_full(hold)))
    }

    /// The same at one of them. Of what class the next one is, nobody knows before it is accepted; those on their way may all be of one.
    fn is_full(&self, hold: &ListenerHold) -> bool {
        let family = self.families.get(&hold.name.family);
        let listener = family.and_then(|family| family.arena.listener(hold.listener));
        let (backlog, coming) = (hold.backlog.load(SeqCst), hold.coming.load(SeqCst));
        listener.is_none_or(|listener| {
            listener.queue.iter().any(|queue| queue.len().saturating_add(coming) >= backlog)
        })
    }

    /// The listening socket that gets the next connection of a listen path, whichever class it is of.
    fn next_with_room(&mut self, id: PathId) -> Option<Arc<ListenerHold>> {
        let next = self.next_listener(id)?;
        let others = self.listeners.get(&id.index).into_iter().flatten();
        let mut all = [&next].into_iter().chain(others);
        all.find(|hold| !self.is_full(hold)).or(Some(&next)).cloned()
    }

    /// Takes a connection to the domain of its peer's class.
    fn pass_to_class(&mut self, arrived: Arrived, now: Instant) {
        let domain = self.classes.domain_of(arrived.remote.ip(), 0, arrived.local.port());
        match self.siblings.get(domain).filter(|_| domain != self.domain) {
            Some(sibling) => {
                if let Err(reason) = sibling.give(|| Command::Host(arrived)) {
                    self.core.drops.count(reason);
                }
            }
            None => self.open_host(arrived, now),
        }
    }

    /// A connection that another domain has accepted.
    pub fn host_passed_on(&mut self, arrived: Arrived, now: Instant) {
        self.has_come();
        self.open_host(arrived, now);
    }

    /// Makes a path of a connection; it is reset where that cannot be.
    fn open_host(&mut self, arrived: Arrived, now: Instant) {
        // It is on its way until it is brought, or reset.
        let Arrived { hold, coming: _coming, socket, local, remote } = arrived;
        let socket = Arc::new(socket);
        let attrs = Attrs::new()
            .with(Attr::Local(local))
            .with(Attr::Remote(remote))
            .with(Attr::ProtId(ipv4::TCP.into()))
            .with(Attr::Host(true));
        if let Some(id) = self.begin_host(attrs, &hold, &socket, now) {
            if self.host.watch.add(&socket, id.index).is_err() {
                // Nobody would tell what arrives.
                self.core.bell(id, Bell::Abort, now);
            }
            return self.settle(id, now);
        }
        self.withdraw_offer();
        reset(&socket);
        self.core.drops.count(DropReason::HostRefused);
    }

    fn begin_host(
        &mut self,
        attrs: Attrs,
        hold: &Arc<ListenerHold>,
        socket: &Arc<OwnedFd>,
        now: Instant,
    ) -> Option<PathId> {
        // Its program may have closed it while the connection was on its way here.
        self.listeners.values().flatten().find(|known| Arc::ptr_eq(known, hold))?;
        let top = self.top()?;
        self.core.paths.module_mut::<host::Host>()?.offer(Box::new(LinuxSocket(socket.clone())));
        self.take_connection((top, attrs), 0, hold, now)
    }
}
