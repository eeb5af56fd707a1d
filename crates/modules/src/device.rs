//! What the modules need to know of a device: plain figures, no handle.

/// A device as the bottom of a graph sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its Ethernet address.
    pub address: [u8; 6],
    /// The largest IP packet, in bytes.
    pub mtu: u16,
    /// The largest message it cuts into packets itself, in bytes; 0: none.
    pub gso: u32,
    /// It completes transport checksums.
    pub checksum_offload: bool,
}

impl Default for Device {
    /// An Ethernet without any help.
    fn default() -> Self {
        Self { address: [2, 0, 0, 0, 0, 1], mtu: 1500, gso: 0, checksum_offload: false }
    }
}
