//! The frames that whoever receives them holds: so many at most, each under the index of its ticket.
//! It must never give the bytes of a frame that nobody holds.

use silk_device::Frame;

use super::Carried;

/// A bounded number of places. Invariant: a place is either in `free` or has a buffer.
pub(super) struct Held {
    places: Vec<Option<Vec<u8>>>,
    free: Vec<u32>,
}

impl Held {
    /// Room for so many frames.
    pub(super) fn new(places: usize) -> Self {
        Self { places: vec![None; places], free: (0..places as u32).rev().collect() }
    }

    /// The ticket of a frame that is held from now on; none when there is no room.
    pub(super) fn hold(&mut self, carried: Carried) -> Option<Frame> {
        let index = self.free.pop()?;
        self.places[index as usize] = Some(carried.buffer);
        Some(Frame { index, ..carried.frame })
    }

    /// The buffer of a held frame, empty for any other.
    pub(super) fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        self.places.get_mut(frame.index as usize).and_then(Option::as_deref_mut).unwrap_or_default()
    }

    /// Lets go of a frame; one that is not held is ignored.
    pub(super) fn release(&mut self, frame: Frame) {
        if self.places.get_mut(frame.index as usize).is_some_and(|place| place.take().is_some()) {
            self.free.push(frame.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_device::{Checksum, HEADROOM};

    fn carried(byte: u8) -> Carried {
        let checksum = Checksum::Unknown;
        let frame = Frame { index: 0, device: 0, offset: 0, len: 1, path: 0, segment: 0, checksum };
        Carried::copy(frame, &[byte])
    }

    #[test]
    fn a_full_house_takes_nobody_until_one_has_left_and_left_once() {
        let mut held = Held::new(2);
        let [first, second] = [1, 2].map(|byte| held.hold(carried(byte)).unwrap());
        assert_eq!(held.hold(carried(3)), None);
        held.release(first);
        held.release(first);
        let third = held.hold(carried(3)).unwrap();
        assert_eq!(held.hold(carried(4)), None);
        assert_eq!([second, third].map(|frame| held.bytes(frame)[HEADROOM]), [2, 3]);
    }

    #[test]
    fn tickets_of_nobody_open_nothing() {
        let mut held = Held::new(1);
        let ticket = held.hold(carried(1)).unwrap();
        held.release(ticket);
        for index in [ticket.index, 7] {
            held.release(Frame { index, ..ticket });
            assert!(held.bytes(Frame { index, ..ticket }).is_empty());
        }
        assert_eq!(held.free, [0]);
    }
}
