//! What crosses the border of the machine: a received segment, already parsed and checked by
//! whoever read the bytes, and the header of a segment to be sent (RFC 9293 §3.1). No bytes are
//! read or written here, and ports and checksums are none of this crate's business.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

use crate::codepoint::Codepoint;
use crate::options::Options;
use crate::seq::SeqNumber;

/// The control bits of a segment, as on the wire (RFC 9293 §3.1, RFC 3168 §6.1).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// No control bit.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push function.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168 §6.1).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: Self = Self(0x80);

    /// The flags of a wire byte.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
    /// The wire byte.
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// These flags without those of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// Whether FIN is set.
    pub const fn fin(self) -> bool {
        self.contains(Self::FIN)
    }
    /// Whether SYN is set.
    pub const fn syn(self) -> bool {
        self.contains(Self::SYN)
    }
    /// Whether RST is set.
    pub const fn rst(self) -> bool {
        self.contains(Self::RST)
    }
    /// Whether ACK is set.
    pub const fn ack(self) -> bool {
        self.contains(Self::ACK)
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let mut separator = "";
        for (_, name) in NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0) {
            write!(f, "{separator}{name}")?;
            separator = "|";
        }
        Ok(())
    }
}

/// A segment as it was received: the fields of its header and a view of its text.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Sequence number of the first octet, or of the SYN.
    pub seq: SeqNumber,
    /// The next sequence number its sender expects; significant with ACK.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// The window field, not yet scaled.
    pub window: u16,
    /// The urgent pointer: how far behind `seq` urgent data ends (RFC 6093 §3.1); significant with URG.
    pub urgent: u16,
    /// The ECN codepoint of the packet it came in.
    pub ecn: Codepoint,
    /// The options.
    pub options: Options,
    /// The text.
    pub payload: &'a [u8],
}

impl Segment<'_> {
    /// SEG.LEN: octets of text, with SYN and FIN counted (RFC 9293 §3.4).
    pub fn sequence_len(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.flags.syn()) + u32::from(self.flags.fin())
    }

    /// The sequence number after the last one this segment occupies.
    pub fn end(&self) -> SeqNumber {
        self.seq + self.sequence_len()
    }
}

/// The header of a segment to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Sequence number of the first octet, or of the SYN.
    pub seq: SeqNumber,
    /// The next sequence number expected; significant with ACK.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// The window field, already scaled.
    pub window: u16,
    /// The urgent pointer; zero without URG.
    pub urgent: u16,
    /// The options.
    pub options: Options,
}

/// A segment to be sent: a header, and where its text lies in the send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its header. With `gso_size` it is the header of the first segment; FIN and PSH belong to the
    /// last, which is how segmentation offload treats them.
    pub header: Header,
    /// Octets into the send buffer, counted from its first unacknowledged octet.
    pub offset: usize,
    /// Octets of text.
    pub len: usize,
    /// Zero for one segment; otherwise the text is to be cut into segments of this many octets.
    pub gso_size: u16,
    /// The ECN codepoint to send it with.
    pub ecn: Codepoint,
}

/// The reset that answers a segment no connection owns, if one may be sent (RFC 9293 §3.10.7.1). A
/// reset never answers a reset.
pub fn reset_for(seg: &Segment) -> Option<Header> {
    if seg.flags.rst() {
        return None;
    }
    let (seq, ack, flags) = if seg.flags.ack() {
        (seg.ack, SeqNumber::default(), Flags::RST)
    } else {
        (SeqNumber::default(), seg.end(), Flags::RST | Flags::ACK)
    };
    Some(Header { seq, ack, flags, window: 0, urgent: 0, options: Options::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn segment(flags: Flags, payload: &[u8]) -> Segment<'_> {
        let options = Options::default();
        let (seq, ack) = (SeqNumber::new(100), SeqNumber::new(700));
        Segment { seq, ack, flags, window: 10, urgent: 0, ecn: Codepoint::NotEct, options, payload }
    }

    #[test]
    fn syn_and_fin_occupy_sequence_numbers() {
        assert_eq!(segment(Flags::SYN | Flags::FIN, b"abc").sequence_len(), 5);
        assert_eq!(segment(Flags::ACK, b"abc").end(), SeqNumber::new(103));
    }

    #[test]
    fn a_stray_acknowledgement_is_reset_at_its_own_number() {
        let reset = reset_for(&segment(Flags::ACK, b"abc")).unwrap();
        assert_eq!((reset.seq.raw(), reset.flags), (700, Flags::RST));
    }

    #[test]
    fn a_stray_syn_is_reset_and_acknowledged() {
        let reset = reset_for(&segment(Flags::SYN, b"")).unwrap();
        assert_eq!((reset.seq.raw(), reset.ack.raw(), reset.flags), (0, 101, Flags::RST | Flags::ACK));
    }

    #[test]
    fn a_reset_is_never_answered() {
        assert_eq!(reset_for(&segment(Flags::RST | Flags::ACK, b"")), None);
    }

    #[test]
    fn flags_print_as_names() {
        assert_eq!(format!("{:?}", Flags::SYN | Flags::ACK), "SYN|ACK");
    }
}
