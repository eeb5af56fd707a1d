//! What bytes cost: copied into and out of the rings that are shared with a program, summed, and sent by
//! reference or copied; and what it costs to pass them from one side of a ring to the other.

use super::case::{Case, repeated};
use super::host::{HEADROOM, HERE, THERE};
use super::row::Peers;
use silk_path::{Message, Meta};
use silk_stream::{Arena, Bytes, Pool, RingPlace, Sizes, Slot};
use silk_wire::checksum::Sum;
use silk_wire::{MacAddr, eth, ipv4, tcp};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

/// Sizes of what is copied, in bytes.
const COPIED: [(usize, &str); 2] = [(1024, "1 KB"), (65_536, "64 KB")];
/// Bytes of a ring.
const RING: u32 = 131_072;
/// Bytes of what is passed from one side of a ring to the other.
pub const PASSED: usize = 64;
/// Bytes of TCP's header with time stamps.
const TCP_HEADER: usize = tcp::HEADER + 12;
/// Bytes of a segment's headers.
const HEADERS: usize = eth::HEADER + ipv4::HEADER + TCP_HEADER;

/// Every case of copying; none where the kernel gives no shared memory.
pub fn cases() -> Vec<Case> {
    let mut cases = vec![Case::new("headers of a TCP segment built", Peers::NONE, headers())];
    let Some(rings) = Rings::new() else { return cases };
    cases.push(Case::new("64 bytes through a shared ring, one thread", Peers::NONE, passed(rings.clone())));
    for (size, name) in COPIED {
        // SILK's two copies were of packets, not of this size.
        let silk = |micros| if size == 1024 { Peers::silk(micros) } else { Peers::NONE };
        let ring = || rings.clone();
        cases.push(Case::new(format!("{name} written into a ring"), silk(1.1), written(ring(), size)));
        cases.push(Case::new(format!("{name} read out of a ring"), Peers::NONE, read(ring(), size)));
        cases.push(Case::new(format!("{name} summed"), Peers::NONE, summed(size)));
        cases.push(Case::new(format!("{name} sent by reference"), silk(4.3), referred(ring(), size)));
        cases.push(Case::new(format!("{name} sent as a copy"), silk(4.3), copied(ring(), size)));
    }
    cases
}

/// Shared memory with a socket's record and its two rings.
#[derive(Clone)]
pub struct Rings {
    arena: Arc<Arena>,
    slot: u32,
    receive: RingPlace,
    send: RingPlace,
}

impl Rings {
    /// Makes them; `None` where the kernel refuses.
    pub fn new() -> Option<Self> {
        let sizes = Sizes { rings: 4 << 20, domains: 1 };
        let arena = Arena::create(sizes).ok()?;
        let mut pool = Pool::new(arena.clone());
        let (slot, receive, send) = (pool.take_slot()?, pool.take_ring(RING)?, pool.take_ring(RING)?);
        Some(Self { arena, slot, receive, send })
    }

    /// The socket's record.
    pub fn slot(&self) -> &Slot {
        self.arena.slot(self.slot).expect("the pool gave it")
    }

    /// From the daemon to the program.
    pub fn receive(&self) -> Bytes<'_> {
        self.arena.ring(self.receive.place, self.receive.size).expect("the pool gave it")
    }

    /// From the program to the daemon.
    pub fn send(&self) -> Bytes<'_> {
        self.arena.ring(self.send.place, self.send.size).expect("the pool gave it")
    }
}

/// Written, told, seen, read, told: both sides of a ring in one thread.
fn passed(rings: Rings) -> impl FnMut(u64) -> Duration {
    let mut bytes = [7; PASSED];
    move |operations| {
        let (slot, ring) = (rings.slot(), rings.send());
        repeated(operations, |_| {
            let at = slot.tx_write.load(Acquire);
            ring.write(at, black_box(&bytes));
            slot.tx_write.store(at.wrapping_add(PASSED as u32), Release);
            let at = slot.tx_read.load(Acquire);
            assert_eq!(slot.tx_write.load(Acquire).wrapping_sub(at), PASSED as u32, "it has arrived");
            ring.read(at, black_box(&mut bytes));
            slot.tx_read.store(at.wrapping_add(PASSED as u32), Release);
        })
    }
}

fn written(rings: Rings, size: usize) -> impl FnMut(u64) -> Duration {
    let data = vec![7; size];
    let mut at = 0u32;
    move |operations| {
        let ring = rings.receive();
        repeated(operations, |_| {
            ring.write(at, black_box(&data));
            at = at.wrapping_add(size as u32);
        })
    }
}

fn read(rings: Rings, size: usize) -> impl FnMut(u64) -> Duration {
    let mut data = vec![0; size];
    let mut at = 0u32;
    move |operations| {
        let ring = rings.send();
        repeated(operations, |_| {
            ring.read(at, black_box(&mut data));
            at = at.wrapping_add(size as u32);
        })
    }
}

fn summed(size: usize) -> impl FnMut(u64) -> Duration {
    let data = vec![7; size];
    move |operations| repeated(operations, |_| _ = black_box(Sum::ZERO.bytes(black_box(&data)).checksum()))
}

fn headers() -> impl FnMut(u64) -> Duration {
    let mut buffer = [0; HEADERS];
    move |operations| repeated(operations, |n| build(black_box(&mut buffer), n as u32, 1448))
}

/// A message of headers in place and the text where the program has put it, as the path hands it to the
/// device.
fn referred(rings: Rings, size: usize) -> impl FnMut(u64) -> Duration {
    let mut at = 0u32;
    move |operations| {
        let ring = rings.send();
        repeated(operations, |n| {
            let mut headroom = [0; HEADROOM];
            let mut msg = Message::outgoing(&mut headroom, ring.peek(at, size), Meta::default());
            build(msg.push(HEADERS).expect("there is room"), n as u32, size);
            black_box(&msg);
            at = at.wrapping_add(size as u32);
        })
    }
}

/// The same message with its text copied behind the headers first.
fn copied(rings: Rings, size: usize) -> impl FnMut(u64) -> Duration {
    let mut buffer = vec![0; HEADROOM + size];
    let mut at = 0u32;
    move |operations| {
        let ring = rings.send();
        repeated(operations, |n| {
            ring.read(at, &mut buffer[HEADROOM..]);
            let end = buffer.len();
            let mut msg = Message::new(&mut buffer, HEADROOM, end, Meta::default());
            build(msg.push(HEADERS).expect("there is room"), n as u32, size);
            black_box(&msg);
            at = at.wrapping_add(size as u32);
        })
    }
}

/// Writes ETH, IP with its checksum, and TCP with time stamps.
fn build(bytes: &mut [u8], sequence: u32, payload: usize) {
    let (link, rest) = bytes.split_at_mut(eth::HEADER);
    let (network, transport) = rest.split_at_mut(ipv4::HEADER);
    eth::Header::new(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]), eth::IPV4).emit(link);
    let ip = ipv4::Emit {
        protocol: ipv4::TCP,
        source: HERE,
        destination: THERE,
        // A message that a device is to cut up says no more than fits.
        payload_len: (payload + TCP_HEADER).min(ipv4::MAX - ipv4::HEADER) as u16,
        ..Default::default()
    };
    ip.emit(network);
    let header =
        tcp::Emit { source: 80, destination: 9, seq: sequence, flags: tcp::flag::ACK, ..Default::default() };
    header.emit(TCP_HEADER - tcp::HEADER, transport);
    transport[tcp::HEADER..tcp::HEADER + 4].copy_from_slice(&[1, 1, 8, 10]);
    transport[tcp::HEADER + 4..tcp::HEADER + 8].copy_from_slice(&sequence.to_be_bytes());
    transport[tcp::HEADER + 8..].copy_from_slice(&sequence.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_copy_can_be_made_anywhere_in_a_ring() {
        for mut case in cases() {
            case.round(Duration::ZERO);
            assert!(case.row().is_some_and(|row| row.operations > 0));
        }
    }
}
