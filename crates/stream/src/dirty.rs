//! A set of slot numbers that one side fills and the other empties, without locks: "these
//! sockets have something new". Three levels of bits, so that an empty set is seen with one
//! load, and a mark that repeats an earlier one costs one atomic operation.
//!
//! It carries no data, only hints. A bit that a hostile program sets makes the reader look
//! at a socket of that program once more, and that is all.

use crate::sync::{AtomicU64, Ordering};

#[cfg(not(loom))]
const LEAVES: usize = 1024;
#[cfg(loom)]
const LEAVES: usize = 2;
const MIDDLES: usize = LEAVES.div_ceil(64);

/// How many numbers a set can hold: `0..MARKS`.
pub const MARKS: u32 = (LEAVES * 64) as u32;

/// The set. Any number of threads and processes mark; one empties.
#[repr(C, align(64))]
#[cfg_attr(not(loom), derive(Default))]
pub struct DirtySet {
    top: AtomicU64,
    middle: [AtomicU64; MIDDLES],
    leaf: Leaves,
}

#[repr(C)]
struct Leaves([AtomicU64; LEAVES]);

impl Default for Leaves {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

#[cfg(loom)]
impl Default for DirtySet {
    fn default() -> Self {
        Self {
            top: AtomicU64::new(0),
            middle: std::array::from_fn(|_| AtomicU64::new(0)),
            leaf: Leaves::default(),
        }
    }
}

impl DirtySet {
    /// Adds `number`, from the leaf up. The levels are written bottom up and emptied top
    /// down, so a mark that meets an emptying reader is either seen by it or leaves the top
    /// bit set for the next look. Every level is checked even if the leaf was set already:
    /// whoever set it may have been killed before it got to the top.
    ///
    /// # Panics
    /// When `number >= MARKS`.
    pub fn mark(&self, number: u32) {
        let leaf = number as usize / 64;
        set(&self.leaf.0[leaf], number % 64);
        set(&self.middle[leaf / 64], (leaf % 64) as u32);
        set(&self.top, (leaf / 64) as u32);
    }

    /// Whether there is anything to take. One load.
    pub fn is_marked(&self) -> bool {
        self.top.load(Ordering::SeqCst) != 0
    }

    /// Whether `number` is marked, without taking it.
    pub fn contains(&self, number: u32) -> bool {
        self.leaf.0[number as usize / 64].load(Ordering::SeqCst) & (1 << (number % 64)) != 0
    }

    /// Takes one number out, where the reader has decided it is settled.
    pub fn clear(&self, number: u32) {
        self.leaf.0[number as usize / 64].fetch_and(!(1 << (number % 64)), Ordering::SeqCst);
    }

    /// Empties the set into `each`. Numbers marked meanwhile are delivered now or next time.
    pub fn take(&self, mut each: impl FnMut(u32)) {
        let mut tops = self.top.swap(0, Ordering::SeqCst);
        while let Some(middle) = pop_bit(&mut tops) {
            if middle >= MIDDLES {
                continue;
            }
            let mut middles = self.middle[middle].swap(0, Ordering::SeqCst);
            while let Some(bit) = pop_bit(&mut middles) {
                let leaf = middle * 64 + bit;
                if leaf >= LEAVES {
                    continue;
                }
                let mut marks = self.leaf.0[leaf].swap(0, Ordering::SeqCst);
                while let Some(mark) = pop_bit(&mut marks) {
                    each((leaf * 64 + mark) as u32);
                }
            }
        }
    }
}

fn set(word: &AtomicU64, bit: u32) {
    let mask = 1 << bit;
    if word.load(Ordering::SeqCst) & mask == 0 {
        word.fetch_or(mask, Ordering::SeqCst);
    }
}

fn pop_bit(bits: &mut u64) -> Option<usize> {
    if *bits == 0 {
        return None;
    }
    let bit = bits.trailing_zeros() as usize;
    *bits &= *bits - 1;
    Some(bit)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn taken(set: &DirtySet) -> Vec<u32> {
        let mut all = Vec::new();
        set.take(|n| all.push(n));
        all
    }

    #[test]
    fn what_is_marked_is_taken_once_in_order() {
        let set = DirtySet::default();
        for n in [MARKS - 1, 0, 64, 65, 4096] {
            set.mark(n);
            set.mark(n);
        }
        assert!(set.is_marked());
        assert_eq!(taken(&set), [0, 64, 65, 4096, MARKS - 1]);
        assert!(!set.is_marked());
        assert_eq!(taken(&set), []);
    }

    #[test]
    fn a_leaf_whose_marker_died_half_way_is_found_by_the_next_mark() {
        let set = DirtySet::default();
        set.leaf.0[3].store(1, Ordering::SeqCst);
        set.mark(3 * 64);
        assert_eq!(taken(&set), [192]);
    }

    #[test]
    fn bits_that_a_stranger_sets_beyond_the_levels_are_passed_over() {
        let set = DirtySet::default();
        set.top.store(u64::MAX, Ordering::SeqCst);
        assert_eq!(taken(&set), []);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Whatever the interleaving, a mark is delivered by the reader that runs beside it or
    /// is still there for the next one.
    #[test]
    fn no_mark_is_lost() {
        loom::model(|| {
            let set = Arc::new(DirtySet::default());
            let marker = {
                let set = set.clone();
                thread::spawn(move || set.mark(70))
            };
            let mut seen = 0;
            set.take(|_| seen += 1);
            marker.join().unwrap();
            set.take(|_| seen += 1);
            assert!(seen >= 1);
        });
    }
}
