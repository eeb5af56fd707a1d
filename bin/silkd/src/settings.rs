//! What the daemon works with: the configuration, and what only the running machine can say
//! (the interface's addresses, its MTU).

use crate::binding::{Place, Sides, any_like};
use crate::classes::Classes;
use crate::recipes::Recipe;
use silk_config::{Config, DeviceKind};
use silk_modules::ip::Routes;
use silk_modules::{Device, Standing};
use silk_path::classify::Refused;
use silk_stream::Ways;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::Arc;

/// The settings.
pub struct Settings {
    /// The configuration they come from.
    pub config: Config,
    /// The file it was read from, for `silk reload`.
    pub file: PathBuf,
    /// The classes, with their domains.
    pub classes: Classes,
    /// Whom it refuses.
    pub refused: Arc<Refused>,
    /// The device turned out to have one receive ring for all classes.
    pub joined: bool,
    /// The local addresses that are silk's, in the order that the classifier has them; also those that
    /// the interface had once.
    pub addresses: Vec<IpAddr>,
    /// Linux's numbers of the interfaces that it shares, by device.
    pub interfaces: Vec<u32>,
    /// The devices: with the Ethernet addresses that they have now, else as they were at first.
    pub devices: Vec<Device>,
    /// It was said that there are more routes than are followed; rules that are not.
    pub told_of_table: [bool; 2],
    /// How the links stand.
    pub standing: Standing,
    /// How they stood at first.
    pub configured: Standing,
    /// The routes of IPv4 and of IPv6 as they stand.
    routes: (Routes, Routes<Ipv6Addr>),
    /// What programs are told of the ways.
    pub ways: Ways,
    /// Addresses of silk's own that another station has: they are used no more.
    pub duplicate: Vec<IpAddr>,
    /// Addresses of the interface for which the classifier has no room.
    pub beyond: Vec<IpAddr>,
    /// The paths that sockets of `PF_SCOUT` can build.
    pub recipes: Vec<Recipe>,
    /// The graph speaks IPv6.
    pub speaks_v6: bool,
    /// Bytes of the largest IP packet that every link takes.
    pub mtu: u16,
}

impl Settings {
    /// The settings of a configuration, before the device is known.
    pub fn new(config: Config, file: PathBuf) -> Self {
        let classes = Classes::new(&config);
        Self {
            config,
            file,
            classes,
            refused: Arc::default(),
            joined: false,
            addresses: Vec::new(),
            duplicate: Vec::new(),
            interfaces: Vec::new(),
            devices: Vec::new(),
            told_of_table: [false; 2],
            standing: Standing::default(),
            configured: Standing::default(),
            routes: Default::default(),
            ways: Ways::default(),
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

    /// Whether the address is silk's: not one that another station has, too.
    pub fn has(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address) && !self.duplicate.contains(&address)
    }

    /// Whether a socket at every address of IPv4 is silk's: where it has one, and where Linux may yet be given one.
    pub fn serves_v4(&self) -> bool {
        !owns_link(&self.config) || self.addresses.iter().any(IpAddr::is_ipv4)
    }

    /// Whether one at every address of IPv6 is: the same, where the graph speaks it.
    pub fn serves_v6(&self) -> bool {
        let shared = !owns_link(&self.config) && self.speaks_v6;
        shared || self.addresses.iter().any(IpAddr::is_ipv6)
    }

    /// Where a socket bound to `address`, which stands for `sides`, reserves its port. It can be served
    /// at every address of Linux's, so it needs all of them; where silk's is its own alone, there is
    /// nothing to be had from the others, nor from Linux of a group.
    pub fn reserve_at(&self, address: IpAddr, sides: Sides) -> Vec<Place> {
        let several = address.is_unspecified() || self.is_groups(address);
        if !owns_link(&self.config) || !several {
            return vec![Place { address, sides }];
        }
        // At each side: whoever has the port there is not to meet another, also where a link-local address is all there is as yet.
        let any = |six| self.addresses.iter().copied().find(|ours| ours.is_ipv6() == six);
        let place = |six| self.first_source(six).or_else(|| any(six));
        sides.each().filter_map(place).map(Place::from).collect()
    }

    /// The links stand like this from now on.
    pub fn stand(&mut self, standing: Standing) {
        self.routes = (Routes::of(&standing), Routes::of(&standing));
        self.ways = self.ways.then([false, true].map(|six| standing.leads_everywhere(six)));
        self.standing = standing;
    }

    /// The addresses that mean everyone on one of the networks.
    pub fn broadcasts(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.standing.addresses().filter_map(|(network, length)| match network {
            IpAddr::V4(network) if length < 31 => {
                Some(Ipv4Addr::from(u32::from(network) | u32::MAX.checked_shr(length.into()).unwrap_or(0)))
            }
            _ => None,
        })
    }

    /// The addresses that mean everyone on one of the networks, or on the link.
    pub fn everyone(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.broadcasts().chain([Ipv4Addr::BROADCAST]).map(IpAddr::V4)
    }

    /// Whether an address is a group's, or everyone's.
    pub fn is_groups(&self, address: IpAddr) -> bool {
        address.is_multicast() || self.everyone().any(|everyone| everyone == address)
    }

    /// The address to send to a group from, or to everyone.
    pub fn source_for_group(&self, group: IpAddr) -> Option<IpAddr> {
        let everyone = matches!(group, IpAddr::V4(group) if group.is_broadcast());
        self.first_source(group.is_ipv6()).filter(|_| everyone || group.is_multicast())
    }

    /// The address to connect to `remote` from, or `None` when that is Linux's business.
    // RFC 9293 MUST-46.
    pub fn source_for(&self, remote: IpAddr) -> Option<IpAddr> {
        self.source_of(None, remote)
    }

    /// Whether a way leads to `remote`, at least from one of our addresses.
    pub fn leads_to(&self, remote: IpAddr) -> bool {
        let mut from = self.standing.from.iter().map(|(ours, _)| Some(*ours)).chain([None]);
        from.any(|ours| self.source_of(ours, remote).is_some())
    }

    /// The same for a socket that is bound to `bound`: Linux's rules may lead what carries that address another way.
    pub fn source_of(&self, bound: Option<IpAddr>, remote: IpAddr) -> Option<IpAddr> {
        let broadcast = matches!(remote, IpAddr::V4(remote) if remote.is_broadcast());
        if remote.is_loopback() || remote.is_multicast() || broadcast {
            return None;
        }
        if self.has(remote) {
            // Where Linux does not have them, what is sent to our own addresses comes back to us.
            return owns_link(&self.config).then_some(remote);
        }
        match remote {
            IpAddr::V4(remote) => self.routes.0.source_of(bound, remote).map(IpAddr::V4),
            IpAddr::V6(remote) => self.routes.1.source_of(bound, remote).map(IpAddr::V6),
        }
    }

    /// The address to speak to `remote` from over Linux, where Linux has ours too and `remote` is here, or
    /// nobody's of whom silk knows where: then Linux knows.
    pub fn source_over_linux(&self, remote: IpAddr) -> Option<IpAddr> {
        let here = remote.is_loopback() || self.addresses.contains(&remote);
        (!owns_link(&self.config)).then(|| if here { remote } else { any_like(remote) })
    }

    /// The first address of a family that means something beyond its link.
    fn first_source(&self, six: bool) -> Option<IpAddr> {
        let there = |ours: IpAddr| self.standing.addresses().any(|(address, _)| address == ours);
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
pub fn is_wide(address: IpAddr) -> bool {
    !matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// Whether silk answers ARP for its own addresses: where Linux does not share the interface.
pub fn owns_link(config: &Config) -> bool {
    config.device.kind != DeviceKind::Xdp
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_modules::{Leads, Way};
    use std::net::Ipv6Addr;

    fn settings(device: &str) -> Settings {
        let text = format!("[device]\n{device}\n[[class]]\nname = \"all\"\ndefault = true\n");
        let config = Config::parse("test", &text).unwrap_or_else(|faults| panic!("{faults}"));
        let (four, six) = (IpAddr::from([10, 0, 0, 1]), "2001:db8::1".parse().unwrap());
        let addresses = vec![four, "fe80::1".parse().unwrap(), six];
        let networks = addresses.iter().map(|address| (*address, if address.is_ipv6() { 64 } else { 24 }));
        let standing = Standing::of(&networks.collect::<Vec<_>>(), None);
        let mut settings = Settings { addresses, ..Settings::new(config, PathBuf::new()) };
        settings.stand(standing);
        settings
    }

    /// The same with one way more.
    fn and(settings: &mut Settings, way: Way) {
        let mut standing = settings.standing.clone();
        standing.ways.push(way);
        settings.stand(standing);
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
        // Where routers have advertised nothing yet, there is a link-local one all the same.
        let mut early = settings(
            "kind = \"tap\"\ninterface = \"tap0\"\naddress = \"10.0.0.1/24\"\nrouter_advertisements = true",
        );
        early.addresses.truncate(2);
        let sides: Vec<_> = early.reserve_at(any, Sides::BOTH).iter().map(|place| place.sides).collect();
        assert_eq!(sides, [Sides { four: true, six: false }, Sides { four: false, six: true }]);
    }

    #[test]
    fn programs_need_not_ask_where_a_default_route_leads_and_nothing_is_forbidden() {
        let mut settings = settings("interface = \"eth0\"");
        let everywhere = |settings: &Settings| [false, true].map(|six| settings.ways.lead_everywhere(six));
        assert_eq!(everywhere(&settings), [false, false]);
        and(&mut settings, Way::rest(0, "10.0.0.254".parse().unwrap()));
        assert_eq!(everywhere(&settings), [true, false]);
        let elsewhere = Way { network: Ipv6Addr::UNSPECIFIED.into(), prefix: 0, leads: Leads::Elsewhere };
        and(&mut settings, elsewhere);
        assert_eq!(everywhere(&settings), [true, true], "it is Linux's to send there");
        // A worse one, that Linux keeps for what has none.
        and(&mut settings, Way { leads: Leads::Nowhere, ..elsewhere });
        assert_eq!(everywhere(&settings), [true, true]);
        let forbidden = Way { network: "198.51.100.0".parse().unwrap(), prefix: 24, leads: Leads::Nowhere };
        and(&mut settings, forbidden);
        assert_eq!(everywhere(&settings), [false, true]);
    }

    #[test]
    fn a_neighbour_is_reached_from_the_address_of_its_network_and_the_world_from_a_wide_one() {
        let mut settings = settings("interface = \"eth0\"");
        let from = |settings: &Settings, text: &str| settings.source_for(text.parse().unwrap());
        assert_eq!(from(&settings, "fe80::9"), Some(settings.addresses[1]));
        assert_eq!(from(&settings, "2001:db8::9"), Some(settings.addresses[2]));
        assert_eq!(from(&settings, "2001:db8:1::9"), None);
        and(&mut settings, Way::rest(0, "fe80::fe".parse().unwrap()));
        assert_eq!(from(&settings, "2001:db8:1::9"), Some(settings.addresses[2]));
        assert_eq!(from(&settings, "192.0.2.1"), None);
    }

    #[test]
    fn of_several_networks_and_addresses_the_nearest_first_is_connected_from() {
        let mut settings = settings("interface = \"eth0\"");
        let mut standing = settings.standing.clone();
        for address in ["10.0.0.5", "10.0.9.1"] {
            settings.addresses.push(address.parse().unwrap());
            standing.add(0, (address.parse().unwrap(), 24));
        }
        settings.stand(standing);
        and(&mut settings, Way::rest(0, IpAddr::from([10, 0, 9, 254])));
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
        let routers = [IpAddr::from([10, 0, 0, 200]), "fe80::fe".parse().unwrap()];
        let standing = settings.standing.clone().and(&networks, routers);
        settings.stand(standing);
        let from = |text: &str| settings.source_for(text.parse().unwrap()).unwrap().to_string();
        assert_eq!(["10.0.0.9", "10.0.0.130"].map(from), ["10.0.0.1", "10.0.0.129"]);
        assert_eq!(["192.0.2.1", "2001:db8:1::9"].map(from), ["10.0.0.129", "fd00::2"]);
        assert_eq!(["2001:db8::9", "fd00::9", "fe80::9"].map(from), ["2001:db8::1", "fd00::2", "fe80::1"]);
    }

    #[test]
    fn what_is_beyond_another_interface_is_linuxs_to_reach_and_who_has_a_router_is_reached_by_it() {
        let mut settings = settings("interface = \"eth0\"");
        and(&mut settings, Way::rest(0, IpAddr::from([10, 0, 0, 254])));
        let elsewhere = Way { network: [172, 17, 0, 0].into(), prefix: 16, leads: Leads::Elsewhere };
        and(&mut settings, elsewhere);
        let from = |settings: &Settings, last| settings.source_for(IpAddr::from([172, 17, 0, last]));
        assert_eq!(from(&settings, 2), None);
        and(&mut settings, Way::by(0, IpAddr::from([10, 0, 0, 9]), ([172, 17, 0, 8].into(), 29)));
        assert_eq!([from(&settings, 2), from(&settings, 9)], [None, Some(IpAddr::from([10, 0, 0, 1]))]);
    }

    #[test]
    fn this_machine_is_reached_over_linux() {
        let mut settings = settings("interface = \"eth0\"");
        and(&mut settings, Way::rest(0, IpAddr::from([10, 0, 0, 254])));
        and(&mut settings, Way::rest(0, "fe80::fe".parse().unwrap()));
        let here = ["127.0.0.1", "10.0.0.1", "::1", "2001:db8::1"];
        assert_eq!(here.map(|address| settings.source_for(address.parse().unwrap())), [None; 4]);
        assert!(settings.source_for(IpAddr::from([192, 0, 2, 1])).is_some());
    }
}
