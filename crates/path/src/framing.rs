//! Application-level framing (Clark and Tennenhouse 1990; Scout §4.1): a source that cuts its
//! data where the application can use each piece says with every packet which unit it belongs
//! to. The protocol that carries this reads it out of its header; the stages above use it.

/// Which unit of the application's data a message belongs to. All zero where no protocol said so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// The unit's time or number, in the protocol's own counting: MFLOW numbers pictures in the
    /// order they are shown, RTP stamps them in ticks of 1/90 000 s. Wraps.
    pub stamp: u32,
    /// What the unit is, in the codec's numbering: for MPEG video 1 is an I picture, 2 a P, 3 a B
    /// (ISO 13818-2 §6.3.9); 0: not told.
    pub kind: u8,
    /// The unit begins with this message.
    pub first: bool,
    /// The unit ends with this message.
    pub last: bool,
    /// At least one message is missing before this one.
    pub gap: bool,
    /// How the unit is coded.
    pub coded: Coded,
}

/// How video is coded, as far as what carries it tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coded {
    /// It does not.
    #[default]
    Untold,
    /// MPEG-1 or MPEG-2 video.
    Mpeg,
    /// H.264.
    H264,
}
