//! The Ethernet II header (IEEE 802.3, RFC 894).
//! ```text
//!  0                   6                   12      14
//! +-------------------+-------------------+-------+----------
//! |    destination    |      source       | kind  | payload
//! +-------------------+-------------------+-------+----------
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
}

/// The header and the payload behind it (padding included).
pub fn parse(bytes: &[u8]) -> Result<(&Header, &[u8]), ParseError> {
    split(bytes, ParseError::EthTruncated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        }
    }
}
