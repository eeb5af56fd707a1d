//! ICMP6: echo, and errors about our packets (RFC 4443, RFC 8201). What the network says about
//! our packets is told to the path that sent them. It must never answer an error with an error,
//! nor believe one that quotes no packet of ours. The errors that we send are IP6's, which limits
//! them (RFC 4443 §2.4 f).
//!
//! # Configuration
//! None.
//!
//! # Services
//! `down` (net, needed): IP6.
//!
//! # Attributes
//! Sets `ProtId` to 58 and `Groups` on its own path, which takes every ICMPv6 message but those of neighbour
//! discovery.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "icmp6"
//! kind = "icmp6"
//!
//! [[link]]
//! from = "icmp6.down"
//! to = "ip6.up"
//! ```
//!
//! # See also
//! [`ip6`](crate::ip6), which acts on a path's MTU; [`nd`](crate::nd), which has the rest of ICMPv6.

use crate::errors::{errno, quoted};
use crate::faults::{accept, reason};
use alloc::boxed::Box;
use silk_path::classify::{Answer, Tables, View};
use silk_path::service::{NET, Service};
use silk_path::{
    Attr, Checksum, Create, CreateError, Cx, DropReason, Endpoint, Message, Module, Next, Parcel, PathId,
    Report, Request, Stage, Step, Verdict,
};
use silk_wire::icmpv6::{self, Quote, Unreachable};
use silk_wire::{checksum, ipv4, ipv6};

/// Its services.
pub const SERVICES: &[Service] = &[Service::needed("down", NET)];

/// The module.
pub struct Icmp6 {
    tables: Tables,
    path: Option<PathId>,
}

impl Icmp6 {
    /// The module; `tables` says which messages are ours.
    pub fn new(tables: Tables) -> Self {
        Self { tables, path: None }
    }
}

impl Module for Icmp6 {
    fn kind(&self) -> &'static str {
        "icmp6"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn protocol(&self) -> Option<u16> {
        Some(ipv6::ICMP.into())
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        create.set(Attr::ProtId(ipv6::ICMP.into()))?;
        create.set(Attr::Groups(true))?;
        Ok(Step { stage: Some(Box::new(Icmp6Stage)), next: Next::Service(0) })
    }

    fn classify(&self, view: &mut View<'_>) -> Answer {
        let (ours, group) = (view.local.ipv6(), view.group);
        let belongs = ours.and_then(|ours| self.tables.whose_icmp6(ours, view.bytes(), group));
        belongs.map_or(Answer::Pass, Answer::Found)
    }

    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        if *parcel == Parcel::Icmp6 { self.path } else { None }
    }
}

struct Icmp6Stage;

impl Stage for Icmp6Stage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        let path = cx.path();
        cx.module::<Icmp6>().path = Some(path);
        Ok(())
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let (source, destination) = (msg.meta.remote.ip(), msg.meta.local.ip());
        let pseudo = checksum::pseudo_of(source, destination, ipv6::ICMP, msg.len() as u16);
        let request = match icmpv6::parse(msg.bytes(), accept(&msg.meta), pseudo) {
            Err(fault) => return reason(fault).into(),
            Ok(icmpv6::Message::EchoRequest { .. }) => return echo(cx, msg),
            Ok(icmpv6::Message::TooBig { mtu, quote }) if quote.is_echo_reply() => {
                return reply_too_big(cx, mtu, &quote);
            }
            Ok(message) => match report_of(&message, msg) {
                Some(request) => request,
                None => return Verdict::Drop(DropReason::IcmpIgnored),
            },
        };
        match request {
            None => Verdict::Drop(DropReason::IcmpQuote),
            Some(request) => {
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
        let icmp = cx.module::<Icmp6>();
        if icmp.path == Some(path) {
            icmp.path = None;
        }
    }
}

/// Sends an echo request back as its reply; one to all nodes from an address of ours (RFC 4443 §4.2).
fn echo(cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
    icmpv6::make_reply(msg.bytes_mut());
    let start = msg.head() as u16;
    msg.meta.checksum = Checksum::Partial { start, field: start + icmpv6::CHECKSUM as u16 };
    // A drop on the way down has been counted there.
    let _ = cx.down(msg);
    Verdict::Consumed
}

/// An echo reply of ours was too large for a link on its way: the next one to there is not (RFC 8201 §4, whatever was sent). Anybody
/// can have made that up who knows where we reply; less than IPv6's least MTU comes of nothing.
fn reply_too_big(cx: &mut Cx<'_, '_>, mtu: u32, quote: &Quote<'_>) -> Verdict {
    let (source, destination) = (quote.header.source(), quote.header.destination());
    if mtu < ipv6::MIN_MTU.into() {
        return Verdict::Drop(DropReason::IcmpIgnored);
    }
    if destination.is_multicast() || !cx.module::<Icmp6>().tables.is_local(source) {
        return Verdict::Drop(DropReason::IcmpQuote);
    }
    cx.tell_below(Report::PathMtu {
        mtu: packet_mtu(mtu),
        sequence: 0,
        remote: Endpoint::v6(destination, 0),
    });
    Verdict::Consumed
}

/// More than the length of a packet does not matter.
fn packet_mtu(mtu: u32) -> u16 {
    u16::try_from(mtu).unwrap_or(u16::MAX)
}

/// What an error tells the path that sent the quoted packet: `None` when the message is no error,
/// `Some(None)` when the packet was none of ours.
fn report_of(message: &icmpv6::Message<'_>, msg: &Message<'_>) -> Option<Option<Request>> {
    let unreachable = |quote: &Quote<'_>, errno, hard| {
        told(quote, msg, |sequence, remote| Report::Unreachable { errno, hard, sequence, remote })
    };
    match message {
        icmpv6::Message::Unreachable { reason, quote } => {
            let (errno, hard) = match reason {
                Unreachable::Route => (errno::NETWORK, false),
                Unreachable::Prohibited => (errno::ACCESS, true),
                Unreachable::Port => (errno::REFUSED, true),
                Unreachable::Scope | Unreachable::Address | Unreachable::Other(_) => (errno::HOST, false),
            };
            Some(unreachable(quote, errno, hard))
        }
        // RFC 8201 §4: no link of IPv6 takes less than its least MTU.
        icmpv6::Message::TooBig { mtu, .. } if *mtu < u32::from(ipv6::MIN_MTU) => None,
        icmpv6::Message::TooBig { mtu, quote } => Some(told(quote, msg, |sequence, remote| {
            Report::PathMtu { mtu: packet_mtu(*mtu), sequence, remote }
        })),
        icmpv6::Message::Exceeded { quote } => Some(unreachable(quote, errno::HOST, false)),
        // RFC 9293 §3.9.2.2: an unknown next header is a hard error.
        icmpv6::Message::Problem { code, quote } => Some(unreachable(quote, errno::PROTO, *code == 1)),
        _ => None,
    }
}

/// A report to the flow that the quoted packet belongs to.
fn told(
    quote: &Quote<'_>,
    msg: &Message<'_>,
    report: impl FnOnce(u32, Endpoint) -> Report,
) -> Option<Request> {
    let (source, destination) = quote.ports()?;
    let local = Endpoint::v6(quote.header.source(), source);
    let remote = Endpoint::v6(quote.header.destination(), destination);
    let udp = quote.protocol == ipv4::UDP;
    let quoted = udp.then(|| quoted(msg, quote.rest)).flatten();
    Some(Request::Report { udp, local, remote, report: report(quote.sequence(), remote), quoted })
}
