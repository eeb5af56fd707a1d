//! The local addresses of either family, and behind them, in the room that they leave, the groups that are
//! heard. An address is a bit of a ports word.

use super::flow::halves;
use super::layout::*;
use super::tables::Tables;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

impl Tables {
    /// Writes the local addresses; `keep`: what stands behind them, the groups, is left.
    pub(super) fn store_addresses(
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
    pub(super) fn group_bit(&self, group: IpAddr) -> Option<u32> {
        if group.is_unspecified() {
            return None;
        }
        let n = self.group_place(group)?;
        Some(if group.is_ipv6() { 1 << (15 - n) } else { 1 << n })
    }

    /// Local addresses of either family.
    pub(super) fn counts(&self) -> (usize, usize) {
        let word = self.settings[0].load(Acquire);
        (((word >> ADDRESS_COUNT_SHIFT & 0xff) as usize).min(ADDRESSES), self.count6())
    }

    /// How many of a port's bits are IPv6's, for addresses and groups: what IPv4's addresses leave, at
    /// most half.
    pub(super) fn room6(&self) -> usize {
        (ADDRESSES - self.counts().0).min(ADDRESSES6)
    }

    /// Whether the address is one of ours.
    pub fn is_local(&self, address: impl Into<IpAddr>) -> bool {
        self.address_bit(address.into()).is_some()
    }

    /// Which of the local addresses this is, as a bit.
    pub(super) fn address_bit(&self, address: IpAddr) -> Option<u32> {
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
}

/// A place behind the addresses of each family.
#[derive(Clone, Copy, Default)]
struct Place {
    four: usize,
    six: usize,
}

#[cfg(test)]
mod tests {
    use super::super::configure::tests::{ALSO, HERE, tables};
    use super::super::{Domains, Owned, Protocol};
    use super::*;

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
}
