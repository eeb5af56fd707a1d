//! The ports of connections whose program names none: they take turns, and where none is left those that lead to
//! others are used once more.

use super::{Held, Key, Ports, Reservation, Share, any_like, last_like, overlaps};
use crate::between::reserved::Reserved;
use silk_control::{Kind, Refusal};
use silk_path::Endpoint;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a port rests before it is used again, unless [`RESTING`] do.
pub(super) const REST: Duration = Duration::from_secs(1);
/// Where so many rest, as many connections have come since the first of them: it need not wait longer.
pub(super) const RESTING: usize = 2048;
/// Nobody seems to want a port that has rested so long: it is Linux's again.
pub(super) const FORGOTTEN: Duration = Duration::from_secs(2);

/// A port that a connection has had, and Linux's socket that goes on holding it.
pub(super) struct Resting {
    pub(super) since: Instant,
    pub(super) port: u16,
    pub(super) linux: Arc<Reserved>,
}

impl Ports {
    /// Takes a port at an address for a socket that connects to `peer`: of streams a free one that has rested, or else
    /// one that Linux chooses, or else one that leads to others.
    ///
    /// # Errors
    /// As [`Self::take`]; `EADDRNOTAVAIL` where every port leads to that peer.
    pub fn take_to_connect(&mut self, kind: Kind, address: IpAddr, peer: Endpoint) -> Result<Held, Refusal> {
        let wanted = Held { peer: Some(peer), ..Held::at(kind, address, 0) };
        // A datagram that comes late would be the next socket's.
        let turns = kind == Kind::Stream;
        if turns && let Some(rested) = self.rested(address, Instant::now()) {
            return Ok(self.take_again(wanted, rested));
        }
        let refusal = match self.take_at(wanted, address.into(), Share::default(), turns) {
            Ok(port) => return Ok(Held { port, ..wanted }),
            Err(refusal) if !turns || refusal.errno != libc::EADDRINUSE => return Err(refusal),
            Err(refusal) => refusal,
        };
        // Linux has none left: one that has rested too little is better.
        if let Some(resting) = self.first_free(address) {
            return Ok(self.take_again(wanted, resting));
        }
        let port = self.leads_elsewhere(address, peer).ok_or_else(|| Refusal {
            errno: libc::EADDRNOTAVAIL,
            why: format!(
                "every port of {address} leads to {peer}: widen net.ipv4.ip_local_port_range ({})",
                refusal.why
            ),
        })?;
        let held = Held { port, ..wanted };
        self.change(&held, |taken| {
            taken.users += 1;
            taken.peers.push(peer);
        });
        Ok(held)
    }

    /// A socket that has its port to connect to one peer connects to another from it.
    ///
    /// # Errors
    /// `EADDRNOTAVAIL` where another of this port leads there.
    pub fn leads_now(&mut self, held: &mut Held, peer: Endpoint) -> Result<(), Refusal> {
        let Some(before) = held.peer.filter(|before| *before != peer) else { return Ok(()) };
        let leads_there = |taken: &Reservation| {
            let own = taken.peers.iter().position(|known| *known == before);
            let mut others = taken.peers.iter().enumerate().filter(|(n, _)| Some(*n) != own);
            others.any(|(_, known)| meets(*known, peer))
        };
        if held.keys().filter_map(|key| self.taken.get(&key)).any(leads_there) {
            let why = format!("another connection from port {} leads to {peer}", held.port);
            return Err(Refusal { errno: libc::EADDRNOTAVAIL, why });
        }
        self.change(held, |taken| {
            let own = taken.peers.iter_mut().find(|known| **known == before);
            own.into_iter().for_each(|known| *known = peer);
        });
        held.peer = Some(peer);
        Ok(())
    }

    fn take_again(&mut self, wanted: Held, Resting { port, linux, .. }: Resting) -> Held {
        let held = Held { port, ..wanted };
        let (linux, shared, peers) = (Some(linux), Share::default(), held.peer.into_iter().collect());
        self.taken.insert(
            (false, port, held.address),
            Reservation { linux, users: 1, listening: 0, shared, turns: true, peers },
        );
        held
    }

    /// A port that connections from an address have, none of them to that peer: the next after the last that was
    /// asked for.
    pub(super) fn leads_elsewhere(&mut self, address: IpAddr, peer: Endpoint) -> Option<u16> {
        let from = self.shared_last;
        let (begin, last) = ((false, 0, any_like(address)), (false, u16::MAX, last_like(address)));
        let middle = (false, from.saturating_add(1), any_like(address));
        let all = self.taken.range(middle..=last).chain(self.taken.range(begin..middle));
        let is_it = |((_, _, at), taken): &(&Key, &Reservation)| {
            *at == address && taken.turns && !taken.peers.iter().any(|known| meets(*known, peer))
        };
        let port = all.into_iter().find(is_it).map(|((_, port, _), _)| *port)?;
        self.shared_last = port;
        Some(port)
    }

    /// The port that has rested longest at an address, if that is long enough.
    pub(super) fn rested(&mut self, address: IpAddr, now: Instant) -> Option<Resting> {
        let queue = self.resting.get(&address)?;
        let is_long = |first: &Resting| now.duration_since(first.since) >= REST;
        let has_rested = queue.len() >= RESTING || queue.front().is_some_and(is_long);
        has_rested.then(|| self.first_free(address)).flatten()
    }

    /// The port that has rested longest at an address, and that nobody has meanwhile.
    fn first_free(&mut self, address: IpAddr) -> Option<Resting> {
        let is_free = |one: &Resting| self.rivals((false, one.port, address)).next().is_none();
        let at = self.resting.get(&address)?.iter().position(is_free)?;
        self.resting.get_mut(&address)?.remove(at)
    }

    /// Gives Linux back what has rested so long that nobody seems to want it.
    pub fn tidy(&mut self, now: Instant) {
        self.resting.retain(|_, queue| {
            while queue.front().is_some_and(|first| now.duration_since(first.since) >= FORGOTTEN) {
                queue.pop_front();
            }
            !queue.is_empty()
        });
    }

    /// The last connection has left a port, which rests from now on.
    pub(super) fn rest(&mut self, held: &Held, mut taken: Reservation) {
        if let Some(linux) = taken.linux.take_if(|linux| linux.is_quiet()) {
            let resting = Resting { since: Instant::now(), port: held.port, linux };
            self.resting.entry(held.address).or_default().push_back(resting);
        }
    }

    /// Whoever names a port may have it, though it rests.
    pub(super) fn awake(&mut self, wanted: Held) {
        for (address, queue) in &mut self.resting {
            if wanted.keys().any(|(_, _, at)| overlaps(at, *address)) {
                queue.retain(|resting| resting.port != wanted.port);
            }
        }
    }
}

/// Whether two connections from one port could be to one peer.
fn meets(a: Endpoint, b: Endpoint) -> bool {
    a.ip() == b.ip() && (a.port() == b.port() || a.port() == 0 || b.port() == 0)
}
