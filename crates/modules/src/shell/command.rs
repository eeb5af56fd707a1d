//! What can be said to SHELL, once it has been read.

use alloc::string::String;
use silk_path::{Endpoint, PathId};

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `mpeg_decode HOST:PORT [fps=N|max] [every=N] [without=b] [name=…] [queue=N] [port=N]
    /// [over=mflow|rtp] [bits=N size=WxH] [less=yes|no]`: play the stream that comes from there. `bits` is
    /// of one picture on average, or `bits=I,P,B group=I,P,B` those of each type and how many of them
    /// a group has.
    Decode {
        /// Its source; an IPv6 address in brackets.
        source: Endpoint,
        /// How fast; `None`: as the stream itself says.
        fps: Option<Fps>,
        /// Show only each so manieth picture.
        every: Option<u16>,
        /// Show no B pictures.
        without_b: bool,
        /// What it is to be called.
        name: Option<String>,
        /// The most pictures that may wait to be shown.
        queue: Option<u16>,
        /// The UDP port it arrives at.
        port: Option<u16>,
        /// It comes over RTP instead of MFLOW.
        rtp: bool,
        /// What its pictures are like, so that it is known beforehand what they will cost.
        pictures: Option<Pictures>,
        /// Where it does not fit whole, play what does.
        less: bool,
    },
    /// `stop NAME|PATH`: end a stream.
    Stop(Target),
    /// `list`: what is playing.
    List,
    /// `rate NAME|PATH N|max`: play at another rate.
    Rate(Target, Fps),
    /// `every NAME|PATH N`: show only each N-th picture.
    Every(Target, u16),
}

/// What the pictures of a stream are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pictures {
    /// Their bits.
    pub bits: Bits,
    /// Luma samples in a row and rows, neither 0.
    pub size: (u16, u16),
}

/// Bits of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bits {
    /// Of one on average, never 0.
    Mean(u32),
    /// Of I, P and B pictures: how many a group has, not all 0, and the bits of one, 0 only where there
    /// is none.
    Group([(u16, u32); 3]),
}

/// A stream that plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// By its name, which begins with a letter.
    Name(String),
    /// By its path: `3.1`.
    Path(PathId),
}

/// How fast to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fps {
    /// So many thousandths of a picture in a second, never 0.
    Millis(u32),
    /// Every picture as soon as it is decoded.
    Max,
}
