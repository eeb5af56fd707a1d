//! Routes: where Linux would send a packet, and how.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Netlink, NetlinkError};

/// How Linux would send to a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The interface it leaves by.
    pub interface: u32,
    /// The router to give it to; none: the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// The source address Linux would use.
    pub source: Option<IpAddr>,
    /// It is one of this machine's own addresses: Linux loops it back.
    pub local: bool,
    /// What the route says about the path; `None` where it says nothing.
    pub metrics: Metrics,
}

/// The metrics of a route (ip-route(8)); 0 where it sets none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// The longest IP packet, in bytes.
    pub mtu: u32,
    /// The maximum segment size to announce, in bytes.
    pub advmss: u32,
    /// The initial congestion window, in segments.
    pub initcwnd: u32,
    /// The initial receive window, in segments.
    pub initrwnd: u32,
    /// The smallest retransmission time-out, in milliseconds.
    pub rto_min: u32,
}

impl Route {
    /// Who the frame is addressed to on the link: the gateway, or the destination itself.
    pub fn next_hop(&self, destination: IpAddr) -> IpAddr {
        self.gateway.unwrap_or(destination)
    }
}

impl Netlink {
    /// The route to `destination`, for packets from `source` where it matters (policy
    /// routing). Unreachable destinations are refused.
    pub fn route(&mut self, destination: IpAddr, source: Option<IpAddr>) -> Result<Route, NetlinkError> {
        let mut question = RouteMessage::default();
        let (family, length, to) = asked(destination);
        question.header.address_family = family;
        question.header.destination_prefix_length = length;
        question.attributes.push(RouteAttribute::Destination(to));
        if let Some((_, length, from)) = source.map(asked) {
            question.header.source_prefix_length = length;
            question.attributes.push(RouteAttribute::Source(from));
        }
        self.ask(0, RouteNetlinkMessage::GetRoute(question))?
            .into_iter()
            .find_map(|answer| match answer {
                RouteNetlinkMessage::NewRoute(route) => Some(Route::of(route)),
                _ => None,
            })
            .ok_or_else(|| NetlinkError::Refused(io::Error::from_raw_os_error(libc::ENETUNREACH)))
    }
}

/// An address as the kernel is asked about it: family, bits, itself.
fn asked(address: IpAddr) -> (AddressFamily, u8, RouteAddress) {
    match address {
        IpAddr::V4(address) => (AddressFamily::Inet, 32, RouteAddress::Inet(address)),
        IpAddr::V6(address) => (AddressFamily::Inet6, 128, RouteAddress::Inet6(address)),
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

impl Route {
    fn of(message: RouteMessage) -> Self {
        let mut route = Self { local: message.header.kind == RouteType::Local, ..Self::default() };
        for attribute in message.attributes {
            match attribute {
                RouteAttribute::Oif(index) => route.interface = index,
                RouteAttribute::Gateway(address) => route.gateway = ip(&address),
                RouteAttribute::PrefSource(address) => route.source = ip(&address),
                RouteAttribute::Metrics(metrics) => route.metrics = Metrics::of(&metrics),
                _ => {}
            }
        }
        route
    }
}

impl Metrics {
    fn of(list: &[RouteMetric]) -> Self {
        let mut metrics = Self::default();
        for metric in list {
            match *metric {
                RouteMetric::Mtu(mtu) => metrics.mtu = mtu,
                RouteMetric::Advmss(bytes) => metrics.advmss = bytes,
                RouteMetric::InitCwnd(segments) => metrics.initcwnd = segments,
                RouteMetric::InitRwnd(segments) => metrics.initrwnd = segments,
                RouteMetric::RtoMin(millis) => metrics.rto_min = millis,
                _ => {}
            }
        }
        metrics
    }
}
