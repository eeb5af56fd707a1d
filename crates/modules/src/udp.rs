//! UDP: datagrams with ports and a checksum (RFC 768, RFC 1122 §4.1). It must never pass on a
//! datagram whose checksum is wrong.
//!
//! # Configuration
//! None.
//!
//! # Services
//! `up` (net): SOCKET, ECHO, and whatever else speaks in datagrams. `down` (net, needed): IP.
//! `down6` (net, wanted): IP6; without it there are no datagrams over IPv6.
//!
//! # Attributes
//! Reads `Local` (the port is needed) and `Remote`: with it the path hears this peer alone and
//! has an exact entry in the classifier; without it the path takes what comes to the port of
//! its address, and answers and sends to whom each message names; with `Shared` others may wait there
//! too, and a [place](crate::place) says which of them a peer has, and whether the port is another domain's. Sets `ProtId` to 17, and `Groups`
//! where it waits at any address of ours, or at a group's: what is sent to a group is for it too.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "udp"
//! kind = "udp"
//!
//! [[link]]
//! from = "udp.down"
//! to = "ip.up"
//! ```
//!
//! # See also
//! [`ip`](crate::ip) below; [`socket`](crate::socket) and [`echo`](crate::echo) above;
//! [`IntegratedLayers`](crate::IntegratedLayers), by which the stage that reads the data verifies the
//! checksum.

use crate::bound::{self, Bound, Share, is_groups};
use crate::faults::{accept, reason};
use crate::unsummed::refused;
use alloc::boxed::Box;
use silk_path::classify::{Answer, Between, Found, Protocol, Tables, View};
use silk_path::service::{NET, Service};
use silk_path::{
    Attr, Checksum, Create, CreateError, Cx, DropReason, Endpoint, Event, Message, Module, NOWHERE, Next,
    Parcel, PathId, Report, Stage, Step, Verdict,
};
use silk_wire::checksum::{self, Sum};
use silk_wire::{ipv4, ipv6, udp};

/// Its services.
pub const SERVICES: &[Service] =
    &[Service::offered("up", NET), Service::needed("down", NET), Service::wanted("down6", NET)];
const DOWN: u8 = 1;
const DOWN6: u8 = 2;

/// The most data of one datagram over IPv4.
pub const MAX_DATA: usize = ipv4::MAX - ipv4::HEADER - udp::HEADER;
/// The same over IPv6, whose length does not count its own header (RFC 8200 §3).
pub const MAX_DATA6: usize = ipv6::MAX_PAYLOAD - udp::HEADER;

/// The module.
pub struct Udp {
    tables: Tables,
    domain: u8,
    // The paths without a fixed peer.
    bound: Bound,
}

impl Udp {
    /// The module of domain `domain`, its flows in `tables`.
    pub fn new(tables: Tables, domain: u8) -> Self {
        Self { tables, domain, bound: Bound::default() }
    }

    fn enter(
        &mut self,
        local: Endpoint,
        remote: Option<Endpoint>,
        (path, share): (PathId, Share),
    ) -> Result<(), CreateError> {
        match remote {
            Some(remote) if !is_groups(&self.tables, local.ip()) => {
                let flow = Between { protocol: Protocol::Udp, local, remote };
                bound::enter_flow(&self.tables, &flow, Found { domain: self.domain, index: path.index })
            }
            // What is sent to groups has no exact entry.
            remote => self.bound.enter(&self.tables, Protocol::Udp, (local, remote), (path, share)),
        }
    }

    /// Every path that waits for what is sent so, to a group's address for one.
    pub fn waiting_for(&self, flow: Between) -> impl Iterator<Item = PathId> + '_ {
        self.bound.all(flow)
    }

    fn leave(&mut self, local: Endpoint, remote: Option<Endpoint>, path: PathId) {
        // The next path of this index wants all its packets.
        self.tables.discard_nothing(Found { domain: self.domain, index: path.index });
        if let Some(remote) = remote {
            self.tables.flows.remove(&Between { protocol: Protocol::Udp, local, remote });
        }
        self.bound.leave(&self.tables, Protocol::Udp, local, path);
    }
}

impl Module for Udp {
    fn kind(&self) -> &'static str {
        "udp"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn protocol(&self) -> Option<u16> {
        Some(ipv4::UDP.into())
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let local = create.attrs.local().ok_or(CreateError::Missing("Local"))?;
        let down = if create.attrs.remote().unwrap_or(local).is_v6() { DOWN6 } else { DOWN };
        create.set(Attr::ProtId(ipv4::UDP.into()))?;
        // What is sent to groups and to everyone is for whoever waits at any address, or there.
        let any = create.attrs.remote().is_none() && local.ip().is_unspecified();
        if any || is_groups(&self.tables, local.ip()) {
            create.set(Attr::Groups(true))?;
        }
        let stage =
            UdpStage { local: NOWHERE, remote: create.attrs.remote(), entered: false, summed_above: false };
        Ok(Step { stage: Some(Box::new(stage)), next: Next::Service(down) })
    }

    fn classify(&self, view: &mut View<'_>) -> Answer {
        bound::classify(&self.tables, Protocol::Udp, udp::HEADER, view)
    }

    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        match parcel {
            Parcel::Listen(flow) if flow.protocol == Protocol::Udp => self.bound.find(flow),
            _ => None,
        }
    }
}

/// UDP's part of a path.
pub(crate) struct UdpStage {
    // Ours, as the path is known by; complete once established.
    pub(crate) local: Endpoint,
    // The one peer, where there is one.
    pub(crate) remote: Option<Endpoint>,
    // In the classifier.
    entered: bool,
    // Checksums are verified by whoever reads the data (the rule *integrated layers*).
    pub(crate) summed_above: bool,
}

impl UdpStage {
    /// Verifies the checksum of the datagram, the first `length` bytes of `msg`, or leaves that to the
    /// stage that reads it.
    fn sum(&self, pseudo: u16, length: usize, msg: &mut Message<'_>) -> Result<(), DropReason> {
        let bytes = msg.bytes().get(..length).unwrap_or_default();
        match (u16::try_from(msg.head()), u16::try_from(length)) {
            (Ok(start), Ok(length)) if self.summed_above => {
                msg.meta.checksum = Checksum::Unsummed { pseudo, start, length };
            }
            _ if !checksum::is_right(Sum::from_folded(pseudo).bytes(bytes)) => {
                return Err(DropReason::UdpChecksum);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Stage for UdpStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        self.local = cx.attrs().local().ok_or(CreateError::Missing("Local"))?;
        let (local, remote, path) = (self.local, self.remote, cx.path());
        let share = Share::of(cx.attrs(), path);
        cx.module::<Udp>().enter(local, remote, (path, share))?;
        self.entered = true;
        Ok(())
    }

    fn up(&mut self, _: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let (source, destination) = (msg.meta.remote.ip(), msg.meta.local.ip());
        let pseudo = |length| checksum::pseudo_of(source, destination, ipv4::UDP, length);
        let (ports, length, unsummed) = match udp::parse_unread(msg.bytes(), accept(&msg.meta), pseudo) {
            Err(fault) => return reason(fault).into(),
            // RFC 8200 §8.1: over IPv6 nobody may leave the checksum out.
            Ok((header, ..)) if source.is_ipv6() && header.is_unsummed() => {
                return Verdict::Drop(DropReason::UdpChecksum);
            }
            Ok((header, data, unsummed)) => {
                ((header.source(), header.destination()), data.len(), unsummed.map(Sum::folded))
            }
        };
        if let Some(pseudo) = unsummed
            && let Err(reason) = self.sum(pseudo, length + udp::HEADER, msg)
        {
            return reason.into();
        }
        if ports.1 != self.local.port() || self.remote.is_some_and(|remote| remote.port() != ports.0) {
            return refused(msg, DropReason::NotForPath).into();
        }
        msg.meta.remote.set_port(ports.0);
        msg.meta.local.set_port(ports.1);
        msg.pop(udp::HEADER);
        msg.truncate(length);
        Verdict::Forward
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let length = msg.len();
        // As where the path was made: its peer says over which IP it leads.
        let over_six = self.remote.unwrap_or(self.local).is_v6();
        if length > if over_six { MAX_DATA6 } else { MAX_DATA } {
            return Verdict::Drop(DropReason::TooBig);
        }
        let destination = self.remote.map_or(msg.meta.remote.port(), |remote| remote.port());
        let source = self.local.port();
        match msg.push(udp::HEADER) {
            // IP knows the addresses; it adds the pseudo-header's sum.
            Ok(bytes) => udp::emit(source, destination, length as u16, 0, bytes),
            Err(reason) => return reason.into(),
        }
        let start = msg.head() as u16;
        msg.meta.checksum = Checksum::Partial { start, field: start + udp::CHECKSUM as u16 };
        Verdict::Forward
    }

    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        // Only a path with one peer tells its program of errors (RFC 1122 §4.1.3.3 leaves it
        // open; this is what sockets do).
        if let (Report::Unreachable { errno, .. }, Some(_)) = (report, self.remote) {
            cx.raise(Event::Unreachable(errno));
        }
        true
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        if core::mem::take(&mut self.entered) {
            let (local, remote, path) = (self.local, self.remote, cx.path());
            cx.module::<Udp>().leave(local, remote, path);
        }
    }
}
