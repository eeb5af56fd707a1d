//! The last of many: a player that takes commands may have had any number of streams, and keeps the figures of
//! so many only.

use std::collections::VecDeque;

/// The last `MOST` of what was kept.
#[derive(Debug)]
pub(super) struct Last<T, const MOST: usize> {
    kept: VecDeque<T>,
    forgotten: u64,
}

impl<T, const MOST: usize> Default for Last<T, MOST> {
    fn default() -> Self {
        Self { kept: VecDeque::new(), forgotten: 0 }
    }
}

impl<T, const MOST: usize> Last<T, MOST> {
    /// Keeps one more.
    pub fn keep(&mut self, one: T) {
        if self.kept.len() >= MOST {
            self.kept.pop_front();
            self.forgotten += 1;
        }
        self.kept.push_back(one);
    }

    /// How many there were before those that are left.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Those that are left, the oldest first.
    pub fn into_vec(self) -> Vec<T> {
        self.kept.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_kept_and_the_others_are_counted() {
        let mut last = Last::<u32, 3>::default();
        (0..10).for_each(|number| last.keep(number));
        assert_eq!((last.forgotten(), last.into_vec()), (7, vec![7, 8, 9]));
    }
}
