//! The IPv6 header (RFC 8200 §3).
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+---------------+---------------------------------------+
//! |   6   | traffic class |              flow label               |
//! +-------+---------------+-------+---------------+---------------+
//! |        payload length         |  next header  |   hop limit   |
//! +-------------------------------+---------------+---------------+
//! |                       source (16 bytes)                       |
//! +---------------------------------------------------------------+
//! |                     destination (16 bytes)                    |
//! +---------------------------------------------------------------+
//! ```

use crate::put;
use core::net::Ipv6Addr;
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, network_endian::U16, network_endian::U32,
};

/// Bytes of the header.
pub const HEADER: usize = 40;
/// The largest payload: what the payload length can say.
pub const MAX_PAYLOAD: usize = 65535;

/// The header as it stands in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    pub(super) version_class_flow: U32,
    payload_len: U16,
    /// What follows the header: an extension header or the payload.
    pub next_header: u8,
    /// Hops left.
    pub hop_limit: u8,
    source: [u8; 16],
    destination: [u8; 16],
}

impl Header {
    /// The sender.
    pub fn source(&self) -> Ipv6Addr {
        self.source.into()
    }
    /// The receiver.
    pub fn destination(&self) -> Ipv6Addr {
        self.destination.into()
    }
    /// DSCP (upper six bits) and ECN (RFC 2474, RFC 3168).
    pub fn traffic_class(&self) -> u8 {
        (self.version_class_flow.get() >> 20) as u8
    }
    /// Names the flow to routers (RFC 6437): 20 bits.
    pub fn flow_label(&self) -> u32 {
        self.version_class_flow.get() & 0xf_ffff
    }
    /// Bytes behind the header.
    pub fn payload_len(&self) -> usize {
        self.payload_len.get().into()
    }
    /// The differentiated services code point.
    pub fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }
}

/// What a header to be written says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emit {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// The flow label; its lower 20 bits are used.
    pub flow_label: u32,
    /// What follows the header.
    pub next_header: u8,
    /// Hops left.
    pub hop_limit: u8,
    /// The sender.
    pub source: Ipv6Addr,
    /// The receiver.
    pub destination: Ipv6Addr,
    /// Bytes behind the header.
    pub payload_len: u16,
}

impl Default for Emit {
    /// A full hop limit, to be completed.
    fn default() -> Self {
        Self {
            traffic_class: 0,
            flow_label: 0,
            next_header: 0,
            hop_limit: 64,
            source: Ipv6Addr::UNSPECIFIED,
            destination: Ipv6Addr::UNSPECIFIED,
            payload_len: 0,
        }
    }
}

impl Emit {
    /// Writes the header to the front of `bytes`, which must have room for [`HEADER`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff;
        let header = Header {
            version_class_flow: U32::new(first),
            payload_len: U16::new(self.payload_len),
            next_header: self.next_header,
            hop_limit: self.hop_limit,
            source: self.source.octets(),
            destination: self.destination.octets(),
        };
        put(&header, bytes);
    }
}
