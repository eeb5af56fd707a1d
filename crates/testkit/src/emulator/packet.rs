//! What goes over a link: bytes alone, or bytes with what somebody else has to know of them, such as
//! the device that they came over. It is all that the emulator asks of them.

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

impl Packet for Vec<u8> {
    fn length(&self) -> usize {
        self.len()
    }

    fn turn_over(&mut self, bit: usize) {
        self[bit / 8] ^= 1 << (bit % 8);
    }
}
