//! What programs send by datagram sockets: records of a ring become messages, each by the way that leads to its peer and
//! as its socket wishes, or it itself.

use crate::between::names::SocketName;
use crate::domain::datagrams::options_of;
use crate::domain::engine::Engine;
use crate::domain::port::note_moved;
use crate::domain::socket_end::SocketEnd;
use silk_instant::Instant;
use silk_modules::ip::Ip;
use silk_modules::ip6::Ip6;
use silk_path::{Bell, Checksum, DropReason, Endpoint, Message, Meta, NOWHERE, PathId, Wishes};
use silk_stream::{Datagram, Way, request};
use silk_wire::{ipv4, udp};
use std::net::IpAddr;
use std::sync::atomic::Ordering::SeqCst;

/// Datagrams sent for one doorbell before others have a turn; what was written as one is not divided between two.
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

impl Engine {
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
        if asked & (request::SHUT_READ | request::SHUT_WRITE) != 0 {
            end.tell_anyway();
        }
        let mut leaving = self.leaving(id, &end);
        let is_left = self.send_some(&mut end, &mut leaving, SENDING, now);
        end.told = leaving.told;
        self.core.port.put_datagrams(id, end);
        if asked & request::CLOSE != 0 {
            self.close_datagrams(id, name, now);
        } else if is_left {
            if let Some(socket) = self.sockets.find(name) {
                socket.rung = true;
            }
            self.wake(id, now);
        }
    }

    /// Sends so many datagrams that a program has written, or looks at as many records, whatever they are. Whether there may be more.
    fn send_some(&mut self, end: &mut SocketEnd, leaving: &mut Leaving, most: usize, now: Instant) -> bool {
        for _ in 0..most {
            if leaving.count >= most {
                break;
            }
            if !end.pop_datagram(|to, data| self.send_record(leaving, to, data, now)) {
                return false;
            }
        }
        true
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
            let Some(wished) = self.as_wished(meta, leaving.socket, to.way) else {
                return self.core.drops.count(DropReason::IpStaysHere);
            };
            meta = wished;
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

    /// A datagram socket, nothing of which has left yet.
    fn leaving(&self, first: PathId, end: &SocketEnd) -> Leaving {
        let name = end.name();
        let twin = self.sockets.get(name).and_then(|socket| socket.twin);
        Leaving { name, socket: end.socket(), first, twin, told: end.told, count: 0 }
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
            self.core.bell(path, bell, now);
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
    pub(crate) fn wished_by(&self, socket: SocketName) -> Wishes {
        self.slot_of(socket).map(crate::domain::wishes::of).unwrap_or_default()
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

    /// What IP's own path, which is nobody's, is told with each datagram: the options of its socket, and its own. `None`: it is not to leave.
    fn as_wished(&self, meta: Meta, socket: SocketName, way: Way) -> Option<Meta> {
        let (wishes, to) = (self.wished_by(socket), meta.remote.ip());
        let (alone, group, discovery) = match to {
            IpAddr::V4(_) => (wishes.ttl, wishes.group_ttl, wishes.discovery),
            IpAddr::V6(_) => (wishes.hops, wishes.group_hops, wishes.discovery6),
        };
        let hops = if to.is_multicast() { group } else { alone };
        // There 0 is as many as usual.
        let hops = match (way.hops, hops) {
            (0, Some(0)) => return None,
            (0, hops) => hops.unwrap_or(0),
            (hops, _) => hops,
        };
        Some(Meta { tos: way.service, hops, discovery, ..meta })
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
        let mut leaving = self.leaving(id, end);
        self.send_some(end, &mut leaving, LAST_WORDS, now);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::between::sockets::Rings;
    use crate::domain::rig;
    use silk_stream::{Arena, Pool, Sent, Sizes, push_datagram};

    const RING: u32 = 1 << 16;

    /// So many records of `len` bytes lie in a ring, each of datagrams of `segment` bytes; how many are left after each turn.
    fn turns(records: u32, len: u32, segment: u16) -> Vec<u32> {
        let mut engine = rig::engine("[[class]]\nname = \"all\"\ndefault = true\n");
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
        let mut pool = Pool::new(arena.clone());
        let name = SocketName { family: 0, slot: pool.take_slot().unwrap() };
        let [rx, tx] = [(); 2].map(|()| pool.take_ring(RING).unwrap());
        let sent = Sent { peer: "10.0.0.2:9".parse().unwrap(), way: Way::default(), segment, from: None };
        let (ring, data) = (arena.ring(tx.place, tx.size).unwrap(), vec![0; len as usize]);
        let record = |write, _| push_datagram(ring, write, RING - write, &sent, &[&data]).unwrap();
        let written = (0..records).fold(0, record);
        let slot = arena.slot(name.slot).unwrap();
        slot.tx_write.store(written, SeqCst);
        let mut end = SocketEnd::new(&arena, name, Rings { rx, tx }).unwrap();
        // What leaves by a path that is over is dropped there, and has had its turn.
        let over = PathId { index: 0, generation: u32::MAX };
        let mut left = Vec::new();
        loop {
            let mut leaving = engine.leaving(over, &end);
            let is_left = engine.send_some(&mut end, &mut leaving, SENDING, Instant::ZERO);
            left.push((written - slot.tx_read.load(SeqCst)) / sent.space(len));
            if !is_left {
                return left;
            }
        }
    }

    #[test]
    fn a_turn_is_so_many_datagrams_whatever_their_records_are() {
        assert_eq!(turns(150, 100, 0), [86, 22, 0]);
        // Twenty each: what was written as one is not divided between two turns.
        assert_eq!(turns(10, 2_000, 100), [6, 2, 0]);
        // More than there are in a record that may leave.
        assert_eq!(turns(2, 10_000, 1), [1, 0, 0]);
    }

    #[test]
    fn a_record_in_two_pieces_is_cut_wherever_the_pieces_meet() {
        let data = [b"abcd".as_slice(), b"efg"];
        let cut: Vec<_> = (0..7).step_by(3).map(|at| part(data, at, 3).concat()).collect();
        assert_eq!(cut, [b"abc".as_slice(), b"def", b"g"]);
    }
}
