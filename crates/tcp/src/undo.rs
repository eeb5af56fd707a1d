//! Undoing a recovery that was not needed: the Eifel detection (RFC 3522) sees by the echoed
//! timestamp that what was sent again had arrived the first time, late or out of order; then the
//! congestion window and threshold are what they were (RFC 4015), and what was given up for lost is
//! under way again. It needs timestamps. Evidence that one retransmission was needed ends the
//! matter: nothing is undone by halves.

use alloc::boxed::Box;

use silk_instant::Instant;

use crate::congestion::{Congestion, Controller};
use crate::connection::Connection;
use crate::flight::Sending;
use crate::recovery::Phase;
use crate::segment::Segment;

/// What is remembered while a recovery may turn out not to be needed.
#[derive(Clone, Debug)]
pub(crate) struct Undo {
    /// Congestion control as it was before.
    before: Controller,
    /// RetransmitTS (RFC 3522 §3.2, step 2): when something was first sent again.
    first_again: Option<Instant>,
}

impl Connection {
    /// A recovery begins; what follows reduces the window. A second reason for one ends the hope
    /// that the first was a mistake.
    pub(crate) fn remember_for_undo(&mut self) {
        let first = self.recovery.phase() == Phase::Open;
        // A controller with a model of the path does not take a loss for more than it is.
        let may = first && self.stamps.on && !self.congestion.models_the_path();
        self.undo = may.then(|| Box::new(Undo { before: self.congestion.clone(), first_again: None }));
    }

    /// Something was sent again.
    pub(crate) fn note_for_undo(&mut self, now: Instant) {
        if let Some(undo) = &mut self.undo {
            undo.first_again.get_or_insert(now);
        }
    }

    /// What was sent again is acknowledged: by what arrived when?
    pub(crate) fn weigh_for_undo(&mut self, seg: &Segment, arrived: Sending, phase: Phase) {
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

    /// A recovery is over, one way or the other.
    pub(crate) fn forget_undo(&mut self) {
        if self.recovery.phase() == Phase::Open {
            self.undo = None;
        }
    }

    /// RFC 4015 §3.2, with the whole window as Linux has it. The time-out stays backed off until a
    /// round trip is measured: this one may be the wait for a lost acknowledgement (`measure`).
    fn undo_recovery(&mut self) {
        let Some(mut undo) = self.undo.take() else { return };
        // Its time starts again: what passed meanwhile was no congestion avoidance.
        undo.before.on_idle(u32::MAX);
        if undo.before.window() > self.congestion.window() {
            self.congestion = undo.before;
        }
        self.recovery.forgive();
        self.counters.undone = self.counters.undone.wrapping_add(1);
    }
}
