//! All that a configuration says of the tables, taken over at once. One thread at a time does it; any
//! number read meanwhile.

use super::layout::*;
use super::rules::ClassRule;
use super::tables::{Domains, Owned, Tables, TooMany};
use core::net::IpAddr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

impl Tables {
    /// Takes everything over at once: flags, domains, rules and local addresses of either
    /// family. A reader sees the old rules or the new ones, never some of each.
    pub fn configure(
        &self,
        owned: Owned,
        domains: Domains,
        rules: &[ClassRule],
        addresses: &[impl Into<IpAddr> + Copy],
    ) -> Result<(), TooMany> {
        let of = |six| addresses.iter().map(|a| (*a).into()).filter(move |a: &IpAddr| a.is_ipv6() == six);
        let (four, six) = (of(false).count(), of(true).count());
        if rules.len() > RULES || four + six > ADDRESSES || six > ADDRESSES6 {
            return Err(TooMany);
        }
        let in_force = self.settings[0].load(Acquire);
        let bank = 1 - (in_force >> BANK_SHIFT & 1);
        for (n, rule) in rules.iter().enumerate() {
            let at = RULE_WORDS * (bank as usize * RULES + n);
            for (to, word) in self.rules[at..at + RULE_WORDS].iter().zip(rule.words()) {
                to.store(word, Relaxed);
            }
        }
        let before = self.counts();
        self.store_addresses(of(false), of(true), before == (four, six));
        let flags = if owned.arp { OWN_ARP } else { 0 }
            | if owned.icmp { OWN_ICMP } else { 0 }
            | if owned.fragments { OWN_FRAGMENTS } else { 0 };
        let word = flags
            | u64::from(domains.default) << DEFAULT_SHIFT
            | u64::from(domains.fragment) << FRAGMENT_SHIFT
            | u64::from(domains.control) << CONTROL_SHIFT
            | bank << BANK_SHIFT
            | in_force & 1 << REFUSED_BANK_SHIFT
            | (rules.len() as u64) << RULE_COUNT_SHIFT
            | (four as u64) << ADDRESS_COUNT_SHIFT
            | (six as u64) << ADDRESS6_COUNT_SHIFT;
        self.settings[0].store(word, Release);
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Protocol;
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    /// The local addresses.
    pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    pub const ALSO: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);

    /// Tables with these rules.
    pub fn tables(rules: &[ClassRule]) -> Tables {
        let tables = Tables::with_room(64, 7);
        let domains = Domains { default: 1, fragment: 2, control: 3 };
        tables.configure(Owned::default(), domains, rules, &[HERE, ALSO]).unwrap();
        tables
    }

    fn rule(source: Ipv4Addr, prefix: u8, domain: u8) -> ClassRule {
        ClassRule { source: Some((source.into(), prefix)), dscp: None, local_port: None, domain }
    }

    #[test]
    fn the_first_matching_rule_decides() {
        let tables = tables(&[
            rule(Ipv4Addr::new(10, 99, 0, 3), 32, 5),
            rule(Ipv4Addr::new(10, 99, 7, 7), 16, 6),
            ClassRule { dscp: Some(46), ..rule(HERE, 0, 7) },
            ClassRule { local_port: Some(8080), ..rule(HERE, 0, 8) },
        ]);
        let domain = |source: [u8; 4], port, dscp| tables.domain_for(Ipv4Addr::from(source), port, dscp);
        assert_eq!(domain([10, 99, 0, 3], 80, 0), 5);
        assert_eq!(domain([10, 99, 0, 4], 80, 46), 6);
        assert_eq!(domain([10, 98, 0, 4], 80, 46), 7);
        assert_eq!(domain([10, 98, 0, 4], 8080, 0), 8);
        assert_eq!(domain([10, 98, 0, 4], 80, 0), 1);
    }

    #[test]
    fn each_family_has_its_rules_and_its_ports() {
        let (four, six): (IpAddr, Ipv6Addr) = (HERE.into(), "fd00::1".parse().unwrap());
        let tables = Tables::with_room(64, 7);
        let network: IpAddr = "2001:db8:8000::".parse().unwrap();
        let rules = [
            ClassRule { source: Some((network, 33)), dscp: None, local_port: None, domain: 5 },
            ClassRule { source: None, dscp: None, local_port: Some(81), domain: 6 },
            ClassRule { source: Some((four, 0)), dscp: None, local_port: None, domain: 7 },
        ];
        tables.configure(Owned::default(), Domains::default(), &rules, &[four, six.into()]).unwrap();
        let domain = |source: &str, port| tables.domain_for(source.parse::<IpAddr>().unwrap(), port, 0);
        assert_eq!((domain("2001:db8:ffff::1", 80), domain("2001:db8:7fff::1", 80)), (5, 0));
        assert_eq!((domain("10.0.0.9", 81), domain("fd00::9", 81), domain("10.0.0.9", 80)), (6, 6, 7));
        let owns =
            |port| (tables.owns_port(Protocol::Tcp, four, port), tables.owns_port(Protocol::Tcp, six, port));
        for (port, address) in [(1, None), (2, Some(four)), (3, Some(six.into()))] {
            assert!(tables.own_port(Protocol::Tcp, address, port));
        }
        assert!(tables.own_port(Protocol::Tcp, Some(Ipv6Addr::UNSPECIFIED.into()), 4));
        assert!(tables.own_port(Protocol::Tcp, Some(Ipv4Addr::UNSPECIFIED.into()), 5));
        let expected = [(true, true), (true, false), (false, true), (false, true), (true, false)];
        assert_eq!([1, 2, 3, 4, 5].map(owns), expected);
    }

    #[test]
    fn a_reload_replaces_all_rules() {
        let tables = tables(&[rule(HERE, 0, 5), rule(HERE, 0, 6)]);
        tables.configure(Owned::default(), Domains::default(), &[rule(ALSO, 32, 9)], &[HERE]).unwrap();
        assert_eq!((tables.domain_for(HERE, 1, 0), tables.domain_for(ALSO, 1, 0)), (0, 9));
        assert!(tables.is_local(HERE) && !tables.is_local(ALSO));
    }

    #[test]
    fn too_many_rules_change_nothing() {
        let tables = tables(&[rule(HERE, 0, 5)]);
        let many = [rule(HERE, 0, 6); RULES + 1];
        assert_eq!(tables.configure(Owned::default(), Domains::default(), &many, &[HERE]), Err(TooMany));
        assert_eq!(tables.domain_for(HERE, 1, 0), 5);
    }
}
