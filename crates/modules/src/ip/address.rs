//! Addresses of either IP, as far as routes look at them, and those of ours.

use core::net::{IpAddr, Ipv4Addr};

/// An address of one family.
pub trait Address: Copy + Ord + Into<IpAddr> {
    /// Bits of an address.
    const BITS: u8;
    /// The least MTU of a link, bytes.
    const LEAST_MTU: u16;
    /// No address.
    const UNSPECIFIED: Self;
    /// The address as a number.
    fn bits(self) -> u128;
    /// Whether it means something on its own link alone (RFC 4291 §2.5.6).
    fn is_link_local(self) -> bool;
    /// The address, where it is of this family.
    fn of(address: IpAddr) -> Option<Self>;
    /// Which of our addresses packets to `destination` carry that are handed to `hop` on `link`.
    fn source(ours: &[Own<Self>], link: u8, hop: Self, destination: Self) -> Option<Self>;
}

/// Addresses no packet for a host can come from (RFC 1122 §3.2.1.3).
pub(crate) fn impossible_source(source: Ipv4Addr) -> bool {
    let first = source.octets()[0];
    source.is_multicast() || source.is_loopback() || first == 0 || first >= 240
}

/// The bits of an address that a prefix names.
pub(super) fn network<A: Address>(address: A, prefix: u8) -> u128 {
    address.bits().checked_shr(u32::from(A::BITS - prefix.min(A::BITS))).unwrap_or(0)
}

/// An address of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own<A> {
    /// The address.
    pub address: A,
    /// The length of its network's prefix.
    pub prefix: u8,
    /// The link that it is on.
    pub link: u8,
    /// Nothing new is to be begun from it, where there is another.
    pub deprecated: bool,
}
