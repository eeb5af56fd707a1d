//! The local ports silk uses, kept apart from Linux's (SILK §5.1 leaves this to the
//! administrator). Every port of ours is also bound as a socket of Linux's, so neither side
//! can give a port away that the other has; if the daemon dies, the kernel closes them and
//! answers newcomers with RST. Where a program listens, so does that socket, and of datagrams it is
//! read, for what does not come over silk's device (`host.rs`, `host_datagrams.rs`).

use crate::reserved::{Reserved, reserve_another};
use rustix::io::Errno;
use silk_control::{Kind, Refusal};
use silk_path::Sharing;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
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

/// Where a port is reserved: at an address of Linux's, or at all of these sides.
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

/// The ports in use, each with the sockets that share it.
#[derive(Default)]
pub struct Ports {
    /// By: is it a datagram port, is it IPv6's, which is it.
    taken: BTreeMap<(bool, bool, u16), Reservation>,
    /// Those that connections have had, by their address, the one that has rested longest first. The next
    /// connection to the same peer from the same port would meet what is left of the last there (TIME-WAIT),
    /// and Linux, which chooses at random, would soon choose it again.
    resting: BTreeMap<IpAddr, VecDeque<Resting>>,
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
    /// `SO_REUSEADDR`, which means that for datagrams alone: the latest hears whom no other is connected to.
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

struct Reservation {
    /// Linux's socket that holds the port; `None` when the address is not Linux's at all.
    linux: Option<Arc<Reserved>>,
    users: u32,
    /// What all of them want.
    shared: Share,
    /// The address that connections have it at; they take turns with it.
    turns: Option<IpAddr>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // One that holds the port at the other IP too ends with the first of the two.
        self.linux.iter().for_each(|linux| linux.give_back());
    }
}

impl Ports {
    /// Takes `port` (zero: any free one) at every place for one socket; the port.
    ///
    /// # Errors
    /// `EADDRINUSE` with a sentence that says who has it, or the kernel's own error. Nothing is
    /// taken then.
    pub fn take(
        &mut self,
        kind: Kind,
        places: &[Place],
        port: u16,
        share: impl Into<Share>,
    ) -> Result<u16, Refusal> {
        let (mut port, share) = (port, share.into());
        let share = Share { address: share.address && kind == Kind::Datagram, ..share };
        for (n, place) in places.iter().enumerate() {
            match self.take_at(kind, *place, port, share, None) {
                Ok(taken) => port = taken,
                Err(refusal) => {
                    places[..n].iter().for_each(|place| self.give_back(kind, place.sides, port));
                    return Err(refusal);
                }
            }
        }
        Ok(port)
    }

    /// Takes a free port at an address for a socket that connects: of streams one that has rested, or else
    /// one that Linux chooses.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn take_to_connect(&mut self, kind: Kind, address: IpAddr) -> Result<u16, Refusal> {
        // A datagram that comes late would be the next socket's.
        let turns = (kind == Kind::Stream).then_some(address);
        if let Some(rested) = turns.and_then(|address| self.rested(address, Instant::now())) {
            return Ok(self.take_again(address, rested));
        }
        self.take_at(kind, address.into(), 0, Share::default(), turns).or_else(|refusal| {
            // Linux has none left: one that has rested too little is better.
            let resting = turns.and_then(|address| self.first_free(address)).ok_or(refusal)?;
            Ok(self.take_again(address, resting))
        })
    }

    fn take_again(&mut self, address: IpAddr, Resting { port, linux, .. }: Resting) -> u16 {
        let taken =
            Reservation { linux: Some(linux), users: 1, shared: Share::default(), turns: Some(address) };
        self.taken.insert((false, address.is_ipv6(), port), taken);
        port
    }

    /// The port that has rested longest at an address, if that is long enough.
    fn rested(&mut self, address: IpAddr, now: Instant) -> Option<Resting> {
        let queue = self.resting.get(&address)?;
        let is_long = |first: &Resting| now.duration_since(first.since) >= REST;
        let has_rested = queue.len() >= RESTING || queue.front().is_some_and(is_long);
        has_rested.then(|| self.first_free(address)).flatten()
    }

    /// The port that has rested longest at an address, and is not in use at another: the books know a port by its
    /// number.
    fn first_free(&mut self, address: IpAddr) -> Option<Resting> {
        let queue = self.resting.get_mut(&address)?;
        let is_free = |one: &Resting| !self.taken.contains_key(&(false, address.is_ipv6(), one.port));
        let at = queue.iter().position(is_free)?;
        queue.remove(at)
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

    /// Takes a port at one place; with `turns`, for connections from that address, which do not listen.
    fn take_at(
        &mut self,
        kind: Kind,
        place: Place,
        port: u16,
        share: Share,
        turns: Option<IpAddr>,
    ) -> Result<u16, Refusal> {
        let datagram = kind == Kind::Datagram;
        if !datagram && port != 0 {
            // Whoever names one may have it.
            self.resting.values_mut().for_each(|queue| queue.retain(|resting| resting.port != port));
        }
        let known = |ports: &Self, six| ports.taken.get(&(datagram, six, port)).map(|taken| taken.shared);
        let before: Vec<Option<Share>> = place.sides.each().map(|six| known(self, six)).collect();
        if before.iter().any(|taken| taken.is_some_and(|shared| shared.and(share).how().is_none())) {
            return Err(in_use(port, "a program on silk has it already"));
        }
        if before.iter().all(Option::is_some) {
            for six in place.sides.each() {
                if let Some(taken) = self.taken.get_mut(&(datagram, six, port)) {
                    taken.users += 1;
                    taken.shared = taken.shared.and(share);
                }
            }
            return Ok(port);
        }
        if before.iter().any(Option::is_some) {
            return Err(in_use(port, "a program on silk has it at one of the two IPs"));
        }
        let is_taken =
            |chosen| place.sides.each().any(|six| self.taken.contains_key(&(datagram, six, chosen)));
        let reserved = reserve_another(kind, place, port, turns.is_none(), is_taken);
        let (linux, port) = match reserved {
            Ok((socket, port)) => (Some(Arc::new(Reserved::new(socket))), port),
            Err(Errno::ADDRNOTAVAIL) => (None, self.free_port(datagram, place.sides, port)?),
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
        for six in place.sides.each() {
            let reservation = Reservation { linux: linux.clone(), users: 1, shared: share, turns };
            self.taken.insert((datagram, six, port), reservation);
        }
        Ok(port)
    }

    /// Linux's socket that holds a port at these sides.
    pub fn linux(&self, kind: Kind, sides: Sides, port: u16) -> Option<Arc<Reserved>> {
        self.hold(kind, sides, port).linux
    }

    /// How a port is held at these sides.
    pub fn hold(&self, kind: Kind, sides: Sides, port: u16) -> PortHold {
        let taken = sides.each().next().and_then(|six| self.taken.get(&(kind == Kind::Datagram, six, port)));
        taken.map_or_else(PortHold::default, |taken| PortHold {
            linux: taken.linux.clone(),
            sharing: taken.shared.how(),
        })
    }

    /// One socket uses the port no longer.
    pub fn give_back(&mut self, kind: Kind, sides: Sides, port: u16) {
        for six in sides.each() {
            let key = (kind == Kind::Datagram, six, port);
            let Some(taken) = self.taken.get_mut(&key) else { continue };
            taken.users -= 1;
            if taken.users == 0
                && let Some(mut taken) = self.taken.remove(&key)
                && let Some(address) = taken.turns
                && let Some(linux) = taken.linux.take_if(|linux| linux.is_quiet())
            {
                let resting = Resting { since: Instant::now(), port, linux };
                self.resting.entry(address).or_default().push_back(resting);
            }
        }
    }

    /// A port nobody uses, where Linux does not choose (the address is silk's alone): the
    /// dynamic ports of RFC 6335 §6.
    fn free_port(&self, datagram: bool, sides: Sides, wanted: u16) -> Result<u16, Refusal> {
        if wanted != 0 {
            return Ok(wanted);
        }
        let random = rand_core::TryRngCore::try_next_u32(&mut rand_core::OsRng).unwrap_or(0);
        let start = 49152 + (random % 16384) as u16;
        (0..16384u16)
            .map(|step| 49152 + ((start - 49152 + step) % 16384))
            .find(|port| sides.each().all(|six| !self.taken.contains_key(&(datagram, six, *port))))
            .ok_or_else(|| in_use(0, "every dynamic port is taken"))
    }
}

fn in_use(port: u16, who: &str) -> Refusal {
    Refusal { errno: libc::EADDRINUSE, why: format!("port {port} is in use: {who}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reserved::reserve;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const FOUR: Sides = Sides { four: true, six: false };

    #[test]
    fn a_port_of_ours_is_refused_to_linux_and_the_other_way_round() {
        let mut ports = Ports::default();
        let port = ports.take(Kind::Stream, &[HERE.into()], 0, false).unwrap();
        assert!(std::net::TcpListener::bind((HERE, port)).is_ok_and(|l| l.local_addr().is_ok()) || port != 0);
        let linux = std::net::UdpSocket::bind((HERE, 0)).unwrap();
        let taken = linux.local_addr().unwrap().port();
        let refused = ports.take(Kind::Datagram, &[HERE.into()], taken, false).unwrap_err();
        assert_eq!(refused.errno, libc::EADDRINUSE);
    }

    #[test]
    fn sharing_needs_everybodys_consent_and_the_last_one_frees() {
        let mut ports = Ports::default();
        let port = ports.take(Kind::Stream, &[HERE.into()], 0, true).unwrap();
        assert!(ports.take(Kind::Stream, &[HERE.into()], port, false).is_err());
        assert_eq!(ports.take(Kind::Stream, &[HERE.into()], port, true), Ok(port));
        assert_eq!(ports.hold(Kind::Stream, FOUR, port).sharing, Some(Sharing::Peers));
        assert_eq!(ports.hold(Kind::Datagram, FOUR, port).sharing, None, "that port is nobody's");
        ports.give_back(Kind::Stream, FOUR, port);
        assert!(ports.linux(Kind::Stream, FOUR, port).is_some());
        ports.give_back(Kind::Stream, FOUR, port);
        assert!(ports.linux(Kind::Stream, FOUR, port).is_none());
    }

    #[test]
    fn datagram_sockets_share_a_port_if_all_want_it_in_the_same_way() {
        let [plain, by_port, by_address, both] = [(false, false), (true, false), (false, true), (true, true)]
            .map(|(port, address)| Share { port, address });
        let may = |kind, first: Share, then: &[Share]| {
            let mut ports = Ports::default();
            let port = ports.take(kind, &[HERE.into()], 0, first).unwrap();
            let all: Vec<bool> =
                then.iter().map(|share| ports.take(kind, &[HERE.into()], port, *share).is_ok()).collect();
            (all, ports.hold(kind, FOUR, port).sharing)
        };
        let latest = Some(Sharing::Latest);
        let datagram = |first, then: &[Share]| may(Kind::Datagram, first, then);
        assert_eq!(datagram(by_address, &[by_address, plain, by_port]), (vec![true, false, false], latest));
        assert_eq!(datagram(both, &[both, by_address, by_port]), (vec![true, true, false], latest));
        assert_eq!(datagram(both, &[by_port, by_address]), (vec![true, false], Some(Sharing::Peers)));
        assert_eq!(datagram(plain, &[by_address, both]), (vec![false, false], None));
        assert_eq!(may(Kind::Stream, both, &[by_address]), (vec![false], Some(Sharing::Peers)));
        assert_eq!(may(Kind::Stream, by_address, &[by_address]), (vec![false], None));
    }

    /// Whether Linux has nobody at a stream port.
    fn is_free(port: u16) -> bool {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        bind(&socket, &SocketAddr::new(HERE, port)).is_ok()
    }

    #[test]
    fn a_connections_port_rests_before_the_next_has_it() {
        let mut ports = Ports::default();
        let take = |ports: &mut Ports| ports.take_to_connect(Kind::Stream, HERE).unwrap();
        let first = take(&mut ports);
        ports.give_back(Kind::Stream, FOUR, first);
        let now = Instant::now();
        assert!(ports.rested(HERE, now).is_none());
        // Linux cannot choose it meanwhile, but who names it has it.
        assert!(!is_free(first));
        assert_eq!(ports.take(Kind::Stream, &[HERE.into()], first, false), Ok(first));
        ports.give_back(Kind::Stream, FOUR, first);
        assert!(is_free(first));

        let second = take(&mut ports);
        ports.give_back(Kind::Stream, FOUR, second);
        let later = Instant::now() + REST;
        assert_eq!(ports.rested(HERE, later).map(|resting| resting.port), Some(second));

        let third = take(&mut ports);
        ports.give_back(Kind::Stream, FOUR, third);
        ports.tidy(Instant::now());
        assert!(!is_free(third));
        ports.tidy(Instant::now() + FORGOTTEN);
        assert!(is_free(third));
    }

    #[test]
    fn ports_take_turns_where_many_connections_come() {
        let mut ports = Ports::default();
        let mut seen = BTreeMap::new();
        for n in 0..3 * RESTING {
            let port = ports.take_to_connect(Kind::Stream, HERE).unwrap();
            if let Some(before) = seen.insert(port, n) {
                assert!(n - before >= RESTING, "{port} again after {}", n - before);
            }
            ports.give_back(Kind::Stream, FOUR, port);
        }
        assert_eq!(seen.len(), RESTING);
    }

    #[test]
    fn a_port_in_use_at_another_address_is_not_given_twice() {
        let there = IpAddr::from([127, 0, 0, 2]);
        let mut ports = Ports::default();
        let port = ports.take_to_connect(Kind::Stream, HERE).unwrap();
        // Linux lets both addresses have it.
        let (socket, _) = reserve(Kind::Stream, there.into(), port, false).unwrap();
        let resting = Resting { since: Instant::now(), port, linux: Arc::new(Reserved::new(socket)) };
        ports.resting.entry(there).or_default().push_back(resting);
        assert!(ports.rested(there, Instant::now() + REST).is_none());
        ports.give_back(Kind::Stream, FOUR, port);
        assert_eq!(ports.rested(there, Instant::now() + REST).map(|resting| resting.port), Some(port));

        let asked = std::cell::Cell::new(0);
        let is_taken = |_| asked.replace(asked.get() + 1) < 5;
        assert!(reserve_another(Kind::Stream, there.into(), 0, false, is_taken).is_ok());
        assert_eq!(asked.get(), 6);
        let never = reserve_another(Kind::Stream, there.into(), 0, false, |_| true);
        assert_eq!(never.map(|_| ()), Err(Errno::ADDRINUSE));
    }

    #[test]
    fn a_port_that_was_listened_at_and_those_of_datagrams_take_no_turns() {
        let mut ports = Ports::default();
        let port = ports.take_to_connect(Kind::Stream, HERE).unwrap();
        let linux = ports.linux(Kind::Stream, FOUR, port).unwrap();
        linux.listen(1).unwrap();
        linux.end_listening();
        drop(linux);
        ports.give_back(Kind::Stream, FOUR, port);
        let port = ports.take_to_connect(Kind::Datagram, HERE).unwrap();
        ports.give_back(Kind::Datagram, FOUR, port);
        assert!(ports.resting.is_empty());
    }

    #[test]
    fn a_port_that_is_given_back_is_free_even_while_an_executor_holds_its_socket() {
        let mut ports = Ports::default();
        let port = ports.take(Kind::Stream, &[HERE.into()], 0, false).unwrap();
        let held = ports.linux(Kind::Stream, FOUR, port).unwrap();
        let connects = || std::net::TcpStream::connect((HERE, port)).is_ok();
        held.listen(8).unwrap();
        assert!(connects());
        held.end_listening();
        assert!(!connects());
        held.listen(8).unwrap();
        assert!(connects());
        ports.give_back(Kind::Stream, FOUR, port);
        assert!(!connects());
        assert_eq!(held.listen(8), Err(Errno::INVAL));
        assert_eq!(ports.take(Kind::Stream, &[HERE.into()], port, false), Ok(port));
        ports.linux(Kind::Stream, FOUR, port).unwrap().listen(8).unwrap();
    }

    #[test]
    fn a_port_of_both_ips_is_one_socket_of_linuxs_and_taken_at_both() {
        let mut ports = Ports::default();
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let both = Place { address: any, sides: Sides::BOTH };
        let port = ports.take(Kind::Datagram, &[both], 0, false).unwrap();
        for place in [HERE.into(), any.into(), both] {
            assert_eq!(
                ports.take(Kind::Datagram, &[place], port, false).unwrap_err().errno,
                libc::EADDRINUSE
            );
        }
        assert!(std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).is_err());
        ports.give_back(Kind::Datagram, Sides::BOTH, port);
        let each = [any.into(), Place::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED))];
        assert_eq!(ports.take(Kind::Datagram, &each, port, false), Ok(port), "apart");
        ports.give_back(Kind::Datagram, Sides::of(any), port);
        assert_eq!(ports.take(Kind::Datagram, &[both], port, false).unwrap_err().errno, libc::EADDRINUSE);
        assert_eq!(ports.take(Kind::Datagram, &[any.into()], port, false), Ok(port));
    }

    #[test]
    fn an_address_that_linux_does_not_have_needs_no_reservation() {
        let mut ports = Ports::default();
        let elsewhere = IpAddr::from([192, 0, 2, 77]);
        assert_eq!(ports.take(Kind::Stream, &[elsewhere.into()], 80, false), Ok(80));
        assert!(ports.take(Kind::Stream, &[elsewhere.into()], 0, false).unwrap() >= 49152);
    }
}
