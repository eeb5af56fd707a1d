//! Where packets go: our addresses, the networks on each link, and the routers beyond. A link is what a
//! device leads to, and has its number. The longest prefix counts, and of equal ones the better way that
//! is usable. Filled by a configuration or from the kernel.

use super::address::{Address, Own, network};
use crate::{Leads, Standing, Way};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::iter;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A route over one of our links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<A = Ipv4Addr> {
    /// The router; `None`: the destination is on the link.
    pub gateway: Option<A>,
    /// The address our packets carry; `None`: one that fits.
    source: Option<A>,
    /// The largest IP packet that is to go there, bytes; `None`: what the link takes.
    mtu: Option<u16>,
    /// The device that leads there.
    pub link: u8,
}

impl<A: Address> Route<A> {
    /// Whom packets to `destination` are handed to.
    pub fn next_hop(&self, destination: A) -> A {
        self.gateway.unwrap_or(destination)
    }
}

/// What is known of the way to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whither<A> {
    /// It leads over one of our links.
    Over(Route<A>),
    /// It leads over another interface of the machine.
    Elsewhere,
    /// Nobody is to send there.
    Nowhere,
    /// There is none.
    Unknown,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
struct Entry<A> {
    prefix: u8,
    /// As many bits as the prefix has.
    network: u128,
    whither: Whither<A>,
}

/// The longest prefix first, then by network, then the better way first.
type Entries<A> = Vec<Entry<A>>;

/// The routes, and our own addresses with their prefixes.
#[derive(Clone, Debug)]
pub struct Routes<A = Ipv4Addr> {
    addresses: Vec<Own<A>>,
    // Those that were ours and that another station has.
    duplicate: Vec<A>,
    entries: Entries<A>,
    // Where packets go that carry one of these addresses.
    from: Vec<(A, Entries<A>)>,
    // What counts where no way leads: the largest IP packet, bytes.
    narrowest: Option<u16>,
    // The graph has said what they are.
    fixed: bool,
    // The device by which what we send to ourselves comes back.
    itself: Option<u8>,
}

impl<A> Default for Routes<A> {
    /// No address of ours, and nowhere to go.
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            duplicate: Vec::new(),
            entries: Vec::new(),
            from: Vec::new(),
            narrowest: None,
            fixed: false,
            itself: None,
        }
    }
}

impl<A: Address> Routes<A> {
    /// The addresses and ways of one family.
    pub fn of(standing: &Standing) -> Self {
        let mut routes = Self::default();
        for (link, all) in (0..).zip(&standing.links) {
            let of = |&(address, prefix): &(IpAddr, u8)| {
                let deprecated = standing.deprecated.contains(&address);
                Some(Own { address: A::of(address)?, prefix, link, deprecated })
            };
            routes.addresses.extend(all.iter().filter_map(of));
        }
        routes.duplicate.extend(standing.duplicate.iter().copied().filter_map(A::of));
        routes.narrowest = standing.narrowest;
        routes.entries = Entry::all(&standing.ways);
        let from = |(address, ways): &(IpAddr, Vec<Way>)| Some((A::of(*address)?, Entry::all(ways)));
        routes.from.extend(standing.from.iter().filter_map(from));
        routes
    }

    /// The same, as a graph has written them down: they do not change.
    #[must_use]
    pub fn fixed(self, fixed: bool) -> Self {
        Self { fixed, ..self }
    }

    /// Other routes from now on, where they may change.
    pub fn become_these(&mut self, other: Self) {
        if !self.fixed {
            *self = other.coming_back_by(self.itself);
        }
    }

    /// The same with a way to our own addresses: what is sent to them comes back by this device.
    #[must_use]
    pub fn coming_back_by(mut self, itself: Option<u8>) -> Self {
        self.itself = itself;
        if let Some(link) = itself {
            let back = |own: &Own<A>| Way::beside(link, own.address.into(), A::BITS);
            let ways: Vec<Way> = self.addresses.iter().map(back).collect();
            for entries in iter::once(&mut self.entries).chain(self.from.iter_mut().map(|(_, own)| own)) {
                entries.extend(ways.iter().filter_map(Entry::of));
                Entry::sort(entries);
            }
        }
        self
    }

    /// The ways of packets from `source`.
    fn entries(&self, source: Option<A>) -> &[Entry<A>] {
        let own = source.and_then(|source| self.from.iter().find(|(address, _)| *address == source));
        own.map_or(&self.entries, |(_, own)| own)
    }

    /// Whether what comes by this device is what we have sent to ourselves.
    pub fn is_itself(&self, device: u8) -> bool {
        self.itself == Some(device)
    }

    /// The route to `destination` over one of our links. To an address of our own there is that by which it comes back, if
    /// there is one: no other device leads there.
    pub fn lookup(&self, destination: A) -> Option<Route<A>> {
        self.lookup_from(destination, None)
    }

    /// The same for packets from `source`, for which other ways may count: a destination that means something on its own link
    /// alone (RFC 4007 §6) is on that of the source.
    pub fn lookup_from(&self, destination: A, source: Option<A>) -> Option<Route<A>> {
        match self.whither(destination, source) {
            Whither::Over(route) => Some(route),
            Whither::Elsewhere | Whither::Nowhere | Whither::Unknown => None,
        }
    }

    /// What is known of the way to `destination`, for packets from `source`.
    pub fn whither(&self, destination: A, source: Option<A>) -> Whither<A> {
        if destination == A::UNSPECIFIED {
            return Whither::Unknown;
        }
        let ours = self.is_ours(destination);
        let own = source.filter(|_| destination.is_link_local()).and_then(|source| self.link_of(source));
        let may = |whither: &Whither<A>| match whither {
            Whither::Over(route) if ours => self.is_itself(route.link),
            Whither::Over(route) => own.is_none_or(|own| own == route.link),
            // What means something on its own link is on one of ours.
            _ => !ours && !destination.is_link_local(),
        };
        let mut rest = self.entries(source);
        while let Some(longest) = rest.first().map(|entry| entry.prefix) {
            let (same, shorter) = rest.split_at(rest.partition_point(|entry| entry.prefix == longest));
            let sought = network(destination, longest);
            let found = &same[same.partition_point(|entry| entry.network < sought)..];
            let mut all = found.iter().take_while(|entry| entry.network == sought).map(|entry| entry.whither);
            if let Some(whither) = all.find(may) {
                return whither;
            }
            rest = shorter;
        }
        Whither::Unknown
    }

    /// The address that packets to `destination` carry, where a route leads there over one of our links. A route may name one,
    /// which must be ours; else one is chosen that fits (RFC 1122 §3.3.4.3, RFC 6724 §5).
    pub fn source_to(&self, destination: A) -> Option<A> {
        let route = self.lookup(destination)?;
        if self.is_ours(destination) {
            return Some(destination);
        }
        let source = match route.source {
            Some(source) => Some(source).filter(|source| self.is_ours(*source)),
            None => A::source(&self.addresses, route.link, route.next_hop(destination), destination),
        };
        // Packets that carry it may go another way.
        source.filter(|source| self.from.is_empty() || self.lookup_from(destination, Some(*source)).is_some())
    }

    /// The same for a socket that is bound to `bound`, if other ways count for that address than for what has none yet.
    pub fn source_of(&self, bound: Option<IpAddr>, destination: A) -> Option<A> {
        let own = bound.and_then(A::of).filter(|bound| self.from.iter().any(|(address, _)| address == bound));
        match own {
            Some(own) => self.lookup_from(destination, Some(own)).map(|_| own),
            None => self.source_to(destination),
        }
    }

    /// The largest IP packet that is to go to `destination`, bytes, where its route says one; of several the least. What no route
    /// leads to, as to groups, is on one of the links.
    pub fn mtu_to(&self, destination: A) -> Option<u16> {
        let from = self.from.iter().map(|(source, _)| Some(*source));
        let mut all =
            from.chain([None]).filter_map(|source| self.lookup_from(destination, source)).peekable();
        if all.peek().is_none() {
            return self.narrowest;
        }
        all.filter_map(|route| route.mtu).min()
    }

    /// The address that packets to a group carry to which no route leads: it is on the link of our first address.
    pub fn source_to_group(&self, group: A) -> Option<A> {
        let first = self.addresses.first()?;
        A::source(&self.addresses, first.link, group, group).or(Some(first.address))
    }

    /// Whether packets to `destination`, to which `route` leads by a router, may be given to `hop` instead: another host on the same
    /// link, over IPv6 known by its address there or the destination itself (RFC 4861 §8.1).
    pub(super) fn may_lead(&self, route: &Route<A>, hop: A, destination: A) -> bool {
        let beside = || self.lookup(hop).is_some_and(|to| to.gateway.is_none() && to.link == route.link);
        let named_well = if A::BITS == Ipv6Addr::BITS as u8 {
            hop.is_link_local() || hop == destination
        } else {
            beside()
        };
        route.gateway.is_some() && named_well && !self.is_ours(hop) && !self.is_ours(destination)
    }

    /// Whether some packets are handed to this router.
    pub fn leads_by(&self, router: A) -> bool {
        let by = |entry: &Entry<A>| match entry.whither {
            Whither::Over(route) => route.gateway == Some(router),
            _ => false,
        };
        self.entries.iter().any(by) || self.from.iter().any(|(_, own)| own.iter().any(by))
    }

    /// The device to send to a group by, or to everyone on a network: the one on whose network they are, or
    /// else the one that our address `source` belongs to.
    pub fn link_to_group(&self, group: A, source: A) -> u8 {
        let on = |entry: &&Entry<A>| entry.prefix > 0 && entry.network == network(group, entry.prefix);
        let link = |entry: &Entry<A>| match entry.whither {
            Whither::Over(route) => Some(route.link),
            _ => None,
        };
        let network = self.entries.iter().filter(on).find_map(link);
        network.or_else(|| self.link_of(source)).unwrap_or(0)
    }

    /// The link that an address of ours is on.
    fn link_of(&self, address: A) -> Option<u8> {
        self.addresses.iter().find(|own| own.address == address).map(|own| own.link)
    }

    /// Whether the address is ours.
    pub fn is_ours(&self, address: A) -> bool {
        self.addresses.iter().any(|own| own.address == address)
    }

    /// Whether the address was ours, and another station has it.
    pub(crate) fn is_duplicate(&self, address: A) -> bool {
        self.duplicate.contains(&address)
    }

    /// Our addresses.
    pub fn addresses(&self) -> impl Iterator<Item = A> + '_ {
        self.addresses.iter().map(|own| own.address)
    }
}

impl<A: Address> Entry<A> {
    /// The ways of this family.
    fn all(ways: &[Way]) -> Entries<A> {
        let mut entries: Entries<A> = ways.iter().filter_map(Self::of).collect();
        Self::sort(&mut entries);
        entries
    }

    /// Keeps the better ones of equals where they are.
    fn sort(entries: &mut Entries<A>) {
        entries.sort_by_key(|entry| (Reverse(entry.prefix), entry.network));
    }

    /// A way of this family; `None`: it is one of the other's.
    fn of(way: &Way) -> Option<Self> {
        let prefix = way.prefix.min(A::BITS);
        let whither = match way.leads {
            Leads::Over { link, gateway, source, mtu } => {
                // By a router of the other IP silk sends nothing.
                let gateway = gateway.map(A::of);
                match gateway {
                    Some(None) => Whither::Elsewhere,
                    gateway => Whither::Over(Route {
                        gateway: gateway.flatten(),
                        source: source.and_then(A::of),
                        mtu,
                        link,
                    }),
                }
            }
            Leads::Elsewhere => Whither::Elsewhere,
            Leads::Nowhere => Whither::Nowhere,
        };
        Some(Self { prefix, network: network(A::of(way.network)?, prefix), whither })
    }
}

impl Routes {
    /// Whether everyone on one of our networks is meant (RFC 1122 §3.2.1.3 c, d).
    pub fn is_broadcast(&self, address: Ipv4Addr) -> bool {
        address.is_broadcast()
            || self.addresses.iter().any(|own| {
                let host = u32::MAX.checked_shr(u32::from(own.prefix)).unwrap_or(0);
                own.prefix < 31 && u32::from(own.address) | host == u32::from(address)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(a: u8, b: u8, c: u8, d: u8) -> Ipv4Addr {
        Ipv4Addr::new(a, b, c, d)
    }

    fn four(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
        ip(a, b, c, d).into()
    }

    fn six(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn standing() -> Standing {
        let addresses = [(four(10, 0, 0, 1), 24), (four(10, 0, 1, 1), 30)];
        Standing::of(&addresses, [four(10, 0, 1, 2)])
    }

    /// By which link, to whom, and from where.
    fn way<A: Address>(routes: &Routes<A>, to: A) -> Option<(u8, A, A)> {
        let route = routes.lookup(to)?;
        Some((route.link, route.next_hop(to), routes.source_to(to)?))
    }

    #[test]
    fn the_longest_prefix_wins() {
        let mut standing = standing();
        standing.ways.push(Way::by(0, four(10, 0, 1, 2), (four(10, 0, 0, 128), 25)));
        let routes = Routes::of(&standing);
        let way = |to| way(&routes, to);
        assert_eq!(way(ip(10, 0, 0, 9)), Some((0, ip(10, 0, 0, 9), ip(10, 0, 0, 1))));
        assert_eq!(way(ip(10, 0, 0, 129)), Some((0, ip(10, 0, 1, 2), ip(10, 0, 1, 1))));
        assert_eq!(way(ip(8, 8, 8, 8)), Some((0, ip(10, 0, 1, 2), ip(10, 0, 1, 1))));
    }

    #[test]
    fn of_many_networks_each_is_found() {
        let mut standing = standing();
        let number = |n: u32| IpAddr::from(Ipv4Addr::from(0x1400_0000 + (n << 8)));
        let gateway = |n: u32| IpAddr::from(Ipv4Addr::from(0x0a00_0000 + 2 + n % 200));
        // Neither in their order nor of one length.
        let all: Vec<u32> = (0..4000).map(|n| n * 2357 % 4000).collect();
        standing.ways.extend(all.iter().map(|n| Way::by(0, gateway(*n), (number(*n), 24))));
        standing.ways.extend((0..4000).step_by(4).map(|n| Way::by(0, four(10, 0, 0, 254), (number(n), 22))));
        let routes = Routes::of(&standing);
        for n in 0..4000 {
            let IpAddr::V4(to) = number(n) else { unreachable!() };
            let hop = routes.lookup(Ipv4Addr::from(u32::from(to) + 7)).and_then(|route| route.gateway);
            assert_eq!(hop.map(IpAddr::from), Some(gateway(n)));
        }
        let beyond = Ipv4Addr::from(0x1400_0000 + (4000 << 8));
        assert_eq!(routes.lookup(beyond).and_then(|route| route.gateway), Some(ip(10, 0, 1, 2)));
    }

    #[test]
    fn of_equal_prefixes_the_first_counts() {
        let mut standing = standing();
        let far = (four(172, 16, 0, 0), 12);
        standing.ways.extend([2, 3].map(|last| Way::by(0, four(10, 0, 0, last), far)));
        let routes = Routes::of(&standing);
        assert_eq!(routes.lookup(ip(172, 17, 0, 1)).unwrap().gateway, Some(ip(10, 0, 0, 2)));
    }

    #[test]
    fn a_link_that_is_narrower_is_so_for_packets_from_every_address_of_ours() {
        let mut standing = standing();
        // Only what carries that address has a way to everywhere.
        standing.ways.retain(|way| way.prefix > 0);
        standing.from.push((four(10, 0, 0, 1), [Way::rest(0, four(10, 0, 0, 9))].into()));
        let mtu = |standing: &Standing| Routes::of(standing).mtu_to(ip(8, 8, 8, 8));
        assert_eq!(mtu(&standing), None);
        standing.narrow(1, 1300);
        assert_eq!(mtu(&standing), None, "another link");
        standing.narrow(0, 1400);
        assert_eq!(mtu(&standing), Some(1400));
    }

    #[test]
    fn a_way_may_lead_elsewhere_or_nowhere() {
        let mut standing = standing();
        let leads = |prefix, leads| Way { network: four(172, 16, 0, 0), prefix, leads };
        standing.ways.extend([leads(12, Leads::Elsewhere), leads(16, Leads::Nowhere)]);
        standing.ways.push(Way::by(0, "fd00::1".parse().unwrap(), (four(172, 18, 0, 0), 16)));
        let routes = Routes::of(&standing);
        let whither = |to| routes.whither(to, None);
        assert_eq!(whither(ip(172, 16, 0, 1)), Whither::Nowhere);
        assert_eq!([whither(ip(172, 17, 0, 1)), whither(ip(172, 18, 0, 1))], [Whither::Elsewhere; 2]);
        assert_eq!(routes.lookup(ip(172, 17, 0, 1)), None);
        assert!(matches!(whither(ip(172, 32, 0, 1)), Whither::Over(_)));
    }

    #[test]
    fn a_way_that_names_an_address_is_not_taken_from_another() {
        let mut standing = standing();
        let over = |n, last| Way {
            network: four(172, n, 0, 0),
            prefix: 16,
            leads: Leads::Over {
                link: 0,
                gateway: Some(four(10, 0, 0, 9)),
                source: Some(four(10, 0, 1, last)),
                mtu: None,
            },
        };
        standing.ways.extend([over(16, 1), over(17, 77)]);
        let routes = Routes::of(&standing);
        let from = |n| routes.source_to(ip(172, n, 0, 1));
        assert_eq!([from(16), from(17), from(18)], [Some(ip(10, 0, 1, 1)), None, Some(ip(10, 0, 1, 1))]);
    }

    #[test]
    fn what_carries_an_address_with_ways_of_its_own_goes_by_those_alone() {
        let mut standing = standing();
        standing.from.push((four(10, 0, 0, 1), [Way::rest(0, four(10, 0, 0, 254))].into()));
        let elsewhere = Way { leads: Leads::Elsewhere, ..Way::rest(0, four(0, 0, 0, 0)) };
        standing.from.push((four(10, 0, 1, 1), [elsewhere].into()));
        let routes = Routes::of(&standing);
        let (far, near) = (ip(8, 8, 8, 8), ip(10, 0, 0, 9));
        let by = |source| routes.lookup_from(far, source).map(|route| route.next_hop(far));
        assert_eq!([by(None), by(Some(ip(10, 0, 9, 9)))], [Some(ip(10, 0, 1, 2)); 2]);
        assert_eq!([by(Some(ip(10, 0, 0, 1))), by(Some(ip(10, 0, 1, 1)))], [Some(ip(10, 0, 0, 254)), None]);
        // The way to there would have packets carry an address that leads them elsewhere.
        assert_eq!([routes.source_to(far), routes.source_to(near)], [None, Some(ip(10, 0, 0, 1))]);
        let bound = [four(10, 0, 0, 1), four(10, 0, 1, 1), four(10, 0, 0, 9)];
        let from = bound.map(|at| routes.source_of(Some(at), near));
        assert_eq!(from, [Some(ip(10, 0, 0, 1)), None, Some(ip(10, 0, 0, 1))]);
        assert_eq!(routes.source_of(Some(bound[0]), far), Some(ip(10, 0, 0, 1)));
    }

    #[test]
    fn there_is_no_route_to_ourselves_or_nowhere() {
        let routes: Routes = Routes::of(&standing());
        assert_eq!(routes.lookup(ip(10, 0, 0, 1)), None);
        assert_eq!(routes.lookup(Ipv4Addr::UNSPECIFIED), None);
        let alone: Routes = Routes::of(&Standing::of(&[(four(10, 0, 0, 1), 24)], None));
        assert_eq!(alone.whither(ip(8, 8, 8, 8), None), Whither::Unknown);
    }

    #[test]
    fn what_is_sent_to_ourselves_comes_back_by_its_device_however_the_routes_change() {
        let mut routes = Routes::of(&standing()).coming_back_by(Some(5));
        assert_eq!(way(&routes, ip(10, 0, 0, 1)), Some((5, ip(10, 0, 0, 1), ip(10, 0, 0, 1))));
        assert_eq!(way(&routes, ip(10, 0, 0, 9)).unwrap().0, 0, "others are beside us");
        routes.become_these(Routes::of(&Standing::of(&[(four(10, 9, 0, 1), 24)], None)));
        assert_eq!(way(&routes, ip(10, 9, 0, 1)), Some((5, ip(10, 9, 0, 1), ip(10, 9, 0, 1))));
        assert!(routes.is_itself(5) && !routes.is_itself(0));
    }

    #[test]
    fn a_router_known_by_its_link_local_address_is_no_reason_to_send_from_ours() {
        let ours = [(six("fe80::1").into(), 64), (six("2001:db8::1").into(), 64)];
        let routes = Routes::of(&Standing::of(&ours, [six("fe80::fe").into()]));
        let way = |to: &str| way(&routes, six(to)).map(|(_, hop, source)| (hop, source));
        assert_eq!(way("2001:db8:1::9"), Some((six("fe80::fe"), six("2001:db8::1"))));
        assert_eq!(way("fe80::9"), Some((six("fe80::9"), six("fe80::1"))));
        assert_eq!(way("2001:db8::9"), Some((six("2001:db8::9"), six("2001:db8::1"))));
    }

    #[test]
    fn each_link_has_its_networks_and_the_first_with_a_router_leads_to_the_rest() {
        let standing = Standing::of(&[(four(10, 0, 0, 1), 24)], None)
            .and(&[(four(10, 0, 1, 1), 24)], [four(10, 0, 1, 254)])
            .and(&[(four(10, 0, 2, 1), 24)], [four(10, 0, 2, 254)]);
        let routes = Routes::of(&standing);
        assert_eq!(way(&routes, ip(10, 0, 0, 9)), Some((0, ip(10, 0, 0, 9), ip(10, 0, 0, 1))));
        assert_eq!(way(&routes, ip(10, 0, 1, 9)), Some((1, ip(10, 0, 1, 9), ip(10, 0, 1, 1))));
        assert_eq!(way(&routes, ip(8, 8, 8, 8)), Some((1, ip(10, 0, 1, 254), ip(10, 0, 1, 1))));
        assert!(routes.is_ours(ip(10, 0, 2, 1)) && routes.is_broadcast(ip(10, 0, 1, 255)));
    }

    #[test]
    fn what_means_something_on_its_link_alone_is_on_the_link_of_the_source() {
        let first = [(six("fe80::1").into(), 64)];
        let second = [(six("fe80::2").into(), 64), (six("fd00::2").into(), 64)];
        let mut standing = Standing::of(&first, None).and(&second, None);
        let local = Way { network: six("fe80::").into(), prefix: 64, leads: Leads::Elsewhere };
        standing.ways.insert(0, local);
        let routes = Routes::of(&standing);
        let link =
            |to: &str, from: &str| routes.lookup_from(six(to), Some(six(from))).map(|route| route.link);
        assert_eq!([link("fe80::9", "fe80::1"), link("fe80::9", "fe80::2")], [Some(0), Some(1)]);
        assert_eq!(link("fd00::9", "fe80::1"), Some(1), "wherever it comes from");
        assert_eq!(routes.lookup(six("fe80::9")).map(|route| route.link), Some(0));
        let group = |from: &str| routes.link_to_group(six("ff02::1"), six(from));
        assert_eq!([group("fe80::1"), group("fd00::2")], [0, 1]);
    }

    #[test]
    fn everyone_on_a_network_is_reached_over_its_link() {
        let standing = Standing::of(&[(four(10, 0, 0, 1), 24)], [four(10, 0, 0, 254)])
            .and(&[(four(10, 0, 1, 1), 24)], None);
        let routes = Routes::of(&standing);
        assert_eq!(routes.link_to_group(ip(10, 0, 1, 255), ip(10, 0, 0, 1)), 1);
        assert_eq!(routes.link_to_group(Ipv4Addr::BROADCAST, ip(10, 0, 1, 1)), 1);
        assert_eq!(routes.link_to_group(ip(239, 1, 2, 3), ip(10, 0, 0, 1)), 0);
    }

    #[test]
    fn routes_change_unless_a_graph_has_written_them_down() {
        let other = || Routes::of(&Standing::of(&[(four(10, 9, 0, 1), 24)], None));
        for (fixed, ours) in [(false, ip(10, 9, 0, 1)), (true, ip(10, 0, 0, 1))] {
            let mut routes = Routes::of(&standing()).fixed(fixed);
            routes.become_these(other());
            assert!(routes.is_ours(ours));
        }
    }

    #[test]
    fn broadcasts_are_those_of_our_networks() {
        let routes = Routes::of(&standing());
        let all = [ip(255, 255, 255, 255), ip(10, 0, 0, 255), ip(10, 0, 1, 3)];
        assert!(all.iter().all(|address| routes.is_broadcast(*address)));
        assert!(!routes.is_broadcast(ip(10, 0, 1, 255)) && !routes.is_broadcast(ip(10, 0, 0, 254)));
    }

    // RFC 3021.
    #[test]
    fn on_a_network_of_two_or_of_one_nobody_is_everyone() {
        for (ours, prefix) in [(0, 31), (1, 31), (1, 32)] {
            let routes: Routes = Routes::of(&Standing::of(&[(four(10, 0, 0, ours), prefix)], None));
            let all = [0, 1].map(|last| routes.is_broadcast(ip(10, 0, 0, last)));
            assert_eq!(all, [false; 2], "10.0.0.{ours}/{prefix}");
        }
    }
}
