//! ARP's own path: answers who asks for us, learns from who answers us, and sends the
//! requests that the cache has marked. It asks at first whether our addresses are ours alone, announces them, so that whoever has
//! known them elsewhere knows better, and does so again when another station claims one (RFC 5227).

use super::Arp;
use crate::faults::reason;
use crate::ours::Say;
use core::net::Ipv4Addr;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{CreateError, Cx, DropReason, Message, Meta, Report, Request, Stage, Station, Verdict};
use silk_wire::{MacAddr, arp, arp::Operation};

/// Room in front of a request for headers.
const HEADROOM: usize = 64;

/// The device whose link it speaks on: where there are several, they are Linux's, which finds the neighbours.
const FIRST: u8 = 0;

/// Between two defences of our addresses (DEFEND_INTERVAL of RFC 5227 §1.1): another station that defends them, too,
/// does not make it a storm.
const DEFENCE: Duration = Duration::from_secs(10);

/// ARP's part of its path.
#[derive(Default)]
pub(super) struct ArpStage {
    ours: MacAddr,
    /// Until when no address is defended.
    defended: Instant,
}

impl ArpStage {
    /// The merge of RFC 826: an entry that is there is updated; answers whether the packet is
    /// for one of our addresses.
    fn merge(&mut self, cx: &mut Cx<'_, '_>, packet: &arp::Packet) -> Result<bool, DropReason> {
        let now = cx.now();
        let asks = packet.operation == Operation::Request;
        let strange = packet.sender.is_multicast() || packet.sender.is_broadcast();
        // What we said ourselves is no news.
        if !packet.sender_mac.is_unicast() || strange || packet.sender_mac == self.ours {
            return Err(DropReason::ArpIgnored);
        }
        if cx.module::<Arp>().ours.contains(packet.sender) {
            self.contested(cx, packet.sender, packet.sender_mac);
            return Err(DropReason::ArpConflict);
        }
        let (arp, port) = cx.module_and_port::<Arp>();
        // A probe (RFC 5227 §1.1) has no sender's address: nothing to learn. Who asks for what we ask for wants it, too (§2.1.1).
        if !packet.sender.is_unspecified() {
            arp.neighbours.update(now, (FIRST, packet.sender), packet.sender_mac, port);
        } else if arp.ours.contains(packet.target) && !arp.ours.is_settled(now, packet.target) && asks {
            self.contested(cx, packet.target, packet.sender_mac);
            return Err(DropReason::ArpConflict);
        }
        Ok(cx.module::<Arp>().ours.contains(packet.target))
    }

    /// Another station, `station`, has `address`, which is ours. As long as it is optimistic we give it up; afterwards everybody is told
    /// that it is ours, now and then (RFC 5227 §2.1.1, §2.4 c).
    fn contested(&mut self, cx: &mut Cx<'_, '_>, address: Ipv4Addr, station: MacAddr) {
        let (now, station) = (cx.now(), station.0);
        let arp = cx.module::<Arp>();
        // Linux's, where it shares the interface, it minds itself.
        if !arp.neighbours.told && !arp.ours.is_settled(now, address) {
            arp.ours.give_up(address);
            cx.request(Request::Duplicate { address: address.into(), station });
        } else if now >= self.defended {
            self.defended = now + DEFENCE;
            self.send_request(cx, address, address);
            cx.request(Request::Claimed { address: address.into(), station });
        }
    }

    /// Asks whether our addresses are free, and announces them (RFC 5227 §2.1.1, §2.3).
    fn mind_ours(&self, cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        while let Some(say) = cx.module::<Arp>().ours.say(now) {
            match say {
                Say::Ask(address) => self.send_request(cx, Ipv4Addr::UNSPECIFIED, address),
                Say::Announce(address) => self.send_request(cx, address, address),
            }
        }
    }

    /// Sends every request that is due, and sets the timer for the next.
    fn ask(&mut self, cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        if !cx.module::<Arp>().neighbours.told {
            self.mind_ours(cx);
        }
        // From an address that is optimistic nobody is to learn where it is, as that could be another's; and who asks from none asks
        // whether an address is free, and has whoever is not sure of it yet give it up (RFC 5227 §1.1). What is due waits.
        let ours = cx.module::<Arp>().ours.settled(now).next();
        if let Some(ours) = ours {
            while let Some(((_, target), _)) = cx.module::<Arp>().neighbours.cache.next_request(now) {
                self.send_request(cx, ours, target);
            }
        }
        let arp = cx.module::<Arp>();
        let ours = if arp.neighbours.told { Instant::FAR } else { arp.ours.deadline(now) };
        let deadline = arp.neighbours.cache.deadline().min(ours);
        cx.arm(deadline);
    }

    /// Asks for `target`; for our own address that announces it, and from none it asks whether it is free.
    fn send_request(&self, cx: &mut Cx<'_, '_>, ours: Ipv4Addr, target: Ipv4Addr) {
        let packet = arp::Packet {
            operation: Operation::Request,
            sender_mac: self.ours,
            sender: ours,
            target_mac: MacAddr::ZERO,
            target,
        };
        let mut buffer = [0; HEADROOM + arp::PACKET];
        packet.emit(&mut buffer[HEADROOM..]);
        let meta = Meta { link: Station::at(MacAddr::BROADCAST.0), ..Meta::default() };
        // A drop has been counted; a question goes out again in a second.
        let _ = cx.down(&mut Message::new(&mut buffer, HEADROOM, HEADROOM + arp::PACKET, meta));
    }
}

impl Stage for ArpStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        self.ours = MacAddr(cx.attrs().link_address().ok_or(CreateError::Missing("LinkAddress"))?);
        let path = cx.path();
        cx.module::<Arp>().neighbours.path = Some(path);
        Ok(())
    }

    fn start(&mut self, cx: &mut Cx<'_, '_>) {
        self.ask(cx);
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let packet = match arp::parse(msg.bytes()) {
            Ok(packet) => packet,
            Err(fault) => return reason(fault).into(),
        };
        let for_us = match self.merge(cx, &packet) {
            Ok(for_us) => for_us,
            Err(reason) => return reason.into(),
        };
        if !for_us || packet.operation != Operation::Request {
            return Verdict::Consumed;
        }
        let reply = arp::Packet {
            operation: Operation::Reply,
            sender_mac: self.ours,
            sender: packet.target,
            target_mac: packet.sender_mac,
            target: packet.sender,
        };
        reply.emit(msg.bytes_mut());
        msg.truncate(arp::PACKET);
        msg.meta.link.address = packet.sender_mac.0;
        // A drop has been counted below.
        let _ = cx.down(msg);
        Verdict::Consumed
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        if report == Report::Resolved {
            self.ask(cx);
        }
        false
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        let (arp, port) = cx.module_and_port::<Arp>();
        arp.neighbours.expire(now, port);
        self.ask(cx);
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        let path = cx.path();
        cx.module::<Arp>().neighbours.part(path);
    }
}
