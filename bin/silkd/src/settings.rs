//! What the daemon works with: the configuration, and what only the running machine can say
//! (the interface's addresses, its MTU).

use crate::classes::Classes;
use crate::ports::{Place, Sides};
use crate::scout::Recipe;
use crate::stack;
use silk_config::{Config, Prefix};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
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
    /// What is on the link of each device.
    pub links: Vec<Link>,
    /// The networks that the first link had at first.
    pub configured: Vec<(IpAddr, u8)>,
    /// Addresses of the interface for which the classifier has no room.
    pub beyond: Vec<IpAddr>,
    /// The paths that sockets of `PF_SCOUT` can build.
    pub recipes: Vec<Recipe>,
    /// The graph speaks IPv6.
    pub speaks_v6: bool,
    /// Bytes of the largest IP packet that every link takes.
    pub mtu: u16,
}

/// What is on the link of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Linux's number of the interface that it shares; zero: it shares none.
    pub interface: u32,
    /// Networks that are reached over it: our address there now, and the prefix's
    /// length. Whatever is in none of any link, nor behind a router, is Linux's to reach.
    pub networks: Vec<(IpAddr, u8)>,
    /// The router of the default route where that leads over it, of IPv4 and of IPv6.
    pub routers: [Option<IpAddr>; 2],
}

impl Link {
    /// Our address on the link's smallest network that `neighbour` is in, and the length of its prefix: of several,
    /// of IPv4 the first, as with Linux.
    fn beside(&self, neighbour: IpAddr) -> Option<(IpAddr, u8)> {
        let on_link = || {
            let all = self.networks.iter().copied();
            all.filter(|(network, length)| same_network(*network, neighbour, *length))
        };
        let longest = on_link().map(|(_, length)| length).max()?;
        let mut nearest = on_link().filter(|(_, length)| *length == longest);
        if neighbour.is_ipv6() { nearest.next_back() } else { nearest.next() }
    }

    /// Whether an address of ours is on it.
    fn has(&self, ours: IpAddr) -> bool {
        self.networks.iter().any(|(address, _)| *address == ours)
    }
}

/// Every address of the same IP.
pub fn any_like(address: IpAddr) -> IpAddr {
    if address.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
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
            links: Vec::new(),
            configured: Vec::new(),
            beyond: Vec::new(),
            recipes: Vec::new(),
            speaks_v6: false,
            mtu: 0,
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

    /// Where a socket bound to `address`, which stands for `sides`, reserves its port. It can be served
    /// at every address of Linux's, so it needs all of them; where silk's is its own alone, there is
    /// nothing to be had from the others.
    pub fn reserve_at(&self, address: IpAddr, sides: Sides) -> Vec<Place> {
        if !stack::owns_link(&self.config) || !address.is_unspecified() {
            return vec![Place { address, sides }];
        }
        // A port cannot be reserved at a link-local address without naming the link.
        sides.each().filter_map(|six| self.first_source(six)).map(Place::from).collect()
    }

    /// The networks of all links, with our addresses there.
    pub fn networks(&self) -> impl Iterator<Item = &(IpAddr, u8)> + '_ {
        self.links.iter().flat_map(|link| &link.networks)
    }

    /// The router of the default route of a family, of IPv4 or `six`, and which link it is on.
    pub fn router(&self, six: bool) -> Option<(&Link, IpAddr)> {
        self.links.iter().find_map(|link| Some((link, link.routers[usize::from(six)]?)))
    }

    /// The addresses that mean everyone on one of the networks.
    pub fn broadcasts(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.networks().filter_map(|(network, length)| match network {
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
        if remote.is_loopback() || remote.is_multicast() || broadcast {
            return None;
        }
        if self.addresses.contains(&remote) {
            // Where Linux does not have them, what is sent to our own addresses comes back to us.
            return stack::owns_link(&self.config).then_some(remote);
        }
        if let Some(ours) = self.beside(remote) {
            return Some(ours);
        }
        let (link, router) = self.router(remote.is_ipv6()).filter(|_| is_wide(remote))?;
        let beside = link.beside(router).map(|(ours, _)| ours).filter(|ours| is_wide(*ours));
        beside.or_else(|| self.first_source_on(remote.is_ipv6(), |ours| link.has(ours)))
    }

    /// The address to speak to `remote` from over Linux, where Linux has ours too and `remote` is here, or
    /// nobody's of whom silk knows where: then Linux knows.
    pub fn source_over_linux(&self, remote: IpAddr) -> Option<IpAddr> {
        let here = remote.is_loopback() || self.addresses.contains(&remote);
        (!stack::owns_link(&self.config)).then(|| if here { remote } else { any_like(remote) })
    }

    /// Our address on the smallest network of all links that `neighbour` is in; of equal ones, on the first.
    fn beside(&self, neighbour: IpAddr) -> Option<IpAddr> {
        let all = self.links.iter().filter_map(|link| link.beside(neighbour));
        // The maximum of several equals would be the last.
        all.rev().max_by_key(|(_, length)| *length).map(|(ours, _)| ours)
    }

    /// The first address of a family that means something beyond its link.
    fn first_source(&self, six: bool) -> Option<IpAddr> {
        self.first_source_on(six, |ours| self.links.iter().any(|link| link.has(ours)))
    }

    /// The same of those that are `there`.
    fn first_source_on(&self, six: bool, there: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        let all = self.addresses.iter().filter(|ours| ours.is_ipv6() == six);
        all.copied().find(|ours| is_wide(*ours) && there(*ours))
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
        let links = vec![Link { networks: networks.collect(), ..Link::default() }];
        Settings { links, addresses, ..Settings::new(config, PathBuf::new()) }
    }

    #[test]
    fn a_port_of_every_address_is_reserved_at_all_of_linuxs_where_it_shares_the_interface() {
        let (any, own) = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::from([10, 0, 0, 1]));
        let at = |settings: &Settings, address: IpAddr| settings.reserve_at(address, Sides::of(address));
        let shared = settings("kind = \"xdp\"\ninterface = \"eth0\"");
        assert_eq!(at(&shared, any), [any.into()]);
        assert_eq!(at(&shared, own), [own.into()]);
        let alone = settings("kind = \"tap\"\ninterface = \"tap0\"\naddress = \"10.0.0.1/24\"");
        assert_eq!(at(&alone, any), [own.into()]);
    }

    #[test]
    fn a_port_of_both_ips_is_reserved_as_one_or_at_an_address_of_each() {
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let shared = settings("kind = \"xdp\"\ninterface = \"eth0\"");
        assert_eq!(shared.reserve_at(any, Sides::BOTH), [Place { address: any, sides: Sides::BOTH }]);
        let alone = settings(
            "kind = \"tap\"\ninterface = \"tap0\"\naddress = \"10.0.0.1/24\"\naddress6 = \"2001:db8::1/64\"",
        );
        let wide: Vec<Place> = [alone.addresses[0], alone.addresses[2]].map(Place::from).into();
        assert_eq!(alone.reserve_at(any, Sides::BOTH), wide);
    }

    #[test]
    fn a_neighbour_is_reached_from_the_address_of_its_network_and_the_world_from_a_wide_one() {
        let mut settings = settings("interface = \"eth0\"");
        let from = |settings: &Settings, text: &str| settings.source_for(text.parse().unwrap());
        assert_eq!(from(&settings, "fe80::9"), Some(settings.addresses[1]));
        assert_eq!(from(&settings, "2001:db8::9"), Some(settings.addresses[2]));
        assert_eq!(from(&settings, "2001:db8:1::9"), None);
        settings.links[0].routers[1] = Some(IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, 0xfe]));
        assert_eq!(from(&settings, "2001:db8:1::9"), Some(settings.addresses[2]));
        assert_eq!(from(&settings, "192.0.2.1"), None);
    }

    #[test]
    fn of_several_networks_and_addresses_the_nearest_first_is_connected_from() {
        let mut settings = settings("interface = \"eth0\"");
        for address in ["10.0.0.5", "10.0.9.1"] {
            settings.addresses.push(address.parse().unwrap());
            settings.links[0].networks.push((address.parse().unwrap(), 24));
        }
        settings.links[0].routers[0] = Some(IpAddr::from([10, 0, 9, 254]));
        let from = |text: &str| settings.source_for(text.parse().unwrap()).unwrap().to_string();
        assert_eq!(["10.0.0.9", "10.0.9.9", "192.0.2.1"].map(from), ["10.0.0.1", "10.0.9.1", "10.0.9.1"]);
    }

    #[test]
    fn of_several_links_the_nearest_network_and_the_link_of_the_router_are_connected_from() {
        let mut settings = settings("interface = \"eth0\"");
        let networks: [(&str, u8); 3] = [("10.0.0.129", 25), ("fe80::2", 64), ("fd00::2", 64)];
        let networks: Vec<(IpAddr, u8)> =
            networks.map(|(ours, length)| (ours.parse().unwrap(), length)).into();
        settings.addresses.extend(networks.iter().map(|(ours, _)| *ours));
        settings.links.push(Link { networks, ..Link::default() });
        settings.links[1].routers = [Some(IpAddr::from([10, 0, 0, 200])), Some("fe80::fe".parse().unwrap())];
        let from = |text: &str| settings.source_for(text.parse().unwrap()).unwrap().to_string();
        assert_eq!(["10.0.0.9", "10.0.0.130"].map(from), ["10.0.0.1", "10.0.0.129"]);
        assert_eq!(["192.0.2.1", "2001:db8:1::9"].map(from), ["10.0.0.129", "fd00::2"]);
        assert_eq!(["2001:db8::9", "fd00::9", "fe80::9"].map(from), ["2001:db8::1", "fd00::2", "fe80::1"]);
    }

    #[test]
    fn this_machine_is_reached_over_linux() {
        let routers = [Some(IpAddr::from([10, 0, 0, 254])), Some("fe80::fe".parse().unwrap())];
        let mut settings = settings("interface = \"eth0\"");
        settings.links[0].routers = routers;
        let here = ["127.0.0.1", "10.0.0.1", "::1", "2001:db8::1"];
        assert_eq!(here.map(|address| settings.source_for(address.parse().unwrap())), [None; 4]);
        assert!(settings.source_for(IpAddr::from([192, 0, 2, 1])).is_some());
    }
}
