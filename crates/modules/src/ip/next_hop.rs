//! Whom a path's packets are handed to, and the Ethernet address of that: asked of the
//! resolver, used for a while, and until there is an answer, where the peer's last packet came
//! from.

use super::{Address, Route, Routes};
use crate::Device;
use core::net::IpAddr;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{Attr, Cx, Meta, Resolution, Station};
use silk_wire::MacAddr;

/// How long a resolved address is used before the resolver is asked again.
const FRESH: Duration = Duration::from_secs(1);

/// Whom packets to a destination are handed to.
pub(crate) enum Hop {
    /// Nobody need be asked: a group of stations, or this host itself.
    Known(Station),
    /// The router, or the destination itself, beside this device.
    Station(u8, IpAddr),
}

impl Hop {
    /// By this route to `destination`.
    pub fn by<A: Address>(route: &Route<A>, destination: A, routes: &Routes<A>) -> Self {
        match routes.is_itself(route.link) {
            true => Self::Known(Station { device: route.link, address: Device::ITSELF }),
            false => Self::Station(route.link, route.next_hop(destination).into()),
        }
    }
}

/// The next hop of one path.
#[derive(Default)]
pub(crate) struct NextHop {
    /// The router, or the peer itself, as the routes have it now or last had it, with the device it is beside;
    /// only with a fixed peer, else it is found for each packet.
    pub fixed: Option<(u8, IpAddr)>,
    /// Where it is, good until then.
    pub link: Station,
    /// Until when `link` is used; only with a fixed peer.
    pub until: Instant,
    /// Where the fixed peer's last packet came from.
    pub seen: Station,
}

impl NextHop {
    /// The station of the next hop, which `find` knows, asked for at `service` of the
    /// running stage's module where it is not fresh. `meta` says where the message that is
    /// answered came from, if one is.
    pub fn resolve(
        &mut self,
        cx: &mut Cx<'_, '_>,
        service: u8,
        meta: &Meta,
        find: impl FnOnce(&mut Cx<'_, '_>) -> Option<Hop>,
    ) -> Result<Station, Resolution> {
        let now = cx.now();
        if self.fixed.is_some() && now < self.until {
            return Ok(self.link);
        }
        let found = match find(cx) {
            Some(Hop::Known(link)) => return Ok(link),
            Some(Hop::Station(device, address)) => Some((device, address)),
            None => None,
        };
        let hop = found.or(self.fixed).ok_or(Resolution::Failed)?;
        if let Some(fixed) = &mut self.fixed {
            if fixed.0 != hop.0 {
                // For whoever looks; where there is no room for it, it is not seen.
                let _ = cx.attrs_mut().set(Attr::Device(hop.0));
            }
            *fixed = hop;
        }
        match ask(cx, service, hop, meta) {
            Resolution::Known(address) => {
                let link = Station { device: hop.0, address };
                (self.link, self.until) = (link, now + FRESH);
                Ok(link)
            }
            // An answer goes back where the question came from, so that nobody can hold up
            // strangers by asking for neighbours that are not there.
            Resolution::Pending if self.seen.is_known() => Ok(self.seen),
            Resolution::Pending if meta.link.is_known() => Ok(meta.link),
            other => Err(other),
        }
    }

    /// The resolver has news: it is asked again.
    pub fn forget(&mut self) {
        self.until = Instant::ZERO;
    }
}

fn ask(cx: &mut Cx<'_, '_>, service: u8, hop: (u8, IpAddr), meta: &Meta) -> Resolution {
    let (now, path) = (cx.now(), cx.path());
    match cx.linked(service) {
        Some((module, port)) => match module.resolver() {
            Some(resolver) => resolver.resolve(now, hop, path, port),
            None => Resolution::Failed,
        },
        // Nobody to ask: to the sender of what is answered, or to everyone.
        None if meta.link.is_known() => Resolution::Known(meta.link.address),
        None => Resolution::Known(MacAddr::BROADCAST.0),
    }
}
