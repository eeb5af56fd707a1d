//! How large a picture may be, decoded and coded, so that what a stream says of itself cannot use up
//! the memory of the machine.

use silk_media::Coding;

/// The largest picture a decoder takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Luma samples of a decoded picture.
    pub pixels: usize,
    /// Bytes of a coded picture.
    pub bytes: usize,
}

impl Limits {
    /// Limits for pictures of at most `pixels` luma samples. No coded picture that is of use is larger
    /// than the same picture without any coding (1.5 bytes a sample), its headers included.
    pub fn pixels(pixels: usize) -> Self {
        Self { pixels, bytes: pixels * 3 / 2 + 64 * 1024 }
    }

    /// Whether a sequence header of MPEG in `bytes` asks for a larger picture. (The library does not
    /// say why it refused one.)
    pub(super) fn are_exceeded(&self, coding: Coding, bytes: &[u8]) -> bool {
        coding == Coding::Mpeg
            && sizes(bytes).any(|(width, height)| width as usize * height as usize > self.pixels)
    }
}

impl Default for Limits {
    /// Full HD, as H.264 codes it: 1920 × 1088.
    fn default() -> Self {
        Self::pixels(1920 * 1088)
    }
}

/// The sizes in the sequence headers of MPEG-1/2 (ISO 13818-2 §6.2.2.1: `00 00 01 b3`, then twelve
/// bits each).
fn sizes(bytes: &[u8]) -> impl Iterator<Item = (u32, u32)> + '_ {
    bytes.windows(7).filter(|seven| seven.starts_with(&[0, 0, 1, 0xb3])).map(|seven| {
        let width = u32::from(seven[4]) << 4 | u32::from(seven[5]) >> 4;
        let height = (u32::from(seven[5]) & 15) << 8 | u32::from(seven[6]);
        (width, height)
    })
}

/// What the library holds for pictures of this size: reference pictures, which outlive their turn on
/// the screen, tables for each macroblock, and its fixed state.
pub(super) fn decoder_bytes(size: (usize, usize), references: usize) -> u64 {
    /// Measured as the growth of the heap with the picture's size, for MPEG-2; H.264 needs more.
    const FOR_MACROBLOCK: usize = 512;
    const FIXED: usize = 256 * 1024;
    let macroblocks = size.0.div_ceil(16) * size.1.div_ceil(16);
    (references * macroblocks * 384 + macroblocks * FOR_MACROBLOCK + FIXED) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_header_tells_its_size() {
        let header = [9, 0, 0, 1, 0xb3, 0x16, 0x00, 0xf0, 0x14];
        assert_eq!(sizes(&header).collect::<Vec<_>>(), [(352, 240)]);
        assert!(Limits::pixels(352 * 240 - 1).are_exceeded(Coding::Mpeg, &header));
        assert!(!Limits::pixels(352 * 240).are_exceeded(Coding::Mpeg, &header));
    }
}
