//! The UDP header (RFC 768).
//! ```text
//!  0               2               4               6               8
//! +---------------+---------------+---------------+---------------+------
//! |  source port  |   dest. port  |    length     |   checksum    | data
//! +---------------+---------------+---------------+---------------+------
//! ```
//! A checksum of zero means that the sender computed none; a computed zero is sent as 0xffff.

use crate::checksum::{Accept, Sum, accepted_unread, is_right};
use crate::{ParseError, put, split};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, network_endian::U16};

/// Bytes of the header.
pub const HEADER: usize = 8;
/// Where the checksum stands in the header.
pub const CHECKSUM: usize = 6;

/// The header as it stands in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    source: U16,
    destination: U16,
    length: U16,
    checksum: U16,
}

impl Header {
    /// The sender's port.
    pub fn source(&self) -> u16 {
        self.source.get()
    }
    /// The receiver's port.
    pub fn destination(&self) -> u16 {
        self.destination.get()
    }
    /// The sender computed no checksum, which IPv6 does not allow (RFC 8200 §8.1).
    pub fn is_unsummed(&self) -> bool {
        self.checksum.get() == 0
    }
}

/// The datagram in `bytes` and its data. `pseudo(length)` is the sum of the pseudo-header for
/// that many bytes; it is asked for only when there is a checksum to check.
pub fn parse(
    bytes: &[u8],
    accept: Accept,
    pseudo: impl FnOnce(u16) -> Sum,
) -> Result<(&Header, &[u8]), ParseError> {
    let (header, data, unsummed) = parse_unread(bytes, accept, pseudo)?;
    match unsummed {
        Some(pseudo) if !is_right(pseudo.bytes(&bytes[..HEADER + data.len()])) => {
            Err(ParseError::UdpChecksum)
        }
        _ => Ok((header, data)),
    }
}

/// As [`parse`], for whoever sums the datagram later: where its checksum is not known to be good
/// without a look at the data, the pseudo-header's sum comes with it.
pub fn parse_unread(
    bytes: &[u8],
    accept: Accept,
    pseudo: impl FnOnce(u16) -> Sum,
) -> Result<(&Header, &[u8], Option<Sum>), ParseError> {
    let (header, rest) = split::<Header>(bytes, ParseError::UdpTruncated)?;
    let length = header.length.get();
    let data = usize::from(length).checked_sub(HEADER).ok_or(ParseError::UdpLength)?;
    let data = rest.get(..data).ok_or(ParseError::UdpLength)?;
    let field = header.checksum.get();
    // Who is told that it is verified need not even ask.
    let unsummed = if field == 0 || accept == Accept::Verified { None } else { Some(pseudo(length)) };
    Ok((header, data, unsummed.filter(|pseudo| !accepted_unread(*pseudo, field, accept))))
}

/// Writes a header for `data_len` bytes of data to the front of `bytes`, with `checksum` in
/// its field: zero while it is to be completed with [`seal`], or the folded pseudo-header sum
/// when a device completes it. Room for [`HEADER`] bytes.
pub fn emit(source: u16, destination: u16, data_len: u16, checksum: u16, bytes: &mut [u8]) {
    let header = Header {
        source: U16::new(source),
        destination: U16::new(destination),
        length: U16::new(data_len.saturating_add(HEADER as u16)),
        checksum: U16::new(checksum),
    };
    put(&header, bytes);
}

/// What stands in the field for the sum `whole` of pseudo-header, header and data.
pub const fn seal(whole: Sum) -> u16 {
    match whole.checksum() {
        0 => 0xffff,
        checksum => checksum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use crate::checksum::pseudo;
    use core::net::Ipv4Addr;
    use proptest::prelude::*;
    use std::vec::Vec;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn sum(length: u16) -> Sum {
        pseudo(A, B, 17, length)
    }

    fn datagram(source: u16, destination: u16, data: &[u8]) -> Vec<u8> {
        let mut bytes = std::vec![0; HEADER];
        bytes.extend_from_slice(data);
        emit(source, destination, data.len() as u16, 0, &mut bytes);
        let checksum = seal(sum(bytes.len() as u16).bytes(&bytes));
        bytes[CHECKSUM..HEADER].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    #[test]
    fn each_fault_has_its_name() {
        let mut bytes = datagram(7, 9, b"hello");
        assert_eq!(parse(&bytes[..7], Accept::Full, sum), Err(ParseError::UdpTruncated));
        assert_eq!(parse(&bytes[..12], Accept::Full, sum), Err(ParseError::UdpLength));
        bytes[12] ^= 1;
        assert_eq!(parse(&bytes, Accept::Full, sum), Err(ParseError::UdpChecksum));
        bytes[CHECKSUM..HEADER].fill(0);
        assert!(parse(&bytes, Accept::Full, sum).is_ok(), "no checksum, nothing to check");
        bytes[5] = 7;
        assert_eq!(parse(&bytes, Accept::Full, sum), Err(ParseError::UdpLength));
    }

    proptest! {
        #[test]
        fn written_and_read_back(source: u16, destination: u16, data in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut bytes = datagram(source, destination, &data);
            bytes.extend_from_slice(b"padding");
            let (header, read) = parse(&bytes, Accept::Full, sum).unwrap();
            prop_assert_eq!((header.source(), header.destination(), read), (source, destination, &data[..]));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok((_, data)) = parse(&bytes, Accept::Verified, sum) {
                prop_assert!(data.len() + HEADER <= bytes.len());
            }
        }
    }
}
