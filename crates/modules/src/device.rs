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
    /// The Ethernet address of the device by which what is sent to ourselves comes back: one of none's, administered locally.
    pub const ITSELF: [u8; 6] = [2, 0, 0, 0, 0, 0];

    /// The device by which what is sent to ourselves comes back: packets may be as long as they can be, and are not even summed.
    pub fn itself() -> Self {
        Self { address: Self::ITSELF, mtu: u16::MAX, gso: u16::MAX.into(), checksum_offload: true }
    }

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
