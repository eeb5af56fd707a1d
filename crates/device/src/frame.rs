//! A received frame as a ticket: a small copyable name for a buffer that the device owns.
//! Queues hold tickets and never bytes. A ticket must never outlive its release: the device
//! refuses the bytes of a frame that its domain does not hold.

use core::ops::Range;

/// The name of one received frame, and what the device knows about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which buffer of the device.
    pub index: u32,
    /// Which device, where an end is several: a number from 0.
    pub device: u8,
    /// Where the frame begins in that buffer, in bytes.
    pub offset: u32,
    /// How long the frame is, in bytes, from its Ethernet header on.
    pub len: u32,
    /// The value word of the flow table entry that the XDP program found, 0 when it found
    /// none or there is no such program (Scout §3.4: the path id at a known place).
    pub path: u32,
    /// The payload bytes of each of the segments this frame was coalesced from; 0 when it
    /// is one packet as it was on the wire, or the device does not know (xdp).
    pub segment: u16,
    /// What is known about the transport checksum.
    pub checksum: Checksum,
}

impl Frame {
    /// Where the frame lies in the bytes that [`Receive::bytes`](crate::Receive::bytes) gives.
    pub const fn range(&self) -> Range<usize> {
        self.offset as usize..self.offset as usize + self.len as usize
    }
}

/// What a device says about the transport checksum of a received frame. It never speaks
/// about the checksum of the IP header, which the receiver always verifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// Nothing is known: verify it.
    #[default]
    Unknown,
    /// Verify it, but accept exactly the folded, uncomplemented pseudo-header sum as well:
    /// the interface is a veth or a tap, whose other end may leave the rest to hardware that
    /// does not exist, and XDP shows no flag for it.
    MaybePartial,
    /// The sender left it to hardware and shares this machine: the field holds the
    /// pseudo-header sum and the bytes never crossed a wire.
    Partial,
    /// The kernel or the hardware verified it.
    Verified,
}
