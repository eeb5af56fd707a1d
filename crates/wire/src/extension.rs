//! The extension headers of IPv6 (RFC 8200 §4): hop-by-hop and destination options, routing,
//! fragment. The walk is bounded in headers and never leaves the packet; whatever a host must
//! refuse it refuses with what the sender is to be told (RFC 4443 §3.4). No header is obeyed:
//! silk is a host and nobody's waypoint, so a routing header, of whichever type (RFC 5095), is ignored
//! when there is nothing left to visit, and else refused.
//! ```text
//!  0               1               2               3               4
//! +---------------+---------------+-------------------------------+
//! |  next header  | length/8 - 1  | options, or routing type, segments left
//! +---------------+---------------+-------------------------+---+-+
//! |  next header  |   reserved    |   fragment offset / 8   |   |M|  identification (4 bytes)
//! +---------------+---------------+-------------------------+---+-+
//! ```

use crate::ParseError;
use crate::ipv6::header::{HEADER, MAX_PAYLOAD};

/// Next header: hop-by-hop options.
pub const HOP_BY_HOP: u8 = 0;
/// Next header: routing.
pub const ROUTING: u8 = 43;
/// Next header: fragment.
pub const FRAGMENT: u8 = 44;
/// Next header: destination options.
pub const DESTINATION: u8 = 60;
/// Bytes of a fragment header.
pub const FRAGMENT_HEADER: usize = 8;

/// The most extension headers of one packet. Nobody needs more than RFC 8200 §4.1 lists; longer
/// chains are made to hide something or to cost something (RFC 9288 §3).
pub const MOST: usize = 4;
/// Options of one header that are looked at (RFC 8504 §5.3 leaves a host that bound).
const MOST_OPTIONS: usize = 32;

/// What the sender is told about a packet that was refused: an ICMPv6 parameter problem
/// (RFC 4443 §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// 0: a wrong field, 1: an unknown next header, 2: an unknown option, 3: a first fragment without all headers.
    pub code: u8,
    /// Where in the packet, in bytes from its start.
    pub pointer: u32,
    /// Told even when the packet was sent to a group (an option that asks for it).
    pub even_to_group: bool,
}

/// Why a packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The fault.
    pub fault: ParseError,
    /// What its sender is told, if anything.
    pub problem: Option<Problem>,
}

impl From<ParseError> for Refused {
    fn from(fault: ParseError) -> Self {
        Self { fault, problem: None }
    }
}

impl Refused {
    fn told(fault: ParseError, code: u8, pointer: usize) -> Self {
        let problem = Problem { code, pointer: pointer as u32, even_to_group: false };
        Self { fault, problem: Some(problem) }
    }
}

/// A piece of a datagram (RFC 8200 §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Ties the fragments of one datagram together.
    pub identification: u32,
    /// Where this fragment's payload lies in its datagram's, in bytes.
    pub offset: usize,
    /// Not the last one.
    pub more: bool,
}

impl Fragment {
    /// A fragment that more follow carries whole units of 8 bytes, at least one, and none
    /// reaches beyond the longest datagram. `headers` is where its payload begins.
    pub(crate) fn check(&self, payload: usize, headers: usize) -> Result<(), Refused> {
        // The payload length's place in the packet, and that of the fragment offset.
        let (length_field, offset_field) = (4, headers - 6);
        if self.more && (!payload.is_multiple_of(8) || payload == 0) {
            return Err(Refused::told(ParseError::Ipv6Fragment, 0, length_field));
        }
        if self.offset + payload > MAX_PAYLOAD {
            return Err(Refused::told(ParseError::Ipv6Fragment, 0, offset_field));
        }
        Ok(())
    }

    /// Writes the header, `next_header` being what the whole datagram carries, to the front of
    /// `bytes`, which must have room for [`FRAGMENT_HEADER`] bytes.
    pub fn emit(&self, next_header: u8, bytes: &mut [u8]) {
        let offset = self.offset as u16 & !7 | u16::from(self.more);
        bytes[0] = next_header;
        bytes[1] = 0;
        bytes[2..4].copy_from_slice(&offset.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.identification.to_be_bytes());
    }
}

/// The extension headers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// What follows them.
    pub protocol: u8,
    /// Where in the packet the byte stands that says so.
    pub named_at: usize,
    /// Their bytes.
    pub length: usize,
    /// The packet is one of several fragments; what follows is then a piece of the payload.
    pub fragment: Option<Fragment>,
}

/// Walks the extension headers in `bytes`, which follow the fixed header; `first` is the kind of
/// the first. Behind a fragment header that is not atomic there is nothing to walk.
pub fn walk(first: u8, bytes: &[u8]) -> Result<Chain, Refused> {
    let mut chain = Chain { protocol: first, named_at: NEXT_HEADER, length: 0, fragment: None };
    for nth in 0..=MOST {
        let at = chain.length;
        let known = matches!(chain.protocol, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION);
        if !known {
            return Ok(chain);
        }
        if nth == MOST {
            break;
        }
        // Hop-by-hop options stand right behind the fixed header or nowhere (RFC 8200 §4.1). Wrong is the byte that
        // names them (§4).
        if chain.protocol == HOP_BY_HOP && nth > 0 {
            return Err(Refused::told(ParseError::Ipv6Extension, 1, chain.named_at));
        }
        let header = one(chain.protocol, bytes, at)?;
        chain.named_at = place(at);
        if chain.protocol == FRAGMENT {
            let [next, _, high, low, identification @ ..] =
                *header.first_chunk::<8>().ok_or(ParseError::Ipv6Extension)?;
            let word = u16::from_be_bytes([high, low]);
            let fragment = Fragment {
                identification: u32::from_be_bytes(identification),
                offset: usize::from(word & !7),
                more: word & 1 != 0,
            };
            chain.protocol = next;
            chain.length += FRAGMENT_HEADER;
            if fragment.offset > 0 || fragment.more {
                chain.fragment = Some(fragment);
                return Ok(chain);
            }
            continue;
        }
        check(chain.protocol, header, at)?;
        chain.protocol = header[0];
        chain.length += header.len();
    }
    Err(ParseError::Ipv6Extension.into())
}

/// Where the fixed header says what follows it.
const NEXT_HEADER: usize = 6;

/// Where a byte of the extension headers stands in the packet.
fn place(at: usize) -> usize {
    HEADER + at
}

/// The header of `kind` at `at`, as long as it says: at least 8 bytes.
fn one(kind: u8, bytes: &[u8], at: usize) -> Result<&[u8], ParseError> {
    let rest = bytes.get(at..).ok_or(ParseError::Ipv6Extension)?;
    let length = match (kind, rest) {
        (FRAGMENT, _) => FRAGMENT_HEADER,
        (_, [_, length, ..]) => (usize::from(*length) + 1) * 8,
        _ => return Err(ParseError::Ipv6Extension),
    };
    rest.get(..length).ok_or(ParseError::Ipv6Extension)
}

fn check(kind: u8, header: &[u8], at: usize) -> Result<(), Refused> {
    if kind == ROUTING {
        // No type is known here, nor is type 0 (RFC 5095 §3). With no segments left the header is
        // ignored; with some we would have to forward (RFC 8200 §4.4).
        let left = header[3];
        return if left == 0 {
            Ok(())
        } else {
            Err(Refused::told(ParseError::Ipv6Routing, 0, place(at + 2)))
        };
    }
    options(&header[2..], at + 2)
}

/// Looks at the options of a header: what is unknown says itself what is to be done (RFC 8200
/// §4.2). `at` is where they begin.
fn options(mut bytes: &[u8], mut at: usize) -> Result<(), Refused> {
    for _ in 0..MOST_OPTIONS {
        let (kind, length) = match *bytes {
            [] => return Ok(()),
            [0, ..] => (0, 1),
            [kind, length, ..] => (kind, usize::from(length) + 2),
            [_] => return Err(ParseError::Ipv6Option.into()),
        };
        if bytes.len() < length {
            return Err(ParseError::Ipv6Option.into());
        }
        // Pad1 and PadN are known; of the others those may be skipped that say so.
        if kind > 1 && kind >> 6 != 0 {
            let mut refused = Refused::told(ParseError::Ipv6Option, 2, place(at));
            match kind >> 6 {
                1 => refused.problem = None,
                2 => {
                    refused.problem =
                        refused.problem.map(|problem| Problem { even_to_group: true, ..problem })
                }
                _ => {}
            }
            return Err(refused);
        }
        bytes = &bytes[length..];
        at += length;
    }
    if bytes.is_empty() { Ok(()) } else { Err(ParseError::Ipv6Option.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    fn padded(next: u8, options: &[u8]) -> Vec<u8> {
        let mut bytes = std::vec![next, 0];
        bytes.extend_from_slice(options);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes[1] = (bytes.len() / 8 - 1) as u8;
        bytes
    }

    fn problem(first: u8, bytes: &[u8]) -> Option<(u8, u32, bool)> {
        walk(first, bytes).unwrap_err().problem.map(|p| (p.code, p.pointer, p.even_to_group))
    }

    #[test]
    fn options_are_walked_to_what_follows() {
        let bytes =
            [padded(DESTINATION, &[1, 2, 0, 0]), padded(6, &[0x1e, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9])].concat();
        assert_eq!(
            walk(HOP_BY_HOP, &bytes),
            Ok(Chain { protocol: 6, named_at: 48, length: 24, fragment: None })
        );
    }

    #[test]
    fn an_unknown_option_says_itself_what_is_done() {
        let with = |kind: u8| padded(17, &[1, 0, kind, 0]);
        assert!(walk(DESTINATION, &with(0x3e)).is_ok(), "skipped");
        assert_eq!(problem(DESTINATION, &with(0x41)), None, "dropped in silence");
        assert_eq!(problem(DESTINATION, &with(0x81)), Some((2, 44, true)));
        assert_eq!(problem(DESTINATION, &with(0xc1)), Some((2, 44, false)));
    }

    #[test]
    fn a_routing_header_may_lead_here_and_no_further() {
        assert!(walk(ROUTING, &[6, 0, 4, 0, 0, 0, 0, 0]).is_ok());
        assert_eq!(problem(ROUTING, &[6, 0, 4, 1, 0, 0, 0, 0]), Some((0, 42, false)));
        // RFC 5095 §3: type 0 is one that nobody knows.
        assert!(walk(ROUTING, &[6, 0, 0, 0, 0, 0, 0, 0]).is_ok());
        assert_eq!(problem(ROUTING, &[6, 2, 0, 1, 0, 0, 0, 0]), None, "cut short");
        assert_eq!(problem(ROUTING, &[&[6, 2, 0, 1][..], &[0; 20]].concat()), Some((0, 42, false)));
    }

    // RFC 8200 §4: the pointer is the offset of the value that is not recognized.
    #[test]
    fn hop_by_hop_options_stand_first() {
        let bytes = [padded(HOP_BY_HOP, &[]), padded(6, &[])].concat();
        assert_eq!(problem(DESTINATION, &bytes), Some((1, 40, false)));
        let bytes = [padded(DESTINATION, &[]), padded(HOP_BY_HOP, &[0; 8]), padded(6, &[])].concat();
        assert_eq!(problem(DESTINATION, &bytes), Some((1, 48, false)));
    }

    #[test]
    fn a_long_chain_and_one_cut_short_are_refused() {
        let chain: Vec<u8> =
            [DESTINATION, DESTINATION, DESTINATION, 6].iter().flat_map(|next| padded(*next, &[])).collect();
        assert_eq!(walk(DESTINATION, &chain).map(|chain| chain.length), Ok(32));
        let longer = [padded(DESTINATION, &[]), chain.clone()].concat();
        assert_eq!(walk(DESTINATION, &longer), Err(ParseError::Ipv6Extension.into()));
        assert_eq!(walk(DESTINATION, &chain[..31]), Err(ParseError::Ipv6Extension.into()));
    }

    #[test]
    fn a_fragment_header_is_read_back_as_written() {
        let fragment = Fragment { identification: 77, offset: 1232, more: true };
        let mut bytes = [0; FRAGMENT_HEADER];
        fragment.emit(17, &mut bytes);
        assert_eq!(
            walk(FRAGMENT, &bytes),
            Ok(Chain { protocol: 17, named_at: 40, length: 8, fragment: Some(fragment) })
        );
    }

    #[test]
    fn more_options_than_a_host_looks_at_are_refused() {
        let many = padded(6, &[0x1e, 0].repeat(MOST_OPTIONS + 1));
        assert_eq!(walk(DESTINATION, &many), Err(ParseError::Ipv6Option.into()));
    }
}
