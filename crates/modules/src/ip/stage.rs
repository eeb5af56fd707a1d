//! IP's part of a path: headers on and off, fragments, the path MTU, and what to do with
//! messages whose next hop is not resolved yet.

use super::ecn::ECN;
use super::fragment::Pieces;
use super::group::multicast;
use super::held::{Holds, OwnPath, Waiting, unreached};
use super::next_hop::{Hop, NextHop};
use super::path_mtu::LEAST;
use super::reassembly::{Expired, First, Piece};
use super::{Ip, Key, RES, UP, impossible_source};
use crate::faults::reason;
use crate::icmp::Icmp;
use alloc::vec;
use core::mem::replace;
use core::net::{IpAddr, Ipv4Addr};
use silk_instant::Instant;
use silk_path::{
    Attr, Bell, Checksum, CreateError, Cx, Discovery, DropReason, Event, Message, Meta, Report, Request,
    Resolution, Stage, Station, Verdict,
};
use silk_wire::{MacAddr, checksum, eth, icmp, ipv4, udp};

/// How far packets to a group go that nobody wished otherwise for (RFC 1112 §6.1).
pub(crate) const GROUP_TTL: u8 = 1;
/// Room in front of a message that is sent from here.
const HEADROOM: usize = 64;

/// IP's part of a path.
pub(crate) struct IpStage {
    /// The protocol above; 0 on IP's own path.
    pub(crate) protocol: u8,
    ttl: u8,
    usual_ttl: u8,
    discovery: Discovery,
    group_ttl: u8,
    /// The service bits of packets that bring none of their own.
    pub(crate) tos: u8,
    /// The one peer, where there is one.
    pub(crate) remote: Option<Ipv4Addr>,
    /// Our address, where it is one.
    pub(crate) local: Option<Ipv4Addr>,
    pub(crate) next_hop: NextHop,
    /// The path's MTU.
    pub(crate) mtu: u16,
    /// The link's MTU.
    pub(crate) device_mtu: u16,
    /// The path is narrower than packets are made.
    narrow: bool,
    // The next fragmented datagram's.
    identification: u16,
    held: Waiting,
}

impl IpStage {
    pub(super) fn new(protocol: u8, remote: Option<Ipv4Addr>, ttl: u8) -> Self {
        Self {
            protocol,
            ttl,
            usual_ttl: ttl,
            discovery: Discovery::Want,
            group_ttl: GROUP_TTL,
            tos: 0,
            remote,
            local: None,
            next_hop: NextHop::default(),
            mtu: 0,
            device_mtu: 0,
            narrow: false,
            identification: 0,
            held: Waiting::default(),
        }
    }

    /// The header of a packet to `destination` with `payload` bytes. Only a path with one peer
    /// hears of its MTU, so only its packets may not be cut up on the way.
    // RFC 9293 MUST-49.
    pub(crate) fn header(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: u8,
        tos: u8,
        payload: usize,
    ) -> ipv4::Emit {
        ipv4::Emit {
            tos,
            ttl: if destination.is_multicast() { self.group_ttl } else { self.ttl },
            protocol,
            source,
            destination,
            payload_len: payload as u16,
            dont_fragment: self.is_kept_whole(self.discovery, protocol),
            ..ipv4::Emit::default()
        }
    }

    /// Whether routers are not to cut packets up.
    fn is_kept_whole(&self, discovery: Discovery, protocol: u8) -> bool {
        match discovery {
            Discovery::Want => (self.remote.is_some() || protocol == ipv4::TCP) && !self.narrow,
            Discovery::Dont => false,
            Discovery::Do | Discovery::Probe => true,
        }
    }

    /// What becomes of a message that is too large. IP's own path is nobody's: each message brings its program's wishes.
    fn discovery_of(&self, meta: &Meta) -> Discovery {
        if self.protocol == 0 { meta.discovery } else { self.discovery }
    }

    /// The service bits of a packet that brings `tos`.
    fn service_of(&self, tos: u8) -> u8 {
        let own = if self.protocol == ipv4::TCP { tos & ECN } else { 0 };
        if self.tos != 0 { self.tos | own } else { tos }
    }

    /// The service bits that a program may set: the ECN bits are TCP's own (RFC 3168 §6.1).
    fn service(&self, tos: u8) -> u8 {
        if self.protocol == ipv4::TCP { tos & !ECN } else { tos }
    }

    /// The first of identifications for so many packets that may be cut up on the way (RFC 6864 §4.2).
    fn next_identification(&mut self, packets: usize) -> u16 {
        let first = self.identification.wrapping_add(1);
        self.identification = self.identification.wrapping_add(packets as u16);
        first
    }

    /// The station that packets from `source` to `destination` are handed to. A better first hop that does not answer is
    /// forgotten (RFC 1122 §3.3.1.4).
    fn resolve(
        &mut self,
        cx: &mut Cx<'_, '_>,
        ends: (Ipv4Addr, Ipv4Addr),
        meta: &Meta,
    ) -> Result<Station, Resolution> {
        match self.next_station(cx, ends, meta) {
            Err(Resolution::Failed) if cx.module::<Ip>().redirects.forget(ends.1) => {
                self.next_station(cx, ends, meta)
            }
            found => found,
        }
    }

    fn next_station(
        &mut self,
        cx: &mut Cx<'_, '_>,
        (source, destination): (Ipv4Addr, Ipv4Addr),
        meta: &Meta,
    ) -> Result<Station, Resolution> {
        self.next_hop.resolve(cx, RES, meta, |cx| {
            let now = cx.now();
            let Ip { routes, redirects, .. } = cx.module::<Ip>();
            let everyone = routes.is_broadcast(destination).then_some(MacAddr::BROADCAST.0);
            let group = everyone.or_else(|| destination.is_multicast().then(|| multicast(destination)));
            if let Some(address) = group {
                let device = routes.link_to_group(destination, source);
                return Hop::Known(Station { device, address });
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
        let ip = cx.module::<Ip>();
        self.mtu = ip.path_mtus.to(now, remote, &ip.routes).min(self.device_mtu);
        self.narrow = ip.path_mtus.is_narrower(now, remote);
        self.show_mtu(cx);
    }

    /// The same later: what a router has said counts for a while (RFC 1191 §6.3).
    fn renew_mtu(&mut self, cx: &mut Cx<'_, '_>) {
        let before = self.mtu;
        self.learn_mtu(cx);
        if self.mtu != before {
            cx.raise(Event::PathMtu(self.mtu));
        }
    }

    /// The MTU of the way to a destination, for a packet of `length` bytes above IP.
    fn mtu_to(&mut self, cx: &mut Cx<'_, '_>, destination: Ipv4Addr, length: usize) -> u16 {
        let (widest, fixed) = (self.mtu == self.device_mtu, self.remote.is_some());
        if fixed && widest || !fixed && length + ipv4::HEADER <= LEAST.into() {
            return self.mtu;
        }
        if fixed {
            self.renew_mtu(cx);
            return self.mtu;
        }
        let now = cx.now();
        let ip = cx.module::<Ip>();
        ip.path_mtus.to(now, destination, &ip.routes).min(self.device_mtu)
    }

    /// The addresses a packet of this message carries: source and destination.
    fn addresses(&self, cx: &mut Cx<'_, '_>, meta: &Meta) -> Result<(Ipv4Addr, Ipv4Addr), DropReason> {
        let destination = match self.remote {
            Some(remote) => remote,
            None => meta.remote.ipv4().ok_or(DropReason::IpNoRoute)?,
        };
        let routes = &cx.module::<Ip>().routes;
        // What was sent to everyone is answered by one.
        let ours = || meta.local.ipv4().filter(|ours| routes.is_ours(*ours));
        let routed = || routes.source_to(destination);
        // A group has no route of its own: it is on the link.
        let first =
            || routes.addresses().next().filter(|_| destination.is_multicast() || destination.is_broadcast());
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
        header: ipv4::Emit,
        mtu: u16,
    ) -> Verdict {
        if complete_checksum(msg).is_none() {
            return Verdict::Drop(DropReason::Unexpected);
        }
        let header = ipv4::Emit { identification: self.next_identification(1), ..header };
        let mut pieces = Pieces::new(msg, header, mtu);
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
    fn check(&self, cx: &mut Cx<'_, '_>, header: &ipv4::Header, link: Station) -> Result<(), DropReason> {
        let (source, destination) = (header.source(), header.destination());
        if self.remote.is_some_and(|remote| remote != source)
            || self.local.is_some_and(|local| local != destination)
        {
            return Err(DropReason::NotForPath);
        }
        let ip = cx.module::<Ip>();
        let routes = &ip.routes;
        let heard = || routes.is_broadcast(destination) || ip.tables.is_heard(destination);
        if self.local.is_none() && !routes.is_ours(destination) && !heard() {
            return Err(DropReason::IpNotForUs);
        }
        if self.remote.is_none()
            && (impossible_source(source)
                || routes.is_broadcast(source)
                || routes.is_ours(source) && !routes.is_itself(link.device))
        {
            return Err(DropReason::IpBadSource);
        }
        let expected = self.protocol == 0 || self.protocol == header.protocol;
        if expected { Ok(()) } else { Err(DropReason::IpProtocol) }
    }

    /// Charges what a piece of this datagram costs. What the path may have can be less than reassembly keeps.
    fn pay(&self, cx: &mut Cx<'_, '_>, key: &Key, cost: usize) -> Result<(), DropReason> {
        while cx.charge(cost).is_err() {
            let freed = cx.module::<Ip>().reassembly.give_up_oldest(key);
            cx.release(freed.ok_or(DropReason::IpFragmentLimit)?);
        }
        Ok(())
    }

    /// Takes a fragment into reassembly, and counts what has to make room for it.
    fn take_fragment(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>) -> Result<(), DropReason> {
        let taken = self.put_together(cx, msg);
        let crowded_out = core::mem::take(&mut cx.module::<Ip>().reassembly.crowded_out);
        (0..crowded_out).for_each(|_| cx.count_drop(DropReason::IpFragmentLimit));
        taken
    }

    /// A fragment is put to the others of its datagram; what becomes whole is classified again (Scout §3.4).
    fn put_together(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>) -> Result<(), DropReason> {
        let packet = ipv4::parse(msg.bytes()).map_err(reason)?;
        let piece = Piece {
            offset: packet.header.fragment_offset(),
            more: packet.header.more_fragments(),
            tos: packet.header.tos,
            checksum: msg.meta.checksum,
            headers: &msg.bytes()[..packet.header.header_len()],
            payload: packet.payload,
        };
        let (now, key) = (cx.now(), Key::of(packet.header));
        self.pay(cx, &key, piece.cost())?;
        let vlan = cx.module::<Ip>().tables.vlan(msg.meta.link.device);
        let reassembly = &mut cx.module::<Ip>().reassembly;
        let before = reassembly.memory() + piece.cost();
        let (link, front) = (eth::length(vlan), eth::length(vlan) + ipv4::HEADER);
        let result = reassembly.insert(now, (key, *packet.header), piece, front);
        let after = reassembly.memory();
        cx.release(before - after);
        self.arm(cx);
        if let Some(whole) = result? {
            let (mut frame, checksum) = (whole.bytes, whole.checksum);
            let payload = (frame.len() - front) as u16;
            ipv4::emit_reassembled(&whole.header, whole.tos, payload, &mut frame[link..]);
            let device = msg.meta.link.device;
            let ours = cx.module::<Ip>().stations.at(device).unwrap_or_default();
            eth::Header::new(ours, MacAddr(msg.meta.link.address), eth::IPV4).emit_on(vlan, &mut frame);
            cx.request(Request::Arrived { device, frame, checksum });
        }
        Ok(())
    }

    /// Gives up datagrams of which not all pieces have come in time.
    fn give_up_pieces(&mut self, cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        while let Some(Expired { freed, first }) = cx.module::<Ip>().reassembly.expire(now) {
            cx.release(freed);
            cx.count_drop(DropReason::IpFragmentTimeout);
            if let Some(first) = first {
                self.send_exceeded(cx, &first);
            }
        }
    }

    /// Tells a sender that its datagram was given up (RFC 1122 §3.3.2), of which this is the first fragment, unless that is
    /// more than ICMP may send. Without ICMP nobody is told anything.
    fn send_exceeded(&mut self, cx: &mut Cx<'_, '_>, first: &First<ipv4::Header>) {
        let header = &first.header;
        let Some(quote) = first.packet.get(..first.headers_len + icmp::QUOTE) else { return };
        let is_error = header.protocol == ipv4::ICMP && !matches!(quote[first.headers_len], 0 | 8);
        let to_all = cx.module::<Ip>().routes.is_broadcast(header.destination());
        if is_error || to_all || header.destination().is_multicast() {
            // RFC 1122 §3.2.2.
            return;
        }
        let now = cx.now();
        let Some(errors) = cx.linked_to::<Icmp>(UP) else { return };
        if !errors.may_tell(now) {
            return cx.count_drop(DropReason::IcmpRate);
        }
        let mut buffer = vec![0; HEADROOM + icmp::HEADER];
        buffer.extend_from_slice(quote);
        icmp::emit_reassembly_exceeded(&mut buffer[HEADROOM..]);
        let mut meta = Meta { protocol: ipv4::ICMP, ..Meta::default() };
        meta.remote.set_ip(header.source());
        meta.local.set_ip(header.destination());
        let end = buffer.len();
        // A drop has been counted.
        let _ = self.send(cx, &mut Message::new(&mut buffer, HEADROOM, end, meta));
    }
}

impl Holds for IpStage {
    const FULL: DropReason = DropReason::ArpPending;

    fn own<'c>(cx: &'c mut Cx<'_, '_>) -> &'c mut OwnPath<Self> {
        &mut cx.module::<Ip>().own
    }

    fn held(&mut self) -> &mut Waiting {
        &mut self.held
    }

    fn rest(&mut self) -> Self {
        let fresh = Self::new(self.protocol, None, self.ttl);
        Self { next_hop: NextHop::default(), ..replace(self, fresh) }
    }

    fn arm(&mut self, cx: &mut Cx<'_, '_>) {
        let (now, path, again) = (cx.now(), cx.path(), self.again(cx));
        let ip = cx.module::<Ip>();
        let told = self.remote.and_then(|remote| ip.path_mtus.until(now, remote));
        let pieces = (ip.own.path == Some(path)).then(|| ip.reassembly.deadline());
        cx.arm(told.into_iter().chain(pieces).fold(again, Instant::min));
    }
}

impl Stage for IpStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        let attrs = cx.attrs();
        let local = attrs.local().and_then(|local| local.ipv4()).filter(|local| !local.is_unspecified());
        self.next_hop.fixed = attrs.next_hop().map(|hop| (attrs.device().unwrap_or(0), hop));
        self.tos = self.service(attrs.tos().unwrap_or(0));
        self.ttl = attrs.ttl().unwrap_or(self.ttl);
        self.device_mtu = attrs.mtu().unwrap_or(ipv4::MIN_MTU);
        let path = cx.path();
        self.identification = cx.port().random() as u16;
        let ip = cx.module::<Ip>();
        // Who waits at a group, or at everyone's address, sends from one of ours (RFC 1122 §3.2.1.3).
        self.local = local.filter(|local| !local.is_multicast() && !ip.routes.is_broadcast(*local));
        self.mtu = self.device_mtu;
        self.learn_mtu(cx);
        let ip = cx.module::<Ip>();
        match self.remote {
            None if self.protocol == 0 => ip.own.path = Some(path),
            None => {}
            // Asked for early; whatever comes of it, the first message finds out.
            Some(remote) => {
                let local = self.local.unwrap_or(Ipv4Addr::UNSPECIFIED);
                let _ = self.resolve(cx, (local, remote), &Meta::default());
                self.arm(cx);
            }
        }
        Ok(())
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let (header, header_len, payload) = match ipv4::parse(msg.bytes()) {
            Err(fault) => return reason(fault).into(),
            Ok(packet) => (*packet.header, packet.header.header_len(), packet.payload.len()),
        };
        if let Err(reason) = self.check(cx, &header, msg.meta.link) {
            return reason.into();
        }
        if header.is_fragment() {
            return match self.take_fragment(cx, msg) {
                Ok(()) => Verdict::Consumed,
                Err(reason) => reason.into(),
            };
        }
        if self.remote.is_some() {
            self.next_hop.seen = msg.meta.link;
        }
        msg.pop(header_len);
        msg.truncate(payload);
        msg.meta.remote.set_ip(header.source());
        msg.meta.local.set_ip(header.destination());
        msg.meta.protocol = header.protocol;
        (msg.meta.tos, msg.meta.hops) = (header.tos, header.ttl);
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
                let routed = cx.module::<Ip>().routes.lookup_from(destination, Some(source)).is_some();
                return Verdict::Drop(if routed { DropReason::ArpFailed } else { DropReason::IpNoRoute });
            }
        };
        let protocol = if self.protocol == 0 { msg.meta.protocol } else { self.protocol };
        let length = msg.len();
        if length > ipv4::MAX - ipv4::HEADER {
            return Verdict::Drop(DropReason::TooBig);
        }
        msg.meta.link = link;
        add_pseudo_header(msg, source.into(), destination.into(), protocol);
        let mut header = self.header(source, destination, protocol, self.service_of(msg.meta.tos), length);
        let discovery = self.discovery_of(&msg.meta);
        if self.protocol == 0 {
            header.dont_fragment = self.is_kept_whole(discovery, protocol);
            header.ttl = if msg.meta.hops == 0 { header.ttl } else { msg.meta.hops };
        }
        if header.ttl == 0 {
            return Verdict::Drop(DropReason::IpStaysHere);
        }
        // TCP finds out what its paths take, and probes them with larger packets.
        let mtu = if discovery == Discovery::Probe || protocol == ipv4::TCP {
            self.device_mtu
        } else {
            self.mtu_to(cx, destination, length)
        };
        if packet_len(&msg.meta, protocol, length) + ipv4::HEADER > mtu.into() {
            return match protocol {
                _ if msg.meta.gso_size > 0 => Verdict::Drop(DropReason::TooBig),
                ipv4::TCP => Verdict::Drop(DropReason::TooBig),
                _ if matches!(discovery, Discovery::Do | Discovery::Probe) => {
                    Verdict::Drop(DropReason::TooBig)
                }
                _ => self.send_pieces(cx, msg, header, mtu),
            };
        }
        if !header.dont_fragment {
            // Whoever cuts the message up counts on from the first packet's.
            let packets = length.checked_div(msg.meta.gso_size.into()).map_or(1, |whole| whole + 1);
            header.identification = self.next_identification(packets);
        }
        match msg.push(ipv4::HEADER) {
            Ok(bytes) => header.emit(bytes),
            Err(reason) => return reason.into(),
        }
        Verdict::Forward
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        let path = cx.path();
        if cx.module::<Ip>().own.path == Some(path) {
            self.give_up_pieces(cx);
        }
        self.renew_mtu(cx);
        self.try_again(cx);
        self.arm(cx);
    }

    // RFC 9293 SHLD-21.
    fn bell(&mut self, _: &mut Cx<'_, '_>, bell: Bell) -> bool {
        match bell {
            Bell::Service(tos) => self.tos = self.service(tos),
            Bell::Wishes(wishes) => {
                self.ttl = wishes.ttl.unwrap_or(self.usual_ttl);
                self.discovery = wishes.discovery;
                self.group_ttl = wishes.group_ttl.unwrap_or(GROUP_TTL);
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
                let Some(remote) = remote.or(told.ipv4()) else { return true };
                cx.module::<Ip>().path_mtus.learn(now, remote, mtu);
                self.renew_mtu(cx);
                self.arm(cx);
                true
            }
            _ => true,
        }
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        let path = cx.path();
        let ip = cx.module::<Ip>();
        if ip.own.path == Some(path) {
            let memory = ip.reassembly.memory();
            ip.reassembly.clear();
            cx.release(memory);
        }
        self.bequeath(cx);
    }
}

/// Where a partial checksum stands in the bytes in place: start and field.
fn partial(msg: &Message<'_>) -> Option<(usize, usize)> {
    let Checksum::Partial { start, field } = msg.meta.checksum else { return None };
    Some((usize::from(start).checked_sub(msg.head())?, usize::from(field).checked_sub(msg.head())?))
}

/// Bytes above IP of the longest packet that a message of `length` bytes becomes. TCP cuts its own to
/// fit, so it may have none; a program's datagrams (`UDP_SEGMENT`) are checked.
pub(crate) fn packet_len(meta: &Meta, protocol: u8, length: usize) -> usize {
    match (meta.gso_size, protocol) {
        (0, _) => length,
        (size, ipv4::UDP) => length.min(usize::from(size) + udp::HEADER),
        _ => 0,
    }
}

/// Puts the folded sum of the pseudo-header where a transport protocol left room for it.
pub(crate) fn add_pseudo_header(msg: &mut Message<'_>, source: IpAddr, destination: IpAddr, protocol: u8) {
    let Some((_, field)) = partial(msg) else { return };
    let sum = checksum::pseudo_of(source, destination, protocol, msg.len() as u16).folded();
    if let Some(bytes) = msg.bytes_mut().get_mut(field..field + 2) {
        bytes.copy_from_slice(&sum.to_be_bytes());
    }
}

/// Completes a partial checksum before the message is cut up.
pub(crate) fn complete_checksum(msg: &mut Message<'_>) -> Option<()> {
    let Some((start, field)) = partial(msg) else { return Some(()) };
    let mut whole = vec![0; msg.len()];
    msg.copy_to(&mut whole)?;
    let sum = udp::seal(checksum::Sum::ZERO.bytes(whole.get(start..)?));
    msg.bytes_mut().get_mut(field..field + 2)?.copy_from_slice(&sum.to_be_bytes());
    msg.meta.checksum = Checksum::Verified;
    Some(())
}
