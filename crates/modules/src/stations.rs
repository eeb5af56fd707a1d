//! Our Ethernet addresses: of what modules read frames for, and write them from.

use crate::Device;
use alloc::vec::Vec;
use silk_wire::MacAddr;

/// Our address at each device.
pub(crate) struct Stations(Vec<MacAddr>);

impl Stations {
    /// Those of these devices.
    pub fn of(devices: &[Device]) -> Self {
        Self(devices.iter().map(|device| MacAddr(device.address)).collect())
    }

    /// Ours at a device, where there is one.
    pub fn at(&self, device: u8) -> Option<MacAddr> {
        self.0.get(usize::from(device)).copied()
    }

    /// It is another from now on.
    pub fn become_another(&mut self, device: u8, address: [u8; 6]) {
        if let Some(station) = self.0.get_mut(usize::from(device)) {
            *station = MacAddr(address);
        }
    }
}
