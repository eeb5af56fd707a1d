//! What a connection that a program opens has before its first packet is sent.

use silk_stream::Slot;
use std::sync::atomic::Ordering::SeqCst;

/// What a connection has before its first packet is sent.
#[derive(Clone, Copy, Debug)]
pub struct First {
    /// `IP_TOS`.
    pub service: u32,
    /// The words of the wishes.
    pub wishes: silk_control::Wishes,
    /// The priority of its path; `None`: that of its class.
    pub priority: Option<u8>,
}

impl First {
    /// What a named path of the graph says.
    pub fn of_path(service: u8, priority: Option<u8>) -> Self {
        Self { service: service.into(), wishes: silk_control::Wishes::default(), priority }
    }

    /// Writes it into the slot, where the executor reads it.
    pub fn store(&self, slot: &Slot) {
        slot.service.store(self.service, SeqCst);
        slot.wishes.put_all(&self.wishes);
    }
}
