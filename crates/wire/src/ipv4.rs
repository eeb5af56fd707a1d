//! The IPv4 header (RFC 791 §3.1, RFC 2474 for the service bits).
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+-------+-----------+---+-------------------------------+
//! |   4   |  IHL  |   DSCP    |ECN|          total length         |
//! +-------+-------+-----------+---+-----+-------------------------+
//! |        identification         |0 D M|    fragment offset / 8  |
//! +---------------+---------------+-----+-------------------------+
//! |      TTL      |   protocol    |        header checksum        |
//! +---------------+---------------+-------------------------------+
//! |                            source                             |
//! +---------------------------------------------------------------+
//! |                          destination                          |
//! +---------------------------------------------------------------+
//! |                    options, padded (IHL*4 - 20)               |
//! +---------------------------------------------------------------+
//! ```
//! Options are skipped: none of them changes what a host does with a packet for itself.

use crate::checksum::Sum;
use crate::{ParseError, put, split};
use core::net::Ipv4Addr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, network_endian::U16};

/// Bytes of a header without options.
pub const HEADER: usize = 20;
/// The largest total length.
pub const MAX: usize = 65535;
/// The least MTU of a link (RFC 791 §3.2).
pub const MIN_MTU: u16 = 68;

/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// The fixed part of the header as it stands in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    version_ihl: u8,
    /// DSCP (upper six bits) and ECN (RFC 2474, RFC 3168).
    pub tos: u8,
    total_len: U16,
    identification: U16,
    fragment: U16,
    /// Hops left.
    pub ttl: u8,
    /// What the payload is ([`TCP`], [`UDP`], [`ICMP`]).
    pub protocol: u8,
    checksum: U16,
    source: [u8; 4],
    destination: [u8; 4],
}

impl Header {
    /// The sender.
    pub fn source(&self) -> Ipv4Addr {
        self.source.into()
    }
    /// The receiver.
    pub fn destination(&self) -> Ipv4Addr {
        self.destination.into()
    }
    /// Bytes of the header with its options.
    pub fn header_len(&self) -> usize {
        usize::from(self.version_ihl & 15) * 4
    }
    /// Bytes of the packet.
    pub fn total_len(&self) -> usize {
        self.total_len.get().into()
    }
    /// Ties the fragments of one datagram together.
    pub fn identification(&self) -> u16 {
        self.identification.get()
    }
    /// Routers must not fragment it.
    pub fn dont_fragment(&self) -> bool {
        self.fragment.get() & DONT_FRAGMENT != 0
    }
    /// Not the last fragment.
    pub fn more_fragments(&self) -> bool {
        self.fragment.get() & MORE_FRAGMENTS != 0
    }
    /// Where this fragment's payload lies in its datagram's, in bytes.
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.fragment.get() & OFFSET) * 8
    }
    /// One of several fragments.
    pub fn is_fragment(&self) -> bool {
        self.fragment.get() & (MORE_FRAGMENTS | OFFSET) != 0
    }
    /// The differentiated services code point.
    pub fn dscp(&self) -> u8 {
        self.tos >> 2
    }
}

/// A packet whose lengths have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The fixed part of the header.
    pub header: &'a Header,
    /// The options, at most 40 bytes.
    pub options: &'a [u8],
    /// What the packet carries, without the padding of the link.
    pub payload: &'a [u8],
}

/// The packet at the front of `bytes`, its lengths and header checksum checked.
// RFC 9293 MUST-50.
pub fn parse(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
    let packet = parse_quoted(bytes)?;
    let total_len = packet.header.total_len();
    let header_len = packet.header.header_len();
    if total_len < header_len || total_len > bytes.len() {
        return Err(ParseError::Ipv4TotalLength);
    }
    if Sum::ZERO.bytes(&bytes[..header_len]).folded() != 0xffff {
        return Err(ParseError::Ipv4Checksum);
    }
    check_fragment(packet.header)?;
    Ok(Packet { payload: &bytes[header_len..total_len], ..packet })
}

/// The packet that an ICMP error quotes: cut short, so neither its total length nor its
/// checksum (which the quoting router may have changed) is asked for.
pub fn parse_quoted(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
    let (header, rest) = split::<Header>(bytes, ParseError::Ipv4Truncated)?;
    if header.version_ihl >> 4 != 4 {
        return Err(ParseError::Ipv4Version);
    }
    let options = header.header_len().checked_sub(HEADER).ok_or(ParseError::Ipv4HeaderLength)?;
    let (options, payload) = rest.split_at_checked(options).ok_or(ParseError::Ipv4HeaderLength)?;
    Ok(Packet { header, options, payload })
}

/// A fragment that more follow carries whole units of 8 bytes, at least one, and no fragment
/// reaches beyond the longest datagram (RFC 791 §3.2; the "ping of death").
fn check_fragment(header: &Header) -> Result<(), ParseError> {
    let payload = header.total_len() - header.header_len();
    let whole = !header.more_fragments() || (payload.is_multiple_of(8) && payload > 0);
    let fits = header.fragment_offset() + payload + HEADER <= MAX;
    if header.is_fragment() && !(whole && fits) { Err(ParseError::Ipv4Fragment) } else { Ok(()) }
}

/// What a header to be written says. Of options the router alert alone is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emit {
    /// DSCP and ECN.
    pub tos: u8,
    /// Ties fragments together; means nothing on an unfragmentable packet (RFC 6864).
    pub identification: u16,
    /// Routers must not fragment it.
    pub dont_fragment: bool,
    /// Hops left.
    pub ttl: u8,
    /// What the payload is.
    pub protocol: u8,
    /// The sender.
    pub source: Ipv4Addr,
    /// The receiver.
    pub destination: Ipv4Addr,
    /// Bytes of payload, at most 65515.
    pub payload_len: u16,
    /// Where the payload lies in its datagram's, in bytes: a multiple of 8.
    pub offset: u16,
    /// Not the last fragment.
    pub more_fragments: bool,
}

impl Default for Emit {
    /// An unfragmentable packet with a full TTL, to be completed.
    fn default() -> Self {
        Self {
            tos: 0,
            identification: 0,
            dont_fragment: true,
            ttl: 64,
            protocol: 0,
            source: Ipv4Addr::UNSPECIFIED,
            destination: Ipv4Addr::UNSPECIFIED,
            payload_len: 0,
            offset: 0,
            more_fragments: false,
        }
    }
}

impl Emit {
    /// Writes the header, checksum included, to the front of `bytes`, which must have room
    /// for [`HEADER`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        put(&self.header(), bytes);
        let checksum = Sum::ZERO.bytes(&bytes[..HEADER]).checksum();
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Writes the header with the router alert option (RFC 2113), which routers look at, to the front
    /// of `bytes`, which must have room for [`HEADER`] and four bytes.
    pub fn emit_alert(&self, bytes: &mut [u8]) {
        let longer = HEADER + 4;
        let header = Header {
            version_ihl: 0x46,
            total_len: U16::new(self.payload_len.saturating_add(longer as u16)),
            ..self.header()
        };
        put(&header, bytes);
        bytes[HEADER..longer].copy_from_slice(&[148, 4, 0, 0]);
        let checksum = Sum::ZERO.bytes(&bytes[..longer]).checksum();
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    /// The header with a checksum of zero.
    fn header(&self) -> Header {
        let flags = if self.dont_fragment { DONT_FRAGMENT } else { 0 }
            | if self.more_fragments { MORE_FRAGMENTS } else { 0 };
        Header {
            version_ihl: 0x45,
            tos: self.tos,
            total_len: U16::new(self.payload_len.saturating_add(HEADER as u16)),
            identification: U16::new(self.identification),
            fragment: U16::new(flags | (self.offset / 8)),
            ttl: self.ttl,
            protocol: self.protocol,
            checksum: U16::new(0),
            source: self.source.octets(),
            destination: self.destination.octets(),
        }
    }
}

/// Rewrites the fixed header at the front of `bytes` as that of a whole datagram of
/// `payload_len` bytes with these service bits and without options: what reassembly hands on. Room for
/// [`HEADER`] bytes.
pub fn emit_reassembled(first: &Header, tos: u8, payload_len: u16, bytes: &mut [u8]) {
    let whole = Emit {
        tos,
        identification: first.identification(),
        dont_fragment: false,
        ttl: first.ttl,
        protocol: first.protocol,
        source: first.source(),
        destination: first.destination(),
        payload_len,
        ..Emit::default()
    };
    whole.emit(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn packet(emit: Emit, payload: &[u8]) -> Vec<u8> {
        let mut bytes = std::vec![0; HEADER];
        Emit { payload_len: payload.len() as u16, ..emit }.emit(&mut bytes);
        bytes.extend_from_slice(payload);
        bytes
    }

    fn resum(bytes: &mut [u8]) {
        bytes[10..12].fill(0);
        let sum = Sum::ZERO.bytes(&bytes[..HEADER]).checksum();
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    #[test]
    fn each_wrong_length_has_its_name() {
        let good = packet(Emit::default(), b"12345678");
        assert!(parse(&good).is_ok());
        assert_eq!(parse(&good[..19]), Err(ParseError::Ipv4Truncated));
        assert_eq!(parse(&good[..27]), Err(ParseError::Ipv4TotalLength));
        for (at, byte, fault) in [
            (0, 0x65, ParseError::Ipv4Version),
            (0, 0x44, ParseError::Ipv4HeaderLength),
            (0, 0x4f, ParseError::Ipv4HeaderLength),
            (3, 19, ParseError::Ipv4TotalLength),
            (8, 1, ParseError::Ipv4Checksum),
        ] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(parse(&bad), Err(fault), "byte {at} = {byte:#x}");
        }
    }

    #[test]
    fn a_fragment_must_be_whole_units_and_fit() {
        let odd = packet(Emit { more_fragments: true, ..Emit::default() }, b"1234567");
        assert_eq!(parse(&odd), Err(ParseError::Ipv4Fragment));
        let beyond = packet(Emit { offset: 65528, ..Emit::default() }, b"12345678");
        assert_eq!(parse(&beyond), Err(ParseError::Ipv4Fragment));
        let empty = packet(Emit { more_fragments: true, ..Emit::default() }, b"");
        assert_eq!(parse(&empty), Err(ParseError::Ipv4Fragment));
    }

    // RFC 9293 MUST-50.
    #[test]
    fn options_are_skipped_and_padding_is_cut() {
        let mut bytes = packet(Emit::default(), b"\x01\x01\x01\x00payload??");
        bytes[0] = 0x46;
        bytes[3] -= 2;
        resum_long(&mut bytes);
        let packet = parse(&bytes).unwrap();
        assert_eq!((packet.options, packet.payload), (&b"\x01\x01\x01\x00"[..], &b"payload"[..]));
    }

    fn resum_long(bytes: &mut [u8]) {
        bytes[10..12].fill(0);
        let sum = Sum::ZERO.bytes(&bytes[..24]).checksum();
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    proptest! {
        #[test]
        fn written_and_read_back(tos: u8, identification: u16, dont_fragment: bool, ttl: u8, protocol: u8,
            source: [u8; 4], destination: [u8; 4], units in 0u16..100, more_fragments: bool) {
            let emit = Emit { tos, identification, dont_fragment, ttl, protocol, source: source.into(),
                destination: destination.into(), payload_len: 8, offset: units * 8, more_fragments };
            let bytes = packet(emit, b"12345678");
            let read = parse(&bytes).unwrap();
            let header = read.header;
            let again = Emit { tos: header.tos, identification: header.identification(),
                dont_fragment: header.dont_fragment(), ttl: header.ttl, protocol: header.protocol,
                source: header.source(), destination: header.destination(),
                payload_len: read.payload.len() as u16, offset: header.fragment_offset() as u16,
                more_fragments: header.more_fragments() };
            prop_assert_eq!(again, emit);
        }

        #[test]
        fn a_parsed_packet_lies_within_its_bytes(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), first: bool) {
            if first && bytes.len() >= HEADER { bytes[0] = 0x45; bytes[2] = 0; resum(&mut bytes); }
            if let Ok(packet) = parse(&bytes) {
                prop_assert!(packet.options.len() + packet.payload.len() + HEADER <= bytes.len());
            }
        }
    }

    // RFC 791 §3.2.
    #[test]
    fn the_longest_datagram_has_room_for_its_header() {
        let last = |data: &[u8]| packet(Emit { offset: 65_512, ..Emit::default() }, data);
        assert!(parse(&last(b"123")).is_ok());
        assert_eq!(parse(&last(b"1234")).err(), Some(ParseError::Ipv4Fragment));
    }
}
