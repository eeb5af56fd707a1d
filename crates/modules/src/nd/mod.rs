//! ND: finds the Ethernet address of an IPv6 neighbour (RFC 4861 §7). It asks, answers, and keeps
//! what it learnt for a while, or, where Linux shares the interface, has the addresses told. Only
//! what no router can have forwarded is read (hop limit 255), and it must never learn from what
//! was not asked for: that only updates an entry that is in use. Redirects (RFC 4861 §8) are heeded where
//! they are to be, and ignored elsewhere, as §8.3 allows ([`Request::Redirected`]). Where silk owns the interface it asks first whether somebody else has its
//! addresses (RFC 4862 §5.4), using them meanwhile as optimistic ones (RFC 4429): what it says of such replaces nothing that
//! others know, and nobody is asked from one. One that somebody else has is given up, and whoever runs the graph told
//! ([`Request::Duplicate`]). What routers tell it heeds where it is
//! to: then it says which addresses it makes of their prefixes, who leads beyond the link, and how far
//! and how wide what is sent may be, to whoever runs the graph ([`Request::Routers`]). A router that does not answer leads only where no
//! other does (RFC 4861 §6.3.6), until it answers again.
//!
//! # Configuration
//! `address` — our addresses, a list; default: the interface's.
//! `told` — addresses are told by whoever runs the graph instead of asked for on the link;
//! default: as the interface is shared with Linux or not.
//! `routers` — what routers advertise is heeded; default: as the device is configured.
//! `redirects` — what they say of better first hops is; default: as the device is configured.
//!
//! # Services
//! `res` (resolve, provider): IP6. `down` (net, needed): ETH.
//!
//! # Attributes
//! Sets `ProtId` to 0x86dd and `Groups` on its own path, which takes every message of neighbour
//! discovery.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "nd"
//! kind = "nd"
//!
//! [[link]]
//! from = "nd.down"
//! to = "eth0.up"
//! ```
//!
//! # See also
//! [`ip6`](crate::ip6), whose addresses it translates; [`arp`](crate::arp), which does so for
//! IPv4; [`eth`](crate::eth) below.

mod routers;
mod stage;

use crate::cache::CacheLimits;
use crate::neighbours::Neighbours;
use crate::ours::{Manner, Ours};
use alloc::boxed::Box;
use core::net::{IpAddr, Ipv6Addr};
use routers::Routers;
use silk_instant::Instant;
use silk_path::service::{NET, RESOLVER, Service};
use silk_path::{
    Attr, Create, CreateError, Module, Next, Parameter, ParameterKind, Parcel, PathId, Port, Request,
    Resolution, Resolve, Step,
};
use silk_wire::{MacAddr, eth};
use stage::NdStage;

/// Its services.
pub const SERVICES: &[Service] = &[Service::offered("res", RESOLVER), Service::needed("down", NET)];
const DOWN: u8 = 1;
/// How it is asked whether our addresses are ours alone (RFC 4862 §5.1: DupAddrDetectTransmits).
const MANNER: Manner = Manner { questions: 1, announcements: 0 };

/// Its parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "address", kind: ParameterKind::List(&ParameterKind::Network), required: false },
    Parameter { name: "told", kind: ParameterKind::Flag, required: false },
    Parameter { name: "routers", kind: ParameterKind::Flag, required: false },
    Parameter { name: "redirects", kind: ParameterKind::Flag, required: false },
];

/// The module.
pub struct Nd {
    ours: Ours<Ipv6Addr>,
    neighbours: Neighbours<Ipv6Addr>,
    // What routers tell, where that is heeded.
    routers: Option<Routers>,
    // What they say of better first hops is passed on.
    redirects: bool,
}

impl Nd {
    /// The module with these addresses of ours; with `told`, it asks whoever runs the graph
    /// ([`Request::Resolve`]) instead of the link.
    pub fn new(addresses: &[Ipv6Addr], told: bool, limits: CacheLimits) -> Self {
        let ours = Ours::new(addresses, MANNER);
        Self { ours, neighbours: Neighbours::new(told, limits), routers: None, redirects: false }
    }

    /// The same, and it asks for routers and heeds what they advertise, where `heeds`.
    #[must_use]
    pub fn heeding_routers(self, heeds: bool) -> Self {
        Self { routers: heeds.then(Routers::new), ..self }
    }

    /// The same, and it passes on what routers say of better first hops, where it `heeds` that.
    #[must_use]
    pub fn heeding_redirects(self, heeds: bool) -> Self {
        Self { redirects: heeds, ..self }
    }

    /// Our addresses are these from now on. Of those that are new it is asked whether they are ours alone. (The
    /// groups through which they are asked for are known: they end as the link-local address does.) Where
    /// Linux shares the interface it minds them itself.
    pub fn become_these(&mut self, addresses: &[Ipv6Addr], port: &mut dyn Port) {
        if self.neighbours.told {
            return;
        }
        self.ours.become_these(addresses);
        if let Some(path) = self.neighbours.path {
            port.request(Request::Wake(path));
        }
    }

    /// Takes in what somebody else found out: the Ethernet address of the neighbour with this address beside
    /// this device, or that there is none. Whoever waited is woken.
    pub fn learn(
        &mut self,
        now: Instant,
        neighbour: (u8, Ipv6Addr),
        link: Option<MacAddr>,
        port: &mut dyn Port,
    ) {
        self.neighbours.learn(now, neighbour, link, port);
    }

    /// Somebody who hears of routers as we do has lost this one: it is asked at once whether it answers us.
    pub fn doubt_router(&mut self, now: Instant, router: Ipv6Addr, port: &mut dyn Port) {
        if self.routers.as_mut().is_some_and(|routers| routers.doubt(router, now))
            && let Some(path) = self.neighbours.path
        {
            port.request(Request::Wake(path));
        }
    }

    /// A router that is believed says where a better first hop is (RFC 4861 §8.3): that is looked into when it is used.
    pub fn redirected(&mut self, now: Instant, hop: Ipv6Addr, link: [u8; 6], port: &mut dyn Port) {
        self.neighbours.tell(now, (stage::FIRST, hop), MacAddr(link), port);
    }

    /// Neighbours known or asked for.
    pub fn entries(&self) -> usize {
        self.neighbours.cache.len()
    }

    /// The addresses that we answer for: ours, but those that another station has as well.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        self.ours.iter()
    }
}

impl Resolve for Nd {
    fn resolve(
        &mut self,
        now: Instant,
        (device, address): (u8, IpAddr),
        waiter: PathId,
        port: &mut dyn Port,
    ) -> Resolution {
        let IpAddr::V6(address) = address else { return Resolution::Failed };
        self.neighbours.resolve(now, (device, address), waiter, port)
    }
}

impl Module for Nd {
    fn kind(&self) -> &'static str {
        "nd"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        create.set(Attr::ProtId(eth::IPV6))?;
        create.set(Attr::Groups(true))?;
        Ok(Step { stage: Some(Box::new(NdStage::default())), next: Next::Service(DOWN) })
    }

    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        if *parcel == Parcel::Discovery { self.neighbours.path } else { None }
    }

    fn resolver(&mut self) -> Option<&mut dyn Resolve> {
        Some(self)
    }
}
