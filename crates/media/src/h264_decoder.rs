//! A decoder of H.264 that is fed with RTP payloads (RFC 6184): it puts the NAL units together
//! and passes whole ones on to the decoder it stands in front of.

use crate::h264::Reassembly;
use crate::{DecodeError, Decoder, Picture, Unit};
use alloc::boxed::Box;

/// A decoder in front of which RTP payloads become NAL units.
pub struct FromRtp {
    decoder: Box<dyn Decoder>,
    reassembly: Reassembly,
    // The picture began with payloads of which no unit has come out yet.
    first: bool,
    // Units before the next one were lost.
    gap: bool,
}

impl FromRtp {
    /// The most bytes of a NAL unit that comes by RTP.
    pub(crate) const LARGEST: usize = 1 << 20;

    /// Feeds `decoder`.
    pub fn new(decoder: Box<dyn Decoder>) -> Self {
        Self { decoder, reassembly: Reassembly::new(Self::LARGEST), first: false, gap: false }
    }
}

impl Decoder for FromRtp {
    fn decode(&mut self, unit: Unit<'_>, shown: &mut dyn FnMut(Box<dyn Picture>)) -> Result<(), DecodeError> {
        let Self { decoder, reassembly, first, gap } = self;
        *first |= unit.first;
        *gap |= unit.gap;
        let mut decoded = Ok(());
        let taken = reassembly.push(unit.bytes, unit.gap, |bytes, ends| {
            let (first, gap) = (core::mem::take(first), core::mem::take(gap));
            let unit = Unit { bytes, stamp: unit.stamp, first, last: unit.last && ends, gap };
            decoded = decoded.and(decoder.decode(unit, shown));
        });
        // What was dropped is missing before the next unit.
        *gap |= taken.is_err();
        decoded.and(taken.map_err(|_| DecodeError::Malformed))
    }

    fn finish(&mut self, shown: &mut dyn FnMut(Box<dyn Picture>)) {
        (self.first, self.gap) = (false, false);
        self.decoder.finish(shown);
    }

    fn memory(&self) -> u64 {
        // What the reassembly may come to hold.
        self.decoder.memory() + Self::LARGEST as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    extern crate std;
    use std::sync::Mutex;

    /// What a decoder was given: bytes, first, last, gap.
    type Given = Arc<Mutex<Vec<(Vec<u8>, bool, bool, bool)>>>;

    struct Recorder(Given);

    impl Decoder for Recorder {
        fn decode(&mut self, unit: Unit<'_>, _: &mut dyn FnMut(Box<dyn Picture>)) -> Result<(), DecodeError> {
            self.0.lock().unwrap().push((unit.bytes.to_vec(), unit.first, unit.last, unit.gap));
            Ok(())
        }

        fn finish(&mut self, _: &mut dyn FnMut(Box<dyn Picture>)) {}

        fn memory(&self) -> u64 {
            7
        }
    }

    #[test]
    fn a_picture_in_payloads_is_a_picture_in_units() {
        let given = Given::default();
        let mut decoder = FromRtp::new(Box::new(Recorder(given.clone())));
        let mut feed = |bytes: &[u8], first, last, gap| {
            decoder.decode(Unit { bytes, stamp: 5, first, last, gap }, &mut |_| {})
        };
        assert_eq!(feed(&[0x78, 0, 1, 0x67, 0, 1, 0x68], true, false, false), Ok(()));
        assert_eq!(feed(&[0x7c, 0x85, 1], false, false, false), Ok(()));
        assert_eq!(feed(&[0x7c, 0x45, 2], false, true, false), Ok(()));
        assert_eq!(feed(&[0x7c, 0x81, 1], true, false, false), Ok(()));
        assert_eq!(feed(&[0x7c, 0x41, 2], false, true, true), Err(DecodeError::Malformed));
        assert_eq!(feed(&[0x41, 9], true, true, false), Ok(()));
        let unit = |bytes: &[u8]| [&crate::h264::START_CODE[..], bytes].concat();
        let expected = [
            (unit(&[0x67]), true, false, false),
            (unit(&[0x68]), false, false, false),
            (unit(&[0x65, 1, 2]), false, true, false),
            (unit(&[0x41, 9]), true, true, true),
        ];
        assert_eq!(*given.lock().unwrap(), expected);
    }
}
