//! The frames that the kernel fills (the UMEM of AF_XDP) and who owns each of them. A frame
//! belongs to the kernel or to one holder; only its holder can borrow its bytes, one frame at
//! a time. So a ticket that is stale, doubled or invented opens nothing.

use std::io;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::mapping::Mapping;

/// The owner of a frame that the kernel has.
const KERNEL: u8 = 0;

/// Frames of one size in one mapping.
pub(crate) struct Arena {
    map: Mapping,
    frame: usize,
    /// Who owns each frame. Only the owner changes it from itself; only the holder that the
    /// kernel handed the frame to changes it from [`KERNEL`].
    owners: Box<[AtomicU8]>,
    holders: AtomicU32,
}

impl Arena {
    /// `count` frames of `frame` bytes each, all the kernel's.
    pub fn new(count: u32, frame: usize) -> io::Result<Arc<Self>> {
        let map = Mapping::anonymous(count as usize * frame)?;
        let owners = (0..count).map(|_| AtomicU8::new(KERNEL)).collect();
        Ok(Arc::new(Self { map, frame, owners, holders: AtomicU32::new(0) }))
    }

    /// Where the frames are, and how many bytes they are, for the kernel to know.
    pub fn region(&self) -> (u64, u64) {
        (self.map.base().as_ptr() as u64, (self.owners.len() * self.frame) as u64)
    }

    /// A new holder; at most 255 in the life of an arena.
    pub fn holder(self: &Arc<Self>) -> Option<Holder> {
        let number = self.holders.fetch_add(1, Ordering::Relaxed) + 1;
        u8::try_from(number).ok().map(|id| Holder { arena: self.clone(), id })
    }
}

/// One who may own frames of an arena. Invariant: no two holders of an arena have one id.
pub(crate) struct Holder {
    arena: Arc<Arena>,
    id: u8,
}

impl Holder {
    /// Takes a frame that the kernel just handed over; `false` when it is not the kernel's to
    /// hand over.
    pub fn claim(&mut self, index: u32) -> bool {
        self.change(index, KERNEL, self.id)
    }

    /// Gives a frame back, for the caller to tell the kernel; `false` when it is not ours.
    pub fn release(&mut self, index: u32) -> bool {
        self.change(index, self.id, KERNEL)
    }

    fn change(&self, index: u32, from: u8, to: u8) -> bool {
        self.arena.owners.get(index as usize).is_some_and(|owner| {
            owner.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })
    }

    /// The bytes of a frame that we own, none of any other.
    pub fn bytes(&mut self, index: u32) -> &mut [u8] {
        let at = index as usize;
        match self.arena.owners.get(at) {
            Some(owner) if owner.load(Ordering::Relaxed) == self.id => {
                let base = self.arena.map.base().as_ptr().wrapping_add(at * self.arena.frame);
                // SAFETY: frame `at` is inside the mapping, which holds `owners.len()` frames and
                // lives as long as `self`. Nobody else touches it: ids are unique, so no other
                // holder owns it; this holder is borrowed for as long as the slice; and the
                // kernel writes only to frames it was given, which are owned by `KERNEL`.
                unsafe { slice::from_raw_parts_mut(base, self.arena.frame) }
            }
            _ => &mut [],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_holder_of_a_frame_reaches_its_bytes() {
        let arena = Arena::new(2, 2048).unwrap();
        let (mut a, mut b) = (arena.holder().unwrap(), arena.holder().unwrap());
        assert!(a.bytes(0).is_empty());
        assert!(a.claim(0));
        assert!(!b.claim(0));
        a.bytes(0)[2047] = 7;
        assert!(b.bytes(0).is_empty());
        assert!(!b.release(0));
        assert!(a.release(0));
        assert!(!a.release(0));
        assert!(b.claim(0));
        assert_eq!((b.bytes(0).len(), b.bytes(0)[2047]), (2048, 7));
    }

    #[test]
    fn frames_that_are_not_there_belong_to_nobody() {
        let arena = Arena::new(2, 2048).unwrap();
        let mut holder = arena.holder().unwrap();
        assert!(!holder.claim(2) && !holder.release(2));
        assert!(holder.bytes(u32::MAX).is_empty());
    }
}
