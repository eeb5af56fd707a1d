//! How many flows are at home in each bucket of the flow table, wherever they stand: a counting Bloom filter
//! with one hash (Fan, Cao, Almeida and Broder 2000, §5.2), small enough to stay in the caches. A packet
//! of a flow that is not there, as each of a flood is, ends at a count of zero, and the table's lines, of which a
//! miss touches four, stay in memory. The layout stands in [`layout`](super::layout).

use super::layout::{HOME_FULL, HOMES_PER_WORD};
use super::store::{Store, Store64};
use core::sync::atomic::Ordering::Relaxed;

/// The counts, eight in a word.
#[derive(Clone, Debug)]
pub(super) struct Homes(Store64);

impl Homes {
    /// The counts in `words`; `None` when these are too few for so many buckets.
    pub fn new(words: Store64, buckets: usize) -> Option<Self> {
        (words.len() >= Self::words_for(buckets)).then_some(Self(words))
    }

    /// Words for so many buckets.
    pub fn words_for(buckets: usize) -> usize {
        buckets.div_ceil(HOMES_PER_WORD)
    }

    /// Counts of zero.
    pub fn zeroed(buckets: usize) -> Self {
        Self(Store::zeroed(Self::words_for(buckets)))
    }

    /// Whether nobody is at home there.
    #[inline]
    pub fn is_empty(&self, bucket: usize) -> bool {
        let (word, shift) = place(bucket);
        self.0.get(word).is_some_and(|word| word.load(Relaxed) >> shift & HOME_FULL == 0)
    }

    /// One more is at home there. To be called before the flow can be found.
    pub fn enter(&self, bucket: usize) {
        self.change(bucket, |count| count + 1);
    }

    /// One less. To be called when it cannot be found any more.
    pub fn leave(&self, bucket: usize) {
        self.change(bucket, |count| count.saturating_sub(1));
    }

    /// Changes a count, but not one that is as high as it goes: how many there are is not known any more.
    fn change(&self, bucket: usize, to: impl Fn(u64) -> u64) {
        let (at, shift) = place(bucket);
        let Some(word) = self.0.get(at) else { return };
        let changed = |all: u64| {
            let count = all >> shift & HOME_FULL;
            (count != HOME_FULL).then(|| all & !(HOME_FULL << shift) | to(count) << shift)
        };
        // Refused only where the count is as high as it goes.
        let _ = word.fetch_update(Relaxed, Relaxed, changed);
    }
}

/// The word that holds a bucket's count, and where in it.
fn place(bucket: usize) -> (usize, usize) {
    (bucket / HOMES_PER_WORD, bucket % HOMES_PER_WORD * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_has_a_count_of_its_own() {
        let homes = Homes::zeroed(16);
        for bucket in [0, 7, 8, 15] {
            homes.enter(bucket);
        }
        for bucket in 0..16 {
            assert_eq!(homes.is_empty(bucket), ![0, 7, 8, 15].contains(&bucket), "{bucket}");
        }
        homes.enter(7);
        homes.leave(7);
        assert!(!homes.is_empty(7));
        homes.leave(7);
        assert!(homes.is_empty(7) && !homes.is_empty(8) && !homes.is_empty(0));
    }

    #[test]
    fn a_count_that_is_full_stays_so_and_harms_no_other() {
        let homes = Homes::zeroed(16);
        for _ in 0..300 {
            homes.enter(2);
        }
        for _ in 0..300 {
            homes.leave(2);
        }
        assert!(!homes.is_empty(2), "some of them may be there still");
        assert!(homes.is_empty(1) && homes.is_empty(3));
    }

    #[test]
    fn one_who_was_not_there_cannot_leave() {
        let homes = Homes::zeroed(8);
        homes.leave(3);
        assert!((0..8).all(|bucket| homes.is_empty(bucket)));
    }

    #[test]
    fn too_few_words_are_refused() {
        assert!(Homes::new(Store::zeroed(1), 8).is_some());
        assert!(Homes::new(Store::zeroed(1), 9).is_none());
    }
}
