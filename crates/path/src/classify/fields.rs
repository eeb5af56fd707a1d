//! Fields of packets as they stand on the wire, where a packet has them.

use core::net::{Ipv4Addr, Ipv6Addr};

/// A number of two bytes.
pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// An address of IPv4.
pub(super) fn ipv4(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    Some(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?))
}

/// An address of IPv6.
pub(super) fn ipv6(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    Some(Ipv6Addr::from(*bytes.get(at..)?.first_chunk::<16>()?))
}
