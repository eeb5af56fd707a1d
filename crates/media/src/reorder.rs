//! The order of showing, where a sender's stamps are wrong. The decoder gives pictures in the order
//! they are shown, so their stamps must grow. Some senders do not know when the pictures of a stream
//! are shown: they stamp them in the order of decoding, or all reference pictures alike. A picture
//! whose stamp does not come after the one before it follows that one by the stream's usual step. Where stamps go
//! back by more than the order of decoding explains, the source has begun anew, or its clock was put back.

/// What is known of a stream's stamps.
#[derive(Clone, Copy, Debug)]
pub struct Reorder {
    last: Option<u32>,
    // The picture's before: its own stamp.
    before: u32,
    // Own stamps that go back farther than this begin anew.
    back: u32,
    // The least that one stamp came after another; before that is known, what it should be.
    step: u32,
    known: bool,
    // A stamp was put right.
    changed: bool,
}

impl Reorder {
    /// Stamps that should come `step` after each other, and go back by `back` at most.
    pub fn new(step: u32, back: u32) -> Self {
        Self { last: None, before: 0, back, step: step.max(1), known: false, changed: false }
    }

    /// A picture with this stamp is the next to be shown. The stamp to show it by, and whether stamps begin anew with
    /// it.
    pub fn leaves(&mut self, own: u32) -> (u32, bool) {
        let gone_back = core::mem::replace(&mut self.before, own).wrapping_sub(own);
        let anew = self.last.is_some() && (self.back.saturating_add(1)..1 << 31).contains(&gone_back);
        let stamp = match self.last {
            None => own,
            Some(_) if anew => own,
            Some(last) => match own.wrapping_sub(last) {
                distance @ 1..=0x7fff_ffff => {
                    self.step = if self.known { self.step.min(distance) } else { distance };
                    self.known = true;
                    own
                }
                _ => {
                    self.changed = true;
                    last.wrapping_add(self.step)
                }
            },
        };
        self.last = Some(stamp);
        (stamp, anew)
    }

    /// All stamps were right so far.
    pub fn is_senders(&self) -> bool {
        !self.changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn shown(own: &[u32]) -> Vec<u32> {
        let mut reorder = Reorder::new(1, 40_000);
        own.iter().map(|own| reorder.leaves(*own).0).collect()
    }

    #[test]
    fn right_stamps_stay_also_where_some_are_missing_or_they_wrap() {
        let right = [u32::MAX - 6000, u32::MAX - 3000, 0, 9000, 12_000];
        assert_eq!(shown(&right), right);
    }

    #[test]
    fn stamps_in_the_order_of_decoding_grow_by_the_usual_step() {
        assert_eq!(shown(&[0, 2, 3, 1, 5, 6, 4, 8, 9, 7]), [0, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn pictures_that_are_all_stamped_alike_come_as_they_should() {
        let mut reorder = Reorder::new(3000, 900_000);
        assert_eq!([7, 7, 7].map(|own| reorder.leaves(own)), [(7, false), (3007, false), (6007, false)]);
        assert!(!reorder.is_senders());
    }

    #[test]
    fn reference_pictures_that_are_stamped_alike_follow_the_others() {
        let own = [0, 6000, 9000, 0, 15_000, 18_000, 0, 24_000, 27_000, 0];
        assert_eq!(shown(&own)[3..], [12_000, 15_000, 18_000, 21_000, 24_000, 27_000, 30_000]);
    }

    #[test]
    fn a_source_that_begins_anew_is_no_disorder() {
        let mut reorder = Reorder::new(1, 32);
        let left = [0, 1, 100, 68, 101, 0, 1].map(|own| reorder.leaves(own));
        let expected =
            [(0, false), (1, false), (100, false), (101, false), (102, false), (0, true), (1, false)];
        assert_eq!(left, expected);
    }
}
