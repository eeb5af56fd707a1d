//! What is outstanding: when each stretch of the sequence space was last sent, and what is known of
//! it since (the per-segment variables of RFC 8985 §5.2, and the scoreboard of RFC 2018 §5). The
//! stretches are sorted, disjoint and cover SND.UNA to SND.NXT. What was sent as one and shares its
//! fate is one stretch, so a calm connection has a few, and their number is bounded whatever the
//! peer says. Its word is taken only for octets that are outstanding.

use alloc::collections::VecDeque;

use silk_instant::Instant;

use crate::seq::SeqNumber;

/// With so many stretches what is sent joins its neighbours.
const MOST_SENT: usize = 2048;
/// With so many stretches no further block is believed; what it covers is sent again at worst. Enough for a window of
/// 4 MB of which a full queue took every second segment.
const MOST: usize = 4096;

/// What is outstanding, as the sender's variables say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    pub(crate) una: SeqNumber,
    pub(crate) nxt: SeqNumber,
    /// Octets of a full segment (SMSS).
    pub(crate) mss: u32,
}

impl Outstanding {
    pub(crate) fn octets(self) -> u32 {
        self.nxt - self.una
    }
}

/// What is known of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is under way, as far as we know.
    Sent,
    /// It is lost and not yet sent again.
    Lost,
    /// The peer holds it out of order.
    Held,
}

/// A stretch from the end of the one before, or SND.UNA, to `end`.
// RFC 8985 §4.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    end: SeqNumber,
    fate: Fate,
    /// Segment.retransmitted.
    again: bool,
    /// Segment.xmit_ts.
    at: Instant,
}

/// One transmission, as loss detection sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sending {
    /// Segment.end_seq.
    pub(crate) end: SeqNumber,
    /// Segment.xmit_ts.
    pub(crate) at: Instant,
    /// Segment.retransmitted.
    pub(crate) again: bool,
}

/// What to do with a stretch that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Keep,
    Lose,
    /// Keep it and all after it.
    Stop,
}

/// Everything outstanding.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    stretches: VecDeque<Stretch>,
    /// No stretch that ends here or before is lost.
    lost_from: SeqNumber,
    /// Octets that the peer holds.
    held: u32,
    /// Octets that are lost.
    lost: u32,
    /// Octets that were ever taken for lost, modulo 2³².
    lost_ever: u32,
}

impl Stretch {
    const fn sending(&self) -> Sending {
        Sending { end: self.end, at: self.at, again: self.again }
    }

    /// It was sent once and is under way.
    fn is_fresh(&self) -> bool {
        self.fate == Fate::Sent && !self.again
    }
}

impl Flight {
    pub(crate) const fn new(iss: SeqNumber) -> Self {
        Self { stretches: VecDeque::new(), lost_from: iss, held: 0, lost: 0, lost_ever: 0 }
    }

    /// Nothing is outstanding, or ever will be. What was ever lost stays known.
    pub(crate) fn ended(&self, nxt: SeqNumber) -> Self {
        Self { lost_ever: self.lost_ever, ..Self::new(nxt) }
    }

    /// Octets the peer holds out of order.
    pub(crate) const fn held(&self) -> u32 {
        self.held
    }

    /// Octets that are lost and not yet sent again.
    pub(crate) const fn lost(&self) -> u32 {
        self.lost
    }

    /// Octets that were sent again and are on their way.
    pub(crate) fn again(&self, una: SeqNumber) -> u32 {
        let again = |at: &usize| self.stretches[*at].again && self.stretches[*at].fate == Fate::Sent;
        (0..self.stretches.len()).filter(again).map(|at| self.octets(at, una)).sum()
    }

    /// Octets that were ever taken for lost, modulo 2³².
    pub(crate) const fn lost_ever(&self) -> u32 {
        self.lost_ever
    }

    /// When the oldest of what is outstanding was last sent.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.stretches.front().map(|stretch| stretch.at)
    }

    /// Octets up to `end` were sent for the first time.
    pub(crate) fn sent(&mut self, now: Instant, end: SeqNumber) {
        if self.stretches.len() >= MOST_SENT {
            self.coarsen();
        }
        let full = self.stretches.len() >= MOST_SENT;
        match self.stretches.back_mut() {
            Some(last) if last.is_fresh() && (last.at == now || full) => last.end = end,
            _ => self.stretches.push_back(Stretch { end, fate: Fate::Sent, again: false, at: now }),
        }
    }

    /// Joins neighbours that were sent one after the other, as long as what they become is a small part of all. They count
    /// as sent when the first of them was: if it were when the last was, the arrival of the first would tell of a round trip
    /// that never was, too short, and all that was sent before would seem to be lost.
    fn coarsen(&mut self) {
        let (Some(first), Some(last)) = (self.stretches.front(), self.stretches.back()) else { return };
        let most = (last.end - first.end) / (MOST_SENT as u32 / 4);
        // Where the first begins is not known here; it stays as it is.
        let (mut begin, mut kept) = (first.end, 2);
        for at in 2..self.stretches.len() {
            let stretch = self.stretches[at];
            let joint = &mut self.stretches[kept - 1];
            if joint.is_fresh() && stretch.is_fresh() && stretch.end - begin <= most {
                joint.end = stretch.end;
            } else {
                begin = joint.end;
                self.stretches[kept] = stretch;
                kept += 1;
            }
        }
        self.stretches.truncate(kept);
    }

    /// SND.UNA moved from `from` to `una`. `deliver` is told what arrived by that. When the peer
    /// turns out not to hold what it said it held (reneging, RFC 2018 §8), nothing it said is worth
    /// keeping.
    pub(crate) fn advance(&mut self, mut from: SeqNumber, una: SeqNumber, mut deliver: impl FnMut(Sending)) {
        while let Some(&first) = self.stretches.front()
            && from.before(una)
        {
            let end = first.end.min(una);
            match first.fate {
                Fate::Held => self.held -= end - from,
                Fate::Lost => self.lost -= end - from,
                Fate::Sent => {}
            }
            if first.fate != Fate::Held {
                deliver(Sending { end, ..first.sending() });
            }
            if end == first.end {
                self.stretches.pop_front();
            }
            from = end;
        }
        self.lost_from = self.lost_from.max(una);
        if self.held > 0 && self.stretches.front().is_some_and(|first| first.fate == Fate::Held) {
            self.forget_held();
        }
        // What is idle has no memory for what it may send one day.
        if self.stretches.is_empty() {
            self.stretches = VecDeque::new();
        }
    }

    fn forget_held(&mut self) {
        self.held = 0;
        for stretch in self.stretches.iter_mut().filter(|stretch| stretch.fate == Fate::Held) {
            stretch.fate = Fate::Sent;
        }
    }

    /// Takes a block of a SACK option, tells `deliver` what arrived, and answers whether that was
    /// anything. Blocks that are empty, reversed, at or below SND.UNA or beyond SND.NXT say nothing.
    pub(crate) fn hold(
        &mut self,
        (start, end): (SeqNumber, SeqNumber),
        out: Outstanding,
        mut deliver: impl FnMut(Sending),
    ) -> bool {
        // By distance from SND.UNA: far around the circle "before" means nothing any more.
        let (first_octet, after_last) = (start - out.una, end - out.una);
        let outstanding = first_octet > 0 && first_octet < after_last && after_last <= out.octets();
        if !outstanding || self.stretches.len() >= MOST {
            return false;
        }
        let first = self.split(start, out.una);
        let after = self.split(end, out.una);
        let held_before = self.held;
        for at in first..after {
            let (stretch, octets) = (self.stretches[at], self.octets(at, out.una));
            match stretch.fate {
                Fate::Held => continue,
                Fate::Lost => self.lost -= octets,
                Fate::Sent => {}
            }
            self.held += octets;
            deliver(stretch.sending());
            self.stretches[at].fate = Fate::Held;
        }
        self.join_held(first, after);
        self.held > held_before
    }

    /// Makes one stretch of the held ones from `first` to before `after` and their held neighbours.
    fn join_held(&mut self, first: usize, after: usize) {
        let is_held = |at: usize| self.stretches.get(at).is_some_and(|stretch| stretch.fate == Fate::Held);
        let from = if first > 0 && is_held(first - 1) { first - 1 } else { first };
        let to = if is_held(after) { after + 1 } else { after };
        if from + 1 < to {
            self.stretches.drain(from..to - 1);
        }
    }

    fn start(&self, at: usize, una: SeqNumber) -> SeqNumber {
        at.checked_sub(1).and_then(|before| self.stretches.get(before)).map_or(una, |before| before.end)
    }

    fn octets(&self, at: usize, una: SeqNumber) -> u32 {
        self.stretches[at].end - self.start(at, una)
    }

    /// The place of the first stretch that ends after `seq`.
    fn place(&self, seq: SeqNumber) -> usize {
        self.stretches.partition_point(|stretch| stretch.end.at_or_before(seq))
    }

    /// Makes sure that a stretch begins at `seq`, unless all end there; answers its place.
    fn split(&mut self, seq: SeqNumber, una: SeqNumber) -> usize {
        let at = self.place(seq);
        let Some(&stretch) = self.stretches.get(at) else { return at };
        if self.start(at, una).at_or_after(seq) {
            return at;
        }
        self.stretches.insert(at, Stretch { end: seq, ..stretch });
        at + 1
    }

    /// Asks `judge` about each stretch that is under way, in order; those it condemns are lost.
    pub(crate) fn judge(&mut self, una: SeqNumber, mut judge: impl FnMut(Sending) -> Judgement) {
        for at in 0..self.stretches.len() {
            let stretch = self.stretches[at];
            if stretch.fate != Fate::Sent {
                continue;
            }
            match judge(stretch.sending()) {
                Judgement::Keep => {}
                Judgement::Lose => self.lose(at, una),
                Judgement::Stop => return,
            }
        }
    }

    fn lose(&mut self, at: usize, una: SeqNumber) {
        self.lost += self.octets(at, una);
        self.lost_ever = self.lost_ever.wrapping_add(self.octets(at, una));
        self.lost_from = self.lost_from.min(self.start(at, una));
        self.stretches[at].fate = Fate::Lost;
    }

    /// So many octets were lost for a reason that says nothing of the path's load.
    pub(crate) fn excuse(&mut self, octets: u32) {
        self.lost_ever = self.lost_ever.wrapping_sub(octets);
    }

    /// What is lost is under way after all.
    pub(crate) fn forgive(&mut self) {
        self.lost = 0;
        for stretch in self.stretches.iter_mut().filter(|stretch| stretch.fate == Fate::Lost) {
            stretch.fate = Fate::Sent;
        }
    }

    /// The first segment is lost.
    pub(crate) fn lose_first(&mut self, out: Outstanding) {
        self.split((out.una + out.mss).min(out.nxt), out.una);
        if self.stretches.front().is_some_and(|first| first.fate == Fate::Sent) {
            self.lose(0, out.una);
        }
    }

    /// The first stretch of lost octets.
    // RFC 2018 §5.
    pub(crate) fn first_lost(&self, una: SeqNumber) -> Option<(SeqNumber, SeqNumber)> {
        if self.lost == 0 {
            return None;
        }
        let from = self.place(self.lost_from);
        let is_lost = |at: &usize| self.stretches[*at].fate == Fate::Lost;
        let first = (from..self.stretches.len()).find(is_lost)?;
        let last = (first..self.stretches.len()).take_while(is_lost).last()?;
        Some((self.start(first, una), self.stretches[last].end))
    }

    /// Octets from `start` to `end` were sent again.
    pub(crate) fn sent_again(&mut self, now: Instant, start: SeqNumber, end: SeqNumber, una: SeqNumber) {
        let first = self.split(start, una);
        let after = self.split(end, una);
        if first == after {
            return;
        }
        for at in first..after {
            if self.stretches[at].fate == Fate::Lost {
                self.lost -= self.octets(at, una);
            }
        }
        if start.at_or_before(self.lost_from) {
            self.lost_from = self.lost_from.max(end);
        }
        // What of it the peer held is lost to the count; it is acknowledged soon.
        for at in first..after {
            if self.stretches[at].fate == Fate::Held {
                self.held -= self.octets(at, una);
            }
        }
        self.stretches[after - 1] = Stretch { end, fate: Fate::Sent, again: true, at: now };
        self.stretches.drain(first..after - 1);
        self.join_again(first, now);
    }

    /// Retransmissions that left together are one stretch; too many are, whenever they left.
    fn join_again(&mut self, at: usize, now: Instant) {
        let full = self.stretches.len() >= MOST;
        let joins = at
            .checked_sub(1)
            .and_then(|before| self.stretches.get(before))
            .is_some_and(|before| before.fate == Fate::Sent && before.again && (before.at == now || full));
        if joins {
            self.stretches.remove(at - 1);
        }
    }

    /// Whether the peer holds more than two segments, or three ranges (RACK.segs_sacked of RFC 8985
    /// §5.3 against DupThresh; in octets, for a range does not say of how many segments it is).
    pub(crate) fn holds_dup_thresh(&self, mss: u32) -> bool {
        let ranges = || self.stretches.iter().filter(|stretch| stretch.fate == Fate::Held).count();
        self.held > 2 * mss || ranges() >= 3
    }

    /// Bytes of memory held outside of the connection itself.
    pub(crate) fn memory(&self) -> usize {
        self.stretches.capacity() * size_of::<Stretch>()
    }
}

#[cfg(test)]
#[path = "flight_tests.rs"]
mod tests;
