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
