//! What a sender leaves to the device: the transport checksum, and cutting one large TCP or
//! UDP message into packets (GSO). In the terms of virtio-net (virtio 1.2 §5.1.6), which is
//! what tap and `AF_PACKET` speak. It must never be more than a promise about the bytes
//! given with it: a wrong one is refused by the kernel, not believed.

/// Work left to the device for one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// How to cut the message up.
    pub segment: Segment,
    /// Bytes of all headers, Ethernet to transport with options; read only when the message
    /// is to be cut up.
    pub header_len: u16,
    /// Where the transport header begins, in bytes from the start of the frame; 0 when the
    /// checksum is already complete.
    pub checksum_start: u16,
    /// Where the checksum field lies, in bytes from `checksum_start` (TCP 16, UDP 6). The
    /// field must hold the folded, uncomplemented pseudo-header sum.
    pub checksum_offset: u16,
}

/// How a message is cut into packets. The sizes are payload bytes per packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Segment {
    /// It is one packet.
    #[default]
    Whole,
    /// TCP over IPv4.
    Tcp4(u16),
    /// TCP over IPv6.
    Tcp6(u16),
    /// UDP over either, each packet one datagram.
    Udp(u16),
}

impl Segment {
    /// Payload bytes per packet; 0 for a message that is one packet.
    pub const fn size(self) -> u16 {
        match self {
            Self::Whole => 0,
            Self::Tcp4(size) | Self::Tcp6(size) | Self::Udp(size) => size,
        }
    }
}

impl Offload {
    /// Nothing left to do: one packet, its checksums complete.
    pub const NONE: Self =
        Self { segment: Segment::Whole, header_len: 0, checksum_start: 0, checksum_offset: 0 };

    /// One packet whose transport checksum, `offset` bytes into the header at `start`, is
    /// left to the device.
    pub const fn checksum(start: u16, offset: u16) -> Self {
        Self { checksum_start: start, checksum_offset: offset, ..Self::NONE }
    }

    /// A TCP message over IPv4 to be cut into packets of `size` payload bytes; the headers
    /// are `header_len` bytes, of which TCP's begins at `tcp`.
    pub const fn tcp4(size: u16, tcp: u16, header_len: u16) -> Self {
        Self { segment: Segment::Tcp4(size), header_len, checksum_start: tcp, checksum_offset: 16 }
    }
}
