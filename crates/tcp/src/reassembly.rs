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

/// Octets that wait with none missing between them.
#[derive(Clone, Copy, Debug)]
struct Block {
    start: SeqNumber,
    end: SeqNumber,
    /// The peer was told of it as it is.
    told: bool,
}

/// Blocks that wait to be told; of more the oldest are left out.
const MOST_UNTOLD: usize = 64;
/// Blocks that are told again, in case that acknowledgements are lost (RFC 2018 §4).
const MOST_TOLD: usize = 4;

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
    /// The blocks that grew last, latest first (RFC 2018 §4): those that the peer was not told of, and some that it was.
    recent: Vec<Block>,
}

impl Reassembly {
    /// Keeps what of `bytes`, starting at `seq`, is not held yet, within `limit` bytes of memory. Answers which of them are, the first that
    /// lie together.
    pub(crate) fn insert(
        &mut self,
        seq: SeqNumber,
        bytes: &[u8],
        limit: usize,
    ) -> Result<Option<(SeqNumber, SeqNumber)>, Full> {
        let fits = self.memory + bytes.len() + PIECE_OVERHEAD <= limit;
        if !fits || self.pieces.len() >= MAX_PIECES {
            return Err(Full);
        }
        let end = seq + bytes.len() as u32;
        let mut at = self.pieces.partition_point(|piece| piece.end().at_or_before(seq));
        let (mut from, mut twice) = (seq, None);
        while from.before(end) {
            let gap_end = self.pieces.get(at).map_or(end, |piece| piece.start.min(end));
            if from.before(gap_end) {
                let gap = (from - seq) as usize..(gap_end - seq) as usize;
                at = self.insert_gap(at, from, &bytes[gap]);
            }
            let held = from.max(gap_end);
            from = self.pieces.get(at).map_or(end, Piece::end);
            at += 1;
            if held.before(end) {
                let (start, until) = twice.unwrap_or((held, held));
                twice = Some((start, if until == held { from.min(end) } else { until }));
            }
        }
        self.remember(seq, end);
        Ok(twice)
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
        let mut told = 0;
        self.recent.retain(|old| {
            told += usize::from(old.told);
            (old.end.before(start) || old.start.after(end)) && (!old.told || told <= MOST_TOLD)
        });
        self.recent.truncate(MOST_UNTOLD + MOST_TOLD - 1);
        self.recent.insert(0, Block { start, end, told: false });
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
        self.recent.retain(|block| block.end.after(nxt));
        for block in &mut self.recent {
            block.start = block.start.max(nxt);
        }
    }

    /// As many blocks as an acknowledgement has room for: the one around `first`, octets that came twice, then of those that
    /// the peer was not told of the oldest, each latest first, as if an acknowledgement had been sent as soon as it was full of
    /// news, then the latest of the others.
    // RFC 2018 §4; RFC 2883 §4.
    pub(crate) fn blocks(&self, first: Option<SeqNumber>, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let around = |block: &&Block| {
            first.is_some_and(|first| block.start.at_or_before(first) && block.end.after(first))
        };
        let enclosing = self.recent.iter().find(around).map(|block| block.start);
        let others = || self.recent.iter().filter(|block| Some(block.start) != enclosing);
        let room_for_others = room.saturating_sub(usize::from(enclosing.is_some()));
        let untold = others().filter(|block| !block.told).count();
        let news = others().filter(|block| !block.told).skip(untold.saturating_sub(room_for_others));
        let chosen = self.recent.iter().filter(around).chain(news).chain(others().filter(|block| block.told));
        for block in chosen.take(room) {
            blocks.push(block.start, block.end);
        }
        blocks
    }

    /// The peer was told of these.
    pub(crate) fn told(&mut self, blocks: &SackBlocks) {
        for (start, end) in blocks.iter() {
            let same = |block: &&mut Block| (block.start, block.end) == (start, end);
            self.recent.iter_mut().filter(same).for_each(|block| block.told = true);
        }
    }

    /// Whether the peer was not told of some block yet.
    pub(crate) fn has_news(&self) -> bool {
        self.recent.iter().any(|block| !block.told)
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.memory + self.recent.capacity() * size_of::<Block>()
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
        let blocks: Vec<_> = reassembly.blocks(None, 4).iter().map(|(s, e)| (s.raw(), e.raw())).collect();
        assert_eq!(blocks, [(10, 14), (30, 32), (20, 22)]);
    }

    fn told(reassembly: &mut Reassembly, first: Option<u32>, room: usize) -> Vec<(u32, u32)> {
        let blocks = reassembly.blocks(first.map(seq), room);
        reassembly.told(&blocks);
        blocks.iter().map(|(start, end)| (start.raw(), end.raw())).collect()
    }

    // RFC 2018 §4.
    #[test]
    fn of_more_news_than_an_acknowledgement_holds_the_oldest_are_told_first_and_none_is_left_out() {
        let mut reassembly = held(&[(10, b"a"), (20, b"b"), (30, b"c"), (40, b"d"), (50, b"e")]);
        assert_eq!(told(&mut reassembly, None, 3), [(30, 31), (20, 21), (10, 11)]);
        assert!(reassembly.has_news());
        assert_eq!(told(&mut reassembly, None, 3), [(50, 51), (40, 41), (30, 31)]);
        assert!(!reassembly.has_news());
        assert_eq!(told(&mut reassembly, None, 3), [(50, 51), (40, 41), (30, 31)], "in case that was lost");
        // What grows is news again.
        reassembly.insert(seq(21), b"b", LIMIT).unwrap();
        assert_eq!(told(&mut reassembly, None, 2), [(20, 22), (50, 51)]);
    }

    #[test]
    fn no_more_news_are_kept_than_a_bound() {
        let mut reassembly = Reassembly::default();
        for n in 1..=1000u32 {
            reassembly.insert(seq(n * 2), b"x", LIMIT).unwrap();
        }
        let mut starts = vec![];
        while reassembly.has_news() {
            starts.extend(told(&mut reassembly, None, 3).into_iter().map(|(start, _)| start));
        }
        assert!(
            starts.len() >= MOST_UNTOLD && starts.len() <= MOST_UNTOLD + 2 * MOST_TOLD,
            "{}",
            starts.len()
        );
        assert!(starts.contains(&2000));
    }

    // RFC 2883 §4.
    #[test]
    fn what_was_held_already_is_told_with_the_block_around_it() {
        let mut reassembly = held(&[(10, b"aaaa"), (20, b"bb"), (22, b"bb"), (30, b"c")]);
        let mut insert = |start, bytes: &[u8]| {
            let twice = reassembly.insert(seq(start), bytes, LIMIT).unwrap();
            twice.map(|(start, end)| (start.raw(), end.raw()))
        };
        assert_eq!(insert(21, b"bb"), Some((21, 23)), "two pieces that touch");
        assert_eq!(insert(12, b"aaaa"), Some((12, 14)), "a part");
        assert_eq!(insert(18, b"bbbbbbbbbbbbb"), Some((20, 24)), "the first of several");
        assert_eq!(insert(50, b"d"), None);
        assert_eq!(told(&mut reassembly, Some(12), 2), [(10, 16), (18, 31)]);
    }

    #[test]
    fn memory_is_refused_beyond_the_limit_and_all_given_back() {
        let mut reassembly = Reassembly::default();
        let refused = (1..1_000).map(|n| reassembly.insert(seq(n * 2), b"x", 4_096)).find(Result::is_err);
        assert_eq!(refused, Some(Err(Full)));
        assert!(reassembly.memory <= 4_096);
        let last = (1..1_000u32).map(|n| taken(&mut reassembly, n * 2).1).last();
        assert_eq!((last, reassembly.memory, reassembly.is_empty()), (Some(1_998), 0, true));
    }

    #[test]
    fn the_number_of_pieces_is_bounded() {
        let mut reassembly = Reassembly::default();
        let taken = (1..10_000).rev().filter(|n| reassembly.insert(seq(*n), b"x", LIMIT).is_ok());
        assert_eq!(taken.count(), MAX_PIECES);
        let blocks: Vec<_> = reassembly.blocks(None, 4).iter().map(|(start, end)| end - start).collect();
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
                prop_assert!(reassembly.blocks(None, 4).iter().all(|(s, e)| s.after(nxt) && s.before(e)));
            }
            prop_assert_eq!(&out, &stream);
            prop_assert_eq!(nxt, base + 3_400);
            prop_assert_eq!((reassembly.memory, reassembly.is_empty()), (0, true));
        }
    }
}
