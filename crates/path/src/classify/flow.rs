//! What a flow is known by: its protocol, addresses and ports, and the words that stand for them in the table.

use super::fingerprint::fingerprint;
use super::layout::VALUE_UDP;
use crate::Endpoint;
use core::net::{IpAddr, Ipv6Addr, SocketAddrV4};

/// A protocol with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// What a flow over IPv4 is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Our side.
    pub local: SocketAddrV4,
    /// The other side.
    pub remote: SocketAddrV4,
}

/// What a flow over either IP is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Between {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Our side.
    pub local: Endpoint,
    /// The other side, of the same family.
    pub remote: Endpoint,
}

/// What names a flow in the table.
pub trait Key {
    /// Word 0, and what word 1 must say beside the valid bit. `secret` keys the names of flows
    /// over IPv6.
    fn words(&self, secret: [u64; 2]) -> (u64, u64);
}

impl Protocol {
    /// That of IP's number.
    pub(super) fn numbered(number: u8) -> Option<Self> {
        match number {
            6 => Some(Self::Tcp),
            17 => Some(Self::Udp),
            _ => None,
        }
    }

    fn bit(self) -> u64 {
        if self == Self::Udp { u64::from(VALUE_UDP) << 32 } else { 0 }
    }
}

impl Key for Flow {
    #[inline]
    fn words(&self, _: [u64; 2]) -> (u64, u64) {
        let address = |side: &SocketAddrV4| u64::from(u32::from_le_bytes(side.ip().octets()));
        let port = |side: &SocketAddrV4| u64::from(side.port().swap_bytes());
        let key = address(&self.remote) | port(&self.remote) << 32 | port(&self.local) << 48;
        (key, address(&self.local) | self.protocol.bit())
    }
}

impl Key for Between {
    fn words(&self, secret: [u64; 2]) -> (u64, u64) {
        if let (IpAddr::V4(local), IpAddr::V4(remote)) = (self.local.ip(), self.remote.ip()) {
            let local = SocketAddrV4::new(local, self.local.port());
            let remote = SocketAddrV4::new(remote, self.remote.port());
            return Flow { protocol: self.protocol, local, remote }.words(secret);
        }
        let wide = |end: &Endpoint| match end.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let port = |end: &Endpoint| u64::from(end.port().swap_bytes());
        let ([a, b], [c, d]) = (halves(wide(&self.remote)), halves(wide(&self.local)));
        let ports = port(&self.remote) | port(&self.local) << 16;
        let (key, want) = fingerprint(secret, [a, b, c, d, ports]);
        (key, u64::from(want) | self.protocol.bit())
    }
}

/// The two halves of an address as they stand on the wire, loaded little-endian.
pub(super) fn halves(address: Ipv6Addr) -> [u64; 2] {
    let octets = address.octets();
    [0, 8].map(|from| u64::from_le_bytes(core::array::from_fn(|n| octets[from + n])))
}
