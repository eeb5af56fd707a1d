//! The RTP header (RFC 3550 §5.1).
//! ```text
//!  0               1               2               3               4
//! +---+-+-+-------+-+-------------+-------------------------------+
//! | 2 |P|X|   CC  |M| payload type|        sequence number        |
//! +---+-+-+-------+-+-------------+-------------------------------+
//! |                           timestamp                           |
//! +---------------------------------------------------------------+
//! |                 synchronisation source (SSRC)                 |
//! +---------------------------------------------------------------+
//! |              CC contributing sources, 4 bytes each            |
//! +-------------------------------+-------------------------------+
//! | with X: profile's own         | length of what follows, words |
//! +-------------------------------+-------------------------------+
//! ```
//! With P the packet ends in padding, whose last byte says how much. Contributing sources and
//! the extension are stepped over; we send neither. RTCP that arrives at the same port is told
//! apart by its packet type (RFC 5761 §4) and refused.

use crate::{ParseError, put, split};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    network_endian::{U16, U32},
};

/// The UDP port for RTP where nothing else is said (RFC 3551 §8).
pub const PORT: u16 = 5004;
/// Bytes of the header without contributing sources.
pub const HEADER: usize = 12;
/// Ticks of the timestamp's clock in a second, for video (RFC 3551 §5).
pub const CLOCK: u32 = 90_000;
/// Payload type of MPEG-1 and MPEG-2 video (RFC 3551 §6).
pub const MPV: u8 = 32;

const VERSION: u8 = 2;
const PADDING: u8 = 0x20;
const EXTENSION: u8 = 0x10;
const MARKER: u8 = 0x80;

/// The header as it stands in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    first: u8,
    marker_type: u8,
    sequence: U16,
    timestamp: U32,
    ssrc: U32,
}

impl Header {
    /// A header without padding, extension and contributing sources. Of `payload_type` seven bits
    /// are taken.
    pub const fn new(payload_type: u8, marker: bool, sequence: u16, timestamp: u32, ssrc: u32) -> Self {
        Self {
            first: VERSION << 6,
            marker_type: payload_type & !MARKER | if marker { MARKER } else { 0 },
            sequence: U16::new(sequence),
            timestamp: U32::new(timestamp),
            ssrc: U32::new(ssrc),
        }
    }
    /// The marker bit: for video the packet is the last of its picture (RFC 2250 §3.1, RFC 6184
    /// §5.1).
    pub fn marker(&self) -> bool {
        self.marker_type & MARKER != 0
    }
    /// The payload type: what the payload is.
    pub fn payload_type(&self) -> u8 {
        self.marker_type & !MARKER
    }
    /// The packet's number; wraps.
    pub fn sequence(&self) -> u16 {
        self.sequence.get()
    }
    /// When the first byte of the payload was sampled, in ticks of [`CLOCK`]; wraps.
    pub fn timestamp(&self) -> u32 {
        self.timestamp.get()
    }
    /// The synchronisation source: who sends.
    pub fn ssrc(&self) -> u32 {
        self.ssrc.get()
    }
    /// Writes the header to the front of `bytes`, which must have room for [`HEADER`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        put(self, bytes);
    }
}

/// A packet whose lengths have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its header.
    pub header: &'a Header,
    /// Bytes in front of the payload: header, contributing sources, extension.
    pub length: usize,
    /// The payload, without the padding.
    pub payload: &'a [u8],
}

/// The packet in `bytes`, the whole data of a datagram.
pub fn parse(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
    let (header, rest) = split::<Header>(bytes, ParseError::RtpTruncated)?;
    if header.first >> 6 != VERSION {
        return Err(ParseError::RtpVersion);
    }
    // RFC 5761 §4: RTCP's packet types are 192 to 223.
    if (192..=223).contains(&header.marker_type) {
        return Err(ParseError::RtpControl);
    }
    let sources = usize::from(header.first & 15) * 4;
    let rest = rest.get(sources..).ok_or(ParseError::RtpTruncated)?;
    let rest = if header.first & EXTENSION == 0 { rest } else { behind_extension(rest)? };
    let payload = if header.first & PADDING == 0 { rest } else { without_padding(rest)? };
    Ok(Packet { header, length: bytes.len() - rest.len(), payload })
}

fn behind_extension(bytes: &[u8]) -> Result<&[u8], ParseError> {
    let [_, _, high, low, ref rest @ ..] = *bytes else { return Err(ParseError::RtpTruncated) };
    let words = usize::from(u16::from_be_bytes([high, low]));
    rest.get(words * 4..).ok_or(ParseError::RtpTruncated)
}

/// The padding counts itself (RFC 3550 §5.1), so none is too little.
fn without_padding(bytes: &[u8]) -> Result<&[u8], ParseError> {
    let padding = usize::from(*bytes.last().ok_or(ParseError::RtpPadding)?);
    let kept = bytes.len().checked_sub(padding).filter(|_| padding > 0).ok_or(ParseError::RtpPadding)?;
    Ok(&bytes[..kept])
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// A packet with everything a sender may put around the payload.
    fn packet(header: Header, sources: usize, words: Option<u16>, payload: &[u8], padding: u8) -> Vec<u8> {
        let mut bytes = std::vec![0; HEADER];
        header.emit(&mut bytes);
        bytes[0] |= sources as u8;
        bytes.resize(HEADER + sources * 4, 0xcc);
        if let Some(words) = words {
            bytes[0] |= EXTENSION;
            bytes.extend_from_slice(&[0xbe, 0xde]);
            bytes.extend_from_slice(&words.to_be_bytes());
            bytes.resize(bytes.len() + usize::from(words) * 4, 0xee);
        }
        bytes.extend_from_slice(payload);
        if padding > 0 {
            bytes[0] |= PADDING;
            bytes.resize(bytes.len() + usize::from(padding) - 1, 0);
            bytes.push(padding);
        }
        bytes
    }

    const PLAIN: Header = Header::new(MPV, true, 7, 90_000, 0x1234_5678);

    #[test]
    fn a_header_stands_as_it_is_drawn() {
        let mut bytes = [0xaa; HEADER];
        PLAIN.emit(&mut bytes);
        assert_eq!(bytes, [0x80, 0xa0, 0, 7, 0, 1, 0x5f, 0x90, 0x12, 0x34, 0x56, 0x78]);
    }

    #[test]
    fn each_fault_has_its_name() {
        let good = packet(PLAIN, 1, Some(1), b"video", 2);
        assert_eq!(parse(&good).map(|packet| (packet.length, packet.payload)), Ok((24, &b"video"[..])));
        for length in 0..24 {
            assert_eq!(parse(&good[..length]), Err(ParseError::RtpTruncated), "{length}");
        }
        let edited = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            parse(&bytes).map(|packet| packet.length)
        };
        assert_eq!(edited(0, 0x41), Err(ParseError::RtpVersion));
        assert_eq!(edited(1, 200), Err(ParseError::RtpControl));
        assert_eq!(edited(30, 0), Err(ParseError::RtpPadding), "padding counts itself");
        assert_eq!(edited(30, 8), Err(ParseError::RtpPadding), "more padding than there is");
        assert_eq!(edited(30, 7), Ok(24), "nothing but padding");
    }

    proptest! {
        #[test]
        fn written_and_read_back(
            fields: (u8, bool, u16, u32, u32),
            sources in 0usize..16,
            words in proptest::option::of(0u16..5),
            payload in proptest::collection::vec(any::<u8>(), 0..40),
            padding in 0u8..9,
        ) {
            let (payload_type, marker, sequence, timestamp, ssrc) = fields;
            prop_assume!(!(64..96).contains(&(payload_type & 127)));
            let header = Header::new(payload_type, marker, sequence, timestamp, ssrc);
            let bytes = packet(header, sources, words, &payload, padding);
            let read = parse(&bytes).unwrap();
            let seen = (read.header.payload_type(), read.header.marker(), read.header.sequence());
            prop_assert_eq!(seen, (payload_type & 127, marker, sequence));
            prop_assert_eq!((read.header.timestamp(), read.header.ssrc()), (timestamp, ssrc));
            prop_assert_eq!(read.payload, &payload[..]);
            prop_assert_eq!(&bytes[read.length..][..payload.len()], &payload[..]);
        }

        #[test]
        fn any_bytes_parse_or_are_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(first) = bytes.first_mut() {
                *first = *first & 0x3f | 0x80;
            }
            if let Ok(packet) = parse(&bytes) {
                prop_assert!(packet.length + packet.payload.len() <= bytes.len());
            }
        }
    }
}
