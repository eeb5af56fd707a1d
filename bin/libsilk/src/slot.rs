//! The slot of a socket that silk serves: its part of the arena.

use crate::errno::Answer;
use crate::family;
use crate::shared;
use crate::socket::{Found, Socket};
use silk_stream::Slot;
use std::sync::atomic::Ordering;

impl Socket {
    /// Its slot.
    ///
    /// # Errors
    /// `EBADF` when another thread has closed it meanwhile, `ECONNRESET` when the daemon has
    /// taken the slot away.
    #[inline]
    pub fn slot(&self) -> Answer<&'static Slot> {
        let family = family::joined().ok_or(libc::ECONNRESET)?;
        if !self.is_served() {
            return Err(libc::EBADF);
        }
        let (number, generation) = self.name();
        let slot = family.arena.slot(number).ok_or(libc::ECONNRESET)?;
        shared::catch_up(self);
        if slot.generation.load(Ordering::Relaxed) == generation { Ok(slot) } else { Err(libc::ECONNRESET) }
    }
}

impl Found {
    /// As [`Socket::slot`].
    ///
    /// # Errors
    /// As [`Socket::slot`]; `EBADF`, too, when the record is another socket's by now.
    #[inline]
    pub fn slot(self) -> Answer<&'static Slot> {
        let slot = self.record().slot()?;
        // A slot of another socket is seen only after that socket's number.
        if self.is_still_it() { Ok(slot) } else { Err(libc::EBADF) }
    }
}
