//! Where the pictures that others need fall, when only each n-th picture is shown. With the usual
//! groups of pictures (I B B P B B P …) each third is one that others need, and all others can be
//! discarded as soon as they arrive (Scout §4.4). Where they fall elsewhere, what others need must be
//! decoded although it is not shown.

use crate::decoder::{B_PICTURE, I_PICTURE};

/// What was seen of a stream's pictures since each n-th is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fall {
    every: u32,
    // Reference pictures; of these the ones that are not shown; B pictures that are.
    references: u32,
    hidden: u32,
    shown_b: u32,
    // Pictures that are built on others.
    predicted: u32,
}

/// Reference pictures before anything is believed.
const FEWEST: u32 = 4;

impl Fall {
    /// A picture of this type begins, which is shown or not, one of each `every`.
    pub fn note(&mut self, kind: u8, shown: bool, every: u32) {
        if every != self.every {
            *self = Self { every, predicted: self.predicted, ..Self::default() };
        }
        self.predicted = self.predicted.saturating_add((kind != I_PICTURE).into());
        match (kind, shown) {
            (0, _) => {}
            (B_PICTURE, shown) => self.shown_b = self.shown_b.saturating_add(shown.into()),
            (_, shown) => {
                self.references = self.references.saturating_add(1);
                self.hidden = self.hidden.saturating_add((!shown).into());
            }
        }
    }

    /// One of each so many is shown.
    pub fn every(&self) -> u32 {
        self.every.max(1)
    }

    /// All pictures that others need are shown: what is not shown nobody needs.
    pub fn only_shown_are_needed(&self) -> bool {
        self.references >= FEWEST && self.hidden == 0
    }

    /// Each picture stands alone: nobody needs one that is not shown.
    pub fn each_stands_alone(&self) -> bool {
        self.references >= FEWEST && self.predicted == 0
    }

    /// No B picture is shown, and all others are.
    pub fn no_b_is_shown(&self) -> bool {
        self.only_shown_are_needed() && self.shown_b == 0 && self.every > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream with a reference picture at each `spacing`-th place, of which each `every`-th is shown.
    fn seen(spacing: u32, every: u32) -> Fall {
        let mut fall = Fall::default();
        for n in 0..60 {
            let kind = if n % 15 == 0 {
                1
            } else if n % spacing == 0 {
                2
            } else {
                B_PICTURE
            };
            fall.note(kind, n % every == 0, every);
        }
        fall
    }

    #[test]
    fn each_third_of_the_usual_groups_is_what_others_need() {
        assert!(seen(3, 3).no_b_is_shown() && seen(3, 3).only_shown_are_needed());
        assert!(!seen(3, 2).only_shown_are_needed() && !seen(3, 6).only_shown_are_needed());
        assert!(seen(3, 1).only_shown_are_needed() && !seen(3, 1).no_b_is_shown());
        assert!(!seen(5, 3).no_b_is_shown());
    }

    #[test]
    fn where_all_are_i_pictures_each_stands_alone_until_one_does_not() {
        let mut fall = Fall::default();
        (0..8).for_each(|n| fall.note(1, n % 3 == 0, 3));
        assert!(fall.each_stands_alone() && !fall.only_shown_are_needed());
        fall.note(2, true, 3);
        assert!(!fall.each_stands_alone());
        (0..8).for_each(|_| fall.note(1, true, 5));
        assert!(!fall.each_stands_alone(), "another wish makes no other stream of it");
    }

    #[test]
    fn little_proves_nothing_and_another_wish_begins_anew() {
        let mut fall = seen(3, 3);
        fall.note(1, true, 5);
        assert!(!fall.only_shown_are_needed());
        assert_eq!(fall.every(), 5);
    }
}
