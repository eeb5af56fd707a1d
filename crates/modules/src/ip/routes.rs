//! Where packets go: our addresses, the networks on the link, and the routers beyond. Longest
//! prefix first; few routes, so a sorted list. Filled by a configuration or from the kernel.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The network.
    pub network: Ipv4Addr,
    /// The length of its prefix.
    pub prefix: u8,
    /// The router; `None`: the network is on the link.
    pub gateway: Option<Ipv4Addr>,
    /// The address our packets carry.
    pub source: Ipv4Addr,
    /// Which of the links below IP.
    pub link: u8,
}

impl Route {
    /// Whom packets to `destination` are handed to.
    pub fn next_hop(&self, destination: Ipv4Addr) -> Ipv4Addr {
        self.gateway.unwrap_or(destination)
    }

    fn contains(&self, destination: Ipv4Addr) -> bool {
        network(destination, self.prefix) == network(self.network, self.prefix)
    }
}

fn network(address: Ipv4Addr, prefix: u8) -> u32 {
    u32::from(address).checked_shr(32 - u32::from(prefix.min(32))).unwrap_or(0)
}

/// The routes, and our own addresses with their prefixes.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    addresses: Vec<(Ipv4Addr, u8)>,
    // Longest prefix first.
    routes: Vec<Route>,
}

impl Routes {
    /// Our addresses on the first link, each network on the link, and a router for the rest.
    pub fn new(addresses: &[(Ipv4Addr, u8)], gateway: Option<Ipv4Addr>) -> Self {
        let mut routes = Self { addresses: addresses.to_vec(), routes: Vec::new() };
        for (address, prefix) in addresses {
            routes.add(Route {
                network: *address,
                prefix: *prefix,
                gateway: None,
                source: *address,
                link: 0,
            });
        }
        if let (Some(gateway), Some((source, _))) = (gateway, addresses.first()) {
            let source = routes.lookup(gateway).map_or(*source, |route| route.source);
            routes.add(Route {
                network: Ipv4Addr::UNSPECIFIED,
                prefix: 0,
                gateway: Some(gateway),
                source,
                link: 0,
            });
        }
        routes
    }

    /// Adds a route.
    pub fn add(&mut self, route: Route) {
        let at = self.routes.partition_point(|known| known.prefix >= route.prefix);
        self.routes.insert(at, route);
    }

    /// The route to `destination`. There is none to an address of our own: the device does
    /// not lead there.
    pub fn lookup(&self, destination: Ipv4Addr) -> Option<&Route> {
        if self.is_ours(destination) || destination.is_unspecified() {
            return None;
        }
        self.routes.iter().find(|route| route.contains(destination))
    }

    /// Whether the address is ours.
    pub fn is_ours(&self, address: Ipv4Addr) -> bool {
        self.addresses.iter().any(|(ours, _)| *ours == address)
    }

    /// Our addresses.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.addresses.iter().map(|(address, _)| *address)
    }

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
    fn broadcasts_are_those_of_our_networks() {
        let routes = routes();
        let all = [ip(255, 255, 255, 255), ip(10, 0, 0, 255), ip(10, 0, 1, 3)];
        assert!(all.iter().all(|address| routes.is_broadcast(*address)));
        assert!(!routes.is_broadcast(ip(10, 0, 1, 255)) && !routes.is_broadcast(ip(10, 0, 0, 254)));
    }
}
