//! The Ethernet II header (IEEE 802.3, RFC 894), and the tag of a virtual LAN that may stand in it
//! (IEEE 802.1Q-2018 §9.6).
//! ```text
//!  0                   6                   12      14
//! +-------------------+-------------------+-------+----------
//! |    destination    |      source       | kind  | payload
//! +-------------------+-------------------+-------+----------
//!
//!  0                   6                   12      14      16      18
//! +-------------------+-------------------+-------+-------+-------+----------
//! |    destination    |      source       | 8100  |  TCI  | kind  | payload
//! +-------------------+-------------------+-------+-------+-------+----------
//!
//!           15        13   12  11                     0
//! TCI      | priority  | DEI |  VID: which virtual LAN  |
//! ```

use crate::{MacAddr, ParseError, put, split};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, network_endian::U16};

/// Bytes of the header.
pub const HEADER: usize = 14;
/// The kind of IPv4 (RFC 894).
pub const IPV4: u16 = 0x0800;
/// The kind of IPv6 (RFC 2464).
pub const IPV6: u16 = 0x86dd;
/// The kind of ARP (RFC 826).
pub const ARP: u16 = 0x0806;
/// What stands in the kind's place where a tag follows (IEEE 802.1Q-2018 table 9-1).
pub const TAGGED: u16 = 0x8100;
/// Bytes of a tag.
pub const TAG: usize = 4;
/// The bits of a tag that say which virtual LAN.
pub const VID: u16 = 0x0fff;

/// The header as it stands in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Who is to receive it.
    pub destination: MacAddr,
    /// Who sent it.
    pub source: MacAddr,
    kind: U16,
}

impl Header {
    /// A header for a payload of `kind`.
    pub fn new(destination: MacAddr, source: MacAddr, kind: u16) -> Self {
        Self { destination, source, kind: U16::new(kind) }
    }

    /// What the payload is ([`IPV4`], [`ARP`], …).
    pub fn kind(&self) -> u16 {
        self.kind.get()
    }

    /// Writes the header to the front of `bytes`, which must have room for [`HEADER`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        put(self, bytes);
    }

    /// The same for a frame of the virtual LAN `vid`, 0: of none. `bytes` must have room for
    /// [`length`]`(vid)` bytes.
    pub fn emit_on(&self, vid: u16, bytes: &mut [u8]) {
        if vid == 0 {
            return self.emit(bytes);
        }
        Self { kind: U16::new(TAGGED), ..*self }.emit(bytes);
        bytes[HEADER..HEADER + 2].copy_from_slice(&(vid & VID).to_be_bytes());
        bytes[HEADER + 2..HEADER + TAG].copy_from_slice(&self.kind().to_be_bytes());
    }
}

/// Bytes of the header of a frame that is sent on the virtual LAN `vid`, 0: on none.
pub const fn length(vid: u16) -> usize {
    if vid == 0 { HEADER } else { HEADER + TAG }
}

/// A frame whose header, and tag if there is one, have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'p> {
    /// The header.
    pub header: &'p Header,
    /// Which virtual LAN it is of; 0: of none, as a frame without a tag and one whose tag carries
    /// a priority alone (IEEE 802.1Q-2018 §6.9).
    pub vid: u16,
    /// What the payload is.
    pub kind: u16,
    /// What is behind the header, padding included.
    pub payload: &'p [u8],
}

/// The frame in `bytes`. A second tag is a payload of kind [`TAGGED`].
pub fn frame(bytes: &[u8]) -> Result<Frame<'_>, ParseError> {
    let (header, payload) = parse(bytes)?;
    if header.kind() != TAGGED {
        return Ok(Frame { header, vid: 0, kind: header.kind(), payload });
    }
    match payload {
        [a, b, c, d, payload @ ..] => {
            let word = |high: &u8, low: &u8| u16::from_be_bytes([*high, *low]);
            Ok(Frame { header, vid: word(a, b) & VID, kind: word(c, d), payload })
        }
        _ => Err(ParseError::EthTruncated),
    }
}

/// The header and the payload behind it (padding included).
pub fn parse(bytes: &[u8]) -> Result<(&Header, &[u8]), ParseError> {
    split(bytes, ParseError::EthTruncated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_priority_alone_is_no_virtual_lan() {
        let mut bytes = [0; HEADER + TAG];
        bytes[12..].copy_from_slice(&[0x81, 0, 0xf0, 0, 8, 0]);
        let read = frame(&bytes).unwrap();
        assert_eq!((read.vid, read.kind, read.payload), (0, IPV4, &[][..]));
    }

    proptest! {
        #[test]
        fn written_and_read_back(destination: [u8; 6], source: [u8; 6], kind: u16) {
            let header = Header::new(MacAddr(destination), MacAddr(source), kind);
            let mut bytes = [0xaa; HEADER + 1];
            header.emit(&mut bytes);
            prop_assert_eq!(parse(&bytes), Ok((&header, &[0xaa][..])));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(parse(&bytes).is_ok(), bytes.len() >= HEADER);
            let least = if bytes.get(12..14) == Some(&[0x81, 0]) { HEADER + TAG } else { HEADER };
            prop_assert_eq!(frame(&bytes).is_ok(), bytes.len() >= least);
        }

        #[test]
        fn a_tag_is_written_and_read_back(kind: u16, vid in 0..=VID) {
            prop_assume!(vid != 0 || kind != TAGGED);
            let header = Header::new(MacAddr([1; 6]), MacAddr([2; 6]), kind);
            let mut bytes = [0xaa; HEADER + TAG + 1];
            header.emit_on(vid, &mut bytes);
            let read = frame(&bytes).unwrap();
            prop_assert_eq!((read.vid, read.kind), (vid, kind));
            prop_assert_eq!(read.payload, &bytes[length(vid)..]);
            prop_assert_eq!((read.header.destination, read.header.source), (header.destination, header.source));
        }
    }
}
