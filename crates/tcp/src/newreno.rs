//! Loss recovery without SACK: NewReno (RFC 6582), with the terms of `recovery`. Three duplicate
//! acknowledgements mean that the first segment is lost, and each partial acknowledgement that the
//! next one is, too.

use crate::flight::Outstanding;
use crate::recovery::{Phase, Recovery};

/// Duplicate acknowledgements that mean a loss without SACK (RFC 5681 §3.2).
const DUP_THRESH: u16 = 3;

impl Recovery {
    /// Counts a duplicate acknowledgement of a peer without SACK; answers whether fast retransmit
    /// begins. Duplicates of what the last episode sent again prove nothing (RFC 6582 §3.2, step
    /// 2).
    pub(crate) fn on_duplicate(&mut self, out: Outstanding) -> bool {
        if self.phase == Phase::Loss {
            return false;
        }
        self.dupacks = self.dupacks.saturating_add(1);
        self.phase == Phase::Open && self.dupacks >= DUP_THRESH && out.una.after(self.point)
    }

    /// A partial acknowledgement without SACK: the next segment is lost too (RFC 6582 §3.2, step
    /// 3). Of what it covers, one segment was the hole and the rest had been duplicates.
    pub(crate) fn on_partial(&mut self, octets: u32, out: Outstanding) {
        let had_arrived = octets.saturating_sub(out.mss) / out.mss;
        self.dupacks = self.dupacks.saturating_sub(u16::try_from(had_arrived).unwrap_or(u16::MAX));
        self.flight.lose_first(out);
        self.force = true;
        self.partial = true;
    }

    /// Whether the retransmission timer goes on as it is: without SACK it starts again with the
    /// first partial acknowledgement only, so that many losses end in a time-out instead of being
    /// repaired one in each round trip (RFC 6582 §3.2, step 3; the impatient variant of RFC 3782 §4).
    pub(crate) fn is_impatient(&self) -> bool {
        self.phase == Phase::Fast && self.partial
    }
}
