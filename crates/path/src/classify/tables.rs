//! The tables beside the flows: which local ports silk owns, which class a packet without an
//! exact entry belongs to, and the settings, each in the words of [`layout`](super::layout).
//! One thread at a time changes rules and settings; any number read.

use super::flow::{Protocol, halves};
use super::flows::Flows;
use super::layout::*;
use super::store::{Store, Store32, Store64};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

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
    /// The network of the sender and the length of its prefix; `None`: any sender of either
    /// family.
    pub source: Option<(IpAddr, u8)>,
    /// The differentiated services code point; `None`: any.
    pub dscp: Option<u8>,
    /// The local port; `None`: any.
    pub local_port: Option<u16>,
    /// The domain.
    pub domain: u8,
}

impl ClassRule {
    fn words(&self) -> [u64; RULE_WORDS] {
        let port = u64::from(self.local_port.unwrap_or(0).swap_bytes());
        let dscp = self.dscp.map_or(RULE_ANY_DSCP, |dscp| u64::from(dscp) << 16);
        let what = port | dscp | u64::from(self.domain) << 24;
        match self.source {
            None => [0, what, 0, 0, 0, 0],
            Some((IpAddr::V4(network), prefix)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
                let source = u32::from_le_bytes((u32::from(network) & mask).to_be_bytes());
                let mask = u32::from_le_bytes(mask.to_be_bytes());
                [u64::from(source) | u64::from(mask) << 32, what | RULE_NOT_V6, 0, 0, 0, 0]
            }
            Some((IpAddr::V6(network), prefix)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
                let [a, b] = halves(Ipv6Addr::from_bits(network.to_bits() & mask));
                let [c, d] = halves(Ipv6Addr::from_bits(mask));
                [0, what | RULE_NOT_V4, a, b, c, d]
            }
        }
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
    pub(super) refused: Store64,
    pub(super) settings: Store64,
    pub(super) discards: Store64,
    // As the settings had it when this was made.
    vlans: [u16; DEVICES],
}

impl Tables {
    /// The tables in words that somebody else holds; `None` when one is too short. Both
    /// seeds and the virtual LAN are read from the settings, so they must be there already.
    pub fn from_words(
        flows: Store64,
        homes: Store64,
        ports: Store32,
        rules: Store64,
        refused: Store64,
        settings: Store64,
        discards: Store64,
    ) -> Option<Self> {
        let long_enough = ports.len() >= PORTS
            && rules.len() >= RULES_WORDS
            && refused.len() >= REFUSED_WORDS
            && settings.len() >= SETTINGS_WORDS
            && discards.len() >= DISCARDS_WORDS;
        if !long_enough {
            return None;
        }
        let seeds = [SETTINGS_SEED, SETTINGS_SEED2].map(|word| settings[word].load(Acquire));
        let vlans = vlans_of(settings[SETTINGS_VLAN].load(Acquire));
        Some(Self {
            flows: Flows::new(flows, homes, seeds)?,
            ports,
            rules,
            refused,
            settings,
            discards,
            vlans,
        })
    }

    /// Tables in memory of their own with room for about `flows` flows.
    pub fn with_room(flows: usize, seed: u64) -> Self {
        let settings = Store64::zeroed(SETTINGS_WORDS);
        settings[SETTINGS_SEED].store(seed, Release);
        settings[SETTINGS_SEED2].store(Flows::second_seed(seed), Release);
        Self {
            flows: Flows::with_room(flows, seed),
            ports: Store::zeroed(PORTS),
            rules: Store::zeroed(RULES_WORDS),
            refused: Store::zeroed(REFUSED_WORDS),
            settings,
            discards: Store::zeroed(DISCARDS_WORDS),
            vlans: [0; DEVICES],
        }
    }

    /// The same tables for frames of the virtual LAN `vid`, 0: for those without a tag, over whichever device.
    #[must_use]
    pub fn on_vlan(self, vid: u16) -> Self {
        self.on_vlans([vid; DEVICES])
    }

    /// The same tables for frames of these virtual LANs, one for each device.
    #[must_use]
    pub fn on_vlans(self, vlans: [u16; DEVICES]) -> Self {
        self.settings[SETTINGS_VLAN].store(vlans_word(vlans), Release);
        Self { vlans, ..self }
    }

    /// The virtual LAN whose frames are ours over this device (IEEE 802.1Q-2018 §9.6); 0: frames without a
    /// tag are.
    pub fn vlan(&self, device: u8) -> u16 {
        self.vlans.get(usize::from(device)).copied().unwrap_or(0)
    }

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

    /// Writes the local addresses; `keep`: what stands behind them, the groups, is left.
    fn store_addresses(
        &self,
        four: impl Iterator<Item = IpAddr>,
        six: impl Iterator<Item = IpAddr>,
        keep: bool,
    ) {
        let behind = if keep { Place::default() } else { Place { four: ADDRESSES, six: ADDRESSES6 } };
        let mut at = Place::default();
        for address in four {
            self.store_address(at.four, address);
            at.four += 1;
        }
        for address in six {
            self.store_address(at.six, address);
            at.six += 1;
        }
        (at.four..behind.four).for_each(|n| self.store_address(n, Ipv4Addr::UNSPECIFIED.into()));
        (at.six..behind.six).for_each(|n| self.store_address(n, Ipv6Addr::UNSPECIFIED.into()));
    }

    /// Writes address or group `n` of its family.
    fn store_address(&self, n: usize, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                let (word, shift) = (&self.settings[SETTINGS_ADDRESSES + n / 2], 32 * (n % 2));
                let others = word.load(Relaxed) & !(0xffff_ffff << shift);
                word.store(others | u64::from(u32::from_le_bytes(address.octets())) << shift, Release);
            }
            IpAddr::V6(address) => {
                let words = &self.settings[SETTINGS_ADDRESSES6 + 2 * n..];
                words.iter().zip(halves(address)).for_each(|(to, half)| to.store(half, Release));
            }
        }
    }

    /// Lets packets to a group, or to everyone on a network, come to the sockets that are bound to any
    /// address of ours. Only one thread may change groups. `false`: there is no room.
    pub fn hear(&self, group: IpAddr) -> bool {
        if self.group_bit(group).is_some() {
            return true;
        }
        let none: IpAddr =
            if group.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let Some(n) = self.group_place(none) else { return false };
        self.store_address(n, group);
        true
    }

    /// Packets to the group are Linux's again.
    pub fn ignore(&self, group: IpAddr) {
        if let Some(n) = self.group_place(group) {
            let none =
                if group.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
            self.store_address(n, none);
        }
    }

    /// Whether packets to the group are heard.
    pub fn is_heard(&self, group: impl Into<IpAddr>) -> bool {
        self.group_bit(group.into()).is_some()
    }

    /// Where a group stands behind the addresses of its family.
    fn group_place(&self, group: IpAddr) -> Option<usize> {
        let (four, six) = self.counts();
        match group {
            IpAddr::V4(group) => {
                let wanted = u32::from_le_bytes(group.octets());
                (four..ADDRESSES - self.room6()).find(|n| self.address(*n) == wanted)
            }
            IpAddr::V6(group) => {
                let wanted = halves(group);
                (six..self.room6()).find(|n| {
                    let words = &self.settings[SETTINGS_ADDRESSES6 + 2 * n..];
                    [words[0].load(Acquire), words[1].load(Acquire)] == wanted
                })
            }
        }
    }

    /// The bit of a group that is heard.
    fn group_bit(&self, group: IpAddr) -> Option<u32> {
        if group.is_unspecified() {
            return None;
        }
        let n = self.group_place(group)?;
        Some(if group.is_ipv6() { 1 << (15 - n) } else { 1 << n })
    }

    /// Local addresses of either family.
    fn counts(&self) -> (usize, usize) {
        let word = self.settings[0].load(Acquire);
        (((word >> ADDRESS_COUNT_SHIFT & 0xff) as usize).min(ADDRESSES), self.count6())
    }

    /// How many of a port's bits are IPv6's, for addresses and groups: what IPv4's addresses leave, at
    /// most half.
    fn room6(&self) -> usize {
        (ADDRESSES - self.counts().0).min(ADDRESSES6)
    }

    /// Takes a port for silk: on one local address, or for one group that is heard; on all of a family, for an
    /// unspecified one; on every address with `None`. Answers whether the address is one of these.
    pub fn own_port(&self, protocol: Protocol, address: Option<IpAddr>, port: u16) -> bool {
        let Some(bits) = self.port_bits(protocol, address) else { return false };
        self.ports[usize::from(port)].fetch_or(bits, Release);
        true
    }

    /// Gives a port back to Linux, as [`Self::own_port`] took it.
    pub fn disown_port(&self, protocol: Protocol, address: Option<IpAddr>, port: u16) {
        self.disown_port_but(protocol, address, port, []);
    }

    /// The same, but for those of its addresses and groups at which others have it.
    pub fn disown_port_but(
        &self,
        protocol: Protocol,
        address: Option<IpAddr>,
        port: u16,
        others: impl IntoIterator<Item = IpAddr>,
    ) {
        let bits = |address| self.port_bits(protocol, address).unwrap_or(0);
        let kept = others.into_iter().fold(0, |kept, other| kept | bits(Some(other)));
        self.ports[usize::from(port)].fetch_and(!(bits(address) & !kept), Release);
    }

    /// Whether silk owns the port on that local address.
    pub fn owns_port(&self, protocol: Protocol, address: impl Into<IpAddr>, port: u16) -> bool {
        let owned = self.ports[usize::from(port)].load(Acquire);
        let bits = self.address_bit(address.into()).map(|bits| protocol.half(bits));
        bits.is_some_and(|bits| owned & bits != 0)
    }

    /// Whether silk hears the group and owns the port for it.
    pub fn owns_port_of_group(&self, protocol: Protocol, group: impl Into<IpAddr>, port: u16) -> bool {
        let owned = self.ports[usize::from(port)].load(Acquire);
        let bits = self.group_bit(group.into()).map(|bits| protocol.half(bits));
        bits.is_some_and(|bits| owned & bits != 0)
    }

    /// Whether the address is one of ours.
    pub fn is_local(&self, address: impl Into<IpAddr>) -> bool {
        self.address_bit(address.into()).is_some()
    }

    /// The domain of a packet from `source` for `local_port` without an exact entry.
    pub fn domain_for(&self, source: impl Into<IpAddr>, local_port: u16, dscp: u8) -> u8 {
        let source = source.into();
        let settings = self.settings[0].load(Acquire);
        let port = u64::from(local_port.swap_bytes());
        let bank = (settings >> BANK_SHIFT & 1) as usize * RULES;
        let count = ((settings >> RULE_COUNT_SHIFT & 0xff) as usize).min(RULES);
        for words in self.rules[RULE_WORDS * bank..].chunks(RULE_WORDS).take(count) {
            let rule = words[1].load(Relaxed);
            let port_fits = rule & 0xffff == 0 || rule & 0xffff == port;
            let dscp_fits = rule & RULE_ANY_DSCP != 0 || rule >> 16 & 0xff == u64::from(dscp);
            if port_fits && dscp_fits && source_fits(words, rule, source) {
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
    fn address_bit(&self, address: IpAddr) -> Option<u32> {
        match address {
            IpAddr::V4(address) => self.address4_bit(address),
            IpAddr::V6(address) => self.address6_bit(address),
        }
    }

    fn address4_bit(&self, address: Ipv4Addr) -> Option<u32> {
        let wanted = u32::from_le_bytes(address.octets());
        let count = ((self.settings[0].load(Acquire) >> ADDRESS_COUNT_SHIFT & 0xff) as usize).min(ADDRESSES);
        (0..count).find(|n| self.address(*n) == wanted).map(|n| 1 << n)
    }

    fn address6_bit(&self, address: Ipv6Addr) -> Option<u32> {
        let wanted = halves(address);
        let known = self.settings[SETTINGS_ADDRESSES6..].chunks_exact(2).take(self.count6());
        let is_it = |words: &[AtomicU64]| [words[0].load(Relaxed), words[1].load(Relaxed)] == wanted;
        known.enumerate().find(|(_, words)| is_it(words)).map(|(n, _)| 1 << (15 - n))
    }

    /// Local IPv6 addresses.
    fn count6(&self) -> usize {
        ((self.settings[0].load(Acquire) >> ADDRESS6_COUNT_SHIFT & 0xff) as usize).min(ADDRESSES6)
    }

    fn address(&self, n: usize) -> u32 {
        (self.settings[SETTINGS_ADDRESSES + n / 2].load(Relaxed) >> (32 * (n % 2))) as u32
    }

    /// The bits of a ports word for an address, of a family for its unspecified address.
    fn port_bits(&self, protocol: Protocol, address: Option<IpAddr>) -> Option<u32> {
        let six = 0xffff & !(0xffff >> self.room6());
        let bits = match address {
            None => 0xffff,
            Some(any) if any.is_unspecified() => {
                if any.is_ipv6() {
                    six
                } else {
                    0xffff & !six
                }
            }
            Some(address) => self.address_bit(address).or_else(|| self.group_bit(address))?,
        };
        Some(protocol.half(bits))
    }
}

impl Protocol {
    /// The protocol's half of a ports word.
    fn half(self, bits: u32) -> u32 {
        if self == Self::Udp { bits << PORT_UDP_SHIFT } else { bits }
    }
}

/// A place behind the addresses of each family.
#[derive(Clone, Copy, Default)]
struct Place {
    four: usize,
    six: usize,
}

/// Whether a rule is for this sender.
fn source_fits(words: &[AtomicU64], rule: u64, source: IpAddr) -> bool {
    let word = |n: usize| words[n].load(Relaxed);
    match source {
        IpAddr::V4(source) => {
            let (source, prefix) = (u64::from(u32::from_le_bytes(source.octets())), word(0));
            rule & RULE_NOT_V4 == 0 && source & prefix >> 32 == prefix & 0xffff_ffff
        }
        IpAddr::V6(source) => {
            let [first, second] = halves(source);
            rule & RULE_NOT_V6 == 0 && first & word(4) == word(2) && second & word(5) == word(3)
        }
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
        ClassRule { source: Some((source.into(), prefix)), dscp: None, local_port: None, domain }
    }

    #[test]
    fn a_port_is_owned_on_one_address_or_on_all() {
        let tables = tables(&[]);
        assert!(tables.own_port(Protocol::Tcp, Some(HERE.into()), 80));
        assert!(tables.own_port(Protocol::Udp, None, 53));
        assert!(!tables.own_port(Protocol::Tcp, Some(Ipv4Addr::LOCALHOST.into()), 80));
        let owns = |protocol, address, port| tables.owns_port(protocol, address, port);
        assert!(
            owns(Protocol::Tcp, HERE, 80) && !owns(Protocol::Tcp, ALSO, 80) && !owns(Protocol::Udp, HERE, 80)
        );
        assert!(owns(Protocol::Udp, HERE, 53) && owns(Protocol::Udp, ALSO, 53));
        tables.disown_port(Protocol::Udp, None, 53);
        assert!(!owns(Protocol::Udp, ALSO, 53));
    }

    #[test]
    fn a_group_is_heard_by_who_is_bound_to_any_address_until_it_is_ignored() {
        let tables = tables(&[]);
        let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        assert!(tables.own_port(Protocol::Udp, Some(any), 5000));
        assert!(tables.own_port(Protocol::Udp, Some(HERE.into()), 5001));
        let group = IpAddr::from(Ipv4Addr::new(239, 1, 2, 3));
        let owns = |port| tables.owns_port_of_group(Protocol::Udp, group, port);
        assert!(!owns(5000) && tables.hear(group) && tables.hear(group));
        assert!(owns(5000) && !owns(5001) && !tables.is_local(group) && tables.is_heard(group));
        tables.configure(Owned::default(), Domains::default(), &[], &[HERE, ALSO]).unwrap();
        assert!(owns(5000));
        tables.ignore(group);
        assert!(!owns(5000) && !tables.is_heard(any));
    }

    #[test]
    fn a_port_is_owned_for_a_group_that_is_heard_and_kept_where_others_have_it() {
        let tables = tables(&[]);
        let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let [group, other] = [3, 4].map(|last| IpAddr::from(Ipv4Addr::new(239, 1, 2, last)));
        let owned = || [group, other].map(|group| tables.owns_port_of_group(Protocol::Udp, group, 5000));
        assert!(!tables.own_port(Protocol::Udp, Some(group), 5000), "nobody hears it");
        assert!(
            tables.hear(group) && tables.hear(other) && tables.own_port(Protocol::Udp, Some(group), 5000)
        );
        assert_eq!(owned(), [true, false]);
        tables.own_port(Protocol::Udp, Some(any), 5000);
        tables.disown_port_but(Protocol::Udp, Some(any), 5000, [group, HERE.into()]);
        assert_eq!(owned(), [true, false]);
        assert_eq!([HERE, ALSO].map(|at| tables.owns_port(Protocol::Udp, at, 5000)), [true, false]);
        tables.disown_port(Protocol::Udp, Some(group), 5000);
        assert_eq!(owned(), [false, false]);
    }

    #[test]
    fn groups_have_the_room_that_addresses_leave() {
        let tables = tables(&[]);
        let four = |n| IpAddr::from(Ipv4Addr::new(239, 0, 0, n));
        assert_eq!((0..9).filter(|n| tables.hear(four(*n))).count(), 6);
        let six = |n| IpAddr::from(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, n));
        assert_eq!((1..10).filter(|n| tables.hear(six(*n))).count(), ADDRESSES6);
        assert!(tables.own_port(Protocol::Udp, Some(Ipv6Addr::UNSPECIFIED.into()), 9));
        assert!(tables.owns_port_of_group(Protocol::Udp, six(8), 9));
        assert!(!tables.owns_port_of_group(Protocol::Udp, four(5), 9));
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

    #[test]
    fn short_tables_are_refused() {
        let words = |n| Store64::zeroed(n);
        let made = |[flows, homes, ports, rules, refused, settings, discards]: [usize; 7]| {
            let [flows, homes, rules, refused, settings, discards] =
                [flows, homes, rules, refused, settings, discards].map(words);
            let ports = Store32::zeroed(ports);
            Tables::from_words(flows, homes, ports, rules, refused, settings, discards).is_some()
        };
        let enough = [32, 1, PORTS, RULES_WORDS, REFUSED_WORDS, SETTINGS_WORDS, DISCARDS_WORDS];
        assert!(made(enough));
        for short in 0..enough.len() {
            let mut sizes = enough;
            sizes[short] -= 1;
            assert!(!made(sizes), "table {short}");
        }
    }
}
