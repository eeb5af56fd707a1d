//! What modules must know of a link, whoever knows it: Linux, where it shares the interface, or the
//! configuration, where the address is a program's own.

use crate::join::random;
use silk_device::netlink::Standing;
use silk_path::classify::layout::{ADDRESSES, ADDRESSES6};

/// The largest message a Linux device cuts up itself, bytes with headers.
pub const GSO: u32 = 65_000;

/// How a link stands, as far as it can be served: of addresses of IPv6 as many as the classifier holds, and none
/// without `six`.
pub fn served(mut standing: Standing, six: bool) -> Standing {
    serve_all(std::slice::from_mut(&mut standing), six);
    standing
}

/// The same of several links, whose addresses the classifier holds together: what there is no room for is left
/// out, on the last link first.
pub fn serve_all(standings: &mut [Standing], six: bool) {
    let four = standings.iter().flat_map(|link| &link.addresses).filter(|(address, _)| address.is_ipv4());
    let mut room = if six { ADDRESSES6.min(ADDRESSES.saturating_sub(four.count())) } else { 0 };
    for link in standings {
        let all = std::mem::take(&mut link.addresses).into_iter();
        let (four, mut wide): (Vec<_>, Vec<_>) = all.partition(|(address, _)| address.is_ipv4());
        wide.truncate(room);
        room -= wide.len();
        link.addresses = [four, wide].concat();
    }
}

/// A locally administered address of a link.
pub fn own_mac() -> [u8; 6] {
    let [_, _, a, b, c, d, e, _] = random().to_be_bytes();
    [2, a, b, c, d, e]
}

/// Words for the classifier's tables where no device has some: a flow table of so many buckets.
///
/// # Errors
/// There is no memory.
pub fn tables_in_memory(buckets: u32) -> Result<silk_device::Tables, String> {
    silk_device::Tables::in_memory(buckets).map_err(|error| format!("no memory for the classifier: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn all_addresses_of_ipv4_are_served_and_of_ipv6_as_many_as_there_is_room_for() {
        let four: Vec<_> = (1..=12).map(|n| (IpAddr::from([10, 0, 0, n]), 24)).collect();
        let six: Vec<_> = (1..=12).map(|n| (IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, n]), 64)).collect();
        let of = |addresses: &[(IpAddr, u8)], six| {
            let addresses = addresses.to_vec();
            served(Standing { addresses, ..Standing::default() }, six).addresses
        };
        let both = [&six[..], &four[..]].concat();
        assert_eq!(of(&both, false), four);
        let room = ADDRESSES6.min(ADDRESSES - four.len());
        assert_eq!(of(&both, true), [&four[..], &six[..room]].concat());
        assert_eq!(of(&six, true), six[..ADDRESSES6.min(12)]);
    }

    #[test]
    fn several_links_share_the_room() {
        let six = |n: u16, count: u16| -> Vec<(IpAddr, u8)> {
            (1..=count).map(|m| (IpAddr::from([0xfd00, n, 0, 0, 0, 0, 0, m]), 64)).collect()
        };
        let mut links = [six(1, 5), six(2, 5)].map(|addresses| Standing { addresses, ..Standing::default() });
        serve_all(&mut links, true);
        assert_eq!(links.map(|link| link.addresses), [six(1, 5), six(2, ADDRESSES6 as u16 - 5)]);
    }

    #[test]
    fn a_link_address_of_ones_own_is_one_hosts_and_no_makers() {
        assert_eq!(own_mac()[0] & 3, 2);
    }
}
