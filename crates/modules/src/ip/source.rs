//! Which of our addresses packets carry whose sender has said none: over IPv4 the one on the network of whom
//! they are handed to (RFC 1122 §3.3.4.3), over IPv6 the one most like the destination (RFC 6724 §5).

use super::address::{Address, Own, network};
use core::cmp::Reverse;
use core::net::Ipv6Addr;

/// Our address on the smallest network on `link` that `hop` is in, of several the first; or the first on that link, or
/// the first there is.
pub(super) fn beside<A: Address>(ours: &[Own<A>], link: u8, hop: A) -> Option<A> {
    let near =
        |own: &&Own<A>| own.link == link && network(own.address, own.prefix) == network(hop, own.prefix);
    // The least of several equals is the first.
    let nearest = ours.iter().filter(near).min_by_key(|own| Reverse(own.prefix));
    let there = || ours.iter().find(|own| own.link == link);
    nearest.or_else(there).or(ours.first()).map(|own| own.address)
}

/// Our address that is most like the destination, by the rules of RFC 6724 §5: the same; of a scope that reaches
/// so far (rule 2); not deprecated (3); on the link that it leaves by (5); of the same kind (6); with the same beginning (8).
/// Where they say nothing, the last, as with Linux. None that means something on another link alone, or
/// that does not reach beyond its link.
// RFC 6724 §5. Nobody is away from home here (rule 4), and temporary addresses (7) are not told apart.
pub(super) fn nearest(ours: &[Own<Ipv6Addr>], link: u8, destination: Ipv6Addr) -> Option<Ipv6Addr> {
    let narrow = stays_on_link(destination);
    let reaches = |own: &&Own<Ipv6Addr>| {
        let local = own.address.is_unicast_link_local();
        if local { narrow && own.link == link } else { true }
    };
    let rank = |own: &&Own<Ipv6Addr>| {
        (
            own.address == destination,
            own.address.is_unicast_link_local() == narrow,
            !own.deprecated,
            own.link == link,
            label(own.address) == label(destination),
            alike(own, destination),
        )
    };
    ours.iter().filter(reaches).max_by_key(rank).map(|own| own.address)
}

/// Whether nothing that is sent there leaves the link (RFC 4291 §2.5.6, and §2.7 for groups).
fn stays_on_link(destination: Ipv6Addr) -> bool {
    const LINK: u8 = 2;
    let [_, flags_and_scope, ..] = destination.octets();
    destination.is_unicast_link_local() || destination.is_multicast() && flags_and_scope & 0xf <= LINK
}

/// How many bits an address has in common with another, of those that name its network.
fn alike(own: &Own<Ipv6Addr>, destination: Ipv6Addr) -> u32 {
    (own.address.to_bits() ^ destination.to_bits()).leading_zeros().min(own.prefix.into())
}

/// What kind of address it is: the labels of RFC 6724 §2.1.
fn label(address: Ipv6Addr) -> u8 {
    const TABLE: [(Ipv6Addr, u8, u8); 9] = [
        (Ipv6Addr::LOCALHOST, 128, 0),
        (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, 4),
        (Ipv6Addr::UNSPECIFIED, 96, 3),
        (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, 5),
        (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, 2),
        (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16, 12),
        (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, 11),
        (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, 13),
        (Ipv6Addr::UNSPECIFIED, 0, 1),
    ];
    let is = |&&(like, prefix, _): &&(Ipv6Addr, u8, u8)| network(like, prefix) == network(address, prefix);
    TABLE.iter().find(is).map_or(1, |(.., label)| *label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    fn six(all: &[(&str, u8)], destination: &str) -> Option<String> {
        let of = |&(address, link): &(&str, u8)| {
            // One that ends so has been deprecated.
            let deprecated = address.ends_with(":dead");
            Own { address: address.parse().unwrap(), prefix: 64, link, deprecated }
        };
        let ours: Vec<_> = all.iter().map(of).collect();
        nearest(&ours, 0, destination.parse().unwrap()).map(|address| address.to_string())
    }

    fn chosen(all: &[(&str, u8)], destination: &str) -> String {
        six(all, destination).unwrap_or_default()
    }

    /// The examples of RFC 6724 §10.1 that need neither addresses for a while nor care-of addresses.
    #[test]
    fn as_in_the_examples_of_the_rfc() {
        assert_eq!(chosen(&[("2001:db8:3::1", 0), ("fe80::1", 0)], "2001:db8:1::1"), "2001:db8:3::1");
        assert_eq!(chosen(&[("2001:db8::1", 0), ("fe80::1", 0)], "fe80::9"), "fe80::1");
        assert_eq!(chosen(&[("2001:db8:1::2", 0), ("2001:db8:3::2", 0)], "2001:db8:1::1"), "2001:db8:1::2");
        let both = [("2001:db8:1::2", 0), ("2002:c633:6401:0:d5e3:7953:13eb:22e8", 0)];
        assert_eq!(chosen(&both, "2002:c633:6401::1"), both[1].0);
        assert_eq!(chosen(&both, "2001:db8:9::1"), "2001:db8:1::2");
    }

    #[test]
    fn the_world_is_not_spoken_to_from_a_local_address_nor_a_local_one_from_the_worlds() {
        let both = [("fd00::1", 0), ("2001:db8:5::1", 0), ("fd01::1", 0)];
        assert_eq!(chosen(&both, "2a00::9"), "2001:db8:5::1");
        assert_eq!(chosen(&both, "fd00:9::9"), "fd00::1");
        assert_eq!(chosen(&both[..1], "2a00::9"), "fd00::1", "rather than from none");
    }

    #[test]
    fn what_means_something_on_its_link_alone_does_not_leave_it() {
        assert_eq!(six(&[("fe80::1", 0)], "2001:db8::9"), None);
        assert_eq!(six(&[("fe80::2", 1)], "fe80::9"), None);
        assert_eq!(chosen(&[("fe80::1", 0), ("fe80::2", 1)], "fe80::9"), "fe80::1");
        assert_eq!(chosen(&[("2001:db8::2", 1), ("fe80::1", 0)], "2001:db8:9::9"), "2001:db8::2");
    }

    // RFC 6724 §5, rule 2.
    #[test]
    fn a_group_is_spoken_to_from_an_address_that_reaches_so_far() {
        let both = [("2001:db8::1", 0), ("fe80::1", 0)];
        assert_eq!(["ff01::9", "ff02::9", "ff12::9"].map(|group| chosen(&both, group)), ["fe80::1"; 3]);
        assert_eq!(["ff05::9", "ff0e::9", "ff35::9"].map(|group| chosen(&both, group)), ["2001:db8::1"; 3]);
    }

    #[test]
    fn one_that_is_deprecated_is_used_where_there_is_no_other() {
        let both = [("2001:db8:1::2", 0), ("2001:db8:9::dead", 0)];
        assert_eq!(chosen(&both, "2001:db8:9::9"), "2001:db8:1::2");
        assert_eq!(chosen(&both[1..], "2001:db8:1::9"), "2001:db8:9::dead");
        assert_eq!(chosen(&both, "2001:db8:9::dead"), "2001:db8:9::dead", "it is itself");
    }

    #[test]
    fn of_several_on_one_network_ipv6_has_the_last_and_ipv4_the_first() {
        assert_eq!(chosen(&[("2001:db8::1", 0), ("2001:db8::2", 0)], "2001:db8::9"), "2001:db8::2");
        let own = |last, prefix| {
            let address = Ipv4Addr::new(10, 0, 0, last);
            Own { address, prefix, link: 0, deprecated: false }
        };
        let hop = Ipv4Addr::new(10, 0, 0, 9);
        assert_eq!(beside(&[own(1, 24), own(2, 24)], 0, hop), Some(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(beside(&[own(1, 24), own(2, 28)], 0, hop), Some(Ipv4Addr::new(10, 0, 0, 2)));
        assert_eq!(beside(&[own(1, 24)], 1, hop), Some(Ipv4Addr::new(10, 0, 0, 1)), "another link's");
    }

    // RFC 6724 §5, rules 3 and 5.
    #[test]
    fn one_on_the_link_that_it_leaves_by_is_used_though_another_is_more_like_it_unless_it_is_deprecated() {
        let both = [("2001:db8:1::2", 0), ("2001:db8:9::2", 1)];
        assert_eq!(chosen(&both, "2001:db8:9::9"), "2001:db8:1::2");
        let both = [("2001:db8:9::dead", 0), ("2001:db8:1::2", 1)];
        assert_eq!(chosen(&both, "2001:db8:9::9"), "2001:db8:1::2");
    }

    #[test]
    fn only_the_bits_that_name_the_network_count_as_alike() {
        // Of the whole address the first has 127 bits in common with it, the last 124.
        assert_eq!(chosen(&[("2001:db8::8", 0), ("2001:db8::2", 0)], "2001:db8::9"), "2001:db8::2");
    }
}
