//! The attributes of a video path beside those of the network: what the viewer wishes, given to
//! the path's creation at DISPLAY (Scout §4.1).

use crate::Coding;
use crate::admission::Showing;
use crate::decoder::Need;
use crate::output::{OutputOptions, Pace};
use crate::timing::{Rate, Stamps};
use silk_path::{Attr, Attrs};

// A path has few attributes, so two hold all of it.
/// The rate to play at in the lower half (see [`Playing::number`]), the stream's own in the upper.
const RATES: u16 = 0x5600;
/// `every` in the lowest 16 bits, the queue's length in the next, then the coding, the stamps and
/// whether there are no B pictures.
const HOW: u16 = 0x5601;

/// Pictures that may wait in an output queue where nobody says otherwise.
pub const DEFAULT_OUTPUT: usize = 16;

/// The longest output queue, in pictures.
const LONGEST: usize = 4096;
/// Pictures of a path beside those in its output queue: what a decoder gives at once when it is full,
/// the one that is shown, and the one that came too late.
const BESIDE: usize = 8;
/// Bytes of a path itself, with its stages.
const PATH: u64 = 128 * 1024;
/// The most pictures of which one is shown.
const MOST: u32 = 1000;

/// At which rate a stream is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playing {
    /// The stream's own.
    Own,
    /// This.
    At(Rate),
    /// Each picture as soon as it is decoded.
    Free,
}

impl Playing {
    const OWN: u32 = u32::MAX;

    fn number(self) -> u32 {
        match self {
            Self::Own => Self::OWN,
            Self::At(rate) => rate.millis(),
            Self::Free => 0,
        }
    }

    fn of(number: u32) -> Self {
        match Rate::from_millis(number) {
            _ if number == Self::OWN => Self::Own,
            Some(rate) => Self::At(rate),
            None => Self::Free,
        }
    }
}

/// What a viewer wishes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The rate to play at.
    pub playing: Playing,
    /// Show only each n-th picture.
    pub every: u32,
    /// Show no B pictures, which no other picture needs.
    pub without_b: bool,
    /// The most pictures in the output queue, and half of it ahead of the display's clock.
    pub queue: usize,
    /// How the stream is coded.
    pub coding: Coding,
    /// Its stamps are ticks of RTP, else numbers of pictures.
    pub ticks: bool,
    /// The stream's own rate, as long as it has not told itself.
    pub own: Rate,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            playing: Playing::Own,
            every: 1,
            without_b: false,
            queue: DEFAULT_OUTPUT,
            coding: Coding::Mpeg,
            ticks: false,
            own: Rate::USUAL,
        }
    }
}

impl Wish {
    /// Adds the wish to a path's attributes, two of them; what finds no room is left out.
    pub fn add_to(&self, attrs: Attrs) -> Attrs {
        let rates = u64::from(self.playing.number()) | u64::from(self.own.millis()) << 32;
        let (every, queue) = (u64::from(self.every.clamp(1, MOST)), self.queue.clamp(1, LONGEST) as u64);
        let (coding, ticks) = (u64::from(self.coding == Coding::H264), u64::from(self.ticks));
        let flags = coding << 32 | ticks << 33 | u64::from(self.without_b) << 34;
        attrs.with(Attr::User(RATES, rates)).with(Attr::User(HOW, every | queue << 16 | flags))
    }

    /// The wish in a path's attributes; what they do not say is as by default.
    pub fn of(attrs: &Attrs) -> Self {
        let mut wish = Self::default();
        if let Some(rates) = attrs.user(RATES) {
            wish.playing = Playing::of(rates as u32);
            wish.own = Rate::from_millis((rates >> 32) as u32).unwrap_or(wish.own);
        }
        if let Some(how) = attrs.user(HOW) {
            wish.every = (how as u16).max(1).into();
            wish.queue = usize::from((how >> 16) as u16).clamp(1, LONGEST);
            wish.coding = if how >> 32 & 1 == 1 { Coding::H264 } else { Coding::Mpeg };
            wish.ticks = how >> 33 & 1 == 1;
            wish.without_b = how >> 34 & 1 == 1;
        }
        wish
    }

    /// Which of the stream's pictures are shown.
    pub fn showing(&self) -> Showing {
        Showing { every: self.every, without_b: self.without_b }
    }

    /// The most memory its path may come to hold, by what its decoder and pictures need, bytes.
    pub fn memory(&self, need: Need) -> u64 {
        let pictures = (self.queue.clamp(1, LONGEST) + BESIDE) as u64;
        PATH.saturating_add(need.decoder).saturating_add(need.picture.saturating_mul(pictures))
    }

    /// The output queue for it.
    pub fn output(&self) -> OutputOptions {
        OutputOptions {
            length: self.queue,
            ahead: (self.queue / 2).max(1) as u32,
            pace: match self.playing {
                Playing::Own => Pace::Own(self.own),
                Playing::At(rate) => Pace::Clock(rate),
                Playing::Free => Pace::Free,
            },
            every: self.every,
            without_b: self.without_b,
            stamps: if self.ticks { Stamps::Ticks(self.own) } else { Stamps::Numbers },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_survives_as_attributes() {
        let wish = Wish {
            playing: Playing::At(Rate::from_millis(10_000).unwrap()),
            every: 3,
            without_b: true,
            queue: 128,
            coding: Coding::H264,
            ticks: true,
            own: Rate::from_millis(29_970).unwrap(),
        };
        for playing in [wish.playing, Playing::Own, Playing::Free] {
            let wish = Wish { playing, ..wish };
            assert_eq!(Wish::of(&wish.add_to(Attrs::new())), wish);
        }
        assert_eq!(Wish::of(&Attrs::new()), Wish::default());
    }
}
