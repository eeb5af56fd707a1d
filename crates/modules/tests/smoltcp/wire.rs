//! The cable between the hosts: the emulated link, with what an Ethernet's own checksum does for
//! the parts of a frame that no checksum of IP's covers.

use silk_instant::Instant;
use silk_testkit::emulator::{Conditions, Link};
use silk_wire::checksum::Sum;
use silk_wire::eth;

/// The length of that checksum.
const GUARD: usize = 2;
/// An ARP packet of Ethernet and IPv4.
const ARP: usize = 28;
/// Of IPv6 what comes before the addresses: version, service bits, flow label, length, protocol, hops.
const IPV6_HEAD: usize = 8;

/// One direction.
pub struct Wire {
    link: Link,
    /// Nothing gets through any more.
    pub cut: bool,
}

impl Wire {
    pub fn new(conditions: &Conditions, seed: u64) -> Self {
        Self { link: Link::new(conditions, seed), cut: false }
    }

    pub fn send(&mut self, now: Instant, mut frame: Vec<u8>) {
        let guard = guard(&frame);
        frame.extend(guard);
        self.link.send(now, frame);
    }

    /// The next frame that has arrived, and was not corrupted where only Ethernet would notice.
    pub fn arrive(&mut self, now: Instant) -> Option<Vec<u8>> {
        while let Some(mut frame) = self.link.arrive(now) {
            let told = frame.split_off(frame.len().saturating_sub(GUARD));
            if told == guard(&frame) && !self.cut {
                return Some(frame);
            }
        }
        None
    }

    pub fn next_event(&self) -> Option<Instant> {
        self.link.next_event()
    }
}

/// A sum over what IP, TCP, UDP and ICMP leave unguarded.
fn guard(frame: &[u8]) -> [u8; GUARD] {
    let kind = frame.get(12..eth::HEADER).map_or(0, |kind| u16::from_be_bytes([kind[0], kind[1]]));
    let unguarded = eth::HEADER
        + match kind {
            eth::IPV4 => 0,
            eth::IPV6 => IPV6_HEAD,
            _ => ARP,
        };
    Sum::ZERO.bytes(&frame[..unguarded.min(frame.len())]).checksum().to_be_bytes()
}
