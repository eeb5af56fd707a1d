//! Pictures without content and a screen that shows none: for whoever only wants to know when which picture
//! comes, such as simulations and measurements of what surrounds decoding.

use crate::{Picture, Plane, Screen, Screens};
use alloc::boxed::Box;
use silk_path::{Attrs, PathId};

/// A picture of nothing.
#[derive(Clone, Copy, Debug)]
pub struct Blank {
    /// Its stamp.
    pub stamp: u32,
    /// Width and height in luma samples, whose memory it counts as.
    pub size: (usize, usize),
}

impl Picture for Blank {
    fn stamp(&self) -> u32 {
        self.stamp
    }

    fn size(&self) -> (usize, usize) {
        self.size
    }

    fn planes(&self) -> [Plane<'_>; 3] {
        [Plane { bytes: &[], stride: 0, width: 0, height: 0 }; 3]
    }

    fn memory(&self) -> u64 {
        (self.size.0 * self.size.1 * 3 / 2) as u64
    }
}

/// A screen, and screens for all paths, on which nothing is seen.
#[derive(Clone, Copy, Debug)]
pub struct Dark;

impl Screen for Dark {
    fn show(&mut self, _: &dyn Picture) {}
}

impl Screens for Dark {
    fn open(&mut self, _: PathId, _: &Attrs) -> Option<Box<dyn Screen>> {
        Some(Box::new(Self))
    }
}
