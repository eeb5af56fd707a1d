//! IGMP: tells routers and switches which groups of IPv4 are heard here (RFC 3376, and what older
//! routers understand), where silk owns the interface. Queries come from anybody on the link: they
//! must be answered within their time and never more than once. A question for single sources is
//! answered as one for the group, with all that is heard of it.
//!
//! # Configuration
//! `address` — our addresses, a list; default: the interface's. The first is what reports come from.
//!
//! # Services
//! `down` (net, needed): ETH.
//!
//! # Attributes
//! Sets `ProtId` to 0x0800 and `Groups` on its own path, which takes every message of IGMP.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "igmp"
//! kind = "igmp"
//!
//! [[link]]
//! from = "igmp.down"
//! to = "eth.up"
//! ```
//!
//! # See also
//! [`mld`](crate::mld), which does so for IPv6; [`udp`](crate::udp), whose paths hear the groups.

use crate::filter::Filter;
use crate::ip::multicast;
use crate::telling::{Telling, Tells, Told};
use core::net::Ipv4Addr;
use silk_instant::Instant;
use silk_path::service::{NET, Service};
use silk_path::{
    Attr, Checksum, Create, CreateError, Cx, Message, Meta, Module, Next, Parameter, ParameterKind, Parcel,
    PathId, Port, Station, Step,
};
use silk_wire::igmp::{self, Old, Query, Record, Version};
use silk_wire::{eth, ipv4};

/// Its services.
pub const SERVICES: &[Service] = &[Service::needed("down", NET)];
/// Its parameters.
pub const PARAMETERS: &[Parameter] =
    &[Parameter { name: "address", kind: ParameterKind::List(&ParameterKind::Network), required: false }];

/// Room in front of a packet for headers below IP.
const HEADROOM: usize = 64;
/// Bytes of the records of one report: it fits every link.
const ROOM: usize = 480;
/// Bytes of IP's header with the router alert (RFC 2113).
const HEADER: usize = ipv4::HEADER + 4;

/// The module.
pub struct Igmp(Told<Ipv4Addr>);

impl Igmp {
    /// The module of a host with these addresses.
    pub fn new(addresses: &[Ipv4Addr]) -> Self {
        Self(Told::new(source(addresses), addresses))
    }

    /// Our addresses are these from now on.
    pub fn become_these(&mut self, addresses: &[Ipv4Addr]) {
        self.0.become_these(source(addresses), addresses);
    }

    /// From now on these sources of the group are heard.
    pub fn change(&mut self, now: Instant, group: Ipv4Addr, filter: Filter<Ipv4Addr>, port: &mut dyn Port) {
        // Nobody tells of that group (RFC 3376 §5).
        if group != igmp::ALL_SYSTEMS {
            self.0.change(now, group, filter, port);
        }
    }
}

/// What reports come from: where there is no address, from nobody (RFC 3376 §4.2.13).
fn source(addresses: &[Ipv4Addr]) -> Ipv4Addr {
    addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED)
}

impl Module for Igmp {
    fn kind(&self) -> &'static str {
        "igmp"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        create.set(Attr::ProtId(eth::IPV4))?;
        create.set(Attr::Groups(true))?;
        Ok(Step { stage: Some(Telling::<Self>::boxed()), next: Next::Service(0) })
    }

    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        if *parcel == Parcel::Groups { self.0.path } else { None }
    }
}

impl Tells for Igmp {
    type Address = Ipv4Addr;
    const ROOM: usize = ROOM;

    fn told(&mut self) -> &mut Told<Ipv4Addr> {
        &mut self.0
    }

    /// One that no router has forwarded.
    fn question(told: &Told<Ipv4Addr>, msg: &Message<'_>) -> Option<Query<Ipv4Addr>> {
        let packet = ipv4::parse(msg.bytes()).ok()?;
        let header = packet.header;
        let whole = header.protocol == igmp::PROTOCOL && header.ttl == 1 && !header.is_fragment();
        let is_ours = told.is_asked(header.destination(), igmp::ALL_SYSTEMS);
        igmp::parse(packet.payload).filter(|_| whole && is_ours)
    }

    fn size(record: &Record<'_, Ipv4Addr>) -> usize {
        igmp::size(record)
    }

    fn report(cx: &mut Cx<'_, '_>, source: Ipv4Addr, records: &[Record<'_, Ipv4Addr>]) {
        let mut message = [0; igmp::HEADER + ROOM];
        if let Some(length) = igmp::emit_report(records, &mut message) {
            send(cx, source, igmp::REPORTS, &message[..length]);
        }
    }

    fn report_old(cx: &mut Cx<'_, '_>, source: Ipv4Addr, version: Version, group: Ipv4Addr, what: Old) {
        let mut message = [0; igmp::HEADER];
        if igmp::emit_old(version, group, what, &mut message) {
            send(cx, source, if what == Old::Left { igmp::ALL_ROUTERS } else { group }, &message);
        }
    }
}

/// Sends a message, with the router alert and one hop to go.
fn send(cx: &mut Cx<'_, '_>, source: Ipv4Addr, destination: Ipv4Addr, message: &[u8]) {
    let mut buffer = [0; HEADROOM + HEADER + igmp::HEADER + ROOM];
    let (start, end) = (HEADROOM + HEADER, HEADROOM + HEADER + message.len());
    let header = ipv4::Emit {
        // Routing protocols' own (RFC 3376 §4).
        tos: 0xc0,
        ttl: 1,
        protocol: igmp::PROTOCOL,
        source,
        destination,
        payload_len: message.len() as u16,
        ..ipv4::Emit::default()
    };
    header.emit_alert(&mut buffer[HEADROOM..]);
    buffer[start..end].copy_from_slice(message);
    let meta =
        Meta { link: Station::at(multicast(destination)), checksum: Checksum::Verified, ..Meta::default() };
    // A drop has been counted; a change is told again, and who asked asks again.
    let _ = cx.down(&mut Message::new(&mut buffer, HEADROOM, end, meta));
}
