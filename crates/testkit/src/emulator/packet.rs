//! What goes over a link: bytes alone, or bytes with what somebody else has to know of them, such as
//! the device that they came over. It is all that the emulator asks of them.

use silk_wire::eth;

/// Something that a link carries.
pub trait Packet: Clone {
    /// How many bytes it has on the line.
    fn length(&self) -> usize;

    /// So many of them are not counted where a packet may be too long for the link: a tag of Ethernet's (IEEE 802.1Q).
    fn tag(&self) -> usize {
        0
    }

    /// Turns one of its bits over, counted from the first byte's lowest on; there is such a bit.
    fn turn_over(&mut self, bit: usize);
}

/// Bytes of the tag of an Ethernet frame; 0: it has none, or is none.
pub(crate) fn tag_of(frame: &[u8]) -> usize {
    let is_tagged = eth::frame(frame).is_ok_and(|frame| frame.header.kind() == eth::TAGGED);
    if is_tagged { eth::TAG } else { 0 }
}

impl Packet for Vec<u8> {
    fn length(&self) -> usize {
        self.len()
    }

    fn tag(&self) -> usize {
        tag_of(self)
    }

    fn turn_over(&mut self, bit: usize) {
        self[bit / 8] ^= 1 << (bit % 8);
    }
}
