//! Better first hops, as routers tell of them (RFC 792, RFC 1122 §3.2.2.2, RFC 4861 §8.3), for a while and where that is
//! heeded. Anybody on the link may claim to be a router: only the one that a destination's packets are given to
//! is believed, and only of hops on the same link. Bounded; what a hop does not answer to is forgotten.

use super::{Address, Routes};
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;

/// How long one counts: routers tell again.
const LIFE: Duration = Duration::from_secs(600);
/// Destinations that are remembered.
const MOST: usize = 64;

/// What is known of destinations. The one that was told first is first.
#[derive(Debug)]
pub(crate) struct Redirects<A> {
    known: Vec<(A, A, Instant)>,
}

impl<A> Default for Redirects<A> {
    fn default() -> Self {
        Self { known: Vec::new() }
    }
}

impl<A: Address> Redirects<A> {
    /// The better first hop to `destination`, where there is one.
    pub fn of(&self, now: Instant, destination: A) -> Option<A> {
        let mut known = self.known.iter().filter(|(to, _, until)| *to == destination && *until > now);
        known.next().map(|(_, hop, _)| *hop)
    }

    /// `router` says that packets to `destination` are better given to `hop`. Whether it is believed and that is news.
    pub fn heed(&mut self, now: Instant, routes: &Routes<A>, router: A, (destination, hop): (A, A)) -> bool {
        let Some(route) = routes.lookup(destination) else { return false };
        let current = self.of(now, destination).or(route.gateway);
        let is_news = current == Some(router) && hop != router;
        if !is_news || !routes.may_lead(&route, hop, destination) {
            return false;
        }
        self.known.retain(|(to, _, until)| *to != destination && *until > now);
        if self.known.len() == MOST {
            self.known.remove(0);
        }
        self.known.push((destination, hop, now + LIFE));
        true
    }

    /// The better first hop to `destination` does not answer. Whether there was one.
    pub fn forget(&mut self, destination: A) -> bool {
        let before = self.known.len();
        self.known.retain(|(to, ..)| *to != destination);
        self.known.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Standing, Way};
    use core::net::{Ipv4Addr, Ipv6Addr};

    const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
    const NOW: Instant = Instant::ZERO;

    fn ip(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    fn routes() -> Routes {
        Routes::of(&Standing::of(&[(ip(1).into(), 24)], [ip(254).into()]))
    }

    #[test]
    fn the_router_of_a_destination_says_who_is_better() {
        let (mut redirects, routes) = (Redirects::default(), routes());
        assert!(redirects.heed(NOW, &routes, ip(254), (FAR, ip(253))));
        assert_eq!(redirects.of(NOW, FAR), Some(ip(253)));
        assert!(!redirects.heed(NOW, &routes, ip(254), (FAR, ip(252))), "it is not its router now");
        assert!(redirects.heed(NOW, &routes, ip(253), (FAR, ip(252))));
        assert_eq!(redirects.of(NOW + LIFE, FAR), None);
        assert!(redirects.heed(NOW, &routes, ip(252), (FAR, ip(251))));
        assert!(redirects.forget(FAR) && !redirects.forget(FAR));
    }

    #[test]
    fn nobody_else_is_believed_nor_of_hops_that_are_not_beside_us() {
        let (mut redirects, mut standing) = (Redirects::default(), Standing::of(&[(ip(1).into(), 24)], None));
        standing.ways.push(Way::rest(0, ip(254).into()));
        let second = Ipv4Addr::new(10, 0, 1, 1);
        let routes = Routes::of(&standing.and(&[(second.into(), 24)], None));
        let beyond = Ipv4Addr::new(198, 51, 100, 7);
        for (router, destination, hop) in [
            (ip(9), FAR, ip(253)),
            (ip(254), FAR, beyond),
            (ip(254), FAR, ip(1)),
            (ip(254), FAR, ip(254)),
            (ip(254), FAR, Ipv4Addr::new(10, 0, 1, 9)),
            (ip(254), ip(9), ip(253)),
            (ip(254), ip(1), ip(253)),
        ] {
            assert!(
                !redirects.heed(NOW, &routes, router, (destination, hop)),
                "{router} {destination} {hop}"
            );
        }
    }

    #[test]
    fn over_ipv6_a_hop_is_a_router_on_the_link_or_the_destination_itself() {
        let six = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let ours = [(six("fe80::1").into(), 64), (six("2001:db8::1").into(), 64)];
        let routes = Routes::of(&Standing::of(&ours, [six("fe80::fe").into()]));
        let mut redirects = Redirects::default();
        let mut heeds =
            |to: &str, hop: &str| redirects.heed(NOW, &routes, six("fe80::fe"), (six(to), six(hop)));
        assert!(heeds("2001:db8:1::9", "fe80::fd"));
        assert!(heeds("2001:db8:2::9", "2001:db8:2::9"), "it is beside us");
        assert!(!heeds("2001:db8:3::9", "2001:db8::7"));
    }

    #[test]
    fn the_first_is_forgotten_where_there_are_too_many() {
        let (mut redirects, routes) = (Redirects::default(), routes());
        let far = |n: u32| Ipv4Addr::from(u32::from(FAR) + n);
        for n in 0..=MOST as u32 {
            assert!(redirects.heed(NOW, &routes, ip(254), (far(n), ip(253))));
        }
        assert_eq!((redirects.of(NOW, far(0)), redirects.of(NOW, far(1))), (None, Some(ip(253))));
        assert_eq!(redirects.known.len(), MOST);
    }
}
