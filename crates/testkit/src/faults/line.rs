//! The line before a device, shared between the half that carries frames over it and whoever asks
//! what became of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use silk_instant::Instant;

use super::Carried;
use crate::emulator::{Conditions, Counts, Link};

/// The line of one receive half with faults. Its clones are the same line.
#[derive(Clone, Debug)]
pub struct Line(Arc<Mutex<Link<Carried>>>);

impl Line {
    pub(super) fn new(conditions: &Conditions, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Link::new(conditions, seed))))
    }

    /// The emulator. Who panicked while holding it has failed his test already.
    pub(super) fn lock(&self) -> MutexGuard<'_, Link<Carried>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What became of the frames that the device had.
    pub fn counts(&self) -> Counts {
        self.lock().counts()
    }

    /// When the receive half is to be asked next, even if the device has nothing: none when nothing is
    /// under way.
    pub fn next_event(&self) -> Option<Instant> {
        self.lock().next_event()
    }

    /// How many frames wait or are under way.
    pub fn under_way(&self) -> usize {
        self.lock().under_way()
    }
}
