//! What changes where links come to stand otherwise, and what of it people are told. An address never moves in the classifier's tables,
//! whose ports know addresses by their places.

use crate::say::say;
use crate::settings::{Settings, is_wide};
use silk_device::netlink::Table;
use silk_executor::link::ROUTES;
use silk_modules::{Leads, Standing, Way};
use silk_path::classify::layout::{ADDRESSES, ADDRESSES6};
use std::collections::HashSet;
use std::net::IpAddr;

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
        say!(Warning, "silkd: {beyond} routes are not followed: of each IP the first {ROUTES} are");
    }
    if unknown > 0 && !told[1] {
        say!(
            Warning,
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
