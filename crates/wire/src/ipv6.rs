//! IPv6 packets: the header (RFC 8200 §3) and what a packet carries behind its extension headers, which
//! [`extension`](crate::extension) walks. Jumbograms (RFC 2675) are not
//! for this host: no link of ours carries them.

pub(crate) mod header;

pub use header::{Emit, HEADER, Header, MAX_PAYLOAD};

use crate::extension::{Chain, Fragment, Refused, walk};
use crate::{ParseError, split};
use core::net::Ipv6Addr;

/// The least MTU of a link (RFC 8200 §5).
pub const MIN_MTU: u16 = 1280;
/// Next header: ICMPv6 (RFC 4443).
pub const ICMP: u8 = 58;
/// The hop limit of packets that never crossed a router (RFC 4861 §3.1).
pub const NEVER_FORWARDED: u8 = 255;

/// A packet whose lengths and extension headers have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The header.
    pub header: &'a Header,
    /// Bytes of the header and all extension headers that were walked.
    pub headers_len: usize,
    /// What the payload is: TCP, UDP, [`ICMP`], or whatever this host does not know.
    pub protocol: u8,
    /// Where in the packet the byte stands that says so.
    pub named_at: usize,
    /// Where the payload lies in its datagram's, when the packet is a real fragment. Atomic
    /// fragments (RFC 6946) are whole packets.
    pub fragment: Option<Fragment>,
    /// What the packet carries, without the padding of the link.
    pub payload: &'a [u8],
}

/// The header and the bytes behind it, as many as it says.
fn split_packet(bytes: &[u8]) -> Result<(&Header, &[u8]), ParseError> {
    let (header, rest) = split::<Header>(bytes, ParseError::Ipv6Truncated)?;
    if header.version_class_flow.get() >> 28 != 6 {
        return Err(ParseError::Ipv6Version);
    }
    let rest = rest.get(..header.payload_len()).ok_or(ParseError::Ipv6Length)?;
    Ok((header, rest))
}

/// The packet at the front of `bytes`, its lengths and extension headers checked.
pub fn parse(bytes: &[u8]) -> Result<Packet<'_>, Refused> {
    let (header, rest) = split_packet(bytes)?;
    let Chain { protocol, named_at, length, fragment } = walk(header.next_header, rest)?;
    let payload = rest.get(length..).ok_or(ParseError::Ipv6Extension)?;
    if let Some(fragment) = fragment {
        fragment.check(payload.len(), HEADER + length)?;
    }
    Ok(Packet { header, headers_len: HEADER + length, protocol, named_at, fragment, payload })
}

/// The header at the front of `bytes` alone, the rest not looked at.
pub fn parse_header(bytes: &[u8]) -> Result<&Header, ParseError> {
    Ok(split_packet(bytes)?.0)
}

/// The packet that an ICMPv6 error quotes: cut short, so its length is not asked for. The
/// protocol and what is there of the payload.
pub fn parse_quoted(bytes: &[u8]) -> Result<(&Header, u8, &[u8]), ParseError> {
    let (header, rest) = split::<Header>(bytes, ParseError::Ipv6Truncated)?;
    if header.version_class_flow.get() >> 28 != 6 {
        return Err(ParseError::Ipv6Version);
    }
    let chain = walk(header.next_header, rest).map_err(|_| ParseError::IcmpQuote)?;
    if chain.fragment.is_some_and(|fragment| fragment.offset > 0) {
        return Err(ParseError::IcmpQuote);
    }
    let payload = rest.get(chain.length..).ok_or(ParseError::IcmpQuote)?;
    Ok((header, chain.protocol, payload))
}

/// Writes the header at the front of `bytes` as that of a whole datagram of this class and of `payload_len`
/// bytes of `protocol` without extension headers: what reassembly hands on (RFC 8200 §4.5; what
/// stood in front of the fragment header has been looked at with each fragment). Room for
/// [`HEADER`] bytes.
pub fn emit_reassembled(first: &Header, traffic_class: u8, protocol: u8, payload_len: u16, bytes: &mut [u8]) {
    let whole = Emit {
        traffic_class,
        flow_label: first.flow_label(),
        next_header: protocol,
        hop_limit: first.hop_limit,
        source: first.source(),
        destination: first.destination(),
        payload_len,
    };
    whole.emit(bytes);
}

/// The group a neighbour is asked through (RFC 4291 §2.7.1): `ff02::1:ffXX:XXXX`.
pub const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | a as u16, (b as u16) << 8 | c as u16)
}

/// The Ethernet group of a multicast destination (RFC 2464 §7).
pub const fn group(destination: Ipv6Addr) -> [u8; 6] {
    let [.., a, b, c, d] = destination.octets();
    [0x33, 0x33, a, b, c, d]
}

/// The end of the addresses of the station with that Ethernet address (RFC 4291 App. A, RFC 2464 §4).
pub const fn station(mac: [u8; 6]) -> [u8; 8] {
    let [a, b, c, d, e, f] = mac;
    [a ^ 2, b, c, 0xff, 0xfe, d, e, f]
}

/// The link-local address that an Ethernet address makes (RFC 4862 §5.3, RFC 2464 §4 and §5).
pub const fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfe80 << 112 | u64::from_be_bytes(station(mac)) as u128)
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;
    use std::vec::Vec;

    const A: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

    fn packet(next_header: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = std::vec![0; HEADER];
        let payload_len = payload.len() as u16;
        Emit { next_header, source: A, destination: B, payload_len, ..Emit::default() }.emit(&mut bytes);
        bytes.extend_from_slice(payload);
        bytes
    }

    fn fault(bytes: &[u8]) -> Option<ParseError> {
        parse(bytes).err().map(|refused| refused.fault)
    }

    #[test]
    fn each_wrong_length_has_its_name() {
        let good = packet(17, b"12345678");
        assert!(parse(&good).is_ok());
        assert_eq!(fault(&good[..39]), Some(ParseError::Ipv6Truncated));
        assert_eq!(fault(&good[..47]), Some(ParseError::Ipv6Length));
        let mut other = good;
        other[0] = 0x45;
        assert_eq!(fault(&other), Some(ParseError::Ipv6Version));
    }

    #[test]
    fn padding_is_cut() {
        let mut bytes = packet(17, b"payload!");
        bytes.extend_from_slice(b"padding");
        assert_eq!(parse(&bytes).unwrap().payload, b"payload!");
    }

    #[test]
    fn an_atomic_fragment_is_a_whole_packet() {
        let read = packet(44, b"\x11\0\0\0abcdpayload!");
        let read = parse(&read).unwrap();
        assert_eq!((read.protocol, read.fragment, read.payload), (17, None, &b"payload!"[..]));
    }

    #[test]
    fn a_fragment_must_be_whole_units_and_fit() {
        let problem = |bytes: &[u8]| parse(bytes).unwrap_err().problem.map(|p| (p.code, p.pointer));
        let odd = packet(44, b"\x11\0\0\x01abcd1234567");
        assert_eq!((fault(&odd), problem(&odd)), (Some(ParseError::Ipv6Fragment), Some((0, 4))));
        let beyond = packet(44, b"\x11\0\xff\xf8abcd12345678");
        assert_eq!((fault(&beyond), problem(&beyond)), (Some(ParseError::Ipv6Fragment), Some((0, 42))));
        let first = packet(44, b"\x11\0\0\x01abcd12345678");
        let read = parse(&first).unwrap();
        let expected = Fragment { identification: 0x61626364, offset: 0, more: true };
        assert_eq!((read.protocol, read.fragment, read.headers_len), (17, Some(expected), 48));
    }

    #[test]
    fn groups_and_link_local_addresses_are_made_as_the_rfcs_say() {
        let address: Ipv6Addr = "2001:db8::1:800:200e:8c6c".parse().unwrap();
        assert_eq!(solicited_node(address), "ff02::1:ff0e:8c6c".parse::<Ipv6Addr>().unwrap());
        assert_eq!(group(solicited_node(address)), [0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c]);
        assert_eq!(link_local([2, 0, 0, 0, 0, 1]), "fe80::ff:fe00:1".parse::<Ipv6Addr>().unwrap());
    }

    proptest! {
        #[test]
        fn written_and_read_back(traffic_class: u8, flow_label in 0u32..1 << 20, hop_limit: u8, ends: [[u8; 16]; 2], payload in proptest::collection::vec(any::<u8>(), 0..64)) {
            let emit = Emit {
                traffic_class, flow_label, hop_limit, next_header: 6,
                source: ends[0].into(), destination: ends[1].into(), payload_len: payload.len() as u16,
            };
            let mut bytes = std::vec![0; HEADER];
            emit.emit(&mut bytes);
            bytes.extend_from_slice(&payload);
            let read = parse(&bytes).unwrap();
            let header = read.header;
            prop_assert_eq!((header.traffic_class(), header.flow_label(), header.hop_limit), (traffic_class, flow_label, hop_limit));
            prop_assert_eq!((header.source(), header.destination()), (emit.source, emit.destination));
            prop_assert_eq!((read.protocol, read.payload), (6, &payload[..]));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), next in 0u8..5, whole: bool) {
            if bytes.len() >= HEADER && whole {
                bytes[0] = 0x60;
                let length = (bytes.len() - HEADER) as u16;
                bytes[4..6].copy_from_slice(&length.to_be_bytes());
                bytes[6] = [0, 43, 44, 60, 17][usize::from(next)];
            }
            if let Ok(read) = parse(&bytes) {
                prop_assert!(read.headers_len + read.payload.len() <= bytes.len());
            }
            let _ = parse_quoted(&bytes);
        }
    }
}
