//! IP6's part of a path: headers on and off, extension headers and fragments, the path MTU, and
//! what to do with a message whose next hop is not resolved yet.

use super::fragment::Pieces;
use super::{Ip6, Key, RES, impossible_source};
use crate::faults::{accept, reason};
use crate::ip::held::{Holds, OwnPath, Waiting, unreached};
use crate::ip::next_hop::{Hop, NextHop};
use crate::ip::reassembly::{Expired, First, Piece};
use crate::ip::{ECN, GROUP_TTL, add_pseudo_header, complete_checksum, packet_len};
use alloc::vec;
use core::mem::replace;
use core::net::Ipv6Addr;
use silk_instant::Instant;
use silk_path::classify::skip_extensions;
use silk_path::{
    Attr, Bell, Checksum, CreateError, Cx, Discovery, DropReason, Event, Message, Meta, Report, Request,
    Resolution, Stage, Station, Verdict,
};
use silk_wire::checksum::{Accept, pseudo_of};
use silk_wire::extension::{self, Problem, Refused};
use silk_wire::mld::ALL_NODES;
use silk_wire::{MacAddr, ParseError, eth, icmpv6, ipv4, ipv6, ndp, tcp, udp};

/// Room in front of a message that is sent from here.
const HEADROOM: usize = 64;
/// Nothing follows (RFC 8200 §4.7).
const NO_NEXT_HEADER: u8 = 59;
/// A parameter problem's code: what follows is not known here (RFC 4443 §3.4).
const UNKNOWN_NEXT_HEADER: u8 = 1;
/// The scope of groups of one interface of one machine; that below it is nobody's (RFC 4291 §2.7).
const INTERFACE_LOCAL: u8 = 1;
/// A first fragment without all headers: its sender is told so (RFC 7112 §5, RFC 8200 §4.5).
const INCOMPLETE: Refused = Refused {
    fault: ParseError::Ipv6Fragment,
    problem: Some(Problem { code: 3, pointer: 0, even_to_group: false }),
};

/// IP6's part of a path.
pub(super) struct Ip6Stage {
    // The protocol above; 0 on IP's own path, which takes fragments, and what nobody takes.
    protocol: u8,
    hops: u8,
    // The traffic class of packets that bring none of their own.
    class: u8,
    // The one peer, where there is one.
    remote: Option<Ipv6Addr>,
    // Our address, where it is one.
    local: Option<Ipv6Addr>,
    next_hop: NextHop,
    // The path's MTU, the link's as routers say it, and the device's.
    mtu: u16,
    link_mtu: u16,
    device_mtu: u16,
    // What the program wishes: hop limits, and what becomes of packets that are too large.
    usual_hops: u8,
    group_hops: u8,
    discovery: Discovery,
    // Names the path to routers (RFC 6437 §3).
    flow_label: u32,
    held: Waiting,
}

impl Ip6Stage {
    pub fn new(protocol: u8, remote: Option<Ipv6Addr>, hops: u8) -> Self {
        Self {
            protocol,
            hops,
            class: 0,
            remote,
            local: None,
            next_hop: NextHop::default(),
            mtu: 0,
            link_mtu: 0,
            device_mtu: 0,
            usual_hops: hops,
            group_hops: GROUP_TTL,
            discovery: Discovery::Want,
            flow_label: 0,
            held: Waiting::default(),
        }
    }

    /// The traffic class of a packet that brings `class`: the ECN bits are TCP's own (RFC 3168
    /// §6.1).
    fn class_of(&self, class: u8) -> u8 {
        let own = if self.protocol == ipv4::TCP { class & ECN } else { 0 };
        if self.class != 0 { self.class | own } else { class }
    }

    /// The traffic class that a program may set.
    fn settable(&self, class: u8) -> u8 {
        if self.protocol == ipv4::TCP { class & !ECN } else { class }
    }

    /// The hop limit of a message, and what becomes of it where it is too large. IP's own path is nobody's: each message
    /// brings its program's wishes.
    fn wished(&self, meta: &Meta, destination: Ipv6Addr) -> (u8, Discovery) {
        let usual = if destination.is_multicast() { self.group_hops } else { self.hops };
        match (self.protocol, meta.hops) {
            (0, 0) => (usual, meta.discovery),
            (0, hops) => (hops, meta.discovery),
            _ => (usual, self.discovery),
        }
    }

    /// The station that packets from `source` to `destination` are handed to. A better first hop that does not answer is
    /// forgotten (RFC 1122 §3.3.1.4).
    fn resolve(
        &mut self,
        cx: &mut Cx<'_, '_>,
        ends: (Ipv6Addr, Ipv6Addr),
        meta: &Meta,
    ) -> Result<Station, Resolution> {
        match self.next_station(cx, ends, meta) {
            Err(Resolution::Failed) if cx.module::<Ip6>().redirects.forget(ends.1) => {
                self.next_station(cx, ends, meta)
            }
            found => found,
        }
    }

    fn next_station(
        &mut self,
        cx: &mut Cx<'_, '_>,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        meta: &Meta,
    ) -> Result<Station, Resolution> {
        self.next_hop.resolve(cx, RES, meta, |cx| {
            let now = cx.now();
            let Ip6 { routes, redirects, .. } = cx.module::<Ip6>();
            if destination.is_multicast() {
                let device = routes.link_to_group(destination, source);
                return Hop::Known(Station { device, address: ipv6::group(destination) });
            }
            Hop::to((routes, redirects), now, (source, destination))
        })
    }

    /// Lets whoever runs the path see its MTU.
    fn show_mtu(&self, cx: &mut Cx<'_, '_>) {
        if self.remote.is_some() {
            // Where there is no room for it, it is not seen.
            let _ = cx.attrs_mut().set(Attr::PathMtu(self.mtu));
        }
    }

    /// Takes over what is known of the path's MTU, where there is one.
    fn learn_mtu(&mut self, cx: &mut Cx<'_, '_>) {
        let Some(remote) = self.remote else { return };
        let now = cx.now();
        let ip = cx.module::<Ip6>();
        self.mtu = ip.path_mtus.to(now, remote, &ip.routes).min(self.link_mtu);
        self.show_mtu(cx);
    }

    /// The same later: what a router has said counts for a while (RFC 8201 §4).
    fn renew_mtu(&mut self, cx: &mut Cx<'_, '_>) {
        let before = self.mtu;
        self.learn_mtu(cx);
        if self.mtu != before {
            cx.raise(Event::PathMtu(self.mtu));
        }
    }

    /// The MTU of the way to a destination, for a packet of `length` bytes above IP.
    fn mtu_to(&mut self, cx: &mut Cx<'_, '_>, destination: Ipv6Addr, length: usize) -> u16 {
        let (widest, fixed) = (self.mtu == self.link_mtu, self.remote.is_some());
        if fixed && widest || !fixed && length + ipv6::HEADER <= ipv6::MIN_MTU.into() {
            return self.mtu;
        }
        if fixed {
            self.renew_mtu(cx);
            return self.mtu;
        }
        let now = cx.now();
        let ip = cx.module::<Ip6>();
        ip.path_mtus.to(now, destination, &ip.routes).min(self.link_mtu)
    }

    /// The addresses a packet of this message carries: source and destination.
    fn addresses(&self, cx: &mut Cx<'_, '_>, meta: &Meta) -> Result<(Ipv6Addr, Ipv6Addr), DropReason> {
        let destination = match self.remote {
            Some(remote) => remote,
            None => meta.remote.ipv6().ok_or(DropReason::IpNoRoute)?,
        };
        let routes = &cx.module::<Ip6>().routes;
        // What was sent to a group is answered by one.
        let ours = || meta.local.ipv6().filter(|ours| routes.is_ours(*ours));
        let routed = || routes.source_to(destination);
        let first = || routes.source_to_group(destination).filter(|_| destination.is_multicast());
        let source = self.local.or_else(ours).or_else(routed).or_else(first);
        match source.ok_or(DropReason::IpNoRoute)? {
            source if routes.is_duplicate(source) => Err(DropReason::IpConflict),
            source => Ok((source, destination)),
        }
    }

    /// Sends a datagram in fragments.
    fn send_pieces(
        &mut self,
        cx: &mut Cx<'_, '_>,
        msg: &mut Message<'_>,
        header: ipv6::Emit,
        mtu: u16,
    ) -> Verdict {
        if complete_checksum(msg).is_none() {
            return Verdict::Drop(DropReason::Unexpected);
        }
        // Nobody may guess the next one (RFC 7739 §5).
        let identification = cx.port().random() as u32;
        let mut pieces = Pieces::new(msg, header, identification, mtu);
        let meta = Meta { checksum: Checksum::Verified, ..msg.meta };
        while let Some((buffer, head, tail)) = pieces.next() {
            if cx.down(&mut Message::new(buffer, head, tail, meta)).is_err() {
                // Counted below; the rest would be thrown away by the receiver.
                break;
            }
        }
        Verdict::Consumed
    }

    /// Whether a packet with this header is for this path.
    // RFC 9293 MUST-57, MUST-63.
    fn check(&self, cx: &mut Cx<'_, '_>, header: &ipv6::Header, link: Station) -> Result<(), DropReason> {
        let (source, destination) = (header.source(), header.destination());
        if self.remote.is_some_and(|remote| remote != source)
            || self.local.is_some_and(|local| local != destination)
        {
            return Err(DropReason::NotForPath);
        }
        let ip = cx.module::<Ip6>();
        let routes = &ip.routes;
        // A ping to all nodes is answered (RFC 4443 §4.2).
        let pings_all = self.protocol == ipv6::ICMP && destination == ALL_NODES;
        let heard = || ip.tables.is_heard(destination) || pings_all;
        if self.local.is_none() && !routes.is_ours(destination) && !heard() {
            return Err(DropReason::IpNotForUs);
        }
        let ours = || routes.is_ours(source) && !routes.is_itself(link.device);
        let impossible = || impossible_source(source) || source.is_unspecified() || ours();
        if self.remote.is_none() && impossible() {
            return Err(DropReason::IpBadSource);
        }
        Ok(())
    }

    /// What is above the headers is what this path carries.
    fn check_protocol(&self, packet: &ipv6::Packet<'_>) -> Result<(), DropReason> {
        let any = self.protocol == 0 || packet.fragment.is_some();
        if any || self.protocol == packet.protocol { Ok(()) } else { Err(DropReason::IpProtocol) }
    }

    /// A packet that cannot be understood: its sender is told where, if it may be (RFC 4443 §2.4 e).
    fn refuse(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>, refused: Refused) -> Verdict {
        let told = refused.problem.zip(ipv6::parse_header(msg.bytes()).ok().copied());
        if let Some((problem, header)) = told
            && (problem.even_to_group || !header.destination().is_multicast())
            && !forbids_errors(&header, msg.bytes())
            && self.check(cx, &header, msg.meta.link).is_ok()
        {
            let error = icmpv6::Error::Problem(problem.code, problem.pointer);
            self.send_error(cx, error, &header, msg.bytes(), msg.meta.link);
        }
        Verdict::Drop(reason(refused.fault))
    }

    /// A whole packet for IPv6's own path is one that nobody takes: its sender is told (RFC 4443 §3.1 and §3.4, RFC 8200 §4.7).
    fn turn_away(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>, packet: &ipv6::Packet<'_>) -> Verdict {
        let (header, named_at) = (packet.header, packet.named_at as u32);
        let (error, why) = match packet.protocol {
            ipv4::UDP if !is_sound_datagram(packet, accept(&msg.meta)) => {
                return Verdict::Drop(DropReason::UdpChecksum);
            }
            ipv4::UDP => (icmpv6::Error::Unreachable(icmpv6::Unreachable::Port), DropReason::UdpNoPort),
            ipv4::TCP => return Verdict::Drop(DropReason::TcpNoPort),
            ipv6::ICMP | NO_NEXT_HEADER => return Verdict::Drop(DropReason::IpProtocol),
            _ => (icmpv6::Error::Problem(UNKNOWN_NEXT_HEADER, named_at), DropReason::IpProtocol),
        };
        // RFC 4443 §2.4 e.3.
        if !header.destination().is_multicast() {
            self.send_error(cx, error, header, msg.bytes(), msg.meta.link);
        }
        Verdict::Drop(why)
    }

    /// Sends an error about the packet with this header, of which `quote` are the bytes, to where
    /// it came from, unless that is too many.
    fn send_error(
        &mut self,
        cx: &mut Cx<'_, '_>,
        error: icmpv6::Error,
        header: &ipv6::Header,
        quote: &[u8],
        link: Station,
    ) {
        let now = cx.now();
        if !cx.module::<Ip6>().errors.take(now) {
            return cx.count_drop(DropReason::IcmpRate);
        }
        let mut buffer = vec![0; HEADROOM + icmpv6::HEADER];
        let room = icmpv6::LONGEST - ipv6::HEADER - icmpv6::HEADER;
        // Behind the packet is the padding of its link.
        let whole = quote.len().min(ipv6::HEADER + header.payload_len());
        buffer.extend_from_slice(&quote[..whole.min(room)]);
        error.emit(&mut buffer[HEADROOM..]);
        let field = (HEADROOM + icmpv6::CHECKSUM) as u16;
        let checksum = Checksum::Partial { start: HEADROOM as u16, field };
        let mut meta = Meta { protocol: ipv6::ICMP, checksum, link, ..Meta::default() };
        meta.remote.set_ip(header.source());
        meta.local.set_ip(header.destination());
        let end = buffer.len();
        let mut report = Self::new(ipv6::ICMP, None, self.hops);
        (report.mtu, report.link_mtu, report.flow_label) = (self.mtu, self.link_mtu, self.flow_label);
        // What must wait for its neighbour waits here. A drop has been counted.
        core::mem::swap(&mut report.held, &mut self.held);
        let _ = report.send(cx, &mut Message::new(&mut buffer, HEADROOM, end, meta));
        core::mem::swap(&mut report.held, &mut self.held);
    }

    /// Charges what a piece of this datagram costs. What the path may have can be less than reassembly keeps.
    fn pay(&self, cx: &mut Cx<'_, '_>, key: &Key, cost: usize) -> Result<(), DropReason> {
        while cx.charge(cost).is_err() {
            let freed = cx.module::<Ip6>().reassembly.give_up_oldest(key);
            cx.release(freed.ok_or(DropReason::IpFragmentLimit)?);
        }
        Ok(())
    }

    /// Takes a fragment into reassembly, and counts what has to make room for it.
    fn take_fragment(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>) -> Result<(), DropReason> {
        let taken = self.put_together(cx, msg);
        let crowded_out = core::mem::take(&mut cx.module::<Ip6>().reassembly.crowded_out);
        (0..crowded_out).for_each(|_| cx.count_drop(DropReason::IpFragmentLimit));
        taken
    }

    /// A fragment is put to the others of its datagram; what becomes whole is classified again (Scout §3.4).
    fn put_together(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>) -> Result<(), DropReason> {
        let packet = ipv6::parse(msg.bytes()).map_err(|refused| reason(refused.fault))?;
        let Some(fragment) = packet.fragment else { return Err(DropReason::Unexpected) };
        if fragment.offset == 0 && !begins_well(packet.protocol, packet.payload) {
            return Err(DropReason::IpFragment);
        }
        let piece = Piece {
            offset: fragment.offset,
            more: fragment.more,
            tos: packet.header.traffic_class(),
            checksum: msg.meta.checksum,
            headers: &msg.bytes()[..packet.headers_len],
            payload: packet.payload,
        };
        let now = cx.now();
        let key = Key {
            source: packet.header.source(),
            destination: packet.header.destination(),
            identification: fragment.identification,
        };
        self.pay(cx, &key, piece.cost())?;
        let vlan = cx.module::<Ip6>().tables.vlan(msg.meta.link.device);
        let reassembly = &mut cx.module::<Ip6>().reassembly;
        let before = reassembly.memory() + piece.cost();
        let (link, front) = (eth::length(vlan), eth::length(vlan) + ipv6::HEADER);
        let result = reassembly.insert(now, (key, (*packet.header, packet.protocol)), piece, front);
        let after = reassembly.memory();
        cx.release(before - after);
        self.arm(cx);
        if let Some(whole) = result? {
            let (mut frame, checksum, (header, protocol)) = (whole.bytes, whole.checksum, whole.header);
            let payload = (frame.len() - front) as u16;
            ipv6::emit_reassembled(&header, whole.tos, protocol, payload, &mut frame[link..]);
            let device = msg.meta.link.device;
            let ours = cx.module::<Ip6>().stations.at(device).unwrap_or_default();
            eth::Header::new(ours, MacAddr(msg.meta.link.address), eth::IPV6).emit_on(vlan, &mut frame);
            cx.request(Request::Arrived { device, frame, checksum });
        }
        Ok(())
    }

    /// Gives up datagrams of which not all pieces have come in time.
    fn give_up_pieces(&mut self, cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        while let Some(Expired { freed, first }) = cx.module::<Ip6>().reassembly.expire(now) {
            cx.release(freed);
            cx.count_drop(DropReason::IpFragmentTimeout);
            if let Some(first) = first {
                self.send_exceeded(cx, &first);
            }
        }
    }

    /// Tells a sender that its datagram was given up (RFC 8200 §4.5), of which this is the first fragment.
    fn send_exceeded(&mut self, cx: &mut Cx<'_, '_>, first: &First<(ipv6::Header, u8)>) {
        let (header, protocol) = &first.header;
        let kind = first.packet.get(first.headers_len);
        let forbidden = *protocol == ipv6::ICMP && kind.is_some_and(|kind| icmpv6::forbids_errors(*kind));
        if forbidden || header.destination().is_multicast() {
            // RFC 4443 §2.4 e.
            return;
        }
        let error = icmpv6::Error::ReassemblyExceeded;
        self.send_error(cx, error, header, &first.packet, Station::default());
    }
}

/// Whether a packet carries a datagram that is whole and has the checksum that it must have (RFC 8200 §8.1): what is broken may
/// have been for another port.
fn is_sound_datagram(packet: &ipv6::Packet<'_>, accept: Accept) -> bool {
    let [source, destination] = [packet.header.source(), packet.header.destination()].map(Into::into);
    let pseudo = |length| pseudo_of(source, destination, ipv4::UDP, length);
    udp::parse(packet.payload, accept, pseudo).is_ok_and(|(header, _)| !header.is_unsummed())
}

/// Whether a packet carries an error of ICMPv6 or a redirect, about which no error is sent (RFC 4443 §2.4 e.1 and e.2).
fn forbids_errors(header: &ipv6::Header, packet: &[u8]) -> bool {
    let rest = packet.get(ipv6::HEADER..).unwrap_or_default();
    skip_extensions(header.next_header, rest).is_some_and(|(protocol, _, carried)| {
        protocol == ipv6::ICMP && carried.first().is_some_and(|kind| icmpv6::forbids_errors(*kind))
    })
}

impl Holds for Ip6Stage {
    const FULL: DropReason = DropReason::NdPending;

    fn own<'c>(cx: &'c mut Cx<'_, '_>) -> &'c mut OwnPath<Self> {
        &mut cx.module::<Ip6>().own
    }

    fn held(&mut self) -> &mut Waiting {
        &mut self.held
    }

    fn rest(&mut self) -> Self {
        let fresh = Self::new(self.protocol, None, self.hops);
        Self { next_hop: NextHop::default(), ..replace(self, fresh) }
    }

    fn arm(&mut self, cx: &mut Cx<'_, '_>) {
        let (now, path, again) = (cx.now(), cx.path(), self.again(cx));
        let ip = cx.module::<Ip6>();
        let told = self.remote.and_then(|remote| ip.path_mtus.until(now, remote));
        let pieces = (ip.own.path == Some(path)).then(|| ip.reassembly.deadline());
        cx.arm(told.into_iter().chain(pieces).fold(again, Instant::min));
    }
}

impl Stage for Ip6Stage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        let attrs = cx.attrs();
        let local = attrs.local().and_then(|local| local.ipv6());
        // Who waits at a group sends from one of our addresses (RFC 4291 §2.7).
        self.local = local.filter(|local| !local.is_unspecified() && !local.is_multicast());
        self.next_hop.fixed = attrs.next_hop().map(|hop| (attrs.device().unwrap_or(0), hop));
        self.class = self.settable(attrs.tos().unwrap_or(0));
        self.device_mtu = attrs.mtu().unwrap_or(ipv6::MIN_MTU);
        let path = cx.path();
        self.flow_label = cx.port().random() as u32 & 0xf_ffff;
        let ip = cx.module::<Ip6>();
        self.link_mtu = ip.told_mtu.unwrap_or(u16::MAX).min(self.device_mtu);
        self.mtu = self.link_mtu;
        self.learn_mtu(cx);
        let ip = cx.module::<Ip6>();
        match self.remote {
            None if self.protocol == 0 => ip.own.path = Some(path),
            None => {}
            // Asked for early; whatever comes of it, the first message finds out.
            Some(remote) => {
                let local = self.local.unwrap_or(Ipv6Addr::UNSPECIFIED);
                let _ = self.resolve(cx, (local, remote), &Meta::default());
                self.arm(cx);
            }
        }
        Ok(())
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let packet = match ipv6::parse(msg.bytes()) {
            Err(refused) => return self.refuse(cx, msg, refused),
            Ok(packet) => packet,
        };
        let (header, protocol) = (*packet.header, packet.protocol);
        let (headers, payload, fragment) = (packet.headers_len, packet.payload.len(), packet.fragment);
        if let Err(reason) =
            self.check(cx, &header, msg.meta.link).and_then(|()| self.check_protocol(&packet))
        {
            return reason.into();
        }
        if let Some(fragment) = fragment {
            if fragment.offset == 0 && lacks_headers(protocol, packet.payload) {
                return self.refuse(cx, msg, INCOMPLETE);
            }
            return match self.take_fragment(cx, msg) {
                Ok(()) => Verdict::Consumed,
                Err(reason) => reason.into(),
            };
        }
        let path = cx.path();
        if cx.module::<Ip6>().own.path == Some(path) {
            return self.turn_away(cx, msg, &packet);
        }
        if self.remote.is_some() {
            self.next_hop.seen = msg.meta.link;
        }
        msg.pop(headers);
        msg.truncate(payload);
        msg.meta.remote.set_ip(header.source());
        msg.meta.local.set_ip(header.destination());
        msg.meta.protocol = protocol;
        (msg.meta.tos, msg.meta.hops) = (header.traffic_class(), header.hop_limit);
        Verdict::Forward
    }

    // RFC 9293 MUST-48, SHLD-22.
    fn down(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let (source, destination) = match self.addresses(cx, &msg.meta) {
            Ok(addresses) => addresses,
            Err(reason) => return reason.into(),
        };
        let link = match self.resolve(cx, (source, destination), &msg.meta) {
            Ok(link) => link,
            Err(Resolution::Pending) => return self.hold(cx, msg),
            Err(Resolution::Crowded) => return Verdict::Drop(Self::FULL),
            Err(_) => {
                if let Some(told) = unreached(msg, self.protocol, source.into(), destination.into()) {
                    cx.request(told);
                }
                let routed = cx.module::<Ip6>().routes.lookup_from(destination, Some(source)).is_some();
                return Verdict::Drop(if routed { DropReason::NdFailed } else { DropReason::IpNoRoute });
            }
        };
        let protocol = if self.protocol == 0 { msg.meta.protocol } else { self.protocol };
        let length = msg.len();
        if length > ipv6::MAX_PAYLOAD {
            return Verdict::Drop(DropReason::TooBig);
        }
        msg.meta.link = link;
        add_pseudo_header(msg, source.into(), destination.into(), protocol);
        let (hops, discovery) = self.wished(&msg.meta, destination);
        if destination.is_multicast() && (hops == 0 || destination.octets()[1] & 15 <= INTERFACE_LOCAL) {
            return Verdict::Drop(DropReason::IpStaysHere);
        }
        let header = ipv6::Emit {
            traffic_class: self.class_of(msg.meta.tos),
            flow_label: self.flow_label,
            next_header: protocol,
            hop_limit: hops,
            source,
            destination,
            payload_len: length as u16,
        };
        let whole = matches!(discovery, Discovery::Do | Discovery::Probe);
        // TCP finds out what its paths take, and probes them with larger packets.
        let mtu = if discovery == Discovery::Probe || protocol == ipv4::TCP {
            self.device_mtu
        } else {
            self.mtu_to(cx, destination, length)
        };
        if packet_len(&msg.meta, protocol, length) + ipv6::HEADER > mtu.into() {
            return match protocol {
                _ if msg.meta.gso_size > 0 || whole => Verdict::Drop(DropReason::TooBig),
                ipv4::TCP => Verdict::Drop(DropReason::TooBig),
                _ => self.send_pieces(cx, msg, header, mtu),
            };
        }
        match msg.push(ipv6::HEADER) {
            Ok(bytes) => header.emit(bytes),
            Err(reason) => return reason.into(),
        }
        Verdict::Forward
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        let path = cx.path();
        if cx.module::<Ip6>().own.path == Some(path) {
            self.give_up_pieces(cx);
        }
        self.renew_mtu(cx);
        self.try_again(cx);
        self.arm(cx);
    }

    // RFC 9293 SHLD-21.
    fn bell(&mut self, _: &mut Cx<'_, '_>, bell: Bell) -> bool {
        match bell {
            Bell::Service(class) => self.class = self.settable(class),
            Bell::Wishes(wishes) => {
                self.hops = wishes.hops.unwrap_or(self.usual_hops);
                self.group_hops = wishes.group_hops.unwrap_or(GROUP_TTL);
                self.discovery = wishes.discovery6;
            }
            _ => {}
        }
        true
    }

    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        match (report, self.remote) {
            (Report::Resolved, _) => {
                self.next_hop.forget();
                self.send_held(cx);
                false
            }
            (Report::PathMtu { mtu, remote: told, .. }, remote) => {
                let now = cx.now();
                let Some(remote) = remote.or(told.ipv6()) else { return true };
                cx.module::<Ip6>().path_mtus.learn(now, remote, mtu);
                self.renew_mtu(cx);
                self.arm(cx);
                true
            }
            _ => true,
        }
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        let path = cx.path();
        let ip = cx.module::<Ip6>();
        if ip.own.path == Some(path) {
            let memory = ip.reassembly.memory();
            ip.reassembly.clear();
            cx.release(memory);
        }
        self.bequeath(cx);
    }
}

/// Whether a datagram may be put together whose first fragment has these bytes, the first of kind `protocol`: all headers
/// are there, with that of what is carried (RFC 7112 §5), and what comes of it is no fragment once more, nor neighbour discovery, which
/// nobody would know then to have come in fragments (RFC 6980 §5).
fn begins_well(protocol: u8, bytes: &[u8]) -> bool {
    skip_extensions(protocol, bytes).is_some_and(|(protocol, is_fragment, carried)| {
        let discovers =
            protocol == ipv6::ICMP && carried.first().is_some_and(|kind| ndp::is_discovery(*kind));
        !is_fragment && !discovers && carried.len() >= least(protocol)
    })
}

/// Whether headers are missing in these bytes of a first fragment, the first of kind `protocol`. Headers that are more than
/// anybody looks at are not, nor is what a fragment carries that was made of a fragment.
fn lacks_headers(mut protocol: u8, mut bytes: &[u8]) -> bool {
    for _ in 0..=extension::MOST {
        match protocol {
            extension::HOP_BY_HOP | extension::ROUTING | extension::DESTINATION => {
                let length = bytes.get(1).map(|length| (usize::from(*length) + 1) * 8);
                let Some(rest) = length.and_then(|length| bytes.get(length..)) else { return true };
                (protocol, bytes) = (bytes[0], rest);
            }
            extension::FRAGMENT | NO_NEXT_HEADER => return false,
            carried => return bytes.len() < least(carried),
        }
    }
    false
}

/// Bytes of the header of what is carried, the ports and more.
fn least(protocol: u8) -> usize {
    if protocol == ipv4::TCP { tcp::HEADER } else { 8 }
}
