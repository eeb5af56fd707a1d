//! The program's buffers as `silk-tcp` wants them: `tcp` does not know `path`, so here they meet.

use silk_path::{Incoming, Outgoing};
use silk_tcp::{RecvBuffer, SendBuffer};

/// What is to be sent.
pub(super) struct Send<'s>(pub &'s mut dyn Outgoing);

impl SendBuffer for Send<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn consume(&mut self, octets: usize) {
        self.0.consume(octets);
    }

    fn has_more(&self) -> bool {
        self.0.has_more()
    }

    fn is_waited_for(&self) -> bool {
        self.0.is_waited_for()
    }
}

/// Where what arrives goes.
pub(super) struct Receive<'s>(pub &'s mut dyn Incoming);

impl RecvBuffer for Receive<'_> {
    fn room(&self) -> usize {
        self.0.room()
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        self.0.write(bytes)
    }

    fn mark_urgent(&mut self, ahead: usize) {
        self.0.mark_urgent(ahead);
    }

    fn unread(&self) -> usize {
        self.0.unread()
    }

    fn capacity(&self) -> usize {
        self.0.capacity()
    }
}
