//! The way from one domain's executor to another's.

use crate::between::command::Command;
use silk_path::{Checksum, DropReason};
use silk_stream::mail::Sender;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

/// Frames, and connections over Linux, that may be on their way to another domain.
const FORWARDED: usize = 256;

/// The way to another domain's executor.
pub struct Sibling {
    /// Its orders.
    pub orders: Sender<Command>,
    /// What wakes it.
    pub event: Arc<OwnedFd>,
    /// What is on its way to it, from everybody.
    pub under_way: Arc<AtomicUsize>,
}

impl Sibling {
    /// Passes a frame on, unless too many are on their way.
    pub fn pass(&self, bytes: &[u8], device: u8, checksum: Checksum) -> Result<(), DropReason> {
        self.give(|| Command::Frame { bytes: bytes.into(), device, checksum })
    }

    /// Gives an order of one domain to another, unless too many are on their way. Who obeys it
    /// says so with `Engine::has_come`.
    pub fn give(&self, command: impl FnOnce() -> Command) -> Result<(), DropReason> {
        if self.under_way.fetch_add(1, SeqCst) >= FORWARDED {
            self.under_way.fetch_sub(1, SeqCst);
            return Err(DropReason::QueueFull);
        }
        let _ = self.orders.send(command());
        silk_stream::wake::notify(self.event.as_fd());
        Ok(())
    }

    /// Whether it has been given as many as may be on their way.
    pub fn is_busy(&self) -> bool {
        self.under_way.load(SeqCst) >= FORWARDED
    }
}
