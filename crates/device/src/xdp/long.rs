//! Packets longer than a frame. The kernel hands them over as a chain of frames; they are copied
//! behind each other into one buffer, so that nobody above has to know, and the frames go back at
//! once. Messages that Linux coalesced (GRO), or that a veth's neighbour left for the device to
//! cut, come like this where the XDP program runs in Linux's receive path; so do jumbo frames.
//!
//! Datagrams are told apart again afterwards (`merged.rs`).

use crate::pool::Pool;
use crate::{Frame, HEADROOM};

/// Packets of several frames that a domain may hold at once.
const COUNT: u32 = 64;
/// The longest packet, with a VLAN tag.
const LONGEST: usize = 18 + 65_535;
/// Set in the index of a ticket whose packet was put together.
const MARK: u32 = 1 << 31;

/// A domain's buffers for long packets.
pub(super) struct Long(Pool);

/// A packet that is being put together.
pub(super) struct Draft {
    index: u32,
    buffer: Box<[u8]>,
    len: usize,
    // Nothing of it was missing or too much.
    whole: bool,
}

impl Draft {
    /// The next part of it, `None` when that makes no sense.
    pub fn append(&mut self, part: Option<&[u8]>) {
        let start = HEADROOM + self.len;
        let room = part.and_then(|part| self.buffer.get_mut(start..start + part.len()));
        match (part, room) {
            (Some(part), Some(room)) => {
                room.copy_from_slice(part);
                self.len += part.len();
            }
            _ => self.whole = false,
        }
    }
}

impl Long {
    /// All buffers empty; they cost memory once they are used.
    pub fn new() -> Self {
        Self(Pool::new(COUNT, LONGEST))
    }

    /// A buffer to put a packet together in, where there is one; [`finish`](Self::finish) must follow.
    pub fn begin(&mut self) -> Option<Draft> {
        let (index, buffer) = self.0.take()?;
        Some(Draft { index, buffer, len: 0, whole: true })
    }

    /// The index of the packet's ticket and its length; `None` when it is not whole.
    pub fn finish(&mut self, draft: Draft) -> Option<(u32, u32)> {
        let Draft { index, buffer, len, whole } = draft;
        if !whole {
            self.0.put(index, buffer);
            return None;
        }
        self.0.hold(index, buffer);
        Some((index | MARK, len as u32))
    }

    /// Whether a ticket is one of a long packet.
    pub fn has(frame: Frame) -> bool {
        frame.index & MARK != 0
    }

    /// The buffer of a ticket that is held, nothing for any other.
    pub fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        self.0.bytes(unmarked(frame))
    }

    /// Frees the buffer of a ticket that is held; anything else is ignored.
    pub fn release(&mut self, frame: Frame) {
        self.0.release(unmarked(frame));
    }
}

fn unmarked(frame: Frame) -> Frame {
    Frame { index: frame.index & !MARK, ..frame }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Checksum;

    fn ticket(index: u32) -> Frame {
        Frame { index, device: 0, offset: 0, len: 0, path: 0, segment: 0, checksum: Checksum::Unknown }
    }

    #[test]
    fn parts_lie_behind_each_other_after_the_headroom() {
        let mut long = Long::new();
        let mut draft = long.begin().unwrap();
        draft.append(Some(b"one after "));
        draft.append(Some(b"the other"));
        let (index, len) = long.finish(draft).unwrap();
        assert!(Long::has(ticket(index)));
        let end = HEADROOM + len as usize;
        assert_eq!(&long.bytes(ticket(index))[HEADROOM..end], b"one after the other");
        long.release(ticket(index));
        assert!(long.bytes(ticket(index)).is_empty());
    }

    #[test]
    fn what_is_not_whole_or_too_long_is_nothing_and_costs_no_buffer() {
        let mut long = Long::new();
        for _ in 0..2 * COUNT {
            let mut draft = long.begin().unwrap();
            draft.append(None);
            draft.append(Some(b"end"));
            assert_eq!(long.finish(draft), None);
            let mut draft = long.begin().unwrap();
            (0..18).for_each(|_| draft.append(Some(&[0; 3840])));
            assert_eq!(long.finish(draft), None);
        }
    }

    #[test]
    fn no_more_are_held_than_there_are_buffers() {
        let mut long = Long::new();
        let mut drafts: Vec<_> = std::iter::from_fn(|| long.begin()).collect();
        assert_eq!(drafts.len(), COUNT as usize);
        let (index, _) = drafts.pop().and_then(|draft| long.finish(draft)).unwrap();
        assert!(long.begin().is_none());
        long.release(ticket(index));
        assert!(long.begin().is_some());
    }
}
