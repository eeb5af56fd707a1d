//! Loss recovery: which outstanding octets count as lost, how many are in the network ("pipe"), and
//! what to send again. With SACK this is RFC 6675, without it NewReno (RFC 6582) told in the same
//! terms: duplicate acknowledgements stand for octets the peer holds, and the first segment is what
//! is lost. After a time-out everything the peer does not hold is lost (RFC 5681 §3.1). It never
//! reduces the congestion window itself. RACK-TLP (RFC 8985) has its place here, as another rule
//! for `lost_below`.

use alloc::boxed::Box;

use crate::options::SackBlocks;
use crate::prr::Prr;
use crate::sack::{DUP_THRESH, Scoreboard};
use crate::seq::SeqNumber;

/// Where recovery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No loss is being repaired.
    Open,
    /// Fast retransmit happened; until `point` is acknowledged.
    Fast,
    /// The timer went off; until `point` is acknowledged.
    Loss,
}

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

/// Octets to send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) start: SeqNumber,
    pub(crate) end: SeqNumber,
    /// NextSeg rule 4: sent as a last resort.
    pub(crate) rescue: bool,
}

/// The repair of losses.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    phase: Phase,
    /// The next retransmission goes out whatever the window says (RFC 6675 §5, step 4.3).
    force: bool,
    /// A partial acknowledgement came in this episode.
    partial: bool,
    /// The rescue retransmission of this episode was made (RFC 6675 §4, NextSeg rule 4).
    rescued: bool,
    /// Duplicate acknowledgements since SND.UNA moved; zero with SACK outside `Open`.
    dupacks: u16,
    /// RecoveryPoint, or RFC 6582's `recover`: SND.NXT when the loss was noticed.
    point: SeqNumber,
    /// HighRxt: up to here lost octets have been sent again.
    high_rxt: SeqNumber,
    /// Missing octets below this are lost.
    lost_below: SeqNumber,
    /// The first new octet sent after everything lost had been sent again: once the peer holds
    /// enough from here on, what is missing below `high_rxt` was lost a second time.
    sent_after: Option<SeqNumber>,
    /// What may be sent while `Phase::Fast`.
    prr: Prr,
    /// None until the peer's first SACK block.
    scoreboard: Option<Box<Scoreboard>>,
}

impl Recovery {
    /// `iss` is where RFC 6582 §3.2 starts `recover`.
    pub(crate) fn new(iss: SeqNumber) -> Self {
        Self {
            phase: Phase::Open,
            force: false,
            partial: false,
            rescued: false,
            dupacks: 0,
            point: iss,
            high_rxt: iss,
            lost_below: iss,
            sent_after: None,
            prr: Prr::default(),
            scoreboard: None,
        }
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether nothing is out of the ordinary, so that an acknowledgement needs no thought.
    pub(crate) const fn is_calm(&self) -> bool {
        matches!(self.phase, Phase::Open) && self.dupacks == 0
    }

    /// Whether the next retransmission ignores the congestion window.
    pub(crate) const fn forced(&self) -> bool {
        self.force
    }

    /// Takes the peer's blocks; answers whether they said anything new.
    pub(crate) fn on_sack(&mut self, blocks: &SackBlocks, out: Outstanding) -> bool {
        let scoreboard = self.scoreboard.get_or_insert_default();
        let mut news = false;
        for (start, end) in blocks.iter() {
            news |= scoreboard.insert(start, end, out.una, out.nxt);
        }
        if self.phase != Phase::Loss {
            self.mark_lost(out.mss);
        }
        news
    }

    fn mark_lost(&mut self, mss: u32) {
        if let Some(edge) = self.scoreboard.as_ref().and_then(|board| board.lost_below(mss)) {
            self.lost_below = self.lost_below.max(edge);
        }
    }

    /// Counts a duplicate acknowledgement; answers whether fast retransmit begins: at the third, or
    /// when SACK says that the first octet is lost (RFC 6675 §5).
    pub(crate) fn on_duplicate(&mut self, out: Outstanding) -> bool {
        if self.phase == Phase::Loss {
            return false;
        }
        self.dupacks = self.dupacks.saturating_add(1);
        let enough = u32::from(self.dupacks) >= DUP_THRESH || self.lost_below.after(out.una);
        // Duplicates of what the last episode sent again prove nothing (RFC 6582 §3.2, step 2).
        let fresh = self.has_sack() || out.una.after(self.point);
        self.phase == Phase::Open && enough && fresh
    }

    /// Fast retransmit begins.
    pub(crate) fn start_fast(&mut self, out: Outstanding) {
        self.start(Phase::Fast, out);
        self.prr = Prr::start(out.octets());
        let first_segment = (out.una + out.mss).min(out.nxt);
        self.lost_below = self.lost_below.max(first_segment);
    }

    /// The timer went off: all is lost that the peer does not hold (RFC 6675 §5.1). What it holds
    /// is kept; should it take that back, `Scoreboard::advance` notices.
    pub(crate) fn start_loss(&mut self, out: Outstanding) {
        self.start(Phase::Loss, out);
        self.dupacks = 0;
        self.lost_below = out.nxt;
    }

    fn start(&mut self, phase: Phase, out: Outstanding) {
        self.phase = phase;
        self.force = true;
        self.rescued = false;
        self.partial = false;
        self.point = out.nxt;
        self.high_rxt = out.una;
        self.sent_after = None;
    }

    /// The peer's window has opened again: what was sent again while it was closed was refused.
    pub(crate) fn on_window_opened(&mut self, una: SeqNumber) {
        if self.phase == Phase::Loss {
            self.high_rxt = una;
        }
    }

    /// Octets that may be sent when the congestion window is `cwnd`.
    pub(crate) fn budget(&self, cwnd: u32, out: Outstanding) -> u32 {
        match self.phase {
            Phase::Fast => self.prr.budget(),
            Phase::Open | Phase::Loss => cwnd.saturating_sub(self.pipe(out)),
        }
    }

    /// An acknowledgement was taken during fast recovery: `delivered` octets have left the network.
    pub(crate) fn on_delivered(&mut self, delivered: u32, ssthresh: u32, out: Outstanding) {
        if self.phase == Phase::Fast {
            self.prr.on_ack(delivered, self.pipe(out), ssthresh, out.mss);
        }
    }

    /// Whether what was sent again has been lost again: three segments of text that was first sent
    /// after it have arrived. Then the repair starts over, and it is a second sign of congestion
    /// (RFC 5681 §4.3).
    pub(crate) fn repair_was_lost(&mut self, out: Outstanding) -> bool {
        let (Phase::Fast, Some(mark), Some(board)) = (self.phase, self.sent_after, &self.scoreboard) else {
            return false;
        };
        let held_after = board.octets() - board.octets_below(mark);
        let missing = board.hole(out.una, self.high_rxt).is_some();
        if held_after < DUP_THRESH * out.mss || !missing {
            return false;
        }
        self.start(Phase::Fast, out);
        self.prr = Prr::start(self.pipe(out).max(out.mss));
        true
    }

    /// SND.UNA moved by `octets`. Answers whether the episode is over.
    pub(crate) fn on_ack(&mut self, octets: u32, out: Outstanding) -> bool {
        if let Some(scoreboard) = &mut self.scoreboard {
            scoreboard.advance(out.una);
        }
        let over = self.phase != Phase::Open && out.una.at_or_after(self.point);
        match self.phase {
            Phase::Open => self.dupacks = 0,
            _ if over => self.finish(out.una),
            Phase::Fast if !self.has_sack() => self.on_partial(octets, out),
            Phase::Fast | Phase::Loss => {}
        }
        self.high_rxt = self.high_rxt.max(out.una);
        self.lost_below = self.lost_below.max(out.una);
        if self.phase == Phase::Open && !over {
            // Keeps `point` near, so that it never comes to lie half the circle away.
            self.point = self.point.max(out.una - octets);
        }
        over
    }

    /// A partial acknowledgement without SACK: the next segment is lost too (RFC 6582 §3.2, step
    /// 3). Of what it covers, one segment was the hole and the rest had been duplicates.
    fn on_partial(&mut self, octets: u32, out: Outstanding) {
        let had_arrived = octets.saturating_sub(out.mss) / out.mss;
        self.dupacks = self.dupacks.saturating_sub(u16::try_from(had_arrived).unwrap_or(u16::MAX));
        self.high_rxt = out.una;
        self.lost_below = (out.una + out.mss).min(out.nxt);
        self.force = true;
        self.partial = true;
    }

    /// Whether the retransmission timer goes on as it is: without SACK it starts again with the
    /// first partial acknowledgement only, so that many losses end in a time-out instead of being
    /// repaired one in each round trip (RFC 6582 §4, the impatient variant).
    pub(crate) fn is_impatient(&self) -> bool {
        self.phase == Phase::Fast && self.partial
    }

    fn finish(&mut self, una: SeqNumber) {
        self.phase = Phase::Open;
        self.force = false;
        self.dupacks = 0;
        self.high_rxt = una;
        self.lost_below = una;
    }

    /// Octets the peer holds out of order; an estimate without SACK.
    pub(crate) fn held(&self, out: Outstanding) -> u32 {
        match &self.scoreboard {
            Some(scoreboard) => scoreboard.octets(),
            None => {
                let limit = out.octets().saturating_sub(out.mss);
                (u32::from(self.dupacks) * out.mss).min(limit)
            }
        }
    }

    /// Octets believed to be in the network (SetPipe of RFC 6675 §4).
    pub(crate) fn pipe(&self, out: Outstanding) -> u32 {
        let unheld = out.octets().saturating_sub(self.held(out));
        if self.phase == Phase::Open {
            return unheld;
        }
        let lost = self.missing_below(self.lost_below, out);
        let sent_again = self.missing_below(self.high_rxt, out);
        unheld.saturating_sub(lost) + sent_again
    }

    fn missing_below(&self, seq: SeqNumber, out: Outstanding) -> u32 {
        let held = self.scoreboard.as_ref().map_or(0, |board| board.octets_below(seq));
        seq.since(out.una).saturating_sub(held)
    }

    /// The next lost octets to send again (NextSeg rule 1), before any new data.
    pub(crate) fn next_lost(&self, out: Outstanding) -> Option<Hole> {
        if self.phase == Phase::Open {
            return None;
        }
        self.hole(self.lost_below, out)
    }

    /// Octets that may be lost (rules 3 and 4), for when there is no new data to send.
    pub(crate) fn next_suspect(&self, out: Outstanding) -> Option<Hole> {
        if self.phase != Phase::Fast {
            return None;
        }
        let highest = self.scoreboard.as_ref()?.highest()?;
        self.hole(highest, out).or_else(|| self.rescue(highest, out))
    }

    /// One segment that includes the highest missing octet, once per episode (rule 4).
    fn rescue(&self, highest: SeqNumber, out: Outstanding) -> Option<Hole> {
        let start = (out.nxt - out.mss).max(highest).max(out.una);
        let due = !self.rescued && highest.before(out.nxt);
        due.then_some(Hole { start, end: out.nxt, rescue: true })
    }

    fn hole(&self, limit: SeqNumber, out: Outstanding) -> Option<Hole> {
        let from = self.high_rxt.max(out.una);
        let (start, end) = match &self.scoreboard {
            Some(scoreboard) => scoreboard.hole(from, limit)?,
            None => from.before(limit).then_some((from, limit))?,
        };
        Some(Hole { start, end, rescue: false })
    }

    /// New text from `start` on has been sent.
    pub(crate) fn sent_new(&mut self, start: SeqNumber, octets: u32) {
        if self.phase == Phase::Fast {
            self.prr.on_sent(octets);
            self.sent_after = self.sent_after.or(Some(start));
        }
    }

    /// Octets of `hole` up to `end` have been sent again. A rescue does not move HighRxt.
    pub(crate) fn sent_again(&mut self, hole: Hole, end: SeqNumber) {
        self.force = false;
        self.prr.on_sent(end - hole.start);
        self.rescued |= hole.rescue;
        if !hole.rescue {
            self.high_rxt = self.high_rxt.max(end);
        }
    }

    fn has_sack(&self) -> bool {
        self.scoreboard.is_some()
    }

    /// Bytes of memory held outside of the connection itself.
    pub(crate) fn memory(&self) -> usize {
        self.scoreboard.as_ref().map_or(0, |board| size_of::<Scoreboard>() + board.memory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    const fn seq(raw: u32) -> SeqNumber {
        SeqNumber::new(raw)
    }

    const fn out(una: u32, nxt: u32) -> Outstanding {
        Outstanding { una: seq(una), nxt: seq(nxt), mss: MSS }
    }

    fn sack(recovery: &mut Recovery, ranges: &[(u32, u32)], out: Outstanding) -> bool {
        let mut blocks = SackBlocks::default();
        for (start, end) in ranges {
            blocks.push(seq(*start), seq(*end));
        }
        recovery.on_sack(&blocks, out);
        recovery.on_duplicate(out)
    }

    fn next(recovery: &Recovery, out: Outstanding) -> Option<(u32, u32)> {
        recovery.next_lost(out).map(|hole| (hole.start.raw(), hole.end.raw()))
    }

    /// Sends all of the next hole again and answers where it was.
    fn send(recovery: &mut Recovery, out: Outstanding) -> Option<(u32, u32, bool)> {
        let hole = recovery.next_lost(out).or_else(|| recovery.next_suspect(out))?;
        recovery.sent_again(hole, hole.end);
        Some((hole.start.raw(), hole.end.raw(), hole.rescue))
    }

    #[test]
    fn the_third_duplicate_starts_fast_retransmit_of_the_first_segment() {
        let mut recovery = Recovery::new(seq(0));
        let out = out(1, 10_001);
        assert_eq!([(); 3].map(|()| recovery.on_duplicate(out)), [false, false, true]);
        recovery.start_fast(out);
        assert_eq!(next(&recovery, out), Some((1, 1_001)));
        assert!(recovery.forced());
        assert_eq!(recovery.pipe(out), 6_000);
    }

    #[test]
    fn a_partial_acknowledgement_reveals_the_next_hole() {
        let mut recovery = Recovery::new(seq(0));
        let first = out(1, 10_001);
        (0..3).for_each(|_| assert!(recovery.on_duplicate(first) || recovery.dupacks < 3));
        recovery.start_fast(first);
        send(&mut recovery, first);
        assert_eq!(next(&recovery, first), None);
        let partial = out(3_001, 10_001);
        assert!(!recovery.on_ack(3_000, partial));
        assert_eq!(next(&recovery, partial), Some((3_001, 4_001)));
        assert!(recovery.on_ack(7_000, out(10_001, 10_001)));
        assert!(recovery.is_calm());
    }

    #[test]
    fn sack_sends_again_only_the_holes() {
        let mut recovery = Recovery::new(seq(0));
        let out = out(1, 10_001);
        assert!(!sack(&mut recovery, &[(2_001, 3_001)], out));
        assert!(!sack(&mut recovery, &[(4_001, 5_001), (2_001, 3_001)], out));
        assert!(sack(&mut recovery, &[(6_001, 7_001), (4_001, 5_001), (2_001, 3_001)], out));
        recovery.start_fast(out);
        assert_eq!(send(&mut recovery, out), Some((1, 2_001, false)));
        assert_eq!(next(&recovery, out), None);
        // Of ten segments three are held, two lost and two sent again.
        assert_eq!(recovery.pipe(out), 7_000);
        assert_eq!(send(&mut recovery, out), Some((3_001, 4_001, false)));
    }

    #[test]
    fn a_rescue_happens_once_and_does_not_move_high_rxt() {
        let mut recovery = Recovery::new(seq(0));
        let out = out(1, 5_001);
        assert!(sack(&mut recovery, &[(1_001, 4_001)], out));
        recovery.start_fast(out);
        assert_eq!(send(&mut recovery, out), Some((1, 1_001, false)));
        assert_eq!(send(&mut recovery, out), Some((4_001, 5_001, true)));
        assert_eq!(send(&mut recovery, out), None);
        assert_eq!(recovery.high_rxt, seq(1_001));
    }

    #[test]
    fn after_a_timeout_all_is_lost_that_is_not_held() {
        let mut recovery = Recovery::new(seq(0));
        let out = out(1, 5_001);
        sack(&mut recovery, &[(2_001, 3_001)], out);
        recovery.start_loss(out);
        assert_eq!(recovery.pipe(out), 0);
        assert_eq!(send(&mut recovery, out), Some((1, 2_001, false)));
        assert_eq!(send(&mut recovery, out), Some((3_001, 5_001, false)));
        assert!(!recovery.on_duplicate(out));
    }

    #[test]
    fn duplicates_after_a_timeout_do_not_start_another_episode_without_sack() {
        let mut recovery = Recovery::new(seq(0));
        recovery.start_loss(out(1, 5_001));
        assert!(recovery.on_ack(5_000, out(5_001, 9_001)));
        assert!(![(); 4].map(|()| recovery.on_duplicate(out(5_001, 9_001))).contains(&true));
    }
}
