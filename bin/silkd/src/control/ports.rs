//! The local ports silk uses, kept apart from Linux's (SILK §5.1 leaves this to the
//! administrator). Every port of ours is also bound as a socket of Linux's, so neither side
//! can give a port away that the other has; if the daemon dies, the kernel closes them and
//! answers newcomers with RST. Where a program listens, so does that socket, and of datagrams it is
//! read, for what does not come over silk's device (`host.rs`, `host_datagrams.rs`).

mod connecting;

use crate::between::reserved::{PortHold, Reserved, reserve_another};
use crate::binding::{Place, Share, Sides, any_like};
use connecting::Resting;
use rustix::io::Errno;
use silk_control::{Kind, Refusal};
use silk_path::Endpoint;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

/// Where a socket has its port. An address that means any stands for all of silk's at these sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Of streams or of datagrams.
    pub kind: Kind,
    /// The address it is bound to.
    pub address: IpAddr,
    /// What that stands for: of `::`, both IPs or IPv6 alone.
    pub sides: Sides,
    /// The port.
    pub port: u16,
    /// Whom it was taken to connect to. A peer's port of zero stands for all of them.
    pub peer: Option<Endpoint>,
}

impl Held {
    /// A port at an address of one IP.
    pub fn at(kind: Kind, address: IpAddr, port: u16) -> Self {
        Self { kind, address, sides: Sides::of(address), port, peer: None }
    }

    /// Whether one packet could be for both.
    pub fn overlaps(&self, other: &Self) -> bool {
        let same = |key: Key| {
            other.keys().any(|(kind, port, at)| (kind, port) == (key.0, key.1) && overlaps(at, key.2))
        };
        self.keys().any(same)
    }

    /// Its place in the books at each of its sides.
    fn keys(self) -> impl Iterator<Item = Key> {
        let address = move |six| if self.address.is_unspecified() { any_of(six) } else { self.address };
        self.sides.each().map(move |six| (self.kind == Kind::Datagram, self.port, address(six)))
    }
}

/// A port at an address: is it a datagram port, which is it, and where.
type Key = (bool, u16, IpAddr);

/// The ports in use, each with the sockets that share it.
#[derive(Default)]
pub struct Ports {
    /// By where they are.
    taken: BTreeMap<Key, Reservation>,
    /// Those that connections have had, by their address, the one that has rested longest first. The next
    /// connection to the same peer from the same port would meet what is left of the last there (TIME-WAIT),
    /// and Linux, which chooses at random, would soon choose it again.
    resting: BTreeMap<IpAddr, VecDeque<Resting>>,
    /// The port that was last given to one more connection.
    shared_last: u16,
}

/// A port at an address.
struct Reservation {
    /// Linux's socket that holds the port; `None` when the address is not Linux's at all.
    linux: Option<Arc<Reserved>>,
    users: u32,
    /// How many of them listen.
    listening: u32,
    /// What all of them want.
    shared: Share,
    /// Connections have it; they take turns with it.
    turns: bool,
    /// Whom these lead to.
    peers: Vec<Endpoint>,
}

impl Reservation {
    /// Whether a socket of a kind that wants this may be bound beside those that have it.
    fn admits(&self, kind: Kind, share: Share) -> bool {
        let both = self.shared.and(share);
        both.port || both.address && (kind == Kind::Datagram || self.listening == 0)
    }
}

/// So many ports are tried for who wants any, where each has to be free at several places.
const MOST_TRIES: u32 = 64;

/// How often, and how long, an executor is waited for that has Linux's socket of a port in its hands.
const MOMENTS: u32 = 20;
const MOMENT: Duration = Duration::from_micros(50);

/// Ends Linux's socket of a datagram port that is given back, whose next owner may ask for it at once. An executor that just looks at it has it for
/// some microseconds.
fn let_go(mut linux: Arc<Reserved>) {
    linux.give_back();
    for _ in 0..MOMENTS {
        match Arc::try_unwrap(linux) {
            Ok(_) => return,
            Err(held) => linux = held,
        }
        std::thread::sleep(MOMENT);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // One that holds the port at the other IP too ends with the first of the two.
        self.linux.iter().for_each(|linux| linux.give_back());
    }
}

impl Ports {
    /// Takes a port (zero: any free one) for one socket that is bound to `local`, and at every place of Linux's.
    ///
    /// # Errors
    /// `EADDRINUSE` with a sentence that says who has it, or the kernel's own error. Nothing is
    /// taken then.
    pub fn take(
        &mut self,
        kind: Kind,
        (local, sides): (Endpoint, Sides),
        places: &[Place],
        share: impl Into<Share>,
    ) -> Result<Held, Refusal> {
        let share = share.into();
        let wanted = Held { kind, address: local.ip(), sides, port: local.port(), peer: None };
        let mut tries = 0;
        loop {
            tries += 1;
            match self.take_everywhere(wanted, places, share) {
                // The port that was free at the first place is not at another: another may be.
                Err((refusal, 1..))
                    if wanted.port == 0
                        && refusal.errno == Errno::ADDRINUSE.raw_os_error()
                        && tries < MOST_TRIES => {}
                taken => return taken.map_err(|(refusal, _)| refusal),
            }
        }
    }

    /// The same once: whatever port is free at the first place has to be so at all others. Nothing is taken where it is not; the
    /// number of the place that refuses is told.
    fn take_everywhere(
        &mut self,
        wanted: Held,
        places: &[Place],
        share: Share,
    ) -> Result<Held, (Refusal, usize)> {
        let mut held = wanted;
        for (n, place) in places.iter().enumerate() {
            match self.take_at(Held { sides: place.sides, ..held }, *place, share, false) {
                Ok(port) => held.port = port,
                Err(refusal) => {
                    let back = |place: &Place| self.give_back(&Held { sides: place.sides, ..held });
                    places[..n].iter().for_each(back);
                    return Err((refusal, n));
                }
            }
        }
        Ok(held)
    }

    /// Whoever has a port where one packet could be for both.
    fn rivals(&self, key: Key) -> impl Iterator<Item = &Reservation> {
        let (datagram, port, address) = key;
        let (any, last) = (any_like(address), last_like(address));
        let there = self.taken.range((datagram, port, any)..=(datagram, port, last));
        there.filter(move |((_, _, at), _)| overlaps(*at, address)).map(|(_, taken)| taken)
    }

    /// Takes a port at one place of Linux's; with `turns`, for connections from that address, which do not listen.
    fn take_at(&mut self, wanted: Held, place: Place, share: Share, turns: bool) -> Result<u16, Refusal> {
        let Held { kind, port, .. } = wanted;
        if port != 0 {
            if kind == Kind::Stream {
                self.awake(wanted);
            }
            if wanted.keys().flat_map(|key| self.rivals(key)).any(|taken| !taken.admits(kind, share)) {
                return Err(in_use(port, "a program on silk has it already"));
            }
            let known = wanted.keys().filter(|key| self.taken.contains_key(key)).count();
            if known == wanted.keys().count() {
                self.change(&wanted, |taken| {
                    taken.users += 1;
                    taken.shared = taken.shared.and(share);
                });
                return Ok(port);
            }
            if known > 0 {
                return Err(in_use(port, "a program on silk has it at one of the two IPs"));
            }
        }
        let is_taken = |port| {
            let chosen = Held { port, ..wanted };
            chosen.keys().any(|key| self.rivals(key).next().is_some())
        };
        let reserved = reserve_another((kind, place, port), share, !turns, is_taken);
        let (linux, port) = match reserved {
            Ok((socket, port)) => (Some(Arc::new(Reserved::new(socket))), port),
            Err(Errno::ADDRNOTAVAIL) => (None, self.free_port(wanted)?),
            Err(Errno::ADDRINUSE) => {
                return Err(in_use(
                    port,
                    "a program on Linux's own stack has it: stop that one, or let it run on silk",
                ));
            }
            Err(errno) => {
                return Err(Refusal {
                    errno: errno.raw_os_error(),
                    why: format!("Linux refused to reserve port {port}: {errno}"),
                });
            }
        };
        for key in (Held { port, ..wanted }).keys() {
            let (linux, peers) = (linux.clone(), wanted.peer.filter(|_| turns).into_iter().collect());
            self.taken
                .insert(key, Reservation { linux, users: 1, listening: 0, shared: share, turns, peers });
        }
        Ok(port)
    }

    fn change(&mut self, held: &Held, what: impl Fn(&mut Reservation)) {
        held.keys().for_each(|key| self.taken.get_mut(&key).into_iter().for_each(&what));
    }

    /// One of a port's sockets begins to listen.
    ///
    /// # Errors
    /// `EADDRINUSE` where another does, unless both share who comes.
    pub fn listen(&mut self, held: &Held) -> Result<(), Refusal> {
        for key in held.keys() {
            let own = self.taken.get(&key).map_or_else(Share::default, |own| own.shared);
            if self.rivals(key).any(|taken| taken.listening > 0 && !own.and(taken.shared).port) {
                return Err(in_use(held.port, "another socket listens at it"));
            }
        }
        self.change(held, |taken| taken.listening += 1);
        Ok(())
    }

    /// It listens no longer.
    pub fn end_listening(&mut self, held: &Held) {
        self.change(held, |taken| taken.listening = taken.listening.saturating_sub(1));
    }

    /// How a port is held.
    pub fn hold(&self, held: &Held) -> PortHold {
        let taken = held.keys().find_map(|key| self.taken.get(&key));
        taken.map_or_else(PortHold::default, |taken| PortHold {
            linux: taken.linux.clone(),
            sharing: taken.shared.how(),
        })
    }

    /// The ports at which datagram sockets are bound to just this address.
    pub fn datagrams_at(&self, address: IpAddr) -> impl Iterator<Item = u16> + '_ {
        self.taken
            .keys()
            .filter(move |(datagram, _, at)| *datagram && *at == address)
            .map(|(_, port, _)| *port)
    }

    /// Whether datagram sockets are bound to just this address, or just to any, and this port.
    pub fn has_datagrams(&self, address: IpAddr, port: u16) -> bool {
        self.taken.contains_key(&(true, port, address))
    }

    /// Where no datagram socket is bound any more, now that this port has been given back: at these addresses, `None` at any at all.
    pub fn deserted(&self, held: &Held) -> Vec<Option<IpAddr>> {
        let (first, last) = (Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::from_bits(u128::MAX).into());
        let all = (true, held.port, first)..=(true, held.port, last);
        if self.taken.range(all).next().is_none() {
            return vec![None];
        }
        held.keys().filter(|key| !self.taken.contains_key(key)).map(|(_, _, address)| Some(address)).collect()
    }

    /// One socket uses the port no longer.
    pub fn give_back(&mut self, held: &Held) {
        let mut ended: Vec<Arc<Reserved>> = Vec::new();
        for key in held.keys() {
            let Some(taken) = self.taken.get_mut(&key) else { continue };
            taken.users -= 1;
            if let Some(at) = taken.peers.iter().position(|peer| Some(*peer) == held.peer) {
                taken.peers.swap_remove(at);
            }
            if taken.users == 0
                && let Some(mut taken) = self.taken.remove(&key)
            {
                // One may hold the port at both IPs.
                taken.linux = taken.linux.take().filter(|linux| !self.is_held_elsewhere(key, linux));
                if taken.turns {
                    self.rest(held, taken);
                } else if held.kind == Kind::Datagram {
                    ended.extend(taken.linux.take());
                }
            }
        }
        ended.into_iter().for_each(let_go);
    }

    /// Whether Linux's socket of a port holds it for others too, at the other IP.
    fn is_held_elsewhere(&self, (datagram, port, _): Key, linux: &Arc<Reserved>) -> bool {
        let (first, last) = (Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::from_bits(u128::MAX).into());
        let mut there = self.taken.range((datagram, port, first)..=(datagram, port, last));
        there.any(|(_, taken)| taken.linux.as_ref().is_some_and(|other| Arc::ptr_eq(other, linux)))
    }

    /// A port nobody uses, where Linux does not choose (the address is silk's alone): the
    /// dynamic ports of RFC 6335 §6.
    fn free_port(&self, wanted: Held) -> Result<u16, Refusal> {
        if wanted.port != 0 {
            return Ok(wanted.port);
        }
        let random = rand_core::TryRngCore::try_next_u32(&mut rand_core::OsRng).unwrap_or(0);
        let start = 49152 + (random % 16384) as u16;
        let is_free =
            |port: &u16| Held { port: *port, ..wanted }.keys().all(|key| self.rivals(key).next().is_none());
        (0..16384u16)
            .map(|step| 49152 + ((start - 49152 + step) % 16384))
            .find(is_free)
            .ok_or_else(|| in_use(0, "every dynamic port is taken"))
    }
}

/// The address of one of the IPs that means any.
fn any_of(six: bool) -> IpAddr {
    if six { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// The last address of the same IP, as numbers are ordered.
fn last_like(address: IpAddr) -> IpAddr {
    if address.is_ipv6() { Ipv6Addr::from_bits(u128::MAX).into() } else { Ipv4Addr::BROADCAST.into() }
}

/// Whether two addresses of one IP stand for one in common.
fn overlaps(a: IpAddr, b: IpAddr) -> bool {
    a == b || a.is_ipv6() == b.is_ipv6() && (a.is_unspecified() || b.is_unspecified())
}

fn in_use(port: u16, who: &str) -> Refusal {
    Refusal { errno: libc::EADDRINUSE, why: format!("port {port} is in use: {who}") }
}

#[cfg(test)]
mod tests;
