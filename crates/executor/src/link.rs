//! What modules must know of a link, from whoever knows it: Linux, where it shares the interface, or the
//! configuration, where the address is a program's own.

use crate::join::random;
use silk_device::netlink::{Interface, Netlink, NetlinkError};
use silk_path::classify::layout::{ADDRESSES, ADDRESSES6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The largest message a Linux device cuts up itself, bytes with headers.
pub const GSO: u32 = 65_000;

/// The addresses that a link has and the routers behind which everything else is.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// The addresses with their prefixes' lengths.
    pub own: Vec<(IpAddr, u8)>,
    /// The router for everything beyond over IPv4.
    pub gateway: Option<Ipv4Addr>,
    /// The router for everything beyond over IPv6.
    pub gateway6: Option<Ipv6Addr>,
}

/// What Linux has on an interface, as far as it can be [`served`].
///
/// # Errors
/// The kernel does not tell.
pub fn of_linux(interface: &Interface, six: bool) -> Result<Addresses, NetlinkError> {
    let mut kernel = Netlink::open()?;
    let all = kernel.addresses(interface.index)?;
    let own = served(all.iter().map(|local| (local.address, local.prefix)), six);
    // Any far address shows where the default route leads; nothing is sent there.
    let mut beyond = |far: IpAddr| {
        let route = kernel.route(far, None).ok().filter(|route| route.interface == interface.index);
        route.and_then(|route| route.gateway)
    };
    let gateway = match beyond(Ipv4Addr::new(192, 0, 2, 1).into()) {
        Some(IpAddr::V4(gateway)) => Some(gateway),
        _ => None,
    };
    let gateway6 = match beyond(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()) {
        Some(IpAddr::V6(gateway)) => Some(gateway),
        _ => None,
    };
    Ok(Addresses { own, gateway, gateway6 })
}

/// Of these addresses those that can be served: of IPv6 as many as the classifier holds, and none without `six`.
pub fn served(all: impl Iterator<Item = (IpAddr, u8)>, six: bool) -> Vec<(IpAddr, u8)> {
    let (mut four, mut wide): (Vec<_>, Vec<_>) = all.partition(|(address, _)| address.is_ipv4());
    wide.truncate(if six { ADDRESSES6.min(ADDRESSES.saturating_sub(four.len())) } else { 0 });
    four.append(&mut wide);
    four
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

    #[test]
    fn all_addresses_of_ipv4_are_served_and_of_ipv6_as_many_as_there_is_room_for() {
        let four: Vec<_> = (1..=12).map(|n| (IpAddr::from([10, 0, 0, n]), 24)).collect();
        let six: Vec<_> = (1..=12).map(|n| (IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, n]), 64)).collect();
        let both = || six.iter().chain(&four).copied();
        assert_eq!(served(both(), false), four);
        let room = ADDRESSES6.min(ADDRESSES - four.len());
        assert_eq!(served(both(), true), [&four[..], &six[..room]].concat());
        assert_eq!(served(six.iter().copied(), true), six[..ADDRESSES6.min(12)]);
    }

    #[test]
    fn a_link_address_of_ones_own_is_one_hosts_and_no_makers() {
        assert_eq!(own_mac()[0] & 3, 2);
    }
}
