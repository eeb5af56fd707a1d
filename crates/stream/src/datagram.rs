//! Datagrams in a byte ring: each a header with length and address, then the bytes, padded
//! to eight. Used in both directions of a UDP socket.
//!
//! The reader trusts no header: a record that does not fit in what the ring holds is a
//! program's mistake, and the ring is emptied.

use crate::ring::Bytes;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Bytes before the data of each datagram: length (2), hops (1), service (1), port (2), segment (2),
/// address (16).
pub const RECORD_HEADER: u32 = 24;

/// Bytes behind the header of one that came with [`Details`]: time (8), interface (4), nothing (4), address (16). Of one that
/// is to leave from an address of its own: segment (8), nothing (8), address (16).
const DETAILS: u32 = 32;
/// What stands for the segment there. No datagram is so long that it could be one.
const DETAILED: u16 = u16::MAX;

/// What the packet that brought a datagram said of its way; of one that is to leave, how it is to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// The hops it had left, or may take: IPv4's time to live, IPv6's hop limit; 0: nobody knows, or as its socket's others.
    pub hops: u8,
    /// The service bits: IPv4's type of service, IPv6's traffic class.
    pub service: u8,
}

/// What only some programs want to know of a datagram that came ([`crate::option::DETAILS`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    /// When it arrived, ns of `CLOCK_MONOTONIC`.
    pub at: u64,
    /// The address it was sent to; unspecified: nobody knows.
    pub to: IpAddr,
    /// Linux's number of the interface that it came over; 0: nobody knows, or silk has it alone.
    pub interface: u32,
}

/// A datagram that came, but for its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Where it came from.
    pub peer: SocketAddr,
    /// How.
    pub way: Way,
    /// When, and where to, for a program that wants to know.
    pub details: Option<Details>,
}

/// A datagram that is to leave, or several for one peer, but for the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Where it goes.
    pub peer: SocketAddr,
    /// How.
    pub way: Way,
    /// As [`Datagram::segment`].
    pub segment: u16,
    /// The address it is to leave from, where its program says so.
    pub from: Option<IpAddr>,
}

impl Sent {
    /// Bytes that its record takes in the ring with `len` bytes of data.
    pub fn space(&self, len: u32) -> u32 {
        Datagram::space(len) + if self.from.is_some() { DETAILS } else { 0 }
    }
}

/// A datagram's header as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Bytes of data.
    pub len: u32,
    /// Where it is several datagrams for one peer: bytes of data of each but the last; 0: it is one
    /// (`UDP_SEGMENT`).
    pub segment: u16,
    /// The peer: where it came from, or where it goes.
    pub peer: SocketAddr,
    /// How it came, or is to go.
    pub way: Way,
    /// When, and where to.
    pub details: Option<Details>,
}

impl Datagram {
    /// Bytes the record takes in the ring.
    pub fn space(len: u32) -> u32 {
        RECORD_HEADER + len.next_multiple_of(8)
    }

    /// Of one that is to leave: its segment, and the address it is to leave from, where its program says so.
    pub fn departure(&self) -> (u16, Option<IpAddr>) {
        self.details.map_or((self.segment, None), |details| (details.at as u16, Some(details.to)))
    }
}

/// Writes a datagram that is to leave at `write` when `free` bytes suffice; the new write index.
pub fn push(ring: Bytes<'_>, write: u32, free: u32, sent: &Sent, data: &[&[u8]]) -> Option<u32> {
    let segment = if sent.segment == DETAILED { 0 } else { sent.segment };
    let details = sent.from.map(|to| Details { at: segment.into(), to, interface: 0 });
    let mark = if details.is_some() { DETAILED } else { segment };
    put(ring, (write, free), mark, &Received { peer: sent.peer, way: sent.way, details }, data)
}

/// The same of a datagram that came.
pub fn push_received(
    ring: Bytes<'_>,
    write: u32,
    free: u32,
    received: &Received,
    data: &[&[u8]],
) -> Option<u32> {
    let segment = if received.details.is_some() { DETAILED } else { 0 };
    put(ring, (write, free), segment, received, data)
}

#[inline]
fn put(
    ring: Bytes<'_>,
    (write, free): (u32, u32),
    segment: u16,
    received: &Received,
    data: &[&[u8]],
) -> Option<u32> {
    let len: usize = data.iter().map(|part| part.len()).sum();
    let len = u16::try_from(len).ok()?;
    let space = Datagram::space(len.into()) + if received.details.is_some() { DETAILS } else { 0 };
    if space > free {
        return None;
    }
    let (peer, way) = (received.peer, received.way);
    let mut header = [0; RECORD_HEADER as usize];
    header[..2].copy_from_slice(&len.to_le_bytes());
    header[2..4].copy_from_slice(&[way.hops, way.service]);
    header[4..6].copy_from_slice(&peer.port().to_le_bytes());
    header[6..8].copy_from_slice(&segment.to_le_bytes());
    header[8..].copy_from_slice(&wide(peer.ip()));
    ring.write(write, &header);
    let mut at = write.wrapping_add(RECORD_HEADER);
    if let Some(details) = received.details {
        ring.write(at, &details.at.to_le_bytes());
        ring.write(at.wrapping_add(8), &u64::from(details.interface).to_le_bytes());
        ring.write(at.wrapping_add(16), &wide(details.to));
        at = at.wrapping_add(DETAILS);
    }
    for part in data {
        ring.write(at, part);
        at = at.wrapping_add(part.len() as u32);
    }
    Some(write.wrapping_add(space))
}

fn wide(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// Reads the datagram at `read`, of which `used` bytes are there: its header, the index of
/// its data, and the read index after it. `None` when there is none or it is malformed.
pub fn pop(ring: Bytes<'_>, read: u32, used: u32) -> Option<(Datagram, u32, u32)> {
    if used < RECORD_HEADER {
        return None;
    }
    let mut header = [0; RECORD_HEADER as usize];
    ring.read(read, &mut header);
    let len = u32::from(u16::from_le_bytes([header[0], header[1]]));
    let mut space = Datagram::space(len);
    if space > used {
        return None;
    }
    let way = Way { hops: header[2], service: header[3] };
    let port = u16::from_le_bytes([header[4], header[5]]);
    let mut segment = u16::from_le_bytes([header[6], header[7]]);
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(&header[8..]).ok()?);
    let peer = SocketAddr::new(address.to_canonical(), port);
    let mut data = read.wrapping_add(RECORD_HEADER);
    let mut details = None;
    if segment == DETAILED {
        space += DETAILS;
        if space > used {
            return None;
        }
        details = Some(read_details(ring, data));
        (segment, data) = (0, data.wrapping_add(DETAILS));
    }
    Some((Datagram { len, segment, peer, way, details }, data, read.wrapping_add(space)))
}

#[cold]
fn read_details(ring: Bytes<'_>, read: u32) -> Details {
    let (mut at, mut interface, mut to) = ([0; 8], [0; 4], [0; 16]);
    ring.read(read, &mut at);
    ring.read(read.wrapping_add(8), &mut interface);
    ring.read(read.wrapping_add(16), &mut to);
    let (at, interface) = (u64::from_le_bytes(at), u32::from_le_bytes(interface));
    Details { at, to: Ipv6Addr::from(to).to_canonical(), interface }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(memory: &mut [u8]) -> Bytes<'_> {
        // SAFETY: the memory is borrowed for the ring's life and used through it alone.
        unsafe { Bytes::new(memory.as_mut_ptr(), memory.len() as u32) }
    }

    #[test]
    fn a_datagram_comes_out_as_it_went_in_even_across_the_end() {
        let mut memory = [0; 64];
        let ring = ring(&mut memory);
        let peer = "10.0.0.1:53".parse().unwrap();
        let way = Way { hops: 3, service: 2 };
        for from in [None, Some("10.0.0.9".parse().unwrap()), Some("fe80::9".parse().unwrap())] {
            let sent = Sent { peer, way, segment: 2, from };
            assert_eq!(push(ring, 40, sent.space(5) - 1, &sent, &[b"hel", b"lo"]), None);
            let write = push(ring, 40, sent.space(5), &sent, &[b"hel", b"lo"]).unwrap();
            let (datagram, at, next) = pop(ring, 40, write - 40).unwrap();
            assert_eq!((datagram.len, datagram.peer, datagram.way), (5, peer, way));
            assert_eq!(datagram.departure(), (2, from));
            assert_eq!((ring.peek(at, 5).concat(), next), (b"hello".to_vec(), write));
        }
    }

    #[test]
    fn how_a_datagram_came_is_told_with_it() {
        let mut memory = [0; 64];
        let ring = ring(&mut memory);
        let (peer, way) = ("[fe80::1]:53".parse().unwrap(), Way { hops: 255, service: 0xb8 });
        let details = Details { at: u64::MAX - 1, to: "10.0.0.2".parse().unwrap(), interface: u32::MAX - 1 };
        for (details, length) in [(None, 32), (Some(details), 64)] {
            let received = Received { peer, way, details };
            assert_eq!(push_received(ring, 48, length - 1, &received, &[b"hello"]), None);
            let write = push_received(ring, 48, length, &received, &[b"hello"]).unwrap();
            assert_eq!(pop(ring, 48, length - 1), None);
            let (datagram, at, next) = pop(ring, 48, length).unwrap();
            assert_eq!(datagram, Datagram { len: 5, segment: 0, peer, way, details });
            assert_eq!((ring.peek(at, 5).concat(), next), (b"hello".to_vec(), write));
        }
    }

    #[test]
    fn a_segment_that_no_datagram_could_be_is_none() {
        let mut memory = [0; 64];
        let ring = ring(&mut memory);
        let (peer, way) = ("10.0.0.1:53".parse().unwrap(), Way::default());
        let sent = Sent { peer, way, segment: u16::MAX, from: None };
        let write = push(ring, 0, 64, &sent, &[b"x"]).unwrap();
        let (datagram, ..) = pop(ring, 0, write).unwrap();
        assert_eq!((datagram.segment, datagram.details), (0, None));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut memory = [0; 64];
        let ring = ring(&mut memory);
        let peer = "1.2.3.4:5".parse().unwrap();
        let sent = Sent { peer, way: Way::default(), segment: 0, from: None };
        assert_eq!(push(ring, 0, 31, &sent, &[b"x"]), None);
    }

    #[test]
    fn a_lying_length_is_no_datagram() {
        let mut memory = [0xff; 64];
        assert_eq!(pop(ring(&mut memory), 0, 64), None);
    }
}
