//! In which order pictures of H.264 are shown: the picture order count (ISO 14496-10 §8.2.1) as
//! far as it takes to number them, and what of parameter sets (§7.3.2) and slice headers (§7.3.3)
//! leads to it. Counts of type 0 are read; where they are of another type, or parameters are
//! missing, pictures are taken to be shown as they are coded.

use super::Rate;
use super::bits::Bits;
use alloc::vec::Vec;

/// Bytes of a parameter set that are looked at.
const MOST: usize = 1024;
/// Parameter sets there can be: of sequences and of pictures (§7.4.2).
const SEQUENCES: u32 = 32;
const PICTURES: u32 = 256;

/// Of a sequence's parameters.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    planes: bool,
    frame_number_bits: u32,
    // Of the count's lower part; none where the count is of another type.
    count_bits: Option<u32>,
    frames_only: bool,
    rate: Option<Rate>,
}

/// What a slice says of its picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    lower: u32,
    bits: u32,
}

/// The numbering.
#[derive(Debug, Default)]
pub struct Order {
    sequences: Vec<(u32, Sequence)>,
    // Of a picture's parameters: which sequence's they go with.
    pictures: Vec<(u32, u32)>,
    // The number of the picture with the count 0 since the last IDR picture.
    base: u32,
    // One more than the highest number so far.
    next: u32,
    // The count of the last picture that others are predicted from: its upper and lower part.
    reference: (i32, u32),
}

impl Order {
    /// A NAL unit of parameters; others are not looked at.
    pub fn parameters(&mut self, unit: &[u8]) {
        let Some((first, rest)) = unit.split_first() else { return };
        let bytes = unescaped(&rest[..rest.len().min(MOST)]);
        match first & 0x1f {
            7 => keep(&mut self.sequences, SEQUENCES, sequence(&bytes)),
            8 => keep(&mut self.pictures, PICTURES, picture(&bytes)),
            _ => {}
        }
    }

    /// The number, in the order of showing, of the picture whose first slice begins like this.
    pub fn place(&mut self, slice: &[u8]) -> u32 {
        let Some((first, rest)) = slice.split_first() else { return self.next };
        let idr = first & 0x1f == 5;
        if idr {
            (self.base, self.reference) = (self.next, (0, 0));
        }
        let bytes = unescaped(&rest[..rest.len().min(super::SLICE_HEADER)]);
        let number = match self.slice(idr, &bytes) {
            Some(slice) => self.number(slice, first & 0x60 != 0),
            None => self.next,
        };
        let next = number.wrapping_add(1);
        // The comparison is that of numbers that wrap.
        if next.wrapping_sub(self.next) as i32 > 0 {
            self.next = next;
        }
        number
    }

    /// §8.2.1.1.
    fn number(&mut self, slice: Slice, predicts: bool) -> u32 {
        let ((upper, before), wrap) = (self.reference, 1i32 << slice.bits);
        let ahead = slice.lower as i32 - before as i32;
        let upper = if ahead <= -(wrap / 2) {
            upper.wrapping_add(wrap)
        } else if ahead > wrap / 2 {
            upper.wrapping_sub(wrap)
        } else {
            upper
        };
        if predicts {
            self.reference = (upper, slice.lower);
        }
        // A frame counts two: one for each field.
        self.base.wrapping_add_signed(upper.wrapping_add(slice.lower as i32).div_euclid(2))
    }

    /// §7.3.3, to the lower part of the count.
    fn slice(&self, idr: bool, bytes: &[u8]) -> Option<Slice> {
        let mut bits = Bits::new(bytes);
        bits.golomb()?;
        bits.golomb()?;
        let id = bits.golomb()?;
        let (_, sequence) = self.pictures.iter().find(|(picture, _)| *picture == id)?;
        let (_, sequence) = self.sequences.iter().find(|(id, _)| id == sequence)?;
        let count_bits = sequence.count_bits?;
        bits.skip(if sequence.planes { 2 } else { 0 });
        bits.skip(sequence.frame_number_bits as usize);
        if !sequence.frames_only && bits.flag() {
            bits.flag();
        }
        if idr {
            bits.golomb()?;
        }
        Some(Slice { lower: bits.number(count_bits), bits: count_bits })
    }
}

/// Keeps what has a number below `most`, in place of what had the same.
fn keep<T>(kept: &mut Vec<(u32, T)>, most: u32, new: Option<(u32, T)>) {
    if let Some((id, value)) = new.filter(|(id, _)| *id < most) {
        kept.retain(|(other, _)| *other != id);
        kept.push((id, value));
    }
}

/// §7.3.2.1.1.
fn sequence(bytes: &[u8]) -> Option<(u32, Sequence)> {
    let mut bits = Bits::new(bytes);
    let profile = bits.number(8);
    bits.skip(16);
    let id = bits.golomb()?;
    let mut planes = false;
    if matches!(profile, 44 | 83 | 86 | 100 | 110 | 118 | 122 | 128 | 134 | 135 | 138 | 139 | 244) {
        let chroma = bits.golomb()?;
        planes = chroma == 3 && bits.flag();
        bits.golomb()?;
        bits.golomb()?;
        bits.skip(1);
        if bits.flag() {
            scaling_lists(&mut bits, if chroma == 3 { 12 } else { 8 })?;
        }
    }
    let frame_number_bits = four_more(bits.golomb()?)?;
    let count_bits = match bits.golomb()? {
        0 => Some(four_more(bits.golomb()?)?),
        1 => {
            bits.skip(1);
            bits.golomb()?;
            bits.golomb()?;
            let cycle = bits.golomb().filter(|cycle| *cycle < 256)?;
            for _ in 0..cycle {
                bits.golomb()?;
            }
            None
        }
        _ => None,
    };
    bits.golomb()?;
    bits.skip(1);
    bits.golomb()?;
    bits.golomb()?;
    let frames_only = bits.flag();
    bits.skip(if frames_only { 1 } else { 2 });
    // How much of the frame is cut off.
    if bits.flag() {
        for _ in 0..4 {
            bits.golomb()?;
        }
    }
    let rate = if bits.flag() { usability(&mut bits) } else { None };
    Some((id, Sequence { planes, frame_number_bits, count_bits, frames_only, rate }))
}

/// The rate among the information on the video's usability (§E.1.1); a tick is a field (§E.2.1).
fn usability(bits: &mut Bits<'_>) -> Option<Rate> {
    const EXTENDED_SHAPE: u32 = 255;
    if bits.flag() && bits.number(8) == EXTENDED_SHAPE {
        bits.skip(32);
    }
    if bits.flag() {
        bits.skip(1);
    }
    if bits.flag() {
        bits.skip(4);
        if bits.flag() {
            bits.skip(24);
        }
    }
    if bits.flag() {
        bits.golomb()?;
        bits.golomb()?;
    }
    if !bits.flag() {
        return None;
    }
    let (ticks, scale) = (bits.number(32), bits.number(32));
    let seconds = ticks.checked_mul(2)?;
    (seconds > 0 && scale > 0).then_some(Rate { pictures: scale, seconds })
}

/// The rate that a NAL unit of sequence parameters tells.
pub fn rate(unit: &[u8]) -> Option<Rate> {
    let (_, rest) = unit.split_first().filter(|(first, _)| **first & 0x9f == 7)?;
    sequence(&unescaped(&rest[..rest.len().min(MOST)]))?.1.rate
}

/// A number of bits that is sent less four, sixteen at most (§7.4.2.1.1).
fn four_more(less: u32) -> Option<u32> {
    less.checked_add(4).filter(|bits| *bits <= 16)
}

/// §7.3.2.1.1.1.
fn scaling_lists(bits: &mut Bits<'_>, lists: usize) -> Option<()> {
    for list in 0..lists {
        if !bits.flag() {
            continue;
        }
        let (mut last, mut next) = (8i64, 8i64);
        for _ in 0..if list < 6 { 16 } else { 64 } {
            if next != 0 {
                next = (last + signed(bits.golomb()?)).rem_euclid(256);
            }
            last = if next == 0 { last } else { next };
        }
    }
    Some(())
}

/// §9.1.1.
fn signed(number: u32) -> i64 {
    let half = (i64::from(number) + 1) / 2;
    if number % 2 == 1 { half } else { -half }
}

/// §7.3.2.2.
fn picture(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut bits = Bits::new(bytes);
    Some((bits.golomb()?, bits.golomb()?))
}

/// Without the bytes that keep start codes out (§7.4.1).
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut zeros = 0;
    let kept = bytes.iter().copied().filter(|byte| {
        let escape = zeros >= 2 && *byte == 3;
        zeros = if *byte == 0 { zeros + 1 } else { 0 };
        !escape
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Parameters as x264 writes them (High profile, counts of 6 bits, frame numbers of 4).
    const SEQUENCE: [u8; 25] = [
        0x67, 0x64, 0x00, 0x1e, 0xac, 0xd9, 0x40, 0xa0, 0x3d, 0xb0, 0x11, 0x00, 0x00, 0x03, 0x00, 0x01, 0x00,
        0x00, 0x03, 0x00, 0x32, 0x0f, 0x16, 0x2d, 0x96,
    ];
    const PICTURE: [u8; 5] = [0x68, 0xeb, 0xec, 0xb2, 0x2c];

    #[test]
    fn escapes_are_left_out() {
        assert_eq!(unescaped(&[0, 0, 3, 1, 0, 0, 3, 0, 0, 3, 3]), [0, 0, 1, 0, 0, 0, 0, 3]);
    }

    #[test]
    fn the_parameters_of_a_real_stream_are_understood() {
        let (id, sequence) = sequence(&unescaped(&SEQUENCE[1..])).unwrap();
        let read =
            (id, sequence.planes, sequence.frame_number_bits, sequence.count_bits, sequence.frames_only);
        assert_eq!(read, (0, false, 4, Some(6), true));
        assert_eq!(picture(&PICTURE[1..]), Some((0, 0)));
        assert_eq!(rate(&SEQUENCE).and_then(Rate::played), crate::Rate::from_millis(25_000));
        assert_eq!(rate(&PICTURE), None);
    }

    /// The first slice of a picture: its type, its count's lower six bits.
    fn slice(first: u8, count: u32) -> [u8; 5] {
        // first_mb 0, slice_type 0, picture's parameters 0: `111`; frame_num `0000`; for an IDR
        // picture its id 0: `1`; then the count.
        let idr = first & 0x1f == 5;
        let bits = if idr { 0b1110_0001 << 6 | count } else { 0b111_0000 << 6 | count };
        let [a, b, c, d] = (bits << if idr { 18 } else { 19 }).to_be_bytes();
        [first, a, b, c, d]
    }

    #[test]
    fn pictures_are_numbered_as_they_are_shown() {
        let mut order = Order::default();
        order.parameters(&SEQUENCE);
        order.parameters(&PICTURE);
        // An IDR picture, then P and B in turn; the count wraps at 64, and begins anew.
        let mut stream = alloc::vec![slice(0x65, 0)];
        for p in 1..40u32 {
            stream.push(slice(0x41, p * 4 % 64));
            stream.push(slice(0x01, (p * 4 - 2) % 64));
        }
        stream.extend([slice(0x65, 0), slice(0x41, 4), slice(0x01, 2)]);
        let numbers: Vec<u32> = stream.iter().map(|slice| order.place(slice)).collect();
        let mut expected = alloc::vec![0];
        expected.extend((1..40).flat_map(|p| [2 * p, 2 * p - 1]));
        expected.extend([79, 81, 80]);
        assert_eq!(numbers, expected);
    }

    #[test]
    fn parameters_with_the_largest_numbers_are_refused() {
        let mut order = Order::default();
        // Frame numbers of 2^32 + 2 bits.
        order.parameters(&[0x67, 66, 0, 30, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        assert!(order.sequences.is_empty());
    }

    #[test]
    fn without_parameters_the_order_is_that_of_coding() {
        let mut order = Order::default();
        let numbers = [slice(0x65, 0), slice(0x41, 4), slice(0x01, 2)].map(|slice| order.place(&slice));
        assert_eq!(numbers, [0, 1, 2]);
    }
}
