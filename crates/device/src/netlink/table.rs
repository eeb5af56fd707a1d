//! Linux's routing tables, which silk follows where it shares the interfaces (ip-route(8)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteNextHop,
    RouteNextHopFlags, RoutePreference, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Netlink, NetlinkError, Rules};

/// A route of one of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRoute {
    /// The table's number.
    pub table: u32,
    /// The network.
    pub network: IpAddr,
    /// The length of its prefix.
    pub prefix: u8,
    /// The lowest is taken of those for one network: the metric, then whom routers of IPv6 prefer.
    pub rank: (u32, u8),
    /// The address that packets are to carry.
    pub source: Option<IpAddr>,
    /// The largest IP packet that is to go there, bytes.
    pub mtu: Option<u32>,
    /// Where packets go.
    pub target: Target,
}

/// Where the packets of a route go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// By one of these interfaces, to the router that stands beside it, or to the destination itself; none: by a way
    /// that is Linux's alone (a tunnel of the route's own, a router of the other IP).
    Over(Vec<(u32, Option<IpAddr>)>),
    /// Nowhere: it is unreachable, prohibited or a black hole.
    Nowhere,
    /// As if the table had none: the rules behind the one that led to the table are asked.
    Beyond,
}

/// The routes of both IPs, and which of them count for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Which tables are asked.
    pub rules: Rules,
    /// The routes, in the order in which the kernel tells them.
    pub routes: Vec<TableRoute>,
    /// How many there were no room for.
    pub beyond: usize,
}

impl Netlink {
    /// Linux's tables that its rules ask, as many routes of each IP as `most`. Those for some services alone are not told, nor
    /// those of IPv6 that are for some sources alone, nor what the kernel remembers of single destinations.
    ///
    /// # Errors
    /// The kernel tells nothing.
    pub fn table(&mut self, most: usize) -> Result<Table, NetlinkError> {
        let mut table = Table { rules: self.rules()?, ..Table::default() };
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut room = most;
            self.routes_of(family, |message| {
                let Some(route) = TableRoute::of(message) else { return };
                match room {
                    _ if !table.rules.ask(route.table) => {}
                    0 => table.beyond += 1,
                    _ => {
                        room -= 1;
                        table.routes.push(route);
                    }
                }
            })?;
        }
        Ok(table)
    }

    fn routes_of(
        &mut self,
        family: AddressFamily,
        mut take: impl FnMut(RouteMessage),
    ) -> Result<(), NetlinkError> {
        let mut question = RouteMessage::default();
        question.header.address_family = family;
        self.dump_each(RouteNetlinkMessage::GetRoute(question), |answer| match answer {
            // For a family that it does not have (`ipv6.disable=1`) the kernel tells those of all others.
            RouteNetlinkMessage::NewRoute(message) if message.header.address_family == family => {
                take(message)
            }
            _ => {}
        })
    }
}

impl TableRoute {
    fn of(message: RouteMessage) -> Option<Self> {
        let RouteHeader { table, kind, tos, source_prefix_length, flags, .. } = message.header;
        let special = tos != 0 || source_prefix_length != 0;
        if special || flags.intersects(RouteFlags::Cloned | RouteFlags::Dead) {
            return None;
        }
        let everywhere = match message.header.address_family {
            AddressFamily::Inet => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            AddressFamily::Inet6 => IpAddr::from(Ipv6Addr::UNSPECIFIED),
            _ => return None,
        };
        let mut route = Self {
            table: table.into(),
            network: everywhere,
            prefix: message.header.destination_prefix_length,
            rank: (0, 1),
            source: None,
            mtu: None,
            target: Target::Over(Vec::new()),
        };
        let (mut hop, mut several) = (Some(Hop::default()), Vec::new());
        for attribute in message.attributes {
            match attribute {
                RouteAttribute::Table(full) => route.table = full,
                RouteAttribute::Destination(network) => route.network = ip(&network)?,
                RouteAttribute::Priority(metric) => route.rank.0 = metric,
                RouteAttribute::Preference(preference) => route.rank.1 = rank(preference),
                RouteAttribute::PrefSource(source) => route.source = ip(&source),
                RouteAttribute::Metrics(metrics) => route.mtu = metrics.iter().find_map(mtu),
                RouteAttribute::MultiPath(hops) => several = hops,
                other => hop = hop.and_then(|hop| hop.with(&other)),
            }
        }
        let several = several.into_iter().filter_map(Hop::of);
        route.target = match kind {
            RouteType::Unicast => {
                Target::Over(hop.into_iter().chain(several).filter_map(Hop::complete).collect())
            }
            RouteType::Unreachable | RouteType::Prohibit | RouteType::BlackHole => Target::Nowhere,
            RouteType::Throw => Target::Beyond,
            _ => return None,
        };
        Some(route)
    }
}

/// One of the ways of a route.
#[derive(Clone, Copy, Default)]
struct Hop {
    interface: Option<u32>,
    gateway: Option<IpAddr>,
}

impl Hop {
    fn of(hop: RouteNextHop) -> Option<Self> {
        let dead = hop.flags.contains(RouteNextHopFlags::Dead);
        let first = Self { interface: Some(hop.interface_index), gateway: None };
        hop.attributes.iter().try_fold(first, Self::with).filter(|_| !dead)
    }

    /// With what an attribute says; `None`: it makes the way Linux's alone.
    fn with(mut self, attribute: &RouteAttribute) -> Option<Self> {
        match attribute {
            RouteAttribute::Oif(index) => self.interface = Some(*index),
            RouteAttribute::Gateway(address) => self.gateway = Some(ip(address)?),
            RouteAttribute::Via(_) | RouteAttribute::Encap(_) => return None,
            _ => {}
        }
        Some(self)
    }

    fn complete(self) -> Option<(u32, Option<IpAddr>)> {
        Some((self.interface?, self.gateway))
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

fn mtu(metric: &RouteMetric) -> Option<u32> {
    if let RouteMetric::Mtu(mtu) = metric { Some(*mtu).filter(|mtu| *mtu > 0) } else { None }
}

/// The better the lower (RFC 4191 §2.1).
fn rank(preference: RoutePreference) -> u8 {
    match preference {
        RoutePreference::High => 0,
        RoutePreference::Low => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_that_linux_does_not_have_is_told_no_routes_of_others() {
        let (mut netlink, mut routes) = (Netlink::open().unwrap(), 0);
        netlink.routes_of(AddressFamily::Phonet, |_| routes += 1).unwrap();
        assert_eq!(routes, 0);
        netlink.routes_of(AddressFamily::Inet, |_| routes += 1).unwrap();
        assert_ne!(routes, 0);
    }
}
