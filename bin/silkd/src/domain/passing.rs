//! Frames that come to a domain by another way than its own ring: passed on by the domain whose ring received them, a bounded
//! number at a time, or put together from fragments.

use crate::between::told::Told;
use crate::domain::engine::Engine;
use silk_device::Frame;
use silk_executor::join::checksum_of;
use silk_instant::Instant;
use silk_path::classify::{Belongs, skip_extensions};
use silk_path::{Checksum, DropReason, Endpoint, Outcome, PathId};
use silk_wire::arp::{self, Operation};
use silk_wire::{eth, ipv4, ipv6, ndp};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering::SeqCst;

impl Engine {
    /// A frame that no path of this domain takes: passed on if a socket of another domain
    /// does.
    pub(crate) fn pass_on(&mut self, frame: Frame) -> Result<(), DropReason> {
        let home = self.core.home_of(frame);
        let bytes = self.core.device.bytes(frame);
        let bytes = bytes.get(frame.range()).ok_or(DropReason::EthTruncated)?;
        let local = if home.is_some() { None } else { udp_destination(bytes) };
        let hears = || self.homes.find(local?);
        let domain = home.or_else(hears).ok_or(DropReason::NoPath)?;
        let sibling =
            self.siblings.get(domain).filter(|_| domain != self.domain).ok_or(DropReason::NoPath)?;
        let passed = sibling.pass(bytes, frame.device, checksum_of(frame));
        if let Some(local) = local.filter(|_| domain < self.domain)
            && let Some(passed) = self.homes.note_passed(local)
        {
            self.tell_control(Told::Lane { local, passed, home: domain, domain: self.domain });
        }
        passed
    }

    /// An answer to ARP or neighbour discovery arrives in one domain; another may have asked. So does what a station says of itself.
    pub(crate) fn spread_answer(&mut self, frame: Frame) {
        let bytes = self.core.device.bytes(frame);
        let tables = &self.core.tables;
        let tells = |bytes: &&[u8]| is_answer(bytes, |address| tables.is_local(address));
        let Some(bytes) = bytes.get(frame.range()).filter(tells) else { return };
        for (_, sibling) in self.siblings.iter().enumerate().filter(|(domain, _)| *domain != self.domain) {
            if let Err(reason) = sibling.pass(bytes, frame.device, checksum_of(frame)) {
                self.core.drops.count(reason);
            }
        }
    }

    /// A packet that was put together from fragments, which arrive in one domain for all. The last came over this device.
    pub(crate) fn reassembled(&mut self, bytes: &mut [u8], device: u8, checksum: Checksum, now: Instant) {
        let domain = match self.core.paths.graph().classify_over(bytes, device) {
            Belongs::Path { domain, .. } => Some(usize::from(domain)),
            Belongs::Refuse { .. } => return self.core.drops.count(DropReason::Refused),
            _ => udp_destination(bytes).and_then(|local| self.homes.find(local)),
        };
        let sibling = domain.filter(|domain| *domain != self.domain).and_then(|n| self.siblings.get(n));
        match sibling.map(|sibling| sibling.pass(bytes, device, checksum)) {
            None => self.arrived(bytes, device, checksum, now),
            Some(Err(reason)) => self.core.drops.count(reason),
            Some(Ok(())) => {}
        }
    }

    /// A frame that another domain has passed on.
    pub fn passed_on(&mut self, mut bytes: Box<[u8]>, device: u8, checksum: Checksum, now: Instant) {
        self.has_come();
        self.arrived(&mut bytes, device, checksum, now);
        // Paths may have waited for what has just been learnt.
        self.answer_requests(now);
        self.bring_accepted(now);
    }

    /// What another domain gave is on its way no longer.
    pub(crate) fn has_come(&self) {
        if let Some(own) = self.siblings.get(self.domain) {
            own.under_way.fetch_sub(1, SeqCst);
        }
    }

    /// A frame that is in no ring and came over this device: put together from fragments, or passed on.
    pub(crate) fn arrived(&mut self, bytes: &mut [u8], device: u8, checksum: Checksum, now: Instant) {
        let listens = |id: &PathId| self.listeners.contains_key(&id.index);
        if !self.listeners.is_empty()
            && let Some(id) = self.core.target_of(bytes, device).filter(listens)
        {
            // As for what comes by this domain's own ring.
            self.bring_accepted(now);
            self.tell_fullness(id, now);
        }
        let Some((mut id, outcome)) = self.core.arrive(bytes, device, checksum, now) else { return };
        if outcome == Outcome::Handoff {
            // What completes a handshake may carry text, for the path that is made then.
            self.answer_requests(now);
            let Some((made, _)) = self.core.arrive(bytes, device, checksum, now) else { return };
            id = made;
        }
        self.conclude(id, now);
        for other in self.sharers_in_group(id, bytes) {
            let _ = self.core.arrive_at(other, bytes, device, checksum, now);
            self.tell_program(other);
        }
    }
}

/// Whether an Ethernet frame carries an answer of ARP's (RFC 826) or of neighbour discovery's (RFC 4861 §4.4), or announces by
/// a request where a station is (RFC 5227 §3), unless that is `ours`: one domain defends it, once.
fn is_answer(frame: &[u8], ours: impl Fn(Ipv4Addr) -> bool) -> bool {
    let Ok(eth::Frame { kind, payload, .. }) = eth::frame(frame) else { return false };
    match kind {
        eth::ARP => arp::parse(payload).is_ok_and(|arp| match arp.operation {
            Operation::Reply => true,
            Operation::Request => arp.sender == arp.target && !ours(arp.sender),
        }),
        eth::IPV6 => {
            payload.get(6) == Some(&ipv6::ICMP) && payload.get(ipv6::HEADER) == Some(&ndp::ADVERTISEMENT)
        }
        _ => false,
    }
}

/// Where a UDP packet in an Ethernet frame is sent to.
fn udp_destination(frame: &[u8]) -> Option<Endpoint> {
    let eth::Frame { kind, payload: packet, .. } = eth::frame(frame).ok()?;
    let (address, datagram): (IpAddr, _) = match kind {
        eth::IPV4 if *packet.get(9)? == ipv4::UDP => {
            let address: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            (address.into(), packet.get(usize::from(packet.first()? & 15) * 4..)?)
        }
        eth::IPV6 => {
            let address: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            let (protocol, fragment, datagram) =
                skip_extensions(*packet.get(6)?, packet.get(ipv6::HEADER..)?)?;
            (address.into(), Some(datagram).filter(|_| protocol == ipv4::UDP && !fragment)?)
        }
        _ => return None,
    };
    let port = datagram.get(2..4)?;
    Some(Endpoint::new(address, u16::from_be_bytes([port[0], port[1]])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_wire::MacAddr;

    /// Whether the other domains hear of what this station says by ARP.
    fn is_told(operation: Operation, sender: Ipv4Addr, target: Ipv4Addr) -> bool {
        let (sender_mac, target_mac) = (MacAddr([2, 0, 0, 0, 0, 9]), MacAddr::ZERO);
        let mut frame = [0; eth::HEADER + arp::PACKET];
        eth::Header::new(MacAddr::BROADCAST, sender_mac, eth::ARP).emit(&mut frame);
        let packet = arp::Packet { operation, sender_mac, sender, target_mac, target };
        packet.emit(&mut frame[eth::HEADER..]);
        is_answer(&frame, |address| address == OURS)
    }

    const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    // RFC 5227 §2.3, §3: a station that has another Ethernet address now says so by a request.
    #[test]
    fn who_announces_itself_is_heard_by_all_and_who_asks_is_not() {
        let (there, other) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3));
        assert!(is_told(Operation::Request, there, there));
        assert!(!is_told(Operation::Request, there, OURS), "a question");
        assert!(!is_told(Operation::Request, there, other), "one for others");
        assert!(!is_told(Operation::Request, Ipv4Addr::UNSPECIFIED, there), "a probe");
        assert!(!is_told(Operation::Request, OURS, OURS), "each domain would defend it");
        assert!(is_told(Operation::Reply, there, OURS));
    }

    #[test]
    fn a_frame_says_where_its_datagram_is_sent_to_and_nothing_else_does() {
        let mut four = [0; 14 + 20 + 8];
        four[12..14].copy_from_slice(&[8, 0]);
        four[14] = 0x45;
        four[14 + 9] = ipv4::UDP;
        four[14 + 16..14 + 20].copy_from_slice(&[10, 0, 0, 1]);
        four[14 + 20 + 2..14 + 20 + 4].copy_from_slice(&53u16.to_be_bytes());
        assert_eq!(udp_destination(&four), Some(Endpoint::v4(Ipv4Addr::new(10, 0, 0, 1), 53)));
        assert_eq!(udp_destination(&four[..14 + 20 + 3]), None, "cut short");
        four[14 + 9] = ipv4::TCP;
        assert_eq!(udp_destination(&four), None);

        let mut six = [0; 14 + ipv6::HEADER + 8];
        six[12..14].copy_from_slice(&[0x86, 0xdd]);
        six[14] = 0x60;
        six[14 + 6] = ipv4::UDP;
        six[14 + 24 + 15] = 1;
        six[14 + ipv6::HEADER + 2..][..2].copy_from_slice(&53u16.to_be_bytes());
        assert_eq!(udp_destination(&six), Some(Endpoint::new(std::net::Ipv6Addr::LOCALHOST, 53)));
    }
}
