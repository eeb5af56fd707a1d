//! A picture of one grey, for tests.

use silk_media::{Picture, Plane};

/// The picture, with some bytes behind each row as decoders leave them.
pub struct Still {
    size: (usize, usize),
    planes: [Vec<u8>; 3],
}

/// Bytes behind each row.
const BEHIND: usize = 5;

impl Still {
    /// A picture of luma `luma`.
    pub fn grey(width: usize, height: usize, luma: u8) -> Self {
        let plane = |width: usize, height: usize, sample: u8| {
            let row = [vec![sample; width], vec![0xee; BEHIND]].concat();
            row.repeat(height)
        };
        let (half_width, half_height) = (width.div_ceil(2), height.div_ceil(2));
        let chroma = || plane(half_width, half_height, 128);
        Self { size: (width, height), planes: [plane(width, height, luma), chroma(), chroma()] }
    }
}

impl Picture for Still {
    fn stamp(&self) -> u32 {
        0
    }

    fn size(&self) -> (usize, usize) {
        self.size
    }

    fn planes(&self) -> [Plane<'_>; 3] {
        let (width, height) = self.size;
        let sizes = [(width, height), (width.div_ceil(2), height.div_ceil(2))];
        [0, 1, 2].map(|index| {
            let (width, height) = sizes[index.min(1)];
            Plane { bytes: &self.planes[index], stride: width + BEHIND, width, height }
        })
    }

    fn memory(&self) -> u64 {
        self.planes.iter().map(|plane| plane.len() as u64).sum()
    }
}
