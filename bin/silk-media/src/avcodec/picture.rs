//! A picture as libavcodec made it: the frame is held by reference, its planes are read in place, and
//! its buffer goes back to the decoder's pool when the picture is dropped.

use super::GAP;
use ffmpeg_next::format::Pixel;
use ffmpeg_next::frame::Video;
use silk_media::{Picture, Plane};

/// A decoded picture.
pub struct AvPicture {
    frame: Video,
    mark: i64,
}

impl AvPicture {
    /// The picture in `frame`, or `None` where it is not in planes of eight bits with chroma halved
    /// both ways.
    pub(super) fn new(frame: Video) -> Option<Self> {
        let planar = matches!(frame.format(), Pixel::YUV420P | Pixel::YUVJ420P);
        let mark = frame.pts().unwrap_or(0);
        (planar && frame.planes() == 3).then_some(Self { frame, mark })
    }

    fn plane(&self, index: usize) -> Plane<'_> {
        Plane {
            bytes: self.frame.data(index),
            stride: self.frame.stride(index),
            width: self.frame.plane_width(index) as usize,
            height: self.frame.plane_height(index) as usize,
        }
    }
}

impl Picture for AvPicture {
    fn stamp(&self) -> u32 {
        // The upper half is ours.
        self.mark as u32
    }

    fn size(&self) -> (usize, usize) {
        (self.frame.width() as usize, self.frame.height() as usize)
    }

    fn planes(&self) -> [Plane<'_>; 3] {
        [0, 1, 2].map(|index| self.plane(index))
    }

    fn memory(&self) -> u64 {
        self.planes().iter().map(|plane| plane.bytes.len() as u64).sum()
    }

    fn is_concealed(&self) -> bool {
        self.mark & GAP != 0 || self.frame.is_corrupt() || self.frame.has_decode_errors()
    }

    fn is_full_range(&self) -> bool {
        self.frame.format() == Pixel::YUVJ420P
    }
}

impl std::fmt::Debug for AvPicture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AvPicture").field("stamp", &self.stamp()).field("size", &self.size()).finish()
    }
}
