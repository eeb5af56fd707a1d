//! The scoreboard: which octets beyond SND.UNA the peer says it holds (RFC 2018 §5, RFC 6675 §3).
//! It is a sorted list of disjoint ranges, bounded in number. The peer's word is taken only for
//! octets that are outstanding, and every answer here is about octets between SND.UNA and SND.NXT.

use alloc::vec::Vec;

use crate::seq::SeqNumber;

/// Duplicate acknowledgements, or discontiguous ranges, that mean a loss (RFC 5681 §3.2).
pub(crate) const DUP_THRESH: u32 = 3;

/// More ranges than this are not remembered; what they cover is sent again at worst.
const MAX_RANGES: usize = 512;

/// Octets the peer holds out of order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    /// Ascending, disjoint, not adjacent, none empty.
    ranges: Vec<(SeqNumber, SeqNumber)>,
    /// Sum of the ranges' lengths.
    octets: u32,
}

impl Scoreboard {
    /// Takes a block of a SACK option and answers whether it said anything new. Blocks that are
    /// empty, reversed, below `una` (a D-SACK, RFC 2883) or above `nxt` say nothing.
    pub(crate) fn insert(
        &mut self,
        start: SeqNumber,
        end: SeqNumber,
        una: SeqNumber,
        nxt: SeqNumber,
    ) -> bool {
        // By distance from `una`: far around the circle "before" means nothing any more.
        let (first_octet, after_last) = (start - una, end - una);
        if first_octet == 0 || first_octet >= after_last || after_last > nxt - una {
            return false;
        }
        let first = self.ranges.partition_point(|range| range.1.before(start));
        let after = self.ranges.partition_point(|range| range.0.at_or_before(end));
        if first == after {
            return self.insert_alone(first, start, end);
        }
        let merged = (start.min(self.ranges[first].0), end.max(self.ranges[after - 1].1));
        let had: u32 = self.ranges[first..after].iter().map(|range| range.1 - range.0).sum();
        let gained = (merged.1 - merged.0) - had;
        self.ranges.drain(first + 1..after);
        self.ranges[first] = merged;
        self.octets += gained;
        gained > 0
    }

    fn insert_alone(&mut self, at: usize, start: SeqNumber, end: SeqNumber) -> bool {
        if self.ranges.len() == MAX_RANGES {
            return false;
        }
        self.ranges.insert(at, (start, end));
        self.octets += end - start;
        true
    }

    /// Forgets what the cumulative acknowledgement now covers. A range that begins at or before
    /// `una` and ends after it means the peer took back what it had said (reneging, RFC 2018 §8):
    /// then nothing it said is worth keeping.
    pub(crate) fn advance(&mut self, una: SeqNumber) {
        let covered = self.ranges.partition_point(|range| range.1.at_or_before(una));
        self.octets -= self.ranges.drain(..covered).map(|range| range.1 - range.0).sum::<u32>();
        if self.ranges.first().is_some_and(|range| range.0.at_or_before(una)) {
            self.clear();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        self.octets = 0;
    }

    /// Octets the peer holds.
    pub(crate) fn octets(&self) -> u32 {
        self.octets
    }

    /// The end of the highest octet the peer holds.
    pub(crate) fn highest(&self) -> Option<SeqNumber> {
        self.ranges.last().map(|range| range.1)
    }

    /// Octets the peer holds below `seq`.
    pub(crate) fn octets_below(&self, seq: SeqNumber) -> u32 {
        let below = self.ranges.iter().take_while(|range| range.0.before(seq));
        below.map(|range| range.1.min(seq) - range.0).sum()
    }

    /// Everything missing below this is lost: IsLost() of RFC 6675 §4, which holds for all octets
    /// below the lowest range that has DupThresh ranges, or more than (DupThresh − 1) segments,
    /// from itself upwards.
    pub(crate) fn lost_below(&self, mss: u32) -> Option<SeqNumber> {
        let (mut ranges, mut octets) = (0, 0);
        for range in self.ranges.iter().rev() {
            ranges += 1;
            octets += range.1 - range.0;
            if ranges >= DUP_THRESH || octets > (DUP_THRESH - 1) * mss {
                return Some(range.0);
            }
        }
        None
    }

    /// The first stretch of missing octets within `from..limit`.
    // RFC 2018 §5.
    pub(crate) fn hole(&self, from: SeqNumber, limit: SeqNumber) -> Option<(SeqNumber, SeqNumber)> {
        let mut at = self.ranges.partition_point(|range| range.1.at_or_before(from));
        let mut start = from;
        if let Some(range) = self.ranges.get(at)
            && range.0.at_or_before(start)
        {
            start = range.1;
            at += 1;
        }
        let end = self.ranges.get(at).map_or(limit, |range| range.0.min(limit));
        start.before(end).then_some((start, end))
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.ranges.capacity() * size_of::<(SeqNumber, SeqNumber)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn seq(raw: u32) -> SeqNumber {
        SeqNumber::new(raw)
    }

    /// A scoreboard for the outstanding octets 0..10_000.
    fn board(blocks: &[(u32, u32)]) -> Scoreboard {
        let mut board = Scoreboard::default();
        for &(start, end) in blocks {
            board.insert(seq(start), seq(end), seq(0), seq(10_000));
        }
        board
    }

    fn hole(board: &Scoreboard, from: u32, limit: u32) -> Option<(u32, u32)> {
        board.hole(seq(from), seq(limit)).map(|(start, end)| (start.raw(), end.raw()))
    }

    #[test]
    fn overlapping_and_adjacent_blocks_become_one() {
        let board = board(&[(100, 200), (300, 400), (200, 300), (150, 350)]);
        assert_eq!((board.octets(), board.ranges.len()), (300, 1));
    }

    #[test]
    fn only_outstanding_octets_are_believed() {
        let board = board(&[(0, 5), (500, 400), (7, 7), (9_000, 10_001), (20_000, 30_000)]);
        assert_eq!(board.octets(), 0);
    }

    #[test]
    fn a_block_around_half_the_circle_is_not_believed() {
        let mut board = Scoreboard::default();
        assert!(!board.insert(seq(208_284_740), seq(2_147_484_650), seq(1_001), seq(1_001)));
    }

    #[test]
    fn holes_are_found_between_the_ranges() {
        let board = board(&[(100, 200), (300, 400)]);
        assert_eq!(hole(&board, 0, 1_000), Some((0, 100)));
        assert_eq!(hole(&board, 100, 1_000), Some((200, 300)));
        assert_eq!(hole(&board, 250, 1_000), Some((250, 300)));
        assert_eq!(hole(&board, 300, 400), None);
        assert_eq!(hole(&board, 350, 1_000), Some((400, 1_000)));
    }

    #[test]
    fn three_ranges_or_more_than_two_segments_above_mean_lost() {
        assert_eq!(board(&[(100, 200), (300, 400)]).lost_below(1_000), None);
        assert_eq!(board(&[(100, 200), (300, 400), (500, 600)]).lost_below(1_000), Some(seq(100)));
        assert_eq!(board(&[(1_000, 3_000)]).lost_below(1_000), None);
        assert_eq!(board(&[(1_000, 3_001)]).lost_below(1_000), Some(seq(1_000)));
    }

    #[test]
    fn an_acknowledgement_at_the_start_of_a_range_is_reneging() {
        let mut board = board(&[(100, 200), (300, 400)]);
        board.advance(seq(200));
        assert_eq!(board.octets(), 100);
        board.advance(seq(300));
        assert_eq!(board.octets(), 0);
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let blocks: Vec<_> = (1..1_000).map(|n| (n * 4, n * 4 + 1)).collect();
        let board = board(&blocks);
        assert_eq!(board.octets() as usize, MAX_RANGES);
    }

    proptest! {
        /// Against a bitmap: the same octets, the same holes, whatever blocks come.
        #[test]
        fn it_agrees_with_a_bitmap(
            blocks in prop::collection::vec((0u32..400, 0u32..60), 0..60),
            una in 0u32..200,
        ) {
            let base = seq(u32::MAX - 100);
            let mut board = Scoreboard::default();
            let mut bits = [false; 512];
            for (start, len) in blocks {
                let new = board.insert(base + start, base + start + len, base, base + 400);
                let valid = start > 0 && len > 0 && start + len <= 400;
                let place = &mut bits[start as usize..(start + len) as usize];
                prop_assert_eq!(new, valid && place.iter().any(|bit| !bit));
                if valid {
                    place.fill(true);
                }
            }
            if bits[una as usize] {
                bits.fill(false);
            }
            board.advance(base + una);
            bits[..una as usize].fill(false);
            let held = bits.iter().filter(|bit| **bit).count() as u32;
            prop_assert_eq!(board.octets(), held);
            prop_assert_eq!(board.octets_below(base + 300), bits[..300].iter().filter(|bit| **bit).count() as u32);
            let first_missing = (una..400).find(|at| !bits[*at as usize]);
            let hole = board.hole(base + una, base + 400).map(|hole| hole.0 - base);
            prop_assert_eq!(hole, first_missing);
        }
    }
}
