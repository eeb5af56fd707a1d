//! The header in front of MPEG-1 and MPEG-2 video in RTP (RFC 2250 §3.4) and the extension for
//! MPEG-2 that may follow it (§3.4.1).
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------+-+-------------------+-+-+-+-+-+-----+-+-----+-+-----+
//! |   0     |T|temporal reference |A|N|S|B|E|type |V| BFC |V| FFC |
//! +-+-+-----+-+-----+-------+-----+-+---+---+-+-+-+-+-+-+-+-+-+-+-+
//! |0|E|f[0,0] |f[0,1] |f[1,0] |f[1,1] |DC |PS |T|P|C|Q|V|A|R|H|G|D|   with T
//! +-+-+-------+-------+-------+-------+---+---+-+-+-+-+-+-+-+-+-+-+
//! ```
//! With D a word of the composite display follows, with E further extensions, whose first byte
//! counts their words; those are stepped over. Bits that must be zero are not looked at.

use crate::{ParseError, split};
use zerocopy::network_endian::U32;

/// Bytes of the header.
pub const HEADER: usize = 4;
/// The most bytes of header and extension that [`Header::emit`] writes.
pub const MOST: usize = 12;

/// Picture type: an I picture. Types are numbered as in ISO 13818-2 §6.3.9.
pub const INTRA: u8 = 1;
/// Picture type: a P picture.
pub const PREDICTED: u8 = 2;
/// Picture type: a B picture.
pub const BIDIRECTIONAL: u8 = 3;
/// Picture type: a D picture, of MPEG-1 alone.
pub const DC: u8 = 4;

/// What the sender tells of the payload's picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The picture's place within its group of pictures, in the order of showing; ten bits.
    pub temporal_reference: u16,
    /// `new_header` is used.
    pub active: bool,
    /// The picture's header differs from the last one's in more than this header tells.
    pub new_header: bool,
    /// A sequence header is in the payload.
    pub sequence: bool,
    /// The payload begins with a slice, or with headers and then a slice.
    pub begins_slice: bool,
    /// The payload ends where a slice ends.
    pub ends_slice: bool,
    /// The picture's type; 0: not told, which RFC 2250 does not know.
    pub kind: u8,
    /// `full_pel_backward_vector`.
    pub full_backward: bool,
    /// `backward_f_code`, three bits.
    pub backward: u8,
    /// `full_pel_forward_vector`.
    pub full_forward: bool,
    /// `forward_f_code`, three bits.
    pub forward: u8,
    /// What MPEG-2 adds.
    pub extension: Option<Extension>,
}

/// The picture coding extension of MPEG-2 (ISO 13818-2 §6.3.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extension {
    /// `f_code` for forward and backward, horizontal and vertical; four bits each.
    pub f_code: [[u8; 2]; 2],
    /// `intra_dc_precision`, two bits.
    pub dc_precision: u8,
    /// `picture_structure`, two bits: 1 top field, 2 bottom field, 3 frame.
    pub structure: u8,
    /// T, P, C, Q, V, A, R, H and G as they stand, nine bits: `top_field_first`,
    /// `frame_pred_frame_dct`, `concealment_motion_vectors`, `q_scale_type`, `intra_vlc_format`,
    /// `alternate_scan`, `repeat_first_field`, `chroma_420_type`, `progressive_frame`.
    pub flags: u16,
    /// The word of the composite display, as it stands.
    pub composite: Option<u32>,
}

/// The header at the front of `bytes`, an RTP payload, and how many bytes it and all extensions
/// take.
pub fn parse(bytes: &[u8]) -> Result<(Header, usize), ParseError> {
    let (word, rest) = split::<U32>(bytes, ParseError::RtpPayloadTruncated)?;
    let word = word.get();
    let flag = |bit: u32| word >> bit & 1 != 0;
    let three = |bit: u32| (word >> bit & 7) as u8;
    let kind = three(8);
    if kind > DC {
        return Err(ParseError::RtpPayload);
    }
    let (extension, rest) = if flag(26) { extension(rest)? } else { (None, rest) };
    let header = Header {
        temporal_reference: (word >> 16 & 0x3ff) as u16,
        active: flag(15),
        new_header: flag(14),
        sequence: flag(13),
        begins_slice: flag(12),
        ends_slice: flag(11),
        kind,
        full_backward: flag(7),
        backward: three(4),
        full_forward: flag(3),
        forward: three(0),
        extension,
    };
    Ok((header, bytes.len() - rest.len()))
}

fn extension(bytes: &[u8]) -> Result<(Option<Extension>, &[u8]), ParseError> {
    let (word, mut rest) = split::<U32>(bytes, ParseError::RtpPayloadTruncated)?;
    let word = word.get();
    let four = |bit: u32| (word >> bit & 15) as u8;
    let mut extension = Extension {
        f_code: [[four(26), four(22)], [four(18), four(14)]],
        dc_precision: (word >> 12 & 3) as u8,
        structure: (word >> 10 & 3) as u8,
        flags: (word >> 1 & 0x1ff) as u16,
        composite: None,
    };
    if word & 1 != 0 {
        let (composite, behind) = split::<U32>(rest, ParseError::RtpPayloadTruncated)?;
        extension.composite = Some(composite.get());
        rest = behind;
    }
    if word >> 30 & 1 != 0 {
        // The length counts its own word.
        let words = usize::from(*rest.first().ok_or(ParseError::RtpPayloadTruncated)?);
        let behind = rest.get(words * 4..).ok_or(ParseError::RtpPayloadTruncated)?;
        rest = if words == 0 { return Err(ParseError::RtpPayload) } else { behind };
    }
    Ok((Some(extension), rest))
}

impl Header {
    /// Writes the header and its extension to the front of `bytes`, which must have room for
    /// [`MOST`] bytes ([`HEADER`] without an extension), and answers how many that were. Of
    /// every number the bits are taken that its field has.
    pub fn emit(&self, bytes: &mut [u8]) -> usize {
        let bit = |on: bool, at: u32| u32::from(on) << at;
        let word = bit(self.extension.is_some(), 26)
            | u32::from(self.temporal_reference & 0x3ff) << 16
            | bit(self.active, 15)
            | bit(self.new_header, 14)
            | bit(self.sequence, 13)
            | bit(self.begins_slice, 12)
            | bit(self.ends_slice, 11)
            | u32::from(self.kind & 7) << 8
            | bit(self.full_backward, 7)
            | u32::from(self.backward & 7) << 4
            | bit(self.full_forward, 3)
            | u32::from(self.forward & 7);
        let words = [Some(word), self.extension.map(|e| e.word()), self.extension.and_then(|e| e.composite)];
        let mut length = 0;
        for word in words.into_iter().flatten() {
            bytes[length..length + 4].copy_from_slice(&word.to_be_bytes());
            length += 4;
        }
        length
    }
}

impl Extension {
    fn word(&self) -> u32 {
        let [[a, b], [c, d]] = self.f_code.map(|pair| pair.map(|code| u32::from(code & 15)));
        a << 26
            | b << 22
            | c << 18
            | d << 14
            | u32::from(self.dc_precision & 3) << 12
            | u32::from(self.structure & 3) << 10
            | u32::from(self.flags & 0x1ff) << 1
            | u32::from(self.composite.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;

    #[test]
    fn a_header_stands_as_it_is_drawn() {
        let header = Header {
            temporal_reference: 5,
            sequence: true,
            begins_slice: true,
            kind: BIDIRECTIONAL,
            backward: 7,
            forward: 2,
            ..Header::default()
        };
        let mut bytes = [0; MOST];
        assert_eq!((header.emit(&mut bytes), &bytes[..4]), (4, &[0, 5, 0x33, 0x72][..]));
    }

    #[test]
    fn extensions_are_stepped_over_as_far_as_they_reach() {
        let word: u32 = 1 << 30 | 3 << 10 | 1;
        let mut bytes = std::vec![4, 0, 1, 0];
        bytes.extend_from_slice(&word.to_be_bytes());
        bytes.extend_from_slice(&[0, 0, 0, 9]);
        bytes.extend_from_slice(&[2, 1, 2, 3, 4, 5, 6, 7]);
        let (header, length) = parse(&bytes).unwrap();
        let expected = Extension { structure: 3, composite: Some(9), ..Extension::default() };
        assert_eq!((header.extension, length), (Some(expected), 20));
        for cut in 0..20 {
            assert_eq!(parse(&bytes[..cut]), Err(ParseError::RtpPayloadTruncated), "{cut}");
        }
        bytes[12] = 0;
        assert_eq!(parse(&bytes), Err(ParseError::RtpPayload), "the length counts itself");
        bytes[2] = 5;
        assert_eq!(parse(&bytes), Err(ParseError::RtpPayload), "no such picture type");
    }

    fn extension() -> impl Strategy<Value = Extension> {
        (any::<[u8; 4]>(), 0u8..4, 0u8..4, 0u16..512, any::<Option<u32>>()).prop_map(
            |([a, b, c, d], dc_precision, structure, flags, composite)| Extension {
                f_code: [[a & 15, b & 15], [c & 15, d & 15]],
                dc_precision,
                structure,
                flags,
                composite,
            },
        )
    }

    fn header() -> impl Strategy<Value = Header> {
        let numbers = (0u16..1024, 0u8..5, 0u8..8, 0u8..8);
        (numbers, any::<[bool; 7]>(), proptest::option::of(extension())).prop_map(
            |((temporal_reference, kind, backward, forward), flags, extension)| {
                let [active, new_header, sequence, begins_slice, ends_slice, full_backward, full_forward] =
                    flags;
                Header {
                    temporal_reference,
                    active,
                    new_header,
                    sequence,
                    begins_slice,
                    ends_slice,
                    kind,
                    full_backward,
                    backward,
                    full_forward,
                    forward,
                    extension,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn written_and_read_back(header in header(), payload in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut bytes = [0; MOST];
            let length = header.emit(&mut bytes);
            let bytes = [&bytes[..length], &payload].concat();
            prop_assert_eq!(parse(&bytes), Ok((header, length)));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok((_, length)) = parse(&bytes) {
                prop_assert!((HEADER..=bytes.len()).contains(&length));
            }
        }
    }
}
