//! How the links of a host stand: its addresses there, and the ways that lead over them or elsewhere, as Linux, a
//! configuration or routers tell. Of both IPs together, for that is how they are told;
//! [`Routes`](crate::ip::Routes) are what a module of IP makes of it.

use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How the links of a host stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Our addresses of either IP on the link of each device, with the lengths of their networks' prefixes.
    pub links: Vec<Vec<(IpAddr, u8)>>,
    /// Those of them that nothing new is to be begun from, where there is another (RFC 4862 §5.5.4).
    pub deprecated: Vec<IpAddr>,
    /// Addresses that were ours and that another station has: nothing is sent from them (RFC 4862 §5.4.5).
    pub duplicate: Vec<IpAddr>,
    /// Where packets go; of equally long prefixes the better way first.
    pub ways: Vec<Way>,
    /// Where those go that carry one of these addresses of ours: for them other ways count.
    pub from: Vec<(IpAddr, Vec<Way>)>,
    /// What the narrowest of links takes that became narrower, bytes of IP: as much counts where no way leads (groups).
    pub narrowest: Option<u16>,
}

/// The way to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Way {
    /// The network.
    pub network: IpAddr,
    /// The length of its prefix.
    pub prefix: u8,
    /// Where that is.
    pub leads: Leads,
}

/// Where a way leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leads {
    /// Over the device with this number.
    Over {
        /// The device.
        link: u8,
        /// The router; `None`: the network is on the link.
        gateway: Option<IpAddr>,
        /// The address that our packets carry; `None`: one that fits.
        source: Option<IpAddr>,
        /// The largest IP packet that is to go there, bytes; `None`: what the link takes.
        mtu: Option<u16>,
    },
    /// Over another interface of the machine: it is Linux's to send there.
    Elsewhere,
    /// Nobody is to send there: what would go there is not sent.
    Nowhere,
}

impl fmt::Display for Way {
    /// As a sentence: `10.8.0.0/16 is reached by 10.0.0.9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} is ", self.network, self.prefix)?;
        match self.leads {
            Leads::Over { gateway: Some(router), .. } => write!(f, "reached by {router}"),
            Leads::Over { gateway: None, .. } => write!(f, "on the link"),
            Leads::Elsewhere => write!(f, "beyond an interface of Linux's"),
            Leads::Nowhere => write!(f, "not to be sent to"),
        }
    }
}

impl Way {
    /// The network of `address` on the link of a device.
    pub const fn beside(link: u8, address: IpAddr, prefix: u8) -> Self {
        Self { network: address, prefix, leads: Leads::Over { link, gateway: None, source: None, mtu: None } }
    }

    /// To a network by a router on the link of a device.
    pub const fn by(link: u8, gateway: IpAddr, (network, prefix): (IpAddr, u8)) -> Self {
        Self { network, prefix, leads: Leads::Over { link, gateway: Some(gateway), source: None, mtu: None } }
    }

    /// To everywhere by a router on the link of a device.
    pub const fn rest(link: u8, gateway: IpAddr) -> Self {
        let all = match gateway {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Self::by(link, gateway, (all, 0))
    }
}

impl Standing {
    /// One link with these addresses of ours, whose networks are on it, and these routers to everywhere.
    pub fn of(addresses: &[(IpAddr, u8)], routers: impl IntoIterator<Item = IpAddr>) -> Self {
        Self::default().and(addresses, routers)
    }

    /// The same with one link more.
    #[must_use]
    pub fn and(mut self, addresses: &[(IpAddr, u8)], routers: impl IntoIterator<Item = IpAddr>) -> Self {
        let link = self.links.len() as u8;
        self.links.push(Vec::new());
        addresses.iter().for_each(|address| self.add(link, *address));
        self.ways.extend(routers.into_iter().map(|router| Way::rest(link, router)));
        self
    }

    /// Adds an address of ours on a link, and its network, which is there.
    pub fn add(&mut self, link: u8, (address, prefix): (IpAddr, u8)) {
        if let Some(addresses) = self.links.get_mut(usize::from(link)) {
            addresses.push((address, prefix));
            self.ways.push(Way::beside(link, address, prefix));
        }
    }

    /// The link of a device takes IP packets of so many bytes at most.
    pub fn narrow(&mut self, of: u8, most: u16) {
        self.narrowest = Some(self.narrowest.map_or(most, |narrowest| narrowest.min(most)));
        for way in self.ways.iter_mut().chain(self.from.iter_mut().flat_map(|(_, ways)| ways)) {
            if let Leads::Over { link, mtu, .. } = &mut way.leads
                && *link == of
            {
                *mtu = Some(mtu.map_or(most, |mtu| mtu.min(most)));
            }
        }
    }

    /// Another station has these: they are not ours any more.
    pub fn give_up(&mut self, duplicate: &[IpAddr]) {
        self.links.iter_mut().for_each(|link| link.retain(|(address, _)| !duplicate.contains(address)));
        self.duplicate = duplicate.to_vec();
    }

    /// Our addresses on all links, with the lengths of their networks' prefixes.
    pub fn addresses(&self) -> impl DoubleEndedIterator<Item = (IpAddr, u8)> + '_ {
        self.links.iter().flatten().copied()
    }

    /// Whether some way leads to every address, of IPv4 or of IPv6 (`six`).
    pub fn leads_everywhere(&self, six: bool) -> bool {
        let mut ways = self.ways.iter().filter(|way| way.network.is_ipv6() == six);
        let all = ways.clone().find(|way| way.prefix == 0);
        // The better of two to everywhere comes first.
        all.is_some_and(|way| way.leads != Leads::Nowhere)
            && ways.all(|way| way.prefix == 0 || way.leads != Leads::Nowhere)
    }

    /// Who leads to everywhere, of IPv4 or of IPv6 (`six`); `None`: nobody on our links.
    pub fn router(&self, six: bool) -> Option<IpAddr> {
        let mut everywhere = self.ways.iter().filter(|way| way.prefix == 0 && way.network.is_ipv6() == six);
        match everywhere.next()?.leads {
            Leads::Over { gateway, .. } => gateway,
            Leads::Elsewhere | Leads::Nowhere => None,
        }
    }
}
