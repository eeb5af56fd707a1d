//! Text that arrived ahead of its turn (RFC 9293 §3.10.7.4, seventh; RFC 2018 §4). Octets are
//! copied in once, the first copy of an octet wins, and memory is bounded by what the caller
//! allows, headers of the pieces included. It never delivers an octet out of order.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::options::SackBlocks;
use crate::seq::SeqNumber;

/// A piece grows by adjacent text up to this many octets, so that filling a gap never moves more.
const PIECE_OCTETS: usize = 16 << 10;
/// More pieces than this are refused: finding one's place must stay cheap whatever the peer sends.
const MAX_PIECES: usize = 4096;
/// What a piece costs beside its octets: its entry and the allocator's share.
const PIECE_OVERHEAD: usize = size_of::<Piece>() + 16;

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Piece {
    start: SeqNumber,
    bytes: Vec<u8>,
}

impl Piece {
    fn end(&self) -> SeqNumber {
        self.start + self.bytes.len() as u32
    }
}

/// There is no memory left for text out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The pieces of a connection's future.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Reassembly {
    /// Ascending and disjoint; adjacent pieces may touch.
    pieces: VecDeque<Piece>,
    /// Capacity of the pieces and their overhead.
    memory: usize,
    /// The contiguous blocks that grew last, latest first (RFC 2018 §4).
    recent: SackBlocks,
}

impl Reassembly {
    /// Keeps what of `bytes`, starting at `seq`, is not held yet, within `limit` bytes of memory.
    pub(crate) fn insert(&mut self, seq: SeqNumber, bytes: &[u8], limit: usize) -> Result<(), Full> {
        let fits = self.memory + bytes.len() + PIECE_OVERHEAD <= limit;
        if !fits || self.pieces.len() >= MAX_PIECES {
            return Err(Full);
        }
        let end = seq + bytes.len() as u32;
        let mut at = self.pieces.partition_point(|piece| piece.end().at_or_before(seq));
        let mut from = seq;
        while from.before(end) {
            let gap_end = self.pieces.get(at).map_or(end, |piece| piece.start.min(end));
            if from.before(gap_end) {
                let gap = (from - seq) as usize..(gap_end - seq) as usize;
                at = self.insert_gap(at, from, &bytes[gap]);
            }
            from = self.pieces.get(at).map_or(end, Piece::end);
            at += 1;
        }
        self.remember(seq, end);
        Ok(())
    }

    /// Puts octets that touch no held octet before the piece `at`; answers that piece's new place.
    fn insert_gap(&mut self, at: usize, start: SeqNumber, bytes: &[u8]) -> usize {
        if let Some(before) = at.checked_sub(1).and_then(|before| self.pieces.get_mut(before))
            && before.end() == start
            && before.bytes.len() + bytes.len() <= PIECE_OCTETS
        {
            self.memory -= before.bytes.capacity();
            before.bytes.extend_from_slice(bytes);
            self.memory += before.bytes.capacity();
            return at;
        }
        self.pieces.insert(at, Piece { start, bytes: bytes.to_vec() });
        self.memory += bytes.len() + PIECE_OVERHEAD;
        at + 1
    }

    /// The contiguous block around `start..end` becomes the first to be reported.
    fn remember(&mut self, start: SeqNumber, end: SeqNumber) {
        let (start, end) = self.block_around(start, end);
        let mut recent = SackBlocks::default();
        recent.push(start, end);
        for (old_start, old_end) in self.recent.iter() {
            if old_end.before(start) || old_start.after(end) {
                recent.push(old_start, old_end);
            }
        }
        self.recent = recent;
    }

    fn block_around(&self, mut start: SeqNumber, mut end: SeqNumber) -> (SeqNumber, SeqNumber) {
        let at = self.pieces.partition_point(|piece| piece.end().before(start));
        for piece in self.pieces.range(at..) {
            if piece.start.after(end) {
                break;
            }
            start = start.min(piece.start);
            end = end.max(piece.end());
        }
        let mut before = self.pieces.range(..at).rev();
        while let Some(piece) = before.next()
            && piece.end() == start
        {
            start = piece.start;
        }
        (start, end)
    }

    /// Delivers what continues the stream at `nxt`; answers where the stream then ends. `deliver`
    /// answers how many octets it took, and is not called again once it took less than offered.
    pub(crate) fn take(&mut self, mut nxt: SeqNumber, mut deliver: impl FnMut(&[u8]) -> usize) -> SeqNumber {
        while let Some(piece) = self.pieces.front()
            && piece.start.at_or_before(nxt)
        {
            let fresh = piece.bytes.get((nxt - piece.start) as usize..).unwrap_or(&[]);
            let taken = deliver(fresh).min(fresh.len());
            nxt += taken as u32;
            if taken < fresh.len() {
                break;
            }
            self.drop_front();
        }
        self.forget_below(nxt);
        nxt
    }

    fn drop_front(&mut self) {
        if let Some(piece) = self.pieces.pop_front() {
            self.memory -= piece.bytes.capacity() + PIECE_OVERHEAD;
        }
    }

    fn forget_below(&mut self, nxt: SeqNumber) {
        let mut recent = SackBlocks::default();
        for (start, end) in self.recent.iter().filter(|block| block.1.after(nxt)) {
            recent.push(start.max(nxt), end);
        }
        self.recent = recent;
    }

    /// The blocks to report, the one that grew last first.
    pub(crate) fn blocks(&self) -> &SackBlocks {
        &self.recent
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    const LIMIT: usize = 1 << 20;

    const fn seq(raw: u32) -> SeqNumber {
        SeqNumber::new(raw)
    }

    fn held(pieces: &[(u32, &[u8])]) -> Reassembly {
        let mut reassembly = Reassembly::default();
        for (start, bytes) in pieces {
            reassembly.insert(seq(*start), bytes, LIMIT).unwrap();
        }
        reassembly
    }

    fn taken(reassembly: &mut Reassembly, nxt: u32) -> (Vec<u8>, u32) {
        let mut stream = vec![];
        let nxt = reassembly.take(seq(nxt), |bytes| {
            stream.extend_from_slice(bytes);
            bytes.len()
        });
        (stream, nxt.raw())
    }

    // RFC 9293 SHLD-31.
    #[test]
    fn a_filled_gap_releases_everything_behind_it() {
        let mut reassembly = held(&[(13, b"def"), (16, b"gh"), (20, b"later")]);
        reassembly.insert(seq(10), b"abc", LIMIT).unwrap();
        assert_eq!(taken(&mut reassembly, 10), (b"abcdefgh".to_vec(), 18));
        assert!(!reassembly.is_empty());
    }

    #[test]
    fn the_first_copy_of_an_octet_wins() {
        let mut reassembly = held(&[(12, b"CC"), (10, b"aaaaaa")]);
        assert_eq!(taken(&mut reassembly, 10).0, b"aaCCaa");
    }

    // RFC 2018 §4.
    #[test]
    fn the_latest_block_is_reported_first_and_merged() {
        let reassembly = held(&[(10, b"aa"), (20, b"bb"), (30, b"cc"), (12, b"dd")]);
        let blocks: Vec<_> = reassembly.blocks().iter().map(|(s, e)| (s.raw(), e.raw())).collect();
        assert_eq!(blocks, [(10, 14), (30, 32), (20, 22)]);
    }

    #[test]
    fn memory_is_refused_beyond_the_limit_and_all_given_back() {
        let mut reassembly = Reassembly::default();
        let refused = (1..1_000).map(|n| reassembly.insert(seq(n * 2), b"x", 4_096)).find(Result::is_err);
        assert_eq!(refused, Some(Err(Full)));
        assert!(reassembly.memory() <= 4_096);
        let last = (1..1_000u32).map(|n| taken(&mut reassembly, n * 2).1).last();
        assert_eq!((last, reassembly.memory(), reassembly.is_empty()), (Some(1_998), 0, true));
    }

    #[test]
    fn the_number_of_pieces_is_bounded() {
        let mut reassembly = Reassembly::default();
        let taken = (1..10_000).rev().filter(|n| reassembly.insert(seq(*n), b"x", LIMIT).is_ok());
        assert_eq!(taken.count(), MAX_PIECES);
        let blocks: Vec<_> = reassembly.blocks().iter().map(|(start, end)| end - start).collect();
        assert_eq!(blocks, [MAX_PIECES as u32]);
    }

    #[test]
    fn what_the_buffer_does_not_take_waits() {
        let mut reassembly = held(&[(10, b"abcdef")]);
        assert_eq!(reassembly.take(seq(10), |_| 2), seq(12));
        assert_eq!(taken(&mut reassembly, 12), (b"cdef".to_vec(), 16));
    }

    proptest! {
        /// Any arrival order with any overlaps delivers the stream, and accounts for its memory.
        #[test]
        fn any_arrival_order_delivers_the_stream(
            arrivals in prop::collection::vec((0u32..3_000, 1u32..400), 1..80),
            origin in any::<u32>(),
        ) {
            let stream: Vec<u8> = (0..3_400u32).map(|n| (n * 7 + n / 256) as u8).collect();
            let (base, mut nxt, mut out) = (seq(origin), seq(origin), vec![]);
            let mut reassembly = Reassembly::default();
            let rest = (0..3_400).step_by(100).map(|start| (start, 100));
            for (start, len) in arrivals.into_iter().chain(rest) {
                let text = &stream[start as usize..(start + len) as usize];
                reassembly.insert(base + start, text, LIMIT).unwrap();
                nxt = reassembly.take(nxt, |bytes| {
                    out.extend_from_slice(bytes);
                    bytes.len()
                });
                prop_assert!(reassembly.blocks().iter().all(|(s, e)| s.after(nxt) && s.before(e)));
            }
            prop_assert_eq!(&out, &stream);
            prop_assert_eq!(nxt, base + 3_400);
            prop_assert_eq!((reassembly.memory(), reassembly.is_empty()), (0, true));
        }
    }
}
