//! Where packets go: our addresses, the networks on the link, and the routers beyond. Longest
//! prefix first; few routes, so a sorted list. Filled by a configuration or from the kernel.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
    /// Which of the links below IP.
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
    addresses: Vec<(A, u8)>,
    // Longest prefix first.
    routes: Vec<Route<A>>,
    // The graph has said what they are.
    fixed: bool,
}

impl<A: Address> Routes<A> {
    /// Our addresses on the first link, each network on the link, and a router for the rest.
    pub fn new(addresses: &[(A, u8)], gateway: Option<A>) -> Self {
        let mut routes = Self { addresses: addresses.to_vec(), routes: Vec::new(), fixed: false };
        for (address, prefix) in addresses {
            routes.add(Route {
                network: *address,
                prefix: *prefix,
                gateway: None,
                source: *address,
                link: 0,
            });
        }
        // Beyond the link, an address that means something there.
        let mut wide = addresses.iter().map(|(address, _)| *address).filter(|ours| !ours.is_link_local());
        if let (Some(gateway), Some(source)) = (gateway, wide.next()) {
            let same_network = routes.lookup(gateway).map(|route| route.source);
            let source = same_network.filter(|ours| !ours.is_link_local()).unwrap_or(source);
            routes.add(Route { network: A::UNSPECIFIED, prefix: 0, gateway: Some(gateway), source, link: 0 });
        }
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
            *self = other;
        }
    }

    /// Adds a route.
    pub fn add(&mut self, route: Route<A>) {
        let at = self.routes.partition_point(|known| known.prefix >= route.prefix);
        self.routes.insert(at, route);
    }

    /// The route to `destination`. There is none to an address of our own: the device does
    /// not lead there.
    pub fn lookup(&self, destination: A) -> Option<&Route<A>> {
        if self.is_ours(destination) || destination == A::UNSPECIFIED {
            return None;
        }
        self.routes.iter().find(|route| route.contains(destination))
    }

    /// Whether the address is ours.
    pub fn is_ours(&self, address: A) -> bool {
        self.addresses.iter().any(|(ours, _)| *ours == address)
    }

    /// Our addresses.
    pub fn addresses(&self) -> impl Iterator<Item = A> + '_ {
        self.addresses.iter().map(|(address, _)| *address)
    }
}

impl Routes {
    /// Whether everyone on one of our networks is meant (RFC 1122 §3.2.1.3 c, d).
    pub fn is_broadcast(&self, address: Ipv4Addr) -> bool {
        address.is_broadcast()
            || self.addresses.iter().any(|(ours, prefix)| {
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
