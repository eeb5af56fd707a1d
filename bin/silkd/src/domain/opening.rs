//! How paths begin: a program listens or connects, a handshake completes, a datagram socket
//! is bound.

use crate::between::listener_hold::ListenerHold;
use crate::between::names::SocketName;
use crate::between::reported::Reported;
use crate::between::sockets::Rings;
use crate::between::told::Told;
use crate::classes::terms_of;
use crate::domain::acceptance::{Brought, bring, call_one};
use crate::domain::engine::Engine;
use crate::domain::family_end::FamilyEnd;
use crate::domain::socket_end::SocketEnd;
use crate::domain::sockets::Socket;
use crate::domain::wishes;
use crate::say::say;
use crate::slots::{clear, place_rings, retire, store_address};
use silk_device::Frame;
use silk_instant::Instant;
use silk_path::{Attr, Attrs, Bell, CreateError, DropReason, Endpoint, ModuleId, PathId, Request};
use silk_sched::{Member, Terms};
use silk_stream::{AcceptQueue, OWNER_NOBODY, kind, status};
use silk_wire::ipv4;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// Tickets that may wait for a listening path: every one is a handshake, and cheap.
const LISTEN_QUEUE: u16 = 1024;

impl Engine {
    /// The path of a frame whose path may just have been made.
    pub(crate) fn classify_again(&mut self, frame: Frame) -> Result<PathId, DropReason> {
        self.core.path_of(Frame { path: 0, ..frame })
    }

    /// The module at the top of sockets' paths.
    pub(crate) fn top(&self) -> Option<ModuleId> {
        self.core.paths.graph().modules().of_kind("socket")
    }

    /// Lets a path into the schedule on its class's terms.
    pub(crate) fn admit(&mut self, id: PathId, class: usize) {
        let terms = self.classes.classes.get(class).map_or_else(Terms::default, |(class, _)| terms_of(class));
        // What a policy cannot keep of the terms it refuses whole. The configuration has seen to the others: only for
        // what is reserved there may be no room any more.
        if self.core.policy.admit(Member(id.index), terms).is_err() {
            let _ = self.core.policy.admit(Member(id.index), Terms { reserved: None, ..terms });
        }
    }

    /// Gives a path of the graph the priority that it names.
    pub(crate) fn admit_with(&mut self, id: PathId, class: usize, priority: Option<u8>) {
        if let Some(priority) = priority {
            // What the policy has no room for stays on its class's terms.
            let _ = self.core.policy.admit(Member(id.index), self.classes.terms(class, priority));
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

    /// How many messages may wait for a path of a class.
    pub(crate) fn input_queue(&self, class: usize) -> u16 {
        self.classes
            .classes
            .get(class)
            .map_or(256, |(class, _)| class.limits.queue.min(u32::from(u16::MAX)) as u16)
    }

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
                self.core.paths.bell(id, now, &mut self.core.port, Bell::DeferAccept(defer_accept));
                self.core.paths.bell(id, now, &mut self.core.port, Bell::Wishes(wishes));
                let service = self.service_of(hold, end);
                self.core.paths.bell(id, now, &mut self.core.port, Bell::Service(service));
                if on_linux {
                    self.listen_on_linux(id, hold, defer_accept);
                }
                self.listeners.insert(id.index, vec![hold.clone()]);
                true
            }
            Err(error) => {
                say!("silkd: domain {}: cannot listen on {end}: {error}", self.domain);
                false
            }
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
                self.core.paths.bell(id, now, &mut self.core.port, Bell::DeferAccept(defer_accept));
                let local = self.core.paths.path(id).and_then(|path| path.state.attrs.local());
                let (wishes, service) =
                    (self.wished_by(hold.name), local.map(|end| self.service_of(hold, end)));
                for bell in [Some(Bell::Wishes(wishes)), service.map(Bell::Service)].into_iter().flatten() {
                    self.core.paths.bell(id, now, &mut self.core.port, bell);
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
        let mut left = Vec::new();
        for (index, holds) in &mut self.listeners {
            holds.retain(|hold| hold.name != name);
            left.extend(holds.is_empty().then_some(*index));
        }
        for index in left {
            self.listeners.remove(&index);
            self.full.remove(&index);
            self.host.forget(index);
            if let Some(id) = self.core.paths.at(index) {
                self.destroy(id, now);
            }
        }
        self.reset_unaccepted(name, now);
    }

    /// Connections that nobody has accepted of a listening socket that is gone.
    fn reset_unaccepted(&mut self, name: SocketName, now: Instant) {
        let Some(arena) = self.families.get(&name.family).map(|family| family.arena.clone()) else { return };
        let number = arena.slot(name.slot).map(|record| record.listener.load(SeqCst));
        let Some(listener) = number.and_then(|n| arena.listener(n)) else { return };
        let Some(queue) = listener.queue.get(self.domain) else { return };
        let next = || queue.pop(OWNER_NOBODY, |n| arena.slot(n).map(|record| &record.owner));
        // More there are not, however many the program says.
        let unaccepted: Vec<_> = (0..AcceptQueue::CAPACITY).map_while(|_| next()).collect();
        for slot in unaccepted {
            self.close(SocketName { family: name.family, slot }, None, true, now);
        }
    }

    /// Does what paths have asked for during their run.
    pub(crate) fn answer_requests(&mut self, now: Instant) {
        while !self.core.port.requests.is_empty() {
            let mut requests = std::mem::take(&mut self.core.port.requests);
            for request in requests.drain(..) {
                self.answer_one(request, now);
            }
            // Keeps the allocation, and whatever the answers have asked for in turn.
            if self.core.port.requests.is_empty() {
                self.core.port.requests = requests;
            }
        }
    }

    fn answer_one(&mut self, request: Request, now: Instant) {
        match request {
            Request::Create { top, attrs, by, service } => self.accept((top, attrs), by, service, now),
            Request::Destroy(id) => self.destroy(id, now),
            Request::Resolve { device, address } => self.resolve(device, address),
            Request::Wake(id) => {
                self.core.paths.report(id, now, &mut self.core.port, silk_path::Report::Resolved);
                self.conclude(id, now);
            }
            Request::Report { udp, local, remote, report, quoted } => {
                self.reported(udp, Reported { local, remote, report, quoted, to_lane: false }, now);
            }
            Request::Arrived { device, mut frame, checksum } => {
                self.reassembled(&mut frame, device, checksum, now);
            }
            Request::Routers(told) => self.tell_control(Told::Routers(told)),
            Request::Duplicate { address, station } => {
                self.tell_control(Told::Duplicate { address, station });
            }
            Request::Claimed { address, station } => {
                self.tell_control(Told::Claimed { address, station });
            }
            Request::RouterLost(router) => self.lose_router(router),
            // The others hear of it, where it is believed here.
            Request::Redirected { router, destination, hop, link } => {
                if self.redirect(router, destination, hop, now) {
                    self.redirected(hop, link, now);
                    self.tell_control(Told::Redirected { router, destination, hop });
                }
            }
        }
    }

    /// A handshake has completed, with a packet of this `service`.
    fn accept(&mut self, (top, attrs): (ModuleId, Attrs), by: PathId, service: u8, now: Instant) {
        let Some(hold) = self.next_listener(by) else { return };
        // Without a path (its class has as many as it may) the handshake is forgotten: what the peer sends next is
        // answered with a reset.
        let _ = self.take_connection((top, attrs), service, &hold, now);
    }

    /// A path, a slot and rings for a connection to a listening socket. `None`: the arena is
    /// full, the class refuses it (which counts that), it is gone meanwhile, or the peer has become refused.
    pub(crate) fn take_connection(
        &mut self,
        (top, attrs): (ModuleId, Attrs),
        service: u8,
        hold: &Arc<ListenerHold>,
        now: Instant,
    ) -> Option<PathId> {
        let (local, remote) = (attrs.local()?, attrs.remote()?);
        if self.core.tables.refuses(remote.ip()) {
            self.core.drops.count(DropReason::Refused);
            return None;
        }
        let Some((name, end)) = self.new_socket(hold, local, remote) else {
            self.core.drops.count(DropReason::NoMemory);
            return None;
        };
        let class = self.classes.class_of(remote.ip(), service >> 2, local.port());
        let attrs = attrs
            .with(Attr::Class(class as u8))
            .with(Attr::InputQueue(self.input_queue(class)))
            .with(Attr::Owner(name.as_owner()));
        let rings = end.rings();
        match self.core.paths.create(top, attrs, Some(Box::new(end)), now, &mut self.core.port) {
            Ok(id) => {
                self.admit(id, class);
                self.show_priority(name, self.classes.priority(class));
                self.sockets.insert(name, Socket::on(id, false));
                self.accepted.push((name, hold.clone()));
                self.apply_first_wishes(id, now);
                self.apply_first_options(id, now);
                Some(id)
            }
            Err(_) => {
                if let Some(family) = self.families.get_mut(&name.family) {
                    give_back(family, name, rings);
                }
                None
            }
        }
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
        self.core.paths.bell(id, now, &mut self.core.port, Bell::Full(full));
    }

    /// A slot with rings, for a connection that a program of the listener's family will
    /// accept. `None` when the arena is full.
    fn new_socket(
        &mut self,
        hold: &ListenerHold,
        local: Endpoint,
        remote: Endpoint,
    ) -> Option<(SocketName, SocketEnd)> {
        let (receive, send) = self.rings;
        let domain = self.domain;
        let family = self.families.get_mut(&hold.name.family)?;
        let slot = family.pool.take_slot()?;
        let name = SocketName { family: hold.name.family, slot };
        let Some(rings) = take_rings(family, receive, send) else {
            family.pool.return_slot(slot);
            return None;
        };
        let record = family.arena.slot(slot)?;
        clear(record);
        record.kind.store(kind::STREAM, SeqCst);
        record.owner.store(OWNER_NOBODY, SeqCst);
        record.holders.store(1, SeqCst);
        record.domain.store(domain as u32, SeqCst);
        record.status.store(status::CONNECTED, SeqCst);
        place_rings(record, rings);
        store_address(&record.local, local);
        store_address(&record.peer, remote);
        if let Some(listening) = family.arena.slot(hold.name.slot) {
            wishes::inherit(listening, record, remote.is_v6());
        }
        let end = SocketEnd::new(&family.arena, name, rings)?;
        Some((name, end))
    }

    /// Brings the connections accepted in the last run to their programs. What is full, or
    /// gone, is reset.
    pub(crate) fn bring_accepted(&mut self, now: Instant) {
        while let Some((name, hold)) = self.accepted.pop() {
            self.giving_back.wake(now);
            match self.bring_one(name, &hold) {
                Some(Brought::Handed(thread)) => self.serve(name, thread),
                Some(Brought::Queued) => {}
                Some(Brought::Full) | None => self.close(name, None, true, now),
            }
        }
    }

    fn bring_one(&mut self, name: SocketName, hold: &ListenerHold) -> Option<Brought> {
        let delivery = self.delivery();
        let family = self.families.get(&name.family)?;
        let listener = family.arena.listener(hold.listener)?;
        if listener.queue.get(delivery.rank)?.len() >= hold.backlog.load(SeqCst) {
            return Some(Brought::Full);
        }
        let on = (hold.name.slot, family.arena.slot(hold.name.slot)?);
        let connection = (name.slot, family.arena.slot(name.slot)?);
        Some(bring(family, (hold.listener, listener), on, connection, delivery))
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

    /// A program connects.
    pub fn connect(
        &mut self,
        name: SocketName,
        rings: Rings,
        (local, peer): (Endpoint, Endpoint),
        priority: Option<u8>,
        now: Instant,
    ) {
        let Some(family) = self.families.get(&name.family) else { return };
        let Some(end) = SocketEnd::new(&family.arena, name, rings) else { return };
        let Some(top) = self.top() else { return };
        self.giving_back.wake(now);
        let class = self.classes.class_of(peer.ip(), 0, local.port());
        let service = end.slot().service.load(SeqCst) as u8;
        let attrs = if service == 0 { Attrs::new() } else { Attrs::new().with(Attr::Tos(service)) };
        let attrs = wishes::attrs(&wishes::of(end.slot()), attrs)
            .with(Attr::Local(local))
            .with(Attr::Remote(peer))
            .with(Attr::ProtId(ipv4::TCP.into()))
            .with(Attr::Class(class as u8))
            .with(Attr::InputQueue(self.input_queue(class)))
            .with(Attr::Owner(name.as_owner()));
        match self.core.paths.create(top, attrs, Some(Box::new(end)), now, &mut self.core.port) {
            Ok(id) => {
                self.admit(id, class);
                self.admit_with(id, class, priority);
                self.show_priority(name, priority.map_or_else(|| self.classes.priority(class), u32::from));
                // The program may have rung before the path was there to hear it.
                let mut socket = Socket::on(id, true);
                socket.rung = true;
                self.sockets.insert(name, socket);
                self.apply_first_wishes(id, now);
                // The SYN leaves with the first look at the path.
                self.core.paths.bell(id, now, &mut self.core.port, Bell::Sent);
                self.settle(id, now);
                self.wake(id, now);
            }
            Err(error) => self.refuse(name, rings, &error),
        }
    }

    /// A connection that could not even begin: its socket says why.
    fn refuse(&mut self, name: SocketName, rings: Rings, error: &CreateError) {
        let errno = match error {
            CreateError::NoRoute(_) => libc::ENETUNREACH,
            CreateError::Overlap { .. } => libc::EADDRNOTAVAIL,
            CreateError::Refused(_) | CreateError::TableFull | CreateError::ClassifierFull => libc::ENOBUFS,
            _ => libc::EINVAL,
        };
        let Some(family) = self.families.get(&name.family) else { return };
        let Some(mut end) = SocketEnd::new(&family.arena, name, rings) else { return };
        end.fail(errno);
        let mut socket = Socket::without_path(true);
        let wake = end.take_news();
        socket.end = Some(Box::new(end));
        self.sockets.insert(name, socket);
        self.tell_ended(name, wake);
        // The program may have closed it already.
        self.answer_ended(name);
    }
}

fn take_rings(family: &mut FamilyEnd, receive: u32, send: u32) -> Option<Rings> {
    let rx = family.pool.take_ring(receive)?;
    let Some(tx) = family.pool.take_ring(send) else {
        family.pool.return_ring(rx);
        return None;
    };
    Some(Rings { rx, tx })
}

/// A slot and its rings return to the domain's book.
pub(crate) fn give_back(family: &mut FamilyEnd, name: SocketName, rings: Rings) {
    retire(&family.arena, name.slot);
    family.pool.return_ring(rings.rx);
    family.pool.return_ring(rings.tx);
    family.pool.return_slot(name.slot);
}
