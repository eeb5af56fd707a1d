//! Datagram sockets: a path whose top end is a ring of records instead of a byte stream. A socket lives in one domain; what
//! it sends is in `sending.rs`, and what another class's ring received for it, until it has a lane there, in `passing.rs`.

use crate::between::names::SocketName;
use crate::between::reserved::PortHold;
use crate::between::sockets::Rings;
use crate::domain::engine::Engine;
use crate::domain::lanes::number;
use crate::domain::socket_end::SocketEnd;
use crate::domain::sockets::Socket;
use crate::recipes::Recipe;
use crate::say::say;
use silk_instant::Instant;
use silk_modules::filter::Filter;
use silk_modules::place;
use silk_path::{Attr, Attrs, Bell, Endpoint, ModuleId, PathId, Wishes};
use silk_stream::{Slot, status};
use silk_wire::ipv4;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering::SeqCst;

/// The options that a new path of a socket that has had another, or none, must hear of.
pub(super) fn options_of(end: &mut SocketEnd) -> impl Iterator<Item = Bell> + use<> {
    let _ = end.new_service();
    end.told.hops = 0;
    options_in(end.socket_slot())
}

/// The options that a socket's program has set.
pub(crate) fn options_in(slot: &Slot) -> impl Iterator<Item = Bell> + use<> {
    let service = slot.service.load(SeqCst) as u8;
    let wishes = crate::domain::wishes::of(slot);
    let service = (service != 0).then_some(Bell::Service(service));
    service.into_iter().chain((wishes != Wishes::default()).then_some(Bell::Wishes(wishes)))
}

impl Engine {
    /// A datagram socket hears these sources of a group from now on.
    pub fn choose_sources(&mut self, name: SocketName, group: IpAddr, filter: Filter<IpAddr>) {
        // One that is gone chooses no more.
        if self.sockets.find(name).is_some() {
            self.core.port.sources.choose(name, group, filter);
        }
    }

    /// A datagram socket was opened, or hears somebody else from now on.
    pub fn open_datagram(
        &mut self,
        (name, rings): (SocketName, Rings),
        locals: &[Endpoint],
        peer: Option<Endpoint>,
        domain: usize,
        hold: &PortHold,
        now: Instant,
    ) {
        for local in locals {
            self.homes.enter(*local, domain);
        }
        let Some(local) = locals.first().copied().filter(|_| domain == self.domain) else { return };
        let Some(top) = self.core.paths.graph().modules().of_kind("socket") else { return };
        let before = self.sockets.find(name).and_then(|socket| socket.path);
        let set = before.and_then(|id| self.core.paths.path(id)?.state.attrs.priority());
        self.deliver_what_waits(name, now);
        let mut kept = before.and_then(|id| self.core.port.take_datagrams(id));
        if before.is_none() {
            // There was no path for its last address or peer.
            kept = self.sockets.find(name).and_then(|socket| socket.end.take());
            const FAILED: u32 = status::FAILED | status::PEER_FIN | status::SEND_CLOSED;
            kept.iter_mut().for_each(|end| end.change_status(0, FAILED));
        }
        if let Some((id, end)) = before.zip(kept.as_deref_mut()) {
            // What was sent before is for whom it was sent to.
            self.send_what_is_there((id, name), end, now);
        }
        self.drop_twin(name, now);
        if let Some(id) = before {
            self.end_hearing_linux(id, now);
            self.destroy(id, now);
        }
        let fresh = || SocketEnd::new(&self.families.get(&name.family)?.arena, name, rings).map(Box::new);
        let Some(end) = kept.or_else(fresh) else { return };
        let sender = peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip());
        let class = self.classes.class_of(sender, 0, local.port());
        let mut attrs = self.attrs_of(local, class);
        // What its program has set goes on to hold, where it still may.
        if let Some(priority) = set.filter(|priority| *priority <= self.classes.max_priority(class)) {
            attrs = attrs.with(Attr::Priority(priority));
        }
        if let Some(sharing) = hold.sharing {
            attrs = attrs.with(Attr::Shared(sharing)).with(place(number(name), false));
        }
        if let Some(peer) = peer {
            attrs = attrs.with(Attr::Remote(peer));
            let linux = hold.linux.as_ref().filter(|_| self.is_elsewhere(peer));
            if linux.is_some_and(|linux| self.offer_datagrams(linux)) {
                attrs = attrs.with(Attr::Host(true));
            }
        }
        self.put_on_path(name, top, attrs, class, end, now);
        if let [_, other] = locals
            && attrs.host() != Some(true)
        {
            self.add_twin(name, top, attrs.with(Attr::Local(*other)), class, now);
        }
        let path = self.sockets.find(name).and_then(|socket| socket.path);
        if let (Some(first), Some(linux)) = (path, &hold.linux) {
            self.hear_linux((name, locals), first, linux);
        }
    }

    /// What the path of a datagram socket is told.
    pub(super) fn attrs_of(&self, local: Endpoint, class: usize) -> Attrs {
        Attrs::new()
            .with(Attr::Local(local))
            .with(Attr::ProtId(ipv4::UDP.into()))
            .with(Attr::InputQueue(self.input_queue(class)))
            .with(Attr::Class(class as u8))
    }

    /// What waits for the paths of a datagram socket, which end, is the socket's all the same.
    pub(super) fn deliver_what_waits(&mut self, name: SocketName, now: Instant) {
        for id in self.paths_of(name) {
            while let Some(ticket) = self.core.paths.dequeue(id) {
                self.deliver(id, ticket, false, now);
            }
        }
    }

    /// The paths of a datagram socket: over silk's devices, one for each family that it hears, and over Linux.
    pub(crate) fn paths_of(&self, name: SocketName) -> impl Iterator<Item = PathId> + use<> {
        let socket = self.sockets.get(name);
        let first = socket.and_then(|socket| socket.path);
        let over_linux =
            first.and_then(|first| self.path_over_linux(first)).filter(|path| Some(*path) != first);
        [first, socket.and_then(|socket| socket.twin), over_linux].into_iter().flatten()
    }

    /// Tells all paths of a datagram socket of an option.
    pub(super) fn tell_paths_of(&mut self, name: SocketName, bell: Bell, now: Instant) {
        for path in self.paths_of(name) {
            self.core.bell(path, bell, now);
        }
    }

    /// The second path of a socket that hears both families.
    pub(super) fn add_twin(
        &mut self,
        name: SocketName,
        top: ModuleId,
        attrs: Attrs,
        class: usize,
        now: Instant,
    ) {
        let Some(first) = self.sockets.find(name).and_then(|socket| socket.path) else { return };
        match self.core.paths.create(top, attrs, None, now, &mut self.core.port) {
            Ok(twin) => {
                self.admit(twin, class);
                self.admit_with(twin, class, attrs.priority());
                self.core.port.pair(first, twin);
                if let Some(socket) = self.sockets.find(name) {
                    socket.twin = Some(twin);
                }
                // The first was told of them when it was made.
                let known = self.core.port.datagrams(first).map(|end| end.socket());
                let options = known.and_then(|known| self.slot_of(known)).map(options_in);
                for bell in options.into_iter().flatten() {
                    self.core.bell(twin, bell, now);
                }
            }
            Err(error) => {
                say!(Error, "silkd: domain {}: a datagram socket hears one IP only: {error}", self.domain);
            }
        }
    }

    /// That path ends.
    pub(super) fn drop_twin(&mut self, name: SocketName, now: Instant) {
        if let Some(twin) = self.sockets.find(name).and_then(|socket| socket.twin.take()) {
            self.core.port.part(twin);
            self.destroy(twin, now);
        }
    }

    /// A socket of `PF_SCOUT` builds a path of the graph.
    pub fn open_scout(&mut self, name: SocketName, rings: Rings, recipe: &Recipe, now: Instant) {
        let fresh = || SocketEnd::new(&self.families.get(&name.family)?.arena, name, rings).map(Box::new);
        let Some(mut end) = fresh() else { return };
        let remote = recipe.attrs.remote().map_or(Ipv4Addr::UNSPECIFIED.into(), |remote| remote.ip());
        let class = self.classes.class_of(remote, 0, recipe.attrs.local().map_or(0, |local| local.port()));
        let attrs = recipe
            .attrs
            .with(Attr::InputQueue(self.input_queue(class)))
            .with(Attr::Class(class as u8))
            .with(Attr::Owner(name.as_owner()));
        let Some(top) = self.core.paths.graph().modules().find(&recipe.module) else {
            end.fail(libc::EPROTONOSUPPORT);
            return self.keep_ended(name, end);
        };
        self.put_on_path(name, top, attrs, class, end, now);
    }

    /// Makes the path of a datagram socket, or lets the socket say why there is none.
    pub(super) fn put_on_path(
        &mut self,
        name: SocketName,
        top: ModuleId,
        attrs: Attrs,
        class: usize,
        mut end: Box<SocketEnd>,
        now: Instant,
    ) {
        match self.core.paths.create(top, attrs, None, now, &mut self.core.port) {
            Ok(id) => {
                self.admit(id, class);
                self.admit_with(id, class, attrs.priority());
                let priority = attrs.priority().map_or_else(|| self.classes.priority(class), u32::from);
                self.show_priority(name, priority);
                end.change_status(status::CONNECTED, 0);
                let mtu = self.core.paths.path(id).and_then(|path| path.state.attrs.path_mtu());
                end.show_path_mtu(mtu.unwrap_or(0));
                let options = options_of(&mut end);
                self.core.port.put_datagrams(id, end);
                for bell in options {
                    self.core.bell(id, bell, now);
                }
                // Whoever serves it goes on to. The program may have rung before the path was there to hear it.
                let known = self.sockets.remove(name);
                let mut socket = known.map_or_else(|| Socket::without_path(true), |known| *known);
                (socket.path, socket.rung) = (Some(id), true);
                self.sockets.insert(name, socket);
                self.giving_back.wake(now);
                self.tell_program(id);
                self.wake(id, now);
            }
            Err(error) => {
                say!(Error, "silkd: domain {}: no path for a datagram socket: {error}", self.domain);
                self.withdraw_offer();
                end.fail(libc::EADDRNOTAVAIL);
                self.keep_ended(name, end);
            }
        }
    }

    /// A socket that never got its path waits to be closed.
    fn keep_ended(&mut self, name: SocketName, mut end: Box<SocketEnd>) {
        // Whoever served it is still to be let go.
        let known = self.sockets.remove(name);
        let mut socket = known.map_or_else(|| Socket::without_path(true), |known| *known);
        let wake = end.take_news();
        (socket.path, socket.end) = (None, Some(end));
        self.sockets.insert(name, socket);
        self.tell_ended(name, wake);
        self.answer_ended(name);
    }

    /// A datagram socket's path ends with its socket.
    pub(crate) fn close_datagrams(&mut self, id: PathId, name: SocketName, now: Instant) {
        let twin = self.sockets.find(name).and_then(|socket| socket.twin);
        let mut end = self.core.port.take_datagrams(id);
        if let Some(end) = end.as_deref_mut() {
            self.send_what_is_there((id, name), end, now);
        }
        self.core.port.sources.forget(name);
        let is_lane = end.as_ref().is_some_and(|end| end.is_lane());
        let locals = [Some(id), twin].map(|id| self.core.paths.path(id?)?.state.attrs.local());
        self.drop_twin(name, now);
        self.end_hearing_linux(id, now);
        let cpu = self.end_serving(name);
        self.core.paths.charge_cpu(id, 0, cpu);
        self.destroy(id, now);
        for local in locals.into_iter().flatten().filter(|_| !is_lane) {
            self.leave_home(local);
        }
        if let Some(end) = end {
            self.free(&end);
            // Somebody may wait for its port.
            self.wake_control();
        }
    }
}
