//! What a connection does about losses: it brings the acknowledgements to `recovery`, lets the
//! congestion controller know once for each episode (RFC 5681 §3.2), and sets the one timer of
//! retransmission, which waits for a time-out (RFC 6298), for the tail's probe or for reordered
//! text (RFC 8985 §8).

use core::time::Duration;

use silk_instant::Instant;

use crate::congestion::Congestion;
use crate::connection::{Connection, Owed};
use crate::flight::Outstanding;
use crate::progress::Progress;
use crate::recovery::{Hole, Phase, Wait};
use crate::segment::Segment;
use crate::tail::TailAck;
use crate::timers::Timer;

impl Connection {
    /// A duplicate acknowledgement of a peer without SACK.
    pub(crate) fn on_duplicate(&mut self, now: Instant) {
        let out = self.outstanding();
        if self.recovery.on_duplicate(out) && !self.repair_probe(now, out) {
            self.start_fast(now, out);
        }
    }

    /// An acknowledgement of a peer with SACK was taken (RFC 8985 §6.2 and §7.4). `before` is what
    /// was outstanding until then, and `calm` whether nothing had been out of the ordinary. The one that ends a recovery may
    /// tell of losses behind its end: what was sent again arrived, and something that left before has not.
    // RFC 8985 §4, §7.4.2.
    pub(crate) fn on_sack_acknowledgement(
        &mut self,
        now: Instant,
        seg: &Segment,
        before: Outstanding,
        calm: bool,
    ) {
        let out = self.outstanding();
        let nothing_new = seg.ack == before.una && seg.sequence_len() == 0;
        let dsack = seg.options.sack.duplicate(seg.ack);
        let plain_duplicate = nothing_new && seg.options.sack.is_empty();
        if self.recovery.tail.on_ack(TailAck { ack: seg.ack, dsack, plain_duplicate }) {
            self.reduce(before);
        }
        if !calm || !self.recovery.is_calm() {
            self.detect_losses(now, out);
        }
    }

    // RFC 8985 §6.2, §9.3.
    fn detect_losses(&mut self, now: Instant, out: Outstanding) {
        let detected = self.recovery.detect(now, self.rto.srtt(), out);
        if self.recovery.is_overdue() {
            if !self.repair_probe(now, out) {
                self.start_fast(now, out);
            }
        } else if self.lost_more_than_probe(out) {
            self.start_fast(now, out);
        } else if detected.repair_lost && self.recovery.phase() == Phase::Fast {
            // A retransmission that is lost is a second sign of congestion (RFC 5681 §4.3).
            self.remember_for_undo(false);
            self.reduce(out);
            self.recovery.start_fast(now, out);
        }
        match detected.again_at {
            Some(at) => self.wait(Wait::Reordering, at),
            None if self.recovery.wait == Wait::Reordering => self.restart_timer(now),
            None => {}
        }
    }

    fn start_fast(&mut self, now: Instant, out: Outstanding) {
        self.remember_for_undo(false);
        self.reduce(out);
        self.recovery.start_fast(now, out);
        let fast_recoveries = &mut self.counters.mishaps().fast_recoveries;
        *fast_recoveries = fast_recoveries.wrapping_add(1);
        self.restart_timer(now);
    }

    /// The acknowledgement echoes a mark: less is sent, but nothing is sent again (RFC 3168 §6.1.2).
    /// While losses are repaired the window has been reduced already.
    pub(crate) fn on_echo(&mut self, seg: &Segment, before: Outstanding) {
        if self.ecn.is_echo(seg.flags, seg.ack) && self.recovery.phase() == Phase::Open {
            self.congestion.on_mark(self.flight(before), before.mss);
            self.ecn.on_reduced(before.nxt);
            // What the mark asks for is not undone.
            self.undo = None;
        }
    }

    fn reduce(&mut self, out: Outstanding) {
        self.congestion.on_loss(self.flight(out), out.mss);
        self.ecn.on_reduced(out.nxt);
    }

    /// Text that limited transmit added is not part of it (RFC 5681 §3.2, step 2).
    fn flight(&self, out: Outstanding) -> u32 {
        out.octets().min(self.congestion.window())
    }

    /// During fast recovery: SND.UNA moved by `octets`, and the peer had `held` before. Whether something was delivered, which
    /// lets more go.
    pub(crate) fn pace_repair(&mut self, octets: u32, held: u32) -> bool {
        if self.recovery.phase() != Phase::Fast {
            return false;
        }
        let out = self.outstanding();
        let delivered = (octets + self.recovery.held(out)).saturating_sub(held);
        self.recovery.on_delivered(delivered, self.congestion.ssthresh(), out);
        delivered > 0
    }

    /// During fast recovery: `lost` octets had been lost before, and what has been found lost since without an acknowledgement that
    /// delivers may be all that was under way: none has to come any more that would open the budget.
    pub(crate) fn make_room_for_lost(&mut self, lost: u32) {
        let found = self.recovery.lost_ever().wrapping_sub(lost);
        self.recovery.make_room(found, self.congestion.ssthresh(), self.outstanding());
    }

    /// Sets the timer, and what it is for.
    // RFC 8985 §8.
    pub(crate) fn wait(&mut self, wait: Wait, until: Instant) {
        self.recovery.wait = wait;
        self.timers.arm(Timer::Retransmit, self.not_overslept(until));
    }

    /// RFC 6298 §5.2 and §5.3, RFC 8985 §7.2.
    // RFC 6298 §5.2, §5.3.
    pub(crate) fn restart_timer(&mut self, now: Instant) {
        if self.snd.is_idle() {
            self.recovery.wait = Wait::Timeout;
            self.timers.cancel(Timer::Retransmit);
            return;
        }
        let (rto, srtt) = self.rto.current_and_srtt_micros();
        let (wait, micros) = match self.recovery.probe_timeout(srtt, self.outstanding()) {
            Some(pto) => (Wait::Probe, pto.min(rto)),
            None => (Wait::Timeout, rto),
        };
        self.wait(wait, now + Duration::from_micros(micros));
    }

    /// The first segment was sent again in fast recovery, perhaps not for the first time: its acknowledgement takes a round
    /// trip from here, and the time-out would come before it. Without SACK the timer goes on (`newreno`).
    // RFC 6675 §6.
    pub(crate) fn rearm_for_repair(&mut self, now: Instant, hole: Hole) {
        let first = hole.start == self.snd.una && self.recovery.phase() == Phase::Fast;
        if first && self.recovery.sack() && self.recovery.wait == Wait::Timeout {
            self.restart_timer(now);
        }
    }

    /// PTO is over. It is counted from the last transmission (RFC 8985 §7.2), but not moved by each
    /// one; here is seen how long the silence really was. It never lasts beyond the time-out.
    // RFC 8985 §7.3.
    pub(crate) fn on_probe_timeout(&mut self, now: Instant) -> Progress {
        let out = self.outstanding();
        let (rto, srtt) = self.rto.current_and_srtt_micros();
        let rto = Duration::from_micros(rto);
        if let Some(pto) = self.recovery.probe_timeout(srtt, out).map(Duration::from_micros) {
            let overdue = self.recovery.oldest().unwrap_or(now) + rto;
            let due = (self.snd.last_sent + pto).min(overdue);
            if due > now {
                self.wait(Wait::Probe, due);
                return Progress::NONE;
            }
            self.owed.add(Owed::TAIL);
        }
        self.wait(Wait::Timeout, now + rto);
        Progress::NONE
    }

    /// What was late is now lost (RFC 8985 §6.2, step 5).
    pub(crate) fn on_reordering_timeout(&mut self, now: Instant) -> Progress {
        self.wait(Wait::Timeout, now + self.rto.current());
        let lost = self.recovery.lost_ever();
        let is_repairing = self.recovery.phase() == Phase::Fast;
        self.detect_losses(now, self.outstanding());
        if is_repairing {
            self.make_room_for_lost(lost);
        }
        self.tell_lost(lost);
        Progress::NONE
    }
}
