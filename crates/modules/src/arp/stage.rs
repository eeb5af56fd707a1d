//! ARP's own path: answers who asks for us, learns from who answers us, and sends the
//! requests that the cache has marked. It announces our addresses at the start, so that whoever has
//! known them elsewhere knows better, and again when another station claims one (RFC 5227).

use super::Arp;
use crate::faults::reason;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{CreateError, Cx, DropReason, Message, Meta, Report, Stage, Station, Verdict};
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
        let strange = packet.sender.is_multicast() || packet.sender.is_broadcast();
        // What we said ourselves is no news.
        if !packet.sender_mac.is_unicast() || strange || packet.sender_mac == self.ours {
            return Err(DropReason::ArpIgnored);
        }
        if cx.module::<Arp>().addresses.contains(&packet.sender) {
            self.defend(cx, packet.sender);
            return Err(DropReason::ArpConflict);
        }
        let (arp, port) = cx.module_and_port::<Arp>();
        // A probe (RFC 5227 §1.1) has no sender's address: nothing to learn.
        if !packet.sender.is_unspecified() {
            arp.neighbours.update(now, (FIRST, packet.sender), packet.sender_mac, port);
        }
        Ok(arp.addresses.contains(&packet.target))
    }

    /// Another station claims `address`, which is ours: everybody is told so, now and then (RFC 5227 §2.4 c).
    fn defend(&mut self, cx: &mut Cx<'_, '_>, address: Ipv4Addr) {
        if cx.now() >= self.defended {
            self.defended = cx.now() + DEFENCE;
            self.send_request(cx, address, address);
        }
    }

    /// Announces our addresses (RFC 5227 §2.3). Linux's, where it shares the interface, it has announced itself.
    fn announce(&self, cx: &mut Cx<'_, '_>) {
        let arp = cx.module::<Arp>();
        let ours = if arp.neighbours.told { Vec::new() } else { arp.addresses.clone() };
        ours.into_iter().for_each(|address| self.send_request(cx, address, address));
    }

    /// Sends every request that is due, and sets the timer for the next.
    fn ask(&mut self, cx: &mut Cx<'_, '_>) {
        while let Some(((_, target), _)) = cx.module::<Arp>().neighbours.cache.next_request() {
            let ours = cx.module::<Arp>().addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED);
            self.send_request(cx, ours, target);
        }
        let deadline = cx.module::<Arp>().neighbours.cache.deadline();
        cx.arm(deadline);
    }

    /// Asks for `target`; for our own address that announces it.
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
        self.announce(cx);
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
