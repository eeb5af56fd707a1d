//! Loss recovery: where it stands, how many octets are in the network ("pipe"), and what to send
//! again. With SACK losses are detected by RACK-TLP (RFC 8985); without it by NewReno (`newreno`),
//! told in the same terms: duplicate acknowledgements stand for octets the peer holds, and the
//! first segment is what is lost. It never reduces the congestion window itself, and reads no
//! segment: `losses` brings what they say.

use alloc::boxed::Box;
use core::time::Duration;

use silk_instant::Instant;

use crate::flight::{Flight, Judgement, Outstanding, Sending};
use crate::options::SackBlocks;
use crate::prr::Prr;
use crate::rack::{Detected, Rack};
use crate::seq::SeqNumber;
use crate::stamps::Echo;
use crate::tail::TailProbe;

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

/// What the retransmission timer is set for (RFC 8985 §8: one timer serves all).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// RTO of RFC 6298.
    Timeout,
    /// PTO of RFC 8985 §7.2.
    Probe,
    /// The reordering timer of RFC 8985 §6.2, step 5.
    Reordering,
}

/// Octets to send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) start: SeqNumber,
    pub(crate) end: SeqNumber,
}

/// What is known of a repair that is under way.
#[derive(Clone, Debug)]
struct Episode {
    /// When it began.
    since: Instant,
    /// What may be sent while `Phase::Fast`.
    prr: Prr,
}

/// The repair of losses.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    pub(crate) phase: Phase,
    pub(crate) wait: Wait,
    /// Both SYNs carried SACK-permitted: losses are RACK's to detect.
    sack: bool,
    /// The next retransmission goes out whatever the window says (RFC 6675 §5, step 4.3).
    pub(crate) force: bool,
    /// A partial acknowledgement came in this episode.
    pub(crate) partial: bool,
    /// The last acknowledgement brought text that had been given up for lost with the time-out, and
    /// that was not sent again.
    pub(crate) original: bool,
    /// Duplicate acknowledgements since SND.UNA moved; always zero with SACK.
    pub(crate) dupacks: u16,
    /// RecoveryPoint, or RFC 6582's `recover`: SND.NXT when the loss was noticed.
    pub(crate) point: SeqNumber,
    /// None while `Phase::Open`.
    episode: Option<Box<Episode>>,
    pub(crate) flight: Flight,
    pub(crate) rack: Rack,
    pub(crate) tail: TailProbe,
}

impl Recovery {
    /// `iss` is where RFC 6582 §3.2 starts `recover`.
    pub(crate) fn new(iss: SeqNumber) -> Self {
        Self {
            phase: Phase::Open,
            wait: Wait::Timeout,
            sack: false,
            force: false,
            partial: false,
            original: false,
            dupacks: 0,
            point: iss,
            episode: None,
            flight: Flight::new(iss),
            rack: Rack::new(iss),
            tail: TailProbe::default(),
        }
    }

    /// The connection is over: nothing is outstanding any more.
    pub(crate) fn end(&mut self, nxt: SeqNumber) {
        *self = Self { sack: self.sack, flight: self.flight.ended(nxt), ..Self::new(nxt) };
    }

    /// What we offer, and then what the SYNs agreed on.
    pub(crate) fn agree(&mut self, sack: bool) {
        self.sack = sack;
    }

    /// Both SYNs carried SACK-permitted; before the peer's has come, ours does.
    pub(crate) const fn sack(&self) -> bool {
        self.sack
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether nothing is out of the ordinary, so that an acknowledgement needs no thought.
    pub(crate) const fn is_calm(&self) -> bool {
        let quiet = self.dupacks == 0 && self.flight.held() == 0 && !self.tail.is_out();
        matches!(self.phase, Phase::Open) && quiet
    }

    /// Whether the next retransmission ignores the congestion window.
    pub(crate) const fn forced(&self) -> bool {
        self.force
    }

    /// Whether something is lost and nobody repairs it yet.
    // RFC 6675 §5.1.
    pub(crate) const fn is_overdue(&self) -> bool {
        matches!(self.phase, Phase::Open) && self.flight.lost() > 0
    }

    /// Takes the peer's blocks. `dsack` when the first reports what arrived twice. Answers the last transmission that
    /// they bring of what was sent once: it tells how long a round trip takes.
    pub(crate) fn on_sack(
        &mut self,
        now: Instant,
        blocks: &SackBlocks,
        dsack: bool,
        out: Outstanding,
    ) -> Option<Sending> {
        self.rack.settle();
        self.rack.on_ack(dsack, out);
        let Self { flight, rack, phase, point, original, .. } = self;
        let mut once: Option<Sending> = None;
        for block in blocks.iter() {
            flight.hold(block, out, |sending| {
                // What is echoed is an older segment's timestamp (RFC 7323 §4.3).
                rack.on_delivered(now, sending, Echo::NONE);
                *original |= is_original(*phase, *point, sending);
                if !sending.again && once.is_none_or(|last| sending.end.after(last.end)) {
                    once = Some(sending);
                }
            });
        }
        once
    }

    /// Looks for what is lost (RFC 8985 §6.2, steps 4 and 5).
    pub(crate) fn detect(&mut self, now: Instant, srtt: Duration, out: Outstanding) -> Detected {
        let certain = self.phase != Phase::Open || self.flight.holds_dup_thresh(out.mss);
        let window = self.rack.reordering_window(certain, srtt);
        let since = self.episode.as_ref().map_or(now, |episode| episode.since);
        self.rack.detect(now, window, since, out.una, &mut self.flight)
    }

    /// Fast retransmit begins, or begins anew because what was sent again is lost.
    pub(crate) fn start_fast(&mut self, now: Instant, out: Outstanding) {
        if !self.sack {
            self.flight.lose_first(out);
        }
        let flight = if self.phase == Phase::Open { out.octets() } else { self.pipe(out).max(out.mss) };
        self.start(Phase::Fast, now, out, flight);
    }

    /// The timer went off, after `timeout`. Without SACK all is lost (RFC 5681 §3.1).
    // RFC 6675 §5.1.
    pub(crate) fn start_loss(&mut self, now: Instant, srtt: Duration, timeout: Duration, out: Outstanding) {
        self.start(Phase::Loss, now, out, 0);
        if self.sack {
            let window = self.rack.reordering_window(true, srtt);
            self.rack.mark_losses_on_timeout(now, window, timeout, out, &mut self.flight);
        } else {
            self.lose_all(out.una);
        }
    }

    /// What is outstanding was sent in pieces that do not arrive; all of it is sent again.
    pub(crate) fn start_anew(&mut self, now: Instant, out: Outstanding) {
        self.start(Phase::Loss, now, out, 0);
        let before = self.flight.lost_ever();
        self.lose_all(out.una);
        // Nor is that a sign of congestion.
        self.flight.excuse(self.flight.lost_ever().wrapping_sub(before));
    }

    /// A probe of the path's MTU that ends at `end` is lost, and is sent again in smaller pieces.
    pub(crate) fn start_probe_repair(&mut self, now: Instant, out: Outstanding, end: SeqNumber) {
        self.start(Phase::Loss, now, out, 0);
        self.flight.lose_first(Outstanding { mss: end - out.una, ..out });
        // No sign of congestion, whoever asks.
        self.flight.excuse(end - out.una);
    }

    fn start(&mut self, phase: Phase, now: Instant, out: Outstanding, flight: u32) {
        self.phase = phase;
        self.force = true;
        self.partial = false;
        if phase == Phase::Loss {
            self.dupacks = 0;
        }
        self.point = out.nxt;
        self.episode = Some(Box::new(Episode { since: now, prr: Prr::start(flight) }));
        self.tail.forget();
    }

    fn lose_all(&mut self, una: SeqNumber) {
        self.flight.judge(una, |_| Judgement::Lose);
    }

    /// The peer's window has opened again: what was sent again while it was closed was refused.
    pub(crate) fn on_window_opened(&mut self, una: SeqNumber) {
        if self.phase == Phase::Loss {
            self.lose_all(una);
        }
    }

    /// Octets that may be sent when the congestion window is `cwnd`.
    // RFC 6675 §5.
    pub(crate) fn budget(&self, cwnd: u32, out: Outstanding) -> u32 {
        match self.phase {
            Phase::Fast => self.episode.as_ref().map_or(0, |episode| episode.prr.budget()),
            Phase::Open | Phase::Loss => cwnd.saturating_sub(self.pipe(out)),
        }
    }

    /// An acknowledgement was taken during fast recovery: `delivered` octets have left the network.
    pub(crate) fn on_delivered(&mut self, delivered: u32, ssthresh: u32, out: Outstanding) {
        let pipe = self.pipe(out);
        if let (Phase::Fast, Some(episode)) = (self.phase, &mut self.episode) {
            episode.prr.on_ack(delivered, pipe, ssthresh, out.mss);
        }
    }

    /// A timer has found `lost` octets lost during fast recovery. Where ssthresh leaves no room for a segment, one leaves all the same:
    /// nothing may be under way any more that would be acknowledged.
    // RFC 6675 §5.
    pub(crate) fn make_room(&mut self, lost: u32, ssthresh: u32, out: Outstanding) {
        let pipe = self.pipe(out);
        if let (Phase::Fast, 1.., Some(episode)) = (self.phase, lost, &mut self.episode) {
            episode.prr.make_room(lost, pipe, ssthresh);
            self.force |= episode.prr.budget() < out.mss;
        }
    }

    /// SND.UNA moved by `octets`. Answers the last transmission that arrived by that, or, when some
    /// of it was sent again, the last of those: the rest may have waited for them.
    // RFC 6675 §5.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        echo: Echo,
        octets: u32,
        out: Outstanding,
    ) -> Option<Sending> {
        let Self { flight, rack, phase, point, original, .. } = self;
        let mut last = None;
        flight.advance(out.una - octets, out.una, |sending| {
            rack.on_delivered(now, sending, echo);
            *original |= is_original(*phase, *point, sending);
            if sending.again || !last.is_some_and(|last: Sending| last.again) {
                last = Some(sending);
            }
        });
        // An acknowledgement that is predicted brings no blocks before it; both are kept near for that.
        rack.settle();
        rack.advance(out.una);
        match self.phase {
            Phase::Open => {
                self.dupacks = 0;
                // Kept near, so that it never comes to lie half the circle away.
                self.point = self.point.max(out.una - octets);
            }
            _ if out.una.at_or_after(self.point) => self.finish(),
            Phase::Fast if !self.sack => self.on_partial(octets, out),
            Phase::Fast | Phase::Loss => {}
        }
        last
    }

    /// Nothing was lost after all: what is believed to be is under way.
    pub(crate) fn forgive(&mut self) {
        self.flight.forgive();
        if self.phase != Phase::Open {
            self.finish();
        }
    }

    fn finish(&mut self) {
        self.phase = Phase::Open;
        self.force = false;
        self.dupacks = 0;
        self.episode = None;
        self.rack.on_recovered();
    }

    /// Octets the peer holds out of order; an estimate without SACK.
    pub(crate) fn held(&self, out: Outstanding) -> u32 {
        if self.sack {
            return self.flight.held();
        }
        let limit = out.octets().saturating_sub(out.mss);
        (u32::from(self.dupacks) * out.mss).min(limit)
    }

    /// Octets believed to be in the network (SetPipe of RFC 6675 §4).
    pub(crate) fn pipe(&self, out: Outstanding) -> u32 {
        out.octets().saturating_sub(self.held(out)).saturating_sub(self.flight.lost())
    }

    /// The next lost octets to send again, before any new data.
    // RFC 6675 §4.
    pub(crate) fn next_lost(&self, out: Outstanding) -> Option<Hole> {
        self.first_lost(out).filter(|_| self.phase != Phase::Open)
    }

    /// The first lost octets, whether or not anything is done about them yet.
    pub(crate) fn first_lost(&self, out: Outstanding) -> Option<Hole> {
        let (start, end) = self.flight.first_lost(out.una)?;
        Some(Hole { start, end })
    }

    /// PTO in µs, when a tail loss probe may be waited for (RFC 8985 §7.2): nothing is being
    /// repaired, nothing is held, no probe is outstanding, and a round trip was measured since the last. `srtt` is in µs, too.
    pub(crate) fn probe_timeout(&self, srtt: u32, out: Outstanding) -> Option<u64> {
        let due = self.sack && self.is_calm() && self.tail.may_be_sent();
        due.then(|| TailProbe::timeout(srtt, out.octets(), out.mss))
    }

    /// New text up to `end` has been sent.
    pub(crate) fn sent_new(&mut self, now: Instant, end: SeqNumber, octets: u32) {
        self.flight.sent(now, end);
        if let Some(episode) = &mut self.episode {
            episode.prr.on_sent(octets);
        }
    }

    /// Octets of `hole` up to `end` have been sent again.
    pub(crate) fn sent_again(&mut self, now: Instant, hole: Hole, end: SeqNumber, una: SeqNumber) {
        self.force = false;
        if let Some(episode) = &mut self.episode {
            episode.prr.on_sent(end - hole.start);
        }
        self.flight.sent_again(now, hole.start, end, una);
    }

    /// When the oldest of what is outstanding was last sent.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.flight.oldest()
    }

    /// Octets that were ever taken for lost, modulo 2³².
    pub(crate) const fn lost_ever(&self) -> u32 {
        self.flight.lost_ever()
    }

    /// When the youngest text that has arrived was sent, and its round trip.
    pub(crate) fn youngest(&self) -> (Instant, Duration) {
        self.rack.youngest()
    }

    /// Bytes of memory held outside of the connection itself.
    pub(crate) fn memory(&self) -> usize {
        self.flight.memory() + self.episode.as_ref().map_or(0, |_| size_of::<Episode>())
    }
}

/// Whether it was sent before the time-out and not since.
fn is_original(phase: Phase, point: SeqNumber, sending: Sending) -> bool {
    phase == Phase::Loss && !sending.again && sending.end.at_or_before(point)
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
