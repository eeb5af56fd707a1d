//! MPEG-1 and MPEG-2 video (ISO 11172-2 §2.4.2, ISO 13818-2 §6.2) as far as cutting needs it:
//! which start code is what, and the few fields of the headers that name a picture.

use super::bits::Bits;
use super::order::{Order, Structure};
use super::{Class, Info, Rate, Sequence};
use silk_wire::rtp_mpv;

const PICTURE: u8 = 0x00;
const EXTENSION: u8 = 0xb5;
const SEQUENCE: u8 = 0xb3;
const GROUP: u8 = 0xb8;

const SEQUENCE_EXTENSION: u32 = 1;
const PICTURE_CODING_EXTENSION: u32 = 8;

/// What the headers told so far.
#[derive(Debug, Default)]
pub struct Mpeg {
    sequence: Option<Sequence>,
    order: Order,
    // The headers in front of the coming picture.
    picture: Option<rtp_mpv::Header>,
    structure: Option<Structure>,
    with_sequence: bool,
    // The type of the frame whose second field is to come.
    frame_kind: u8,
}

/// What a start code is.
pub fn class(unit: &[u8]) -> Class {
    match unit.first() {
        Some(&(PICTURE | SEQUENCE | GROUP)) => Class::Header,
        Some(0x01..=0xaf) => Class::Slice,
        _ => Class::Other,
    }
}

/// A stream begins with a sequence header.
pub fn begins(unit: &[u8]) -> bool {
    unit.first() == Some(&SEQUENCE)
}

/// What the sequence header says that `bytes` begin with; none where they begin otherwise.
pub fn sequence(bytes: &[u8]) -> Option<Sequence> {
    let mut mpeg = Mpeg::default();
    mpeg.header(bytes.strip_prefix(&[0, 0, 1])?);
    mpeg.sequence
}

/// What the headers say that a picture begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heading {
    /// The picture's number in the order of showing; wraps.
    pub number: u32,
    /// Pictures in a second, where a sequence header says so.
    pub rate: Option<Rate>,
    /// A group of pictures begins with it.
    pub group: bool,
}

/// Headers that a picture may begin with: those of sequence, group and picture with extensions and
/// matrices take less.
const HEADERS: usize = 512;

/// The heading of a picture that begins with `bytes`, and comes next in `order`.
pub fn heading(bytes: &[u8], order: &mut Order) -> Option<Heading> {
    let bytes = &bytes[..bytes.len().min(HEADERS)];
    let mut mpeg = Mpeg { order: *order, ..Mpeg::default() };
    let mut group = false;
    let starts = bytes.windows(4).enumerate().filter(|(_, four)| four.starts_with(&[0, 0, 1]));
    for (at, four) in starts {
        match class(&four[3..]) {
            Class::Slice => break,
            _ => {
                group |= four[3] == GROUP;
                mpeg.header(&bytes[at + 3..]);
            }
        }
    }
    mpeg.picture?;
    let number = mpeg.picture().number;
    let before = core::mem::replace(order, mpeg.order);
    let group = group || before.base() != order.base();
    Some(Heading { number, rate: mpeg.sequence.and_then(|sequence| sequence.rate), group })
}

impl Mpeg {
    /// What the last sequence header told.
    pub fn sequence(&self) -> Option<Sequence> {
        self.sequence
    }

    /// A whole header.
    pub fn header(&mut self, unit: &[u8]) {
        let Some((code, rest)) = unit.split_first() else { return };
        match *code {
            SEQUENCE => self.on_sequence(rest),
            GROUP => self.order.group(),
            PICTURE => {
                self.picture = Some(picture_header(rest));
                self.structure = None;
            }
            EXTENSION => self.on_extension(rest),
            _ => {}
        }
    }

    fn on_sequence(&mut self, bytes: &[u8]) {
        let mut bits = Bits::new(bytes);
        let (width, height) = (bits.number(12), bits.number(12));
        bits.skip(4);
        let rate = rate(bits.number(4));
        self.sequence = Some(Sequence { width, height, rate, mpeg2: false });
        self.with_sequence = true;
    }

    fn on_extension(&mut self, bytes: &[u8]) {
        let mut bits = Bits::new(bytes);
        match (bits.number(4), &mut self.sequence, self.picture.is_some()) {
            (SEQUENCE_EXTENSION, Some(sequence), false) if !sequence.mpeg2 => extend(sequence, &mut bits),
            (PICTURE_CODING_EXTENSION, _, true) => {
                bits.skip(18);
                self.structure = match bits.number(2) {
                    1 => Some(Structure::Field { top: true }),
                    2 => Some(Structure::Field { top: false }),
                    _ => None,
                };
            }
            _ => {}
        }
    }

    /// The first slice of the picture begins.
    pub fn picture(&mut self) -> Info {
        let sequence = core::mem::take(&mut self.with_sequence);
        let structure = self.structure.take().unwrap_or(Structure::Frame);
        let Some(mut header) = self.picture.take() else {
            return Info { number: self.order.next(), ..Info::default() };
        };
        header.sequence = sequence;
        let predicts = header.kind != rtp_mpv::BIDIRECTIONAL;
        let place = self.order.place(header.temporal_reference, predicts, structure);
        if !place.second_field {
            self.frame_kind = header.kind;
        }
        Info {
            number: place.number,
            kind: self.frame_kind,
            second_field: place.second_field,
            first_field: !place.second_field && structure != Structure::Frame,
            mpv: Some(header),
        }
    }
}

/// ISO 13818-2 §6.2.3.
fn picture_header(bytes: &[u8]) -> rtp_mpv::Header {
    let mut bits = Bits::new(bytes);
    let temporal_reference = bits.number(10) as u16;
    // Types that the standard does not know are not told on.
    let kind = Some(bits.number(3) as u8).filter(|kind| *kind <= rtp_mpv::DC).unwrap_or(0);
    let mut header = rtp_mpv::Header { temporal_reference, kind, ..rtp_mpv::Header::default() };
    bits.skip(16);
    if matches!(kind, rtp_mpv::PREDICTED | rtp_mpv::BIDIRECTIONAL) {
        (header.full_forward, header.forward) = (bits.flag(), bits.number(3) as u8);
    }
    if kind == rtp_mpv::BIDIRECTIONAL {
        (header.full_backward, header.backward) = (bits.flag(), bits.number(3) as u8);
    }
    header
}

/// ISO 13818-2 §6.2.2.3.
fn extend(sequence: &mut Sequence, bits: &mut Bits<'_>) {
    bits.skip(8 + 1 + 2);
    sequence.width |= bits.number(2) << 12;
    sequence.height |= bits.number(2) << 12;
    bits.skip(12 + 1 + 8 + 1);
    let (n, d) = (bits.number(2), bits.number(5));
    sequence.mpeg2 = true;
    if let Some(rate) = &mut sequence.rate {
        rate.pictures *= n + 1;
        rate.seconds *= d + 1;
    }
}

/// ISO 13818-2 table 6-4.
fn rate(code: u32) -> Option<Rate> {
    let (pictures, seconds) = match code {
        1 => (24_000, 1001),
        2 => (24, 1),
        3 => (25, 1),
        4 => (30_000, 1001),
        5 => (30, 1),
        6 => (50, 1),
        7 => (60_000, 1001),
        8 => (60, 1),
        _ => return None,
    };
    Some(Rate { pictures, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_says_its_size_and_rate() {
        let mut mpeg = Mpeg::default();
        mpeg.header(&[SEQUENCE, 0x16, 0x01, 0x20, 0x13, 0xff, 0xff, 0xe0, 0x18]);
        let rate = Some(Rate { pictures: 25, seconds: 1 });
        assert_eq!(mpeg.sequence(), Some(Sequence { width: 352, height: 288, rate, mpeg2: false }));
        // Horizontal size 352 + 4096, a rate of 25 * 2 / 3.
        mpeg.header(&[EXTENSION, 0x14, 0x82, 0x80, 0x01, 0x00, 0x22]);
        let rate = Some(Rate { pictures: 50, seconds: 3 });
        assert_eq!(mpeg.sequence(), Some(Sequence { width: 4448, height: 288, rate, mpeg2: true }));
        let told = mpeg.sequence();
        mpeg.header(&[EXTENSION, 0x14, 0x82, 0x80, 0x01, 0x00, 0x22]);
        assert_eq!(mpeg.sequence(), told, "an extension counts once");
        assert_eq!(super::rate(0), None);
    }

    #[test]
    fn a_picture_is_headed_by_its_number() {
        let group = [0, 0, 1, GROUP, 0, 8, 0, 0x40];
        let picture = |reference: u8, kind: u8| [0, 0, 1, PICTURE, 0, reference << 6 | kind << 3, 0xff, 0xf8];
        let slice = [0, 0, 1, 1, 0, 0, 1, PICTURE];
        let sequence = [0, 0, 1, SEQUENCE, 0x16, 0x01, 0x20, 0x13, 0xff, 0xff, 0xe0, 0x18];
        let mut order = Order::default();
        let mut head = |parts: &[&[u8]]| heading(&parts.concat(), &mut order);
        let first = head(&[&sequence, &group, &picture(2, 1), &slice]);
        let rate = Some(Rate { pictures: 25, seconds: 1 });
        assert_eq!(first, Some(Heading { number: 2, rate, group: true }));
        let other = |number| Some(Heading { number, rate: None, group: false });
        assert_eq!([head(&[&picture(0, 3)]), head(&[&picture(1, 3), &slice])], [other(0), other(1)]);
        assert_eq!(head(&[&slice]), None);
        let next = head(&[&group, &picture(0, 1)]);
        assert_eq!(next, Some(Heading { number: 3, rate: None, group: true }));
    }

    #[test]
    fn a_picture_says_its_place_and_type() {
        // Reference 5, B, delay 0xffff, forward 7, backward 2 in whole pels.
        let header = picture_header(&[0x01, 0x5f, 0xff, 0xfb, 0xd0]);
        let expected = rtp_mpv::Header {
            temporal_reference: 5,
            kind: 3,
            forward: 7,
            full_backward: true,
            backward: 2,
            ..rtp_mpv::Header::default()
        };
        assert_eq!(header, expected);
        assert_eq!(picture_header(&[0, 0x38]).kind, 0, "a type that is not one is not told");
    }
}
