//! RTP: video from senders that speak RTP (RFC 3550), MPEG-1 and MPEG-2 by RFC 2250, H.264 by
//! RFC 6184. Ordered, not reliable: a packet is passed on at once or never, and what it leaves out
//! is said (`Framing::gap`). It must never queue: a path has queues at its ends alone (Scout
//! §4.1), and a packet that waits here for an earlier one would be a picture that comes late for
//! one that may never come. So of packets out of order the late ones are dropped and counted.
//!
//! The stream belongs to the source of its first packet, by SSRC and address, and a second sender
//! disturbs nothing. When its source has been silent for long (compare RFC 3550 §6.3.5) the stream is
//! over, which the stages above are told; another may begin then.
//!
//! # Configuration
//! `port` — the UDP port; default 5004. Used where the path's attributes say none.
//! `payload` — `"mpv"` (RFC 2250), `"h264"` (RFC 6184) or `"auto"`, the default: the static
//! payload type 32 is MPEG video, a dynamic one (96 to 127) H.264.
//! `silence` — after how many seconds without a packet the stream is over; default 5.
//!
//! # Services
//! `up` (net): MPEG. `down` (net, needed): a datagram protocol, UDP.
//!
//! # Attributes
//! Sets `Local` (any of our addresses, `port`) where there is none. Without `Remote` the flow of the stream's
//! source is entered into the classifier as soon as two of its packets have come in sequence, and taken
//! out when the stream is over: what is discarded early is discarded of it too.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "rtp"
//! kind = "rtp"
//! port = 5004
//! payload = "mpv"
//!
//! [[link]]
//! from = "rtp.down"
//! to = "udp.up"
//! ```
//!
//! # See also
//! [`udp`](crate::udp) below; [`RtpStage::counts`] for what a receiver's report would say.

mod payload;
mod source;

pub use source::Counts;

use crate::faults::reason;
use crate::unsummed::verify;
use alloc::boxed::Box;
use core::net::Ipv4Addr;
use core::time::Duration;
use payload::Told;
use silk_instant::Instant;
use silk_path::classify::{Between, Found, Protocol, Tables};
use silk_path::service::{NET, Service};
use silk_path::{
    Attr, Create, CreateError, Cx, DropReason, Endpoint, Event, Framing, Message, Module, Next, Parameter,
    ParameterKind, Stage, Step, Verdict,
};
use silk_wire::rtp;
use source::{Packet, Source};

/// Its services.
pub const SERVICES: &[Service] = &[Service::offered("up", NET), Service::needed("down", NET)];
const DOWN: u8 = 1;
/// Its parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "port", kind: ParameterKind::Number(1, 65535), required: false },
    Parameter { name: "payload", kind: ParameterKind::OneOf(&["auto", "mpv", "h264"]), required: false },
    Parameter { name: "silence", kind: ParameterKind::Number(1, 3600), required: false },
];

/// How long a source is silent before its stream is over, where nothing else is said.
pub const SILENCE: Duration = Duration::from_secs(5);
/// A timer that comes so much later than it was set for tells of this host, not of the source.
const LATE: Duration = Duration::from_millis(500);
/// After so long it is looked again where nothing can be said of the source.
const AGAIN: Duration = Duration::from_secs(1);

/// How the payload is carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// By the payload type of the first packet.
    #[default]
    Auto,
    /// MPEG-1 and MPEG-2 video (RFC 2250).
    Mpv,
    /// H.264 (RFC 6184).
    H264,
}

impl Payload {
    /// The one called `name` in a graph file.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "mpv" => Some(Self::Mpv),
            "h264" => Some(Self::H264),
            _ => None,
        }
    }

    /// What a packet of this payload type carries, if this allows it (RFC 3551 §6: 96 to 127 are
    /// dynamic).
    fn of(self, payload_type: u8) -> Option<Self> {
        match (self, payload_type) {
            (Self::Auto | Self::Mpv, rtp::MPV) | (Self::Mpv, 96..=127) => Some(Self::Mpv),
            (Self::Auto | Self::H264, 96..=127) => Some(Self::H264),
            _ => None,
        }
    }
}

/// The module.
pub struct Rtp {
    tables: Tables,
    domain: u8,
    port: u16,
    payload: Payload,
    silence: Duration,
}

impl Rtp {
    /// The module of domain `domain`, whose flows are in `tables`, at this UDP port. A stream is over
    /// when its source was silent for `silence`.
    pub fn new(tables: Tables, domain: u8, port: u16, payload: Payload, silence: Duration) -> Self {
        Self { tables, domain, port, payload, silence }
    }
}

impl Module for Rtp {
    fn kind(&self) -> &'static str {
        "rtp"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        if create.attrs.local().is_none() {
            create.set(Attr::Local(Endpoint::v4(Ipv4Addr::UNSPECIFIED, self.port)))?;
        }
        let stage = RtpStage {
            found: Found { domain: self.domain, index: create.id.index },
            payload: self.payload,
            silence: self.silence,
            adopts: create.attrs.remote().is_none(),
            entered: None,
            source: None,
            counts: Counts::default(),
            taken: Instant::ZERO,
            armed: None,
        };
        Ok(Step { stage: Some(Box::new(stage)), next: Next::Service(DOWN) })
    }
}

/// RTP's part of a path.
pub struct RtpStage {
    found: Found,
    payload: Payload,
    silence: Duration,
    // No attribute names the peer: it is the stream's source, once there is one.
    adopts: bool,
    // Its flow, and whether this stage has entered that into the classifier.
    entered: Option<(Between, bool)>,
    source: Option<Source>,
    counts: Counts,
    // When it took the source's last packet, and when it is to be looked whether there was silence since.
    taken: Instant,
    armed: Option<Instant>,
}

impl RtpStage {
    /// What was received so far, and what was not.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whom the stream belongs to: the SSRC and where it sends from.
    pub fn sender(&self) -> Option<(u32, Endpoint)> {
        self.source.as_ref().map(|source| (source.ssrc, source.from))
    }

    /// The classifier takes the packets of a source that has proved itself straight to this path, and discards
    /// what is not wanted; `local` is where they arrive. Where it cannot, they come as the first one did.
    fn follow(&mut self, cx: &mut Cx<'_, '_>, local: Endpoint) {
        let source = self.source.filter(|source| self.adopts && source.valid);
        let remote = source.map(|source| source.from);
        if self.entered.map(|(flow, _)| flow.remote) == remote {
            return;
        }
        self.leave(cx);
        if let Some(remote) = remote {
            let flow = Between { protocol: Protocol::Udp, local, remote };
            let entered = cx.module::<Rtp>().tables.flows.insert(&flow, self.found);
            self.entered = Some((flow, entered.is_ok()));
        }
    }

    fn look_again(&mut self, cx: &mut Cx<'_, '_>, at: Instant) {
        self.armed = Some(at);
        cx.arm(at);
    }

    fn leave(&mut self, cx: &mut Cx<'_, '_>) {
        if let Some((flow, true)) = self.entered.take() {
            cx.module::<Rtp>().tables.flows.remove(&flow);
        }
    }

    /// What a packet says, and where its data begin and how long they are; or why it is dropped. Source and
    /// counts are as they are with it.
    fn look(
        &self,
        msg: &Message<'_>,
        discarded: u64,
        (source, counts): (&mut Option<Source>, &mut Counts),
    ) -> Result<(Framing, usize, usize), DropReason> {
        let packet = rtp::parse(msg.bytes()).map_err(reason)?;
        let (header, payload) = (*packet.header, packet.payload);
        let format = self.payload.of(header.payload_type()).ok_or(DropReason::RtpType)?;
        let told = Told::by(format, payload).map_err(reason)?;
        let (front, length) = (packet.length + told.header, payload.len() - told.header);
        let packet = Packet { header, from: msg.meta.remote, arrival: msg.meta.arrival };
        let unwanted = discarded.saturating_sub(counts.discarded);
        let place = source::admit(source, &packet, counts, unwanted)?;
        counts.uncut += u64::from(!told.cut);
        let framing = place.framing(&header, &told);
        if let Some(source) = source {
            source.told(&framing);
        }
        Ok((framing, front, length))
    }
}

impl Stage for RtpStage {
    /// The packet is carried up by this stage itself, and nothing of the stage changes before that: where
    /// checksums are verified above (the rule *integrated layers*), it is not known before whether the
    /// packet has arrived as it was sent.
    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let discarded = cx.module::<Rtp>().tables.discarded(self.found);
        let (mut source, mut counts, arrival) = (self.source, self.counts, msg.meta.arrival);
        let verdict = match self.look(msg, discarded, (&mut source, &mut counts)) {
            Ok((framing, front, length)) => {
                msg.meta.framing = framing;
                msg.pop(front);
                msg.truncate(length);
                if cx.up(msg) == Err(DropReason::UdpChecksum) {
                    // Nothing has come of it, and the drop has been counted there; so have others.
                    return Verdict::Consumed;
                }
                Verdict::Consumed
            }
            Err(reason) => {
                if let Err(wrong) = verify(msg) {
                    return wrong.into();
                }
                reason.into()
            }
        };
        (self.source, self.counts) = (source, counts);
        self.follow(cx, msg.meta.local);
        // Also what comes too late, or twice, says that the source is there.
        if self.source.is_some_and(|source| source.heard == arrival) {
            self.taken = cx.now();
        }
        if verdict == Verdict::Consumed && self.armed.is_none() {
            self.look_again(cx, cx.now() + self.silence);
        }
        verdict
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        let (now, set) = (cx.now(), self.armed.take());
        let due = self.taken + self.silence;
        if due > now {
            return self.look_again(cx, due);
        }
        // What waits has been sent, though the path was held back or had no turn; and where this host has slept, what was
        // sent meanwhile is still in the device.
        if !cx.input().is_empty() || set.is_some_and(|set| now.since(set) > LATE) {
            return self.look_again(cx, now + AGAIN);
        }
        // A stray packet was no stream, and no stream has ended.
        self.leave(cx);
        if self.source.take().is_some_and(|source| source.valid) {
            cx.raise(Event::PeerFinished);
        }
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        self.leave(cx);
    }

    /// A player sends nothing.
    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn state(&self) -> &'static str {
        match &self.source {
            None => "WAITING",
            Some(source) if !source.valid => "PROBATION",
            Some(_) if self.counts.is_cut() => "RECEIVING",
            Some(_) => "NOT CUT AT SLICES",
        }
    }
}
