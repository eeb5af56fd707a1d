//! H.264 in RTP (RFC 6184), what the non-interleaved packetization mode allows: one NAL unit
//! as it is (§5.6), several in one packet (STAP-A, §5.7.1), a piece of one (FU-A, §5.8).
//! ```text
//!  0 1 2 3 4 5 6 7                     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5
//! +-+---+---------+  type 1..23: NAL  +-+---+---------+-+-+-+---------+--------
//! |F|NRI|  type   |  24: STAP-A       |F|NRI|   28    |S|E|0|  type   |  piece
//! +-+---+---------+  28: FU-A         +-+---+---------+-+-+-+---------+--------
//! STAP-A:  the byte, then for each unit two bytes of length and the unit
//! ```
//! A packet of another type, or with the bit F that says it is damaged, is refused. Everything
//! inside a packet is checked before any of it is given out.

use crate::ParseError;

/// The most bytes of the header of a piece ([`Fragment::header`]).
pub const FRAGMENT_HEADER: usize = 2;

const STAP_A: u8 = 24;
const FU_A: u8 = 28;
const TYPE: u8 = 0x1f;
const FORBIDDEN: u8 = 0x80;
const START: u8 = 0x80;
const END: u8 = 0x40;

/// A payload whose lengths and types have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// A NAL unit, its header first.
    Single(&'a [u8]),
    /// Several NAL units.
    Several(Several<'a>),
    /// A piece of a NAL unit.
    Piece(Fragment, &'a [u8]),
}

/// Where in its NAL unit a piece lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The first byte of the whole NAL unit: its type and importance.
    pub unit: u8,
    /// The unit begins with this piece.
    pub start: bool,
    /// The unit ends with this piece.
    pub end: bool,
}

impl Fragment {
    /// The two bytes in front of the piece. `start` and `end` at once are not allowed: such a unit
    /// is sent as it is.
    pub const fn header(&self) -> [u8; FRAGMENT_HEADER] {
        let start = if self.start { START } else { 0 };
        let end = if self.end { END } else { 0 };
        [self.unit & !TYPE | FU_A, self.unit & TYPE | start | end]
    }
}

/// The NAL units of an aggregation packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Several<'a>(&'a [u8]);

impl<'a> Iterator for Several<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (unit, rest) = aggregated(self.0)?;
        self.0 = rest;
        Some(unit)
    }
}

/// The first unit of an aggregation packet and what follows it.
fn aggregated(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(u16::from_be_bytes(*length).into())
}

/// The payload of an RTP packet.
pub fn parse(payload: &[u8]) -> Result<Payload<'_>, ParseError> {
    let (&first, rest) = payload.split_first().ok_or(ParseError::RtpPayloadTruncated)?;
    match first & TYPE {
        _ if first & FORBIDDEN != 0 => Err(ParseError::RtpPayload),
        STAP_A => several(rest),
        FU_A => piece(first, rest),
        _ if is_unit(first) => Ok(Payload::Single(payload)),
        _ => Err(ParseError::RtpPayload),
    }
}

/// Whether this may be the first byte of a NAL unit (RFC 6184 §5.2).
pub const fn is_unit(first: u8) -> bool {
    first & FORBIDDEN == 0 && matches!(first & TYPE, 1..=23)
}

fn several(bytes: &[u8]) -> Result<Payload<'_>, ParseError> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (unit, behind) = aggregated(rest).ok_or(ParseError::RtpPayloadTruncated)?;
        // §5.7: aggregation packets are not nested.
        if !unit.first().is_some_and(|first| is_unit(*first)) {
            return Err(ParseError::RtpPayload);
        }
        rest = behind;
    }
    if bytes.is_empty() { Err(ParseError::RtpPayloadTruncated) } else { Ok(Payload::Several(Several(bytes))) }
}

fn piece(indicator: u8, rest: &[u8]) -> Result<Payload<'_>, ParseError> {
    let (&header, piece) = rest.split_first().ok_or(ParseError::RtpPayloadTruncated)?;
    let (start, end) = (header & START != 0, header & END != 0);
    let unit = indicator & !TYPE | header & TYPE;
    // §5.8: start and end are never in one piece.
    if start && end || !is_unit(unit) {
        return Err(ParseError::RtpPayload);
    }
    Ok(Payload::Piece(Fragment { unit, start, end }, piece))
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn several_units_come_out_one_by_one() {
        let bytes = [0x78, 0, 2, 0x67, 1, 0, 3, 0x68, 2, 3];
        let Ok(Payload::Several(units)) = parse(&bytes) else { panic!("an aggregation packet") };
        assert_eq!(units.collect::<Vec<_>>(), [&[0x67, 1][..], &[0x68, 2, 3]]);
        assert_eq!(parse(&bytes[..9]), Err(ParseError::RtpPayloadTruncated));
        assert_eq!(parse(&bytes[..1]), Err(ParseError::RtpPayloadTruncated));
        assert_eq!(parse(&[0x78, 0, 0]), Err(ParseError::RtpPayload), "an empty unit");
        assert_eq!(parse(&[0x78, 0, 1, 0x78]), Err(ParseError::RtpPayload), "one in another");
    }

    #[test]
    fn what_the_mode_does_not_allow_is_refused() {
        for first in [0, 25, 26, 27, 29, 30, 31, 0x81] {
            assert_eq!(parse(&[first, 0, 1, 1]), Err(ParseError::RtpPayload), "{first}");
        }
        assert_eq!(parse(&[]), Err(ParseError::RtpPayloadTruncated));
        assert_eq!(parse(&[0x7c]), Err(ParseError::RtpPayloadTruncated));
        assert_eq!(parse(&[0x7c, 0xc5]), Err(ParseError::RtpPayload), "start and end at once");
        assert_eq!(parse(&[0x7c, 0x9c]), Err(ParseError::RtpPayload), "a piece of a piece");
    }

    proptest! {
        #[test]
        fn a_piece_is_read_back_as_written(kind in 1u8..24, importance in 0u8..4, place in 0u8..3, data in proptest::collection::vec(any::<u8>(), 0..20)) {
            let fragment = Fragment { unit: importance << 5 | kind, start: place == 0, end: place == 1 };
            let bytes = [&fragment.header()[..], &data].concat();
            prop_assert_eq!(parse(&bytes), Ok(Payload::Piece(fragment, &data)));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40), aggregate: bool) {
            let bytes = if aggregate { [&[0x18], &bytes[..]].concat() } else { bytes };
            if let Ok(Payload::Several(units)) = parse(&bytes) {
                let length: usize = units.map(|unit| unit.len() + 2).sum();
                prop_assert_eq!(length + 1, bytes.len());
            }
        }
    }
}
