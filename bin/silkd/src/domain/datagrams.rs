//! Datagram sockets: a path whose top end is a ring of records instead of a byte stream. A
//! socket lives in one domain; frames for it that another class's ring received are passed
//! on, a bounded number at a time, until it has a lane there.

use crate::between::event::Event as Told;
use crate::between::names::SocketName;
use crate::between::reserved::PortHold;
use crate::between::sockets::Rings;
use crate::domain::engine::Engine;
use crate::domain::lanes::number;
use crate::domain::port::note_moved;
use crate::domain::socket_end::SocketEnd;
use crate::domain::sockets::Socket;
use crate::recipes::Recipe;
use crate::say::say;
use silk_device::Frame;
use silk_executor::join::checksum_of;
use silk_instant::Instant;
use silk_modules::filter::Filter;
use silk_modules::host;
use silk_modules::ip::Ip;
use silk_modules::ip6::Ip6;
use silk_modules::place;
use silk_path::classify::{Verdict, skip_extensions};
use silk_path::{
    Attr, Attrs, Bell, Checksum, DropReason, Endpoint, Message, Meta, ModuleId, NOWHERE, Outcome, PathId,
    Wishes,
};
use silk_stream::{Datagram, Slot, Way, request, status};
use silk_wire::arp::{self, Operation};
use silk_wire::{eth, ipv4, ipv6, ndp, udp};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering::SeqCst;

/// Datagrams sent for one doorbell before others have a turn.
const SENDING: usize = 64;

/// A datagram socket whose datagrams leave.
struct Leaving {
    name: SocketName,
    /// The socket that its program knows, whose options hold: of a lane, the one that it is of.
    socket: SocketName,
    /// Its path, and the second one, which is IPv6's.
    first: PathId,
    twin: Option<PathId>,
    /// How the last one went.
    told: Way,
    /// Datagrams that have left.
    count: usize,
}

/// The way that a datagram leaves.
#[derive(Clone, Copy)]
struct Course {
    /// The path of its socket.
    path: PathId,
    /// IP's own path, where that of its socket does not lead there, and the end that the datagram is from.
    stray: Option<(PathId, Endpoint)>,
    /// The address that it is from, where its program says none and the path does not know.
    from: Option<IpAddr>,
}

/// Datagrams that one record may be: Linux's `UDP_MAX_SEGMENTS`.
const SEGMENTS: usize = 128;
/// Datagrams that are sent of a socket that is closed, or over a path that it leaves; more are its loss, or go over the next.
const LAST_WORDS: usize = 1024;

/// The options that a new path of a socket that has had another, or none, must hear of.
fn options_of(end: &mut SocketEnd) -> impl Iterator<Item = Bell> + use<> {
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
            self.hear_linux(name, first, linux);
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

    /// The paths of a datagram socket: over silk's devices, one for each family that it hears, and over Linux.
    fn paths_of(&self, name: SocketName) -> impl Iterator<Item = PathId> + use<> {
        let socket = self.sockets.get(name);
        let first = socket.and_then(|socket| socket.path);
        let over_linux =
            first.and_then(|first| self.path_over_linux(first)).filter(|path| Some(*path) != first);
        [first, socket.and_then(|socket| socket.twin), over_linux].into_iter().flatten()
    }

    /// Tells all paths of a datagram socket of an option.
    fn tell_paths_of(&mut self, name: SocketName, bell: Bell, now: Instant) {
        for path in self.paths_of(name) {
            self.core.paths.bell(path, now, &mut self.core.port, bell);
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
                self.core.port.pair(first, twin);
                if let Some(socket) = self.sockets.find(name) {
                    socket.twin = Some(twin);
                }
            }
            Err(error) => {
                say!("silkd: domain {}: a datagram socket hears one IP only: {error}", self.domain);
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
            .with(Attr::Owner(u64::from(name.family) << 32 | u64::from(name.slot)));
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
                    self.core.paths.bell(id, now, &mut self.core.port, bell);
                }
                // The program may have rung before the path was there to hear it.
                let mut socket = Socket::on(id, true);
                socket.rung = true;
                self.sockets.insert(name, socket);
                self.tell_program(id);
                self.wake(id, now);
            }
            Err(error) => {
                say!("silkd: domain {}: no path for a datagram socket: {error}", self.domain);
                if let Some(module) = self.core.paths.module_mut::<host::Host>() {
                    module.withdraw();
                }
                end.fail(libc::EADDRNOTAVAIL);
                self.keep_ended(name, end);
            }
        }
    }

    /// A socket that never got its path waits to be closed.
    fn keep_ended(&mut self, name: SocketName, mut end: Box<SocketEnd>) {
        let mut socket = Socket::without_path(true);
        let wake = end.take_news();
        socket.end = Some(end);
        self.sockets.insert(name, socket);
        self.tell_ended(name, wake);
    }

    /// Sends what the program has written to a datagram socket.
    pub(crate) fn send_datagrams(&mut self, id: PathId, now: Instant) {
        let Some(mut end) = self.core.port.take_datagrams(id) else { return };
        let (name, asked) = (end.name(), end.slot().request.swap(0, SeqCst));
        note_moved(&mut self.core.port.moved, end.socket());
        // A lane is not told of its socket's options.
        let asked = if end.is_lane() { asked | request::OPTIONS | request::WISHES } else { asked };
        if asked & request::OPTIONS != 0 {
            end.want_what_is_asked();
            if let Some(service) = end.new_service() {
                self.tell_paths_of(name, Bell::Service(service), now);
            }
        }
        if asked & (request::WISHES | request::OPTIONS) != 0 {
            self.tell_paths_of(name, Bell::Wishes(crate::domain::wishes::of(end.socket_slot())), now);
            end.told.hops = 0;
        }
        let mut left = SENDING;
        let twin = self.sockets.get(name).and_then(|socket| socket.twin);
        let mut leaving = Leaving { name, socket: end.socket(), first: id, twin, told: end.told, count: 0 };
        while left > 0 && end.pop_datagram(|to, data| self.send_record(&mut leaving, to, data, now)) {
            left -= 1;
        }
        end.told = leaving.told;
        self.core.port.put_datagrams(id, end);
        if asked & request::CLOSE != 0 {
            self.close_datagrams(id, name, now);
        } else if left == 0 {
            if let Some(socket) = self.sockets.find(name) {
                socket.rung = true;
            }
            self.wake(id, now);
        }
    }

    /// Sends what a program wrote over the first path of its socket, or over the second, which is
    /// IPv6's. What is several datagrams (`UDP_SEGMENT`) the device cuts up, where it can.
    fn send_record(&mut self, leaving: &mut Leaving, to: Datagram, data: [&[u8]; 2], now: Instant) {
        let remote = Endpoint::new(to.peer.ip().to_canonical(), to.peer.port());
        let course = self.course(leaving, remote, now);
        if to.way != leaving.told {
            self.tell_way(leaving, to.way, now);
        }
        let (segment, from) = to.departure();
        let local = from.or(course.from).map_or(NOWHERE, |from| Endpoint::new(from, 0));
        let (whole, size) = (to.len as usize, usize::from(segment));
        leaving.count += if size == 0 { 1 } else { whole.div_ceil(size).clamp(1, SEGMENTS) };
        let mut meta = Meta { local, remote, arrival: now, ..Meta::default() };
        if course.stray.is_some() {
            meta = self.as_wished(meta, leaving.socket, to.way);
        }
        if size == 0 || whole <= size {
            return self.send_one(course, meta, data);
        }
        if whole > size * SEGMENTS {
            return self.core.drops.count(DropReason::TooBig);
        }
        let device_cuts =
            self.core.paths.path(course.path).is_some_and(|path| path.state.attrs.gso().unwrap_or(0) > 0);
        if device_cuts {
            return self.send_one(course, Meta { gso_size: segment, ..meta }, data);
        }
        for at in (0..whole).step_by(size) {
            self.send_one(course, meta, part(data, at, size));
        }
    }

    /// The way that a datagram to `remote` leaves.
    fn course(&mut self, leaving: &Leaving, remote: Endpoint, now: Instant) -> Course {
        let (first, known) = (leaving.first, self.path_over_linux(leaving.first));
        if let Some(path) = self.leaves_over_linux(first, remote, now) {
            if known.is_none() {
                self.tell_as_others(path, leaving, now);
            }
            return Course { path, stray: None, from: self.address_of_connected(first, remote) };
        }
        let path = leaving.twin.filter(|_| remote.is_v6()).unwrap_or(first);
        Course { path, stray: self.stray(path, remote), from: None }
    }

    /// The next datagrams of a socket go another way than those before.
    fn tell_way(&mut self, leaving: &mut Leaving, way: Way, now: Instant) {
        let Leaving { name, socket, told, .. } = *leaving;
        leaving.told = way;
        if way.service != told.service {
            self.tell_paths_of(name, Bell::Service(way.service), now);
        }
        if way.hops != told.hops {
            self.tell_paths_of(name, Bell::Wishes(self.wished_with(socket, way.hops)), now);
        }
    }

    /// A path that has just been made is told what the others of its socket were for the last datagram.
    fn tell_as_others(&mut self, path: PathId, leaving: &Leaving, now: Instant) {
        let Leaving { socket, told, .. } = *leaving;
        for bell in [Bell::Service(told.service), Bell::Wishes(self.wished_with(socket, told.hops))] {
            self.core.paths.bell(path, now, &mut self.core.port, bell);
        }
    }

    /// What a socket wishes for a datagram with so many hops of its own, 0: with none.
    fn wished_with(&self, socket: SocketName, hops: u8) -> Wishes {
        let mut wishes = self.wished_by(socket);
        if hops != 0 {
            let hops = Some(hops);
            (wishes.ttl, wishes.hops, wishes.group_ttl, wishes.group_hops) = (hops, hops, hops, hops);
        }
        wishes
    }

    /// What the program of a socket wishes.
    fn wished_by(&self, socket: SocketName) -> Wishes {
        let slot = self.families.get(&socket.family).and_then(|family| family.arena.slot(socket.slot));
        slot.map(crate::domain::wishes::of).unwrap_or_default()
    }

    /// Sends a datagram, or several that the device cuts up. It arrived from the program just now.
    fn send_one(&mut self, course: Course, meta: Meta, data: [&[u8]; 2]) {
        let now = meta.arrival;
        let mut headroom = std::mem::take(&mut self.headroom);
        let mut message = Message::outgoing(&mut headroom, data, meta);
        match course.stray {
            None => _ = self.core.paths.down(course.path, now, &mut self.core.port, &mut message),
            Some((own, local)) if head(&mut message, local).is_ok() => {
                let _ = self.core.paths.down(own, now, &mut self.core.port, &mut message);
            }
            Some(_) => self.core.drops.count(DropReason::TooBig),
        }
        self.headroom = headroom;
    }

    /// A socket that is connected to one sends to another, which its path does not lead to: IP's own path does, and where it leaves
    /// from. A path of `PF_SCOUT`, which may be of other protocols, sends to whom it leads, whatever a call says.
    fn stray(&mut self, id: PathId, to: Endpoint) -> Option<(PathId, Endpoint)> {
        let attrs = &self.core.paths.path(id)?.state.attrs;
        attrs.remote().filter(|peer| *peer != to && to.port() != 0 && attrs.owner().is_none())?;
        let local = attrs.local()?;
        let paths = &mut self.core.paths;
        let own = if to.is_v6() {
            paths.module_mut::<Ip6>().and_then(|ip| ip.own_path())
        } else {
            paths.module_mut::<Ip>().and_then(|ip| ip.own_path())
        };
        Some((own?, local))
    }

    /// The address that a connected socket has, from which all leaves that it sends by the same IP. Linux's socket has it not.
    fn address_of_connected(&self, first: PathId, to: Endpoint) -> Option<IpAddr> {
        let attrs = &self.core.paths.path(first)?.state.attrs;
        let local = attrs.remote().and(attrs.local())?.ip();
        Some(local).filter(|local| local.is_ipv4() == to.ip().is_ipv4() && !local.is_unspecified())
    }

    /// What IP's own path, which is nobody's, is told with each datagram: the options of its socket, and its own.
    fn as_wished(&self, meta: Meta, socket: SocketName, way: Way) -> Meta {
        let (wishes, to) = (self.wished_by(socket), meta.remote.ip());
        let (alone, group, discovery) = match to {
            IpAddr::V4(_) => (wishes.ttl, wishes.group_ttl, wishes.discovery),
            IpAddr::V6(_) => (wishes.hops, wishes.group_hops, wishes.discovery6),
        };
        let hops = if to.is_multicast() { group } else { alone };
        let hops = if way.hops == 0 { hops.unwrap_or(0) } else { way.hops };
        Meta { tos: way.service, hops, discovery, ..meta }
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
        let cpu = self.served(name);
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

    /// What a program has sent as its last word, or its last over this path, is sent, and as it wished.
    pub(super) fn send_what_is_there(
        &mut self,
        (id, name): (PathId, SocketName),
        end: &mut SocketEnd,
        now: Instant,
    ) {
        for bell in options_of(end) {
            self.tell_paths_of(name, bell, now);
        }
        let twin = self.sockets.find(name).and_then(|socket| socket.twin);
        let mut leaving = Leaving { name, socket: end.socket(), first: id, twin, told: end.told, count: 0 };
        while leaving.count < LAST_WORDS
            && end.pop_datagram(|to, data| self.send_record(&mut leaving, to, data, now))
        {}
    }

    /// A frame that no path of this domain takes: passed on if a socket of another domain
    /// does.
    pub(crate) fn pass_on(&mut self, frame: Frame) -> Result<(), DropReason> {
        let home = self.core.home_of(frame);
        let bytes = self.core.device.bytes(frame);
        let bytes = bytes.get(frame.range()).ok_or(DropReason::EthTruncated)?;
        let local = if home.is_some() { None } else { udp_destination(bytes) };
        let hears = || self.homes.find(local?);
        let domain = home.or_else(hears).ok_or(DropReason::NoPath)?;
        let sibling =
            self.siblings.get(domain).filter(|_| domain != self.domain).ok_or(DropReason::NoPath)?;
        let passed = sibling.pass(bytes, frame.device, checksum_of(frame));
        if let Some(local) = local.filter(|_| domain < self.domain)
            && let Some(passed) = self.homes.note_passed(local)
        {
            self.tell_control(Told::Lane { local, passed, home: domain, domain: self.domain });
        }
        passed
    }

    /// An answer to ARP or neighbour discovery arrives in one domain; another may have asked. So does what a station says of itself.
    pub(crate) fn spread_answer(&mut self, frame: Frame) {
        let bytes = self.core.device.bytes(frame);
        let tables = &self.core.tables;
        let tells = |bytes: &&[u8]| is_answer(bytes, |address| tables.is_local(address));
        let Some(bytes) = bytes.get(frame.range()).filter(tells) else { return };
        for (_, sibling) in self.siblings.iter().enumerate().filter(|(domain, _)| *domain != self.domain) {
            if let Err(reason) = sibling.pass(bytes, frame.device, checksum_of(frame)) {
                self.core.drops.count(reason);
            }
        }
    }

    /// A packet that was put together from fragments, which arrive in one domain for all. The last came over this device.
    pub(crate) fn reassembled(&mut self, bytes: &mut [u8], device: u8, checksum: Checksum, now: Instant) {
        let domain = match self.core.paths.graph().classify_over(bytes, device) {
            Verdict::Path { domain, .. } => Some(usize::from(domain)),
            Verdict::Refuse { .. } => return self.core.drops.count(DropReason::Refused),
            _ => udp_destination(bytes).and_then(|local| self.homes.find(local)),
        };
        let sibling = domain.filter(|domain| *domain != self.domain).and_then(|n| self.siblings.get(n));
        match sibling.map(|sibling| sibling.pass(bytes, device, checksum)) {
            None => self.arrived(bytes, device, checksum, now),
            Some(Err(reason)) => self.core.drops.count(reason),
            Some(Ok(())) => {}
        }
    }

    /// A frame that another domain has passed on.
    pub fn passed_on(&mut self, mut bytes: Box<[u8]>, device: u8, checksum: Checksum, now: Instant) {
        self.has_come();
        self.arrived(&mut bytes, device, checksum, now);
        // Paths may have waited for what has just been learnt.
        self.answer_requests(now);
        self.bring_accepted(now);
    }

    /// What another domain gave is on its way no longer.
    pub(crate) fn has_come(&self) {
        if let Some(own) = self.siblings.get(self.domain) {
            own.under_way.fetch_sub(1, SeqCst);
        }
    }

    /// A frame that is in no ring and came over this device: put together from fragments, or passed on.
    pub(crate) fn arrived(&mut self, bytes: &mut [u8], device: u8, checksum: Checksum, now: Instant) {
        let Some((mut id, outcome)) = self.core.arrive(bytes, device, checksum, now) else { return };
        if outcome == Outcome::Handoff {
            // What completes a handshake may carry text, for the path that is made then.
            self.answer_requests(now);
            let Some((made, _)) = self.core.arrive(bytes, device, checksum, now) else { return };
            id = made;
        }
        self.conclude(id, now);
        for other in self.sharers_in_group(id, bytes) {
            let _ = self.core.arrive_at(other, bytes, device, checksum, now);
            self.tell_program(other);
        }
    }
}

/// Puts UDP's header before a datagram that leaves from `local`, as its path would.
fn head(message: &mut Message<'_>, local: Endpoint) -> Result<(), DropReason> {
    let (length, remote) = (message.len(), message.meta.remote);
    let whole = u16::try_from(length).ok().filter(|length| length.checked_add(udp::HEADER as u16).is_some());
    udp::emit(local.port(), remote.port(), whole.ok_or(DropReason::TooBig)?, 0, message.push(udp::HEADER)?);
    let start = message.head() as u16;
    message.meta.checksum = Checksum::Partial { start, field: start + udp::CHECKSUM as u16 };
    message.meta.protocol = ipv4::UDP;
    if message.meta.local == NOWHERE && local.is_v6() == remote.is_v6() {
        message.meta.local = Endpoint::new(local.ip(), 0);
    }
    Ok(())
}

/// At most `size` bytes from `at` on, of bytes in two pieces.
fn part(data: [&[u8]; 2], at: usize, size: usize) -> [&[u8]; 2] {
    let first = data[0].len();
    let piece = |of: usize, from: usize, to: usize| data[of].get(from..to.min(data[of].len())).unwrap_or(&[]);
    [piece(0, at, at + size), piece(1, at.saturating_sub(first), (at + size).saturating_sub(first))]
}

/// Whether an Ethernet frame carries an answer of ARP's (RFC 826) or of neighbour discovery's (RFC 4861 §4.4), or announces by
/// a request where a station is (RFC 5227 §3), unless that is `ours`: one domain defends it, once.
fn is_answer(frame: &[u8], ours: impl Fn(Ipv4Addr) -> bool) -> bool {
    let Ok(eth::Frame { kind, payload, .. }) = eth::frame(frame) else { return false };
    match kind {
        eth::ARP => arp::parse(payload).is_ok_and(|arp| match arp.operation {
            Operation::Reply => true,
            Operation::Request => arp.sender == arp.target && !ours(arp.sender),
        }),
        eth::IPV6 => {
            payload.get(6) == Some(&ipv6::ICMP) && payload.get(ipv6::HEADER) == Some(&ndp::ADVERTISEMENT)
        }
        _ => false,
    }
}

/// Where a UDP packet in an Ethernet frame is sent to.
fn udp_destination(frame: &[u8]) -> Option<Endpoint> {
    let eth::Frame { kind, payload: packet, .. } = eth::frame(frame).ok()?;
    let (address, datagram): (IpAddr, _) = match kind {
        eth::IPV4 if *packet.get(9)? == ipv4::UDP => {
            let address: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            (address.into(), packet.get(usize::from(packet.first()? & 15) * 4..)?)
        }
        eth::IPV6 => {
            let address: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            let (protocol, fragment, datagram) =
                skip_extensions(*packet.get(6)?, packet.get(ipv6::HEADER..)?)?;
            (address.into(), Some(datagram).filter(|_| protocol == ipv4::UDP && !fragment)?)
        }
        _ => return None,
    };
    let port = datagram.get(2..4)?;
    Some(Endpoint::new(address, u16::from_be_bytes([port[0], port[1]])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_wire::MacAddr;

    #[test]
    fn a_record_in_two_pieces_is_cut_wherever_the_pieces_meet() {
        let data = [b"abcd".as_slice(), b"efg"];
        let cut: Vec<_> = (0..7).step_by(3).map(|at| part(data, at, 3).concat()).collect();
        assert_eq!(cut, [b"abc".as_slice(), b"def", b"g"]);
    }

    /// Whether the other domains hear of what this station says by ARP.
    fn is_told(operation: Operation, sender: Ipv4Addr, target: Ipv4Addr) -> bool {
        let (sender_mac, target_mac) = (MacAddr([2, 0, 0, 0, 0, 9]), MacAddr::ZERO);
        let mut frame = [0; eth::HEADER + arp::PACKET];
        eth::Header::new(MacAddr::BROADCAST, sender_mac, eth::ARP).emit(&mut frame);
        let packet = arp::Packet { operation, sender_mac, sender, target_mac, target };
        packet.emit(&mut frame[eth::HEADER..]);
        is_answer(&frame, |address| address == OURS)
    }

    const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    // RFC 5227 §2.3, §3: a station that has another Ethernet address now says so by a request.
    #[test]
    fn who_announces_itself_is_heard_by_all_and_who_asks_is_not() {
        let (there, other) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3));
        assert!(is_told(Operation::Request, there, there));
        assert!(!is_told(Operation::Request, there, OURS), "a question");
        assert!(!is_told(Operation::Request, there, other), "one for others");
        assert!(!is_told(Operation::Request, Ipv4Addr::UNSPECIFIED, there), "a probe");
        assert!(!is_told(Operation::Request, OURS, OURS), "each domain would defend it");
        assert!(is_told(Operation::Reply, there, OURS));
    }

    #[test]
    fn a_frame_says_where_its_datagram_is_sent_to_and_nothing_else_does() {
        let mut four = [0; 14 + 20 + 8];
        four[12..14].copy_from_slice(&[8, 0]);
        four[14] = 0x45;
        four[14 + 9] = ipv4::UDP;
        four[14 + 16..14 + 20].copy_from_slice(&[10, 0, 0, 1]);
        four[14 + 20 + 2..14 + 20 + 4].copy_from_slice(&53u16.to_be_bytes());
        assert_eq!(udp_destination(&four), Some(Endpoint::v4(Ipv4Addr::new(10, 0, 0, 1), 53)));
        assert_eq!(udp_destination(&four[..14 + 20 + 3]), None, "cut short");
        four[14 + 9] = ipv4::TCP;
        assert_eq!(udp_destination(&four), None);

        let mut six = [0; 14 + ipv6::HEADER + 8];
        six[12..14].copy_from_slice(&[0x86, 0xdd]);
        six[14] = 0x60;
        six[14 + 6] = ipv4::UDP;
        six[14 + 24 + 15] = 1;
        six[14 + ipv6::HEADER + 2..][..2].copy_from_slice(&53u16.to_be_bytes());
        assert_eq!(udp_destination(&six), Some(Endpoint::new(std::net::Ipv6Addr::LOCALHOST, 53)));
    }
}
