//! Application-level framing at the source (Scout §4.1): an elementary stream is cut into
//! pictures, and these into packets of at most so many bytes that the decoder can use one by one:
//! whole slices of MPEG-1 and MPEG-2 video, the headers in front of a picture with them, or whole
//! NAL units of H.264. What is larger than a packet alone is split, and says so.
//!
//! Bytes go in as they are read ([`Cutter::push`]), packets come out ([`Cutter::next`]) as soon as
//! it is known what they are; the cutter holds little more than one packet. All packets together
//! are the stream, from its first sequence header on, byte by byte. The stream is hostile: a file
//! that is no video is refused with what it is ([`NotVideo`]); damage inside it is carried on.
//!
//! | file | what |
//! |---|---|
//! | `cutter` | start codes → units → packets |
//! | `mpeg` | the syntax of ISO 11172-2 and 13818-2 as far as cutting needs it |
//! | `order` | pictures numbered in the order they are shown |
//! | `annexb`, `poc` | the same for H.264 |
//! | `rtp` | the packets as RTP (RFC 2250, RFC 6184) |

mod annexb;
mod bits;
mod cutter;
mod mpeg;
mod order;
mod poc;
mod rtp;

pub use annexb::rate as h264_rate;
pub use cutter::Cutter;
pub(crate) use mpeg::heading;
pub use mpeg::sequence;
pub(crate) use order::Order;
pub use rtp::{HEADERS as RTP_HEADERS, RtpSource};

use core::fmt;
use silk_wire::rtp_mpv;

/// A packet of video.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its bytes, never none.
    pub bytes: &'a [u8],
    /// The picture's number in the order of showing; wraps. Both fields of a frame have the frame's.
    pub picture: u32,
    /// The picture's type: 1 I, 2 P, 3 B, 4 D; 0: not known. For a frame in two fields the first
    /// one's. A B picture of H.264 that others are predicted from counts as P.
    pub kind: u8,
    /// The picture begins with this packet.
    pub first: bool,
    /// The picture ends with this packet.
    pub last: bool,
    /// Whether it is made of whole slices (or NAL units) or is a part of one.
    pub part: Part,
    /// For MPEG: the header that RFC 2250 wants for it.
    pub mpv: Option<rtp_mpv::Header>,
}

/// What a packet holds of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Whole ones.
    Whole,
    /// The beginning of one that is larger than a packet.
    Begin,
    /// The middle of one.
    Middle,
    /// Its end.
    End,
}

/// What the sequence header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Luma samples in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Pictures in a second; none where the code is not one of the standard's.
    pub rate: Option<Rate>,
    /// MPEG-2: a sequence extension follows.
    pub mpeg2: bool,
}

/// Pictures in a second, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// So many pictures
    pub pictures: u32,
    /// in so many seconds; never 0.
    pub seconds: u32,
}

impl Rate {
    /// The rate as a player counts it; `None` where nobody could watch it.
    pub fn played(self) -> Option<crate::Rate> {
        let millis = u64::from(self.pictures) * 1000 / u64::from(self.seconds.max(1));
        crate::Rate::from_millis(u32::try_from(millis).ok()?)
    }

    /// When the picture with this number is shown, in ticks of a clock of `hertz` after picture 0.
    pub fn stamp(self, picture: u32, hertz: u32) -> u64 {
        let ticks = u128::from(picture) * u128::from(self.seconds) * u128::from(hertz);
        (ticks / u128::from(self.pictures.max(1))) as u64
    }
}

/// Why a stream is not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotVideo {
    /// No start code in its first [`LOOKED_AT`] bytes, or in all of it.
    NoStartCode,
    /// Start codes, but no sequence header (for H.264: no parameter set) among the first.
    NoSequence,
    /// An MPEG program stream: the video is inside packets of a multiplex.
    ProgramStream,
    /// An MPEG transport stream.
    TransportStream,
    /// Headers of more than [`LOOKED_AT`] bytes without a picture.
    EndlessHeaders,
}

/// How far into a stream its beginning may lie, and how long the headers of a picture may be, bytes.
pub const LOOKED_AT: usize = 65_536;

impl fmt::Display for NotVideo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoStartCode => "this is not video of MPEG-1, MPEG-2 or H.264: there is no start code",
            Self::NoSequence => "this is not a video elementary stream: no sequence header at its beginning",
            Self::ProgramStream => "this is an MPEG program stream: take the video out of it first",
            Self::TransportStream => "this is an MPEG transport stream: take the video out of it first",
            Self::EndlessHeaders => "the stream is damaged: headers without end and no picture",
        })
    }
}

impl core::error::Error for NotVideo {}

/// What a unit between two start codes is for the cutter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// A header that stands in front of a picture.
    Header,
    /// A slice.
    Slice,
    /// A slice that begins a picture even without a header.
    FirstSlice,
    /// Anything else: it belongs to the picture before it.
    Other,
}

/// What is known of a picture when its first slice begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Info {
    number: u32,
    kind: u8,
    /// The second field of a frame: its frame has begun already.
    second_field: bool,
    /// The first field of a frame: its frame goes on.
    first_field: bool,
    mpv: Option<rtp_mpv::Header>,
}

/// How much of a slice of H.264 tells its picture's type and place, bytes.
const SLICE_HEADER: usize = 32;

/// What a unit looks like in one of the codings. Units are given from behind the prefix 00 00 01.
#[derive(Debug)]
enum Syntax {
    Mpeg(mpeg::Mpeg),
    H264(annexb::H264),
}

impl Syntax {
    /// Bytes behind a prefix that must be there, or the stream's end, to class a unit.
    fn lookahead(&self) -> usize {
        match self {
            Self::Mpeg(_) => 1,
            Self::H264(_) => SLICE_HEADER,
        }
    }

    fn class(&self, unit: &[u8]) -> Class {
        match self {
            Self::Mpeg(_) => mpeg::class(unit),
            Self::H264(_) => annexb::class(unit),
        }
    }

    /// Whether a stream may begin with this unit.
    fn begins(&self, unit: &[u8]) -> bool {
        match self {
            Self::Mpeg(_) => mpeg::begins(unit),
            Self::H264(_) => annexb::begins(unit),
        }
    }

    /// A whole header.
    fn header(&mut self, unit: &[u8]) {
        match self {
            Self::Mpeg(mpeg) => mpeg.header(unit),
            Self::H264(h264) => h264.header(unit),
        }
    }

    /// A picture's first slice begins, or the stream ends behind headers (`slice` is empty).
    fn picture(&mut self, slice: &[u8]) -> Info {
        match self {
            Self::Mpeg(mpeg) => mpeg.picture(),
            Self::H264(h264) => h264.picture(slice),
        }
    }
}
