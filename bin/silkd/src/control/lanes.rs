//! Lanes of datagram sockets: rings and a path for what a class sends to a socket whose own class is less important. An executor asks
//! for them when it passes datagrams on, and all sockets at the port have one. It lasts as long as its socket, and hears nothing while that
//! has a peer, or one at the port is in groups, whose sources one domain knows.

use crate::between::command::Command;
use crate::between::names::SocketName;
use crate::between::sockets::Rings;
use crate::control::family::{Family, Socket, State};
use crate::control::server::Server;
use crate::slots::{clear, place_rings};
use silk_control::{Kind, SlotNumber};
use silk_path::Endpoint;
use silk_stream::{OWNER_NOBODY, kind};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;

/// A socket whose program did not choose its port gets a lane when so many datagrams were passed on: who asks others has a new one for each
/// question. A server is known by its port, and gets one at once.
const FEW: u32 = 4;
/// More sockets that share a port are not served so: they are one for each peer.
const SHARERS: usize = 64;

/// A lane of a socket.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// The domain that serves it.
    domain: usize,
    generation: u32,
    rings: Rings,
    /// It has its path.
    hears: bool,
}

/// The lanes of a socket by their slots.
#[derive(Debug, Default)]
pub struct Lanes {
    all: BTreeMap<SlotNumber, Lane>,
    /// They are closed, and there will be no more.
    is_closed: bool,
    /// The socket is gone when they are.
    is_gone: bool,
}

impl Family {
    /// Room for a lane of a socket, which is in its list then.
    fn new_lane(&mut self, of: SlotNumber, domain: usize, [rx, tx]: [u32; 2]) -> Option<(SlotNumber, Lane)> {
        if !self.pool.has_room([rx, tx]) {
            return None;
        }
        let slot = self.pool.take_slot()?;
        let arena = self.arena.clone();
        let record = arena.slot(slot)?;
        let rings = [rx, tx].map(|size| self.pool.take_ring(size));
        let [Some(rx), Some(tx)] = rings else {
            rings.into_iter().flatten().for_each(|ring| self.pool.return_ring(ring));
            self.pool.return_slot(slot);
            return None;
        };
        let rings = Rings { rx, tx };
        let generation = clear(record);
        record.kind.store(kind::DATAGRAM, SeqCst);
        record.owner.store(OWNER_NOBODY, SeqCst);
        record.holders.store(0, SeqCst);
        record.domain.store(domain as u32, SeqCst);
        place_rings(record, rings);
        let lane = Lane { domain, generation, rings, hears: true };
        self.lanes.entry(of).or_default().all.insert(slot, lane);
        self.lane_of.insert(slot, of);
        self.link_lanes(of);
        Some((slot, lane))
    }

    /// Names the lanes of a socket in its slot and theirs, the most important first. Who goes along them meanwhile may miss some this once.
    fn link_lanes(&self, of: SlotNumber) {
        let Some(lanes) = self.lanes.get(&of) else { return };
        let mut slots: Vec<_> = lanes.all.iter().map(|(slot, lane)| (lane.domain, *slot)).collect();
        slots.sort_unstable();
        let mut next = 0;
        for slot in slots.into_iter().map(|(_, slot)| slot).chain([of]) {
            if let Some(record) = self.arena.slot(slot) {
                record.lane().store(next, SeqCst);
            }
            next = slot + 1;
        }
    }
}

impl Server {
    /// What a more important domain receives for the datagram sockets at `local`, so many by now, is passed to the domain `home`: they all get
    /// lanes there, and so do those that share their port later; if there is no memory for one, or no path, none has. One alone would hear
    /// what others are to hear.
    pub(crate) fn make_lanes(&mut self, (local, passed): (Endpoint, u32), home: usize, domain: usize) {
        let port = local.port();
        let hearing = self.who_hears(port);
        let are_of_home = hearing.iter().all(|(_, socket)| socket.state == State::Served { domain: home });
        let are_served = passed >= FEW || hearing.iter().any(|(_, socket)| socket.chose_port);
        if hearing.is_empty() || !are_of_home || !are_served {
            return;
        }
        let names: Vec<_> = hearing.into_iter().map(|(name, _)| name).collect();
        if !self.may_have_lanes(&names) {
            return;
        }
        self.with_lanes.entry(port).or_default().insert(domain);
        if !names.into_iter().all(|name| self.make_lane(name, domain)) {
            self.deafen_port(port);
        }
    }

    /// A datagram socket is bound, and has no peer: it has lanes where others at its port have.
    pub(crate) fn make_lanes_beside_others(&mut self, of: SocketName) {
        let known = self.families.get(&of.family).and_then(|known| known.sockets.get(&of.slot));
        let Some(port) = known.and_then(|socket| socket.local).map(|local| local.port()) else { return };
        let Some(domains) = self.with_lanes.get(&port).cloned() else { return };
        let names: Vec<_> = self.who_hears(port).into_iter().map(|(name, _)| name).collect();
        if !self.may_have_lanes(&names) || !domains.into_iter().all(|domain| self.make_lane(of, domain)) {
            self.deafen_port(port);
        }
    }

    /// Whether these may be all that hear everybody at a port with lanes.
    fn may_have_lanes(&self, names: &[SocketName]) -> bool {
        let is_in_group = |name: &SocketName| self.groups.of(*name).next().is_some();
        names.len() <= SHARERS && !names.iter().any(is_in_group)
    }

    /// Makes a socket a lane in a more important domain, or lets it hear there again. Whether there was memory for it.
    fn make_lane(&mut self, of: SocketName, domain: usize) -> bool {
        let known = self.families.get(&of.family).and_then(|known| known.sockets.get(&of.slot));
        let is_less = |state| matches!(state, State::Served { domain: home } if home < domain);
        let Some(socket) = known.filter(|socket| is_less(socket.state)) else { return true };
        let Some((local, held)) = socket.local.zip(socket.held) else { return true };
        let memory = &self.settings.config.memory;
        let sizes = [memory.receive_ring.get() as u32, memory.send_ring.get() as u32];
        let (locals, sharing) = (self.datagram_ends(of, local), self.ports.hold(&held).sharing);
        let Some(known) = self.families.get_mut(&of.family) else { return true };
        let lanes = known.lanes.entry(of.slot).or_default();
        if lanes.is_closed {
            return true;
        }
        let there = lanes.all.iter_mut().find(|(_, lane)| lane.domain == domain);
        let opened = there.is_none();
        let lane = match there {
            Some((_, lane)) if lane.hears => return true,
            Some((slot, lane)) => {
                lane.hears = true;
                Some((*slot, *lane))
            }
            None => known.new_lane(of.slot, domain, sizes),
        };
        if let (Some((slot, lane)), Some(orders)) = (lane, self.orders.get(domain)) {
            let socket = SocketName { family: of.family, slot };
            let rings = lane.rings;
            let _ = orders.give(Command::Lane { socket, of: of.slot, rings, locals, sharing, opened });
        }
        lane.is_some()
    }

    /// The datagram sockets at a port that hear everybody, in the order in which they have been opened.
    fn who_hears(&self, port: u16) -> Vec<(SocketName, &Socket)> {
        let sockets = self.families.iter().flat_map(|(family, known)| {
            let named = |slot: &SlotNumber| SocketName { family: *family, slot: *slot };
            known.sockets.iter().map(move |(slot, socket)| (named(slot), socket))
        });
        let hears = |socket: &Socket| {
            let at_port = socket.local.is_some_and(|local| local.port() == port);
            let is_open = matches!(socket.state, State::Served { .. }) && !socket.holders.is_empty();
            socket.kind == Kind::Datagram && at_port && is_open && !socket.has_peer && !socket.is_of_graph
        };
        let mut hearing: Vec<_> = sockets.filter(|(_, socket)| hears(socket)).collect();
        hearing.sort_by_key(|(_, socket)| socket.opened);
        hearing
    }

    /// A socket has a peer from now on: its lanes hear nothing any more. What they have heard is still there.
    pub(crate) fn deafen_lanes(&mut self, of: SocketName) {
        let lanes = self.families.get_mut(&of.family).and_then(|known| known.lanes.get_mut(&of.slot));
        for (slot, lane) in lanes.into_iter().flat_map(|lanes| &mut lanes.all) {
            lane.hears = false;
            let socket = SocketName { family: of.family, slot: *slot };
            let _ = self.orders.get(lane.domain).map(|orders| orders.give(Command::Deafen(socket)));
        }
    }

    /// A socket is in a group from now on: none of those at its port has lanes, since one domain knows whose groups' sources are.
    pub(crate) fn deafen_port_of(&mut self, of: SocketName) {
        let known = self.families.get(&of.family).and_then(|known| known.sockets.get(&of.slot));
        if let Some(local) = known.and_then(|socket| socket.local) {
            self.deafen_port(local.port());
        }
    }

    /// What more important domains receive for the sockets at a port is passed on from now on, as before they had lanes.
    pub(crate) fn deafen_port(&mut self, port: u16) {
        if self.with_lanes.remove(&port).is_some() {
            let names: Vec<_> = self.who_hears(port).into_iter().map(|(name, _)| name).collect();
            names.into_iter().for_each(|name| self.deafen_lanes(name));
        }
    }

    /// A datagram socket is at this port no longer.
    pub(crate) fn forget_port(&mut self, port: u16) {
        if self.with_lanes.contains_key(&port) && self.who_hears(port).is_empty() {
            self.with_lanes.remove(&port);
        }
    }

    /// A socket is closed, and its lanes with it.
    pub(crate) fn close_lanes(&mut self, of: SocketName) {
        let known = self.families.get_mut(&of.family).and_then(|known| known.lanes.get_mut(&of.slot));
        let Some(lanes) = known.filter(|lanes| !lanes.is_closed) else { return };
        lanes.is_closed = true;
        for (slot, Lane { domain, generation, .. }) in &lanes.all {
            let (socket, generation) = (SocketName { family: of.family, slot: *slot }, *generation);
            let close = Command::Close { socket, generation, died: false };
            let _ = self.orders.get(*domain).map(|orders| orders.give(close));
        }
    }

    /// The executor of a socket is done with it. Whether it is to be thought of as there until its lanes are gone.
    pub(crate) fn has_lanes_left(&mut self, of: SocketName) -> bool {
        self.close_lanes(of);
        let Some(known) = self.families.get_mut(&of.family) else { return false };
        let Some(lanes) = known.lanes.get_mut(&of.slot) else { return false };
        lanes.is_gone = true;
        let are_left = !lanes.all.is_empty();
        if !are_left {
            known.lanes.remove(&of.slot);
        }
        are_left
    }

    /// A socket that is gone may have been a lane: `None`, it was none. Else the socket that it was of, if that is gone with it.
    pub(crate) fn lane_gone(&mut self, name: SocketName) -> Option<Option<SocketName>> {
        let known = self.families.get_mut(&name.family)?;
        let of = known.lane_of.remove(&name.slot)?;
        let lanes = known.lanes.get_mut(&of)?;
        let lane = lanes.all.remove(&name.slot)?;
        let is_last = lanes.all.is_empty() && lanes.is_gone;
        if is_last {
            known.lanes.remove(&of);
        } else {
            known.link_lanes(of);
        }
        known.return_rings(Some(lane.rings));
        known.pool.return_slot(name.slot);
        Some(is_last.then_some(SocketName { family: name.family, slot: of }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_stream::{Arena, Sizes};

    #[test]
    fn a_program_goes_along_the_lanes_of_its_socket_from_the_most_important_on() {
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 4 }).unwrap();
        let mut family = Family::new(0, 7, arena.clone(), "test".into());
        let of = family.pool.take_slot().unwrap();
        let lanes = [1, 3, 2].map(|domain| family.new_lane(of, domain, [64 << 10; 2]).unwrap().0);
        let next = |slot: SlotNumber| arena.slot(slot).unwrap().lane().load(SeqCst).checked_sub(1);
        let seen: Vec<_> = std::iter::successors(next(of), |slot| next(*slot)).collect();
        assert_eq!(seen, [lanes[1], lanes[2], lanes[0]]);
        family.lanes.get_mut(&of).unwrap().all.remove(&lanes[2]);
        family.link_lanes(of);
        let seen: Vec<_> = std::iter::successors(next(of), |slot| next(*slot)).collect();
        assert_eq!(seen, [lanes[1], lanes[0]]);
    }

    #[test]
    fn without_room_there_is_no_lane_and_nothing_is_lost() {
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 4 }).unwrap();
        let mut family = Family::new(0, 7, arena, "test".into());
        let of = family.pool.take_slot().unwrap();
        let made = (0..64).map_while(|_| family.new_lane(of, 1, [512 << 10; 2])).count();
        assert!((2..=4).contains(&made), "{made}");
        let lanes = family.lanes.remove(&of).unwrap().all;
        for (slot, lane) in lanes {
            family.return_rings(Some(lane.rings));
            family.pool.return_slot(slot);
        }
        assert_eq!((0..64).map_while(|_| family.new_lane(of, 1, [512 << 10; 2])).count(), made);
    }
}
