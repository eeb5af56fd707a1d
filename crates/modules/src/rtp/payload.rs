//! What the payload's own header, or its first bytes, tell of a packet: its picture's type,
//! whether a picture begins with it, and whether it was cut where a decoder can begin.

use super::Payload;
use silk_path::Coded;
use silk_wire::ParseError;
use silk_wire::rtp_h264::{self, Fragment};
use silk_wire::rtp_mpv;

/// What one payload tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Bytes of header to be taken off.
    pub header: usize,
    /// The picture's type, as [`silk_path::Framing::kind`] has it; 0: not told here.
    pub kind: u8,
    /// A picture begins with it.
    pub begins: bool,
    /// It begins where a slice or a header begins.
    pub cut: bool,
    /// How it is coded.
    pub coded: Coded,
}

impl Told {
    /// What `payload` tells. For [`Payload::Auto`] that is never asked.
    pub fn by(format: Payload, payload: &[u8]) -> Result<Self, ParseError> {
        match format {
            Payload::H264 => h264(payload),
            Payload::Mpv | Payload::Auto => mpv(payload),
        }
    }
}

/// RFC 2250 §3.4. Of senders that leave the header empty (GStreamer's does) the start codes and the
/// picture's own header are read.
fn mpv(payload: &[u8]) -> Result<Told, ParseError> {
    let (header, length) = rtp_mpv::parse(payload)?;
    let data = &payload[length..];
    // §3.1: the headers of sequence, group and picture stand at the beginning of a packet.
    let begins = matches!(data, [0, 0, 1, 0x00 | 0xb3 | 0xb8, ..]);
    let cut = header.begins_slice || data.starts_with(&[0, 0, 1]);
    let kind = if header.kind == 0 && begins { picture_type(data) } else { header.kind };
    Ok(Told { header: length, kind, begins, cut, coded: Coded::Mpeg })
}

/// How far behind the beginning of a packet a picture's header is looked for: sequence header,
/// quantiser matrices and group come before it.
const HEADERS: usize = 256;

/// The type in the first picture header (ISO 13818-2 §6.2.3).
fn picture_type(data: &[u8]) -> u8 {
    let headers = &data[..data.len().min(HEADERS)];
    let found = headers.windows(6).find(|bytes| bytes.starts_with(&[0, 0, 1, 0]));
    found.map(|bytes| bytes[5] >> 3 & 7).filter(|kind| *kind <= rtp_mpv::DC).unwrap_or(0)
}

/// RFC 6184. Its header is left to the stage above, which puts pieces together.
fn h264(payload: &[u8]) -> Result<Told, ParseError> {
    let parsed = rtp_h264::parse(payload)?;
    let (begins, cut) = match parsed {
        rtp_h264::Payload::Single(unit) => (begins_picture(unit.first(), unit.get(1)), true),
        rtp_h264::Payload::Several(mut units) => {
            (units.next().is_some_and(|unit| begins_picture(unit.first(), unit.get(1))), true)
        }
        rtp_h264::Payload::Piece(Fragment { unit, start, .. }, piece) => {
            (start && begins_picture(Some(&unit), piece.first()), start)
        }
    };
    Ok(Told { header: 0, kind: 0, begins, cut, coded: Coded::H264 })
}

/// Whether a NAL unit that begins like this is the first of a picture (ISO 14496-10 §7.4.1.2.3):
/// parameters and the like, or a slice whose first macroblock is the picture's.
fn begins_picture(first: Option<&u8>, second: Option<&u8>) -> bool {
    match first.map(|first| first & 0x1f) {
        Some(6..=9 | 14..=18) => true,
        Some(1 | 2 | 5) => second.is_some_and(|second| second & 0x80 != 0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(format: Payload, payload: &[u8]) -> Option<(usize, u8, bool, bool)> {
        Told::by(format, payload).ok().map(|told| (told.header, told.kind, told.begins, told.cut))
    }

    #[test]
    fn mpeg_video_is_known_by_its_header_or_its_start_codes() {
        let mpv = |payload: &[u8]| told(Payload::Mpv, payload);
        assert_eq!(mpv(&[0, 0, 0x11, 0, 0, 0, 1, 0xb3]), Some((4, 1, true, true)));
        assert_eq!(mpv(&[0, 0, 0x13, 0, 0, 0, 1, 2]), Some((4, 3, false, true)));
        assert_eq!(mpv(&[0, 0, 0x03, 0, 9, 9]), Some((4, 3, false, false)));
        assert_eq!(mpv(&[0, 0, 0, 0, 0, 0, 1, 0]), Some((4, 0, true, true)));
        let headers = [0, 0, 0, 0, 0, 0, 1, 0xb8, 0, 8, 0, 0x40, 0, 0, 1, 0, 0, 0x97, 0xff];
        assert_eq!(mpv(&headers), Some((4, 2, true, true)), "read in the picture's own header");
        assert_eq!(mpv(&[0, 0, 0]), None);
    }

    #[test]
    fn h264_is_known_by_its_units() {
        let h264 = |payload: &[u8]| told(Payload::H264, payload);
        assert_eq!(h264(&[0x67, 1]), Some((0, 0, true, true)));
        assert_eq!(h264(&[0x41, 0x9a]), Some((0, 0, true, true)));
        assert_eq!(h264(&[0x41, 0x20]), Some((0, 0, false, true)));
        assert_eq!(h264(&[0x78, 0, 1, 0x67]), Some((0, 0, true, true)));
        assert_eq!(h264(&[0x7c, 0x85, 0x88]), Some((0, 0, true, true)));
        assert_eq!(h264(&[0x7c, 0x05, 0x88]), Some((0, 0, false, false)));
        assert_eq!(h264(&[0]), None);
    }
}
