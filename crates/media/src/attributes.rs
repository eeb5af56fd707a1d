//! The attributes of a video path beside those of the network: what the viewer wishes, given to
//! the path's creation at DISPLAY (Scout §4.1).

use crate::Coding;
use crate::output::{OutputOptions, Pace};
use crate::timing::{Rate, Stamps};
use silk_path::{Attr, Attrs};

// A path has few attributes, so two hold all of it.
/// The rate to play at in the lower half, the stream's own in the upper; 0: none.
const RATES: u16 = 0x5600;
/// `every` in the lowest 16 bits, the queue's length in the next, then the coding.
const HOW: u16 = 0x5601;

/// Pictures that may wait in an output queue where nobody says otherwise.
pub const DEFAULT_OUTPUT: usize = 16;

/// The longest output queue, in pictures.
const LONGEST: usize = 4096;
/// The most pictures of which one is shown.
const MOST: u32 = 1000;

/// What a viewer wishes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The rate to play at; `None`: each picture as soon as it is decoded.
    pub rate: Option<Rate>,
    /// Show only each n-th picture.
    pub every: u32,
    /// The most pictures in the output queue, and half of it ahead of the display's clock.
    pub queue: usize,
    /// How the stream is coded.
    pub coding: Coding,
    /// The stream's own rate, where its stamps are ticks of RTP.
    pub ticks: Option<Rate>,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            rate: Rate::from_millis(30_000),
            every: 1,
            queue: DEFAULT_OUTPUT,
            coding: Coding::Mpeg,
            ticks: None,
        }
    }
}

impl Wish {
    /// Adds the wish to a path's attributes, two of them; what finds no room is left out.
    pub fn add_to(&self, attrs: Attrs) -> Attrs {
        let number = |rate: Option<Rate>| rate.map_or(0, |rate| u64::from(rate.millis()));
        let queue = self.queue.clamp(1, LONGEST) as u64;
        let coding = u64::from(self.coding == Coding::H264);
        attrs
            .with(Attr::User(RATES, number(self.rate) | number(self.ticks) << 32))
            .with(Attr::User(HOW, u64::from(self.every.clamp(1, MOST)) | queue << 16 | coding << 32))
    }

    /// The wish in a path's attributes; what they do not say is as by default.
    pub fn of(attrs: &Attrs) -> Self {
        let mut wish = Self::default();
        if let Some(rates) = attrs.user(RATES) {
            wish.rate = Rate::from_millis(rates as u32);
            wish.ticks = Rate::from_millis((rates >> 32) as u32);
        }
        if let Some(how) = attrs.user(HOW) {
            wish.every = (how as u16).max(1).into();
            wish.queue = usize::from((how >> 16) as u16).clamp(1, LONGEST);
            wish.coding = if how >> 32 & 1 == 1 { Coding::H264 } else { Coding::Mpeg };
        }
        wish
    }

    /// The output queue for it.
    pub fn output(&self) -> OutputOptions {
        OutputOptions {
            length: self.queue,
            ahead: (self.queue / 2).max(1) as u32,
            pace: self.rate.map_or(Pace::Free, Pace::Clock),
            every: self.every,
            stamps: self.ticks.map_or(Stamps::Numbers, Stamps::Ticks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_survives_as_attributes() {
        let wish = Wish {
            rate: Rate::from_millis(10_000),
            every: 3,
            queue: 128,
            coding: Coding::H264,
            ticks: Rate::from_millis(29_970),
        };
        assert_eq!(Wish::of(&wish.add_to(Attrs::new())), wish);
        let free = Wish { rate: None, ..Wish::default() };
        assert_eq!(Wish::of(&free.add_to(Attrs::new())), free);
        assert_eq!(Wish::of(&Attrs::new()), Wish::default());
    }
}
