//! ICMP: echo, destination unreachable with the next-hop MTU, time exceeded (RFC 792,
//! RFC 1191, RFC 1812).
//! ```text
//!  0       1       2               4                               8
//! +-------+-------+---------------+-------------------------------+----------
//! | type  | code  |   checksum    | echo: identifier, sequence    | data, or
//! |       |       |               | too big: 0, next-hop MTU      | the quoted packet
//! +-------+-------+---------------+-------------------------------+----------
//! ```

use crate::checksum::Sum;
use crate::ipv4;
use crate::{ParseError, put, split};
use core::net::Ipv4Addr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, network_endian::U16};

/// Bytes of the header.
pub const HEADER: usize = 8;
/// Bytes of a quoted packet's payload that an error carries at least (RFC 792).
pub const QUOTE: usize = 8;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    kind: u8,
    code: u8,
    checksum: U16,
    first: U16,
    second: U16,
}

/// Why a destination cannot be reached (RFC 792, RFC 1122 §3.2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No route to the network (code 0, and 6, 11).
    Network,
    /// The host does not answer (code 1, and 7, 8, 12).
    Host,
    /// The host does not know the protocol (code 2).
    Protocol,
    /// Nobody listens at the port (code 3).
    Port,
    /// Too big and not to be fragmented: the MTU of the next hop, or 0 from a router older
    /// than RFC 1191 (code 4).
    TooBig(u16),
    /// A filter refused it (codes 9, 10, 13).
    Prohibited,
    /// Another code.
    Other(u8),
}

impl Unreachable {
    fn from_code(code: u8, mtu: u16) -> Self {
        match code {
            0 | 6 | 11 => Self::Network,
            1 | 7 | 8 | 12 => Self::Host,
            2 => Self::Protocol,
            3 => Self::Port,
            4 => Self::TooBig(mtu),
            9 | 10 | 13 => Self::Prohibited,
            other => Self::Other(other),
        }
    }

    fn code(self) -> (u8, u16) {
        match self {
            Self::Network => (0, 0),
            Self::Host => (1, 0),
            Self::Protocol => (2, 0),
            Self::Port => (3, 0),
            Self::TooBig(mtu) => (4, mtu),
            Self::Prohibited => (13, 0),
            Self::Other(code) => (code, 0),
        }
    }
}

/// An ICMP message, as far as a host cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Asks for its data back (type 8).
    EchoRequest {
        /// The asker's identifier.
        identifier: u16,
        /// Its sequence number.
        sequence: u16,
        /// What is to come back.
        data: &'a [u8],
    },
    /// The answer (type 0).
    EchoReply {
        /// The asker's identifier.
        identifier: u16,
        /// Its sequence number.
        sequence: u16,
        /// What came back.
        data: &'a [u8],
    },
    /// A packet of ours did not arrive (type 3).
    Unreachable {
        /// Why.
        reason: Unreachable,
        /// The head of that packet.
        quote: Quote<'a>,
    },
    /// A packet of ours ran out of hops, or its fragments out of time (type 11).
    Exceeded {
        /// The head of that packet.
        quote: Quote<'a>,
    },
    /// The header of a packet of ours was not understood (type 12).
    Problem {
        /// The head of that packet.
        quote: Quote<'a>,
    },
    /// A router knows a better first hop (type 5).
    Redirect {
        /// Whom to give such packets to.
        hop: Ipv4Addr,
        /// The head of the packet that it was given.
        quote: Quote<'a>,
    },
    /// Another type: not for a host like us to answer.
    Other {
        /// Its type.
        kind: u8,
    },
}

/// The head of the packet an error is about, cut short but with at least [`QUOTE`] bytes
/// behind its IPv4 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote<'a> {
    /// Its header.
    pub header: &'a ipv4::Header,
    /// The first bytes of its payload: the ports, and for TCP the sequence number.
    pub payload: &'a [u8; QUOTE],
    /// What is quoted behind them.
    pub rest: &'a [u8],
}

impl Quote<'_> {
    /// The source and destination port, when the quoted packet is a first fragment of TCP or
    /// UDP.
    pub fn ports(&self) -> Option<(u16, u16)> {
        let [a, b, c, d, ..] = *self.payload;
        let known = matches!(self.header.protocol, ipv4::TCP | ipv4::UDP);
        (known && self.header.fragment_offset() == 0)
            .then_some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    /// TCP's sequence number, by which a stale or forged error is told (RFC 5927 §4).
    pub fn sequence(&self) -> u32 {
        let [.., a, b, c, d] = *self.payload;
        u32::from_be_bytes([a, b, c, d])
    }
}

/// The message in `bytes`, its checksum checked.
// RFC 9293 MUST-55.
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, ParseError> {
    let (raw, data) = split::<Raw>(bytes, ParseError::IcmpTruncated)?;
    if Sum::ZERO.bytes(bytes).folded() != 0xffff {
        return Err(ParseError::IcmpChecksum);
    }
    let (identifier, sequence) = (raw.first.get(), raw.second.get());
    Ok(match raw.kind {
        0 => Message::EchoReply { identifier, sequence, data },
        8 => Message::EchoRequest { identifier, sequence, data },
        3 => Message::Unreachable { reason: Unreachable::from_code(raw.code, sequence), quote: quote(data)? },
        5 => Message::Redirect {
            hop: Ipv4Addr::from_bits(u32::from(identifier) << 16 | u32::from(sequence)),
            quote: quote(data)?,
        },
        11 => Message::Exceeded { quote: quote(data)? },
        12 => Message::Problem { quote: quote(data)? },
        kind => Message::Other { kind },
    })
}

fn quote(data: &[u8]) -> Result<Quote<'_>, ParseError> {
    let packet = ipv4::parse_quoted(data).map_err(|_| ParseError::IcmpQuote)?;
    let (payload, rest) = packet.payload.split_first_chunk().ok_or(ParseError::IcmpQuote)?;
    Ok(Quote { header: packet.header, payload, rest })
}

/// Turns the echo request in `bytes` into its reply, in place.
pub fn make_reply(bytes: &mut [u8]) {
    bytes[0] = 0;
    seal(bytes);
}

/// Writes an echo request's header before the data that already stands at `bytes[HEADER..]`.
pub fn emit_echo_request(identifier: u16, sequence: u16, bytes: &mut [u8]) {
    emit(8, 0, identifier, sequence, bytes);
}

/// Writes an unreachable's header before the quoted packet that already stands at
/// `bytes[HEADER..]`.
pub fn emit_unreachable(reason: Unreachable, bytes: &mut [u8]) {
    let (code, mtu) = reason.code();
    emit(3, code, 0, mtu, bytes);
}

/// Writes the header of "reassembly time exceeded" (type 11, code 1) before the quoted packet
/// that already stands at `bytes[HEADER..]`.
pub fn emit_reassembly_exceeded(bytes: &mut [u8]) {
    emit(11, 1, 0, 0, bytes);
}

fn emit(kind: u8, code: u8, first: u16, second: u16, bytes: &mut [u8]) {
    let raw = Raw { kind, code, checksum: U16::new(0), first: U16::new(first), second: U16::new(second) };
    put(&raw, bytes);
    seal(bytes);
}

fn seal(bytes: &mut [u8]) {
    bytes[2..4].fill(0);
    let checksum = Sum::ZERO.bytes(bytes).checksum();
    bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn quoted() -> Vec<u8> {
        let mut bytes = std::vec![0; HEADER + ipv4::HEADER];
        let emit = ipv4::Emit {
            protocol: ipv4::TCP,
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
            payload_len: 1480,
            ..Default::default()
        };
        emit.emit(&mut bytes[HEADER..]);
        bytes.extend_from_slice(&[0, 80, 0x30, 0x39, 1, 2, 3, 4]);
        bytes
    }

    #[test]
    fn too_big_names_the_mtu_and_the_flow() {
        let mut bytes = quoted();
        emit_unreachable(Unreachable::TooBig(1400), &mut bytes);
        let Ok(Message::Unreachable { reason: Unreachable::TooBig(1400), quote }) = parse(&bytes) else {
            panic!("not read back: {:?}", parse(&bytes));
        };
        assert_eq!((quote.ports(), quote.sequence()), (Some((80, 12345)), 0x0102_0304));
        assert_eq!(quote.header.destination(), Ipv4Addr::new(10, 0, 0, 2));
    }

    #[test]
    fn an_error_that_quotes_too_little_is_refused() {
        let mut bytes = quoted();
        bytes.pop();
        emit_unreachable(Unreachable::Port, &mut bytes);
        assert_eq!(parse(&bytes), Err(ParseError::IcmpQuote));
    }

    #[test]
    fn every_reason_comes_back() {
        use Unreachable::*;
        for reason in [Network, Host, Protocol, Port, TooBig(576), Prohibited, Other(5)] {
            let mut bytes = quoted();
            emit_unreachable(reason, &mut bytes);
            let read = parse(&bytes);
            assert!(matches!(read, Ok(Message::Unreachable { reason: r, .. }) if r == reason), "{read:?}");
        }
    }

    proptest! {
        #[test]
        fn an_echo_comes_back(identifier: u16, sequence: u16, data in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut bytes = std::vec![0; HEADER];
            bytes.extend_from_slice(&data);
            emit_echo_request(identifier, sequence, &mut bytes);
            prop_assert_eq!(parse(&bytes), Ok(Message::EchoRequest { identifier, sequence, data: &data }));
            make_reply(&mut bytes);
            prop_assert_eq!(parse(&bytes), Ok(Message::EchoReply { identifier, sequence, data: &data }));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), kind in 0u8..13) {
            if bytes.len() >= HEADER { bytes[0] = kind; seal(&mut bytes); }
            prop_assert_eq!(parse(&bytes) == Err(ParseError::IcmpTruncated), bytes.len() < HEADER);
        }
    }

    // RFC 792; RFC 1122 §3.2.2.1.
    #[test]
    fn every_code_has_its_reason() {
        use Unreachable::{Host, Network, Other, Prohibited};
        let reason = |code| {
            let mut bytes = quoted();
            emit(3, code, 0, 0, &mut bytes);
            match parse(&bytes) {
                Ok(Message::Unreachable { reason, .. }) => reason,
                read => panic!("{code}: {read:?}"),
            }
        };
        assert_eq!([0, 6, 11].map(reason), [Network; 3]);
        assert_eq!([1, 7, 8, 12].map(reason), [Host; 4]);
        assert_eq!([9, 10, 13].map(reason), [Prohibited; 3]);
        assert_eq!([5, 14].map(reason), [Other(5), Other(14)]);
    }
}
