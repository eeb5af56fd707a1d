//! The one message that may wait for its next hop's address (RFC 1122 §2.3.2.2): a copy, as
//! the message itself is gone when the run ends. The only thing on a path that waits in the
//! middle, and there is never more than one.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use silk_path::{Checksum, Cx, DropReason, Message, Meta, Verdict};

/// The longest message that waits.
const MOST: usize = 2048;
/// Room in front of it for headers.
const HEADROOM: usize = 64;

/// A message that waits.
pub(crate) struct Held {
    // HEADROOM bytes, then the message's.
    bytes: Vec<u8>,
    meta: Meta,
}

impl Held {
    /// What holding `msg` costs, in bytes.
    fn cost(msg: &Message<'_>) -> usize {
        HEADROOM + msg.len()
    }

    /// A copy of `msg`, which is at most [`MOST`] bytes.
    fn copy(msg: &Message<'_>) -> Self {
        let mut bytes = vec![0; Self::cost(msg)];
        msg.copy_to(&mut bytes[HEADROOM..]);
        let mut meta = msg.meta;
        if let Checksum::Partial { start, field } = meta.checksum {
            // Both positions are behind the head, and the message is short.
            let moved = |at: u16| (usize::from(at).saturating_sub(msg.head()) + HEADROOM) as u16;
            meta.checksum = Checksum::Partial { start: moved(start), field: moved(field) };
        }
        Self { bytes, meta }
    }

    /// Bytes it takes.
    fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The message again.
    pub fn message(&mut self) -> Message<'_> {
        let end = self.bytes.len();
        Message::new(&mut self.bytes, HEADROOM, end, self.meta)
    }
}

/// Its place on the path, whose account it is charged to.
#[derive(Default)]
pub(crate) struct Waiting(Option<Box<Held>>);

impl Waiting {
    /// Keeps a copy of a message, or drops it for this reason where there is no room.
    pub fn hold(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>, full: DropReason) -> Verdict {
        if self.0.is_some() || msg.len() > MOST || cx.charge(Held::cost(msg)).is_err() {
            return Verdict::Drop(full);
        }
        self.0 = Some(Box::new(Held::copy(msg)));
        Verdict::Consumed
    }

    /// Takes out what waits.
    pub fn take(&mut self, cx: &mut Cx<'_, '_>) -> Option<Box<Held>> {
        let held = self.0.take()?;
        cx.release(held.len());
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_message_is_the_same_and_its_checksum_in_the_same_place() {
        let mut headroom = [0; 100];
        let mut msg = Message::outgoing(&mut headroom, [b"pay", b"load"], Meta::default());
        msg.push(8).unwrap().copy_from_slice(b"header??");
        msg.meta.checksum = Checksum::Partial { start: 92, field: 98 };
        let mut held = Held::copy(&msg);
        assert_eq!(held.len(), Held::cost(&msg));
        let again = held.message();
        assert_eq!(again.bytes(), b"header??payload");
        let Checksum::Partial { start, field } = again.meta.checksum else { panic!("still to be completed") };
        assert_eq!((usize::from(start) - again.head(), usize::from(field) - again.head()), (0, 6));
    }
}
