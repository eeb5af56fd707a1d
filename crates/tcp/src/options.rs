//! TCP options: the bytes between the header and the text (RFC 9293 §3.2, RFC 7323, RFC 2018).
//! Reading trusts nothing: a length that does not fit is a fault of the segment, never a read past
//! it. Writing never exceeds [`Options::MAX_BYTES`].

use core::fmt;

use crate::advertised::Advertised;
use crate::seq::SeqNumber;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMP: u8 = 8;
const USER_TIMEOUT: u8 = 28;

/// Up to four ranges `[start, end)` that the receiver holds beyond its acknowledgement (RFC 2018
/// §3), the most recent first.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(SeqNumber, SeqNumber); 4],
    count: u8,
}

impl SackBlocks {
    /// Adds a block; a fifth is left out, and the answer is whether there was room.
    pub fn push(&mut self, start: SeqNumber, end: SeqNumber) -> bool {
        let Some(place) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *place = (start, end);
        self.count += 1;
        true
    }

    /// The blocks in the order of the option.
    pub fn iter(&self) -> impl Iterator<Item = (SeqNumber, SeqNumber)> + '_ {
        self.blocks[..usize::from(self.count)].iter().copied()
    }

    /// The D-SACK (RFC 2883 §4): a first block at or below the acknowledgement `ack`, or within the
    /// second, is what arrived twice.
    pub fn duplicate(&self, ack: SeqNumber) -> Option<(SeqNumber, SeqNumber)> {
        let mut blocks = self.iter();
        let (start, end) = blocks.next()?;
        let within = |(outer_start, outer_end): (SeqNumber, SeqNumber)| {
            outer_start.at_or_before(start) && end.at_or_before(outer_end)
        };
        (end.at_or_before(ack) || blocks.next().is_some_and(within)).then_some((start, end))
    }

    /// Whether there is no block.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(start, end)| start.raw()..end.raw())).finish()
    }
}

/// The options this machine understands; all others are skipped (RFC 9293 §3.2, MUST-6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size, on a SYN.
    pub mss: Option<u16>,
    /// Window scale shift, on a SYN; at most 14 (RFC 7323 §2.3).
    pub window_scale: Option<u8>,
    /// Whether selective acknowledgement is permitted, on a SYN.
    pub sack_permitted: bool,
    /// TSval and TSecr (RFC 7323 §3.2).
    pub timestamp: Option<(u32, u32)>,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// The sender's user time-out (RFC 5482 §3.3). A reserved value, zero, is read as none.
    pub user_timeout: Option<Advertised>,
}

/// An option whose length is zero, one, wrong for its kind, or beyond the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedOption {
    /// The option's kind octet.
    pub kind: u8,
}

impl Options {
    /// The most bytes options can take (RFC 9293 §3.1: a data offset of 15).
    pub const MAX_BYTES: usize = 40;
    /// Bytes that a timestamp takes in every segment, with its padding.
    pub const TIMESTAMP_BYTES: usize = 12;
    /// Bytes that a user time-out takes.
    pub const USER_TIMEOUT_BYTES: usize = 4;

    /// Reads the options field of a header.
    ///
    /// # Errors
    /// The sender's fault: an option with an impossible length (RFC 9293 §3.2, MUST-7).
    // RFC 9293 MUST-4, MUST-5, MUST-64.
    pub fn parse(mut bytes: &[u8]) -> Result<Self, MalformedOption> {
        let mut options = Self::default();
        // Nearly every segment carries just this layout (RFC 7323 appendix A).
        if let [NOP, NOP, TIMESTAMP, 10, stamp @ ..] = bytes
            && stamp.len() == 8
        {
            options.timestamp = Some((word(stamp, 0), word(stamp, 4)));
            return Ok(options);
        }
        while let [kind, rest @ ..] = bytes {
            match *kind {
                END => break,
                NOP => bytes = rest,
                kind => {
                    let length = rest.first().map_or(0, |length| usize::from(*length));
                    let malformed = MalformedOption { kind };
                    let body = bytes.get(2..length).ok_or(malformed)?;
                    options.take(kind, body).ok_or(malformed)?;
                    bytes = &bytes[length..];
                }
            }
        }
        Ok(options)
    }

    fn take(&mut self, kind: u8, body: &[u8]) -> Option<()> {
        match kind {
            MSS => self.mss = Some(u16::from_be_bytes(body.try_into().ok()?)),
            WINDOW_SCALE => {
                let [shift] = *body else { return None };
                self.window_scale = Some(shift.min(14));
            }
            SACK_PERMITTED if body.is_empty() => self.sack_permitted = true,
            SACK if body.len().is_multiple_of(8) => {
                for block in body.chunks_exact(8) {
                    self.sack.push(SeqNumber::new(word(block, 0)), SeqNumber::new(word(block, 4)));
                }
            }
            TIMESTAMP if body.len() == 8 => self.timestamp = Some((word(body, 0), word(body, 4))),
            USER_TIMEOUT => {
                self.user_timeout = Advertised::from_bits(u16::from_be_bytes(body.try_into().ok()?));
            }
            SACK_PERMITTED | SACK | TIMESTAMP => return None,
            _ => {}
        }
        Some(())
    }

    /// How many bytes [`Options::write`] will write: a multiple of four.
    pub fn encoded_len(&self) -> usize {
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * usize::from(self.sack.count) };
        let stamp = if self.timestamp.is_some() { Self::TIMESTAMP_BYTES } else { 0 };
        let permitted = if self.sack_permitted && self.timestamp.is_none() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let user_timeout = if self.user_timeout.is_some() { Self::USER_TIMEOUT_BYTES } else { 0 };
        mss + scale + permitted + stamp + sack + user_timeout
    }

    /// Writes the options, padded to a multiple of four bytes, and answers how many bytes that
    /// were. Options that do not fit into `out` or into a header are left out, SACK blocks first.
    // RFC 9293 MUST-68, MUST-69.
    pub fn write(&self, out: &mut [u8]) -> usize {
        let room = out.len().min(Self::MAX_BYTES);
        let mut writer = Writer { out: &mut out[..room], at: 0 };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            writer.put(&[MSS, 4, high, low]);
        }
        if let Some(shift) = self.window_scale {
            writer.put(&[NOP, WINDOW_SCALE, 3, shift]);
        }
        let lead = if self.sack_permitted { [SACK_PERMITTED, 2] } else { [NOP, NOP] };
        if let Some((value, echo)) = self.timestamp {
            writer.put_words([lead[0], lead[1], TIMESTAMP, 10], &[value, echo]);
        } else if self.sack_permitted {
            writer.put(&[lead[0], lead[1], NOP, NOP]);
        }
        self.write_sack(&mut writer);
        if let Some(time) = self.user_timeout {
            let [high, low] = time.bits().to_be_bytes();
            writer.put(&[USER_TIMEOUT, 4, high, low]);
        }
        writer.at
    }

    fn write_sack(&self, writer: &mut Writer) {
        let fitting = writer.left().saturating_sub(4) / 8;
        let count = usize::from(self.sack.count).min(fitting);
        if count == 0 {
            return;
        }
        writer.put(&[NOP, NOP, SACK, 2 + 8 * count as u8]);
        for (start, end) in self.sack.iter().take(count) {
            writer.put(&start.raw().to_be_bytes());
            writer.put(&end.raw().to_be_bytes());
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn left(&self) -> usize {
        self.out.len() - self.at
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.out.get_mut(self.at..self.at + bytes.len()) {
            place.copy_from_slice(bytes);
            self.at += bytes.len();
        }
    }

    /// A four-byte lead and its words, or nothing at all.
    fn put_words(&mut self, lead: [u8; 4], words: &[u32]) {
        if self.left() >= 4 + 4 * words.len() {
            self.put(&lead);
            words.iter().for_each(|word| self.put(&word.to_be_bytes()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use proptest::prelude::*;

    fn syn() -> Options {
        Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamp: Some((1, 0)),
            sack: SackBlocks::default(),
            user_timeout: Some(Advertised::new(Duration::from_secs(300))),
        }
    }

    fn round_trip(options: Options) -> Options {
        let mut bytes = [0; 40];
        let len = options.write(&mut bytes);
        assert_eq!(len, options.encoded_len());
        Options::parse(&bytes[..len]).unwrap()
    }

    // RFC 9293 MUST-4, MUST-68, MUST-69.
    #[test]
    fn a_syn_reads_back_as_written() {
        assert_eq!(round_trip(syn()), syn());
        let plain = Options { timestamp: None, ..syn() };
        assert_eq!(round_trip(plain), plain);
    }

    // RFC 2018 §3.
    #[test]
    fn a_timestamp_leaves_room_for_three_sack_blocks() {
        let mut options = Options { timestamp: Some((5, 6)), ..Options::default() };
        for start in [10, 30, 50, 70] {
            options.sack.push(SeqNumber::new(start), SeqNumber::new(start + 10));
        }
        let mut bytes = [0; 64];
        assert_eq!(options.write(&mut bytes), 40);
        assert_eq!(Options::parse(&bytes[..40]).unwrap().sack.iter().count(), 3);
    }

    #[test]
    fn a_first_block_that_was_acknowledged_or_is_part_of_the_second_arrived_twice() {
        let duplicate = |list: &[(u32, u32)]| {
            let mut blocks = SackBlocks::default();
            for (start, end) in list {
                blocks.push(SeqNumber::new(*start), SeqNumber::new(*end));
            }
            blocks.duplicate(SeqNumber::new(100)).map(|(start, _)| start.raw())
        };
        assert_eq!(duplicate(&[(90, 100), (110, 120)]), Some(90));
        assert_eq!(duplicate(&[(115, 120), (110, 130)]), Some(115));
        assert_eq!(duplicate(&[(110, 120), (130, 140)]), None);
        assert_eq!(duplicate(&[]), None);
    }

    #[test]
    fn a_fifth_sack_block_is_left_out() {
        let mut blocks = SackBlocks::default();
        let all = (0..5).map(|n| blocks.push(SeqNumber::new(n), SeqNumber::new(n + 1)));
        assert!(all.eq([true, true, true, true, false]));
    }

    // RFC 9293 MUST-7.
    #[test]
    fn impossible_lengths_are_refused() {
        for bytes in
            [&[2, 0, 5, 5][..], &[2, 1], &[8], &[2, 4, 5], &[99, 40, 1], &[4, 3, 0], &[5, 9, 1], &[28, 3, 7]]
        {
            assert_eq!(Options::parse(bytes), Err(MalformedOption { kind: bytes[0] }), "{bytes:?}");
        }
    }

    // RFC 9293 MUST-6, MUST-64.
    #[test]
    fn unknown_options_are_skipped() {
        let options = Options::parse(&[77, 3, 9, 2, 4, 5, 180, 0, 2, 9]).unwrap();
        assert_eq!(options, Options { mss: Some(1460), ..Options::default() });
    }

    // RFC 5482 §3.4.
    #[test]
    fn a_user_timeout_of_zero_says_nothing() {
        assert_eq!(Options::parse(&[28, 4, 0x80, 0]), Ok(Options::default()));
    }

    // RFC 7323 §2.3.
    #[test]
    fn a_scale_above_fourteen_counts_as_fourteen() {
        assert_eq!(Options::parse(&[3, 3, 200]).unwrap().window_scale, Some(14));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic_and_read_back(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(options) = Options::parse(&bytes) {
                let mut out = [0; 40];
                let len = options.write(&mut out);
                let again = Options::parse(&out[..len]).unwrap();
                prop_assert_eq!(again.mss, options.mss);
                prop_assert_eq!(again.timestamp, options.timestamp);
                if options.encoded_len() <= Options::MAX_BYTES {
                    prop_assert_eq!(again.user_timeout, options.user_timeout);
                }
            }
        }

        #[test]
        fn any_room_is_respected(room in 0usize..64) {
            let mut out = [0; 64];
            prop_assert!(syn().write(&mut out[..room]) <= room.min(40));
        }
    }
}
