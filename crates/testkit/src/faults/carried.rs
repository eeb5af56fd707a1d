//! A frame under way: a copy of its bytes with headroom before them, and what the device said of it.
//! It must never claim more of a corrupted frame than its receiver would find out on a real line.

use silk_device::{Checksum, Frame, HEADROOM};

use crate::emulator::{Packet, tag_of};

/// A frame of a device, which holds it no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    /// The frame is behind the headroom.
    pub(super) buffer: Vec<u8>,
    /// What the device said, but that the frame lies in `buffer`; its index means nothing.
    pub(super) frame: Frame,
}

impl Carried {
    /// A copy of a frame out of the buffer that it is in.
    pub(super) fn copy(frame: Frame, bytes: &[u8]) -> Self {
        let bytes = bytes.get(frame.range()).unwrap_or_default();
        let buffer = [&[0; HEADROOM], bytes].concat();
        Self { buffer, frame: Frame { index: 0, offset: HEADROOM as u32, len: bytes.len() as u32, ..frame } }
    }
}

impl Packet for Carried {
    fn length(&self) -> usize {
        self.frame.len as usize
    }

    fn tag(&self) -> usize {
        tag_of(self.buffer.get(self.frame.range()).unwrap_or_default())
    }

    /// Who verified the checksum, or found the path, did so before. What was left out of a checksum is
    /// not told any more either, so that the receiver finds it wrong.
    fn turn_over(&mut self, bit: usize) {
        self.buffer[HEADROOM + bit / 8] ^= 1 << (bit % 8);
        self.frame = Frame { path: 0, checksum: Checksum::Unknown, ..self.frame };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame {
        index: 9,
        device: 2,
        offset: 1,
        len: 2,
        path: 7,
        segment: 1448,
        checksum: Checksum::Verified,
    };

    #[test]
    fn what_the_device_said_goes_with_the_frame() {
        let carried = Carried::copy(FRAME, &[1, 2, 3, 4]);
        assert_eq!(carried.length(), 2);
        assert_eq!(carried.frame, Frame { index: 0, offset: HEADROOM as u32, ..FRAME });
        assert_eq!(carried.buffer[carried.frame.range()], [2, 3]);
    }

    #[test]
    fn of_a_corrupted_frame_nothing_is_said_that_was_found_out_before() {
        let mut carried = Carried::copy(FRAME, &[1, 2, 3, 4]);
        carried.turn_over(8);
        assert_eq!(carried.buffer[carried.frame.range()], [2, 2]);
        let (path, checksum) = (0, Checksum::Unknown);
        assert_eq!(carried.frame, Frame { index: 0, offset: HEADROOM as u32, path, checksum, ..FRAME });
    }

    #[test]
    fn a_frame_that_the_device_does_not_have_is_empty() {
        let carried = Carried::copy(FRAME, &[]);
        assert_eq!((carried.length(), carried.buffer.len()), (0, HEADROOM));
    }
}
