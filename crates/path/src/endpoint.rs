//! One side of a flow: an address of either family and a port. The standard library's
//! `SocketAddr` is half as long again, for a flow label and a scope that mean nothing here: a
//! domain has one link.

use core::fmt;
use core::net::{AddrParseError, IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use core::str::FromStr;

/// An address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    ip: IpAddr,
    port: u16,
}

impl Endpoint {
    /// The end at `port` of `ip`.
    #[inline]
    pub fn new(ip: impl Into<IpAddr>, port: u16) -> Self {
        Self { ip: ip.into(), port }
    }

    /// The end at `port` of an IPv4 address.
    #[inline]
    pub const fn v4(ip: Ipv4Addr, port: u16) -> Self {
        Self { ip: IpAddr::V4(ip), port }
    }

    /// The end at `port` of an IPv6 address.
    #[inline]
    pub const fn v6(ip: Ipv6Addr, port: u16) -> Self {
        Self { ip: IpAddr::V6(ip), port }
    }

    /// The address.
    #[inline]
    pub const fn ip(&self) -> IpAddr {
        self.ip
    }

    /// The port.
    #[inline]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether the address is one of IPv6.
    #[inline]
    pub const fn is_v6(&self) -> bool {
        self.ip.is_ipv6()
    }

    /// The address, when it is one of IPv4.
    #[inline]
    pub const fn ipv4(&self) -> Option<Ipv4Addr> {
        if let IpAddr::V4(ip) = self.ip { Some(ip) } else { None }
    }

    /// The address, when it is one of IPv6.
    #[inline]
    pub const fn ipv6(&self) -> Option<Ipv6Addr> {
        if let IpAddr::V6(ip) = self.ip { Some(ip) } else { None }
    }

    /// With another address.
    #[inline]
    pub fn set_ip(&mut self, ip: impl Into<IpAddr>) {
        self.ip = ip.into();
    }

    /// With another port.
    #[inline]
    pub const fn set_port(&mut self, port: u16) {
        self.port = port;
    }
}

impl From<SocketAddr> for Endpoint {
    #[inline]
    fn from(address: SocketAddr) -> Self {
        Self::new(address.ip(), address.port())
    }
}

impl From<SocketAddrV4> for Endpoint {
    #[inline]
    fn from(address: SocketAddrV4) -> Self {
        Self::v4(*address.ip(), address.port())
    }
}

impl From<Endpoint> for SocketAddr {
    #[inline]
    fn from(end: Endpoint) -> Self {
        Self::new(end.ip, end.port)
    }
}

impl FromStr for Endpoint {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        text.parse::<SocketAddr>().map(Self::from)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&SocketAddr::from(*self), f)
    }
}

impl PartialEq<SocketAddrV4> for Endpoint {
    #[inline]
    fn eq(&self, other: &SocketAddrV4) -> bool {
        *self == Self::from(*other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;

    #[test]
    fn an_end_is_small_and_reads_as_it_is_shown() {
        assert!(size_of::<Endpoint>() <= 20);
        for text in ["10.0.0.1:80", "[fd00::1]:80"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_family_is_the_addresses() {
        let (four, six) = (Endpoint::v4(Ipv4Addr::LOCALHOST, 1), Endpoint::v6(Ipv6Addr::LOCALHOST, 1));
        assert_eq!((four.ipv4(), four.ipv6(), four.is_v6()), (Some(Ipv4Addr::LOCALHOST), None, false));
        assert_eq!((six.ipv4(), six.ipv6(), six.is_v6()), (None, Some(Ipv6Addr::LOCALHOST), true));
    }
}
