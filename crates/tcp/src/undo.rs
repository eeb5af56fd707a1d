//! Undoing a recovery that was not needed. That what was sent again had arrived the first time, late
//! or out of order, is seen by the echoed timestamp (Eifel, RFC 3522), by the peer's reports that it
//! had all of it before (D-SACK, RFC 2883, RFC 3708), or after a time-out by `frto`. Then the
//! congestion window and threshold are what they were (RFC 4015), and what was given up for lost is
//! under way again. Evidence that one retransmission was needed ends the matter: nothing is undone
//! by halves.

use alloc::boxed::Box;

use silk_instant::Instant;

use crate::congestion::Congestion;
use crate::connection::Connection;
use crate::controller::Controller;
use crate::flight::Sending;
use crate::frto::Frto;
use crate::recovery::Phase;
use crate::segment::Segment;
use crate::seq::SeqNumber;

/// What is remembered while a recovery may turn out not to be needed.
#[derive(Clone, Debug)]
pub(crate) struct Undo {
    /// Congestion control as it was before. None where it has a model of the path, which knows by itself what it was.
    before: Option<Controller>,
    /// RetransmitTS (RFC 3522 §3.2, step 2): when something was first sent again.
    first_again: Option<Instant>,
    /// SND.UNA and SND.NXT when it began: what is sent again lies between them.
    range: (SeqNumber, SeqNumber),
    /// Octets that were sent again.
    again: u32,
    /// Octets of those that the peer had before.
    had: u32,
    /// SND.NXT when the recovery was over. Until something later is acknowledged the peer may still
    /// say that it was not needed.
    over_at: Option<SeqNumber>,
    /// What a time-out's first acknowledgements say.
    pub(crate) frto: Frto,
}

impl Connection {
    /// A recovery begins; what follows reduces the window. A second reason for one ends the hope
    /// that the first was a mistake.
    pub(crate) fn remember_for_undo(&mut self, timed_out: bool) {
        let first = self.recovery.phase() == Phase::Open;
        // A controller with a model of the path does not take a loss for more than it is, but a time-out.
        let knows = self.congestion.models_the_path();
        self.undo = (first && (timed_out || !knows)).then(|| {
            let before = (!knows).then(|| self.congestion.clone());
            let range = (self.snd.una, self.snd.nxt);
            Box::new(Undo {
                before,
                first_again: None,
                range,
                again: 0,
                had: 0,
                over_at: None,
                frto: Frto::Off,
            })
        });
    }

    /// So many octets were sent again.
    pub(crate) fn note_for_undo(&mut self, now: Instant, octets: u32) {
        if let Some(undo) = &mut self.undo {
            undo.first_again.get_or_insert(now);
            undo.again = undo.again.saturating_add(octets);
        }
    }

    /// The peer received these octets twice. Once that is so for all that was sent again, and nothing
    /// else is lost, the recovery was a mistake (RFC 3708 §2).
    pub(crate) fn note_received_twice(&mut self, (start, end): (SeqNumber, SeqNumber)) {
        let Some(undo) = &mut self.undo else { return };
        if start.before(undo.range.0) || end.after(undo.range.1) || !start.before(end) {
            return;
        }
        undo.had = undo.had.saturating_add(end - start);
        if undo.again > 0 && undo.had >= undo.again && self.recovery.flight.lost() == 0 {
            self.undo_recovery();
        }
    }

    /// What was sent again is acknowledged: by what arrived when?
    pub(crate) fn weigh_for_undo(&mut self, seg: &Segment, arrived: Sending, phase: Phase) {
        if !self.stamps.on {
            return;
        }
        let Some(first_again) = self.undo.as_ref().and_then(|undo| undo.first_again) else { return };
        if arrived.again && !self.stamps.echo(seg.options.timestamp).is_before(first_again) {
            self.undo = None;
            return;
        }
        let flight = &self.recovery.flight;
        let all_arrived = flight.lost() == 0 && flight.again(self.snd.una) == 0;
        // After a time-out the first word is enough (RFC 3522 §3.2, step 5); reordering may hide a loss.
        if arrived.again && (phase == Phase::Loss || all_arrived) {
            self.undo_recovery();
        }
    }

    /// Text was acknowledged. Once a recovery is over, only the peer's reports can still undo it, and
    /// those come soon.
    pub(crate) fn forget_undo(&mut self) {
        let Some(undo) = &mut self.undo else { return };
        if self.recovery.phase() == Phase::Open {
            let over_at = *undo.over_at.get_or_insert(self.snd.nxt);
            if !self.recovery.sack() || undo.again == 0 || self.snd.una.after(over_at) {
                self.undo = None;
            }
        }
    }

    /// RFC 4015 §3.2, with the whole window as Linux has it. The time-out stays backed off until a
    /// round trip is measured: this one may be the wait for a lost acknowledgement (`measure`).
    // RFC 9438 §4.9.2.
    pub(crate) fn undo_recovery(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        if let Some(mut before) = undo.before {
            // Its time starts again: what passed meanwhile was no congestion avoidance.
            before.on_idle(u32::MAX);
            if before.window() > self.congestion.window() {
                self.congestion = before;
            }
        }
        self.congestion.on_spurious();
        self.recovery.forgive();
        let undone = &mut self.counters.mishaps().undone;
        *undone = undone.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// A peer that never takes what is sent again can have it sent for as long as it likes.
    #[test]
    fn what_is_sent_again_is_counted_up_to_a_bound() {
        let mut connection = Connection::connect(&Config::default(), SeqNumber::new(1), Instant::ZERO);
        connection.remember_for_undo(true);
        for octets in [u32::MAX - 1, 1_000] {
            connection.note_for_undo(Instant::ZERO, octets);
        }
        assert_eq!(connection.undo.map(|undo| undo.again), Some(u32::MAX));
    }
}
