//! Who is refused: networks whose packets for listening paths, and for datagram sockets without a peer, are dropped where
//! packets are told apart, in the words of [`layout`](super::layout). What has an exact entry is not asked about: who
//! becomes refused loses the connections that it has by whoever refuses it.

use super::layout::*;
use super::tables::{Tables, TooMany};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::net::IpAddr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Addresses that are refused, as ranges: rising, and with a gap between any two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    four: Vec<(u32, u32)>,
    six: Vec<(u128, u128)>,
}

impl Refused {
    /// All addresses of these networks, each an address and the length of its prefix.
    pub fn of(networks: impl IntoIterator<Item = (IpAddr, u8)>) -> Self {
        let (mut four, mut six) = (Vec::new(), Vec::new());
        for (network, length) in networks {
            match network {
                IpAddr::V4(network) => {
                    let rest = u32::MAX.checked_shr(length.into()).unwrap_or(0);
                    four.push((network.to_bits() & !rest, network.to_bits() | rest));
                }
                IpAddr::V6(network) => {
                    let rest = u128::MAX.checked_shr(length.into()).unwrap_or(0);
                    six.push((network.to_bits() & !rest, network.to_bits() | rest));
                }
            }
        }
        Self { four: joined(four, u32::saturating_add), six: joined(six, u128::saturating_add) }
    }

    /// Whether this address is.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => holds(&self.four, address.to_bits()),
            IpAddr::V6(address) => holds(&self.six, address.to_bits()),
        }
    }

    /// Whether nobody is.
    pub fn is_empty(&self) -> bool {
        self.four.is_empty() && self.six.is_empty()
    }

    /// How many ranges there are, of IPv4 and of IPv6: at most [`REFUSED`] of each fit into the tables.
    pub fn ranges(&self) -> [usize; 2] {
        [self.four.len(), self.six.len()]
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [four, six] = self.ranges();
        let plural = if four == 1 { "" } else { "s" };
        write!(f, "{four} range{plural} of IPv4 addresses, {six} of IPv6")
    }
}

/// Ranges that overlap or touch, as one.
fn joined<T: Copy + Ord + From<u8>>(mut ranges: Vec<(T, T)>, add: impl Fn(T, T) -> T) -> Vec<(T, T)> {
    ranges.sort_unstable();
    let mut joined: Vec<(T, T)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match joined.last_mut() {
            Some((_, end)) if first <= add(*end, 1.into()) => *end = last.max(*end),
            _ => joined.push((first, last)),
        }
    }
    joined
}

fn holds<T: Copy + Ord>(ranges: &[(T, T)], address: T) -> bool {
    ranges.binary_search_by(|range| place(*range, address)).is_ok()
}

/// Where a range is, seen from an address.
fn place<T: Ord>((first, last): (T, T), address: T) -> Ordering {
    if last < address {
        Ordering::Less
    } else if first > address {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// The words of a range of IPv6.
fn words_of((first, last): (u128, u128)) -> [u64; RANGE6_WORDS] {
    [(first >> 64) as u64, first as u64, (last >> 64) as u64, last as u64]
}

impl Tables {
    /// From now on these are refused, and nobody else. A reader goes by who was before or by who is now. One thread
    /// at a time may change it.
    ///
    /// # Errors
    /// There are more than [`REFUSED`] ranges of one IP: all is as before.
    pub fn refuse(&self, refused: &Refused) -> Result<(), TooMany> {
        let [four, six] = refused.ranges();
        if four > REFUSED || six > REFUSED {
            return Err(TooMany);
        }
        let word = &self.settings[0];
        let bank = 1 - (word.load(Acquire) >> REFUSED_BANK_SHIFT & 1) as usize;
        let (words4, words6) = self.bank(bank);
        for (to, (first, last)) in words4.iter().zip(&refused.four) {
            to.store(u64::from(*first) | u64::from(*last) << 32, Relaxed);
        }
        for (to, range) in words6.iter().zip(refused.six.iter().flat_map(|range| words_of(*range))) {
            to.store(range, Relaxed);
        }
        self.settings[SETTINGS_REFUSED + bank].store(four as u64 | (six as u64) << 32, Release);
        word.fetch_xor(1 << REFUSED_BANK_SHIFT, Release);
        Ok(())
    }

    /// Whether packets from `source` are refused that have no exact entry.
    pub fn refuses(&self, source: IpAddr) -> bool {
        let bank = (self.settings[0].load(Acquire) >> REFUSED_BANK_SHIFT & 1) as usize;
        let counts = self.settings[SETTINGS_REFUSED + bank].load(Acquire);
        if counts == 0 {
            return false;
        }
        let (four, six) = (counts as u32 as usize, (counts >> 32) as usize);
        let (words4, words6) = self.bank(bank);
        match source {
            IpAddr::V4(source) => {
                let range = |n: usize| words4[n].load(Relaxed);
                search(four, |n| place((range(n) as u32, (range(n) >> 32) as u32), source.to_bits()))
            }
            IpAddr::V6(source) => {
                let half = |n: usize, at: usize| u128::from(words6[n * RANGE6_WORDS + at].load(Relaxed));
                let end = |n: usize, at: usize| half(n, at) << 64 | half(n, at + 1);
                search(six, |n| place((end(n, 0), end(n, 2)), source.to_bits()))
            }
        }
    }

    /// The words of both IPs in a bank.
    fn bank(&self, bank: usize) -> (&[AtomicU64], &[AtomicU64]) {
        self.refused[bank * REFUSED_BANK_WORDS..][..REFUSED_BANK_WORDS].split_at(REFUSED)
    }
}

/// Whether one of the first `count` ranges, at most [`REFUSED`], is at the place that is looked for.
fn search(count: usize, place: impl Fn(usize) -> Ordering) -> bool {
    let (mut low, mut high) = (0, count.min(REFUSED));
    while low < high {
        let middle = low.midpoint(high);
        match place(middle) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Domains, Owned};
    extern crate std;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use std::string::ToString;
    use std::vec;

    fn network(text: &str) -> (IpAddr, u8) {
        let (address, length) = text.split_once('/').unwrap();
        (address.parse().unwrap(), length.parse().unwrap())
    }

    #[test]
    fn networks_that_touch_or_overlap_are_one_range() {
        let of = |networks: &[&str]| Refused::of(networks.iter().map(|text| network(text)));
        let all = of(&[
            "10.0.1.0/24",
            "10.0.0.0/24",
            "10.0.0.7/32",
            "10.0.3.0/24",
            "2001:db8::1/127",
            "2001:db8::2/128",
        ]);
        assert_eq!(all.to_string(), "2 ranges of IPv4 addresses, 1 of IPv6");
        let whether = ["10.0.1.255", "10.0.2.0", "10.0.3.0", "2001:db8::", "2001:db8::2", "2001:db8::3"]
            .map(|text| all.contains(text.parse().unwrap()));
        assert_eq!(whether, [true, false, true, true, true, false]);
        let everybody = of(&["0.0.0.0/0", "255.255.255.255/32", "::/0", "::1/128"]);
        assert_eq!(everybody.ranges(), [1, 1]);
        assert!(everybody.contains("255.255.255.255".parse().unwrap()) && !everybody.is_empty());
        assert!(of(&[]).is_empty());
    }

    #[test]
    fn others_are_refused_at_once_and_classes_are_left() {
        let tables = Tables::with_room(64, 7);
        let domains = Domains { default: 5, ..Domains::default() };
        let here: IpAddr = "10.0.0.1".parse().unwrap();
        let refused = |text: &str| {
            tables.refuse(&Refused::of([network(text)])).unwrap();
            tables.configure(Owned::default(), domains, &[], &[here]).unwrap();
            ["10.0.0.2", "fd00::2"].map(|text| tables.refuses(text.parse().unwrap()))
        };
        assert_eq!(
            [refused("10.0.0.2/32"), refused("fd00::/8"), refused("10.0.0.3/32")],
            [[true, false], [false, true], [false, false]]
        );
        assert_eq!(tables.domain_for(here, 80, 0), 5);
    }

    #[test]
    fn as_many_as_there_is_room_for_are_refused_and_one_more_changes_nothing() {
        let tables = Tables::with_room(64, 7);
        // With a gap between any two.
        let some = |count: u32| Refused::of((0..count).map(|n| (IpAddr::from((n * 2).to_be_bytes()), 32)));
        let asked = |n: u32| tables.refuses(IpAddr::from(n.to_be_bytes()));
        tables.refuse(&some(REFUSED as u32)).unwrap();
        let last = 2 * (REFUSED as u32 - 1);
        assert_eq!([0, 1, last, last + 1, last + 2].map(asked), [true, false, true, false, false]);
        assert_eq!(tables.refuse(&some(REFUSED as u32 + 1)), Err(TooMany));
        assert!(asked(0) && asked(last));
    }

    proptest! {
        #[test]
        fn refused_is_who_is_in_one_of_the_networks(
            networks in vec((select(vec!["10.0.0.0", "10.0.255.255", "fd00::", "fd00::ffff"]), 0u8..=32, any::<u8>()), 0..20),
            asked in vec((any::<bool>(), any::<u16>()), 40),
        ) {
            let near = |base: IpAddr, by: u32| match base {
                IpAddr::V4(base) => IpAddr::from((base.to_bits() ^ by).to_be_bytes()),
                IpAddr::V6(base) => IpAddr::from((base.to_bits() ^ u128::from(by)).to_be_bytes()),
            };
            let networks: Vec<(IpAddr, u8)> = networks
                .into_iter()
                .map(|(base, length, by)| {
                    let base: IpAddr = base.parse().unwrap();
                    (near(base, by.into()), length + if base.is_ipv6() { 96 } else { 0 })
                })
                .collect();
            let refused = Refused::of(networks.iter().copied());
            let tables = Tables::with_room(64, 7);
            tables.refuse(&refused).unwrap();
            for (six, by) in asked {
                let address = near(if six { "fd00::" } else { "10.0.0.0" }.parse().unwrap(), by.into());
                let alike = |(network, length): &(IpAddr, u8)| match (network, address) {
                    (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() >= u32::from(*length),
                    (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() >= u32::from(*length),
                    _ => false,
                };
                let expected = networks.iter().any(alike);
                prop_assert_eq!((refused.contains(address), tables.refuses(address)), (expected, expected), "{}", address);
            }
        }
    }
}
