//! Addresses and routers that change while the daemon runs, because Linux shares the interface, or because
//! routers of IPv6 advertise them on a link of silk's own: new addresses are served too, addresses that
//! are gone are connected from no more, and the default route is followed, by connections that exist too. It must never move an address in the classifier's tables, whose
//! ports know addresses by their places.

use crate::command::Command;
use crate::engine::Engine;
use crate::server::Server;
use crate::settings::Settings;
use silk_device::netlink::{Finder, Standing};
use silk_modules::ip::{Ip, Routes};
use silk_modules::ip6::Ip6;
use silk_modules::nd::Nd;
use silk_path::Advertised;
use silk_path::classify::layout::{ADDRESSES, ADDRESSES6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The least time between two looks: routes may change often, and the control thread has other work.
const PAUSE: Duration = Duration::from_secs(1);

/// What has changed of an interface.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Addresses that are silk's from now on.
    pub new: Vec<IpAddr>,
    /// Addresses that Linux has no more.
    pub gone: Vec<IpAddr>,
    /// Addresses for which the classifier has no room, each told once.
    pub beyond: Vec<IpAddr>,
    /// The networks on the link are others.
    pub networks: bool,
    /// The router of IPv4 and that of IPv6, where it is another now, or none.
    pub routers: [Option<Option<IpAddr>>; 2],
}

impl Settings {
    /// Takes over how the interface of each device stands now.
    pub fn follow(&mut self, standings: &[Standing]) -> Moves {
        let mut moves = Moves::default();
        let before: Vec<IpAddr> = self.networks().map(|(address, _)| *address).collect();
        let now = standings.iter().flat_map(|standing| &standing.addresses);
        let now: Vec<IpAddr> = now.map(|(address, _)| *address).collect();
        moves.gone = before.iter().filter(|address| !now.contains(address)).copied().collect();
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
        let routers = |of: &Self| [false, true].map(|six| of.router(six).map(|(_, router)| router));
        let before = routers(self);
        for (link, standing) in self.links.iter_mut().zip(standings) {
            let mut networks = standing.addresses.clone();
            networks.retain(|(address, _)| self.addresses.contains(address));
            let routers = [standing.gateway.map(IpAddr::from), standing.gateway6.map(IpAddr::from)];
            moves.networks |= networks != link.networks;
            (link.networks, link.routers) = (networks, routers);
        }
        let now = routers(self);
        moves.routers = [0, 1].map(|family| Some(now[family]).filter(|now| *now != before[family]));
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
        let standings: Result<Vec<Standing>, _> = self.neighbours.iter_mut().map(Finder::standing).collect();
        let Ok(standings) = standings else { return };
        let mut addresses = standings.iter().flat_map(|standing| &standing.addresses);
        if !addresses.any(|(address, _)| address.is_ipv4()) {
            // They are just being configured anew, and looked at again when they are.
            return;
        }
        self.take_over(standings);
    }

    /// Routers advertise this on a link of silk's own: beside it stands what is configured.
    pub(crate) fn follow_routers(&mut self, told: &Advertised) {
        let device = &self.settings.config.device;
        let (gateway, gateway6) = (device.gateway, device.gateway6.or(told.router));
        let mut addresses = self.settings.configured.clone();
        addresses.extend(told.addresses.iter().map(|(address, length)| (IpAddr::from(*address), *length)));
        let (hops, mtu) = (told.hops, told.mtu);
        self.tell_all(|| Command::Advertised { hops, mtu });
        self.take_over(vec![Standing { addresses, gateway, gateway6 }]);
    }

    fn take_over(&mut self, mut standings: Vec<Standing>) {
        let moves = self.settings.follow(&standings);
        if moves == Moves::default() {
            return;
        }
        if moves.new.iter().any(|address| !self.tables.is_local(*address)) {
            self.serve_new_addresses();
        }
        for (standing, link) in standings.iter_mut().zip(&self.settings.links) {
            standing.addresses.clone_from(&link.networks);
        }
        let standings: Arc<[Standing]> = standings.into();
        self.take_spares_back(true);
        self.tell_all(|| Command::Routes(standings.clone()));
        self.tell_of_moves(&moves);
    }

    /// The classifier learns the new addresses. Groups stand behind them and are written down again.
    fn serve_new_addresses(&self) {
        if let Err(why) = crate::start::configure(&self.tables, &self.settings, &self.settings.classes) {
            return eprintln!("silkd: new addresses are Linux's: {why}");
        }
        let groups = self.settings.broadcasts().chain([Ipv4Addr::BROADCAST]).map(IpAddr::from);
        // Those that were joined first: the others are heard as far as there is room.
        for group in self.groups.all().chain(groups) {
            let _ = self.tables.hear(group);
        }
    }

    fn tell_of_moves(&self, moves: &Moves) {
        moves.new.iter().for_each(|address| eprintln!("silkd: {address} is an address of silk's now"));
        moves.gone.iter().for_each(|address| eprintln!("silkd: {address} is gone from the interface"));
        let beyond = moves.beyond.iter();
        beyond.for_each(|address| eprintln!("silkd: {address} is Linux's: the classifier holds no more"));
        let interface =
            if self.settings.links.len() > 1 { "an interface of silk's" } else { "the interface" };
        for (router, family) in moves.routers.iter().zip(["IPv4", "IPv6"]) {
            match router {
                Some(Some(router)) => eprintln!("silkd: what is far is reached by {router} over {family}"),
                Some(None) => eprintln!("silkd: no default route of {family} leads over {interface}"),
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

    /// The addresses and routers of the interfaces are these now, by device.
    pub fn follow(&mut self, standings: &[Standing], now: silk_instant::Instant) {
        let (mut routes, mut routes6) = (Routes::default(), Routes::default());
        for (device, standing) in (0..).zip(standings) {
            let (mut four, mut six) = (Vec::new(), Vec::new());
            for (address, prefix) in &standing.addresses {
                match address {
                    IpAddr::V4(address) => four.push((*address, *prefix)),
                    IpAddr::V6(address) => six.push((*address, *prefix)),
                }
            }
            routes.add_link(device, &four, standing.gateway);
            routes6.add_link(device, &six, standing.gateway6);
        }
        let addresses: Vec<Ipv6Addr> = routes6.addresses().collect();
        if let Some(ip) = self.core.paths.module_mut::<Ip>() {
            ip.routes.become_these(routes);
        }
        if let Some(ip) = self.core.paths.module_mut::<Ip6>() {
            ip.routes.become_these(routes6);
        }
        if let Some(nd) = self.core.paths.module_mut::<Nd>() {
            nd.become_these(&addresses, &mut self.core.port);
        }
        self.answer_requests(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Link;
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
        let networks = vec![(ip("10.0.0.1"), 24), (ip("fd00::1"), 64)];
        settings.links = vec![Link { networks, ..Link::default() }];
        settings
    }

    fn standing(addresses: &[(&str, u8)], router: Option<&str>) -> [Standing; 1] {
        [Standing {
            addresses: addresses.iter().map(|(address, length)| (ip(address), *length)).collect(),
            gateway: router.map(|router| router.parse().unwrap()),
            gateway6: None,
        }]
    }

    const BOTH: [(&str, u8); 2] = [("10.0.0.1", 24), ("fd00::1", 64)];

    #[test]
    fn what_stands_as_it_did_is_no_move() {
        assert_eq!(settings().follow(&standing(&BOTH, None)), Moves::default());
    }

    #[test]
    fn a_new_address_comes_behind_those_there_are() {
        let mut settings = settings();
        let all = [("10.0.9.1", 24), ("10.0.0.1", 24), ("fd00::1", 64)];
        assert_eq!(
            settings.follow(&standing(&all, None)),
            Moves { new: vec![ip("10.0.9.1")], networks: true, ..Moves::default() }
        );
        assert_eq!(settings.addresses, [ip("10.0.0.1"), ip("fd00::1"), ip("10.0.9.1")]);
        assert_eq!(settings.source_for(ip("10.0.9.7")), Some(ip("10.0.9.1")));
    }

    #[test]
    fn nobody_connects_from_an_address_that_is_gone_until_it_is_back() {
        let mut settings = settings();
        let all = [("10.0.0.1", 24), ("10.0.9.1", 24)];
        settings.follow(&standing(&all, None));
        let moves = settings.follow(&standing(&all[1..], None));
        assert_eq!(moves, Moves { gone: vec![ip("10.0.0.1")], networks: true, ..Moves::default() });
        assert_eq!(settings.source_for(ip("10.0.9.7")), Some(ip("10.0.9.1")));
        assert_eq!(settings.source_for(ip("10.0.0.7")), None);
        let moves = settings.follow(&standing(&all, None));
        assert_eq!(moves, Moves { new: vec![ip("10.0.0.1")], networks: true, ..Moves::default() });
        assert_eq!(settings.addresses.len(), 3, "it has its place still");
    }

    #[test]
    fn the_default_route_is_followed() {
        let mut settings = settings();
        let far = ip("192.0.2.7");
        assert_eq!(settings.source_for(far), None);
        let moves = settings.follow(&standing(&BOTH, Some("10.0.0.254")));
        assert_eq!(moves.routers, [Some(Some(ip("10.0.0.254"))), None]);
        assert_eq!(settings.source_for(far), Some(ip("10.0.0.1")));
        assert_eq!(settings.follow(&standing(&BOTH, None)).routers, [Some(None), None]);
        assert_eq!(settings.source_for(far), None);
    }

    #[test]
    fn an_address_beyond_the_tables_is_linuxs() {
        let mut settings = settings();
        let many: Vec<String> = (1..=9).map(|n| format!("10.0.0.{n}")).collect();
        let all: Vec<(&str, u8)> = many.iter().map(|address| (address.as_str(), 24)).collect();
        let moves = settings.follow(&standing(&all, None));
        assert_eq!((moves.new.len(), moves.beyond), (7, vec![ip("10.0.0.9")]));
        assert_eq!(settings.networks().count(), 8);
        assert_eq!(settings.follow(&standing(&all, None)), Moves::default(), "it was told");
    }

    #[test]
    fn of_several_interfaces_one_may_lose_all_while_the_others_stay_as_they_are() {
        let mut settings = settings();
        settings.addresses.push(ip("10.0.1.1"));
        settings.links.push(Link { networks: vec![(ip("10.0.1.1"), 24)], ..Link::default() });
        let both = |second: &[(&str, u8)], router| [standing(&BOTH, None), standing(second, router)].concat();
        let here = [("10.0.1.1", 24)];
        assert_eq!(settings.follow(&both(&here, None)), Moves::default());
        let routed = settings.follow(&both(&here, Some("10.0.1.254"))).routers;
        assert_eq!(routed, [Some(Some(ip("10.0.1.254"))), None]);
        assert_eq!(settings.source_for(ip("192.0.2.7")), Some(ip("10.0.1.1")));
        let moves = settings.follow(&both(&[], None));
        assert_eq!((moves.gone, moves.routers), (vec![ip("10.0.1.1")], [Some(None), None]));
        assert_eq!(
            ["10.0.0.9", "10.0.1.9"].map(|to| settings.source_for(ip(to))),
            [Some(ip("10.0.0.1")), None]
        );
    }

    #[test]
    fn a_network_may_become_larger() {
        let mut settings = settings();
        let moves = settings.follow(&standing(&[("10.0.0.1", 16), BOTH[1]], None));
        assert_eq!(moves, Moves { networks: true, ..Moves::default() });
        assert_eq!(settings.source_for(ip("10.0.9.7")), Some(ip("10.0.0.1")));
    }
}
