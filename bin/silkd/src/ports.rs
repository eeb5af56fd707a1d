//! The local ports silk uses, kept apart from Linux's (SILK §5.1 leaves this to the
//! administrator). Every port of ours is also bound as a socket of Linux's, so neither side
//! can give a port away that the other has; if the daemon dies, the kernel closes them and
//! answers newcomers with RST. Where a program listens, so does that socket, and of datagrams it is
//! read, for what does not come over silk's device (`host.rs`, `host_datagrams.rs`).

use crate::reserved::{Reserved, reserve_another};
use crate::settings::any_like;
use rustix::io::Errno;
use silk_control::{Kind, Refusal};
use silk_path::{Endpoint, Sharing};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// At which IPs a socket has its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// IPv4.
    pub four: bool,
    /// IPv6.
    pub six: bool,
}

impl Sides {
    /// Both.
    pub const BOTH: Self = Self { four: true, six: true };

    /// That of an address.
    pub const fn of(address: IpAddr) -> Self {
        Self { four: address.is_ipv4(), six: address.is_ipv6() }
    }

    /// Each, as "is it IPv6".
    pub fn each(self) -> impl Iterator<Item = bool> {
        [(self.four, false), (self.six, true)].into_iter().filter(|(has, _)| *has).map(|(_, six)| six)
    }
}

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

/// Where Linux is asked to reserve a port: at one address of its own, or at any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The address.
    pub address: IpAddr,
    /// What it stands for: of `::`, both IPs or IPv6 alone.
    pub sides: Sides,
}

impl From<IpAddr> for Place {
    fn from(address: IpAddr) -> Self {
        Self { address, sides: Sides::of(address) }
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

/// How long a port rests before it is used again, unless [`RESTING`] do.
const REST: Duration = Duration::from_secs(1);
/// Where so many rest, as many connections have come since the first of them: it need not wait longer.
const RESTING: usize = 2048;
/// Nobody seems to want a port that has rested so long: it is Linux's again.
const FORGOTTEN: Duration = Duration::from_secs(2);

/// A port that a connection has had, and Linux's socket that goes on holding it.
struct Resting {
    since: Instant,
    port: u16,
    linux: Arc<Reserved>,
}

/// How a socket has its port.
#[derive(Clone, Debug, Default)]
pub struct PortHold {
    /// Linux's socket that holds it, where Linux has the address too.
    pub linux: Option<Arc<Reserved>>,
    /// How others may have it beside it.
    pub sharing: Option<Sharing>,
}

/// Which sockets one lets have its port beside it: those that want this too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// `SO_REUSEPORT`: they share those who come.
    pub port: bool,
    /// `SO_REUSEADDR`: of streams all may be bound as long as none listens; of datagrams, the latest hears whom no
    /// other is connected to.
    pub address: bool,
}

impl From<bool> for Share {
    fn from(port: bool) -> Self {
        Self { port, address: false }
    }
}

impl Share {
    /// What both want.
    fn and(self, other: Self) -> Self {
        Self { port: self.port && other.port, address: self.address && other.address }
    }

    fn how(self) -> Option<Sharing> {
        match self {
            Self { port: true, .. } => Some(Sharing::Peers),
            Self { address: true, .. } => Some(Sharing::Latest),
            _ => None,
        }
    }
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
        let mut held = Held { kind, address: local.ip(), sides, port: local.port(), peer: None };
        for (n, place) in places.iter().enumerate() {
            match self.take_at(Held { sides: place.sides, ..held }, *place, share, false) {
                Ok(port) => held.port = port,
                Err(refusal) => {
                    let back = |place: &Place| self.give_back(&Held { sides: place.sides, ..held });
                    places[..n].iter().for_each(back);
                    return Err(refusal);
                }
            }
        }
        Ok(held)
    }

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
    fn leads_elsewhere(&mut self, address: IpAddr, peer: Endpoint) -> Option<u16> {
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
    fn rested(&mut self, address: IpAddr, now: Instant) -> Option<Resting> {
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

    /// Whoever names a port may have it, though it rests.
    fn awake(&mut self, wanted: Held) {
        for (address, queue) in &mut self.resting {
            if wanted.keys().any(|(_, _, at)| overlaps(at, *address)) {
                queue.retain(|resting| resting.port != wanted.port);
            }
        }
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
            let shares = self.taken.get(&key).is_some_and(|own| own.shared.port);
            if self.rivals(key).any(|taken| taken.listening > 0 && !(shares && taken.shared.port)) {
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

    /// One socket uses the port no longer.
    pub fn give_back(&mut self, held: &Held) {
        for key in held.keys() {
            let Some(taken) = self.taken.get_mut(&key) else { continue };
            taken.users -= 1;
            if let Some(at) = taken.peers.iter().position(|peer| Some(*peer) == held.peer) {
                taken.peers.swap_remove(at);
            }
            if taken.users == 0
                && let Some(mut taken) = self.taken.remove(&key)
                && taken.turns
                && let Some(linux) = taken.linux.take_if(|linux| linux.is_quiet())
            {
                let resting = Resting { since: Instant::now(), port: held.port, linux };
                self.resting.entry(held.address).or_default().push_back(resting);
            }
        }
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

/// Whether two connections from one port could be to one peer.
fn meets(a: Endpoint, b: Endpoint) -> bool {
    a.ip() == b.ip() && (a.port() == b.port() || a.port() == 0 || b.port() == 0)
}

fn in_use(port: u16, who: &str) -> Refusal {
    Refusal { errno: libc::EADDRINUSE, why: format!("port {port} is in use: {who}") }
}

#[cfg(test)]
mod tests;
