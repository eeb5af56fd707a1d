//! How an interface stands that Linux shares: the addresses that it has now, and the routers beyond it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Netlink, NetlinkError};

/// Addresses of an interface and the default routes over it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its addresses with the lengths of their networks' prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The router of the default route of IPv4, if that leads over the interface.
    pub gateway: Option<Ipv4Addr>,
    /// The same of IPv6.
    pub gateway6: Option<Ipv6Addr>,
}

/// Addresses far away, one of each family: they show where the default routes lead. Nothing is sent there
/// (RFC 5737, RFC 3849).
const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

impl Netlink {
    /// How the interface with this index stands.
    ///
    /// # Errors
    /// Its addresses cannot be asked for.
    pub fn standing(&mut self, interface: u32) -> Result<Standing, NetlinkError> {
        let addresses = self.addresses(interface)?.iter().map(|l| (l.address, l.prefix)).collect();
        let mut beyond = |far: IpAddr| {
            let route = self.route(far, None).ok();
            route.filter(|route| route.interface == interface).and_then(|route| route.gateway)
        };
        let (four, six) = (beyond(FAR.into()), beyond(FAR6.into()));
        Ok(Standing {
            addresses,
            gateway: four.and_then(|router| if let IpAddr::V4(four) = router { Some(four) } else { None }),
            gateway6: six.and_then(|router| if let IpAddr::V6(six) = router { Some(six) } else { None }),
        })
    }
}
