//! Sockets that have a name at the control thread: bound, listening, connecting, datagram. It
//! reserves their ports, sets up their slots, and hands them to the executors.

use crate::between::answer::Answer;
use crate::between::command::Command;
use crate::between::listener_hold::ListenerHold;
use crate::between::names::{Holder, SocketName};
use crate::between::sockets::Rings;
use crate::binding::{Share, Sides, any_like};
use crate::control::family::{Socket, State};
use crate::control::low_ports;
use crate::control::ports::Held;
use crate::control::server::Server;
use crate::first_wishes::First;
use crate::slots::{clear, place_rings, store_address};
use silk_control::{Kind, Refusal, Reply, SlotNumber};
use silk_path::{Endpoint, Sharing};
use silk_stream::{RANKS, kind, status};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

impl Server {
    /// Our own form of an address and what it stands for, or `None` when it is Linux's business.
    /// `::` stands for both IPs unless the program wants IPv6 alone, and as far as there are both.
    pub(crate) fn ours(&self, address: SocketAddr, only_v6: bool) -> Option<(Endpoint, Sides)> {
        let (ip, any) = (address.ip().to_canonical(), IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        let end = |ip: IpAddr| Endpoint::new(ip, address.port());
        let of = |ip: IpAddr| (end(ip), Sides::of(ip));
        let four = self.settings.serves_v4().then_some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        match (four, self.settings.serves_v6(), only_v6) {
            (Some(_), true, false) if ip == any => Some((end(ip), Sides::BOTH)),
            (Some(four), false, false) if ip == any => Some(of(four)),
            (_, six, _) if ip == any => six.then(|| of(ip)),
            (four, ..) if ip.is_unspecified() => four.map(of),
            _ => self.settings.has(ip).then(|| of(ip)),
        }
    }

    /// Whether a process may have this port.
    ///
    /// # Errors
    /// `EACCES`, and why.
    pub(crate) fn may_have(&self, (family, process): Holder, port: u16) -> Result<(), Refusal> {
        let known = self.families.get(&family).and_then(|family| family.processes.get(&process));
        if low_ports::may_bind(known.and_then(|process| process.pid.zip(process.user)), port) {
            return Ok(());
        }
        let why = format!(
            "port {port} is for programs with CAP_NET_BIND_SERVICE, which this one has not, or has given up; start it as root, or \
             lower net.ipv4.ip_unprivileged_port_start"
        );
        Err(Refusal { errno: libc::EACCES, why })
    }

    pub(crate) fn bind(
        &mut self,
        family: u32,
        process: u32,
        kind: Kind,
        (local, only_v6): (SocketAddr, bool),
        share: Share,
        answer: &Arc<Answer>,
    ) -> Result<Reply, Refusal> {
        let group = || self.group_of_ours(local).filter(|_| kind == Kind::Datagram);
        let Some((local, sides)) = self.ours(local, only_v6).or_else(group) else {
            return Ok(Reply::NotOurs);
        };
        self.may_have((family, process), local.port())?;
        let chose_port = local.port() != 0;
        let places = self.settings.reserve_at(local.ip(), sides);
        let held = self.ports.take(kind, (local, sides), &places, share)?;
        let local = Endpoint::new(local.ip(), held.port);
        let (slot, generation) =
            self.new_slot(family, process, kind, Some((local, held))).inspect_err(|_| {
                self.ports.give_back(&held);
            })?;
        let known = self.families.get_mut(&family).and_then(|known| known.sockets.get_mut(&slot));
        known.into_iter().for_each(|socket| socket.chose_port = chose_port);
        if kind == Kind::Datagram {
            self.take_port_of_group(local);
            let opened = self.open_datagram(family, slot, local, None, answer);
            opened.inspect_err(|_| self.unmake(family, slot))?;
            self.make_lanes_beside_others(SocketName { family, slot });
        }
        Ok(Reply::Socket { slot, generation })
    }

    /// The ends of a socket that is bound: those of both IPs, where its address stands for both.
    fn ends(local: Endpoint, sides: Sides) -> Vec<Endpoint> {
        if sides == Sides::BOTH {
            vec![Endpoint::v4(Ipv4Addr::UNSPECIFIED, local.port()), local]
        } else {
            vec![local]
        }
    }

    /// A slot for a socket of `process`, with its addresses and one holder.
    pub(crate) fn new_slot(
        &mut self,
        family: u32,
        process: u32,
        kind: Kind,
        name: Option<(Endpoint, Held)>,
    ) -> Result<(SlotNumber, u32), Refusal> {
        let nothing = || Refusal { errno: libc::ENFILE, why: "this program has too many sockets".into() };
        let known = self.families.get_mut(&family).ok_or_else(nothing)?;
        let slot = known.pool.take_slot().ok_or_else(nothing)?;
        let arena = known.arena.clone();
        let record = arena.slot(slot).ok_or_else(nothing)?;
        let generation = clear(record);
        let sort = if kind == Kind::Stream { kind::STREAM } else { kind::DATAGRAM };
        record.kind.store(sort, SeqCst);
        record.owner.store(process, SeqCst);
        record.holders.store(1, SeqCst);
        let (local, held) = name.unzip();
        if let Some(local) = local {
            store_address(&record.local, local);
        }
        record.lane().store(0, SeqCst);
        let holders = vec![process];
        let (state, rings) = (State::Bound, None);
        let socket = Socket {
            kind,
            generation,
            local,
            held,
            state,
            holders,
            chose_port: false,
            has_peer: false,
            is_of_graph: false,
            opened: 0,
            rings,
        };
        known.sockets.insert(slot, socket);
        Ok((slot, generation))
    }

    pub(crate) fn rings(&mut self, family: u32, slot: SlotNumber) -> Result<Rings, Refusal> {
        let full = || Refusal {
            errno: libc::ENOBUFS,
            why: "the program's arena is full, or all arenas together: raise [memory] arena, or total".into(),
        };
        let memory = &self.settings.config.memory;
        let (rx, tx) = (memory.receive_ring.get() as u32, memory.send_ring.get() as u32);
        let known = self.families.get_mut(&family).ok_or_else(full)?;
        if !known.pool.has_room([rx, tx]) {
            return Err(full());
        }
        let rx = known.pool.take_ring(rx).ok_or_else(full)?;
        let Some(tx) = known.pool.take_ring(tx) else {
            known.pool.return_ring(rx);
            return Err(full());
        };
        let rings = Rings { rx, tx };
        if let Some(record) = known.arena.slot(slot) {
            place_rings(record, rings);
        }
        if let Some(entry) = known.sockets.get_mut(&slot) {
            entry.rings = Some(rings);
        }
        Ok(rings)
    }

    pub(crate) fn open_datagram(
        &mut self,
        family: u32,
        slot: SlotNumber,
        local: Endpoint,
        peer: Option<Endpoint>,
        answer: &Arc<Answer>,
    ) -> Result<(), Refusal> {
        let rings = self.rings(family, slot)?;
        let anybody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let own = || self.settings.classes.domain_of(peer.map_or(anybody, |p| p.ip()), 0, local.port());
        let socket = SocketName { family, slot };
        let domain = self.domain_of_sharers(socket).unwrap_or_else(own);
        self.opened += 1;
        let known = self.families.get_mut(&family);
        if let Some(entry) = known.and_then(|f| f.sockets.get_mut(&slot)) {
            entry.state = State::Served { domain };
            entry.opened = self.opened;
        }
        let locals = self.datagram_ends(socket, local);
        if let Some(record) = self.families.get(&family).and_then(|f| f.arena.slot(slot)) {
            record.domain.store(domain as u32, SeqCst);
            record.status.store(status::CONNECTED, SeqCst);
        }
        self.tell_of_datagram((socket, rings), (&locals, peer), (domain, true), answer);
        Ok(())
    }

    /// The domain of the datagram sockets that share a port: all are in that of the first, though classes may
    /// have changed since.
    fn domain_of_sharers(&self, SocketName { family, slot }: SocketName) -> Option<usize> {
        let held = self.families.get(&family)?.sockets.get(&slot)?.held?;
        self.ports.hold(&held).sharing?;
        let is_one = |socket: &Socket| socket.held.is_some_and(|other| other.overlaps(&held));
        let mut sockets = self.families.values().flat_map(|family| family.sockets.values());
        sockets.find_map(|socket| match socket.state {
            State::Served { domain } if is_one(socket) => Some(domain),
            _ => None,
        })
    }

    /// Every domain may receive for a datagram socket; one serves it.
    fn tell_of_datagram(
        &self,
        (socket, rings): (SocketName, Rings),
        (locals, peer): (&[Endpoint], Option<Endpoint>),
        (domain, opened): (usize, bool),
        answer: &Arc<Answer>,
    ) {
        let known = self.families.get(&socket.family).and_then(|f| f.sockets.get(&socket.slot));
        let hold = known.and_then(|known| known.held).map(|held| self.ports.hold(&held));
        self.tell_all(|| {
            let (locals, hold, answer) = (locals.to_vec(), hold.clone().unwrap_or_default(), answer.clone());
            Command::Datagram { socket, rings, locals, peer, domain, opened, hold, answer }
        });
    }

    /// The ends of a datagram socket whose address is `local` now.
    pub(crate) fn datagram_ends(&self, name: SocketName, local: Endpoint) -> Vec<Endpoint> {
        let known = self.families.get(&name.family).and_then(|f| f.sockets.get(&name.slot));
        let whole = known.filter(|socket| socket.local == Some(local) && local.ip().is_unspecified());
        whole.map_or_else(|| vec![local], |socket| Self::ends(local, socket.sides()))
    }

    pub(crate) fn listen(
        &mut self,
        (family, process): Holder,
        (slot, generation): (SlotNumber, u32),
        (backlog, defer_accept): (u32, u32),
        answer: &Arc<Answer>,
    ) -> Result<Reply, Refusal> {
        let stranger = || Refusal { errno: libc::EBADF, why: "that socket is not this process's".into() };
        let domains = self.orders.len();
        let known = self.families.get_mut(&family).ok_or_else(stranger)?;
        let socket = known.held(process, (slot, generation)).ok_or_else(stranger)?;
        let most = self.settings.config.listen.backlog;
        let told = backlog.min(most);
        // As on Linux, one more than asked for.
        let backlog = backlog.saturating_add(1).min(most);
        if socket.state == State::Listening {
            let socket = SocketName { family, slot };
            let listener = known.arena.slot(slot).map(|record| record.listener.load(SeqCst));
            if let Some(listener) = listener.and_then(|listener| known.arena.listener(listener)) {
                listener.backlog.store(told, SeqCst);
            }
            self.tell_all(|| Command::ListenOn { socket, backlog, defer_accept, answer: answer.clone() });
            return Ok(Reply::Done);
        }
        let ready = socket.state == State::Bound && socket.kind == Kind::Stream;
        let Some((local, held)) = socket.local.zip(socket.held).filter(|_| ready) else {
            return Err(Refusal { errno: libc::EINVAL, why: "only a bound stream socket can listen".into() });
        };
        let too_many =
            || Refusal { errno: libc::EMFILE, why: "this program listens on too many sockets".into() };
        let listener = known.take_listener().ok_or_else(too_many)?;
        self.ports.listen(&held).inspect_err(|_| known.return_listener(listener))?;
        let record = known.arena.listener(listener).ok_or_else(too_many)?;
        record.queue.iter().take(domains).enumerate().for_each(|(rank, queue)| queue.begin(listener, rank));
        record.ranks.store(domains.min(RANKS) as u32, SeqCst);
        record.backlog.store(told, SeqCst);
        record.reserve.store(self.settings.reserve(known.thread_count()), SeqCst);
        if let Some(record) = known.arena.slot(slot) {
            record.listener.store(listener, SeqCst);
            record.kind.store(kind::LISTENER, SeqCst);
        }
        if let Some(entry) = known.sockets.get_mut(&slot) {
            entry.state = State::Listening;
        }
        let port = self.ports.hold(&held);
        let hold = Arc::new(ListenerHold {
            coming: AtomicU32::new(0),
            name: SocketName { family, slot },
            listener,
            ends: Self::ends(local, held.sides),
            backlog: AtomicU32::new(backlog),
            sharing: port.sharing.filter(|sharing| *sharing == Sharing::Peers),
            linux: port.linux,
            events: self.report_events.clone(),
        });
        self.tell_all(|| Command::Listen { hold: hold.clone(), defer_accept, answer: answer.clone() });
        Ok(Reply::Done)
    }

    /// A program connects; one that does so often gets spares with its answer.
    pub(crate) fn connect(
        &mut self,
        holder: Holder,
        kind: Kind,
        bound: Option<(SlotNumber, u32)>,
        peer: SocketAddr,
        first: First,
        answer: &Arc<Answer>,
    ) -> Result<Reply, Refusal> {
        let is_new = bound.is_none();
        let reply = self.connect_one(holder, kind, bound, peer, first, answer)?;
        let Reply::Socket { slot, generation } = reply else { return Ok(reply) };
        let remote = peer.ip().to_canonical();
        let source = self.settings.source_for(remote).filter(|_| is_new && kind == Kind::Stream);
        let spares = source.map_or_else(Vec::new, |source| self.spares(holder, source, remote));
        Ok(if spares.is_empty() { reply } else { Reply::Sockets { slot, generation, spares } })
    }

    /// The same without spares: whoever asks knows of one socket.
    pub(crate) fn connect_one(
        &mut self,
        (family, process): Holder,
        kind: Kind,
        bound: Option<(SlotNumber, u32)>,
        peer: SocketAddr,
        first: First,
        answer: &Arc<Answer>,
    ) -> Result<Reply, Refusal> {
        let remote = peer.ip().to_canonical();
        let dissolve = kind == Kind::Datagram && remote.is_unspecified();
        if remote.is_unspecified() && !dissolve {
            // This machine itself, to Linux, which carries it.
            return Ok(Reply::NotOurs);
        }
        let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        // What nobody has bound yet speaks with groups over Linux, where that has the address too.
        let to_group = bound.is_some() || crate::settings::owns_link(&self.settings.config);
        let group = || self.settings.source_for_group(remote).filter(|_| to_group);
        // A datagram socket that has its port already hears of Linux's datagrams too.
        let may_be_linuxs = kind == Kind::Datagram && bound.is_some() && !remote.is_multicast();
        let over_linux = may_be_linuxs && self.settings.source_over_linux(remote).is_some();
        let source = if dissolve {
            bound.map(|_| nowhere)
        } else {
            let sockets = self.families.get(&family).map(|family| &family.sockets);
            let socket = bound.zip(sockets).and_then(|((slot, _), sockets)| sockets.get(&slot));
            let address = socket.and_then(|socket| socket.local).map(|local| local.ip());
            match self.settings.source_of(address, remote).or_else(group) {
                // From which of its addresses Linux knows.
                None if over_linux => Some(way_over_linux(SocketAddr::new(remote, peer.port()))?),
                source => source,
            }
        };
        let Some(source) = source else { return Ok(Reply::NotOurs) };
        let is_new = bound.is_none();
        let (slot, generation) = match bound {
            Some(name) => {
                let known = self.families.get_mut(&family).and_then(|f| f.held(process, name));
                let Some(known) = known.filter(|socket| socket.kind == kind) else {
                    let why = "that socket is not this process's, or another kind of socket".into();
                    return Err(Refusal { errno: libc::EBADF, why });
                };
                if kind == Kind::Stream && known.state != State::Bound {
                    let why = "that socket connects already, or listens".into();
                    return Err(Refusal { errno: libc::EALREADY, why });
                }
                if kind == Kind::Stream
                    && let Some(held) = &mut known.held
                {
                    self.ports.leads_now(held, Endpoint::new(remote, peer.port()))?;
                }
                name
            }
            None => {
                let held = self.ports.take_to_connect(kind, source, Endpoint::new(remote, peer.port()))?;
                // The program has asked for no address: a stream's lasts as long as its connection.
                let address = if kind == Kind::Stream { any_like(source) } else { source };
                let local = Endpoint::new(address, held.port);
                self.new_slot(family, process, kind, Some((local, held))).inspect_err(|_| {
                    self.ports.give_back(&held);
                })?
            }
        };
        let bound = self.families.get(&family).and_then(|f| f.sockets.get(&slot)).and_then(|s| s.local);
        let Some(bound) = bound else {
            return Err(Refusal { errno: libc::EINVAL, why: "that socket has no local address".into() });
        };
        let named = dissolve || !bound.ip().is_unspecified();
        let local = if named { bound } else { Endpoint::new(source, bound.port()) };
        if !dissolve && local.is_v6() != remote.is_ipv6() {
            return Err(Refusal {
                errno: libc::ENETUNREACH,
                why: "the socket is bound to an address of the other IP".into(),
            });
        }
        let peer = Endpoint::new(remote, peer.port());
        let record = self.families.get(&family).and_then(|f| f.arena.slot(slot));
        // A datagram socket's first packet comes later than its options.
        if let Some(record) = record.filter(|_| kind == Kind::Stream) {
            first.store(record);
        }
        let joined =
            self.join_up(family, slot, (kind, first.priority), local, (!dissolve).then_some(peer), answer);
        joined.inspect_err(|_| {
            if is_new {
                self.unmake(family, slot)
            }
        })?;
        Ok(Reply::Socket { slot, generation })
    }

    /// Whether any way leads to where a datagram of a socket that has a port is to be sent.
    pub(crate) fn way_to(&self, to: SocketAddr) -> Result<Reply, Refusal> {
        let to = SocketAddr::new(to.ip().to_canonical(), to.port());
        if !self.settings.leads_to(to.ip()) {
            match self.settings.source_over_linux(to.ip()) {
                Some(source) if source.is_unspecified() => _ = way_over_linux(to)?,
                Some(_) => {}
                None => {
                    let why = format!("no way leads to {}", to.ip());
                    return Err(Refusal { errno: libc::ENETUNREACH, why });
                }
            }
        }
        Ok(Reply::Done)
    }

    /// Hands a socket with both addresses to its executor.
    pub(crate) fn join_up(
        &mut self,
        family: u32,
        slot: SlotNumber,
        (kind, priority): (Kind, Option<u8>),
        local: Endpoint,
        peer: Option<Endpoint>,
        answer: &Arc<Answer>,
    ) -> Result<(), Refusal> {
        if let Some(record) = self.families.get(&family).and_then(|f| f.arena.slot(slot)) {
            store_address(&record.local, local);
            store_address(&record.peer, peer.unwrap_or(silk_path::NOWHERE));
        }
        let Some(peer) = peer.filter(|_| kind == Kind::Stream) else {
            return self.open_datagram_again(family, slot, local, peer, answer);
        };
        let rings = self.rings(family, slot)?;
        let domain = self.settings.classes.domain_of(peer.ip(), 0, local.port());
        if let Some(entry) = self.families.get_mut(&family).and_then(|f| f.sockets.get_mut(&slot)) {
            entry.state = State::Served { domain };
        }
        if let Some(record) = self.families.get(&family).and_then(|f| f.arena.slot(slot)) {
            record.domain.store(domain as u32, SeqCst);
            record.status.store(status::CONNECTING, SeqCst);
        }
        let socket = SocketName { family, slot };
        if let Some(orders) = self.orders.get(domain) {
            let _ = orders.give(Command::Connect { socket, rings, local, peer, priority });
        }
        Ok(())
    }

    pub(crate) fn open_datagram_again(
        &mut self,
        family: u32,
        slot: SlotNumber,
        local: Endpoint,
        peer: Option<Endpoint>,
        answer: &Arc<Answer>,
    ) -> Result<(), Refusal> {
        self.opened += 1;
        let known = self.families.get_mut(&family).and_then(|f| f.sockets.get_mut(&slot));
        let open = known.map(|socket| {
            socket.has_peer = peer.is_some();
            socket.opened = self.opened;
            (socket.rings, socket.state)
        });
        if let Some((Some(rings), State::Served { domain })) = open {
            let socket = SocketName { family, slot };
            self.deafen_lanes(socket);
            let locals = self.datagram_ends(socket, local);
            self.tell_of_datagram((socket, rings), (&locals, peer), (domain, false), answer);
            if peer.is_none() {
                self.make_lanes_beside_others(socket);
            }
            return Ok(());
        }
        self.open_datagram(family, slot, local, peer, answer)
    }

    /// A socket's port is free again.
    pub(crate) fn give_port_back(&mut self, socket: &Socket) {
        let Some(held) = socket.held else { return };
        if socket.state == State::Listening {
            self.ports.end_listening(&held);
        }
        self.free_port(&held);
    }

    /// The same, of one that does not listen.
    pub(crate) fn free_port(&mut self, held: &Held) {
        self.ports.give_back(held);
        self.ask_again();
        self.give_back_port_of_group(held);
        if held.kind == Kind::Datagram {
            self.forget_port(held.port);
        }
        // The domain that served a datagram socket has forgotten where it was; the others were told, too.
        if held.kind == Kind::Datagram && self.orders.len() > 1 {
            let deserted = self.ports.deserted(held).into_iter();
            deserted.for_each(|at| self.tell_all(|| Command::Deserted { port: held.port, at }));
        }
    }

    /// A socket was made in vain: no program will ever know of it.
    pub(crate) fn unmake(&mut self, family: u32, slot: SlotNumber) {
        let known = self.families.get_mut(&family);
        if let Some(socket) = known.and_then(|known| known.sockets.remove(&slot)) {
            self.close(family, slot, &socket, false);
        }
    }

    /// The last holder let go of a socket that is named here, or (`died`) took it along.
    pub(crate) fn close(&mut self, family: u32, slot: SlotNumber, socket: &Socket, died: bool) {
        let name = SocketName { family, slot };
        match socket.state {
            State::Bound => {
                self.families.get_mut(&family).into_iter().for_each(|known| known.return_rings(socket.rings));
                self.retire(name);
            }
            State::Listening => self.tell_all(|| Command::Unlisten(name)),
            State::Served { .. } | State::Accepted => {
                let generation = socket.generation;
                self.tell_all(|| Command::Close { socket: name, generation, died });
            }
            State::Leaving { .. } => {}
        }
        if socket.kind == Kind::Datagram {
            self.close_lanes(name);
        }
        // A socket keeps its port until the executors have done with it.
        if !matches!(socket.state, State::Served { .. } | State::Leaving { .. }) {
            self.give_port_back(socket);
        }
    }
}

/// The address from which Linux speaks to a peer of whom silk does not know where he is, if it knows a way.
fn way_over_linux(peer: SocketAddr) -> Result<IpAddr, Refusal> {
    // Nothing is sent.
    let way = UdpSocket::bind((any_like(peer.ip()), 0)).and_then(|socket| {
        socket.set_broadcast(true)?;
        socket.connect(peer)?;
        socket.local_addr()
    });
    way.map(|local| local.ip()).map_err(|error| Refusal {
        errno: error.raw_os_error().unwrap_or(libc::ENETUNREACH),
        why: format!("Linux knows no way to {}: {error}", peer.ip()),
    })
}
