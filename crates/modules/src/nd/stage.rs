//! ND's own path: answers who asks for us, learns from who answers us, sends the requests that the
//! cache has marked, and asks at first whether our addresses are ours alone.

use super::Nd;
use crate::faults::{accept, reason};
use crate::ours::Say;
use core::net::Ipv6Addr;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{
    Checksum, CreateError, Cx, DropReason, Message, Meta, Report, Request, Stage, Station, Verdict,
};
use silk_wire::{MacAddr, checksum, icmpv6, ipv6, ndp};

/// Room in front of a message for headers.
const HEADROOM: usize = 64;
/// How often a station that claims an address of ours is contradicted at most, as with ARP (RFC 5227 §1.1).
const DEFENCE: Duration = Duration::from_secs(10);
/// Everybody on the link, and its routers.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// The device whose link it speaks on: where there are several, they are Linux's, which finds the neighbours.
pub(super) const FIRST: u8 = 0;

/// ND's part of its path.
#[derive(Default)]
pub(super) struct NdStage {
    ours: MacAddr,
    /// Until when no claim is contradicted.
    defended: Instant,
}

/// A message that has been checked, and whence it came.
struct Heard {
    message: ndp::Message,
    /// The bytes of all of it: behind them the frame may go on.
    length: usize,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    link: MacAddr,
}

impl NdStage {
    /// Reads a message and refuses what RFC 4861 §7.1 refuses.
    fn hear(msg: &Message<'_>) -> Result<Heard, DropReason> {
        let packet = ipv6::parse(msg.bytes()).map_err(|refused| reason(refused.fault))?;
        let (source, destination) = (packet.header.source(), packet.header.destination());
        // RFC 6980 §5: never in fragments; and nobody has reason to put options in front.
        if packet.headers_len != ipv6::HEADER || packet.protocol != ipv6::ICMP {
            return Err(DropReason::NdMalformed);
        }
        let length = packet.payload.len() as u16;
        let pseudo = checksum::pseudo6(source, destination, ipv6::ICMP, length);
        icmpv6::parse(packet.payload, accept(&msg.meta), pseudo).map_err(reason)?;
        let message = ndp::parse(packet.header.hop_limit, packet.payload).map_err(reason)?;
        if crate::ip6::impossible_source(source) {
            return Err(DropReason::IpBadSource);
        }
        let link = MacAddr(msg.meta.link.address);
        Ok(Heard { message, length: length.into(), source, destination, link })
    }

    /// Somebody asks for an address.
    fn solicited(
        &mut self,
        cx: &mut Cx<'_, '_>,
        heard: &Heard,
        target: Ipv6Addr,
        link: Option<MacAddr>,
    ) -> Result<(), DropReason> {
        let now = cx.now();
        if heard.source.is_unspecified() {
            // Somebody asks whether the address is free (RFC 4861 §7.1.1, RFC 4862 §5.4.3).
            let to_group = heard.destination == ipv6::solicited_node(target);
            return match link {
                None if to_group && heard.link != self.ours => self.contested(cx, target, heard.link, false),
                _ => Err(DropReason::NdIgnored),
            };
        }
        let station = link.unwrap_or(heard.link);
        let (nd, port) = cx.module_and_port::<Nd>();
        if !station.is_unicast() || nd.ours.contains(heard.source) {
            return Err(DropReason::NdIgnored);
        }
        if link.is_some() {
            nd.neighbours.hear(now, (FIRST, heard.source), station, port);
        }
        if !nd.ours.contains(target) {
            return Err(DropReason::NdIgnored);
        }
        self.advertise(cx, target, heard.source, station, true);
        Ok(())
    }

    /// Somebody says where an address is.
    fn advertised(
        &mut self,
        cx: &mut Cx<'_, '_>,
        heard: &Heard,
        target: Ipv6Addr,
        link: Option<MacAddr>,
        (router, solicited, overrides): (bool, bool, bool),
    ) -> Result<(), DropReason> {
        if heard.destination.is_multicast() && solicited {
            return Err(DropReason::NdMalformed);
        }
        let now = cx.now();
        if cx.module::<Nd>().ours.contains(target) {
            return if heard.link == self.ours {
                Ok(())
            } else {
                self.contested(cx, target, heard.link, true)
            };
        }
        let (nd, port) = cx.module_and_port::<Nd>();
        let link = link.unwrap_or(heard.link);
        if !link.is_unicast() {
            return Err(DropReason::NdIgnored);
        }
        // RFC 4861 §7.2.5: without the override flag another address than the known one is not
        // taken over; and only an answer says that the neighbour hears us.
        let other = nd.neighbours.cache.known((FIRST, target)).is_some_and(|known| known != link);
        match (other && !overrides, solicited) {
            (true, _) => {
                nd.neighbours.cache.doubt(now, (FIRST, target));
                return Err(DropReason::NdIgnored);
            }
            (false, true) => {
                nd.neighbours.update(now, (FIRST, target), link, port);
                nd.routers.iter_mut().for_each(|routers| routers.trust(target));
            }
            (false, false) => nd.neighbours.hear(now, (FIRST, target), link, port),
        }
        if let Some(routers) = nd.routers.as_mut().filter(|_| !router) {
            routers.resign(target);
        }
        tell(cx);
        Ok(())
    }

    /// Somebody else, `station`, has, or wants, an address of ours. As long as it is optimistic we give it
    /// up (RFC 4862 §5.4.5); afterwards we defend it: against who asks always, against who `claims` it now and then, for he may think as
    /// we do, and answer that.
    fn contested(
        &mut self,
        cx: &mut Cx<'_, '_>,
        address: Ipv6Addr,
        station: MacAddr,
        claims: bool,
    ) -> Result<(), DropReason> {
        let now = cx.now();
        let nd = cx.module::<Nd>();
        if !nd.ours.contains(address) {
            return Err(DropReason::NdIgnored);
        }
        if !nd.ours.is_settled(now, address) {
            nd.ours.give_up(address);
            cx.request(Request::Duplicate { address: address.into(), station: station.0 });
            return Err(DropReason::NdConflict);
        }
        if claims && now < self.defended {
            return Err(DropReason::NdIgnored);
        }
        if claims {
            self.defended = now + DEFENCE;
            cx.request(Request::Claimed { address: address.into(), station: station.0 });
        }
        self.advertise(cx, address, ALL_NODES, MacAddr(ipv6::group(ALL_NODES)), false);
        Ok(())
    }

    fn advertise(&self, cx: &mut Cx<'_, '_>, ours: Ipv6Addr, to: Ipv6Addr, link: MacAddr, solicited: bool) {
        let now = cx.now();
        // RFC 4429 §2.2: an optimistic address replaces nobody's.
        let overrides = cx.module::<Nd>().ours.is_settled(now, ours);
        let mut message = [0; ndp::MESSAGE];
        ndp::emit_advertisement(ours, self.ours, (solicited, overrides), &mut message);
        send(cx, ours, to, link, &mut message);
    }

    /// A router tells of itself and of prefixes (RFC 4861 §6.1.2, §6.3.4).
    fn routed(
        &self,
        cx: &mut Cx<'_, '_>,
        heard: &Heard,
        (lifetime, preference): (u16, ndp::Preference),
        (hops, mtu): (u8, Option<u32>),
        message: &[u8],
    ) -> Result<(), DropReason> {
        if !heard.source.is_unicast_link_local() {
            return Err(DropReason::NdMalformed);
        }
        let now = cx.now();
        let routers = cx.module::<Nd>().routers.as_mut().ok_or(DropReason::NdIgnored)?;
        routers.hear_of_link(hops, mtu);
        let router = (heard.source, lifetime, preference);
        routers.hear(now, router, ndp::prefixes(message), ndp::routes(message), self.ours);
        tell(cx);
        self.rearm(cx);
        Ok(())
    }

    /// A router says who is a better first hop, and perhaps where that is (RFC 4861 §8.3).
    fn redirected(
        cx: &mut Cx<'_, '_>,
        router: Ipv6Addr,
        (destination, hop): (Ipv6Addr, Ipv6Addr),
        link: Option<MacAddr>,
    ) -> Result<(), DropReason> {
        if !cx.module::<Nd>().redirects {
            return Err(DropReason::NdIgnored);
        }
        if !router.is_unicast_link_local() {
            return Err(DropReason::NdMalformed);
        }
        // Whether it is believed IP6 says, which knows the routes.
        let link = link.filter(|link| link.is_unicast()).map(|link| link.0);
        let (router, destination, hop) = (router.into(), destination.into(), hop.into());
        cx.request(Request::Redirected { router, destination, hop, link });
        Ok(())
    }

    /// Sends every request that is due, and sets the timer for the next.
    fn ask(&mut self, cx: &mut Cx<'_, '_>) {
        self.probe(cx);
        let now = cx.now();
        // RFC 4429 §3.2: nobody is asked from an optimistic address; what is due waits.
        if cx.module::<Nd>().ours.settled(now).next().is_some() {
            self.ask_neighbours(cx);
        }
        if cx.module::<Nd>().routers.as_mut().is_some_and(|routers| routers.asks(now)) {
            self.ask_for_routers(cx);
        }
        self.rearm(cx);
    }

    fn ask_neighbours(&self, cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        while let Some(((_, target), known)) = cx.module::<Nd>().neighbours.cache.next_request(now) {
            self.solicit(cx, target, known);
        }
        while let Some(router) = cx.module::<Nd>().routers.as_mut().and_then(|all| all.next_suspect(now)) {
            self.solicit(cx, router, None);
        }
    }

    fn rearm(&self, cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        let nd = cx.module::<Nd>();
        let may_ask = nd.ours.settled(now).next().is_some();
        let routers = nd.routers.as_ref().map_or(Instant::FAR, |routers| routers.deadline(now, may_ask));
        let deadline = nd.neighbours.cache.deadline().min(routers).min(nd.ours.deadline(now));
        cx.arm(deadline);
    }

    /// Asks whether there is a router (RFC 4861 §6.3.7).
    fn ask_for_routers(&self, cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        let nd = cx.module::<Nd>();
        let Some(source) = nd.addresses().find(Ipv6Addr::is_unicast_link_local) else { return };
        // RFC 4429 §3.2: from an optimistic address without ours of Ethernet.
        let link = nd.ours.is_settled(now, source).then_some(self.ours);
        let mut message = [0; ndp::QUESTION];
        let length = ndp::emit_router_solicitation(link, &mut message);
        send(cx, source, ALL_ROUTERS, MacAddr(ipv6::group(ALL_ROUTERS)), &mut message[..length]);
    }

    /// Asks for `target`: everybody, or the station where it was (RFC 4861 §7.3.1).
    fn solicit(&self, cx: &mut Cx<'_, '_>, target: Ipv6Addr, known: Option<MacAddr>) {
        let now = cx.now();
        let nd = cx.module::<Nd>();
        let narrow = target.is_unicast_link_local();
        let fits = |ours: &Ipv6Addr| ours.is_unicast_link_local() == narrow;
        let Some(source) = nd.ours.settled(now).find(fits).or_else(|| nd.ours.settled(now).next()) else {
            return;
        };
        let group = ipv6::solicited_node(target);
        let (to, link) = known.map_or((group, MacAddr(ipv6::group(group))), |link| (target, link));
        let mut message = [0; ndp::MESSAGE];
        ndp::emit_solicitation(target, Some(self.ours), &mut message);
        send(cx, source, to, link, &mut message);
    }

    /// Asks whether those of our addresses are free of which it has not been asked (RFC 4862 §5.4.2).
    fn probe(&self, cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        while let Some(Say::Ask(target)) = cx.module::<Nd>().ours.say(now) {
            let group = ipv6::solicited_node(target);
            let mut message = [0; ndp::MESSAGE];
            let length = ndp::emit_solicitation(target, None, &mut message);
            send(cx, Ipv6Addr::UNSPECIFIED, group, MacAddr(ipv6::group(group)), &mut message[..length]);
        }
    }
}

/// Says what is now told by routers, if that is news.
fn tell(cx: &mut Cx<'_, '_>) {
    let now = cx.now();
    if let Some(told) = cx.module::<Nd>().routers.as_mut().and_then(|routers| routers.news(now)) {
        cx.request(Request::Routers(told));
    }
}

/// Sends a message of neighbour discovery.
fn send(cx: &mut Cx<'_, '_>, source: Ipv6Addr, destination: Ipv6Addr, link: MacAddr, message: &mut [u8]) {
    let length = message.len();
    let header = ipv6::Emit {
        next_header: ipv6::ICMP,
        hop_limit: ipv6::NEVER_FORWARDED,
        source,
        destination,
        payload_len: length as u16,
        ..ipv6::Emit::default()
    };
    icmpv6::seal(checksum::pseudo6(source, destination, ipv6::ICMP, length as u16), message);
    let mut buffer = [0; HEADROOM + ipv6::HEADER + ndp::MESSAGE];
    let (start, end) = (HEADROOM + ipv6::HEADER, HEADROOM + ipv6::HEADER + length);
    header.emit(&mut buffer[HEADROOM..]);
    buffer[start..end].copy_from_slice(message);
    let meta = Meta { link: Station::at(link.0), checksum: Checksum::Verified, ..Meta::default() };
    // A drop has been counted; who asked asks again.
    let _ = cx.down(&mut Message::new(&mut buffer, HEADROOM, end, meta));
}

impl Stage for NdStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        self.ours = MacAddr(cx.attrs().link_address().ok_or(CreateError::Missing("LinkAddress"))?);
        let path = cx.path();
        cx.module::<Nd>().neighbours.path = Some(path);
        Ok(())
    }

    fn start(&mut self, cx: &mut Cx<'_, '_>) {
        self.ask(cx);
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let heard = match Self::hear(msg) {
            Ok(heard) => heard,
            Err(reason) => return reason.into(),
        };
        let done = match heard.message {
            ndp::Message::Solicitation { target, link } => self.solicited(cx, &heard, target, link),
            ndp::Message::Advertisement { target, link, router, solicited, overrides } => {
                self.advertised(cx, &heard, target, link, (router, solicited, overrides))
            }
            ndp::Message::Router { lifetime, preference, hop_limit, mtu, .. } => {
                let message = msg.bytes().get(ipv6::HEADER..ipv6::HEADER + heard.length).unwrap_or_default();
                self.routed(cx, &heard, (lifetime, preference), (hop_limit, mtu), message)
            }
            ndp::Message::Redirect { hop, destination, link } => {
                Self::redirected(cx, heard.source, (destination, hop), link)
            }
            // Nobody asks a host for routers.
            ndp::Message::RouterSolicitation => Err(DropReason::NdIgnored),
        };
        done.map_or_else(Verdict::Drop, |()| Verdict::Consumed)
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        if report == Report::Resolved {
            tell(cx);
            self.ask(cx);
        }
        false
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        let (nd, port) = cx.module_and_port::<Nd>();
        let silent = nd.neighbours.expire(now, port);
        if let Some(routers) = &mut nd.routers {
            // That a neighbour is a router one domain alone may have heard, and not this one. Routers speak from such addresses
            // (RFC 4861 §6.1.2).
            let narrow = silent.into_iter().filter(|(_, neighbour)| neighbour.is_unicast_link_local());
            for (_, neighbour) in narrow {
                routers.lose(now, neighbour);
                port.request(Request::RouterLost(neighbour));
            }
            routers.expire(now);
        }
        tell(cx);
        self.ask(cx);
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        let path = cx.path();
        cx.module::<Nd>().neighbours.part(path);
    }
}
