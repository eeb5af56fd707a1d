//! Pictures numbered in the order they are shown. A picture tells its place as its
//! `temporal_reference` (ISO 13818-2 §6.3.9), ten bits that wrap and that begin anew at every
//! group of pictures. In an open group the B pictures that follow its I picture are shown before
//! it and still counted from the group's start, so a group's numbers simply begin where those of
//! the one before end. Where a stream restarts the count without saying so, or a group's header is
//! lost, it shows in that I and P pictures, which are coded in the order they are shown, go back.

/// Bits of a `temporal_reference`.
const WRAP: u32 = 1024;

/// Where a frame stands in the sequence, of its field or of all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// A field (ISO 13818-2 §6.3.10): the top one, or the bottom one.
    Field {
        /// The top one.
        top: bool,
    },
    /// Both at once.
    Frame,
}

/// A picture's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its frame's number; wraps.
    pub number: u32,
    /// It is the second field of its frame.
    pub second_field: bool,
}

/// The numbering.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    // The number of the picture with the reference 0 of this group.
    base: u32,
    // One more than the highest number so far.
    next: u32,
    // The number of this group's last I or P picture.
    anchor: Option<u32>,
    // A frame whose second field is to come: its reference, its number, its first field is the top.
    open: Option<(u16, u32, bool)>,
}

impl Order {
    /// A group begins: references count anew.
    pub fn group(&mut self) {
        self.base = self.next;
        self.anchor = None;
        self.open = None;
    }

    /// The number of the picture with the reference 0 of this group.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// The number that follows the highest one so far.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// A picture with this reference. `predicts`: it is an I or P picture.
    pub fn place(&mut self, reference: u16, predicts: bool, structure: Structure) -> Place {
        if let (Some((open, number, first_top)), Structure::Field { top }) = (self.open.take(), structure)
            && open == reference
            && top != first_top
        {
            return Place { number, second_field: true };
        }
        let number = self.number(reference, predicts);
        if let Structure::Field { top } = structure {
            self.open = Some((reference, number, top));
        }
        let next = number.wrapping_add(1);
        // The comparison is that of numbers that wrap.
        if next.wrapping_sub(self.next) as i32 > 0 {
            self.next = next;
        }
        Place { number, second_field: false }
    }

    fn number(&mut self, reference: u16, predicts: bool) -> u32 {
        let ahead = |base: u32, anchor: u32| {
            let ahead = u32::from(reference).wrapping_sub(anchor.wrapping_sub(base)) % WRAP;
            // The nearest of those with this reference.
            if ahead < WRAP / 2 { ahead as i32 } else { ahead as i32 - WRAP as i32 }
        };
        let number = match self.anchor {
            None => self.base.wrapping_add(reference.into()),
            Some(anchor) => {
                let ahead = ahead(self.base, anchor);
                if predicts && ahead <= 0 {
                    self.group();
                    self.base.wrapping_add(reference.into())
                } else {
                    anchor.wrapping_add_signed(ahead)
                }
            }
        };
        if predicts {
            self.anchor = Some(number);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The numbers of pictures in the order they are coded: `I2` is an I picture with reference 2,
    /// `G` a group's header.
    fn numbers(stream: &str) -> Vec<u32> {
        let mut order = Order::default();
        let mut numbers = Vec::new();
        for word in stream.split_whitespace() {
            let (kind, reference) = word.split_at(1);
            match reference.parse() {
                Ok(reference) => numbers.push(order.place(reference, kind != "B", Structure::Frame).number),
                Err(_) => order.group(),
            }
        }
        numbers
    }

    #[test]
    fn groups_follow_each_other() {
        assert_eq!(numbers("G I0 P3 B1 B2 G I0 P3 B1 B2"), [0, 3, 1, 2, 4, 7, 5, 6]);
    }

    #[test]
    fn an_open_group_begins_with_pictures_that_are_shown_before_its_first() {
        assert_eq!(numbers("G I0 P3 B1 B2 G I2 B0 B1 P5 B3 B4"), [0, 3, 1, 2, 6, 4, 5, 9, 7, 8]);
    }

    #[test]
    fn references_wrap_where_there_are_no_groups() {
        assert_eq!(
            numbers("I1020 P1023 B1021 B1022 P2 B0 B1 P5"),
            [1020, 1023, 1021, 1022, 1026, 1024, 1025, 1029]
        );
    }

    #[test]
    fn a_count_that_begins_anew_unannounced_goes_on() {
        assert_eq!(numbers("I0 P3 B1 B2 I0 P3 B1 B2"), [0, 3, 1, 2, 4, 7, 5, 6]);
        assert_eq!(numbers("I0 I0 I0"), [0, 1, 2]);
        assert_eq!(numbers("I0 P3 B1 B2 I2 B0 B1"), [0, 3, 1, 2, 6, 4, 5]);
    }

    #[test]
    fn two_fields_are_one_frame() {
        let (top, bottom) = (Structure::Field { top: true }, Structure::Field { top: false });
        let mut order = Order::default();
        let mut place = |reference, predicts, structure| {
            let place = order.place(reference, predicts, structure);
            (place.number, place.second_field)
        };
        assert_eq!((place(0, true, top), place(0, true, bottom)), ((0, false), (0, true)));
        assert_eq!((place(2, true, top), place(2, true, bottom)), ((2, false), (2, true)));
        assert_eq!((place(1, false, top), place(1, false, bottom)), ((1, false), (1, true)));
        // A field that lost its partner is a frame of its own.
        assert_eq!(
            (place(3, true, top), place(4, true, top), place(4, true, bottom)),
            ((3, false), (4, false), (4, true))
        );
    }
}
