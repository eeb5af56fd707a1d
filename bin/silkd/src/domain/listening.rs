//! What listens: its path, the sockets that share it, and when there is no room for one connection more.

use crate::between::listener_hold::ListenerHold;
use crate::between::names::SocketName;
use crate::domain::acceptance::call_one;
use crate::domain::engine::Engine;
use crate::domain::wishes;
use crate::say::say;
use silk_instant::Instant;
use silk_path::{Attr, Attrs, Bell, DropReason, Endpoint, PathId};
use silk_sched::Member;
use silk_stream::{AcceptQueue, OWNER_NOBODY};
use silk_wire::ipv4;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// Tickets that may wait for a listening path: every one is a handshake, and cheap.
const LISTEN_QUEUE: u16 = 1024;

impl Engine {
    /// A program listens.
    pub fn listen(&mut self, hold: &Arc<ListenerHold>, defer_accept: u32, now: Instant) {
        for (n, end) in hold.ends.iter().enumerate() {
            // Linux's socket is one, whatever it listens to; it belongs to the first.
            if self.listen_at(hold, *end, defer_accept, n == 0, now) {
                self.listening.insert(hold.name, hold.clone());
            }
        }
    }

    /// Listens at one of a socket's ends. Whether it does.
    fn listen_at(
        &mut self,
        hold: &Arc<ListenerHold>,
        end: Endpoint,
        defer_accept: u32,
        on_linux: bool,
        now: Instant,
    ) -> bool {
        // Several sockets share the port (SO_REUSEPORT): they share the listen path.
        if let Some(holds) = self.holds_at(end) {
            holds.push(hold.clone());
            return true;
        }
        let Some(top) = self.top() else { return false };
        let class = self.classes.default;
        let wishes = self.wished_by(hold.name);
        let attrs = hold.sharing.map_or_else(Attrs::new, |sharing| Attrs::new().with(Attr::Shared(sharing)));
        let attrs = wishes::attrs(&wishes, attrs)
            .with(Attr::Listen(true))
            .with(Attr::Local(end))
            .with(Attr::ProtId(ipv4::TCP.into()))
            .with(Attr::Backlog(self.listen.syn_backlog.min(u32::from(u16::MAX)) as u16))
            .with(Attr::InputQueue(LISTEN_QUEUE))
            .with(Attr::Class(class as u8));
        match self.core.paths.create(top, attrs, None, now, &mut self.core.port) {
            Ok(id) => {
                self.admit_listener(id);
                self.core.bell(id, Bell::DeferAccept(defer_accept), now);
                self.core.bell(id, Bell::Wishes(wishes), now);
                let service = self.service_of(hold, end);
                self.core.bell(id, Bell::Service(service), now);
                if on_linux {
                    self.listen_on_linux(id, hold, defer_accept);
                }
                self.listeners.insert(id.index, vec![hold.clone()]);
                true
            }
            Err(error) => {
                say!(Error, "silkd: domain {}: cannot listen on {end}: {error}", self.domain);
                false
            }
        }
    }

    /// Listening paths have a priority of their own among the paths of their domain
    /// (SILK §4.2: above the standard connections, below the preferred ones).
    fn admit_listener(&mut self, id: PathId) {
        let terms = self.classes.waiting_terms(self.listen.priority);
        if self.core.policy.admit(Member(id.index), terms).is_err() {
            let _ = self.core.policy.admit(Member(id.index), self.classes.waiting_terms(0));
        }
    }

    /// The sockets that listen at just this end.
    fn holds_at(&mut self, end: Endpoint) -> Option<&mut Vec<Arc<ListenerHold>>> {
        let Self { listeners, core, .. } = self;
        let is_it = |index: u32| {
            let path = core.paths.at(index).and_then(|id| core.paths.path(id));
            path.and_then(|path| path.state.attrs.local()) == Some(end)
        };
        listeners.iter_mut().find(|(index, _)| is_it(**index)).map(|(_, holds)| holds)
    }

    /// A program that listens has called `listen` again, or changed `TCP_DEFER_ACCEPT`.
    pub fn listen_on(&mut self, name: SocketName, backlog: u32, defer_accept: u32, now: Instant) {
        for (index, holds) in &self.listeners {
            let Some(hold) = holds.iter().find(|hold| hold.name == name) else { continue };
            hold.backlog.store(backlog, SeqCst);
            self.host.change_terms(*index, hold, defer_accept);
            if let Some(id) = self.core.paths.at(*index) {
                self.core.bell(id, Bell::DeferAccept(defer_accept), now);
                let local = self.core.paths.path(id).and_then(|path| path.state.attrs.local());
                let (wishes, service) =
                    (self.wished_by(hold.name), local.map(|end| self.service_of(hold, end)));
                for bell in [Some(Bell::Wishes(wishes)), service.map(Bell::Service)].into_iter().flatten() {
                    self.core.bell(id, bell, now);
                }
            }
        }
    }

    /// The service bits of what answers SYNs at one of a listening socket's ends.
    fn service_of(&self, hold: &ListenerHold, end: Endpoint) -> u8 {
        self.slot_of(hold.name).map_or(0, |slot| wishes::service(slot, end.is_v6()))
    }

    /// A program listens no longer.
    pub fn unlisten(&mut self, name: SocketName, now: Instant) {
        let Some(_hold) = self.listening.remove(&name) else { return };
        // Who watches it beside others' sockets is to look: it may have been shut down.
        if let Some(family) = self.families.get(&name.family)
            && let Some(slot) = family.arena.slot(name.slot)
        {
            family.ring_bells(name.slot, slot);
        }
        let mut left = Vec::new();
        for (index, holds) in &mut self.listeners {
            holds.retain(|hold| hold.name != name);
            left.extend(holds.is_empty().then_some(*index));
        }
        for index in left {
            self.listeners.remove(&index);
            self.full.remove(&index);
            let heir = self.heir_of(index);
            self.host.forget(index, heir);
            if let Some(id) = self.core.paths.at(index) {
                self.destroy(id, now);
            }
        }
        self.reset_unaccepted(name);
    }

    /// Connections that nobody has accepted of a listening socket that is gone.
    fn reset_unaccepted(&mut self, name: SocketName) {
        let Some(arena) = self.families.get(&name.family).map(|family| family.arena.clone()) else { return };
        let number = arena.slot(name.slot).map(|record| record.listener.load(SeqCst));
        let Some(listener) = number.and_then(|n| arena.listener(n)) else { return };
        let Some(queue) = listener.queue.get(self.domain) else { return };
        let next = || queue.pop(OWNER_NOBODY, |n| arena.slot(n).map(|record| &record.owner));
        // More there are not, however many the program says.
        let unaccepted = (0..AcceptQueue::CAPACITY).map_while(|_| next()).collect();
        self.listener_gone(name.family, unaccepted);
    }

    /// The listening socket that gets the next connection of a listen path.
    pub(crate) fn next_listener(&mut self, by: PathId) -> Option<Arc<ListenerHold>> {
        let holds = self.listeners.get_mut(&by.index)?;
        // Several share a port: they take turns, as far as they have room.
        holds.rotate_left(1);
        let holds = self.listeners.get(&by.index)?;
        holds.iter().rev().find(|hold| self.fullness(hold).is_none()).or(holds.last()).cloned()
    }

    /// Why a listening socket's program can take no connection more: as many wait to be accepted as its backlog
    /// allows, or its arena has no room for one.
    fn fullness(&self, hold: &ListenerHold) -> Option<DropReason> {
        let family = self.families.get(&hold.name.family)?;
        let queue = family.arena.listener(hold.listener)?.queue.get(self.domain)?;
        if queue.len() >= hold.backlog.load(SeqCst) {
            return Some(DropReason::TcpAcceptQueue);
        }
        (!family.pool.has_room(self.rings.into())).then_some(DropReason::NoMemory)
    }

    /// Tells a listen path when there is no room for one more connection, and when there is again:
    /// meanwhile it takes neither SYNs nor last acknowledgements, and the peers try again, as
    /// with Linux. A connection that was made could only be reset.
    pub(crate) fn tell_fullness(&mut self, id: PathId, now: Instant) {
        let holds = self.listeners.get(&id.index);
        // Several may share a port: as long as one has room, there is room.
        let reasons = holds.into_iter().flatten().map(|hold| self.fullness(hold));
        let full = reasons.reduce(Option::and).flatten();
        if full == self.full.get(&id.index).copied() {
            return;
        }
        match full {
            Some(why) => _ = self.full.insert(id.index, why),
            None => _ = self.full.remove(&id.index),
        }
        self.core.bell(id, Bell::Full(full), now);
    }

    /// Queued connections of a listening socket wait for a thread: calls one, now that one has
    /// gone, or that one that must not take them has asked.
    pub(crate) fn call_acceptor(&self, hold: &ListenerHold) {
        let delivery = self.delivery();
        let Some(family) = self.families.get(&hold.name.family) else { return };
        let Some(listener) = family.arena.listener(hold.listener) else { return };
        if listener.queue.get(delivery.rank).is_some_and(|queue| !queue.is_empty()) {
            call_one(family, (hold.listener, listener), delivery);
        }
    }
}
