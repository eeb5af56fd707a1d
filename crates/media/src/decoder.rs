//! What MPEG's stage asks of a decoder: it takes each packet as it comes (Scout §4.1: a packet
//! holds whole macroblocks), and pictures come out in the order they are shown.

use crate::Picture;
use alloc::boxed::Box;
use core::fmt;
use silk_path::{Framing, Message};

/// How a stream is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// MPEG-1 (ISO 11172-2) and MPEG-2 video (ISO 13818-2), as an elementary stream.
    Mpeg,
    /// H.264 (ISO 14496-10), with start codes (Annex B).
    H264,
}

/// The next bytes of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// Whole slices where the source cut at them; anything else is taken too. Hostile.
    pub bytes: &'a [u8],
    /// The stamp of the picture they belong to ([`silk_path::Framing::stamp`]).
    pub stamp: u32,
    /// The picture begins here.
    pub first: bool,
    /// The picture ends here.
    pub last: bool,
    /// Something before these bytes was lost.
    pub gap: bool,
}

impl<'a> Unit<'a> {
    /// What a message brings.
    pub(crate) fn of(msg: &'a Message<'_>) -> Self {
        let Framing { stamp, first, last, gap, .. } = msg.meta.framing;
        Self { bytes: msg.bytes(), stamp, first, last, gap }
    }
}

/// [`Framing::kind`] of an I picture: it needs no other (ISO 13818-2 §6.3.9).
pub const I_PICTURE: u8 = 1;

/// [`Framing::kind`] of a B picture: no other picture needs it (ISO 13818-2 §6.3.9).
pub const B_PICTURE: u8 = 3;

/// Memory for a stream, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// What a decoder keeps for itself.
    pub decoder: u64,
    /// A picture that has come out.
    pub picture: u64,
}

/// Why a decoder could not go on. The stream plays on with the next picture that can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// These bytes are no video of this coding.
    Malformed,
    /// A picture larger than may be.
    TooLarge,
    /// A kind of picture or stream that this player does not take: other than eight bits with chroma
    /// halved both ways, say.
    Unsupported,
    /// The decoder has no memory for it.
    NoMemory,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the stream is damaged",
            Self::TooLarge => "a picture is larger than this player takes",
            Self::Unsupported => "the stream is of a kind that this player does not take",
            Self::NoMemory => "there is no memory for another picture",
        })
    }
}

impl core::error::Error for DecodeError {}

/// A decoder of one stream.
pub trait Decoder: Send {
    /// Decodes the next bytes; what became complete goes to `shown`, in the order it is shown.
    /// Nothing that `unit` holds may make it panic, hang, or use more memory than its pictures.
    ///
    /// # Errors
    /// The first error met; what was decoded in spite of it has been given to `shown`.
    fn decode(&mut self, unit: Unit<'_>, shown: &mut dyn FnMut(Box<dyn Picture>)) -> Result<(), DecodeError>;

    /// Room for the bytes of `unit`, exactly as much, where this decoder would copy them before anything
    /// else, and not look at them earlier. Then whoever has them may copy them there, and look at them
    /// on the way (integrated layer processing: Scout §4.1), and go on with [`Self::decode_copied`], or,
    /// as if it had not asked, with nothing or with something else.
    fn room(&mut self, unit: &Unit<'_>) -> Option<&mut [u8]> {
        let _ = unit;
        None
    }

    /// As [`Self::decode`], for a unit whose bytes have been copied into the room that was given for it just
    /// before.
    ///
    /// # Errors
    /// As [`Self::decode`].
    fn decode_copied(
        &mut self,
        unit: Unit<'_>,
        shown: &mut dyn FnMut(Box<dyn Picture>),
    ) -> Result<(), DecodeError> {
        self.decode(unit, shown)
    }

    /// The stream has ended or jumps: what the decoder still holds goes to `shown`, and it begins
    /// anew.
    fn finish(&mut self, shown: &mut dyn FnMut(Box<dyn Picture>));

    /// Bytes the decoder itself holds beside its pictures.
    fn memory(&self) -> u64;
}
