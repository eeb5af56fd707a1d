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

impl Device {
    /// What both can, with the address of the first.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        Self {
            address: self.address,
            mtu: self.mtu.min(other.mtu),
            gso: self.gso.min(other.gso),
            checksum_offload: self.checksum_offload && other.checksum_offload,
        }
    }
}

impl Default for Device {
    /// An Ethernet without any help.
    fn default() -> Self {
        Self { address: [2, 0, 0, 0, 0, 1], mtu: 1500, gso: 0, checksum_offload: false }
    }
}
