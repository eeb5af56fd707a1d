//! TCP's options (RFC 9293 §3.1, RFC 7323, RFC 2018), each length hostile. Unknown kinds are
//! skipped by their length; a length that lies spoils the segment.
//! ```text
//! MSS             | 2 |  4 |  mss (2)    |
//! window scale    | 3 |  3 |  shift (1)  |
//! SACK permitted  | 4 |  2 |
//! SACK            | 5 | 8n+2 | left edge (4), right edge (4), n times, n <= 4 |
//! timestamps      | 8 | 10 |  TSval (4)  |  TSecr (4)  |
//! ```

use crate::ParseError;

/// Bytes of the longest options.
pub const MAX: usize = 40;
/// The most SACK blocks a header can carry.
pub const BLOCKS: usize = 4;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// SACK blocks: ranges of sequence numbers, right edge exclusive, the most recent first.
#[derive(Clone, Copy, Default)]
pub struct Blocks {
    blocks: [(u32, u32); BLOCKS],
    length: u8,
}

impl Blocks {
    /// Adds a block; answers whether there was room.
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        let Some(block) = self.blocks.get_mut(usize::from(self.length)) else { return false };
        *block = (left, right);
        self.length += 1;
        true
    }

    /// The blocks, in the order of the packet.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.length)]
    }
}

impl PartialEq for Blocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Blocks {}

impl core::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// The options of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The largest segment the sender takes; only on a SYN.
    pub mss: Option<u16>,
    /// The shift of the sender's windows; only on a SYN. Not limited to 14 here.
    pub window_scale: Option<u8>,
    /// The sender understands SACK; only on a SYN.
    pub sack_permitted: bool,
    /// TSval and TSecr.
    pub timestamp: Option<(u32, u32)>,
    /// What the sender holds beyond SEG.ACK.
    pub sack: Blocks,
}

impl Options {
    /// The options in `bytes`. A repeated option's last value counts.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        // The aligned timestamps alone (RFC 7323 appendix A): nearly every segment.
        if let [NOP, NOP, TIMESTAMPS, 10, stamp @ ..] = bytes
            && let Ok(stamp) = <[u8; 8]>::try_from(stamp)
        {
            return Ok(Self { timestamp: Some(pair(&stamp)), ..Self::default() });
        }
        let mut options = Self::default();
        let mut rest = bytes;
        while let [kind, tail @ ..] = rest {
            rest = match *kind {
                END => break,
                NOP => tail,
                kind => {
                    let length = usize::from(*tail.first().ok_or(ParseError::TcpOptions)?);
                    let data = rest.get(2..length).ok_or(ParseError::TcpOptions)?;
                    options.take(kind, data)?;
                    &rest[length..]
                }
            };
        }
        Ok(options)
    }

    fn take(&mut self, kind: u8, data: &[u8]) -> Result<(), ParseError> {
        match (kind, data) {
            (MSS, &[a, b]) => self.mss = Some(u16::from_be_bytes([a, b])),
            (SCALE, &[shift]) => self.window_scale = Some(shift),
            (SACK_PERMITTED, []) => self.sack_permitted = true,
            (TIMESTAMPS, data) => {
                let data = data.try_into().map_err(|_| ParseError::TcpOptions)?;
                self.timestamp = Some(pair(data));
            }
            (SACK, data) if data.len().is_multiple_of(8) && data.len() <= 8 * BLOCKS => {
                self.sack = Blocks::default();
                for block in data.as_chunks().0 {
                    let (left, right) = pair(block);
                    self.sack.push(left, right);
                }
            }
            (MSS | SCALE | SACK_PERMITTED | SACK, _) => return Err(ParseError::TcpOptions),
            _ => {}
        }
        Ok(())
    }

    /// Writes the options, padded to a multiple of 4 and aligned as RFC 7323 appendix A has
    /// them, to the front of `bytes`, which must have room for [`MAX`] bytes; answers their
    /// length. SACK blocks that no longer fit are left out, oldest first.
    pub fn emit(&self, bytes: &mut [u8]) -> usize {
        let mut out = Writer { bytes, length: 0 };
        if let Some(mss) = self.mss {
            out.put(&[MSS, 4]);
            out.put(&mss.to_be_bytes());
        }
        match (self.sack_permitted, self.timestamp) {
            (true, Some(_)) => out.put(&[SACK_PERMITTED, 2]),
            (true, None) => out.put(&[NOP, NOP, SACK_PERMITTED, 2]),
            (false, Some(_)) => out.put(&[NOP, NOP]),
            (false, None) => {}
        }
        if let Some((value, echo)) = self.timestamp {
            out.put(&[TIMESTAMPS, 10]);
            out.put(&value.to_be_bytes());
            out.put(&echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            out.put(&[NOP, SCALE, 3, shift]);
        }
        self.emit_sack(&mut out);
        out.length
    }

    fn emit_sack(&self, out: &mut Writer<'_>) {
        let room = (MAX - out.length).saturating_sub(4) / 8;
        let blocks = &self.sack.as_slice()[..self.sack.as_slice().len().min(room)];
        if !blocks.is_empty() {
            out.put(&[NOP, NOP, SACK, (2 + 8 * blocks.len()) as u8]);
        }
        for (left, right) in blocks {
            out.put(&left.to_be_bytes());
            out.put(&right.to_be_bytes());
        }
    }
}

fn pair(bytes: &[u8; 8]) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = *bytes;
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
}

/// Bytes and how many of them are written.
struct Writer<'b> {
    bytes: &'b mut [u8],
    length: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;

    #[test]
    fn the_syn_of_linux() {
        let bytes = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        let options = Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamp: Some((1, 0)),
            sack: Blocks::default(),
        };
        assert_eq!(Options::parse(&bytes), Ok(options));
        let mut out = [0; MAX];
        assert_eq!(options.emit(&mut out), 20);
        assert_eq!(out[..20], bytes);
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        for bytes in [
            &[2][..],
            &[2, 0, 0, 0],
            &[2, 1, 0, 0],
            &[2, 3, 0, 0],
            &[2, 8, 0, 0],
            &[3, 4, 0, 0],
            &[4, 3, 0, 0],
            &[8, 9, 0, 0, 0, 0, 0, 0, 0, 0],
            &[5, 6, 0, 0, 0, 0],
            &[99, 0],
        ] {
            assert_eq!(Options::parse(bytes), Err(ParseError::TcpOptions), "{bytes:?}");
        }
    }

    #[test]
    fn what_follows_the_end_is_not_read() {
        assert_eq!(Options::parse(&[0, 2, 0, 0]), Ok(Options::default()));
    }

    #[test]
    fn unknown_options_are_skipped() {
        let read = Options::parse(&[34, 6, 1, 2, 3, 4, 3, 3, 9, 0]).unwrap();
        assert_eq!(read.window_scale, Some(9));
    }

    #[test]
    fn timestamps_leave_room_for_three_blocks() {
        let mut sack = Blocks::default();
        for n in 0..4 {
            assert!(sack.push(n * 10, n * 10 + 5));
        }
        assert!(!sack.push(0, 0));
        let options = Options { timestamp: Some((1, 2)), sack, ..Options::default() };
        let mut bytes = [0; MAX];
        let length = options.emit(&mut bytes);
        let read = Options::parse(&bytes[..length]).unwrap();
        assert_eq!(read.sack.as_slice(), &sack.as_slice()[..3]);
    }

    proptest! {
        #[test]
        fn written_and_read_back(mss: Option<u16>, window_scale: Option<u8>, sack_permitted: bool,
            timestamp: Option<(u32, u32)>, block: Option<(u32, u32)>) {
            let mut sack = Blocks::default();
            if let Some((left, right)) = block { sack.push(left, right); }
            let options = Options { mss, window_scale, sack_permitted, timestamp, sack };
            let mut bytes = [0; MAX];
            let length = options.emit(&mut bytes);
            prop_assert!(length.is_multiple_of(4) && length <= MAX);
            prop_assert_eq!(Options::parse(&bytes[..length]), Ok(options));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in proptest::collection::vec(0u8..12, 0..41)) {
            if let Ok(options) = Options::parse(&bytes) {
                prop_assert!(options.emit(&mut [0; MAX]) <= MAX);
            }
        }
    }
}
