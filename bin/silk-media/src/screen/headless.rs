//! A screen for nobody: it counts, and on demand sums what the pictures hold, so that what was
//! decoded here and there can be compared.

use super::{ScreenError, Shown, Sink};
use silk_media::{Picture, Screen};

/// Counts pictures.
#[derive(Debug, Default)]
pub struct Headless {
    shown: Shown,
}

impl Headless {
    /// A screen that sums too.
    pub fn summing() -> Self {
        Self { shown: Shown { sum: Some(BASIS), ..Shown::default() } }
    }
}

impl Screen for Headless {
    fn show(&mut self, picture: &dyn Picture) {
        self.shown.pictures += 1;
        self.shown.sum = self.shown.sum.map(|before| add(before, picture));
    }
}

impl Sink for Headless {
    fn end(self: Box<Self>) -> Result<Shown, ScreenError> {
        Ok(self.shown)
    }
}

/// The sum of one picture: size and samples.
pub fn sum(picture: &dyn Picture) -> u64 {
    add(BASIS, picture)
}

/// FNV-1a's offset basis and prime, here over words of eight samples.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

fn add(sum: u64, picture: &dyn Picture) -> u64 {
    let mix = |sum: u64, word: u64| ((sum ^ word).wrapping_mul(PRIME)).rotate_left(29);
    let (width, height) = picture.size();
    let mut sum = mix(mix(sum, width as u64), height as u64);
    for plane in picture.planes() {
        for row in plane.bytes.chunks(plane.stride).take(plane.height) {
            for word in row[..plane.width].chunks(8) {
                let mut bytes = [0; 8];
                bytes[..word.len()].copy_from_slice(word);
                sum = mix(sum, u64::from_le_bytes(bytes));
            }
        }
    }
    sum
}
