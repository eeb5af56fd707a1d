//! Where a socket is to have its port, and whom it lets have that beside it.

use silk_path::Sharing;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// At which IPs a socket has its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// IPv4.
    pub four: bool,
    /// IPv6.
    pub six: bool,
}

impl Sides {
    /// Both.
    pub const BOTH: Self = Self { four: true, six: true };

    /// That of an address.
    pub const fn of(address: IpAddr) -> Self {
        Self { four: address.is_ipv4(), six: address.is_ipv6() }
    }

    /// Whether it is one of them, as "is it IPv6".
    pub const fn has(self, six: bool) -> bool {
        if six { self.six } else { self.four }
    }

    /// Each, as "is it IPv6".
    pub fn each(self) -> impl Iterator<Item = bool> {
        [(self.four, false), (self.six, true)].into_iter().filter(|(has, _)| *has).map(|(_, six)| six)
    }
}

/// Where Linux is asked to reserve a port: at one address of its own, or at any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The address.
    pub address: IpAddr,
    /// What it stands for: of `::`, both IPs or IPv6 alone.
    pub sides: Sides,
}

impl From<IpAddr> for Place {
    fn from(address: IpAddr) -> Self {
        Self { address, sides: Sides::of(address) }
    }
}

/// Which sockets one lets have its port beside it: those that want this too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// `SO_REUSEPORT`: they share those who come, if they are one user's. Another's could take what is not for him.
    pub port: bool,
    /// `SO_REUSEADDR`: of streams all may be bound as long as none listens; of datagrams, the latest hears whom no
    /// other is connected to.
    pub address: bool,
    /// Whose it is, as far as the kernel says: the real user of who binds it, where Linux asks whose socket it was at first.
    pub user: Option<u32>,
}

impl From<bool> for Share {
    fn from(port: bool) -> Self {
        Self { port, ..Self::default() }
    }
}

impl Share {
    /// What both want.
    pub fn and(self, other: Self) -> Self {
        let port = self.port && other.port && self.user == other.user;
        Self { port, address: self.address && other.address, user: self.user }
    }

    /// How sockets share a port then.
    pub fn how(self) -> Option<Sharing> {
        match self {
            Self { port: true, .. } => Some(Sharing::Peers),
            Self { address: true, .. } => Some(Sharing::Latest),
            _ => None,
        }
    }
}

/// Every address of the same IP.
pub fn any_like(address: IpAddr) -> IpAddr {
    if address.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}
