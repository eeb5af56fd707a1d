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
    /// The local addresses that are silk's.
    pub addresses: Vec<IpAddr>,
    /// Networks that are reached over silk's interface: prefix and length. Whatever is not
    /// in one of them, or behind the gateway, is Linux's to reach.
    pub networks: Vec<(IpAddr, u8)>,
    /// The paths that sockets of `PF_SCOUT` can build.
    pub recipes: Vec<Recipe>,
    /// Whether a default route of IPv4 leads over silk's interface, and one of IPv6.
    pub default_route: [bool; 2],
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
            recipes: Vec::new(),
            default_route: [false; 2],
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
        let on_link =
            self.networks.iter().filter(|(network, length)| same_network(*network, remote, *length));
        if let Some((ours, _)) = on_link.max_by_key(|(_, length)| *length) {
            // The first address of IPv4, as ever; of IPv6, the one of that network.
            return if remote.is_ipv6() { Some(*ours) } else { self.first_source(false) };
        }
        let narrow = matches!(remote, IpAddr::V6(remote) if remote.is_unicast_link_local());
        let reached = self.default_route[usize::from(remote.is_ipv6())] && !narrow;
        self.first_source(remote.is_ipv6()).filter(|_| reached)
    }

    /// The first address of a family that means something beyond the link.
    fn first_source(&self, six: bool) -> Option<IpAddr> {
        let wide = |ours: &IpAddr| !matches!(ours, IpAddr::V6(ours) if ours.is_unicast_link_local());
        self.addresses.iter().filter(|ours| wide(ours)).find(|ours| ours.is_ipv6() == six).copied()
    }

    /// How many waiting threads ordinary connections leave for higher classes, in a family
    /// of `threads`: none where there are few, or nothing to keep them for.
    pub fn reserve(&self, threads: usize) -> u32 {
        let worth_it = self.config.scheduler.extend && self.classes.domains() > 1;
        if worth_it && threads >= 8 { 2 } else { 0 }
    }
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
        Settings { addresses, ..Settings::new(config, PathBuf::new()) }
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
        let lengths = [24, 64, 64];
        settings.networks = settings.addresses.iter().copied().zip(lengths).collect();
        let from = |settings: &Settings, text: &str| settings.source_for(text.parse().unwrap());
        assert_eq!(from(&settings, "fe80::9"), Some(settings.addresses[1]));
        assert_eq!(from(&settings, "2001:db8::9"), Some(settings.addresses[2]));
        assert_eq!(from(&settings, "2001:db8:1::9"), None);
        settings.default_route = [false, true];
        assert_eq!(from(&settings, "2001:db8:1::9"), Some(settings.addresses[2]));
        assert_eq!(from(&settings, "192.0.2.1"), None);
    }

    #[test]
    fn this_machine_is_reached_over_linux() {
        let settings = Settings { default_route: [true; 2], ..settings("interface = \"eth0\"") };
        let here = ["127.0.0.1", "10.0.0.1", "::1", "2001:db8::1"];
        assert_eq!(here.map(|address| settings.source_for(address.parse().unwrap())), [None; 4]);
        assert!(settings.source_for(IpAddr::from([192, 0, 2, 1])).is_some());
    }
}
