//! What routers tell (RFC 4861 §6.3, RFC 4862 §5.5): who leads beyond the link, and the addresses that we
//! make of the prefixes they announce. Anybody on the link can claim to be a router, so what is kept is
//! bounded, and nothing that holds for two hours more is cut shorter than that.

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;
use silk_instant::Instant;
use silk_wire::{MacAddr, ipv6, ndp};

/// Routers that are remembered.
const ROUTERS: usize = 4;
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

/// What has been told, and what is still to be asked.
pub(super) struct Routers {
    /// In the order in which they were heard first: until when each leads beyond the link.
    leading: Vec<(Ipv6Addr, Instant)>,
    addresses: Vec<Made>,
    /// The hop limit and the MTU that were told last.
    pub(super) hops: Option<u8>,
    pub(super) mtu: Option<u16>,
    /// Questions that are still to be asked while nobody answers.
    questions: u8,
    /// When the next one is due.
    due: Instant,
}

/// An address that was made of a prefix.
struct Made {
    address: Ipv6Addr,
    /// Whether all of the prefix's addresses are on the link.
    on_link: bool,
    until: Instant,
}

impl Routers {
    /// Nothing has been told, and the first question is due.
    pub fn new() -> Self {
        Self {
            leading: Vec::new(),
            addresses: Vec::new(),
            hops: None,
            mtu: None,
            questions: QUESTIONS,
            due: Instant::ZERO,
        }
    }

    /// A router has told a hop limit (zero: none) and perhaps the link's MTU. Whether either is otherwise now
    /// (RFC 4861 §6.3.4).
    pub fn hear_of_link(&mut self, hops: u8, mtu: Option<u32>) -> bool {
        let before = (self.hops, self.mtu);
        if hops != 0 {
            self.hops = Some(hops);
        }
        // Less is no link of IPv6's (RFC 8200 §5), and more than a packet's length does not matter.
        let mtu = mtu.filter(|mtu| *mtu >= ipv6::MIN_MTU.into());
        if let Some(mtu) = mtu {
            self.mtu = Some(u16::try_from(mtu).unwrap_or(u16::MAX));
        }
        (self.hops, self.mtu) != before
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

    /// A router has told that it leads beyond the link for `lifetime` seconds, and of these prefixes. `link` is
    /// our link address. Whether anything is otherwise now.
    pub fn hear(
        &mut self,
        now: Instant,
        (router, lifetime): (Ipv6Addr, u16),
        prefixes: impl Iterator<Item = ndp::Prefix>,
        link: MacAddr,
    ) -> bool {
        let before = (self.router(), self.addresses.len());
        self.questions = 0;
        let until = now + Duration::from_secs(lifetime.into());
        let there_is_room = self.leading.len() < ROUTERS;
        match self.leading.iter_mut().find(|(known, _)| *known == router) {
            Some((_, known)) => *known = until,
            None if there_is_room => self.leading.push((router, until)),
            None => {}
        }
        let mut changed = false;
        for prefix in prefixes.filter(|prefix| prefix.autonomous && is_usable(prefix)) {
            changed |= self.make(now, &prefix, link);
        }
        self.expire(now);
        changed || (self.router(), self.addresses.len()) != before
    }

    /// Makes an address of a prefix, or lets the one that there is hold for longer (RFC 4862 §5.5.3). Whether it is
    /// otherwise on the link now.
    fn make(&mut self, now: Instant, prefix: &ndp::Prefix, link: MacAddr) -> bool {
        let address = address(prefix.network, link);
        let valid = Duration::from_secs(prefix.valid.into());
        let until = if prefix.valid == ndp::FOREVER { Instant::FAR } else { now + valid };
        let there_is_room = self.addresses.len() < ADDRESSES;
        match self.addresses.iter_mut().find(|made| made.address == address) {
            Some(made) => {
                made.until = if valid > TWO_HOURS || until > made.until {
                    until
                } else {
                    // It holds for what it did, or for two hours if that is less.
                    made.until.min(now + TWO_HOURS)
                };
                core::mem::replace(&mut made.on_link, prefix.on_link) != prefix.on_link
            }
            None if prefix.valid > 0 && there_is_room => {
                self.addresses.push(Made { address, on_link: prefix.on_link, until });
                true
            }
            None => false,
        }
    }

    /// Forgets what holds no longer. Whether there was any.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = (self.router(), self.addresses.len());
        self.leading.retain(|(_, until)| *until > now);
        self.addresses.retain(|made| made.until > now);
        (self.router(), self.addresses.len()) != before
    }

    /// When something is to be done next.
    pub fn deadline(&self) -> Instant {
        let asks = if self.questions > 0 { self.due } else { Instant::FAR };
        let ends = self.leading.iter().map(|(_, until)| *until);
        ends.chain(self.addresses.iter().map(|made| made.until)).fold(asks, Instant::min)
    }

    /// Who leads beyond the link: of several the first, as long as it does.
    pub fn router(&self) -> Option<Ipv6Addr> {
        self.leading.first().map(|(router, _)| *router)
    }

    /// The addresses that were made, each with the length of its network on the link.
    pub fn addresses(&self) -> impl Iterator<Item = (Ipv6Addr, u8)> + '_ {
        self.addresses.iter().map(|made| (made.address, if made.on_link { LENGTH } else { 128 }))
    }
}

/// Whether an address can be made of the prefix (RFC 4862 §5.5.3 b to d).
fn is_usable(prefix: &ndp::Prefix) -> bool {
    let network = prefix.network;
    prefix.length == LENGTH
        && prefix.preferred <= prefix.valid
        && !network.is_unicast_link_local()
        && !network.is_multicast()
        && !network.is_loopback()
        && !network.is_unspecified()
}

/// The address of the station with that link address.
fn address(network: Ipv6Addr, MacAddr(link): MacAddr) -> Ipv6Addr {
    let station = u128::from(u64::from_be_bytes(ipv6::station(link)));
    Ipv6Addr::from_bits(network.to_bits() >> 64 << 64 | station)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
    const FIRST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const SECOND: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

    fn prefix(number: u16, valid: u32) -> ndp::Prefix {
        let network = Ipv6Addr::new(0x2001, 0xdb8, 0, number, 0, 0, 0, 0);
        ndp::Prefix { network, length: 64, on_link: true, autonomous: true, valid, preferred: 0 }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn ours(number: u16) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 0, number, 0, 0xff, 0xfe00, 9)
    }

    #[test]
    fn an_address_is_made_of_a_prefix_and_holds_as_long_as_it() {
        let mut routers = Routers::new();
        assert!(routers.hear(at(1), (FIRST, 1800), [prefix(1, 100)].into_iter(), LINK));
        assert!(routers.addresses().eq([(ours(1), 64)]));
        assert_eq!(routers.router(), Some(FIRST));
        assert!(!routers.hear(at(51), (FIRST, 1800), [prefix(1, 100)].into_iter(), LINK), "as before");
        assert_eq!(routers.deadline(), at(151));
        assert!(!routers.expire(at(150)) && routers.expire(at(151)));
        assert_eq!((routers.addresses().count(), routers.router()), (0, Some(FIRST)));
        assert!(routers.expire(at(51 + 1800)));
        assert_eq!((routers.router(), routers.deadline()), (None, Instant::FAR));
    }

    #[test]
    fn the_last_router_says_how_far_and_how_wide() {
        let mut routers = Routers::new();
        assert!(!routers.hear_of_link(0, None) && !routers.hear_of_link(0, Some(1279)));
        assert_eq!((routers.hops, routers.mtu), (None, None));
        assert!(routers.hear_of_link(64, Some(1480)) && !routers.hear_of_link(0, None));
        assert_eq!((routers.hops, routers.mtu), (Some(64), Some(1480)));
        assert!(routers.hear_of_link(9, Some(100_000)));
        assert_eq!((routers.hops, routers.mtu), (Some(9), Some(u16::MAX)));
    }

    #[test]
    fn nobody_cuts_an_address_shorter_than_two_hours() {
        let mut routers = Routers::new();
        routers.hear(at(0), (FIRST, 0), [prefix(1, 86_400)].into_iter(), LINK);
        routers.hear(at(0), (SECOND, 0), [prefix(1, 1)].into_iter(), LINK);
        assert_eq!(routers.deadline(), at(7200));
        routers.hear(at(100), (SECOND, 0), [prefix(1, 1)].into_iter(), LINK);
        assert_eq!(routers.deadline(), at(7200), "nor longer");
        routers.hear(at(100), (SECOND, 0), [prefix(1, 7201)].into_iter(), LINK);
        assert_eq!(routers.deadline(), at(7301));
    }

    #[test]
    fn the_first_router_leads_until_it_says_otherwise() {
        let mut routers = Routers::new();
        let none = core::iter::empty;
        assert!(routers.hear(at(0), (FIRST, 60), none(), LINK));
        assert!(!routers.hear(at(0), (SECOND, 600), none(), LINK));
        assert_eq!(routers.router(), Some(FIRST));
        assert!(routers.hear(at(1), (FIRST, 0), none(), LINK));
        assert_eq!(routers.router(), Some(SECOND));
    }

    #[test]
    fn what_strangers_tell_is_bounded_and_what_makes_no_address_is_ignored() {
        let mut routers = Routers::new();
        for number in 0..100 {
            let router = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, number);
            routers.hear(at(0), (router, 9), [prefix(number, 9)].into_iter(), LINK);
        }
        assert_eq!((routers.leading.len(), routers.addresses.len()), (ROUTERS, ADDRESSES));
        let mut routers = Routers::new();
        let odd = [
            ndp::Prefix { length: 63, ..prefix(1, 9) },
            ndp::Prefix { preferred: 10, ..prefix(1, 9) },
            ndp::Prefix { autonomous: false, ..prefix(1, 9) },
            ndp::Prefix { network: FIRST, ..prefix(1, 9) },
            prefix(1, 0),
        ];
        assert!(!routers.hear(at(0), (FIRST, 0), odd.into_iter(), LINK));
        assert_eq!(routers.addresses().count(), 0);
    }

    #[test]
    fn routers_are_asked_for_thrice_or_until_one_answers() {
        let mut routers = Routers::new();
        assert!(routers.asks(at(0)) && !routers.asks(at(3)) && routers.asks(at(4)) && routers.asks(at(8)));
        assert!(!routers.asks(at(12)));
        assert_eq!(routers.deadline(), Instant::FAR);
        let mut routers = Routers::new();
        assert!(routers.asks(at(0)));
        routers.hear(at(1), (FIRST, 9), core::iter::empty(), LINK);
        assert!(!routers.asks(at(4)));
    }
}
