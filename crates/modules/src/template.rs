//! The transformation rule *header template* (Scout §3.2; §2: "check for the sum of all header
//! lengths at the beginning"): on a path between two fixed ends the headers of ETH, IP and UDP
//! hardly change, so sending is one prepended header with its lengths and sums patched in, and
//! receiving is one length check and one comparison. Whatever is unusual (an option, a
//! fragment, a stale next hop, too long a message) takes the stages that were there before,
//! which the template keeps; so a path means the same with and without it.

use crate::eth::EthStage;
use crate::faults::accept;
use crate::ip::{IpStage, packet_len};
use crate::udp::{MAX_DATA, UdpStage};
use crate::vnet;
use alloc::boxed::Box;
use alloc::vec::Vec;
use silk_instant::Instant;
use silk_path::transform::{Rewrite, Rule};
use silk_path::{Bell, Checksum, Cx, Endpoint, Event, Message, Report, Slot, Stage, Verdict};
use silk_wire::checksum::{Sum, pseudo};
use silk_wire::{MacAddr, eth, ipv4, udp};

/// ETH and IP.
const SHORT: usize = eth::HEADER + ipv4::HEADER;
/// ETH, IP and UDP.
const LONG: usize = SHORT + udp::HEADER;

/// The rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeaderTemplate;

impl Rule for HeaderTemplate {
    fn name(&self) -> &'static str {
        "header template"
    }

    fn matches(&self, path: &Rewrite<'_>) -> bool {
        let at = usize::from(path.begins_with(&["vnet", "eth", "ip"]));
        let fixed = |ip: &IpStage| ip.remote.is_some() && ip.local.is_some() && ip.protocol != 0;
        path.stage::<EthStage>(at).is_some() && path.stage::<IpStage>(at + 1).is_some_and(fixed)
    }

    fn apply(&self, path: &mut Rewrite<'_>) {
        let at = usize::from(path.begins_with(&["vnet", "eth", "ip"]));
        let ports = path.stage::<UdpStage>(at + 2).and_then(|udp| Some((udp.local, udp.remote?)));
        let count = at + 2 + usize::from(ports.is_some());
        path.collapse(count, |inner| Box::new(Template::new(inner, at, ports)));
    }
}

/// The stages of ETH, IP and perhaps UDP as one.
struct Template {
    // From the bottom: perhaps VNET, ETH, IP, perhaps UDP.
    inner: Vec<Slot>,
    // Where ETH is in `inner`.
    eth: u8,
    // Bytes of `header` in use: SHORT, or LONG with UDP.
    length: u8,
    // VNET is among the stages: checksums are completed here.
    completes: bool,
    // Lengths and checksums zero.
    header: [u8; LONG],
    // The folded sum of the IP header, and of the pseudo-header without its length.
    ip_sum: u16,
    pseudo_sum: u16,
    mtu: u16,
    // Until when the header is good for sending; before the first message it is not.
    until: Instant,
    local: Endpoint,
    remote: Endpoint,
}

impl Template {
    fn new(inner: Vec<Slot>, at: usize, ports: Option<(Endpoint, Endpoint)>) -> Self {
        let nowhere = silk_path::NOWHERE;
        let (local, remote) = ports.unwrap_or((nowhere, nowhere));
        let length = if ports.is_some() { LONG } else { SHORT };
        let mut template = Self {
            inner,
            eth: at as u8,
            length: length as u8,
            completes: at > 0,
            header: [0; LONG],
            ip_sum: 0,
            pseudo_sum: 0,
            mtu: 0,
            until: Instant::ZERO,
            local,
            remote,
        };
        template.refresh();
        template
    }

    fn ip(&self) -> Option<&IpStage> {
        (&*self.inner.get(usize::from(self.eth) + 1)?.stage as &dyn core::any::Any).downcast_ref()
    }

    fn source(&self) -> Option<MacAddr> {
        let stage = &*self.inner.get(usize::from(self.eth))?.stage as &dyn core::any::Any;
        Some(stage.downcast_ref::<EthStage>()?.source)
    }

    fn has_udp(&self) -> bool {
        usize::from(self.length) == LONG
    }

    /// The service bits that differ from packet to packet: TCP's ECN field (RFC 3168 §6.1.5).
    fn changing(&self) -> u8 {
        if self.header[PROTOCOL] == ipv4::TCP { ECN } else { 0 }
    }

    /// Takes over what the stages know now.
    fn refresh(&mut self) {
        let (Some(source), Some(ip)) = (self.source(), self.ip()) else { return };
        let (Some(local), Some(remote)) = (ip.local, ip.remote) else { return };
        let (protocol, tos) = (ip.protocol, ip.tos);
        let mtu = if protocol == ipv4::TCP { ip.device_mtu } else { ip.mtu };
        let emit = ip.header(local, remote, protocol, tos, 0);
        // Packets that may be cut up on the way each need an identification of their own.
        let until = if emit.dont_fragment { ip.next_hop.until } else { Instant::ZERO };
        let link = MacAddr(ip.next_hop.link);
        eth::Header::new(link, source, eth::IPV4).emit(&mut self.header);
        emit.emit(&mut self.header[eth::HEADER..]);
        self.header[LENGTH..LENGTH + 2].fill(0);
        self.header[CHECKSUM..CHECKSUM + 2].fill(0);
        self.ip_sum = Sum::ZERO.bytes(&self.header[eth::HEADER..SHORT]).folded();
        self.pseudo_sum = pseudo(local, remote, protocol, 0).folded();
        (self.mtu, self.until) = (mtu, until);
        self.local.set_ip(local);
        self.remote.set_ip(remote);
        let ports = (self.local.port(), self.remote.port());
        udp::emit(ports.0, ports.1, 0, 0, &mut self.header[SHORT..]);
    }

    /// Whether the template fits this message on its way down.
    fn fits(&self, now: Instant, msg: &Message<'_>) -> bool {
        let length = msg.len() + usize::from(self.length) - eth::HEADER;
        let (tos, own) = (self.header[TOS], msg.meta.tos & !self.changing());
        now < self.until
            && packet_len(&msg.meta, self.header[PROTOCOL], length - ipv4::HEADER) + ipv4::HEADER
                <= self.mtu.into()
            && length <= ipv4::MAX
            && (own == tos || (tos != 0 && own == 0))
            && (!self.has_udp() || msg.len() <= MAX_DATA)
            && msg.headroom() >= self.length.into()
    }

    /// Prepends the header. `None`: the device refuses the checksum.
    fn prepend(&self, msg: &mut Message<'_>) -> Option<()> {
        let (payload, ecn) = (msg.len(), msg.meta.tos & self.changing());
        let total = (payload + usize::from(self.length) - eth::HEADER) as u16;
        let transport = total - ipv4::HEADER as u16;
        let sum = Sum::from_folded(self.pseudo_sum).word(transport).folded();
        let bytes = msg.push(self.length.into()).ok()?;
        bytes.copy_from_slice(&self.header[..self.length.into()]);
        bytes[LENGTH..LENGTH + 2].copy_from_slice(&total.to_be_bytes());
        bytes[TOS] |= ecn;
        let checksum = Sum::from_folded(self.ip_sum).word(total).word(ecn.into()).checksum();
        bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
        if self.has_udp() {
            bytes[SHORT + 4..SHORT + 6].copy_from_slice(&transport.to_be_bytes());
            let start = (msg.head() + SHORT) as u16;
            msg.meta.checksum = Checksum::Partial { start, field: start + udp::CHECKSUM as u16 };
        }
        if let Checksum::Partial { start, field } = msg.meta.checksum {
            let at = usize::from(field).checked_sub(msg.head())?;
            msg.bytes_mut().get_mut(at..at + 2)?.copy_from_slice(&sum.to_be_bytes());
            if self.completes {
                vnet::complete(msg, start.into(), field.into())?;
                msg.meta.checksum = Checksum::Verified;
            }
        }
        Some(())
    }

    /// The bytes the headers take and the payload behind them, when the packet is of the usual
    /// sort, for us, and right.
    fn recognise(&self, msg: &Message<'_>) -> Option<usize> {
        let (bytes, header) = (msg.bytes(), &self.header);
        // The one length check.
        let (head, rest) = bytes.split_at_checked(self.length.into())?;
        let total = usize::from(u16::from_be_bytes([head[LENGTH], head[LENGTH + 1]]));
        let expected = head[..6] == header[6..12]
            && head[12..15] == header[12..15]
            && head[FRAGMENT] & 0x3f == 0
            && head[FRAGMENT + 1] == 0
            && head[PROTOCOL] == header[PROTOCOL]
            && head[26..30] == header[30..34]
            && head[30..34] == header[26..30];
        let payload = (total + eth::HEADER).checked_sub(self.length.into()).filter(|n| *n <= rest.len())?;
        let sound = expected && Sum::ZERO.bytes(&head[eth::HEADER..SHORT]).folded() == 0xffff;
        if !sound || (self.has_udp() && !self.recognise_udp(msg, SHORT + total - ipv4::HEADER)) {
            return None;
        }
        Some(payload)
    }

    fn recognise_udp(&self, msg: &Message<'_>, end: usize) -> bool {
        let Some(datagram) = msg.bytes().get(SHORT..end) else { return false };
        let sum = |length| Sum::from_folded(self.pseudo_sum).word(length);
        let Ok((header, data)) = udp::parse(datagram, accept(&msg.meta), sum) else { return false };
        let ports = (header.source(), header.destination());
        ports == (self.remote.port(), self.local.port()) && data.len() + udp::HEADER == datagram.len()
    }
}

/// The ECN field of the service bits (RFC 3168 §5).
pub(crate) const ECN: u8 = 3;
const TOS: usize = eth::HEADER + 1;
const LENGTH: usize = eth::HEADER + 2;
const FRAGMENT: usize = eth::HEADER + 6;
const PROTOCOL: usize = eth::HEADER + 9;
const CHECKSUM: usize = eth::HEADER + 10;

impl Stage for Template {
    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        // Until the next hop is resolved, IP wants to see where packets come from.
        let resolved = cx.now() < self.until;
        let Some(payload) = self.recognise(msg).filter(|_| resolved) else {
            return cx.inner_up(&mut self.inner, msg);
        };
        let mut source = [0; 6];
        source.copy_from_slice(&msg.bytes()[6..12]);
        msg.meta.link = source;
        msg.meta.tos = msg.bytes()[TOS];
        msg.meta.protocol = self.header[PROTOCOL];
        msg.pop(self.length.into());
        msg.truncate(payload);
        msg.meta.remote = self.remote;
        msg.meta.local = self.local;
        Verdict::Forward
    }

    fn down(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        if self.fits(cx.now(), msg) && self.prepend(msg).is_some() {
            return Verdict::Forward;
        }
        // A drop has been counted inside.
        let _ = cx.inner_down(&mut self.inner, msg);
        self.refresh();
        Verdict::Consumed
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        cx.inner_each(&mut self.inner, |stage, cx| {
            stage.timer(cx);
            true
        });
    }

    fn bell(&mut self, cx: &mut Cx<'_, '_>, bell: Bell) -> bool {
        let all = cx.inner_each(&mut self.inner, |stage, cx| stage.bell(cx, bell));
        if matches!(bell, Bell::Service(_) | Bell::Wishes(_)) {
            self.refresh();
        }
        all
    }

    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        let end = self.inner.len() - usize::from(self.has_udp());
        if let (Report::Unreachable { errno, .. }, true) = (report, self.has_udp()) {
            // In UDP's place, so that the stages above hear of it too.
            cx.raise(Event::Unreachable(errno));
        }
        let all = cx.inner_each(&mut self.inner[..end], |stage, cx| stage.report(cx, report));
        self.refresh();
        all
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        cx.inner_each(&mut self.inner, |stage, cx| {
            stage.destroy(cx);
            true
        });
    }
}
