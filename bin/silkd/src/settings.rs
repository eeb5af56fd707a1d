//! What the daemon works with: the configuration, and what only the running machine can say
//! (the interface's addresses, its MTU).

use crate::classes::Classes;
use crate::ports::{Place, Sides};
use crate::scout::Recipe;
use crate::stack;
use silk_config::{Config, Prefix};
use silk_control::Kind;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// The settings.
pub struct Settings {
    /// The configuration they come from.
    pub config: Config,
    /// The file it was read from, for `silk reload`.
    pub file: PathBuf,
    /// The classes, with their domains.
    pub classes: Classes,
    /// The device turned out to have one receive ring for all classes.
    pub joined: bool,
    /// The local addresses that are silk's, in the order that the classifier has them; also those that
    /// the interface had once.
    pub addresses: Vec<IpAddr>,
    /// Networks that are reached over silk's interface: its address there now, and the prefix's
    /// length. Whatever is not in one of them, or behind a router, is Linux's to reach.
    pub networks: Vec<(IpAddr, u8)>,
    /// The networks that the link had at first.
    pub configured: Vec<(IpAddr, u8)>,
    /// Addresses of the interface for which the classifier has no room.
    pub beyond: Vec<IpAddr>,
    /// The paths that sockets of `PF_SCOUT` can build.
    pub recipes: Vec<Recipe>,
    /// The router of the default route over silk's interface, of IPv4 and of IPv6.
    pub routers: [Option<IpAddr>; 2],
    /// The graph speaks IPv6.
    pub speaks_v6: bool,
    /// Bytes of the largest IP packet of the link.
    pub mtu: u16,
    /// Linux's number of the interface that it shares; zero: it shares none.
    pub interface: u32,
}

impl Settings {
    /// The settings of a configuration, before the device is known.
    pub fn new(config: Config, file: PathBuf) -> Self {
        let classes = Classes::new(&config);
        Self {
            config,
            file,
            classes,
            joined: false,
            addresses: Vec::new(),
            networks: Vec::new(),
            configured: Vec::new(),
            beyond: Vec::new(),
            recipes: Vec::new(),
            routers: [None; 2],
            speaks_v6: false,
            mtu: 0,
            interface: 0,
        }
    }

    /// The device has one receive ring for all classes: they share a domain.
    pub fn join_classes(&mut self) {
        self.joined = true;
        self.classes.join();
    }

    /// Whether silk has addresses of IPv6.
    pub fn has_v6(&self) -> bool {
        self.addresses.iter().any(IpAddr::is_ipv6)
    }

    /// Where a socket bound to `address`, which stands for `sides`, reserves its port. Streams can
    /// be served at every address of Linux's, so they need all of them; where silk's is its own
    /// alone, and for datagrams, there is nothing to be had from the others.
    pub fn reserve_at(&self, kind: Kind, address: IpAddr, sides: Sides) -> Vec<Place> {
        let everywhere = kind == Kind::Stream && !stack::owns_link(&self.config);
        if everywhere || !address.is_unspecified() {
            return vec![Place { address, sides }];
        }
        // A port cannot be reserved at a link-local address without naming the link.
        sides.each().filter_map(|six| self.first_source(six)).map(Place::from).collect()
    }

    /// The addresses that mean everyone on one of the interface's networks.
    pub fn broadcasts(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.networks.iter().filter_map(|(network, length)| match network {
            IpAddr::V4(network) if *length < 31 => Some(Ipv4Addr::from(
                u32::from(*network) | u32::MAX.checked_shr((*length).into()).unwrap_or(0),
            )),
            _ => None,
        })
    }

    /// The address to send to a group from, or to everyone.
    pub fn source_for_group(&self, group: IpAddr) -> Option<IpAddr> {
        let everyone = matches!(group, IpAddr::V4(group) if group.is_broadcast());
        self.first_source(group.is_ipv6()).filter(|_| everyone || group.is_multicast())
    }

    /// The address to connect to `remote` from, or `None` when that is Linux's business.
    // RFC 9293 MUST-46.
    pub fn source_for(&self, remote: IpAddr) -> Option<IpAddr> {
        let broadcast = matches!(remote, IpAddr::V4(remote) if remote.is_broadcast());
        if remote.is_loopback() || remote.is_multicast() || broadcast || self.addresses.contains(&remote) {
            return None;
        }
        if let Some(ours) = self.beside(remote) {
            return Some(ours);
        }
        let router = self.routers[usize::from(remote.is_ipv6())].filter(|_| is_wide(remote))?;
        self.beside(router).filter(|ours| is_wide(*ours)).or_else(|| self.first_source(remote.is_ipv6()))
    }

    /// Our address on the link's smallest network that `neighbour` is in: of several, of IPv4 the first, as
    /// with Linux.
    fn beside(&self, neighbour: IpAddr) -> Option<IpAddr> {
        let on_link = || {
            let all = self.networks.iter();
            all.filter(|(network, length)| same_network(*network, neighbour, *length))
        };
        let longest = on_link().map(|(_, length)| *length).max()?;
        let mut nearest = on_link().filter(|(_, length)| *length == longest).map(|(ours, _)| *ours);
        if neighbour.is_ipv6() { nearest.next_back() } else { nearest.next() }
    }

    /// The first address of a family that means something beyond the link.
    fn first_source(&self, six: bool) -> Option<IpAddr> {
        let there = |ours: &IpAddr| self.networks.iter().any(|(address, _)| address == ours);
        let all = self.addresses.iter().filter(|ours| ours.is_ipv6() == six);
        all.copied().find(|ours| is_wide(*ours) && there(ours))
    }

    /// How many waiting threads ordinary connections leave for higher classes, in a family
    /// of `threads`: none where there are few, or nothing to keep them for.
    pub fn reserve(&self, threads: usize) -> u32 {
        let worth_it = self.config.scheduler.extend && self.classes.domains() > 1;
        if worth_it && threads >= 8 { 2 } else { 0 }
    }
}

/// Whether an address means something beyond its link.
fn is_wide(address: IpAddr) -> bool {
    !matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// Whether two addresses begin with the same `length` bits.
fn same_network(a: IpAddr, b: IpAddr, length: u8) -> bool {
    a.is_ipv6() == b.is_ipv6() && Prefix::containing(a, length) == Prefix::containing(b, length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn settings(device: &str) -> Settings {
        let text = format!("[device]\n{device}\n[[class]]\nname = \"all\"\ndefault = true\n");
        let config = Config::parse("test", &text).unwrap_or_else(|faults| panic!("{faults}"));
        let (four, six) = (IpAddr::from([10, 0, 0, 1]), "2001:db8::1".parse().unwrap());
        let addresses = vec![four, "fe80::1".parse().unwrap(), six];
        let networks = addresses.iter().map(|address| (*address, if address.is_ipv6() { 64 } else { 24 }));
        Settings { networks: networks.collect(), addresses, ..Settings::new(config, PathBuf::new()) }
    }

    #[test]
    fn a_stream_port_of_every_address_is_reserved_at_all_of_linuxs_where_it_shares_the_interface() {
        let (any, own) = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::from([10, 0, 0, 1]));
        let at = |settings: &Settings, kind, address: IpAddr| {
            settings.reserve_at(kind, address, Sides::of(address))
        };
        let shared = settings("kind = \"xdp\"\ninterface = \"eth0\"");
        assert_eq!(at(&shared, Kind::Stream, any), [any.into()]);
        assert_eq!(at(&shared, Kind::Datagram, any), [own.into()]);
        assert_eq!(at(&shared, Kind::Stream, own), [own.into()]);
        let alone = settings("kind = \"tap\"\ninterface = \"tap0\"\naddress = \"10.0.0.1/24\"");
        assert_eq!(at(&alone, Kind::Stream, any), [own.into()]);
    }

    #[test]
    fn a_port_of_both_ips_is_reserved_as_one_or_at_an_address_of_each() {
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let shared = settings("kind = \"xdp\"\ninterface = \"eth0\"");
        let both = |kind| shared.reserve_at(kind, any, Sides::BOTH);
        assert_eq!(both(Kind::Stream), [Place { address: any, sides: Sides::BOTH }]);
        let wide: Vec<Place> = [shared.addresses[0], shared.addresses[2]].map(Place::from).into();
        assert_eq!(both(Kind::Datagram), wide);
    }

    #[test]
    fn a_neighbour_is_reached_from_the_address_of_its_network_and_the_world_from_a_wide_one() {
        let mut settings = settings("interface = \"eth0\"");
        let from = |settings: &Settings, text: &str| settings.source_for(text.parse().unwrap());
        assert_eq!(from(&settings, "fe80::9"), Some(settings.addresses[1]));
        assert_eq!(from(&settings, "2001:db8::9"), Some(settings.addresses[2]));
        assert_eq!(from(&settings, "2001:db8:1::9"), None);
        settings.routers[1] = Some(IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, 0xfe]));
        assert_eq!(from(&settings, "2001:db8:1::9"), Some(settings.addresses[2]));
        assert_eq!(from(&settings, "192.0.2.1"), None);
    }

    #[test]
    fn of_several_networks_and_addresses_the_nearest_first_is_connected_from() {
        let mut settings = settings("interface = \"eth0\"");
        for address in ["10.0.0.5", "10.0.9.1"] {
            settings.addresses.push(address.parse().unwrap());
            settings.networks.push((address.parse().unwrap(), 24));
        }
        settings.routers[0] = Some(IpAddr::from([10, 0, 9, 254]));
        let from = |text: &str| settings.source_for(text.parse().unwrap()).unwrap().to_string();
        assert_eq!(["10.0.0.9", "10.0.9.9", "192.0.2.1"].map(from), ["10.0.0.1", "10.0.9.1", "10.0.9.1"]);
    }

    #[test]
    fn this_machine_is_reached_over_linux() {
        let routers = [Some(IpAddr::from([10, 0, 0, 254])), Some("fe80::fe".parse().unwrap())];
        let settings = Settings { routers, ..settings("interface = \"eth0\"") };
        let here = ["127.0.0.1", "10.0.0.1", "::1", "2001:db8::1"];
        assert_eq!(here.map(|address| settings.source_for(address.parse().unwrap())), [None; 4]);
        assert!(settings.source_for(IpAddr::from([192, 0, 2, 1])).is_some());
    }
}
