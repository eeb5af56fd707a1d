//! H.264 with start codes (ISO 14496-10 Annex B) as far as cutting needs it: where an access
//! unit begins (§7.4.1.2.3), of what type its first slice is, and when it is shown.

use super::bits::Bits;
use super::poc::{self, Order};
use super::{Class, Info, Rate};
use silk_wire::rtp_h264::{self, Payload};
use silk_wire::rtp_mpv::{BIDIRECTIONAL, INTRA, PREDICTED};

/// What the parameters told so far.
#[derive(Debug, Default)]
pub struct H264 {
    order: Order,
}

/// What a NAL unit is. A slice whose first macroblock is the picture's first begins a picture:
/// slices in any other order than the picture's (Baseline profile) are not looked for.
pub fn class(unit: &[u8]) -> Class {
    match unit.first().map(|first| first & 0x1f) {
        Some(1 | 2 | 5) if unit.get(1).is_some_and(|byte| byte & 0x80 != 0) => Class::FirstSlice,
        Some(1 | 2 | 5) => Class::Slice,
        Some(6..=9 | 14..=18) => Class::Header,
        _ => Class::Other,
    }
}

/// A stream begins with its parameters, or what may stand in front of them.
pub fn begins(unit: &[u8]) -> bool {
    // The first bit is never set in H.264.
    unit.first().is_some_and(|first| first & 0x80 == 0 && matches!(first & 0x1f, 6 | 7 | 9))
}

impl H264 {
    /// A whole NAL unit in front of a picture.
    pub fn header(&mut self, unit: &[u8]) {
        self.order.parameters(unit);
    }

    /// A picture's first slice begins.
    pub fn picture(&mut self, slice: &[u8]) -> Info {
        let number = self.order.place(slice);
        Info { number, kind: kind(slice), ..Info::default() }
    }
}

/// The rate that the sequence's parameters in `bytes` tell: NAL units with start codes, or one or
/// several as RTP carries them (RFC 6184). None where there are no parameters.
pub fn rate(bytes: &[u8]) -> Option<Rate> {
    if bytes.starts_with(&[0, 0]) {
        return super::rtp::units(bytes).take(LOOKED_AT).find_map(poc::rate);
    }
    match rtp_h264::parse(bytes).ok()? {
        Payload::Single(unit) => poc::rate(unit),
        Payload::Several(mut units) => units.find_map(poc::rate),
        Payload::Piece(..) => None,
    }
}

/// Units of a packet among which parameters are looked for: they stand at its beginning.
const LOOKED_AT: usize = 4;

/// The type of a slice (ISO 14496-10 table 7-6). What others are predicted from is never told to
/// be a B picture, which may be left out.
fn kind(slice: &[u8]) -> u8 {
    let Some((first, rest)) = slice.split_first() else { return 0 };
    let mut bits = Bits::new(rest);
    let kind = bits.golomb().and_then(|_| bits.golomb());
    match (kind.map(|kind| kind % 5), first & 0x60) {
        (Some(2 | 4), _) => INTRA,
        (Some(1), 0) => BIDIRECTIONAL,
        (Some(_), _) => PREDICTED,
        (None, _) => 0,
    }
}
