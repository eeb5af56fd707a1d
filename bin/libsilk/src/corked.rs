//! What has been written of a datagram that is not whole yet ([`crate::cork`]).

use crate::control::Asked;
use crate::lock::{Guard, Guarded};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The parts until now.
pub struct Parts {
    /// Their bytes.
    pub data: Vec<u8>,
    /// Whom it is for, as the first call said.
    pub peer: Option<SocketAddr>,
    /// How it is sent, as the first call said.
    pub asked: Asked,
}

/// A socket's datagram that is not whole yet.
pub struct Corked {
    /// There is one. Written under the lock, and looked at without.
    begun: AtomicBool,
    parts: Guarded<Option<Parts>>,
}

impl Corked {
    /// None.
    pub const fn new() -> Self {
        Self { begun: AtomicBool::new(false), parts: Guarded::new(None) }
    }

    /// Whether there is one.
    #[inline]
    pub fn has_begun(&self) -> bool {
        self.begun.load(Relaxed)
    }

    /// There is one now.
    pub fn begin(&self) {
        self.begun.store(true, Relaxed);
    }

    /// What there is, for a call that adds to it or sends it.
    pub fn parts(&self) -> Guard<'_, Option<Parts>> {
        self.parts.lock()
    }

    /// In a forked child: nobody else is in the middle of a call.
    pub fn force_open(&self) {
        self.parts.bare().force_open();
        // Another thread may have been in the middle of making it.
        if !self.has_begun() {
            self.forget(&mut self.parts.lock());
        }
    }

    /// What there is is not sent.
    pub fn clear(&self) {
        self.parts.bare().force_open();
        self.forget(&mut self.parts.lock());
    }

    /// The same of who has it.
    pub fn forget(&self, kept: &mut Option<Parts>) {
        *kept = None;
        self.begun.store(false, Relaxed);
    }
}
