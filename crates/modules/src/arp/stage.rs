//! ARP's own path: answers who asks for us, learns from who answers us, and sends the
//! requests that the cache has marked.

use super::Arp;
use crate::faults::reason;
use core::net::Ipv4Addr;
use silk_path::{CreateError, Cx, DropReason, Message, Meta, Report, Stage, Station, Verdict};
use silk_wire::{MacAddr, arp, arp::Operation};

/// Room in front of a request for headers.
const HEADROOM: usize = 64;

/// The device whose link it speaks on: where there are several, they are Linux's, which finds the neighbours.
const FIRST: u8 = 0;

/// ARP's part of its path.
#[derive(Default)]
pub(super) struct ArpStage {
    ours: MacAddr,
}

impl ArpStage {
    /// The merge of RFC 826: an entry that is there is updated; answers whether the packet is
    /// for one of our addresses.
    fn merge(&self, cx: &mut Cx<'_, '_>, packet: &arp::Packet) -> Result<bool, DropReason> {
        let now = cx.now();
        let (arp, port) = cx.module_and_port::<Arp>();
        let conflict = arp.addresses.contains(&packet.sender) && packet.sender_mac != self.ours;
        if !packet.sender_mac.is_unicast()
            || conflict
            || packet.sender.is_multicast()
            || packet.sender.is_broadcast()
        {
            return Err(DropReason::ArpIgnored);
        }
        // A probe (RFC 5227 §1.1) has no sender's address: nothing to learn.
        if !packet.sender.is_unspecified() {
            arp.neighbours.update(now, (FIRST, packet.sender), packet.sender_mac, port);
        }
        Ok(arp.addresses.contains(&packet.target))
    }

    /// Sends every request that is due, and sets the timer for the next.
    fn ask(&mut self, cx: &mut Cx<'_, '_>) {
        while let Some(((_, target), _)) = cx.module::<Arp>().neighbours.cache.next_request() {
            self.send_request(cx, target);
        }
        let deadline = cx.module::<Arp>().neighbours.cache.deadline();
        cx.arm(deadline);
    }

    fn send_request(&mut self, cx: &mut Cx<'_, '_>, target: Ipv4Addr) {
        let ours = cx.module::<Arp>().addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED);
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
        // A drop has been counted; the request goes out again in a second.
        let _ = cx.down(&mut Message::new(&mut buffer, HEADROOM, HEADROOM + arp::PACKET, meta));
    }
}

impl Stage for ArpStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        self.ours = MacAddr(cx.attrs().link_address().ok_or(CreateError::Missing("LinkAddress"))?);
        let path = cx.path();
        cx.module::<Arp>().neighbours.path = Some(path);
        self.ask(cx);
        Ok(())
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
