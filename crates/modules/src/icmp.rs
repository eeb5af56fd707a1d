//! ICMP: echo, and errors both ways (RFC 792, RFC 1122 §3.2.2, RFC 1191). What the network
//! says about our packets is told to the path that sent them; what we refuse is told to its
//! sender. It must never answer an error with an error, nor send errors without a limit.
//!
//! # Configuration
//! `errors` — errors we send in a second, at most, those that IP sends of fragments among them; default 1000.
//! `redirects` — what routers say of better first hops is passed on ([`Request::Redirected`]); default: as the device is
//! configured.
//!
//! # Services
//! `down` (net, needed): IP.
//!
//! # Attributes
//! Sets `ProtId` to 1 on its own path, which takes every ICMP message.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "icmp"
//! kind = "icmp"
//! errors = 1000
//!
//! [[link]]
//! from = "icmp.down"
//! to = "ip.up"
//! ```
//!
//! # See also
//! [`ip`](crate::ip), which acts on a path's MTU.

use crate::errors::{errno, quoted};
use crate::faults::{accept, reason};
use crate::limit::Limit;
use alloc::boxed::Box;
use core::net::Ipv4Addr;
use silk_instant::Instant;
use silk_path::classify::{Answer, Tables, View};
use silk_path::service::{NET, Service};
use silk_path::{
    Attr, Checksum, Create, CreateError, Cx, DropReason, Endpoint, Message, Meta, Module, Next, Parameter,
    ParameterKind, Parcel, PathId, Report, Request, Stage, Station, Step, Verdict,
};
use silk_wire::checksum::pseudo_of;
use silk_wire::icmp::{self, Unreachable};
use silk_wire::{eth, ipv4, udp};

/// Its services.
pub const SERVICES: &[Service] = &[Service::needed("down", NET)];
/// Its parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "errors", kind: ParameterKind::Number(0, 1_000_000), required: false },
    Parameter { name: "redirects", kind: ParameterKind::Flag, required: false },
];

/// The module.
pub struct Icmp {
    tables: Tables,
    limit: Limit,
    path: Option<PathId>,
    // What routers say of better first hops is passed on.
    redirects: bool,
}

impl Icmp {
    /// The module that sends at most `errors` errors in a second.
    pub fn new(tables: Tables, errors: u32) -> Self {
        Self { tables, limit: Limit::new(errors), path: None, redirects: false }
    }

    /// The same, and it passes on what routers say of better first hops, where it `heeds` that.
    #[must_use]
    pub fn heeding_redirects(self, heeds: bool) -> Self {
        Self { redirects: heeds, ..self }
    }

    /// Whether one more error may be sent now, which then counts.
    pub(crate) fn may_tell(&mut self, now: Instant) -> bool {
        self.limit.take(now)
    }

    /// The path to send errors on, where there is one.
    pub fn path(&self) -> Option<PathId> {
        self.path
    }

    /// Makes the error that refuses the packet in `frame` (an Ethernet frame that came over this `device`, of whose transport
    /// checksum this is known): a message to be run down [`Self::path`]. `None` where none may be sent (RFC 1122 §3.2.2): about
    /// errors, groups, fragments, impossible sources, or beyond the limit; nor is a port refused to a datagram that is broken, which
    /// may have been for another (RFC 1122 §4.1.3.4). `buffer` has at least [`REFUSAL`] bytes.
    pub fn refuse<'b>(
        &mut self,
        now: Instant,
        (frame, device, checksum): (&[u8], u8, Checksum),
        why: Unreachable,
        buffer: &'b mut [u8],
    ) -> Option<Message<'b>> {
        let eth::Frame { header: ethernet, payload: bytes, .. } = eth::frame(frame).ok()?;
        let packet = ipv4::parse(bytes).ok()?;
        let (source, destination) = (packet.header.source(), packet.header.destination());
        let silent = ethernet.destination.is_group()
            || crate::ip::impossible_source(source)
            || destination.is_multicast()
            || destination.is_broadcast()
            || packet.header.fragment_offset() > 0
            || (why == Unreachable::Port && !is_sound(&packet, checksum))
            || (packet.header.protocol == ipv4::ICMP && !matches!(packet.payload.first(), Some(0 | 8)));
        if silent || !self.may_tell(now) {
            return None;
        }
        let quoted = (packet.header.header_len() + icmp::QUOTE).min(packet.header.total_len());
        let end = HEADROOM + icmp::HEADER + quoted;
        buffer.get_mut(HEADROOM + icmp::HEADER..end)?.copy_from_slice(&bytes[..quoted]);
        icmp::emit_unreachable(why, &mut buffer[HEADROOM..end]);
        let mut meta = Meta { link: Station { device, address: ethernet.source.0 }, ..Meta::default() };
        meta.remote.set_ip(source);
        meta.local.set_ip(destination);
        Some(Message::new(buffer, HEADROOM, end, meta))
    }
}

const HEADROOM: usize = 64;
/// Bytes of the buffer that [`Icmp::refuse`] needs.
pub const REFUSAL: usize = HEADROOM + icmp::HEADER + 60 + icmp::QUOTE;

impl Module for Icmp {
    fn kind(&self) -> &'static str {
        "icmp"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn protocol(&self) -> Option<u16> {
        Some(ipv4::ICMP.into())
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        create.set(Attr::ProtId(ipv4::ICMP.into()))?;
        Ok(Step { stage: Some(Box::new(IcmpStage)), next: Next::Service(0) })
    }

    fn classify(&self, view: &mut View<'_>) -> Answer {
        let ours = view.local.ipv4();
        let belongs = ours.and_then(|ours| self.tables.whose_icmp(ours, view.bytes()));
        belongs.map_or(Answer::Pass, Answer::Found)
    }

    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        if *parcel == Parcel::Icmp { self.path } else { None }
    }
}

struct IcmpStage;

impl Stage for IcmpStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        let path = cx.path();
        cx.module::<Icmp>().path = Some(path);
        Ok(())
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let request = match icmp::parse(msg.bytes()) {
            Err(fault) => return reason(fault).into(),
            Ok(icmp::Message::EchoRequest { .. }) => None,
            Ok(icmp::Message::Unreachable { reason, quote }) => Some(unreachable(reason, &quote, msg)),
            Ok(icmp::Message::Exceeded { quote }) => Some(soft(errno::HOST, &quote, msg)),
            Ok(icmp::Message::Problem { quote }) => Some(soft(errno::PROTO, &quote, msg)),
            Ok(icmp::Message::Redirect { hop, quote }) => return redirected(cx, msg, hop, quote.header),
            Ok(icmp::Message::EchoReply { .. } | icmp::Message::Other { .. }) => {
                return Verdict::Drop(DropReason::IcmpIgnored);
            }
        };
        match request {
            None => echo(cx, msg),
            Some(None) => Verdict::Drop(DropReason::IcmpQuote),
            Some(Some(request)) => {
                cx.request(request);
                Verdict::Consumed
            }
        }
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Forward
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        let path = cx.path();
        let icmp = cx.module::<Icmp>();
        if icmp.path == Some(path) {
            icmp.path = None;
        }
    }
}

/// Whether a packet carries a datagram that is whole, and whose checksum is right if it has one; what is no datagram is not looked at.
fn is_sound(packet: &ipv4::Packet<'_>, checksum: Checksum) -> bool {
    let (source, destination) = (packet.header.source(), packet.header.destination());
    let pseudo = |length| pseudo_of(source.into(), destination.into(), ipv4::UDP, length);
    let known = Meta { checksum, ..Meta::default() };
    packet.header.protocol != ipv4::UDP || udp::parse(packet.payload, accept(&known), pseudo).is_ok()
}

/// A router says who is a better first hop for a packet of ours (RFC 1122 §3.2.2.2).
fn redirected(cx: &mut Cx<'_, '_>, msg: &Message<'_>, hop: Ipv4Addr, packet: &ipv4::Header) -> Verdict {
    let icmp = cx.module::<Icmp>();
    let is_ours = icmp.tables.is_local(packet.source());
    if !icmp.redirects {
        return Verdict::Drop(DropReason::IcmpIgnored);
    }
    if !is_ours {
        return Verdict::Drop(DropReason::IcmpQuote);
    }
    let (router, destination) = (msg.meta.remote.ip(), packet.destination().into());
    cx.request(Request::Redirected { router, destination, hop: hop.into(), link: None });
    Verdict::Consumed
}

/// Sends an echo request back as its reply; never one that was sent to a group
/// (RFC 1122 §3.2.2.6).
fn echo(cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
    if !cx.module::<Icmp>().tables.is_local(msg.meta.local.ip()) {
        return Verdict::Drop(DropReason::IcmpIgnored);
    }
    icmp::make_reply(msg.bytes_mut());
    // A drop on the way down has been counted there.
    let _ = cx.down(msg);
    Verdict::Consumed
}

/// What a router's "unreachable" tells the path that sent the quoted packet.
fn unreachable(reason: Unreachable, quote: &icmp::Quote<'_>, msg: &Message<'_>) -> Option<Request> {
    told(quote, msg, |sequence, remote| {
        let (errno, hard) = match reason {
            Unreachable::TooBig(mtu) => {
                let mtu = if mtu == 0 { plateau(quote.header.total_len()) } else { mtu };
                return Report::PathMtu { mtu, sequence, remote };
            }
            Unreachable::Network => (errno::NETWORK, false),
            Unreachable::Protocol => (errno::NO_PROTOCOL, true),
            Unreachable::Port => (errno::REFUSED, true),
            // Who refuses it will not change his mind (as Linux tells it; over IPv6 by another name).
            Unreachable::Prohibited => (errno::HOST, true),
            Unreachable::Host | Unreachable::Other(_) => (errno::HOST, false),
        };
        Report::Unreachable { errno, hard, sequence, remote }
    })
}

/// What an error that may be over soon tells the path that sent the quoted packet.
fn soft(errno: i32, quote: &icmp::Quote<'_>, msg: &Message<'_>) -> Option<Request> {
    told(quote, msg, |sequence, remote| Report::Unreachable { errno, hard: false, sequence, remote })
}

/// A report to the flow that the quoted packet belongs to.
fn told(
    quote: &icmp::Quote<'_>,
    msg: &Message<'_>,
    report: impl FnOnce(u32, Endpoint) -> Report,
) -> Option<Request> {
    let (source, destination) = quote.ports()?;
    let local = Endpoint::v4(quote.header.source(), source);
    let remote = Endpoint::v4(quote.header.destination(), destination);
    let udp = quote.header.protocol == ipv4::UDP;
    let quoted = udp.then(|| quoted(msg, quote.rest)).flatten();
    Some(Request::Report { udp, local, remote, report: report(quote.sequence(), remote), quoted })
}

/// The next smaller of the usual MTUs, for a router that does not say its own (RFC 1191 §7).
// RFC 1191 §3.
fn plateau(total_len: usize) -> u16 {
    const PLATEAUS: [u16; 8] = [32000, 17914, 8166, 4352, 2002, 1492, 1006, 508];
    PLATEAUS.into_iter().find(|mtu| usize::from(*mtu) < total_len).unwrap_or(ipv4::MIN_MTU)
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 1191 §3.
    #[test]
    fn a_router_that_says_no_mtu_means_the_next_plateau() {
        assert_eq!((plateau(1500), plateau(1492), plateau(100)), (1492, 1006, 68));
    }
}
