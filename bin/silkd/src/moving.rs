//! Addresses and routers that change while the daemon runs, because Linux shares the interface, or because
//! routers of IPv6 advertise them on a link of silk's own: new addresses are served too, addresses that
//! are gone are connected from no more, and routes and the interface's Ethernet address are followed, by connections that
//! exist too. It must never move an address in the classifier's tables, whose ports know addresses by their places.

use crate::command::Command;
use crate::engine::Engine;
use crate::say::say;
use crate::server::Server;
use crate::settings::{Settings, is_wide};
use silk_device::netlink::{Finder, Interface, Table};
use silk_executor::link::{self, ROUTES};
use silk_modules::arp::Arp;
use silk_modules::eth::Eth;
use silk_modules::igmp::Igmp;
use silk_modules::ip::{Ip, Routes};
use silk_modules::ip6::Ip6;
use silk_modules::mld::Mld;
use silk_modules::nd::Nd;
use silk_modules::{Leads, Standing, Way};
use silk_path::Advertised;
use silk_path::classify::layout::{ADDRESSES, ADDRESSES6};
use silk_wire::MacAddr;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// The least time between two looks: routes may change often, and the control thread has other work.
const PAUSE: Duration = Duration::from_secs(1);
/// So many new routes are told one by one.
const TOLD: usize = 8;

/// What has changed of an interface.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Addresses that are silk's from now on.
    pub new: Vec<IpAddr>,
    /// Addresses that Linux has no more.
    pub gone: Vec<IpAddr>,
    /// Addresses for which the classifier has no room, each told once.
    pub beyond: Vec<IpAddr>,
    /// The networks on the links or the ways from there are others.
    pub ways: bool,
    /// The ways that are new, but for those to everywhere and to networks of ours.
    pub led: Vec<Way>,
    /// The same of those that are gone.
    pub lost: Vec<Way>,
    /// The router of IPv4 and that of IPv6, where it is another now, or none.
    pub routers: [Option<Option<IpAddr>>; 2],
}

impl Settings {
    /// Takes over how the links stand now.
    pub fn follow(&mut self, mut standing: Standing) -> Moves {
        let mut moves = Moves::default();
        standing.give_up(&self.duplicate);
        let before: Vec<IpAddr> = self.standing.addresses().map(|(address, _)| address).collect();
        let now: Vec<IpAddr> = standing.addresses().map(|(address, _)| address).collect();
        let is_gone = |address: &&IpAddr| !now.contains(address) && !self.duplicate.contains(address);
        moves.gone = before.iter().filter(is_gone).copied().collect();
        for address in now.iter().copied() {
            if self.addresses.contains(&address) {
                // One that comes back has its place still.
                moves.new.extend((!before.contains(&address)).then_some(address));
            } else if self.has_room(address) {
                self.addresses.push(address);
                moves.new.push(address);
            } else if (address.is_ipv4() || self.speaks_v6) && !self.beyond.contains(&address) {
                moves.beyond.push(address);
            }
        }
        self.beyond.retain(|address| now.contains(address));
        self.beyond.extend(&moves.beyond);
        for link in &mut standing.links {
            link.retain(|(address, _)| self.addresses.contains(address));
        }
        let routers = |of: &Standing| [false, true].map(|six| of.router(six));
        let (old, new) = (routers(&self.standing), routers(&standing));
        moves.routers = [0, 1].map(|family| Some(new[family]).filter(|now| *now != old[family]));
        if standing != self.standing {
            moves.ways = true;
            moves.led = further(&standing, &self.standing);
            moves.lost = further(&self.standing, &standing);
            self.stand(standing);
        }
        moves
    }

    /// Whether the classifier has a place for one more address. Those of IPv4 never take one of IPv6's,
    /// whose ports would be others' then.
    fn has_room(&self, address: IpAddr) -> bool {
        let six = self.addresses.iter().filter(|ours| ours.is_ipv6()).count();
        let four = self.addresses.len() - six;
        match address {
            IpAddr::V4(_) => four < ADDRESSES - ADDRESSES6,
            IpAddr::V6(_) => self.speaks_v6 && six < ADDRESSES6.min(ADDRESSES.saturating_sub(four)),
        }
    }
}

impl Server {
    /// Looks how the interfaces stand, if something has changed and the last look was not just now.
    pub(crate) fn follow_link(&mut self) {
        let moved = self.neighbours.iter().any(Finder::has_moved);
        if !moved || self.looked.is_some_and(|looked| looked.elapsed() < PAUSE) {
            return;
        }
        self.looked = Some(Instant::now());
        let locals: Result<Vec<_>, _> = self.neighbours.iter_mut().map(Finder::addresses).collect();
        let table = self.neighbours.first_mut().map(|finder| finder.table(ROUTES));
        let interfaces: Result<Vec<_>, _> = self.neighbours.iter_mut().map(Finder::interface).collect();
        let (Ok(locals), Some(Ok(table)), Ok(interfaces)) = (locals, table, interfaces) else { return };
        self.tell_of_gone(&interfaces);
        let interfaces: Vec<(usize, Interface)> =
            interfaces.into_iter().enumerate().filter_map(|(number, now)| Some((number, now?))).collect();
        interfaces.iter().for_each(|(number, now)| self.follow_station(*number, now));
        let had_v4 = self.settings.standing.addresses().any(|(address, _)| address.is_ipv4());
        if had_v4 && !locals.iter().flatten().any(|local| local.address.is_ipv4()) {
            // They are just being configured anew, and looked at again when they are.
            return;
        }
        tell_of_table(&table, &mut self.settings.told_of_table);
        let mut standing = link::shared(&locals, &table, &self.settings.interfaces);
        for (number, now) in interfaces {
            let narrower =
                self.settings.devices.get(number).is_some_and(|device| now.mtu < device.mtu.into());
            if narrower {
                standing.narrow(number as u8, now.mtu as u16);
            }
        }
        self.take_over(standing);
    }

    /// Of an interface that is gone people are told, once: one that has its name later is another, and has no program of silk's.
    fn tell_of_gone(&mut self, interfaces: &[Option<Interface>]) {
        let all = self.settings.config.devices().zip(interfaces).zip(&mut self.told_of_gone);
        for ((device, _), told) in all.filter(|((_, now), told)| now.is_none() && !**told) {
            *told = true;
            let name = device.interface.as_ref().map_or("", |name| name.as_str());
            say!(
                "silkd: the interface `{name}` is gone: one that gets its name is Linux's until silkd is started again"
            );
        }
    }

    /// An interface is like this now: it may have another Ethernet address.
    fn follow_station(&mut self, number: usize, now: &Interface) {
        let Some(device) = self.settings.devices.get_mut(number) else { return };
        let address = now.mac.0;
        if std::mem::replace(&mut device.address, address) != address {
            say!("silkd: {} has the Ethernet address {} now", now.name, now.mac);
            self.tell_all(|| Command::Station { device: number as u8, address });
        }
    }

    /// Routers advertise this on a link of silk's own: beside it stands what is configured.
    pub(crate) fn follow_routers(&mut self, told: &Advertised) {
        let mut standing = self.settings.configured.clone();
        let addresses = told.addresses.iter().map(|(address, length)| (IpAddr::from(*address), *length));
        addresses.for_each(|address| standing.add(0, address));
        standing.deprecated = told.deprecated.iter().copied().map(IpAddr::from).collect();
        standing.ways.extend(told.router.map(|router| Way::rest(0, router.into())));
        let by = |&((network, length), router): &((Ipv6Addr, u8), Ipv6Addr)| match length {
            0 => Way::rest(0, router.into()),
            _ => Way::by(0, router.into(), (network.into(), length)),
        };
        standing.ways.extend(told.routes.iter().map(by));
        let (hops, mtu) = (told.hops, told.mtu);
        self.tell_all(|| Command::Advertised { hops, mtu });
        self.take_over(standing);
    }

    /// Another station has an address of silk's own (RFC 4862 §5.4.5): from it nothing is sent any more.
    pub(crate) fn give_up(&mut self, address: IpAddr, station: [u8; 6]) {
        if !self.settings.has(address) {
            return;
        }
        say!(
            "silkd: another station, {}, has silk's address {address}, which silk therefore gives up: give one of the two another, and \
             start silkd again",
            MacAddr(station)
        );
        self.settings.duplicate.push(address);
        self.take_over(self.settings.standing.clone());
    }

    /// Another station claims an address of silk's own, which silk keeps (RFC 5227 §2.4 c): people hear of each once.
    pub(crate) fn is_claimed(&mut self, address: IpAddr, station: [u8; 6]) {
        if self.claimed.replace((address, station)) != Some((address, station)) {
            say!(
                "silkd: another station, {}, claims silk's address {address}, which silk keeps: give one of the two another",
                MacAddr(station)
            );
        }
    }

    fn take_over(&mut self, standing: Standing) {
        let moves = self.settings.follow(standing);
        if moves == Moves::default() {
            return;
        }
        if moves.new.iter().any(|address| !self.tables.is_local(*address)) {
            self.serve_new_addresses();
        }
        let ways = self.settings.ways.word();
        self.families.values().for_each(|family| family.arena.header().ways.store(ways, SeqCst));
        let standing = Arc::new(self.settings.standing.clone());
        self.take_spares_back(true);
        self.tell_all(|| Command::Standing(standing.clone()));
        self.tell_of_moves(&moves);
    }

    /// The classifier learns the new addresses. Groups stand behind them and are written down again.
    fn serve_new_addresses(&self) {
        let heard = || self.groups.all().chain(self.settings.everyone());
        heard().for_each(|group| self.give_back_ports_of(group));
        if let Err(why) = crate::start::configure(&self.tables, &self.settings, &self.settings.classes) {
            return say!("silkd: new addresses are Linux's: {why}");
        }
        // Those that were joined first: the others are heard as far as there is room.
        for group in heard() {
            let _ = self.tables.hear(group);
            self.take_ports_of(group);
        }
    }

    fn tell_of_moves(&self, moves: &Moves) {
        moves.new.iter().for_each(|address| say!("silkd: {address} is an address of silk's now"));
        moves.gone.iter().for_each(|address| say!("silkd: {address} is gone from the interface"));
        let beyond = moves.beyond.iter();
        beyond.for_each(|address| say!("silkd: {address} is Linux's: the classifier holds no more"));
        let told = |ways: &[Way], what: &str| {
            ways.iter().take(TOLD).for_each(|way| say!("silkd: {way} {what}"));
            if let Some(more @ 1..) = ways.len().checked_sub(TOLD) {
                say!("silkd: so {more} more {what}");
            }
        };
        told(&moves.lost, "no longer");
        told(&moves.led, "now");
        let interface =
            if self.settings.standing.links.len() > 1 { "an interface of silk's" } else { "the interface" };
        for (router, family) in moves.routers.iter().zip(["IPv4", "IPv6"]) {
            match router {
                Some(Some(router)) => say!("silkd: what is far is reached by {router} over {family}"),
                Some(None) => say!("silkd: no default route of {family} leads over {interface}"),
                None => {}
            }
        }
    }
}

impl Engine {
    /// What routers have told of hops and of the MTU, for paths that begin from now on.
    pub fn heed(&mut self, hops: Option<u8>, mtu: Option<u16>) {
        if let Some(ip) = self.core.paths.module_mut::<Ip6>() {
            ip.heed(hops, mtu);
        }
    }

    /// A router says that packets to a destination are better given to another first hop. Whether that is believed, and
    /// news.
    pub fn redirect(
        &mut self,
        router: IpAddr,
        destination: IpAddr,
        hop: IpAddr,
        now: silk_instant::Instant,
    ) -> bool {
        let paths = &mut self.core.paths;
        let believed = match (router, destination, hop) {
            (IpAddr::V4(router), IpAddr::V4(destination), IpAddr::V4(hop)) => {
                paths.module_mut::<Ip>().map(|ip| ip.redirect(now, router, destination, hop))
            }
            (IpAddr::V6(router), IpAddr::V6(destination), IpAddr::V6(hop)) => {
                paths.module_mut::<Ip6>().map(|ip| ip.redirect(now, router, destination, hop))
            }
            _ => None,
        };
        believed.unwrap_or(false)
    }

    /// A router does not answer one of the domains, which all hear the same of them.
    pub fn doubt_router(&mut self, router: Ipv6Addr, now: silk_instant::Instant) {
        if let Some(nd) = self.core.paths.module_mut::<Nd>() {
            nd.doubt_router(now, router, &mut self.core.port);
        }
        self.answer_requests(now);
    }

    /// The router who was believed says where the hop is, too.
    pub fn redirected(&mut self, hop: IpAddr, link: Option<[u8; 6]>, now: silk_instant::Instant) {
        if let (IpAddr::V6(hop), Some(link)) = (hop, link)
            && let Some(nd) = self.core.paths.module_mut::<Nd>()
        {
            nd.redirected(now, hop, link, &mut self.core.port);
        }
    }

    /// Our Ethernet address at a device is this now.
    pub fn become_station(&mut self, device: u8, address: [u8; 6]) {
        let paths = &mut self.core.paths;
        if let Some(eth) = paths.module_mut::<Eth>() {
            eth.become_station(device, address);
        }
        if let Some(ip) = paths.module_mut::<Ip>() {
            ip.become_station(device, address);
        }
        if let Some(ip) = paths.module_mut::<Ip6>() {
            ip.become_station(device, address);
        }
    }

    /// The links stand like this now.
    pub fn follow(&mut self, standing: &Standing, now: silk_instant::Instant) {
        let (routes, routes6) = (Routes::of(standing), Routes::<Ipv6Addr>::of(standing));
        let (addresses, addresses6): (Vec<_>, Vec<_>) =
            (routes.addresses().collect(), routes6.addresses().collect());
        if let Some(ip) = self.core.paths.module_mut::<Ip>() {
            ip.follow(routes);
        }
        if let Some(ip) = self.core.paths.module_mut::<Ip6>() {
            ip.follow(routes6);
        }
        if let Some(arp) = self.core.paths.module_mut::<Arp>() {
            arp.become_these(&addresses, &mut self.core.port);
        }
        if let Some(nd) = self.core.paths.module_mut::<Nd>() {
            nd.become_these(&addresses6, &mut self.core.port);
        }
        if let Some(igmp) = self.core.paths.module_mut::<Igmp>() {
            igmp.become_these(&addresses);
        }
        if let Some(mld) = self.core.paths.module_mut::<Mld>() {
            mld.become_these(&addresses6);
        }
        self.answer_requests(now);
    }
}

/// What one of these has of ways beyond its own networks that the other has not, but for those to everywhere and to what
/// every link has.
fn further(standing: &Standing, other: &Standing) -> Vec<Way> {
    let known: HashSet<&Way> = other.ways.iter().collect();
    let beside = |way: &Way| matches!(way.leads, Leads::Over { gateway: None, .. });
    let new = |way: &&Way| way.prefix > 0 && is_wide(way.network) && !beside(way) && !known.contains(way);
    standing.ways.iter().filter(new).copied().collect()
}

/// Says once that there are more routes than are followed, where the others lead is decided by shorter prefixes, and that there
/// are rules that are not.
pub(crate) fn tell_of_table(table: &Table, told: &mut [bool; 2]) {
    let (beyond, unknown) = (table.beyond, table.rules.unknown);
    if beyond > 0 && !told[0] {
        say!("silkd: {beyond} routes are not followed: of each IP the first {ROUTES} are");
    }
    if unknown > 0 && !told[1] {
        say!(
            "silkd: {unknown} of Linux's rules (`ip rule`) are not followed: they ask for users, ports, protocols or services"
        );
    }
    *told = [beyond > 0, unknown > 0];
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_config::Config;
    use std::path::PathBuf;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn settings() -> Settings {
        let text = "[device]\ninterface = \"eth0\"\n[[class]]\nname = \"all\"\ndefault = true\n";
        let config = Config::parse("test", text).unwrap_or_else(|faults| panic!("{faults}"));
        let mut settings = Settings::new(config, PathBuf::new());
        settings.speaks_v6 = true;
        settings.addresses = vec![ip("10.0.0.1"), ip("fd00::1")];
        settings.stand(standing(&BOTH, None));
        settings
    }

    fn networks(addresses: &[(&str, u8)]) -> Vec<(IpAddr, u8)> {
        addresses.iter().map(|(address, length)| (ip(address), *length)).collect()
    }

    fn standing(addresses: &[(&str, u8)], router: Option<&str>) -> Standing {
        Standing::of(&networks(addresses), router.map(ip))
    }

    const BOTH: [(&str, u8); 2] = [("10.0.0.1", 24), ("fd00::1", 64)];

    #[test]
    fn what_stands_as_it_did_is_no_move() {
        assert_eq!(settings().follow(standing(&BOTH, None)), Moves::default());
    }

    #[test]
    fn a_new_address_comes_behind_those_there_are() {
        let mut settings = settings();
        let all = [("10.0.9.1", 24), ("10.0.0.1", 24), ("fd00::1", 64)];
        assert_eq!(
            settings.follow(standing(&all, None)),
            Moves { new: vec![ip("10.0.9.1")], ways: true, ..Moves::default() }
        );
        assert_eq!(settings.addresses, [ip("10.0.0.1"), ip("fd00::1"), ip("10.0.9.1")]);
        assert_eq!(settings.source_for(ip("10.0.9.7")), Some(ip("10.0.9.1")));
    }

    #[test]
    fn nobody_connects_from_an_address_that_is_gone_until_it_is_back() {
        let mut settings = settings();
        let all = [("10.0.0.1", 24), ("10.0.9.1", 24)];
        settings.follow(standing(&all, None));
        let moves = settings.follow(standing(&all[1..], None));
        assert_eq!(moves, Moves { gone: vec![ip("10.0.0.1")], ways: true, ..Moves::default() });
        assert_eq!(settings.source_for(ip("10.0.9.7")), Some(ip("10.0.9.1")));
        assert_eq!(settings.source_for(ip("10.0.0.7")), None);
        let moves = settings.follow(standing(&all, None));
        assert_eq!(moves, Moves { new: vec![ip("10.0.0.1")], ways: true, ..Moves::default() });
        assert_eq!(settings.addresses.len(), 3, "it has its place still");
    }

    // RFC 4862 §5.4.5.
    #[test]
    fn an_address_that_another_station_has_is_used_no_more() {
        let mut settings = settings();
        let (lost, beside) = (ip("fd00::1"), ip("fd00::9"));
        assert_eq!((settings.has(lost), settings.source_for(beside)), (true, Some(lost)));
        settings.duplicate.push(lost);
        let moves = settings.follow(standing(&BOTH, None));
        assert_eq!(moves, Moves { ways: true, ..Moves::default() }, "it is not gone from the interface");
        assert_eq!((settings.has(lost), settings.source_for(beside)), (false, None));
        assert_eq!(settings.source_for(ip("10.0.0.9")), Some(ip("10.0.0.1")));
        // Routers that go on with its prefix do not bring it back.
        assert_eq!(settings.follow(standing(&BOTH, None)), Moves::default());
        let both = [BOTH[0], BOTH[1], ("fd00::2", 64)];
        assert_eq!(settings.follow(standing(&both, None)).new, [ip("fd00::2")]);
        assert_eq!(settings.source_for(lost), Some(ip("fd00::2")), "who has it is spoken to");
    }

    #[test]
    fn the_default_route_is_followed() {
        let mut settings = settings();
        let far = ip("192.0.2.7");
        assert_eq!(settings.source_for(far), None);
        let moves = settings.follow(standing(&BOTH, Some("10.0.0.254")));
        assert_eq!(moves.routers, [Some(Some(ip("10.0.0.254"))), None]);
        assert_eq!(settings.source_for(far), Some(ip("10.0.0.1")));
        assert_eq!(settings.follow(standing(&BOTH, None)).routers, [Some(None), None]);
        assert_eq!(settings.source_for(far), None);
    }

    #[test]
    fn new_ways_are_told_but_for_those_to_everywhere_and_to_networks_of_ours() {
        let mut settings = settings();
        let mut now = standing(&[BOTH[0], BOTH[1], ("10.0.9.1", 24)], Some("10.0.0.254"));
        let by = |router: &str| Way::by(0, ip(router), (ip("172.16.0.0"), 12));
        now.ways.push(by("10.0.0.9"));
        let moves = settings.follow(now.clone());
        assert_eq!((moves.led, moves.lost), (vec![by("10.0.0.9")], vec![]));
        now.ways.pop();
        now.ways.push(by("10.0.0.8"));
        let moves = settings.follow(now);
        assert_eq!((moves.led, moves.lost), (vec![by("10.0.0.8")], vec![by("10.0.0.9")]));
        assert_eq!(by("10.0.0.8").to_string(), "172.16.0.0/12 is reached by 10.0.0.8");
    }

    #[test]
    fn an_address_beyond_the_tables_is_linuxs() {
        let mut settings = settings();
        let many: Vec<String> = (1..=9).map(|n| format!("10.0.0.{n}")).collect();
        let all: Vec<(&str, u8)> = many.iter().map(|address| (address.as_str(), 24)).collect();
        let moves = settings.follow(standing(&all, None));
        assert_eq!((moves.new.len(), moves.beyond), (7, vec![ip("10.0.0.9")]));
        let served = settings.standing.addresses().filter(|(address, _)| address.is_ipv4());
        assert_eq!(served.count(), 8);
        assert_eq!(settings.follow(standing(&all, None)), Moves::default(), "it was told");
    }

    #[test]
    fn of_several_interfaces_one_may_lose_all_while_the_others_stay_as_they_are() {
        let mut settings = settings();
        settings.addresses.push(ip("10.0.1.1"));
        let both = |second: &[(&str, u8)], router: Option<&str>| {
            standing(&BOTH, None).and(&networks(second), router.map(ip))
        };
        let here = [("10.0.1.1", 24)];
        settings.stand(both(&here, None));
        assert_eq!(settings.follow(both(&here, None)), Moves::default());
        let routed = settings.follow(both(&here, Some("10.0.1.254"))).routers;
        assert_eq!(routed, [Some(Some(ip("10.0.1.254"))), None]);
        assert_eq!(settings.source_for(ip("192.0.2.7")), Some(ip("10.0.1.1")));
        let moves = settings.follow(both(&[], None));
        assert_eq!((moves.gone, moves.routers), (vec![ip("10.0.1.1")], [Some(None), None]));
        assert_eq!(
            ["10.0.0.9", "10.0.1.9"].map(|to| settings.source_for(ip(to))),
            [Some(ip("10.0.0.1")), None]
        );
    }

    #[test]
    fn a_network_may_become_larger() {
        let mut settings = settings();
        let moves = settings.follow(standing(&[("10.0.0.1", 16), BOTH[1]], None));
        assert_eq!(moves, Moves { ways: true, ..Moves::default() });
        assert_eq!(settings.source_for(ip("10.0.9.7")), Some(ip("10.0.0.1")));
    }
}
