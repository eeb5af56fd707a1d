//! The order of MFLOW's packets: which come in their turn, which are old, and which come from a
//! source that has begun anew. Delivery is ordered and not reliable (Scout §4.1), so a packet
//! that is missing is not waited for.

use silk_wire::mflow::after;

/// Packets that may be this far behind and are merely late.
const LATE: u32 = 4096;

/// What a packet's number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is the next, so many before it missing.
    Next(u32),
    /// It, or one after it, has been taken.
    Old,
    /// No source that obeys sends it now.
    Beyond,
    /// The source has begun anew: two packets in sequence say so, or one and the question that repeats its number.
    Anew,
}

/// The order so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    // The last number taken.
    last: Option<u32>,
    // The number after a packet that came from nowhere.
    suspect: Option<u32>,
}

impl Order {
    /// The last number that was taken.
    pub fn last(&self) -> Option<u32> {
        self.last
    }

    /// Takes the packet with this number, if it is its turn; `highest` was advertised. A question (`asks`) has the number
    /// of the packet before it.
    pub fn take(&mut self, number: u32, highest: u32, asks: bool) -> Turn {
        let Some(last) = self.last else {
            self.last = Some(number);
            return Turn::Next(0);
        };
        let turn = if after(number, highest) || last.wrapping_sub(number).cast_signed() > LATE as i32 {
            let confirms =
                self.suspect == Some(number) || asks && self.suspect == Some(number.wrapping_add(1));
            match confirms {
                true => Turn::Anew,
                false => Turn::Beyond,
            }
        } else if after(number, last) {
            Turn::Next(number.wrapping_sub(last).wrapping_sub(1))
        } else {
            return Turn::Old;
        };
        match turn {
            Turn::Beyond => self.suspect = Some(number.wrapping_add(1)),
            _ => *self = Self { last: Some(number), suspect: None },
        }
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;

    #[test]
    fn packets_are_taken_in_order_and_once() {
        let mut order = Order::default();
        let turns = [u32::MAX, 0, 3, 2, 3, 4].map(|number| order.take(number, 10, false));
        assert_eq!(turns, [Turn::Next(0), Turn::Next(0), Turn::Next(2), Turn::Old, Turn::Old, Turn::Next(0)]);
    }

    #[test]
    fn one_packet_from_nowhere_changes_nothing_and_two_in_sequence_begin_anew() {
        let mut order = Order::default();
        order.take(100, 0, false);
        let far = 1 << 31;
        let turns = [far + 7, 101, far + 9, far + 10, 102].map(|number| order.take(number, 110, false));
        assert_eq!(turns, [Turn::Beyond, Turn::Next(0), Turn::Beyond, Turn::Anew, Turn::Beyond]);
        assert_eq!(order.last(), Some(far + 10));
    }

    #[test]
    fn a_source_that_begins_anew_and_asks_is_heard_though_its_first_packet_was_lost() {
        let mut order = Order::default();
        order.take(100, 0, false);
        let far = 1 << 31;
        let turns = [false, true].map(|asks| order.take(far + 1, 110, asks));
        assert_eq!(turns, [Turn::Beyond, Turn::Anew]);
        // Of a packet that came twice nothing is believed.
        assert_eq!([2, 2].map(|number| order.take(number, far, false)), [Turn::Beyond, Turn::Beyond]);
    }

    #[test]
    fn beyond_the_window_nothing_is_taken() {
        let mut order = Order::default();
        order.take(1, 0, false);
        assert_eq!([order.take(9, 8, false), order.take(8, 8, false)], [Turn::Beyond, Turn::Next(6)]);
    }

    proptest! {
        /// Whatever arrives, what is taken without a new beginning goes up.
        #[test]
        fn numbers_only_go_up(first: u32, steps in proptest::collection::vec((0u32..40, 0u32..40, any::<bool>()), 0..200)) {
            let mut order = Order::default();
            order.take(first, first, false);
            for (back, window, asks) in steps {
                let last = order.last().unwrap();
                let number = last.wrapping_add(20).wrapping_sub(back);
                let turn = order.take(number, last.wrapping_add(window), asks);
                match turn {
                    Turn::Next(missing) => prop_assert_eq!(number, last.wrapping_add(missing + 1)),
                    Turn::Anew => prop_assert_eq!(order.last(), Some(number)),
                    Turn::Old | Turn::Beyond => prop_assert_eq!(order.last(), Some(last)),
                }
            }
        }
    }
}
