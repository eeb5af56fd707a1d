//! Where in the send ring of a socket the next bytes go. A signal's handler may write in the middle of a write of its own
//! thread, which it cannot wait for: what it writes goes behind what the thread is placing, and the thread, when it is done,
//! says of both that they are written.

use silk_stream::Slot;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

/// Up to where the ring is claimed. While nobody writes it counts writes instead, so that who begins one sees whether a
/// handler has made one since it looked.
#[derive(Default)]
pub struct Cursor(AtomicU64);

/// The ring is claimed, up to the index in the lower half.
const CLAIMED: u64 = 1 << 63;

/// The first of what is claimed is to lie at the start of the ring's memory. Whoever finds that sees to it, before anything is
/// placed: the write that has claimed first, or one that interrupts it before it has.
const BEGINS: u64 = 1 << 62;

impl Cursor {
    /// Of a socket that nobody writes to.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Nobody is writing any more.
    pub fn reset(&self) {
        self.0.store(0, Relaxed);
    }

    /// Whoever was writing does not go on: what was claimed is free again.
    pub fn abandon(&self) {
        self.0.fetch_and(!(CLAIMED | BEGINS), AcqRel);
    }

    /// Claims the next bytes of the ring: as many as `choose` says, which is told how many are claimed already behind what is
    /// written, by writes that this one has interrupted. For who has the turn to write. If the ring is empty, what is written
    /// begins at the start of its memory again.
    ///
    /// # Errors
    /// Those of `choose`: nothing is claimed.
    #[inline]
    pub fn claim<'a, E>(
        &'a self,
        slot: &'a Slot,
        choose: impl Fn(u32) -> Result<u32, E>,
    ) -> Result<Claim<'a>, E> {
        loop {
            let before = self.0.load(Acquire);
            let written = slot.tx_write.load(Relaxed);
            let at = if before & CLAIMED == 0 { written } else { before as u32 };
            let len = choose(at.wrapping_sub(written))?;
            let interrupts = before & CLAIMED != 0;
            // An empty ring stays empty as long as nothing is said to be written.
            let begins = if interrupts { before & BEGINS != 0 } else { is_to_begin(slot, written) };
            if interrupts && begins {
                slot.tx_first.store(written, Relaxed);
            }
            let bits = if begins { CLAIMED | BEGINS } else { CLAIMED };
            if self.change(before, bits | u64::from(at.wrapping_add(len))) {
                if !interrupts && begins {
                    slot.tx_first.store(written, Relaxed);
                    self.0.fetch_and(!BEGINS, AcqRel);
                }
                return Ok(Claim { slot, cursor: self, before, at, len });
            }
        }
    }

    fn change(&self, from: u64, to: u64) -> bool {
        self.0.compare_exchange(from, to, AcqRel, Relaxed).is_ok()
    }
}

/// Whether what is written next may lie at the start of the memory ([`silk_stream::begin_ring`]), and does not yet.
#[inline]
fn is_to_begin(slot: &Slot, written: u32) -> bool {
    slot.tx_first.load(Relaxed) != written && slot.tx_read.load(Acquire) == written
}

/// Bytes of the ring that the calling thread, and nobody else, writes.
#[must_use = "whoever claims bytes says how many of them are written"]
pub struct Claim<'a> {
    slot: &'a Slot,
    cursor: &'a Cursor,
    /// What the cursor was before.
    before: u64,
    /// The index of the first.
    pub at: u32,
    /// How many.
    pub len: u32,
}

impl Claim<'_> {
    /// The first `placed` are written, and with them whatever handlers have written behind; the latter only where all of these
    /// are, so that what may turn out to be less is placed while no handler comes ([`crate::signals::Undisturbed`]).
    #[inline]
    pub fn publish(self, placed: u32) {
        let Self { slot, cursor, before, at, len } = self;
        if placed < len {
            let to = |len| CLAIMED | u64::from(at.wrapping_add(len));
            cursor.change(to(len), to(placed));
        }
        if before & CLAIMED != 0 {
            // The write that was interrupted does the rest.
            return;
        }
        loop {
            let now = cursor.0.load(Acquire);
            if now & CLAIMED == 0 {
                // A handler has forked here, and this is the child: the parent says so.
                return;
            }
            // Sequentially consistent, like every store before a ring: a mark that is there already is
            // only looked at, and that look must not overtake the store.
            slot.tx_write.store(now as u32, SeqCst);
            // A handler that comes before this has written behind that, and counts on us.
            if cursor.change(now, before.wrapping_add(1) & !(CLAIMED | BEGINS)) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn ten(_: u32) -> Result<u32, ()> {
        Ok(10)
    }

    fn written(slot: &Slot) -> u32 {
        slot.tx_write.load(Relaxed)
    }

    #[test]
    fn a_write_in_the_middle_of_another_goes_behind_it_and_both_are_told_of_together() {
        let (slot, cursor) = (Slot::default(), Cursor::new());
        slot.tx_write.store(u32::MAX - 4, Relaxed);
        let outer = cursor.claim(&slot, ten).unwrap();
        let inner = cursor.claim(&slot, |claimed| if claimed == 10 { Ok(3) } else { Err(()) }).unwrap();
        assert_eq!((outer.at, inner.at), (u32::MAX - 4, 5));
        inner.publish(3);
        assert_eq!(written(&slot), u32::MAX - 4);
        outer.publish(10);
        assert_eq!(written(&slot), 8);
        let next = cursor.claim(&slot, ten).unwrap();
        assert_eq!(next.at, 8);
        next.publish(4);
        assert_eq!(written(&slot), 12);
        assert_eq!(cursor.claim(&slot, ten).map(|claim| claim.at), Ok(12));
    }

    #[test]
    fn a_write_between_the_look_and_the_claim_is_not_written_over() {
        let (slot, cursor) = (Slot::default(), Cursor::new());
        slot.tx_first.store(u32::MAX, Relaxed);
        slot.tx_read.store(u32::MAX, Relaxed);
        let has_come = Cell::new(false);
        let late = cursor.claim(&slot, |_| {
            if !has_come.replace(true) {
                // When it comes the ring is not empty, and before the one that it interrupts looks everything before is read.
                cursor.claim(&slot, ten)?.publish(10);
                slot.tx_read.store(0, Relaxed);
            }
            ten(0)
        });
        assert_eq!(late.map(|claim| claim.at), Ok(10));
        assert_eq!(slot.tx_first.load(Relaxed), u32::MAX);
    }

    #[test]
    fn who_interrupts_a_write_before_its_ring_begins_again_sees_to_that() {
        let (slot, cursor) = (Slot::default(), Cursor::new());
        slot.tx_write.store(7, Relaxed);
        slot.tx_read.store(7, Relaxed);
        cursor.0.store(CLAIMED | BEGINS | 17, Relaxed);
        assert_eq!(cursor.claim(&slot, ten).map(|claim| claim.at), Ok(17));
        assert_eq!(slot.tx_first.load(Relaxed), 7);
        assert_eq!(cursor.0.load(Relaxed), CLAIMED | BEGINS | 27);
    }

    #[test]
    fn a_ring_begins_again_where_it_is_empty_but_not_in_the_middle_of_a_write() {
        let (slot, cursor) = (Slot::default(), Cursor::new());
        cursor.claim(&slot, ten).unwrap().publish(10);
        let outer = cursor.claim(&slot, ten).unwrap();
        slot.tx_read.store(10, Relaxed);
        cursor.claim(&slot, ten).unwrap().publish(10);
        assert_eq!(slot.tx_first.load(Relaxed), 0);
        outer.publish(10);
        slot.tx_read.store(30, Relaxed);
        cursor.claim(&slot, ten).unwrap().publish(10);
        assert_eq!(slot.tx_first.load(Relaxed), 30);
    }

    #[test]
    fn what_is_refused_or_not_placed_is_not_claimed() {
        let (slot, cursor) = (Slot::default(), Cursor::new());
        assert!(cursor.claim(&slot, |_| Err(())).is_err());
        cursor.claim(&slot, ten).unwrap().publish(0);
        assert_eq!((written(&slot), cursor.claim(&slot, ten).map(|claim| claim.at)), (0, Ok(0)));
    }

    #[test]
    fn what_somebody_left_in_the_middle_is_as_if_he_had_not_begun() {
        let (slot, cursor) = (Slot::default(), Cursor::new());
        cursor.claim(&slot, ten).unwrap().publish(10);
        let _left = cursor.claim(&slot, ten).unwrap();
        cursor.abandon();
        cursor.abandon();
        assert_eq!(cursor.claim(&slot, ten).map(|claim| claim.at), Ok(10));
    }

    #[test]
    fn a_child_that_was_forked_in_the_middle_says_nothing_is_written() {
        let (slot, cursor) = (Slot::default(), Cursor::new());
        let claim = cursor.claim(&slot, ten).unwrap();
        cursor.reset();
        claim.publish(10);
        assert_eq!(written(&slot), 0);
    }
}
