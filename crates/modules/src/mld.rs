//! MLD: tells routers and switches which groups of IPv6 are heard here (RFC 3810, and what older routers
//! understand), where silk owns the interface; of our own addresses, too, through whose groups
//! neighbours ask for them. Queries come from anybody on the link: they must be answered within
//! their time and never more than once. A question for single sources is answered as one for the group, with all
//! that is heard of it.
//!
//! # Configuration
//! `address` — our addresses, a list; default: the interface's. Reports come from the link-local one.
//!
//! # Services
//! `down` (net, needed): ETH.
//!
//! # Attributes
//! Sets `ProtId` to 0x86dd and `Groups` on its own path, which takes every message of MLD.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "mld"
//! kind = "mld"
//!
//! [[link]]
//! from = "mld.down"
//! to = "eth.up"
//! ```
//!
//! # See also
//! [`igmp`](crate::igmp), which does so for IPv4; [`nd`](crate::nd), whom neighbours ask through groups.

use crate::faults::accept;
use crate::filter::Filter;
use crate::telling::{Telling, Tells, Told};
use core::net::Ipv6Addr;
use silk_instant::Instant;
use silk_path::service::{NET, Service};
use silk_path::{
    Attr, Checksum, Create, CreateError, Cx, Message, Meta, Module, Next, Parameter, ParameterKind, Parcel,
    PathId, Port, Station, Step,
};
use silk_wire::igmp::{Old, Query, Record, Version};
use silk_wire::{checksum, eth, extension, icmpv6, ipv6, mld};

/// Its services.
pub const SERVICES: &[Service] = &[Service::needed("down", NET)];
/// Its parameters.
pub const PARAMETERS: &[Parameter] =
    &[Parameter { name: "address", kind: ParameterKind::List(&ParameterKind::Network), required: false }];

/// Room in front of a packet for headers below IP.
const HEADROOM: usize = 64;
/// Bytes of the records of one report: it fits every link.
const ROOM: usize = 1100;
/// Bytes of IP's header with the router alert.
const HEADER: usize = ipv6::HEADER + mld::ALERT.len();

/// The module.
pub struct Mld(Told<Ipv6Addr>);

impl Mld {
    /// The module of a host with these addresses.
    pub fn new(addresses: &[Ipv6Addr]) -> Self {
        Self(Told::new(source(addresses), addresses))
    }

    /// Our addresses are these from now on.
    pub fn become_these(&mut self, addresses: &[Ipv6Addr]) {
        self.0.become_these(source(addresses), addresses);
    }

    /// From now on these sources of the group are heard.
    pub fn change(&mut self, now: Instant, group: Ipv6Addr, filter: Filter<Ipv6Addr>, port: &mut dyn Port) {
        // Of nobody's business beyond the host, and what all are in (RFC 3810 §6).
        let scope = group.octets()[1] & 15;
        if scope > 1 && group != mld::ALL_NODES {
            self.0.change(now, group, filter, port);
        }
    }
}

/// What reports come from: where there is no link-local address, from nobody (RFC 3810 §5.2.13).
fn source(addresses: &[Ipv6Addr]) -> Ipv6Addr {
    let source = addresses.iter().copied().find(Ipv6Addr::is_unicast_link_local);
    source.unwrap_or(Ipv6Addr::UNSPECIFIED)
}

impl Module for Mld {
    fn kind(&self) -> &'static str {
        "mld"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        create.set(Attr::ProtId(eth::IPV6))?;
        create.set(Attr::Groups(true))?;
        Ok(Step { stage: Some(Telling::<Self>::boxed()), next: Next::Service(0) })
    }

    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        if *parcel == Parcel::Groups6 { self.0.path } else { None }
    }
}

impl Tells for Mld {
    type Address = Ipv6Addr;
    const ROOM: usize = ROOM;

    fn told(&mut self) -> &mut Told<Ipv6Addr> {
        &mut self.0
    }

    /// One of a neighbour, that no router has forwarded, behind a router alert (RFC 3810 §6.2).
    fn question(told: &Told<Ipv6Addr>, msg: &Message<'_>) -> Option<Query<Ipv6Addr>> {
        let packet = ipv6::parse(msg.bytes()).ok()?;
        let header = packet.header;
        let (source, destination) = (header.source(), header.destination());
        let near = header.hop_limit == 1 && source.is_unicast_link_local();
        let alert = header.next_header == extension::HOP_BY_HOP && packet.headers_len == HEADER;
        if !near || !alert || packet.protocol != ipv6::ICMP || packet.fragment.is_some() {
            return None;
        }
        let pseudo = checksum::pseudo6(source, destination, ipv6::ICMP, packet.payload.len() as u16);
        icmpv6::parse(packet.payload, accept(&msg.meta), pseudo).ok()?;
        mld::parse(packet.payload).filter(|_| told.is_asked(destination, mld::ALL_NODES))
    }

    fn size(record: &Record<'_, Ipv6Addr>) -> usize {
        mld::size(record)
    }

    fn report(cx: &mut Cx<'_, '_>, source: Ipv6Addr, records: &[Record<'_, Ipv6Addr>]) {
        let mut message = [0; mld::HEADER + ROOM];
        if let Some(length) = mld::emit_report(records, &mut message) {
            send(cx, source, mld::REPORTS, &mut message[..length]);
        }
    }

    fn report_old(cx: &mut Cx<'_, '_>, source: Ipv6Addr, _: Version, group: Ipv6Addr, what: Old) {
        let to = if what == Old::Left { mld::ALL_ROUTERS } else { group };
        send(cx, source, to, &mut mld::old(group, what));
    }
}

/// Sends a message, with the router alert and one hop to go.
fn send(cx: &mut Cx<'_, '_>, source: Ipv6Addr, destination: Ipv6Addr, message: &mut [u8]) {
    let mut buffer = [0; HEADROOM + HEADER + mld::HEADER + ROOM];
    let (start, end) = (HEADROOM + HEADER, HEADROOM + HEADER + message.len());
    let length = message.len() as u16;
    icmpv6::seal(checksum::pseudo6(source, destination, ipv6::ICMP, length), message);
    let header = ipv6::Emit {
        next_header: extension::HOP_BY_HOP,
        hop_limit: 1,
        source,
        destination,
        payload_len: length + mld::ALERT.len() as u16,
        ..ipv6::Emit::default()
    };
    header.emit(&mut buffer[HEADROOM..]);
    buffer[HEADROOM + ipv6::HEADER..start].copy_from_slice(&mld::ALERT);
    buffer[start..end].copy_from_slice(message);
    let meta =
        Meta { link: Station::at(ipv6::group(destination)), checksum: Checksum::Verified, ..Meta::default() };
    // A drop has been counted; a change is told again, and who asked asks again.
    let _ = cx.down(&mut Message::new(&mut buffer, HEADROOM, end, meta));
}
