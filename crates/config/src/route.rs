//! `[[device.route]]`: networks beyond routers of their own, where silk has an address of its own.

use crate::address::{Network, Prefix};
use crate::read::{Placed, Section};
use std::net::{IpAddr, Ipv6Addr};

/// A way to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The network.
    pub to: Prefix,
    /// The router on the link; `None`: the network is on the link itself.
    pub via: Option<IpAddr>,
}

/// One of the list, with the place of its `via`; `None`: it does not say where to.
pub(crate) fn read(mut section: Section<'_, '_>) -> Option<Placed<Route>> {
    let to = section.placed::<Prefix>("to");
    let via = section.placed::<IpAddr>("via");
    section.require("to", "say which network: `to = \"10.8.0.0/16\"`");
    if let (Some(to), Some(via)) = (&to, &via)
        && to.value.address().is_ipv6() != via.value.is_ipv6()
    {
        section.notes.fault(via.span.clone(), "a network is reached by a router of its own IP".to_owned());
    }
    let span = section.span_of("via");
    section.finish();
    Some(Placed { value: Route { to: to?.value, via: via.map(|via| via.value) }, span })
}

/// What keeps silk, which has these addresses, from reaching a router; `None`: nothing.
pub(crate) fn keeps_from(
    router: IpAddr,
    four: Option<Network>,
    six: Option<Network<Ipv6Addr>>,
) -> Option<String> {
    let ours = match router {
        IpAddr::V6(router) if router.is_unicast_link_local() => return None,
        IpAddr::V4(_) => four.map(|ours| (IpAddr::V4(ours.address), ours.prefix)),
        IpAddr::V6(_) => six.map(|ours| (IpAddr::V6(ours.address), ours.prefix)),
    };
    match ours {
        Some((ours, prefix)) if prefix.contains(router) && router != ours => None,
        Some((_, prefix)) => Some(format!("{router} cannot be reached directly from {prefix}")),
        None => Some(format!("{router} cannot be reached directly: silk has no address of its IP")),
    }
}
