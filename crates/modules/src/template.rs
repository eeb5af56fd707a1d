//! The transformation rule *header template* (Scout §3.2; §2: "check for the sum of all header
//! lengths at the beginning"): on a path between two fixed ends the headers of ETH, IP and UDP
//! hardly change, so sending is one prepended header with its lengths and sums patched in, and
//! receiving is one length check and one comparison. Whatever is unusual (an option, a
//! fragment, a stale next hop, too long a message) takes the stages that were there before,
//! which the template keeps; so a path means the same with and without it.

use crate::eth::EthStage;
use crate::faults::accept;
use crate::ip::{ECN, IpStage, packet_len};
use crate::udp::{MAX_DATA, UdpStage};
use crate::vnet;
use alloc::boxed::Box;
use alloc::vec::Vec;
use silk_instant::Instant;
use silk_path::transform::{Rewrite, Rule};
use silk_path::{Bell, Checksum, Cx, Endpoint, Event, Message, Report, Slot, Stage, Verdict};
use silk_wire::checksum::{Sum, pseudo};
use silk_wire::{MacAddr, eth, ipv4, udp};

/// The longest: ETH with a tag, IP and UDP.
const LONGEST: usize = eth::HEADER + eth::TAG + ipv4::HEADER + udp::HEADER;

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
    // The device that the header is for.
    device: u8,
    // Bytes of ETH's header, with a tag where the frames have one.
    link: u8,
    // Bytes of `header` in use: ETH's, IP's and perhaps UDP's.
    length: u8,
    // UDP is among the stages.
    has_udp: bool,
    // VNET is among the stages: checksums are completed here.
    completes: bool,
    // Lengths and checksums zero.
    header: [u8; LONGEST],
    // The folded sum of the IP header, and of the pseudo-header without its length.
    ip_sum: u16,
    pseudo_sum: u16,
    mtu: u16,
    // Until when the header is good for sending; before the first message it is not.
    until: Instant,
}

impl Template {
    fn new(inner: Vec<Slot>, at: usize, ports: Option<(Endpoint, Endpoint)>) -> Self {
        let nowhere = silk_path::NOWHERE;
        let (local, remote) = ports.unwrap_or((nowhere, nowhere));
        let has_udp = ports.is_some();
        let mut template = Self {
            inner,
            eth: at as u8,
            device: 0,
            link: 0,
            length: 0,
            has_udp,
            completes: at > 0,
            header: [0; LONGEST],
            ip_sum: 0,
            pseudo_sum: 0,
            mtu: 0,
            until: Instant::ZERO,
        };
        let link = eth::length(template.below().map_or(0, |eth| eth.place.vlan));
        template.link = link as u8;
        // Both stay; without UDP they are behind what is used of the header.
        udp::emit(local.port(), remote.port(), 0, 0, &mut template.header[link + ipv4::HEADER..]);
        template.refresh();
        template
    }

    /// An end of the path, [`OURS`] or the [`OTHER`].
    fn end(&self, [address, port]: [usize; 2]) -> Endpoint {
        let (address, port) = (self.ip_at(address), self.ip_end() + port);
        let octets = [0, 1, 2, 3].map(|n| self.header[address + n]);
        Endpoint::v4(octets.into(), u16::from_be_bytes([self.header[port], self.header[port + 1]]))
    }

    fn ip(&self) -> Option<&IpStage> {
        (&*self.inner.get(usize::from(self.eth) + 1)?.stage as &dyn core::any::Any).downcast_ref()
    }

    fn below(&self) -> Option<&EthStage> {
        (&*self.inner.get(usize::from(self.eth))?.stage as &dyn core::any::Any).downcast_ref()
    }

    /// Where this of IP's header is in the frame.
    fn ip_at(&self, field: usize) -> usize {
        usize::from(self.link) + field
    }

    /// Where IP's header ends in the frame.
    fn ip_end(&self) -> usize {
        self.ip_at(ipv4::HEADER)
    }

    /// The service bits that differ from packet to packet: TCP's ECN field (RFC 3168 §6.1.5).
    fn changing(&self) -> u8 {
        if self.header[self.ip_at(PROTOCOL)] == ipv4::TCP { ECN } else { 0 }
    }

    /// Takes over what the stages know now.
    fn refresh(&mut self) {
        let (Some(below), Some(ip)) = (self.below(), self.ip()) else { return };
        let place = below.place;
        let ports = [OURS, OTHER].map(|end| self.end(end).port());
        let (Some(local), Some(remote)) = (ip.local, ip.remote) else { return };
        let (protocol, tos) = (ip.protocol, ip.tos);
        let mtu = if protocol == ipv4::TCP { ip.device_mtu } else { ip.mtu };
        let emit = ip.header(local, remote, protocol, tos, 0);
        // Packets that may be cut up on the way each need an identification of their own.
        let good = emit.dont_fragment && emit.ttl > 0 && ip.next_hop.link.device == place.device;
        let until = if good { ip.next_hop.until } else { Instant::ZERO };
        let station = MacAddr(ip.next_hop.link.address);
        let link = eth::length(place.vlan);
        let header = eth::Header::new(station, place.address, eth::IPV4);
        (self.device, self.link) = (place.device, link as u8);
        self.length = (link + ipv4::HEADER + if self.has_udp { udp::HEADER } else { 0 }) as u8;
        header.emit_on(place.vlan, &mut self.header);
        let (at, end) = (self.ip_at(0), self.ip_end());
        emit.emit(&mut self.header[at..]);
        self.header[at + LENGTH..][..2].fill(0);
        self.header[at + CHECKSUM..][..2].fill(0);
        self.ip_sum = Sum::ZERO.bytes(&self.header[at..end]).folded();
        self.pseudo_sum = pseudo(local, remote, protocol, 0).folded();
        udp::emit(ports[0], ports[1], 0, 0, &mut self.header[end..]);
        (self.mtu, self.until) = (mtu, until);
    }

    /// Whether the template fits this message on its way down.
    fn fits(&self, now: Instant, msg: &Message<'_>) -> bool {
        let length = msg.len() + usize::from(self.length - self.link);
        let (tos, own) = (self.header[self.ip_at(TOS)], msg.meta.tos & !self.changing());
        now < self.until
            && packet_len(&msg.meta, self.header[self.ip_at(PROTOCOL)], length - ipv4::HEADER) + ipv4::HEADER
                <= self.mtu.into()
            && length <= ipv4::MAX
            && (own == tos || (tos != 0 && own == 0))
            && (!self.has_udp || msg.len() <= MAX_DATA)
            && msg.headroom() >= self.length.into()
    }

    /// Prepends the header. `None`: the device refuses the checksum.
    fn prepend(&self, msg: &mut Message<'_>) -> Option<()> {
        let (payload, ecn) = (msg.len(), msg.meta.tos & self.changing());
        let total = (payload + usize::from(self.length - self.link)) as u16;
        let (at, end) = (self.ip_at(0), self.ip_end());
        let transport = total - ipv4::HEADER as u16;
        let sum = Sum::from_folded(self.pseudo_sum).word(transport).folded();
        msg.meta.link.device = self.device;
        let bytes = msg.push(self.length.into()).ok()?;
        bytes.copy_from_slice(&self.header[..self.length.into()]);
        bytes[at + LENGTH..][..2].copy_from_slice(&total.to_be_bytes());
        bytes[at + TOS] |= ecn;
        let checksum = Sum::from_folded(self.ip_sum).word(total).word(ecn.into()).checksum();
        bytes[at + CHECKSUM..][..2].copy_from_slice(&checksum.to_be_bytes());
        if self.has_udp {
            bytes[end + 4..end + 6].copy_from_slice(&transport.to_be_bytes());
            let start = (msg.head() + end) as u16;
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
        let (ip, own) = (&head[self.ip_at(0)..], &header[self.ip_at(0)..]);
        let total = usize::from(u16::from_be_bytes([ip[LENGTH], ip[LENGTH + 1]]));
        let expected = head[..6] == header[6..12]
            && self.recognise_kind(head)
            && ip[0] == own[0]
            && ip[FRAGMENT] & 0x3f == 0
            && ip[FRAGMENT + 1] == 0
            && ip[PROTOCOL] == own[PROTOCOL]
            && ip[12..16] == own[16..20]
            && ip[16..20] == own[12..16];
        let headers = usize::from(self.length - self.link);
        let payload = total.checked_sub(headers).filter(|n| *n <= rest.len())?;
        let sound = expected && Sum::ZERO.bytes(&ip[..ipv4::HEADER]).folded() == 0xffff;
        if !sound || (self.has_udp && !self.recognise_udp(msg, self.ip_at(total))) {
            return None;
        }
        Some(payload)
    }

    /// Whether kind and tag are the path's; the tag's priority (IEEE 802.1Q-2018 §9.6) may be any.
    fn recognise_kind(&self, head: &[u8]) -> bool {
        let header = &self.header;
        if usize::from(self.link) == eth::HEADER {
            return head[12..14] == header[12..14];
        }
        let vid = |bytes: &[u8]| [bytes[14] & (eth::VID >> 8) as u8, bytes[15]];
        head[12..14] == header[12..14] && vid(head) == vid(header) && head[16..18] == header[16..18]
    }

    fn recognise_udp(&self, msg: &Message<'_>, end: usize) -> bool {
        let Some(datagram) = msg.bytes().get(self.ip_end()..end) else { return false };
        let sum = |length| Sum::from_folded(self.pseudo_sum).word(length);
        let Ok((header, data)) = udp::parse(datagram, accept(&msg.meta), sum) else { return false };
        let ports = (header.source(), header.destination());
        ports == (self.end(OTHER).port(), self.end(OURS).port()) && data.len() + udp::HEADER == datagram.len()
    }
}

// Where things are in IP's header.
const TOS: usize = 1;
const LENGTH: usize = 2;
const FRAGMENT: usize = 6;
const TTL: usize = 8;
const PROTOCOL: usize = 9;
const CHECKSUM: usize = 10;
// And the addresses there, with the ports in UDP's.
const OURS: [usize; 2] = [12, 0];
const OTHER: [usize; 2] = [16, 2];

impl Stage for Template {
    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        // Until the next hop is resolved, IP wants to see where packets come from.
        let resolved = cx.now() < self.until;
        let Some(payload) = self.recognise(msg).filter(|_| resolved) else {
            return cx.inner_up(&mut self.inner, msg);
        };
        let mut source = [0; 6];
        source.copy_from_slice(&msg.bytes()[6..12]);
        msg.meta.link.address = source;
        (msg.meta.tos, msg.meta.hops) = (msg.bytes()[self.ip_at(TOS)], msg.bytes()[self.ip_at(TTL)]);
        msg.meta.protocol = self.header[self.ip_at(PROTOCOL)];
        msg.pop(self.length.into());
        msg.truncate(payload);
        msg.meta.remote = self.end(OTHER);
        msg.meta.local = self.end(OURS);
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
        self.refresh();
    }

    fn bell(&mut self, cx: &mut Cx<'_, '_>, bell: Bell) -> bool {
        let all = cx.inner_each(&mut self.inner, |stage, cx| stage.bell(cx, bell));
        if matches!(bell, Bell::Service(_) | Bell::Wishes(_)) {
            self.refresh();
        }
        all
    }

    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        let end = self.inner.len() - usize::from(self.has_udp);
        if let (Report::Unreachable { errno, .. }, true) = (report, self.has_udp) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each connection over IPv4 has them.
    #[test]
    fn a_template_and_what_it_stands_for_are_small() {
        let sizes = [size_of::<Template>(), size_of::<IpStage>(), size_of::<EthStage>()];
        assert!(sizes.iter().zip([104, 72, 24]).all(|(size, most)| *size <= most), "{sizes:?}");
    }
}
