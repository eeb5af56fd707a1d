//! What is so of the addresses of one IP and not of the other's.

use super::address::{Address, Own};
use super::source;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use silk_wire::{ipv4, ipv6};

impl Address for Ipv4Addr {
    const BITS: u8 = 32;
    const LEAST_MTU: u16 = ipv4::MIN_MTU;
    const UNSPECIFIED: Self = Self::UNSPECIFIED;
    fn bits(self) -> u128 {
        self.to_bits().into()
    }
    fn is_link_local(self) -> bool {
        false
    }
    fn of(address: IpAddr) -> Option<Self> {
        if let IpAddr::V4(address) = address { Some(address) } else { None }
    }
    fn source(ours: &[Own<Self>], link: u8, hop: Self, _: Self) -> Option<Self> {
        source::beside(ours, link, hop)
    }
}

impl Address for Ipv6Addr {
    const BITS: u8 = 128;
    const LEAST_MTU: u16 = ipv6::MIN_MTU;
    const UNSPECIFIED: Self = Self::UNSPECIFIED;
    fn bits(self) -> u128 {
        self.to_bits()
    }
    fn is_link_local(self) -> bool {
        self.is_unicast_link_local()
    }
    fn of(address: IpAddr) -> Option<Self> {
        if let IpAddr::V6(address) = address { Some(address) } else { None }
    }
    fn source(ours: &[Own<Self>], link: u8, _: Self, destination: Self) -> Option<Self> {
        source::nearest(ours, link, destination)
    }
}
