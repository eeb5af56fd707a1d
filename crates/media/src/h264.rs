//! H.264 put together again from RTP (RFC 6184 §5, RFC 6184 §7.1): payloads become NAL units
//! with the start code 00 00 00 01 in front (ISO 14496-10 Annex B). A unit that came in pieces is
//! whole or it is dropped: no piece of a broken one is given out. What it holds is bounded by the
//! configured size of a unit.

use alloc::vec::Vec;
use core::fmt;
use silk_wire::ParseError;
use silk_wire::rtp_h264::{self, Fragment, Payload};

/// What stands in front of each unit.
pub const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// Why units, or pieces, were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The payload itself is malformed.
    Payload(ParseError),
    /// The pieces of a unit before this payload did not come to their end.
    Unfinished,
    /// A piece whose unit's beginning is not here.
    Stray,
    /// A unit larger than may be.
    TooLarge,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Payload(fault) => fault.fmt(f),
            Self::Unfinished => f.write_str("a unit whose last pieces are missing"),
            Self::Stray => f.write_str("a piece of a unit whose beginning is missing"),
            Self::TooLarge => f.write_str("a unit larger than this player takes"),
        }
    }
}

impl core::error::Error for Damage {}

/// Puts the units of one stream together.
#[derive(Debug)]
pub struct Reassembly {
    // The most bytes of a unit with its start code.
    limit: usize,
    // Start code and unit; the unit in pieces while `open` is set.
    unit: Vec<u8>,
    // The first byte of the unit that is being put together.
    open: Option<u8>,
}

impl Reassembly {
    /// Takes units of at most `limit` bytes, their start code included, 64 at least.
    pub fn new(limit: usize) -> Self {
        let limit = limit.max(64);
        Self { limit, unit: Vec::new(), open: None }
    }

    /// Bytes it holds.
    pub fn memory(&self) -> u64 {
        self.unit.capacity() as u64
    }

    /// The next payload, in the order of their sequence numbers; `gap`: one before it is missing.
    /// Whole units go to `take`, with their start codes, and whether the payload ends with this one.
    ///
    /// # Errors
    /// What was dropped; where that is an unfinished unit before this payload, the payload has been
    /// taken all the same.
    pub fn push(
        &mut self,
        payload: &[u8],
        gap: bool,
        mut take: impl FnMut(&[u8], bool),
    ) -> Result<(), Damage> {
        let payload = rtp_h264::parse(payload);
        let goes_on = matches!(payload, Ok(Payload::Piece(Fragment { start: false, .. }, _)));
        let before = if self.open.is_some() && (gap || !goes_on) { self.give_up() } else { Ok(()) };
        match payload.map_err(Damage::Payload)? {
            Payload::Single(unit) => self.whole(unit, true, &mut take)?,
            Payload::Several(units) => {
                let mut units = units.peekable();
                while let Some(unit) = units.next() {
                    self.whole(unit, units.peek().is_none(), &mut take)?;
                }
            }
            Payload::Piece(fragment, piece) => match (self.piece(fragment, piece, &mut take), before) {
                // What went before has said already that the beginning is gone.
                (Err(Damage::Stray), Err(before)) => return Err(before),
                (now, _) => now?,
            },
        }
        before
    }

    fn whole(&mut self, unit: &[u8], ends: bool, take: &mut impl FnMut(&[u8], bool)) -> Result<(), Damage> {
        self.begin();
        self.add(unit)?;
        take(&self.unit, ends);
        Ok(())
    }

    fn piece(
        &mut self,
        fragment: Fragment,
        piece: &[u8],
        take: &mut impl FnMut(&[u8], bool),
    ) -> Result<(), Damage> {
        if fragment.start {
            self.begin();
            self.add(&[fragment.unit])?;
            self.open = Some(fragment.unit);
        } else if self.open != Some(fragment.unit) {
            self.open = None;
            return Err(Damage::Stray);
        }
        self.add(piece)?;
        if fragment.end {
            self.open = None;
            take(&self.unit, true);
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.unit.clear();
        self.unit.extend_from_slice(&START_CODE);
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        if self.unit.len() + bytes.len() > self.limit {
            self.open = None;
            return Err(Damage::TooLarge);
        }
        let room = self.unit.capacity() - self.unit.len();
        if room < bytes.len() {
            // Doubled as it grows, and never beyond the limit.
            let wanted = (2 * self.unit.capacity()).clamp(self.unit.len() + bytes.len(), self.limit);
            self.unit.reserve_exact(wanted - self.unit.len());
        }
        self.unit.extend_from_slice(bytes);
        Ok(())
    }

    fn give_up(&mut self) -> Result<(), Damage> {
        self.open = None;
        Err(Damage::Unfinished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What comes out of payloads, and what was dropped.
    fn put_together(limit: usize, payloads: &[(&[u8], bool)]) -> (Vec<Vec<u8>>, Vec<Damage>) {
        let mut reassembly = Reassembly::new(limit);
        let (mut units, mut damages) = (Vec::new(), Vec::new());
        for (payload, gap) in payloads {
            damages.extend(reassembly.push(payload, *gap, |unit, _| units.push(unit.to_vec())).err());
        }
        (units, damages)
    }

    // Three pieces of the unit 65 1 2 3.
    const PIECES: [&[u8]; 3] = [&[0x7c, 0x85, 1], &[0x7c, 0x05, 2], &[0x7c, 0x45, 3]];
    const WHOLE: [u8; 8] = [0, 0, 0, 1, 0x65, 1, 2, 3];
    const SINGLE: (&[u8], bool) = (&[0x41, 9], false);

    fn single() -> Vec<u8> {
        [&START_CODE[..], SINGLE.0].concat()
    }

    #[test]
    fn units_come_out_whole_and_with_start_codes() {
        let [a, b, c] = PIECES.map(|piece| (piece, false));
        let several: (&[u8], bool) = (&[0x78, 0, 1, 0x67, 0, 1, 0x68], false);
        let (units, damages) = put_together(100, &[several, a, b, c, SINGLE]);
        let expected =
            [alloc::vec![0, 0, 0, 1, 0x67], alloc::vec![0, 0, 0, 1, 0x68], WHOLE.to_vec(), single()];
        assert_eq!((units, damages), (expected.to_vec(), Vec::new()));
    }

    #[test]
    fn a_unit_with_a_missing_piece_is_dropped_and_the_next_one_is_not() {
        let [a, b, c] = PIECES;
        let after_gap = put_together(100, &[(a, false), (c, true), SINGLE]);
        assert_eq!(after_gap, (alloc::vec![single()], alloc::vec![Damage::Unfinished]));
        let no_end = put_together(100, &[(a, false), SINGLE]);
        assert_eq!(no_end, (alloc::vec![single()], alloc::vec![Damage::Unfinished]));
        let no_start = put_together(100, &[(b, true), (c, false)]);
        assert_eq!(no_start, (Vec::new(), alloc::vec![Damage::Stray, Damage::Stray]));
        let again = put_together(100, &[(a, false), (a, false), (b, false), (c, false)]);
        assert_eq!(again, (alloc::vec![WHOLE.to_vec()], alloc::vec![Damage::Unfinished]));
        let other = put_together(100, &[(a, false), (&[0x7c, 0x41, 3], false), (c, false)]);
        assert_eq!(other, (Vec::new(), alloc::vec![Damage::Stray, Damage::Stray]));
    }

    #[test]
    fn what_is_too_large_or_malformed_is_dropped() {
        let [a, b, c] = PIECES.map(|piece| (piece, false));
        let (units, damages) =
            put_together(64, &[a, (&[&[0x7c, 0x05][..], &[2; 58]].concat(), false), b, c, SINGLE]);
        assert_eq!((units, damages), (alloc::vec![single()], alloc::vec![Damage::TooLarge, Damage::Stray]));
        let malformed = Damage::Payload(ParseError::RtpPayload);
        assert_eq!(
            put_together(100, &[a, (&[0], false), b]),
            (Vec::new(), alloc::vec![malformed, Damage::Stray])
        );
    }

    proptest! {
        #[test]
        fn any_payloads_hold_no_more_than_the_limit(
            payloads in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..70), 0usize..4, any::<bool>()), 0..30),
        ) {
            let mut reassembly = Reassembly::new(64);
            for (bytes, kind, gap) in &payloads {
                let heads: [&[u8]; 4] = [&[], &[0x7c, 0x85], &[0x7c, 0x05], &[0x7c, 0x45]];
                let payload = [heads[*kind], bytes].concat();
                let _ = reassembly.push(&payload, *gap, |unit, _| {
                    assert!(unit.starts_with(&START_CODE) && (5..=64).contains(&unit.len()));
                });
            }
            prop_assert!(reassembly.memory() <= 64);
        }
    }
}
