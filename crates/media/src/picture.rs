//! A decoded picture, by reference: whoever decoded it keeps its bytes, and the display queue
//! holds it until it was shown. No copy is made on the way.

/// One plane of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Plane<'a> {
    /// Its rows, `stride` bytes from the start of one to the start of the next.
    pub bytes: &'a [u8],
    /// Bytes from row to row; at least the width.
    pub stride: usize,
    /// Samples in a row, a byte each.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// A decoded picture in planes Y, Cb and Cr, eight bits a sample, chroma halved both ways (4:2:0).
pub trait Picture: Send {
    /// The stamp of the unit it was decoded from ([`silk_path::Framing::stamp`]).
    fn stamp(&self) -> u32;

    /// Width and height in luma samples.
    fn size(&self) -> (usize, usize);

    /// Its planes: Y, Cb, Cr.
    fn planes(&self) -> [Plane<'_>; 3];

    /// Bytes of memory it holds, for its path's account.
    fn memory(&self) -> u64;

    /// Something of it was missing or damaged, and made up.
    fn is_concealed(&self) -> bool {
        false
    }

    /// Its samples use all of 0 to 255, instead of 16 to 235 (ITU-R BT.601).
    fn is_full_range(&self) -> bool {
        false
    }
}
