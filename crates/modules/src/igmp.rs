//! IGMP: tells routers and switches which groups of IPv4 are heard here (RFC 3376, and what older
//! routers understand), where silk owns the interface. Queries come from anybody on the link: they
//! must be answered within their time and never more than once. A question for single sources is
//! answered as one for the group.
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

use crate::ip::multicast;
use crate::membership::Membership;
use alloc::boxed::Box;
use core::net::Ipv4Addr;
use silk_instant::Instant;
use silk_path::service::{NET, Service};
use silk_path::{
    Attr, Checksum, Create, CreateError, Cx, DropReason, Message, Meta, Module, Next, Parameter,
    ParameterKind, Parcel, PathId, Port, Report, Request, Stage, Step, Verdict,
};
use silk_wire::igmp::{self, Sort, Version};
use silk_wire::{eth, ipv4};

/// Its services.
pub const SERVICES: &[Service] = &[Service::needed("down", NET)];
/// Its parameters.
pub const PARAMETERS: &[Parameter] =
    &[Parameter { name: "address", kind: ParameterKind::List(&ParameterKind::Network), required: false }];

/// Room in front of a packet for headers below IP.
const HEADROOM: usize = 64;
/// Records of one report: it fits every link.
const RECORDS: usize = 60;
/// Bytes of IP's header with the router alert (RFC 2113).
const HEADER: usize = ipv4::HEADER + 4;

/// The module.
pub struct Igmp {
    source: Ipv4Addr,
    groups: Membership<Ipv4Addr>,
    path: Option<PathId>,
}

impl Igmp {
    /// The module of a host with these addresses.
    pub fn new(addresses: &[Ipv4Addr]) -> Self {
        let source = addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED);
        Self { source, groups: Membership::default(), path: None }
    }

    /// From now on packets to the group are heard, or not.
    pub fn change(&mut self, now: Instant, group: Ipv4Addr, joined: bool, port: &mut dyn Port) {
        // Nobody tells of that group (RFC 3376 §5).
        if group != igmp::ALL_SYSTEMS {
            self.groups.change(now, group, joined);
            self.path.iter().for_each(|path| port.request(Request::Wake(*path)));
        }
    }
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
        Ok(Step { stage: Some(Box::new(IgmpStage)), next: Next::Service(0) })
    }

    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        if *parcel == Parcel::Groups { self.path } else { None }
    }
}

/// IGMP's part of its path.
struct IgmpStage;

impl IgmpStage {
    /// Takes a query in: one that no router has forwarded, sent to all hosts or to its group (RFC 3376
    /// §9.1).
    fn hear(cx: &mut Cx<'_, '_>, msg: &Message<'_>) -> Option<()> {
        let packet = ipv4::parse(msg.bytes()).ok()?;
        let header = packet.header;
        let whole = header.protocol == igmp::PROTOCOL && header.ttl == 1 && !header.is_fragment();
        let query = igmp::parse(packet.payload).filter(|_| whole)?;
        if header.destination() != query.group.unwrap_or(igmp::ALL_SYSTEMS) {
            return None;
        }
        let (now, random) = (cx.now(), cx.port().random());
        cx.module::<Igmp>().groups.asked(now, &query, random);
        let deadline = cx.module::<Igmp>().groups.deadline();
        cx.arm(deadline);
        Some(())
    }

    /// Tells what is due.
    fn tell(cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        let (module, port) = cx.module_and_port::<Igmp>();
        let (source, version) = (module.source, module.groups.version(now));
        let told = module.groups.due(now, || port.random());
        let deadline = module.groups.deadline();
        cx.arm(deadline);
        if version == Version::Three {
            for records in told.chunks(RECORDS) {
                let mut message = [0; igmp::HEADER + RECORDS * igmp::RECORD];
                if let Some(length) = igmp::emit_report(records, &mut message) {
                    send(cx, source, igmp::REPORTS, &message[..length]);
                }
            }
            return;
        }
        for (group, sort) in told {
            let mut message = [0; igmp::HEADER];
            if igmp::emit_old(version, group, sort, &mut message) {
                send(cx, source, if sort == Sort::Left { igmp::ALL_ROUTERS } else { group }, &message);
            }
        }
    }
}

/// Sends a message, with the router alert and one hop to go.
fn send(cx: &mut Cx<'_, '_>, source: Ipv4Addr, destination: Ipv4Addr, message: &[u8]) {
    let mut buffer = [0; HEADROOM + HEADER + igmp::HEADER + RECORDS * igmp::RECORD];
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
    let meta = Meta { link: multicast(destination), checksum: Checksum::Verified, ..Meta::default() };
    // A drop has been counted; a change is told again, and who asked asks again.
    let _ = cx.down(&mut Message::new(&mut buffer, HEADROOM, end, meta));
}

impl Stage for IgmpStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        let path = cx.path();
        cx.module::<Igmp>().path = Some(path);
        Ok(())
    }

    fn start(&mut self, cx: &mut Cx<'_, '_>) {
        Self::tell(cx);
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        Self::hear(cx, msg).map_or(Verdict::Drop(DropReason::GroupIgnored), |()| Verdict::Consumed)
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        if report == Report::Resolved {
            Self::tell(cx);
        }
        false
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        Self::tell(cx);
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        let path = cx.path();
        let igmp = cx.module::<Igmp>();
        if igmp.path == Some(path) {
            igmp.path = None;
        }
    }
}
