//! ARP: finds the Ethernet address of a neighbour (RFC 826, RFC 1122 §2.3.2, RFC 5227). It
//! asks, answers, and keeps what it learnt for a while, or, where Linux shares the interface,
//! has the addresses told. Our own addresses it asks for at first, announces them, and gives up what
//! another station has ([`Request::Duplicate`]). It must never learn from what was not asked for: an unasked
//! announcement only updates an entry that is in use.
//!
//! # Configuration
//! `address` — our addresses, a list; default: the interface's.
//! `told` — addresses are told by whoever runs the graph instead of asked for on the link;
//! default: as the interface is shared with Linux or not.
//!
//! # Services
//! `res` (resolve, provider): IP. `down` (net, needed): ETH.
//!
//! # Attributes
//! Sets `ProtId` to 0x0806 on its own path, which takes every ARP packet.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "arp"
//! kind = "arp"
//!
//! [[link]]
//! from = "arp.down"
//! to = "eth0.up"
//! ```
//!
//! # See also
//! [`ip`](crate::ip), whose addresses it translates; [`eth`](crate::eth) below.

mod stage;

pub use crate::cache::CacheLimits;

use crate::neighbours::Neighbours;
use crate::ours::{Manner, Ours};
use alloc::boxed::Box;
use core::net::{IpAddr, Ipv4Addr};
use silk_instant::Instant;
use silk_path::classify::{Answer, Belongs, Tables, View};
use silk_path::service::{NET, RESOLVER, Service};
use silk_path::{
    Attr, Create, CreateError, Module, Next, Parameter, ParameterKind, Parcel, PathId, Port, Request,
    Resolution, Resolve, Step,
};
use silk_wire::{MacAddr, eth};
use stage::ArpStage;

/// Its services.
pub const SERVICES: &[Service] = &[Service::offered("res", RESOLVER), Service::needed("down", NET)];
const DOWN: u8 = 1;
/// How it is asked whether our addresses are ours alone, and said that they are (RFC 5227 §1.1: PROBE_NUM, ANNOUNCE_NUM).
const MANNER: Manner = Manner { questions: 3, announcements: 2 };

/// Its parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "address", kind: ParameterKind::List(&ParameterKind::Network), required: false },
    Parameter { name: "told", kind: ParameterKind::Flag, required: false },
];

/// The module.
pub struct Arp {
    tables: Tables,
    ours: Ours<Ipv4Addr>,
    neighbours: Neighbours<Ipv4Addr>,
}

impl Arp {
    /// The module with these addresses of ours; with `told`, it asks whoever runs the graph
    /// ([`Request::Resolve`]) instead of the link.
    pub fn new(tables: Tables, addresses: &[Ipv4Addr], told: bool, limits: CacheLimits) -> Self {
        Self { tables, ours: Ours::new(addresses, MANNER), neighbours: Neighbours::new(told, limits) }
    }

    /// Our addresses are these from now on. Of those that are new it is asked whether they are ours alone. Where
    /// Linux shares the interface it minds them itself.
    pub fn become_these(&mut self, addresses: &[Ipv4Addr], port: &mut dyn Port) {
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
        neighbour: (u8, Ipv4Addr),
        link: Option<MacAddr>,
        port: &mut dyn Port,
    ) {
        self.neighbours.learn(now, neighbour, link, port);
    }

    /// Neighbours known or asked for.
    pub fn entries(&self) -> usize {
        self.neighbours.cache.len()
    }
}

impl Resolve for Arp {
    fn resolve(
        &mut self,
        now: Instant,
        (device, address): (u8, IpAddr),
        waiter: PathId,
        port: &mut dyn Port,
    ) -> Resolution {
        let IpAddr::V4(address) = address else { return Resolution::Failed };
        self.neighbours.resolve(now, (device, address), waiter, port)
    }
}

impl Module for Arp {
    fn kind(&self) -> &'static str {
        "arp"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn protocol(&self) -> Option<u16> {
        Some(eth::ARP)
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        create.set(Attr::ProtId(eth::ARP))?;
        Ok(Step { stage: Some(Box::new(ArpStage::default())), next: Next::Service(DOWN) })
    }

    fn classify(&self, _: &mut View<'_>) -> Answer {
        let belongs = Belongs::Control { domain: self.tables.domains().control };
        if self.tables.owned().arp { Answer::Found(belongs) } else { Answer::Pass }
    }

    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        if *parcel == Parcel::Arp { self.neighbours.path } else { None }
    }

    fn resolver(&mut self) -> Option<&mut dyn Resolve> {
        Some(self)
    }
}
