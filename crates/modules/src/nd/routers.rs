//! What routers tell (RFC 4861 §6.3, RFC 4862 §5.5, RFC 4191): who leads beyond the link, to everywhere or to some
//! network, and the addresses that we make of the prefixes they announce. Anybody on the link can claim to be a router, so what is kept is
//! bounded, and no address that holds for two hours more is cut shorter than that.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::net::Ipv6Addr;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::Advertised;
use silk_wire::{MacAddr, ipv6, ndp};

/// Routers that are remembered.
const ROUTERS: usize = 4;
/// Networks that some router leads to, and that are remembered.
const NETWORKS: usize = 16;
/// Addresses that are made of prefixes.
const ADDRESSES: usize = 4;
/// The prefix's length where the rest of an address is made of a link address (RFC 4291 App. A).
const LENGTH: u8 = 64;
/// RFC 4862 §5.5.3 e: what is not authenticated shortens nothing below this.
const TWO_HOURS: Duration = Duration::from_secs(2 * 60 * 60);
/// How often routers are asked for at first, and how far apart (RFC 4861 §10: MAX_RTR_SOLICITATIONS,
/// RTR_SOLICITATION_INTERVAL).
const QUESTIONS: u8 = 3;
const APART: Duration = Duration::from_secs(4);

/// How often a router that does not answer is asked whether it is back (RFC 4191 §3.2: once a minute).
const AGAIN: Duration = Duration::from_secs(60);

/// What has been told, and what is still to be asked.
pub(super) struct Routers {
    /// Who leads to everywhere and to some networks, in the order in which they were heard first.
    leading: Vec<Leading>,
    /// Those of them that do not answer, each with when it is asked again; who fell silent last is last.
    suspect: Vec<(Ipv6Addr, Instant)>,
    addresses: Vec<Made>,
    /// The hop limit and the MTU that were told last.
    pub(super) hops: Option<u8>,
    pub(super) mtu: Option<u16>,
    /// What was said of it last.
    said: Advertised,
    /// Questions that are still to be asked while nobody answers.
    questions: u8,
    /// When the next one is due.
    due: Instant,
}

/// A router that leads to a network (RFC 4191 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leading {
    /// The network and the length of its prefix, 0: everywhere.
    network: (Ipv6Addr, u8),
    router: Ipv6Addr,
    preference: ndp::Preference,
    until: Instant,
}

/// An address that was made of a prefix.
struct Made {
    address: Ipv6Addr,
    /// Until when all of the prefix's addresses are on the link (RFC 4861 §6.3.4).
    on_link: Instant,
    /// Until when it is to be preferred to others that are not (RFC 4862 §5.5.4).
    preferred: Instant,
    until: Instant,
}

/// Something that is told for so many seconds ends then.
fn after(now: Instant, seconds: u32) -> Instant {
    if seconds == ndp::FOREVER { Instant::FAR } else { now + Duration::from_secs(seconds.into()) }
}

impl Routers {
    /// Nothing has been told, and the first question is due.
    pub fn new() -> Self {
        Self {
            leading: Vec::new(),
            suspect: Vec::new(),
            addresses: Vec::new(),
            hops: None,
            mtu: None,
            said: Advertised::default(),
            questions: QUESTIONS,
            due: Instant::ZERO,
        }
    }

    /// A router has told a hop limit (zero: none) and perhaps the link's MTU (RFC 4861 §6.3.4).
    pub fn hear_of_link(&mut self, hops: u8, mtu: Option<u32>) {
        if hops != 0 {
            self.hops = Some(hops);
        }
        // Less is no link of IPv6's (RFC 8200 §5), and more than a packet's length does not matter.
        let mtu = mtu.filter(|mtu| *mtu >= ipv6::MIN_MTU.into());
        if let Some(mtu) = mtu {
            self.mtu = Some(u16::try_from(mtu).unwrap_or(u16::MAX));
        }
    }

    /// Whether a question is due now; it counts as asked.
    pub fn asks(&mut self, now: Instant) -> bool {
        let is_due = self.questions > 0 && now >= self.due;
        if is_due {
            self.questions -= 1;
            self.due = now + APART;
        }
        is_due
    }

    /// A router has told that it leads beyond the link for so many seconds, or with what preference, and of
    /// these prefixes and networks. `link` is our link address.
    pub fn hear(
        &mut self,
        now: Instant,
        (router, lifetime, preference): (Ipv6Addr, u16, ndp::Preference),
        prefixes: impl Iterator<Item = ndp::Prefix>,
        routes: impl Iterator<Item = ndp::RouteInformation>,
        link: MacAddr,
    ) {
        // RFC 4861 §6.3.7: whoever leads nowhere may have answered before the router that does.
        if lifetime > 0 {
            self.questions = 0;
        }
        let until = after(now, lifetime.into());
        self.lead(Leading { network: (Ipv6Addr::UNSPECIFIED, 0), router, preference, until });
        for ndp::RouteInformation { network, length, preference, lifetime } in routes {
            let bits = network.to_bits();
            let network = bits.checked_shr((128 - length).into()).unwrap_or(0);
            let network = network.checked_shl((128 - length).into()).unwrap_or(0).into();
            if !is_narrow(network) {
                let until = after(now, lifetime);
                self.lead(Leading { network: (network, length), router, preference, until });
            }
        }
        for prefix in prefixes.filter(is_usable) {
            if prefix.autonomous && prefix.preferred <= prefix.valid {
                self.make(now, &prefix, link);
            }
            if prefix.on_link {
                self.place(now, &prefix, link);
            }
        }
        self.expire(now);
    }

    /// A router leads to a network from now on, or for longer, or until now.
    fn lead(&mut self, told: Leading) {
        let wide = told.network.1 == 0;
        let room = if wide { ROUTERS } else { NETWORKS };
        let there_is_room = self.leading.iter().filter(|known| (known.network.1 == 0) == wide).count() < room;
        let same = |known: &&mut Leading| (known.network, known.router) == (told.network, told.router);
        match self.leading.iter_mut().find(same) {
            Some(known) => *known = told,
            None if there_is_room => self.leading.push(told),
            None => {}
        }
    }

    /// A router does not answer; it is asked `again` then. Whether it is one that leads somewhere. Who answers is preferred to it, and of
    /// those that do not it is the last, so that each has its turn (RFC 4861 §6.3.6).
    pub fn doubt(&mut self, router: Ipv6Addr, again: Instant) -> bool {
        let leads = self.leading.iter().any(|leading| leading.router == router);
        if leads {
            self.trust(router);
            self.suspect.push((router, again));
        }
        leads
    }

    /// The same of one that has not answered just now.
    pub fn lose(&mut self, now: Instant, router: Ipv6Addr) -> bool {
        self.doubt(router, now + AGAIN)
    }

    /// A router has answered.
    pub fn trust(&mut self, router: Ipv6Addr) {
        self.suspect.retain(|(suspect, _)| *suspect != router);
    }

    /// Whoever says that he is no router leads nowhere any more (RFC 4861 §7.2.5).
    pub fn resign(&mut self, router: Ipv6Addr) {
        self.leading.retain(|leading| leading.router != router);
        self.trust(router);
    }

    /// A router to be asked now whether it is back; it counts as asked.
    pub fn next_suspect(&mut self, now: Instant) -> Option<Ipv6Addr> {
        let (router, again) = self.suspect.iter_mut().find(|(_, again)| *again <= now)?;
        *again = now + AGAIN;
        Some(*router)
    }

    /// The place of a router among those that do not answer, the first of which has been silent for longest; 0: it may answer.
    fn silence(&self, router: Ipv6Addr) -> usize {
        self.suspect.iter().position(|(suspect, _)| *suspect == router).map_or(0, |place| place + 1)
    }

    /// Makes an address of a prefix, or lets the one that there is hold for longer (RFC 4862 §5.5.3).
    fn make(&mut self, now: Instant, prefix: &ndp::Prefix, link: MacAddr) {
        let address = address(prefix.network, link);
        let (preferred, until) = (after(now, prefix.preferred), after(now, prefix.valid));
        let there_is_room = self.addresses.len() < ADDRESSES;
        match self.addresses.iter_mut().find(|made| made.address == address) {
            Some(made) => {
                made.until = if until > now + TWO_HOURS || until > made.until {
                    until
                } else {
                    // It holds for what it did, or for two hours if that is less.
                    made.until.min(now + TWO_HOURS)
                };
                made.preferred = preferred;
            }
            None if prefix.valid > 0 && there_is_room => {
                self.addresses.push(Made { address, on_link: now, preferred, until });
            }
            None => {}
        }
    }

    /// The addresses of a prefix are on the link for so long, or no longer (RFC 4861 §6.3.4); who does not say that they are
    /// does not say that they are not. Of those of which we have an address that is known.
    fn place(&mut self, now: Instant, prefix: &ndp::Prefix, link: MacAddr) {
        let address = address(prefix.network, link);
        if let Some(made) = self.addresses.iter_mut().find(|made| made.address == address) {
            made.on_link = after(now, prefix.valid);
        }
    }

    /// Forgets what holds no longer.
    pub fn expire(&mut self, now: Instant) {
        self.leading.retain(|leading| leading.until > now);
        let leading = &self.leading;
        self.suspect.retain(|(suspect, _)| leading.iter().any(|leading| leading.router == *suspect));
        self.addresses.retain(|made| made.until > now);
    }

    /// When something is to be done after `now`. Whoever has no address to ask from yet, asks no router whether it is back.
    pub fn deadline(&self, now: Instant, may_ask: bool) -> Instant {
        let asks = if self.questions > 0 { self.due } else { Instant::FAR };
        let suspect = self.suspect.iter().filter(|_| may_ask).map(|(_, again)| *again);
        let ends = self.leading.iter().map(|leading| leading.until).chain(suspect);
        let ages = self.addresses.iter().flat_map(|made| [made.until, made.preferred, made.on_link]);
        ends.chain(ages.filter(|at| *at > now)).fold(asks, Instant::min)
    }

    /// What is to be told of it all now, where that is not what was said last.
    pub fn news(&mut self, now: Instant) -> Option<Advertised> {
        let told = self.told(now);
        (told != self.said).then(|| {
            self.said.clone_from(&told);
            told
        })
    }

    fn told(&self, now: Instant) -> Advertised {
        let length = |made: &Made| if made.on_link > now { LENGTH } else { 128 };
        let old = self.addresses.iter().filter(|made| made.preferred <= now);
        let mut leading: Vec<&Leading> = self.leading.iter().collect();
        // Who answers, and of those the preferred (RFC 4191 §3.2); of equals the first, as long as it leads there.
        leading.sort_by_key(|leading| (self.silence(leading.router), Reverse(leading.preference)));
        let (wide, narrow): (Vec<&Leading>, Vec<&Leading>) =
            leading.into_iter().partition(|leading| leading.network.1 == 0);
        Advertised {
            addresses: self.addresses.iter().map(|made| (made.address, length(made))).collect(),
            deprecated: old.map(|made| made.address).collect(),
            router: wide.first().map(|leading| leading.router),
            routes: narrow.iter().map(|leading| (leading.network, leading.router)).collect(),
            hops: self.hops,
            mtu: self.mtu,
        }
    }
}

/// Whether addresses of a network mean something on their link alone, or to one host: nobody leads there.
fn is_narrow(network: Ipv6Addr) -> bool {
    network.is_unicast_link_local() || network.is_multicast() || network.is_loopback()
}

/// Whether an address can be made of the prefix (RFC 4862 §5.5.3 b and d).
fn is_usable(prefix: &ndp::Prefix) -> bool {
    let network = prefix.network;
    prefix.length == LENGTH && !is_narrow(network) && !network.is_unspecified()
}

/// The address of the station with that link address.
fn address(network: Ipv6Addr, MacAddr(link): MacAddr) -> Ipv6Addr {
    let station = u128::from(u64::from_be_bytes(ipv6::station(link)));
    Ipv6Addr::from_bits(network.to_bits() >> 64 << 64 | station)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const LINK: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
    const FIRST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const SECOND: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

    fn prefix(number: u16, valid: u32) -> ndp::Prefix {
        let network = Ipv6Addr::new(0x2001, 0xdb8, 0, number, 0, 0, 0, 0);
        ndp::Prefix { network, length: 64, on_link: true, autonomous: true, valid, preferred: valid }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn ours(number: u16) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 0, number, 0, 0xff, 0xfe00, 9)
    }

    fn hear(routers: &mut Routers, seconds: u64, router: Ipv6Addr, lifetime: u16, told: &[ndp::Prefix]) {
        let router = (router, lifetime, ndp::Preference::Medium);
        routers.hear(at(seconds), router, told.iter().copied(), core::iter::empty(), LINK);
    }

    /// What has asked for routers as often as it may.
    fn silent() -> Routers {
        Routers { questions: 0, ..Routers::new() }
    }

    #[test]
    fn an_address_is_made_of_a_prefix_and_holds_as_long_as_it() {
        let mut routers = Routers::new();
        hear(&mut routers, 1, FIRST, 1800, &[prefix(1, 100)]);
        let told = routers.news(at(1)).unwrap();
        assert_eq!((told.addresses, told.router), (vec![(ours(1), 64)], Some(FIRST)));
        hear(&mut routers, 51, FIRST, 1800, &[prefix(1, 100)]);
        assert_eq!(routers.news(at(51)), None, "as before");
        assert_eq!(routers.deadline(at(51), true), at(151));
        routers.expire(at(150));
        assert_eq!(routers.news(at(150)), None);
        routers.expire(at(151));
        let told = routers.news(at(151)).unwrap();
        assert_eq!((told.addresses, told.router), (vec![], Some(FIRST)));
        routers.expire(at(51 + 1800));
        assert_eq!(routers.news(at(51 + 1800)), Some(Advertised::default()));
        assert_eq!(routers.deadline(at(51 + 1800), true), Instant::FAR);
    }

    #[test]
    fn an_address_is_preferred_as_long_as_its_prefix_says_and_no_longer() {
        let mut routers = silent();
        let told = ndp::Prefix { preferred: 50, ..prefix(1, 100) };
        hear(&mut routers, 1, FIRST, 0, &[told]);
        assert_eq!(routers.news(at(1)).unwrap().deprecated, Vec::<Ipv6Addr>::new());
        assert_eq!(routers.deadline(at(1), true), at(51));
        routers.expire(at(51));
        assert_eq!(routers.news(at(51)).unwrap().deprecated, [ours(1)]);
        assert_eq!(routers.deadline(at(51), true), at(101));
        hear(&mut routers, 60, FIRST, 0, &[told]);
        assert_eq!(routers.news(at(60)).unwrap().deprecated, Vec::<Ipv6Addr>::new(), "it is told again");
    }

    #[test]
    fn the_last_router_says_how_far_and_how_wide() {
        let mut routers = Routers::new();
        routers.hear_of_link(0, None);
        routers.hear_of_link(0, Some(1279));
        assert_eq!((routers.hops, routers.mtu), (None, None));
        routers.hear_of_link(64, Some(1480));
        routers.hear_of_link(0, None);
        assert_eq!((routers.hops, routers.mtu), (Some(64), Some(1480)));
        routers.hear_of_link(9, Some(100_000));
        assert_eq!((routers.hops, routers.mtu), (Some(9), Some(u16::MAX)));
    }

    // RFC 4861 §6.3.4.
    #[test]
    fn who_does_not_say_that_a_network_is_on_the_link_does_not_say_that_it_is_not() {
        let mut routers = Routers::new();
        hear(&mut routers, 0, FIRST, 0, &[prefix(1, 86_400)]);
        assert!(routers.news(at(0)).is_some());
        hear(&mut routers, 0, SECOND, 0, &[ndp::Prefix { on_link: false, ..prefix(1, 86_400) }]);
        assert_eq!(routers.news(at(0)), None);
    }

    // RFC 4861 §6.3.4; the two hours of RFC 4862 §5.5.3 are the address's.
    #[test]
    fn a_network_is_on_the_link_as_long_as_its_prefix_says_and_no_longer() {
        let mut routers = silent();
        let lengths = |routers: &mut Routers, seconds| {
            routers.expire(at(seconds));
            routers.told(at(seconds)).addresses.iter().map(|(_, length)| *length).collect::<Vec<_>>()
        };
        hear(&mut routers, 0, FIRST, 0, &[prefix(1, 86_400)]);
        assert_eq!(lengths(&mut routers, 0), [64]);
        hear(&mut routers, 1, FIRST, 0, &[ndp::Prefix { on_link: false, ..prefix(1, 0) }]);
        assert_eq!(lengths(&mut routers, 1), [64], "that says nothing of the link");
        hear(&mut routers, 1, FIRST, 0, &[ndp::Prefix { autonomous: false, ..prefix(1, 0) }]);
        assert_eq!(lengths(&mut routers, 1), [128]);
        hear(&mut routers, 2, FIRST, 0, &[prefix(1, 100)]);
        assert_eq!((lengths(&mut routers, 2), routers.deadline(at(2), true)), (vec![64], at(102)));
        assert_eq!(lengths(&mut routers, 102), [128], "the address is left");
    }

    #[test]
    fn nobody_cuts_an_address_shorter_than_two_hours() {
        let mut routers = silent();
        let prefix = |valid| ndp::Prefix { preferred: 0, on_link: false, ..prefix(1, valid) };
        hear(&mut routers, 0, FIRST, 0, &[prefix(86_400)]);
        hear(&mut routers, 0, SECOND, 0, &[prefix(1)]);
        assert_eq!(routers.deadline(at(0), true), at(7200));
        hear(&mut routers, 100, SECOND, 0, &[prefix(1)]);
        assert_eq!(routers.deadline(at(100), true), at(7200), "nor longer");
        hear(&mut routers, 100, SECOND, 0, &[prefix(7201)]);
        assert_eq!(routers.deadline(at(100), true), at(7301));
    }

    #[test]
    fn the_first_router_leads_until_it_says_otherwise_or_another_is_preferred() {
        let mut routers = Routers::new();
        let leads = |routers: &Routers, seconds| routers.told(at(seconds)).router;
        hear(&mut routers, 0, FIRST, 60, &[]);
        hear(&mut routers, 0, SECOND, 600, &[]);
        assert_eq!(leads(&routers, 0), Some(FIRST));
        let none = || core::iter::empty();
        let high = (SECOND, 600, ndp::Preference::High);
        routers.hear(at(1), high, none(), core::iter::empty(), LINK);
        assert_eq!(leads(&routers, 1), Some(SECOND));
        hear(&mut routers, 1, SECOND, 600, &[]);
        assert_eq!(leads(&routers, 1), Some(FIRST));
        hear(&mut routers, 1, FIRST, 0, &[]);
        assert_eq!(leads(&routers, 1), Some(SECOND));
    }

    // RFC 4861 §6.3.6.
    #[test]
    fn who_does_not_answer_leads_only_where_nobody_does_and_each_has_its_turn() {
        let mut routers = Routers::new();
        let leads = |routers: &Routers, seconds| routers.told(at(seconds)).router;
        let high = (FIRST, 600, ndp::Preference::High);
        routers.hear(at(0), high, core::iter::empty(), core::iter::empty(), LINK);
        assert!(routers.lose(at(1), FIRST));
        assert_eq!(leads(&routers, 1), Some(FIRST), "there is no other");
        hear(&mut routers, 2, SECOND, 600, &[]);
        assert_eq!(leads(&routers, 2), Some(SECOND));
        routers.hear(at(2), high, core::iter::empty(), core::iter::empty(), LINK);
        assert_eq!(leads(&routers, 2), Some(SECOND), "that it speaks does not say that it hears us");
        assert!(routers.lose(at(3), SECOND));
        assert_eq!(leads(&routers, 3), Some(FIRST));
        assert!(routers.lose(at(6), FIRST));
        assert_eq!(leads(&routers, 6), Some(SECOND));
        routers.trust(FIRST);
        assert_eq!(leads(&routers, 7), Some(FIRST));
        assert!(!routers.lose(at(8), Ipv6Addr::LOCALHOST), "no router");
    }

    // RFC 4191 §3.2.
    #[test]
    fn who_does_not_answer_is_asked_once_a_minute_whether_it_is_back() {
        let mut routers = Routers::new();
        hear(&mut routers, 0, FIRST, 600, &[]);
        routers.lose(at(1), FIRST);
        assert_eq!((routers.deadline(at(1), true), routers.next_suspect(at(60))), (at(61), None));
        assert_eq!([routers.next_suspect(at(61)), routers.next_suspect(at(61))], [Some(FIRST), None]);
        assert_eq!(routers.deadline(at(61), true), at(121));
        hear(&mut routers, 62, FIRST, 0, &[]);
        assert_eq!(routers.deadline(at(62), true), Instant::FAR, "it leads nowhere now");
    }

    #[test]
    fn routers_lead_to_networks_of_their_own_the_preferred_one_first() {
        let mut routers = silent();
        let network = |number| Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 0);
        let mut tell = |seconds, router, number, preference, lifetime| {
            let network = Ipv6Addr::from_bits(network(number).to_bits() | 7);
            let told = ndp::RouteInformation { network, length: 48, preference, lifetime };
            let router = (router, 0, ndp::Preference::Medium);
            routers.hear(at(seconds), router, core::iter::empty(), [told].into_iter(), LINK);
            routers.news(at(seconds)).map(|told| (told.router, told.routes))
        };
        let (low, high) = (ndp::Preference::Low, ndp::Preference::High);
        let way = |number, router| ((network(number), 48), router);
        assert_eq!(tell(0, FIRST, 1, low, 100), Some((None, vec![way(1, FIRST)])));
        assert_eq!(tell(0, SECOND, 1, high, 50), Some((None, vec![way(1, SECOND), way(1, FIRST)])));
        assert_eq!(tell(60, FIRST, 2, low, 100), Some((None, vec![way(1, FIRST), way(2, FIRST)])));
        assert_eq!(tell(61, FIRST, 2, low, 0), Some((None, vec![way(1, FIRST)])));
        assert_eq!(tell(62, FIRST, 1, low, ndp::FOREVER), None);
        assert_eq!(routers.deadline(at(62), true), Instant::FAR);
        // Nobody leads to what means something on its link alone.
        let local = ndp::RouteInformation { network: FIRST, length: 64, preference: high, lifetime: 9 };
        let router = (FIRST, 0, ndp::Preference::Medium);
        routers.hear(at(63), router, core::iter::empty(), [local].into_iter(), LINK);
        assert_eq!(routers.news(at(63)), None);
    }

    #[test]
    fn what_strangers_tell_is_bounded_and_what_makes_no_address_is_ignored() {
        let mut routers = Routers::new();
        for number in 0..100 {
            let router = (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, number), 9, ndp::Preference::High);
            let network = Ipv6Addr::new(0x2001, number, 0, 0, 0, 0, 0, 0);
            let preference = ndp::Preference::High;
            let route = ndp::RouteInformation { network, length: 32, preference, lifetime: 9 };
            routers.hear(at(0), router, [prefix(number, 9)].into_iter(), [route].into_iter(), LINK);
        }
        assert_eq!((routers.leading.len(), routers.addresses.len()), (ROUTERS + NETWORKS, ADDRESSES));
        let mut routers = Routers::new();
        let odd = [
            ndp::Prefix { length: 63, ..prefix(1, 9) },
            ndp::Prefix { preferred: 10, ..prefix(1, 9) },
            ndp::Prefix { autonomous: false, ..prefix(1, 9) },
            ndp::Prefix { network: FIRST, ..prefix(1, 9) },
            prefix(1, 0),
        ];
        hear(&mut routers, 0, FIRST, 0, &odd);
        assert_eq!(routers.news(at(0)), None);
    }

    #[test]
    fn routers_are_asked_for_thrice_or_until_one_answers() {
        let mut routers = Routers::new();
        assert!(routers.asks(at(0)) && !routers.asks(at(3)) && routers.asks(at(4)) && routers.asks(at(8)));
        assert!(!routers.asks(at(12)));
        assert_eq!(routers.deadline(at(12), true), Instant::FAR);
        let mut routers = Routers::new();
        assert!(routers.asks(at(0)));
        hear(&mut routers, 1, FIRST, 0, &[prefix(1, 9)]);
        assert!(routers.asks(at(4)), "that one leads nowhere");
        hear(&mut routers, 5, FIRST, 9, &[]);
        assert!(!routers.asks(at(8)));
    }

    // RFC 4191 §3.1.
    #[test]
    fn what_a_router_says_of_the_way_to_everywhere_replaces_what_its_header_says() {
        let mut routers = silent();
        hear(&mut routers, 0, FIRST, 600, &[]);
        // What is behind the prefix does not count.
        let (network, preference) = (Ipv6Addr::from_bits(7), ndp::Preference::High);
        let everywhere = ndp::RouteInformation { network, length: 0, preference, lifetime: 50 };
        let router = (SECOND, 600, ndp::Preference::Medium);
        routers.hear(at(0), router, core::iter::empty(), [everywhere].into_iter(), LINK);
        let told = routers.told(at(0));
        assert_eq!((told.router, told.routes), (Some(SECOND), vec![]));
        assert_eq!(routers.leading.len(), 2);
        routers.expire(at(50));
        assert_eq!(routers.told(at(50)).router, Some(FIRST));
    }
}
