//! Where packets go: our addresses, the networks on each link, and the routers beyond. A link is what a
//! device leads to, and has its number. Longest prefix first; few routes, so a sorted list. Filled by a
//! configuration or from the kernel.

use crate::Device;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use silk_wire::MacAddr;

/// An address of one family.
pub trait Address: Copy + Ord + Into<IpAddr> {
    /// Bits of an address.
    const BITS: u8;
    /// No address.
    const UNSPECIFIED: Self;
    /// The address as a number.
    fn bits(self) -> u128;
    /// Whether it means something on its own link alone (RFC 4291 §2.5.6).
    fn is_link_local(self) -> bool;
}

impl Address for Ipv4Addr {
    const BITS: u8 = 32;
    const UNSPECIFIED: Self = Self::UNSPECIFIED;
    fn bits(self) -> u128 {
        self.to_bits().into()
    }
    fn is_link_local(self) -> bool {
        false
    }
}

impl Address for Ipv6Addr {
    const BITS: u8 = 128;
    const UNSPECIFIED: Self = Self::UNSPECIFIED;
    fn bits(self) -> u128 {
        self.to_bits()
    }
    fn is_link_local(self) -> bool {
        self.is_unicast_link_local()
    }
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<A = Ipv4Addr> {
    /// The network.
    pub network: A,
    /// The length of its prefix.
    pub prefix: u8,
    /// The router; `None`: the network is on the link.
    pub gateway: Option<A>,
    /// The address our packets carry.
    pub source: A,
    /// The device that leads there.
    pub link: u8,
}

impl<A: Address> Route<A> {
    /// Whom packets to `destination` are handed to.
    pub fn next_hop(&self, destination: A) -> A {
        self.gateway.unwrap_or(destination)
    }

    fn contains(&self, destination: A) -> bool {
        network(destination, self.prefix) == network(self.network, self.prefix)
    }
}

fn network<A: Address>(address: A, prefix: u8) -> u128 {
    address.bits().checked_shr(u32::from(A::BITS - prefix.min(A::BITS))).unwrap_or(0)
}

/// The routes, and our own addresses with their prefixes.
#[derive(Clone, Debug)]
pub struct Routes<A = Ipv4Addr> {
    // With the prefix's length and the link.
    addresses: Vec<(A, u8, u8)>,
    // Longest prefix first.
    routes: Vec<Route<A>>,
    // The graph has said what they are.
    fixed: bool,
    // The device by which what we send to ourselves comes back.
    itself: Option<u8>,
}

impl<A> Default for Routes<A> {
    /// No address of ours, and nowhere to go.
    fn default() -> Self {
        Self { addresses: Vec::new(), routes: Vec::new(), fixed: false, itself: None }
    }
}

impl<A: Address> Routes<A> {
    /// Our addresses on the one link, each network on the link, and a router for the rest.
    pub fn new(addresses: &[(A, u8)], gateway: Option<A>) -> Self {
        let mut routes = Self::default();
        routes.add_link(0, addresses, gateway);
        routes
    }

    /// Beside what is there already, another link with our addresses on it, each network there, and its
    /// router for the rest, where an earlier link has none.
    pub fn add_link(&mut self, link: u8, addresses: &[(A, u8)], gateway: Option<A>) {
        for &(address, prefix) in addresses {
            self.addresses.push((address, prefix, link));
            self.add(Route { network: address, prefix, gateway: None, source: address, link });
        }
        // Beyond the link, an address that means something there.
        let mut wide = addresses.iter().map(|(address, _)| *address).filter(|ours| !ours.is_link_local());
        if let (Some(gateway), Some(source)) = (gateway, wide.next()) {
            let mut beside = self.routes.iter().filter(|route| route.link == link && route.contains(gateway));
            let same_network = beside.next().map(|route| route.source);
            let source = same_network.filter(|ours| !ours.is_link_local()).unwrap_or(source);
            self.add(Route { network: A::UNSPECIFIED, prefix: 0, gateway: Some(gateway), source, link });
        }
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
            for (address, ..) in self.addresses.clone() {
                self.add(Route { network: address, prefix: A::BITS, gateway: None, source: address, link });
            }
        }
        self
    }

    /// Whether what comes by this device is what we have sent to ourselves.
    pub fn is_itself(&self, device: u8) -> bool {
        self.itself == Some(device)
    }

    /// Adds a route.
    pub fn add(&mut self, route: Route<A>) {
        let at = self.routes.partition_point(|known| known.prefix >= route.prefix);
        self.routes.insert(at, route);
    }

    /// Our Ethernet address at a device, where that of the link is `own`.
    pub fn station(&self, device: u8, own: Option<[u8; 6]>) -> MacAddr {
        MacAddr(if self.is_itself(device) { Device::ITSELF } else { own.unwrap_or_default() })
    }

    /// The route to `destination`. To an address of our own there is that by which it comes back, if there is one: no other
    /// device leads there.
    pub fn lookup(&self, destination: A) -> Option<&Route<A>> {
        self.lookup_from(destination, None)
    }

    /// The same for packets from `source`: a destination that means something on its own link alone (RFC 4007
    /// §6) is on that of the source.
    pub fn lookup_from(&self, destination: A, source: Option<A>) -> Option<&Route<A>> {
        if destination == A::UNSPECIFIED {
            return None;
        }
        let ours = self.is_ours(destination);
        let own = source.filter(|_| destination.is_link_local()).and_then(|source| self.link_of(source));
        let may = |link: u8| if ours { self.is_itself(link) } else { own.is_none_or(|own| own == link) };
        self.routes.iter().find(|route| may(route.link) && route.contains(destination))
    }

    /// The device to send to a group by, or to everyone on a network: the one on whose network they are, or
    /// else the one that our address `source` belongs to.
    pub fn link_to_group(&self, group: A, source: A) -> u8 {
        let network = self.routes.iter().find(|route| route.prefix > 0 && route.contains(group));
        network.map(|route| route.link).or_else(|| self.link_of(source)).unwrap_or(0)
    }

    /// The link that an address of ours is on.
    fn link_of(&self, address: A) -> Option<u8> {
        self.addresses.iter().find(|(ours, ..)| *ours == address).map(|(.., link)| *link)
    }

    /// Whether the address is ours.
    pub fn is_ours(&self, address: A) -> bool {
        self.addresses.iter().any(|(ours, ..)| *ours == address)
    }

    /// Our addresses.
    pub fn addresses(&self) -> impl Iterator<Item = A> + '_ {
        self.addresses.iter().map(|(address, ..)| *address)
    }
}

impl Routes {
    /// Whether everyone on one of our networks is meant (RFC 1122 §3.2.1.3 c, d).
    pub fn is_broadcast(&self, address: Ipv4Addr) -> bool {
        address.is_broadcast()
            || self.addresses.iter().any(|(ours, prefix, _)| {
                let host = u32::MAX.checked_shr(u32::from(*prefix)).unwrap_or(0);
                *prefix < 31 && u32::from(*ours) | host == u32::from(address)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(a: u8, b: u8, c: u8, d: u8) -> Ipv4Addr {
        Ipv4Addr::new(a, b, c, d)
    }

    fn routes() -> Routes {
        Routes::new(&[(ip(10, 0, 0, 1), 24), (ip(10, 0, 1, 1), 30)], Some(ip(10, 0, 1, 2)))
    }

    #[test]
    fn the_longest_prefix_wins() {
        let mut routes = routes();
        let special = Route {
            network: ip(10, 0, 0, 128),
            prefix: 25,
            gateway: Some(ip(10, 0, 1, 2)),
            source: ip(10, 0, 1, 1),
            link: 1,
        };
        routes.add(special);
        let hop = |to| routes.lookup(to).map(|route| (route.next_hop(to), route.source));
        assert_eq!(hop(ip(10, 0, 0, 9)), Some((ip(10, 0, 0, 9), ip(10, 0, 0, 1))));
        assert_eq!(hop(ip(10, 0, 0, 129)), Some((ip(10, 0, 1, 2), ip(10, 0, 1, 1))));
        assert_eq!(hop(ip(8, 8, 8, 8)), Some((ip(10, 0, 1, 2), ip(10, 0, 1, 1))));
    }

    #[test]
    fn there_is_no_route_to_ourselves_or_nowhere() {
        assert_eq!(routes().lookup(ip(10, 0, 0, 1)), None);
        assert_eq!(routes().lookup(Ipv4Addr::UNSPECIFIED), None);
        assert_eq!(Routes::new(&[(ip(10, 0, 0, 1), 24)], None).lookup(ip(8, 8, 8, 8)), None);
    }

    #[test]
    fn what_is_sent_to_ourselves_comes_back_by_its_device_however_the_routes_change() {
        let mut routes = routes().coming_back_by(Some(5));
        let way = |routes: &Routes, to| routes.lookup(to).map(|route| (route.link, route.source));
        assert_eq!(way(&routes, ip(10, 0, 0, 1)), Some((5, ip(10, 0, 0, 1))));
        assert_eq!(way(&routes, ip(10, 0, 0, 9)), Some((0, ip(10, 0, 0, 1))), "others are beside us");
        routes.become_these(Routes::new(&[(ip(10, 9, 0, 1), 24)], None));
        assert_eq!(way(&routes, ip(10, 9, 0, 1)), Some((5, ip(10, 9, 0, 1))));
        assert!(routes.is_itself(5) && !routes.is_itself(0));
    }

    #[test]
    fn a_router_known_by_its_link_local_address_is_no_reason_to_send_from_ours() {
        let six = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let ours = [(six("fe80::1"), 64), (six("2001:db8::1"), 64)];
        let routes = Routes::new(&ours, Some(six("fe80::fe")));
        let hop = |to: &str| routes.lookup(six(to)).map(|route| (route.next_hop(six(to)), route.source));
        assert_eq!(hop("2001:db8:1::9"), Some((six("fe80::fe"), six("2001:db8::1"))));
        assert_eq!(hop("fe80::9"), Some((six("fe80::9"), six("fe80::1"))));
        assert_eq!(hop("2001:db8::9"), Some((six("2001:db8::9"), six("2001:db8::1"))));
    }

    #[test]
    fn each_link_has_its_networks_and_the_first_with_a_router_leads_to_the_rest() {
        let mut routes = Routes::new(&[(ip(10, 0, 0, 1), 24)], None);
        routes.add_link(1, &[(ip(10, 0, 1, 1), 24)], Some(ip(10, 0, 1, 254)));
        routes.add_link(2, &[(ip(10, 0, 2, 1), 24)], Some(ip(10, 0, 2, 254)));
        let way = |to| routes.lookup(to).map(|route| (route.link, route.next_hop(to), route.source));
        assert_eq!(way(ip(10, 0, 0, 9)), Some((0, ip(10, 0, 0, 9), ip(10, 0, 0, 1))));
        assert_eq!(way(ip(10, 0, 1, 9)), Some((1, ip(10, 0, 1, 9), ip(10, 0, 1, 1))));
        assert_eq!(way(ip(8, 8, 8, 8)), Some((1, ip(10, 0, 1, 254), ip(10, 0, 1, 1))));
        assert!(routes.is_ours(ip(10, 0, 2, 1)) && routes.is_broadcast(ip(10, 0, 1, 255)));
    }

    #[test]
    fn what_means_something_on_its_link_alone_is_on_the_link_of_the_source() {
        let six = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let mut routes = Routes::new(&[(six("fe80::1"), 64)], None);
        routes.add_link(1, &[(six("fe80::2"), 64), (six("fd00::2"), 64)], None);
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
        let mut routes = Routes::new(&[(ip(10, 0, 0, 1), 24)], Some(ip(10, 0, 0, 254)));
        routes.add_link(1, &[(ip(10, 0, 1, 1), 24)], None);
        assert_eq!(routes.link_to_group(ip(10, 0, 1, 255), ip(10, 0, 0, 1)), 1);
        assert_eq!(routes.link_to_group(Ipv4Addr::BROADCAST, ip(10, 0, 1, 1)), 1);
        assert_eq!(routes.link_to_group(ip(239, 1, 2, 3), ip(10, 0, 0, 1)), 0);
    }

    #[test]
    fn routes_change_unless_a_graph_has_written_them_down() {
        let other = || Routes::new(&[(ip(10, 9, 0, 1), 24)], None);
        for (fixed, ours) in [(false, ip(10, 9, 0, 1)), (true, ip(10, 0, 0, 1))] {
            let mut routes = routes().fixed(fixed);
            routes.become_these(other());
            assert!(routes.is_ours(ours));
        }
    }

    #[test]
    fn broadcasts_are_those_of_our_networks() {
        let routes = routes();
        let all = [ip(255, 255, 255, 255), ip(10, 0, 0, 255), ip(10, 0, 1, 3)];
        assert!(all.iter().all(|address| routes.is_broadcast(*address)));
        assert!(!routes.is_broadcast(ip(10, 0, 1, 255)) && !routes.is_broadcast(ip(10, 0, 0, 254)));
    }
}
