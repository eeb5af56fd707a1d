//! The virtio-net header (virtio 1.2 §5.1.6, the 10-byte legacy form in host byte order) that
//! tap and `AF_PACKET` put before every frame, both ways.
//!
//! ```text
//!  0      1          2              4              6               8               10
//! | flags | gso type | header length | segment size | checksum start | checksum offset |
//! ```

use crate::{Checksum, Offload, Segment};

/// Bytes of the header.
pub(crate) const LEN: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const CHECKSUM_VALID: u8 = 2;
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const UDP: u8 = 5;

/// The header that asks for `offload`.
pub(crate) fn encode(offload: Offload) -> [u8; LEN] {
    let (kind, size) = match offload.segment {
        Segment::Whole => (0, 0),
        Segment::Tcp4(size) => (TCP4, size),
        Segment::Tcp6(size) => (TCP6, size),
        Segment::Udp(size) => (UDP, size),
    };
    let mut header = [0; LEN];
    if offload.checksum_start != 0 {
        header[0] = NEEDS_CHECKSUM;
    }
    header[1] = kind;
    let fields = [offload.header_len, size, offload.checksum_start, offload.checksum_offset];
    for (to, field) in header[2..].chunks_exact_mut(2).zip(fields) {
        to.copy_from_slice(&field.to_ne_bytes());
    }
    header
}

/// What the header of a received frame says: the checksum's state and the segment size (0
/// for a single packet).
pub(crate) fn decode(header: &[u8; LEN]) -> (Checksum, u16) {
    let checksum = match header[0] {
        flags if flags & NEEDS_CHECKSUM != 0 => Checksum::Partial,
        flags if flags & CHECKSUM_VALID != 0 => Checksum::Verified,
        _ => Checksum::Unknown,
    };
    let size = if header[1] == 0 { 0 } else { u16::from_ne_bytes([header[4], header[5]]) };
    (checksum, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_tcp_message_asks_for_segments_and_checksums() {
        let header = encode(Offload::tcp4(1448, 34, 66));
        assert_eq!(header[..2], [NEEDS_CHECKSUM, TCP4]);
        assert_eq!(header[2..], [66u16, 1448, 34, 16].map(u16::to_ne_bytes).concat());
        assert_eq!(decode(&header), (Checksum::Partial, 1448));
    }

    #[test]
    fn a_complete_packet_asks_for_nothing() {
        assert_eq!(encode(Offload::NONE), [0; LEN]);
        assert_eq!(decode(&[0; LEN]), (Checksum::Unknown, 0));
        assert_eq!(decode(&[2, 0, 0, 0, 9, 9, 0, 0, 0, 0]), (Checksum::Verified, 0));
    }
}
