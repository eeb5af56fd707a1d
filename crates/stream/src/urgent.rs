//! Urgent data of a stream (RFC 9293 §3.8.5): which octet of either ring is the last urgent one. It lies in its place
//! among the others; that by default a program reads it out of band is between that program and this record.

use crate::slot::{Slot, option};
use crate::sync::AtomicU32;
use crate::sync::Ordering::{Acquire, Relaxed, SeqCst};

/// The last urgent octet that the peer has told of ([`Slot::rx_urgent`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its index in the receive ring; it may be still to come.
    pub at: u32,
    /// How many marks there were with this one: one at least.
    pub number: u32,
}

impl Mark {
    /// The mark of a socket, if there ever was one. Whoever has seen in [`Slot::rx_write`] that the octet is there
    /// sees the mark, too.
    #[inline]
    pub fn of(slot: &Slot) -> Option<Self> {
        match slot.rx_urgent.load(Acquire) {
            0 => None,
            word => Some(Self { at: word as u32, number: (word >> 32) as u32 }),
        }
    }
}

/// What few sockets ever need of it.
#[repr(C)]
#[derive(Default)]
pub struct Urgent {
    /// The index behind the program's last urgent octet in the send ring; by the program, before it asks for
    /// [`crate::request::URGENT`], and that before it says that the octet is written.
    pub sent: AtomicU32,
    /// The number of the last mark whose octet was read out of band; by the program (and so the next).
    pub taken: AtomicU32,
    /// The number of the last mark that was read past.
    pub passed: AtomicU32,
    // From here on by the daemon: with the mark of this number the octets that are skipped by whoever reads at this index.
    skips_with: AtomicU32,
    skips_at: AtomicU32,
    skips: AtomicU32,
}

/// What lies before a reader who has not passed the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The mark.
    pub mark: Mark,
    /// So many of the next octets were urgent before there was this mark, and are not read.
    pub skipped: u32,
    /// So many octets lie between those and the mark.
    pub before: u32,
}

impl Urgent {
    /// The mark, if it was not read past.
    pub fn ahead(&self, slot: &Slot) -> Option<Ahead> {
        let mark = Mark::of(slot).filter(|mark| mark.number != self.passed.load(Relaxed))?;
        let read = slot.rx_read.load(Relaxed);
        let before = mark.at.wrapping_sub(read);
        let skipped = self.skipped(mark, read).min(before);
        Some(Ahead { mark, skipped, before: before - skipped })
    }

    fn skipped(&self, mark: Mark, read: u32) -> u32 {
        let skips = self.skips_with.load(Relaxed) == mark.number && self.skips_at.load(Relaxed) == read;
        if skips { self.skips.load(Relaxed) } else { 0 }
    }

    /// The daemon says that the peer's urgent data ends with the octet at `at`; it has written up to `write`. An octet that was
    /// urgent until now is an ordinary one from now on, unless the program has read all before it: then it is
    /// skipped (Linux's `tcp_check_urg`).
    pub fn set(&self, slot: &Slot, at: u32, write: u32) {
        // What the program makes of numbers is its own affair, so those of the slot will do.
        let number = match Mark::of(slot) {
            Some(mark) => mark.number.wrapping_add(1).max(1),
            None => 1,
        };
        if number == 1 {
            self.taken.store(0, Relaxed);
            self.passed.store(0, Relaxed);
        }
        if let Some(Ahead { mark, skipped, before }) = self.ahead(slot) {
            let arrived = write.wrapping_sub(mark.at).cast_signed() > 0;
            let inline = slot.options.load(Relaxed) & option::URGENT_INLINE != 0;
            let sits_there = before == 0 && arrived && !inline;
            self.skips_at.store(slot.rx_read.load(Relaxed), Relaxed);
            self.skips.store(skipped.wrapping_add(u32::from(sits_there)), Relaxed);
            self.skips_with.store(number, Relaxed);
        }
        slot.rx_urgent.store(u64::from(number) << 32 | u64::from(at), SeqCst);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn ahead(slot: &Slot, urgent: &Urgent) -> Option<(u32, u32, u32)> {
        urgent.ahead(slot).map(|ahead| (ahead.mark.at, ahead.skipped, ahead.before))
    }

    #[test]
    fn each_mark_has_another_number_and_none_is_zero() {
        let (slot, urgent) = (Slot::default(), Urgent::default());
        urgent.taken.store(9, Relaxed);
        assert_eq!(Mark::of(&slot), None);
        urgent.set(&slot, 0, 0);
        assert_eq!(Mark::of(&slot), Some(Mark { at: 0, number: 1 }));
        assert_eq!(urgent.taken.load(Relaxed), 0, "of the connection that had the slot before");
        urgent.set(&slot, u32::MAX, 0);
        assert_eq!(Mark::of(&slot), Some(Mark { at: u32::MAX, number: 2 }));
        slot.rx_urgent.store(u64::MAX, Relaxed);
        urgent.set(&slot, 7, 0);
        assert_eq!(Mark::of(&slot), Some(Mark { at: 7, number: 1 }));
    }

    #[test]
    fn a_mark_that_was_read_past_never_comes_back() {
        let (slot, urgent) = (Slot::default(), Urgent::default());
        urgent.set(&slot, 5, 0);
        slot.rx_read.store(3, Relaxed);
        assert_eq!(ahead(&slot, &urgent), Some((5, 0, 2)));
        slot.rx_read.store(6, Relaxed);
        urgent.passed.store(1, Relaxed);
        assert_eq!(ahead(&slot, &urgent), None);
        slot.rx_read.store(5, Relaxed);
        assert_eq!(ahead(&slot, &urgent), None, "4 GiB later");
        urgent.set(&slot, 5, 5);
        assert_eq!(ahead(&slot, &urgent), Some((5, 0, 0)));
    }

    #[test]
    fn who_sits_at_a_mark_skips_its_octet_once_there_is_another() {
        let (slot, urgent) = (Slot::default(), Urgent::default());
        slot.rx_read.store(u32::MAX, Relaxed);
        urgent.set(&slot, u32::MAX, 0);
        urgent.set(&slot, 0, 1);
        assert_eq!(ahead(&slot, &urgent), Some((0, 1, 0)));
        urgent.set(&slot, 2, 3);
        assert_eq!(ahead(&slot, &urgent), Some((2, 2, 1)), "both, as nothing was read meanwhile");
        urgent.set(&slot, 4, 5);
        assert_eq!(ahead(&slot, &urgent), Some((4, 2, 3)), "one that was not reached is an ordinary octet");
        slot.rx_read.store(2, Relaxed);
        assert_eq!(ahead(&slot, &urgent), Some((4, 0, 2)));
        slot.rx_read.store(4, Relaxed);
        slot.options.store(option::URGENT_INLINE, Relaxed);
        urgent.set(&slot, 6, 7);
        assert_eq!(ahead(&slot, &urgent), Some((6, 0, 2)), "who reads them in their place skips none");
        slot.options.store(0, Relaxed);
        slot.rx_read.store(6, Relaxed);
        urgent.set(&slot, 8, 6);
        assert_eq!(ahead(&slot, &urgent), Some((8, 0, 2)), "nor one that is still to come");
    }
}
