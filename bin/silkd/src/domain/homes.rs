//! Which domain serves which datagram sockets.

use crate::binding::any_like;
use silk_path::Endpoint;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which domain serves the datagram sockets that are bound to an address, or to any, and a port, and how many datagrams were passed to it.
#[derive(Default)]
pub(crate) struct Homes(BTreeMap<(u16, IpAddr), Home>);

#[derive(Clone, Copy)]
struct Home {
    domain: usize,
    passed: u32,
}

impl Homes {
    /// Those that are bound to `local` are that domain's.
    pub fn enter(&mut self, local: Endpoint, domain: usize) {
        self.0.insert((local.port(), local.ip()), Home { domain, passed: 0 });
    }

    /// Nobody is bound to it any more.
    pub fn leave(&mut self, local: Endpoint) {
        self.0.remove(&(local.port(), local.ip()));
    }

    /// Nobody of any domain is bound to this port any more at this address, `None`: at any at all.
    pub fn desert(&mut self, port: u16, at: Option<IpAddr>) {
        let all = (Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::from_bits(u128::MAX).into());
        let (first, last) = at.map_or(all, |at| (at, at));
        let there: Vec<_> = self.0.range((port, first)..=(port, last)).map(|(end, _)| *end).collect();
        there.iter().for_each(|end| _ = self.0.remove(end));
    }

    /// Whose those are that hear what is sent to `local`.
    pub fn find(&self, local: Endpoint) -> Option<usize> {
        let at = |address| self.0.get(&(local.port(), address)).map(|home| home.domain);
        at(local.ip()).or_else(|| at(any_like(local.ip())))
    }

    /// A datagram was passed to them. The how manieth it was, if a lane is to be asked for: at the first, and each time that they have doubled.
    pub fn note_passed(&mut self, local: Endpoint) -> Option<u32> {
        let mut place = (local.port(), local.ip());
        if !self.0.contains_key(&place) {
            place.1 = any_like(local.ip());
        }
        let home = self.0.get_mut(&place)?;
        home.passed = home.passed.saturating_add(1);
        Some(home.passed).filter(|passed| passed.is_power_of_two())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_bound_to_an_address_is_at_home_before_who_is_bound_to_any() {
        let [one, other, any] = ["10.0.0.1:53", "10.0.0.2:53", "0.0.0.0:53"]
            .map(|text| text.parse::<std::net::SocketAddr>().unwrap());
        let [one, other, any] = [one, other, any].map(|at| Endpoint::new(at.ip(), at.port()));
        let mut homes = Homes::default();
        homes.enter(one, 1);
        assert_eq!([one, other, any].map(|local| homes.find(local)), [Some(1), None, None]);
        homes.enter(any, 2);
        assert_eq!([one, other, any].map(|local| homes.find(local)), [Some(1), Some(2), Some(2)]);
        assert_eq!(homes.find(Endpoint::new(Ipv6Addr::LOCALHOST, 53)), None);
        homes.leave(one);
        let asked: Vec<u32> = (0..16).filter_map(|_| homes.note_passed(one)).collect();
        assert_eq!((asked, homes.note_passed(Endpoint::new(one.ip(), 54))), (vec![1, 2, 4, 8, 16], None));
        assert_eq!(homes.find(one), Some(2));
        homes.leave(any);
        assert_eq!(homes.find(one), None);
        let elsewhere = Endpoint::new(one.ip(), 54);
        [one, other, any, elsewhere].into_iter().for_each(|at| homes.enter(at, 1));
        homes.desert(53, Some(one.ip()));
        assert_eq!((homes.0.len(), homes.find(other)), (3, Some(1)));
        homes.desert(53, None);
        assert_eq!((homes.0.len(), homes.find(elsewhere)), (1, Some(1)));
    }
}
