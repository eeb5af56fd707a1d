//! What modules must know of a link, whoever knows it: Linux, where it shares the interface, or the
//! configuration, where the address is a program's own.

use crate::join::random;
use silk_device::netlink::Standing;
use silk_path::classify::layout::{ADDRESSES, ADDRESSES6};

/// The largest message a Linux device cuts up itself, bytes with headers.
pub const GSO: u32 = 65_000;

/// How a link stands, as far as it can be served: of addresses of IPv6 as many as the classifier holds, and none
/// without `six`.
pub fn served(standing: Standing, six: bool) -> Standing {
    let all = standing.addresses.into_iter();
    let (mut four, mut wide): (Vec<_>, Vec<_>) = all.partition(|(address, _)| address.is_ipv4());
    wide.truncate(if six { ADDRESSES6.min(ADDRESSES.saturating_sub(four.len())) } else { 0 });
    four.append(&mut wide);
    Standing { addresses: four, ..standing }
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
    fn a_link_address_of_ones_own_is_one_hosts_and_no_makers() {
        assert_eq!(own_mac()[0] & 3, 2);
    }
}
