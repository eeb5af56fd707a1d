//! The virtio-net header (virtio 1.2 §5.1.6, the 10-byte legacy form in host byte order) that
//! tap and `AF_PACKET` put before every frame, both ways.
//!
//! ```text
//!  0      1          2              4              6               8               10
//! | flags | gso type | header length | segment size | checksum start | checksum offset |
//! ```

use crate::{Checksum, Offload, Segment, segment};

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

/// How the received `frame` is to be cut that is several datagrams (`UDP_SEGMENT`, UDP GRO); `None`
/// for any other. Where the headers end is not believed: it is where UDP's does. That is told with a checksum to complete
/// alone, and not of datagrams whose checksums Linux has found right (`rx-gro-list`): it is looked for then.
pub(crate) fn datagrams(header: &[u8; LEN], frame: &[u8]) -> Option<Offload> {
    let field = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let (size, told) = (field(4), header[0] & NEEDS_CHECKSUM != 0);
    if header[1] != UDP || size == 0 {
        return None;
    }
    let found = if told { None } else { segment::datagrams(frame, size) };
    // What is not where it is said to be, or nowhere, is not cut.
    Some(found.unwrap_or(Offload {
        segment: Segment::Udp(size),
        header_len: field(6).saturating_add(8),
        ..Offload::checksum(field(6), 6)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Refusal;

    #[test]
    fn a_large_tcp_message_asks_for_segments_and_checksums() {
        let header = encode(Offload::tcp4(1448, 34, 66));
        assert_eq!(header[..2], [NEEDS_CHECKSUM, TCP4]);
        assert_eq!(header[2..], [66u16, 1448, 34, 16].map(u16::to_ne_bytes).concat());
        assert_eq!(decode(&header), (Checksum::Partial, 1448));
    }

    #[test]
    fn a_batch_of_datagrams_says_where_to_cut() {
        let offload = Offload { segment: Segment::Udp(100), header_len: 42, ..Offload::checksum(34, 6) };
        assert_eq!(datagrams(&encode(offload), &[]), Some(offload));
        assert_eq!(datagrams(&encode(Offload::tcp4(1448, 34, 66)), &[]), None);
        assert_eq!(datagrams(&encode(Offload::checksum(34, 6)), &[]), None);
    }

    #[test]
    fn where_a_batch_has_its_headers_is_looked_for_where_it_is_not_told() {
        let offload = Offload { segment: Segment::Udp(100), header_len: 46, ..Offload::checksum(38, 6) };
        let header =
            [&[CHECKSUM_VALID, UDP][..], &[42u16, 100, 0, 0].map(u16::to_ne_bytes).concat()].concat();
        let header = header.first_chunk().unwrap();
        // With four bytes of options.
        let frame = [&[0; 12][..], &[8, 0, 0x46], &[0; 8], &[17], &[0; 222]].concat();
        assert_eq!(datagrams(header, &frame), Some(offload));
        let cut =
            |frame: &[u8]| segment::cut(frame, datagrams(header, frame).unwrap(), &mut Vec::new(), |_| {});
        assert_eq!(cut(&frame), Ok(()));
        assert_eq!(cut(&frame[..30]), Err(Refusal::Malformed));
        assert_eq!(cut(&[]), Err(Refusal::Malformed));
    }

    #[test]
    fn a_complete_packet_asks_for_nothing() {
        assert_eq!(encode(Offload::NONE), [0; LEN]);
        assert_eq!(decode(&[0; LEN]), (Checksum::Unknown, 0));
        assert_eq!(decode(&[2, 0, 0, 0, 9, 9, 0, 0, 0, 0]), (Checksum::Verified, 0));
    }
}
