//! What the control thread and the executors call things by.

use silk_control::SlotNumber;

/// A family's place in every executor's tables.
pub type FamilyIndex = u32;

/// A family and a process of it.
pub type Holder = (FamilyIndex, u32);

/// A socket as the control thread names it to an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketName {
    /// The family it belongs to.
    pub family: FamilyIndex,
    /// Its slot there.
    pub slot: SlotNumber,
}

impl SocketName {
    /// As its path's attributes have it ([`silk_path::Attr::Owner`]).
    pub fn as_owner(self) -> u64 {
        u64::from(self.family) << 32 | u64::from(self.slot)
    }

    /// The socket that a path's attributes name.
    pub fn of_owner(owner: u64) -> Self {
        Self { family: (owner >> 32) as u32, slot: owner as u32 }
    }
}
