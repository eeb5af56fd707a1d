//! The tables beside the flows: which local ports silk owns, which class a packet without an
//! exact entry belongs to, and the settings, each in the words of [`layout`](super::layout).
//! One thread at a time changes rules and settings; any number read.

use super::flows::Flows;
use super::layout::*;
use super::store::{Store, Store32, Store64};
use core::net::Ipv4Addr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A protocol with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// What the settings' flags say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// ARP goes to the control domain.
    pub arp: bool,
    /// ICMP to a local address goes to the control domain.
    pub icmp: bool,
    /// Fragments to a local address go to the fragment domain.
    pub fragments: bool,
}

/// The domains for packets without an exact entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Domains {
    /// Where no rule matches.
    pub default: u8,
    /// Fragments.
    pub fragment: u8,
    /// ARP and ICMP.
    pub control: u8,
}

/// A class rule: which domain the first packet of a flow belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassRule {
    /// The network of the sender.
    pub source: Ipv4Addr,
    /// The length of its prefix, 0 to 32.
    pub prefix: u8,
    /// The differentiated services code point; `None`: any.
    pub dscp: Option<u8>,
    /// The local port; `None`: any.
    pub local_port: Option<u16>,
    /// The domain.
    pub domain: u8,
}

impl ClassRule {
    fn words(&self) -> (u64, u64) {
        let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix.min(32))).unwrap_or(0);
        let source = u32::from_le_bytes((u32::from(self.source) & mask).to_be_bytes());
        let mask = u32::from_le_bytes(mask.to_be_bytes());
        let port = u64::from(self.local_port.unwrap_or(0).swap_bytes());
        let dscp = self.dscp.map_or(RULE_ANY_DSCP, |dscp| u64::from(dscp) << 16);
        (u64::from(source) | u64::from(mask) << 32, port | dscp | u64::from(self.domain) << 24)
    }
}

/// More rules or addresses than the tables hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// All tables of a classifier.
#[derive(Clone, Debug)]
pub struct Tables {
    /// The exact flows.
    pub flows: Flows,
    ports: Store32,
    rules: Store64,
    settings: Store64,
}

impl Tables {
    /// The tables in words that somebody else holds; `None` when one is too short. The hash
    /// seed is read from the settings, so it must be there already.
    pub fn from_words(flows: Store64, ports: Store32, rules: Store64, settings: Store64) -> Option<Self> {
        let long_enough =
            ports.len() >= PORTS && rules.len() >= RULES_WORDS && settings.len() >= SETTINGS_WORDS;
        if !long_enough {
            return None;
        }
        let seed = settings[SETTINGS_SEED].load(Acquire);
        Some(Self { flows: Flows::new(flows, seed)?, ports, rules, settings })
    }

    /// Tables in memory of their own with room for about `flows` flows.
    pub fn with_room(flows: usize, seed: u64) -> Self {
        let settings = Store64::zeroed(SETTINGS_WORDS);
        settings[SETTINGS_SEED].store(seed, Release);
        Self {
            flows: Flows::with_room(flows, seed),
            ports: Store::zeroed(PORTS),
            rules: Store::zeroed(RULES_WORDS),
            settings,
        }
    }

    /// Takes everything over at once: flags, domains, rules and local addresses. A reader sees
    /// the old rules or the new ones, never some of each.
    pub fn configure(
        &self,
        owned: Owned,
        domains: Domains,
        rules: &[ClassRule],
        addresses: &[Ipv4Addr],
    ) -> Result<(), TooMany> {
        if rules.len() > RULES || addresses.len() > ADDRESSES {
            return Err(TooMany);
        }
        let bank = 1 - (self.settings[0].load(Acquire) >> BANK_SHIFT & 1);
        for (n, rule) in rules.iter().enumerate() {
            let at = 2 * (bank as usize * RULES + n);
            let (first, second) = rule.words();
            self.rules[at].store(first, Relaxed);
            self.rules[at + 1].store(second, Relaxed);
        }
        for (n, pair) in addresses.chunks(2).enumerate() {
            let word = |at: usize| pair.get(at).map_or(0, |a| u64::from(u32::from_le_bytes(a.octets())));
            self.settings[SETTINGS_ADDRESSES + n].store(word(0) | word(1) << 32, Relaxed);
        }
        let flags = if owned.arp { OWN_ARP } else { 0 }
            | if owned.icmp { OWN_ICMP } else { 0 }
            | if owned.fragments { OWN_FRAGMENTS } else { 0 };
        let word = flags
            | u64::from(domains.default) << DEFAULT_SHIFT
            | u64::from(domains.fragment) << FRAGMENT_SHIFT
            | u64::from(domains.control) << CONTROL_SHIFT
            | bank << BANK_SHIFT
            | (rules.len() as u64) << RULE_COUNT_SHIFT
            | (addresses.len() as u64) << ADDRESS_COUNT_SHIFT;
        self.settings[0].store(word, Release);
        Ok(())
    }

    /// Takes a port for silk: on one local address, or on all with `None`. Answers whether
    /// the address is a local one.
    pub fn own_port(&self, protocol: Protocol, address: Option<Ipv4Addr>, port: u16) -> bool {
        let Some(bits) = self.port_bits(protocol, address) else { return false };
        self.ports[usize::from(port)].fetch_or(bits, Release);
        true
    }

    /// Gives a port back to Linux, as [`Self::own_port`] took it.
    pub fn disown_port(&self, protocol: Protocol, address: Option<Ipv4Addr>, port: u16) {
        if let Some(bits) = self.port_bits(protocol, address) {
            self.ports[usize::from(port)].fetch_and(!bits, Release);
        }
    }

    /// Whether silk owns the port on that local address.
    pub fn owns_port(&self, protocol: Protocol, address: Ipv4Addr, port: u16) -> bool {
        let owned = self.ports[usize::from(port)].load(Acquire);
        self.port_bits(protocol, Some(address)).is_some_and(|bits| owned & bits != 0)
    }

    /// Whether the address is one of ours.
    pub fn is_local(&self, address: Ipv4Addr) -> bool {
        self.address_bit(address).is_some()
    }

    /// The domain of a packet from `source` for `local_port` without an exact entry.
    pub fn domain_for(&self, source: Ipv4Addr, local_port: u16, dscp: u8) -> u8 {
        let settings = self.settings[0].load(Acquire);
        let source = u64::from(u32::from_le_bytes(source.octets()));
        let port = u64::from(local_port.swap_bytes());
        let bank = (settings >> BANK_SHIFT & 1) as usize * RULES;
        let count = ((settings >> RULE_COUNT_SHIFT & 0xff) as usize).min(RULES);
        for n in bank..bank + count {
            let (prefix, rule) = (self.rules[2 * n].load(Relaxed), self.rules[2 * n + 1].load(Relaxed));
            let source_fits = source & prefix >> 32 == prefix & 0xffff_ffff;
            let port_fits = rule & 0xffff == 0 || rule & 0xffff == port;
            let dscp_fits = rule & RULE_ANY_DSCP != 0 || rule >> 16 & 0xff == u64::from(dscp);
            if source_fits && port_fits && dscp_fits {
                return (rule >> 24) as u8 & DOMAIN_MASK as u8;
            }
        }
        self.domains().default
    }

    /// The domains in force.
    pub fn domains(&self) -> Domains {
        let word = self.settings[0].load(Acquire);
        let domain = |shift: u32| (word >> shift) as u8 & DOMAIN_MASK as u8;
        Domains {
            default: domain(DEFAULT_SHIFT),
            fragment: domain(FRAGMENT_SHIFT),
            control: domain(CONTROL_SHIFT),
        }
    }

    /// The flags in force.
    pub fn owned(&self) -> Owned {
        let word = self.settings[0].load(Acquire);
        Owned { arp: word & OWN_ARP != 0, icmp: word & OWN_ICMP != 0, fragments: word & OWN_FRAGMENTS != 0 }
    }

    /// Which of the local addresses this is, as a bit.
    fn address_bit(&self, address: Ipv4Addr) -> Option<u32> {
        let wanted = u32::from_le_bytes(address.octets());
        let count = ((self.settings[0].load(Acquire) >> ADDRESS_COUNT_SHIFT & 0xff) as usize).min(ADDRESSES);
        (0..count).find(|n| self.address(*n) == wanted).map(|n| 1 << n)
    }

    fn address(&self, n: usize) -> u32 {
        (self.settings[SETTINGS_ADDRESSES + n / 2].load(Relaxed) >> (32 * (n % 2))) as u32
    }

    fn port_bits(&self, protocol: Protocol, address: Option<Ipv4Addr>) -> Option<u32> {
        let bits = address.map_or(Some(0xffff), |address| self.address_bit(address))?;
        Some(if protocol == Protocol::Udp { bits << PORT_UDP_SHIFT } else { bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const ALSO: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);

    fn tables(rules: &[ClassRule]) -> Tables {
        let tables = Tables::with_room(64, 7);
        let domains = Domains { default: 1, fragment: 2, control: 3 };
        tables.configure(Owned::default(), domains, rules, &[HERE, ALSO]).unwrap();
        tables
    }

    fn rule(source: Ipv4Addr, prefix: u8, domain: u8) -> ClassRule {
        ClassRule { source, prefix, dscp: None, local_port: None, domain }
    }

    #[test]
    fn a_port_is_owned_on_one_address_or_on_all() {
        let tables = tables(&[]);
        assert!(tables.own_port(Protocol::Tcp, Some(HERE), 80));
        assert!(tables.own_port(Protocol::Udp, None, 53));
        assert!(!tables.own_port(Protocol::Tcp, Some(Ipv4Addr::LOCALHOST), 80));
        let owns = |protocol, address, port| tables.owns_port(protocol, address, port);
        assert!(
            owns(Protocol::Tcp, HERE, 80) && !owns(Protocol::Tcp, ALSO, 80) && !owns(Protocol::Udp, HERE, 80)
        );
        assert!(owns(Protocol::Udp, HERE, 53) && owns(Protocol::Udp, ALSO, 53));
        tables.disown_port(Protocol::Udp, None, 53);
        assert!(!owns(Protocol::Udp, ALSO, 53));
    }

    #[test]
    fn the_first_matching_rule_decides() {
        let tables = tables(&[
            rule(Ipv4Addr::new(10, 99, 0, 3), 32, 5),
            rule(Ipv4Addr::new(10, 99, 7, 7), 16, 6),
            ClassRule { dscp: Some(46), ..rule(HERE, 0, 7) },
            ClassRule { local_port: Some(8080), ..rule(HERE, 0, 8) },
        ]);
        let domain = |source: [u8; 4], port, dscp| tables.domain_for(source.into(), port, dscp);
        assert_eq!(domain([10, 99, 0, 3], 80, 0), 5);
        assert_eq!(domain([10, 99, 0, 4], 80, 46), 6);
        assert_eq!(domain([10, 98, 0, 4], 80, 46), 7);
        assert_eq!(domain([10, 98, 0, 4], 8080, 0), 8);
        assert_eq!(domain([10, 98, 0, 4], 80, 0), 1);
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
        assert_eq!(tables.configure(Owned::default(), Domains::default(), &many, &[]), Err(TooMany));
        assert_eq!(tables.domain_for(HERE, 1, 0), 5);
    }

    #[test]
    fn short_tables_are_refused() {
        let words = |n| Store64::zeroed(n);
        let ports = |n| Store32::zeroed(n);
        let made = |flows, p, rules, settings| {
            Tables::from_words(words(flows), ports(p), words(rules), words(settings)).is_some()
        };
        assert!(made(32, PORTS, RULES_WORDS, SETTINGS_WORDS));
        assert!(
            !made(31, PORTS, RULES_WORDS, SETTINGS_WORDS)
                && !made(32, PORTS - 1, RULES_WORDS, SETTINGS_WORDS)
        );
        assert!(
            !made(32, PORTS, RULES_WORDS - 1, SETTINGS_WORDS)
                && !made(32, PORTS, RULES_WORDS, SETTINGS_WORDS - 1)
        );
    }
}
