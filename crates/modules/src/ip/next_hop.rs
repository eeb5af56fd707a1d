//! Whom a path's packets are handed to, and the Ethernet address of that: asked of the
//! resolver, used for a while, and until there is an answer, where the peer's last packet came
//! from.

use super::redirects::Redirects;
use super::{Address, Routes, Whither};
use crate::Device;
use core::net::IpAddr;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{Attr, Create, CreateError, Cx, Endpoint, Meta, NOWHERE, Resolution, Station};
use silk_wire::MacAddr;

/// How long a resolved address is used before the resolver is asked again.
const FRESH: Duration = Duration::from_secs(1);

/// Whom packets to a destination are handed to.
pub(crate) enum Hop {
    /// Nobody need be asked: a group of stations, or this host itself.
    Known(Station),
    /// The router, or the destination itself, beside this device.
    Station(u8, IpAddr),
    /// Linux would send over an interface that is none of silk's: what is answered goes back where it came from.
    Back,
    /// Nobody is to send there.
    Barred,
    /// There is no way.
    Lost,
}

impl Hop {
    /// What the routes say of packets from `source` to `destination`, and routers who know better.
    pub fn to<A: Address>(
        (routes, redirects): (&Routes<A>, &Redirects<A>),
        now: Instant,
        (source, destination): (A, A),
    ) -> Self {
        match routes.whither(destination, Some(source)) {
            Whither::Over(route) if routes.is_itself(route.link) => {
                Self::Known(Station { device: route.link, address: Device::ITSELF })
            }
            Whither::Over(route) => {
                let better = route.gateway.and_then(|_| redirects.of(now, destination));
                Self::Station(route.link, better.unwrap_or(route.next_hop(destination)).into())
            }
            Whither::Elsewhere => Self::Back,
            Whither::Nowhere => Self::Barred,
            Whither::Unknown => Self::Lost,
        }
    }
}

/// Leads a path that is created to its one peer: which way, and from which address where it has none yet. The path of
/// a connection that was accepted may do without a way: it answers.
pub(crate) fn route<A: Address>(
    create: &mut Create<'_>,
    routes: &Routes<A>,
    remote: A,
) -> Result<(), CreateError> {
    let local = create.attrs.local().unwrap_or(NOWHERE);
    match routes.whither(remote, A::of(local.ip())) {
        Whither::Over(route) => {
            create.set(Attr::NextHop(route.next_hop(remote).into()))?;
            create.set(Attr::Device(route.link))?;
        }
        Whither::Elsewhere if create.attrs.handshake().is_some() => {}
        Whither::Elsewhere | Whither::Nowhere | Whither::Unknown => {
            return Err(CreateError::NoRoute(remote.into()));
        }
    }
    if local.ip().is_unspecified() {
        let source = routes.source_to(remote).ok_or(CreateError::NoRoute(remote.into()))?;
        create.set(Attr::Local(Endpoint::new(source.into(), local.port())))?;
    }
    Ok(())
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
        find: impl FnOnce(&mut Cx<'_, '_>) -> Hop,
    ) -> Result<Station, Resolution> {
        let now = cx.now();
        if self.fixed.is_some() && now < self.until {
            return Ok(self.link);
        }
        let hop = match find(cx) {
            Hop::Known(link) => return Ok(link),
            Hop::Station(device, address) => (device, address),
            Hop::Back => return self.back(meta).ok_or(Resolution::Failed),
            Hop::Barred => return Err(Resolution::Failed),
            Hop::Lost => self.fixed.ok_or(Resolution::Failed)?,
        };
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
            waits @ (Resolution::Pending | Resolution::Crowded) => self.back(meta).ok_or(waits),
            Resolution::Failed => Err(Resolution::Failed),
        }
    }

    /// Where the path's peer was seen last, or who is answered.
    fn back(&self, meta: &Meta) -> Option<Station> {
        [self.seen, meta.link].into_iter().find(|station| station.is_known())
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
