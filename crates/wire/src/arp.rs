//! ARP for IPv4 over Ethernet (RFC 826).
//! ```text
//!  0       2       4   5   6       8            14        18           24        28
//! +-------+-------+---+---+-------+------------+---------+------------+---------+
//! | 1     | 0x800 | 6 | 4 | oper. | sender MAC | sender  | target MAC | target  |
//! +-------+-------+---+---+-------+------------+---------+------------+---------+
//! ```

use crate::{MacAddr, ParseError, put, split};
use core::net::Ipv4Addr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, network_endian::U16};

/// Bytes of a packet.
pub const PACKET: usize = 28;

/// What an ARP packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Who has the target address?
    Request,
    /// The sender has.
    Reply,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    hardware: U16,
    protocol: U16,
    lengths: [u8; 2],
    operation: U16,
    sender_mac: MacAddr,
    sender: [u8; 4],
    target_mac: MacAddr,
    target: [u8; 4],
}

/// An ARP packet for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Request or reply.
    pub operation: Operation,
    /// The sender's Ethernet address.
    pub sender_mac: MacAddr,
    /// The sender's IPv4 address; unspecified in a probe (RFC 5227 §1.1).
    pub sender: Ipv4Addr,
    /// The target's Ethernet address; ignored in a request.
    pub target_mac: MacAddr,
    /// The address in question.
    pub target: Ipv4Addr,
}

impl Packet {
    /// Writes the packet to the front of `bytes`, which must have room for [`PACKET`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let operation = match self.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        let raw = Raw {
            hardware: U16::new(1),
            protocol: U16::new(crate::eth::IPV4),
            lengths: [6, 4],
            operation: U16::new(operation),
            sender_mac: self.sender_mac,
            sender: self.sender.octets(),
            target_mac: self.target_mac,
            target: self.target.octets(),
        };
        put(&raw, bytes);
    }
}

/// The packet at the front of `bytes`; padding behind it is ignored.
pub fn parse(bytes: &[u8]) -> Result<Packet, ParseError> {
    let (raw, _) = split::<Raw>(bytes, ParseError::ArpTruncated)?;
    if raw.hardware.get() != 1 || raw.protocol.get() != crate::eth::IPV4 || raw.lengths != [6, 4] {
        return Err(ParseError::ArpUnsupported);
    }
    let operation = match raw.operation.get() {
        1 => Operation::Request,
        2 => Operation::Reply,
        _ => return Err(ParseError::ArpUnsupported),
    };
    Ok(Packet {
        operation,
        sender_mac: raw.sender_mac,
        sender: raw.sender.into(),
        target_mac: raw.target_mac,
        target: raw.target.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_and_read_back(reply: bool, macs: [[u8; 6]; 2], addresses: [[u8; 4]; 2]) {
            let packet = Packet {
                operation: if reply { Operation::Reply } else { Operation::Request },
                sender_mac: MacAddr(macs[0]),
                sender: addresses[0].into(),
                target_mac: MacAddr(macs[1]),
                target: addresses[1].into(),
            };
            let mut bytes = [0; 46];
            packet.emit(&mut bytes);
            prop_assert_eq!(parse(&bytes), Ok(packet));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if bytes.len() < PACKET {
                prop_assert_eq!(parse(&bytes), Err(ParseError::ArpTruncated));
            }
            if let Ok(packet) = parse(&bytes) {
                let mut again = [0; PACKET];
                packet.emit(&mut again);
                prop_assert_eq!(&again[..], &bytes[..PACKET]);
            }
        }
    }

    #[test]
    fn other_hardware_is_refused() {
        let mut bytes = [0; PACKET];
        bytes[..8].copy_from_slice(&[0, 6, 8, 0, 6, 4, 0, 1]);
        assert_eq!(parse(&bytes), Err(ParseError::ArpUnsupported));
    }
}
