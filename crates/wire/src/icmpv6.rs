//! ICMPv6: echo and errors (RFC 4443). Neighbour discovery, which it carries too, is
//! [`ndp`](crate::ndp)'s.
//! ```text
//!  0       1       2               4                               8
//! +-------+-------+---------------+-------------------------------+----------
//! | type  | code  |   checksum    | echo: identifier, sequence    | data, or
//! |       |       |               | too big: MTU; problem: pointer| the quoted packet
//! +-------+-------+---------------+-------------------------------+----------
//! ```
//! The checksum covers the pseudo-header (RFC 8200 §8.1). Types below 128 are errors, and no
//! error is ever answered with one.

use crate::checksum::{Accept, Sum, accepted};
use crate::ndp::REDIRECT;
use crate::{ParseError, ipv4, ipv6, put, split};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, network_endian::U16, network_endian::U32,
};

/// Bytes of the header.
pub const HEADER: usize = 8;
/// Where the checksum stands in the header.
pub const CHECKSUM: usize = 2;
/// Bytes behind the quoted packet's headers that an error must carry for us: the ports, and
/// TCP's sequence number.
pub const QUOTE: usize = 8;
/// The longest packet that carries an error (RFC 4443 §2.4 c).
pub const LONGEST: usize = ipv6::MIN_MTU as usize;

/// The first type that is not an error.
const FIRST_INFORMATION: u8 = 128;
const UNREACHABLE: u8 = 1;
const TOO_BIG: u8 = 2;
const EXCEEDED: u8 = 3;
const PROBLEM: u8 = 4;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    kind: u8,
    code: u8,
    checksum: U16,
    rest: U32,
}

/// Why a destination cannot be reached (RFC 4443 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No route (code 0).
    Route,
    /// A filter, or the policy of a source address, refused it (codes 1, 5, 6).
    Prohibited,
    /// Beyond the scope of the source (code 2).
    Scope,
    /// The host does not answer (code 3).
    Address,
    /// Nobody listens at the port (code 4).
    Port,
    /// Another code.
    Other(u8),
}

impl Unreachable {
    fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Route,
            1 | 5 | 6 => Self::Prohibited,
            2 => Self::Scope,
            3 => Self::Address,
            4 => Self::Port,
            other => Self::Other(other),
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::Route => 0,
            Self::Prohibited => 1,
            Self::Scope => 2,
            Self::Address => 3,
            Self::Port => 4,
            Self::Other(code) => code,
        }
    }
}

/// An ICMPv6 message, as far as a host cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Asks for its data back.
    EchoRequest {
        /// The asker's identifier and sequence number.
        ticket: u32,
        /// What is to come back.
        data: &'a [u8],
    },
    /// The answer.
    EchoReply {
        /// The asker's identifier and sequence number.
        ticket: u32,
        /// What came back.
        data: &'a [u8],
    },
    /// A packet of ours did not arrive.
    Unreachable {
        /// Why.
        reason: Unreachable,
        /// The head of that packet.
        quote: Quote<'a>,
    },
    /// A packet of ours was too long for a link on its way (RFC 8201).
    TooBig {
        /// The MTU of that link, in bytes.
        mtu: u32,
        /// The head of that packet.
        quote: Quote<'a>,
    },
    /// A packet of ours ran out of hops, or its fragments out of time.
    Exceeded {
        /// The head of that packet.
        quote: Quote<'a>,
    },
    /// A packet of ours was not understood.
    Problem {
        /// 1: the protocol is not known there.
        code: u8,
        /// The head of that packet.
        quote: Quote<'a>,
    },
    /// Another type, or neighbour discovery.
    Other {
        /// Its type.
        kind: u8,
    },
}

/// The head of the packet an error is about, cut short but with at least [`QUOTE`] bytes
/// behind its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote<'a> {
    /// Its fixed header.
    pub header: &'a ipv6::Header,
    /// What it carried.
    pub protocol: u8,
    /// The first bytes of its payload.
    pub payload: &'a [u8; QUOTE],
    /// What is quoted behind them.
    pub rest: &'a [u8],
}

impl Quote<'_> {
    /// The source and destination port, when the quoted packet is TCP's or UDP's.
    pub fn ports(&self) -> Option<(u16, u16)> {
        let [a, b, c, d, ..] = *self.payload;
        matches!(self.protocol, ipv4::TCP | ipv4::UDP)
            .then_some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    /// Whether the quoted packet is an echo reply.
    pub fn is_echo_reply(&self) -> bool {
        self.protocol == ipv6::ICMP && self.payload[0] == ECHO_REPLY
    }

    /// TCP's sequence number, by which a stale or forged error is told (RFC 5927 §4).
    pub fn sequence(&self) -> u32 {
        let [.., a, b, c, d] = *self.payload;
        u32::from_be_bytes([a, b, c, d])
    }
}

/// Whether no error may be sent about a message of this type: it is an error itself, or a redirect (RFC 4443 §2.4 e.1
/// and e.2).
pub const fn forbids_errors(kind: u8) -> bool {
    kind < FIRST_INFORMATION || kind == REDIRECT
}

/// The message in `bytes`, its checksum checked. `pseudo` is the pseudo-header's sum.
pub fn parse(bytes: &[u8], accept: Accept, pseudo: Sum) -> Result<Message<'_>, ParseError> {
    let (raw, data) = split::<Raw>(bytes, ParseError::IcmpTruncated)?;
    if !accepted(pseudo, bytes, raw.checksum.get(), accept) {
        return Err(ParseError::IcmpChecksum);
    }
    let word = raw.rest.get();
    Ok(match raw.kind {
        ECHO_REQUEST => Message::EchoRequest { ticket: word, data },
        ECHO_REPLY => Message::EchoReply { ticket: word, data },
        UNREACHABLE => Message::Unreachable { reason: Unreachable::from_code(raw.code), quote: quote(data)? },
        TOO_BIG => Message::TooBig { mtu: word, quote: quote(data)? },
        EXCEEDED => Message::Exceeded { quote: quote(data)? },
        PROBLEM => Message::Problem { code: raw.code, quote: quote(data)? },
        kind => Message::Other { kind },
    })
}

fn quote(data: &[u8]) -> Result<Quote<'_>, ParseError> {
    let (header, protocol, payload) = ipv6::parse_quoted(data).map_err(|_| ParseError::IcmpQuote)?;
    let (payload, rest) = payload.split_first_chunk().ok_or(ParseError::IcmpQuote)?;
    Ok(Quote { header, protocol, payload, rest })
}

/// Turns the echo request in `bytes` into its reply, in place; the checksum is left zero, to be
/// completed.
pub fn make_reply(bytes: &mut [u8]) {
    bytes[0] = ECHO_REPLY;
    bytes[CHECKSUM..CHECKSUM + 2].fill(0);
}

/// Writes an echo request's header, its checksum zero, to the front of `bytes`.
pub fn emit_echo_request(ticket: u32, bytes: &mut [u8]) {
    emit(ECHO_REQUEST, 0, ticket, bytes);
}

/// An error that we send: what stands in front of the quoted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Its destination cannot be reached.
    Unreachable(Unreachable),
    /// It is longer than the next link takes, bytes.
    TooBig(u32),
    /// Its other fragments did not come in time (RFC 8200 §4.5).
    ReassemblyExceeded,
    /// It cannot be understood: code and pointer (RFC 4443 §3.4).
    Problem(u8, u32),
}

impl Error {
    /// Writes the header, its checksum zero, before the quoted packet at `bytes[HEADER..]`.
    pub fn emit(self, bytes: &mut [u8]) {
        let (kind, code, word) = match self {
            Self::Unreachable(reason) => (UNREACHABLE, reason.code(), 0),
            Self::TooBig(mtu) => (TOO_BIG, 0, mtu),
            Self::ReassemblyExceeded => (EXCEEDED, 1, 0),
            Self::Problem(code, pointer) => (PROBLEM, code, pointer),
        };
        emit(kind, code, word, bytes);
    }
}

fn emit(kind: u8, code: u8, word: u32, bytes: &mut [u8]) {
    put(&Raw { kind, code, checksum: U16::new(0), rest: U32::new(word) }, bytes);
}

/// Completes the checksum of the whole message in `bytes`, at least [`HEADER`] bytes long, whose
/// field is zero. `pseudo` is the pseudo-header's sum.
pub fn seal(pseudo: Sum, bytes: &mut [u8]) {
    let checksum = pseudo.bytes(bytes).checksum();
    bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use crate::checksum::pseudo6;
    use core::net::Ipv6Addr;
    use proptest::prelude::*;
    use std::vec::Vec;

    const A: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

    fn sum(bytes: &[u8]) -> Sum {
        pseudo6(A, B, ipv6::ICMP, bytes.len() as u16)
    }

    fn read(bytes: &[u8]) -> Result<Message<'_>, ParseError> {
        parse(bytes, Accept::Full, sum(bytes))
    }

    /// An error about a UDP packet of ours from port 4000 to port 53.
    fn error(error: Error) -> Vec<u8> {
        let mut bytes = std::vec![0; HEADER + ipv6::HEADER];
        let quoted =
            ipv6::Emit { next_header: 17, source: B, destination: A, payload_len: 99, ..Default::default() };
        quoted.emit(&mut bytes[HEADER..]);
        bytes.extend_from_slice(&[0x0f, 0xa0, 0, 53, 0, 99, 0, 0]);
        error.emit(&mut bytes);
        seal(sum(&bytes), &mut bytes);
        bytes
    }

    #[test]
    fn an_error_names_the_flow_it_is_about() {
        let bytes = error(Error::TooBig(1400));
        let Ok(Message::TooBig { mtu: 1400, quote }) = read(&bytes) else { panic!("{:?}", read(&bytes)) };
        assert_eq!((quote.ports(), quote.header.source()), (Some((4000, 53)), B));
        assert!(matches!(
            read(&error(Error::Unreachable(Unreachable::Port))),
            Ok(Message::Unreachable { reason: Unreachable::Port, .. })
        ));
        assert!(matches!(read(&error(Error::Problem(1, 40))), Ok(Message::Problem { code: 1, .. })));
        assert!(matches!(read(&error(Error::ReassemblyExceeded)), Ok(Message::Exceeded { .. })));
    }

    #[test]
    fn a_short_quote_and_a_wrong_sum_are_refused() {
        let whole = error(Error::TooBig(1400));
        let mut short = whole[..whole.len() - 1].to_vec();
        short[CHECKSUM..CHECKSUM + 2].fill(0);
        seal(sum(&short), &mut short);
        assert_eq!(read(&short), Err(ParseError::IcmpQuote));
        assert_eq!(parse(&whole, Accept::Full, Sum::ZERO), Err(ParseError::IcmpChecksum));
        assert_eq!(read(&whole[..7]), Err(ParseError::IcmpTruncated));
    }

    #[test]
    fn an_echo_comes_back_with_its_data() {
        let mut bytes = std::vec![0; HEADER];
        bytes.extend_from_slice(b"are you there?");
        emit_echo_request(0x004d_0001, &mut bytes);
        make_reply(&mut bytes);
        seal(sum(&bytes), &mut bytes);
        assert_eq!(read(&bytes), Ok(Message::EchoReply { ticket: 0x004d_0001, data: b"are you there?" }));
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 0u8..6) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = [1, 2, 3, 4, 128, 135][usize::from(kind)];
            }
            let _ = parse(&bytes, Accept::Verified, Sum::ZERO);
        }
    }
}
