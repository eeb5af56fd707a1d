//! The tail loss probe (TLP, RFC 8985 §7): when the last of what was sent stays unacknowledged for
//! two round trips, one more segment is sent, new text if there is some and else the last segment
//! again. Its acknowledgement lets `rack` see what was lost without waiting for the time-out. At
//! most one probe is outstanding; where it repaired the loss itself, that is still a loss. Times are
//! in microseconds, since one is computed for every acknowledgement.

use crate::rack::GRANULARITY;
use crate::seq::SeqNumber;

/// TLP.max_ack_delay: how long a peer may delay the acknowledgement of a lone segment (§7.2).
const MAX_ACK_DELAY: u64 = 200_000;
/// PTO without a measured round trip.
const UNMEASURED: u64 = 1_000_000;
/// PTO is at least two ticks (`rack::GRANULARITY`).
const LEAST: u64 = 2 * GRANULARITY.as_micros() as u64;

/// The probe that is outstanding.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TailProbe {
    /// TLP.end_seq, while `out`.
    end_seq: SeqNumber,
    out: bool,
    /// TLP.is_retrans.
    is_retrans: bool,
    /// A probe was sent, and no round trip has been measured since.
    unmeasured: bool,
}

/// What an acknowledgement says of the probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailAck {
    pub(crate) ack: SeqNumber,
    /// The range of its D-SACK.
    pub(crate) dsack: Option<(SeqNumber, SeqNumber)>,
    /// It acknowledges nothing new and carries no SACK block.
    pub(crate) plain_duplicate: bool,
}

impl TailProbe {
    /// TLP_calc_PTO() (§7.2) in µs, without the bound by the time-out.
    // RFC 8985 §7.2.
    pub(crate) fn timeout(srtt: u32, flight: u32, mss: u32) -> u64 {
        if srtt == 0 {
            return UNMEASURED;
        }
        let delayed = if flight <= mss { MAX_ACK_DELAY } else { 0 };
        (2 * u64::from(srtt)).max(LEAST) + delayed
    }

    /// Whether a probe is outstanding.
    pub(crate) const fn is_out(&self) -> bool {
        self.out
    }

    /// TLP_send_probe() (§7.3): a probe was sent, and SND.NXT is now `nxt`.
    pub(crate) fn sent(&mut self, nxt: SeqNumber, is_retrans: bool) {
        *self = Self { end_seq: nxt, out: true, is_retrans, unmeasured: true };
    }

    /// A round trip was measured.
    pub(crate) const fn measured(&mut self) {
        self.unmeasured = false;
    }

    /// Whether another probe may be sent: not while none was measured since the last, or where the round trip has
    /// grown beyond PTO each segment would be probed, and none ever measured (§7.3).
    // RFC 8985 §7.3.
    pub(crate) const fn may_be_sent(&self) -> bool {
        !self.out && !self.unmeasured
    }

    /// TLP_process_ack() (§7.4). Answers whether the probe repaired a loss that nobody else has
    /// noticed, to which congestion control must react.
    // RFC 8985 §7.4.2.
    pub(crate) fn on_ack(&mut self, ack: TailAck) -> bool {
        if !self.out || ack.ack.before(self.end_seq) {
            return false;
        }
        let spurious = ack.dsack.is_some_and(|(_, end)| end == self.end_seq);
        let beyond = ack.ack.after(self.end_seq);
        self.out = self.is_retrans && !spurious && !beyond && !ack.plain_duplicate;
        self.is_retrans && !spurious && beyond
    }

    /// A recovery begins, which answers for what was lost.
    pub(crate) fn forget(&mut self) {
        self.out = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seq(raw: u32) -> SeqNumber {
        SeqNumber::new(raw)
    }

    fn ack(ack: u32) -> TailAck {
        TailAck { ack: seq(ack), dsack: None, plain_duplicate: false }
    }

    /// What acknowledgements make of a probe up to 1000: a loss, and whether it is still out.
    fn outcome(is_retrans: bool, ack: TailAck) -> (bool, bool) {
        let mut probe = TailProbe::default();
        probe.sent(seq(1_000), is_retrans);
        (probe.on_ack(ack), probe.is_out())
    }

    // RFC 8985 §7.2.
    #[test]
    fn the_timeout_is_two_round_trips_and_longer_for_a_lone_segment() {
        let timeout = |srtt, flight| TailProbe::timeout(srtt, flight, 1_000);
        assert_eq!(timeout(30_000, 2_000), 60_000);
        assert_eq!(timeout(30_000, 1_000), 260_000);
        assert_eq!(timeout(50, 5_000), 2_000);
        assert_eq!(timeout(0, 5_000), 1_000_000);
    }

    #[test]
    fn a_probe_of_new_text_ends_with_its_acknowledgement_and_tells_no_loss() {
        assert_eq!(outcome(false, ack(999)), (false, true));
        assert_eq!(outcome(false, ack(1_000)), (false, false));
    }

    // RFC 8985 §7.4.2.
    #[test]
    fn a_repeated_segment_that_was_received_twice_was_not_lost() {
        let dsack = Some((seq(900), seq(1_000)));
        assert_eq!(outcome(true, TailAck { dsack, ..ack(1_000) }), (false, false));
        assert_eq!(outcome(true, TailAck { plain_duplicate: true, ..ack(1_000) }), (false, false));
    }

    // RFC 8985 §7.4.2.
    #[test]
    fn an_acknowledgement_beyond_a_repeated_segment_tells_that_it_repaired_a_loss() {
        // The acknowledgement of just the probe may yet be followed by a D-SACK.
        assert_eq!(outcome(true, ack(1_000)), (false, true));
        assert_eq!(outcome(true, ack(1_001)), (true, false));
    }
}
