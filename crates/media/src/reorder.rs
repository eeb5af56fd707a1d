//! The order of showing, where a sender stamps pictures in the order of decoding. RTP's stamps are
//! to be those of showing (RFC 2250 §3.3), but some senders, of streams that do not tell them, count
//! on as they send. The decoder gives pictures in the order they are shown, so the two orders give
//! the sender away, and then each picture gets the earliest stamp that none has had.

use alloc::vec::Vec;

/// Pictures that a decoder may hold back, and a few.
const HELD: usize = 6;

/// What is known of a stream's stamps.
#[derive(Debug, Default)]
pub struct Reorder {
    // Stamps of pictures that have not come out, at most HELD.
    inside: Vec<u32>,
    last_in: Option<u32>,
    last_out: Option<u32>,
    // A stamp was earlier than the one before: they are in the order of showing, as they should be.
    is_right: bool,
    // They never were, and pictures came out in another order.
    is_decoding: bool,
}

/// Whether `a` comes after `b`, of stamps that wrap.
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Reorder {
    /// A picture with this stamp goes into the decoder. May be told several times.
    pub fn enters(&mut self, stamp: u32) {
        if self.last_in == Some(stamp) {
            return;
        }
        self.is_right |= self.last_in.is_some_and(|last| after(last, stamp));
        self.last_in = Some(stamp);
        if self.inside.len() == HELD {
            // A picture that never came out.
            let first = self.first();
            self.inside.swap_remove(first);
        }
        self.inside.push(stamp);
    }

    /// A picture with this stamp has come out. The stamp it is to be shown by.
    pub fn leaves(&mut self, own: u32) -> u32 {
        self.is_decoding |= self.last_out.is_some_and(|last| after(last, own));
        self.last_out = Some(own);
        if !self.is_right && self.is_decoding && !self.inside.is_empty() {
            let first = self.first();
            return self.inside.swap_remove(first);
        }
        self.inside.retain(|inside| *inside != own);
        own
    }

    /// The place of the earliest stamp inside; there is one.
    fn first(&self) -> usize {
        let earlier = |a: &usize, b: &usize| {
            if after(self.inside[*b], self.inside[*a]) {
                core::cmp::Ordering::Less
            } else {
                core::cmp::Ordering::Greater
            }
        };
        (0..self.inside.len()).min_by(earlier).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// The stamps of showing for pictures that go in with `inside` and come out in the order of
    /// `shown`, two pictures behind.
    fn shown(inside: &[u32], out: &[u32]) -> Vec<u32> {
        let mut reorder = Reorder::default();
        let mut stamps = Vec::new();
        for (n, stamp) in inside.iter().enumerate() {
            reorder.enters(*stamp);
            if let Some(out) = n.checked_sub(2).and_then(|n| out.get(n)) {
                stamps.push(reorder.leaves(*out));
            }
        }
        stamps
    }

    #[test]
    fn right_stamps_stay() {
        let decoding = [0, 3, 1, 2, 6, 4, 5, 9, 7, 8];
        assert_eq!(shown(&decoding, &[0, 1, 2, 3, 4, 5, 6]), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn stamps_in_the_order_of_decoding_are_put_right() {
        let start = u32::MAX - 3;
        let stamp = |n: u32| start.wrapping_add(n);
        // Shown in the order I B B P: the second that was decoded comes out fourth.
        let out = [0, 2, 3, 1, 5, 6, 4, 8].map(stamp);
        let inside: Vec<u32> = (0..10).map(stamp).collect();
        let told = shown(&inside, &out);
        // Two were passed on before the order gave it away; from there on each is later than the last.
        assert!(told[3..].windows(2).all(|pair| after(pair[1], pair[0])), "{told:?}");
        assert_eq!(told.last(), Some(&stamp(7)));
    }

    #[test]
    fn a_picture_that_never_comes_out_is_forgotten() {
        let mut reorder = Reorder::default();
        let mut told = vec![];
        for n in 0..100 {
            reorder.enters(n);
            if n % 10 != 5 && n >= 2 {
                told.push(reorder.leaves(n - 2));
            }
        }
        assert!(told.iter().zip(0..).all(|(told, _)| *told < 100) && reorder.inside.len() <= HELD);
    }
}
