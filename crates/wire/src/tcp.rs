//! The TCP header (RFC 9293 §3.1).
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |          source port          |       destination port        |
//! +-------------------------------+-------------------------------+
//! |                        sequence number                        |
//! +---------------------------------------------------------------+
//! |                     acknowledgment number                     |
//! +-------+-------+---------------+-------------------------------+
//! |  data |       |C|E|U|A|P|R|S|F|                               |
//! | offset| rsrvd |W|C|R|C|S|S|Y|I|            window             |
//! |       |       |R|E|G|K|H|T|N|N|                               |
//! +-------+-------+---------------+-------------------------------+
//! |           checksum            |        urgent pointer         |
//! +-------------------------------+-------------------------------+
//! |                  options, padded (offset*4 - 20)              |
//! +---------------------------------------------------------------+
//! ```

use crate::checksum::{Accept, Sum, accepted};
use crate::{ParseError, put, split};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    network_endian::{U16, U32},
};

/// Bytes of a header without options.
pub const HEADER: usize = 20;
/// Where the checksum stands in the header.
pub const CHECKSUM: usize = 16;

/// The control bits, in the order of the drawing.
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 1;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 2;
    /// Reset the connection.
    pub const RST: u8 = 4;
    /// Push.
    pub const PSH: u8 = 8;
    /// The acknowledgment number counts.
    pub const ACK: u8 = 16;
    /// The urgent pointer counts.
    pub const URG: u8 = 32;
    /// ECN echo (RFC 3168).
    pub const ECE: u8 = 64;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 128;
}

/// The fixed part of the header as it stands in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    source: U16,
    destination: U16,
    seq: U32,
    ack: U32,
    offset: u8,
    /// The control bits ([`flag`]).
    pub flags: u8,
    window: U16,
    checksum: U16,
    urgent: U16,
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
    /// SEG.SEQ.
    pub fn seq(&self) -> u32 {
        self.seq.get()
    }
    /// SEG.ACK.
    pub fn ack(&self) -> u32 {
        self.ack.get()
    }
    /// SEG.WND, not scaled.
    pub fn window(&self) -> u16 {
        self.window.get()
    }
    /// SEG.UP.
    pub fn urgent(&self) -> u16 {
        self.urgent.get()
    }
    /// Bytes of the header with its options.
    pub fn header_len(&self) -> usize {
        usize::from(self.offset >> 4) * 4
    }
}

/// A segment whose lengths and checksum have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The fixed part of the header.
    pub header: &'a Header,
    /// The options as they stand in the packet: who keeps the connection's state reads them.
    pub options: &'a [u8],
    /// The data.
    pub payload: &'a [u8],
}

/// The segment in `bytes`, which is exactly what IP delivered. `pseudo(length)` is the sum of
/// the pseudo-header for that many bytes.
// RFC 9293 MUST-3.
pub fn parse(
    bytes: &[u8],
    accept: Accept,
    pseudo: impl FnOnce(u16) -> Sum,
) -> Result<Segment<'_>, ParseError> {
    let (header, rest) = split::<Header>(bytes, ParseError::TcpTruncated)?;
    let options = header.header_len().checked_sub(HEADER).ok_or(ParseError::TcpDataOffset)?;
    let (options, payload) = rest.split_at_checked(options).ok_or(ParseError::TcpDataOffset)?;
    let length = u16::try_from(bytes.len()).map_err(|_| ParseError::TcpDataOffset)?;
    if !accepted(pseudo(length), bytes, header.checksum.get(), accept) {
        return Err(ParseError::TcpChecksum);
    }
    Ok(Segment { header, options, payload })
}

/// What a header to be written says, without its options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emit {
    /// The sender's port.
    pub source: u16,
    /// The receiver's port.
    pub destination: u16,
    /// SEG.SEQ.
    pub seq: u32,
    /// SEG.ACK.
    pub ack: u32,
    /// The control bits ([`flag`]).
    pub flags: u8,
    /// SEG.WND, already scaled.
    pub window: u16,
    /// SEG.UP.
    pub urgent: u16,
    /// The checksum's field: zero while it is to be completed, or the folded pseudo-header
    /// sum when a device completes it.
    pub checksum: u16,
}

impl Emit {
    /// Writes the header for `options` bytes of options (a multiple of 4, which the caller
    /// writes behind it) to the front of `bytes`, which must have room for [`HEADER`] bytes.
    // RFC 9293 MUST-2.
    pub fn emit(&self, options: usize, bytes: &mut [u8]) {
        let header = Header {
            source: U16::new(self.source),
            destination: U16::new(self.destination),
            seq: U32::new(self.seq),
            ack: U32::new(self.ack),
            offset: (((HEADER + options) / 4) << 4) as u8,
            flags: self.flags,
            window: U16::new(self.window),
            checksum: U16::new(self.checksum),
            urgent: U16::new(self.urgent),
        };
        put(&header, bytes);
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

    fn sum(length: u16) -> Sum {
        pseudo(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), 6, length)
    }

    fn segment(emit: Emit, options: &[u8], data: &[u8]) -> Vec<u8> {
        let mut bytes = std::vec![0; HEADER];
        emit.emit(options.len(), &mut bytes);
        bytes.extend_from_slice(options);
        bytes.extend_from_slice(data);
        let checksum = sum(bytes.len() as u16).bytes(&bytes).checksum();
        bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    // RFC 9293 MUST-3.
    #[test]
    fn each_fault_has_its_name() {
        let good = segment(Emit::default(), &[], b"data");
        assert_eq!(parse(&good[..19], Accept::Full, sum), Err(ParseError::TcpTruncated));
        for (at, byte, fault) in [
            (12, 0x40, ParseError::TcpDataOffset),
            (12, 0x70, ParseError::TcpDataOffset),
            (23, 0, ParseError::TcpChecksum),
        ] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(parse(&bad, Accept::Full, sum), Err(fault), "byte {at} = {byte:#x}");
        }
    }

    proptest! {
        // RFC 9293 MUST-2.
        #[test]
        fn written_and_read_back(source: u16, destination: u16, seq: u32, ack: u32, flags: u8, window: u16, urgent: u16,
            options in 0usize..11, data in proptest::collection::vec(any::<u8>(), 0..64)) {
            let emit = Emit { source, destination, seq, ack, flags, window, urgent, checksum: 0 };
            let options = std::vec![1; 4 * options];
            let bytes = segment(emit, &options, &data);
            let read = parse(&bytes, Accept::Full, sum).unwrap();
            let h = read.header;
            let again = Emit { source: h.source(), destination: h.destination(), seq: h.seq(), ack: h.ack(),
                flags: h.flags, window: h.window(), urgent: h.urgent(), checksum: 0 };
            prop_assert_eq!((again, read.options, read.payload), (emit, &options[..], &data[..]));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(segment) = parse(&bytes, Accept::Verified, sum) {
                prop_assert_eq!(HEADER + segment.options.len() + segment.payload.len(), bytes.len());
            }
        }
    }
}
