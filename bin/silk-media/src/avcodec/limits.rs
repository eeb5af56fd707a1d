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

    /// What the library is told. It counts rows as it lays them out in memory, up to 63 samples longer,
    /// so it only keeps what is far too large from being decoded; [`Self::pixels`] is compared with what
    /// comes out.
    pub(super) fn library_pixels(&self) -> usize {
        self.pixels + self.pixels / 4 + 64 * 1024
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

/// What the library holds beside the pictures it has given away: reference pictures, tables for each
/// macroblock, and its fixed state. As the heap grew with pictures of 176 × 144 to 1408 × 1152 (libavcodec
/// 59); the model is within 8 %.
pub(super) fn decoder_bytes(coding: Coding, size: (usize, usize)) -> u64 {
    let macroblocks = size.0.div_ceil(16) * size.1.div_ceil(16);
    let (references, fixed) = match coding {
        Coding::Mpeg => (2, 256 * 1024),
        Coding::H264 => (6, 1536 * 1024),
    };
    (macroblocks * (references * 384 + 512) + fixed) as u64
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
