//! HyStart++ (RFC 9406): the first slow start ends when the round trip grows, before the queue
//! overflows. A round is a window's worth of acknowledgements; when the least round trip of one is
//! clearly above that of the one before, the window grows by a quarter of slow start's pace
//! (conservative slow start). If the round trip shrinks again it was a mistake; after five rounds
//! slow start is over. What trains of acknowledgements tell of the path's rate ends it sooner (`train`).
//!
//! What an acknowledgement may open is not limited (§4.2's L): the limit of eight segments was
//! written for peers that acknowledge every second one. Today's aggregate what they receive and
//! acknowledge a whole window at once; under that limit slow start was linear, and 500 KB took 12
//! round trips where Linux, which has no limit either, took 8.

use core::time::Duration;

use crate::congestion::Acked;
use crate::seq::SeqNumber;
use crate::train::{Arrival, Train};

/// MIN_RTT_THRESH and MAX_RTT_THRESH of §4.3 in µs.
// RFC 9406 §4.3.
const MIN_RTT_THRESH: u32 = 4_000;
const MAX_RTT_THRESH: u32 = 16_000;
/// MIN_RTT_DIVISOR.
const MIN_RTT_DIVISOR: u32 = 8;
/// N_RTT_SAMPLE: so many samples tell a round's least.
// RFC 9406 §4.3.
const N_RTT_SAMPLE: u8 = 8;
/// CSS_GROWTH_DIVISOR.
// RFC 9406 §4.3.
const CSS_GROWTH_DIVISOR: u32 = 4;
/// CSS_ROUNDS.
// RFC 9406 §4.3.
const CSS_ROUNDS: u8 = 5;

/// Not known.
const UNKNOWN: u32 = u32::MAX;

/// The watch over the first slow start. Round trips are in µs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HyStart {
    /// windowEnd: the round ends with its acknowledgement.
    window_end: SeqNumber,
    last_round_min: u32,
    current_round_min: u32,
    /// cssBaselineMinRtt in conservative slow start; outside of it the least round trip of the rounds before the last.
    baseline: u32,
    samples: u8,
    /// Rounds of conservative slow start that have begun.
    css_rounds: u8,
    /// The first round has begun.
    begun: bool,
    train: Train,
}

impl HyStart {
    pub(crate) const fn new() -> Self {
        Self {
            window_end: SeqNumber::new(0),
            last_round_min: UNKNOWN,
            current_round_min: UNKNOWN,
            baseline: UNKNOWN,
            samples: 0,
            css_rounds: 0,
            begun: false,
            train: Train::NONE,
        }
    }

    const fn is_conservative(&self) -> bool {
        self.css_rounds > 0
    }

    /// Octets per second at which to send with this window, where something is known of the path's rate.
    pub(crate) fn pacing_rate(&self, window: u32) -> Option<u64> {
        let round_trip = self.last_round_min.min(self.current_round_min);
        self.train.pacing_rate(window, Some(round_trip).filter(|round_trip| *round_trip != UNKNOWN))
    }

    /// A window that is known to fit is spread over the round trip, if that is a far one. Whether it is the best that
    /// is known: no round said that the path is nearly full, or what its rate is.
    pub(crate) fn spread(&mut self, window: u32, round_trip: Duration) -> bool {
        !self.is_conservative() && self.train.spread(window, round_trip)
    }

    /// An acknowledgement found more window than was needed.
    pub(crate) fn on_spare_ack(&mut self, acked: &Acked, window: u32) {
        // Kept near, so that it never comes to lie half the circle away.
        self.window_end = self.window_end.max(acked.una);
        if let Some(round_trip) = acked.rtt {
            self.train.heard(window, round_trip);
        }
    }

    /// Slow start is over as soon as the next acknowledgement comes.
    pub(crate) fn is_over(&self) -> bool {
        self.train.is_filled() || self.css_rounds > CSS_ROUNDS
    }

    /// Octets by which an acknowledgement opens a window of so many; `None` when slow start is over.
    // RFC 9406 §4.2, §4.3.
    pub(crate) fn on_ack(&mut self, acked: &Acked, window: u32) -> Option<u32> {
        if !self.begun || acked.una.at_or_after(self.window_end) {
            self.start_round(acked.nxt);
            if self.train.is_over() {
                return None;
            }
        }
        let own = acked.rtt.map(|rtt| u32::try_from(rtt.as_micros()).unwrap_or(UNKNOWN - 1));
        if let Some(rtt) = own {
            self.current_round_min = self.current_round_min.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        if self.samples >= N_RTT_SAMPLE {
            self.judge();
        }
        let round_trip = self.last_round_min.min(self.current_round_min);
        let (now, octets, own) = (acked.now, acked.bytes, own.unwrap_or(0));
        self.train.on_ack(Arrival { now, octets, window, own, round_trip });
        if self.train.is_filled() {
            return Some(0);
        }
        let divisor = if self.is_conservative() || self.train.is_doubted() { CSS_GROWTH_DIVISOR } else { 1 };
        (self.css_rounds <= CSS_ROUNDS).then_some(acked.bytes / divisor)
    }

    fn start_round(&mut self, nxt: SeqNumber) {
        self.window_end = nxt;
        if !self.is_conservative() {
            self.baseline = self.baseline.min(self.last_round_min);
        }
        self.train.start_round(self.current_round_min, self.baseline);
        self.last_round_min = self.current_round_min;
        self.current_round_min = UNKNOWN;
        self.samples = 0;
        self.begun = true;
        if self.is_conservative() {
            self.css_rounds = self.css_rounds.saturating_add(1);
        }
    }

    /// Enough was measured in this round (§4.2).
    // RFC 9406 §4.2.
    fn judge(&mut self) {
        if self.is_conservative() {
            if self.current_round_min < self.baseline {
                (self.baseline, self.css_rounds) = (self.current_round_min, 0);
            }
        } else if self.last_round_min != UNKNOWN {
            let threshold = (self.last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
            if self.current_round_min >= self.last_round_min.saturating_add(threshold) {
                (self.baseline, self.css_rounds) = (self.current_round_min, 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::acked;
    use alloc::vec::Vec;

    const MSS: u32 = 1_000;

    /// Rounds of ten acknowledgements each, of one segment with this round trip in ms.
    struct Rounds(HyStart, u32);

    impl Rounds {
        fn new() -> Self {
            Self(HyStart::new(), 0)
        }

        fn round(&mut self, millis: u64) -> Vec<Option<u32>> {
            let end = self.1 + 10 * MSS;
            (0..10)
                .map(|_| {
                    let (una, nxt) = (SeqNumber::new(self.1), SeqNumber::new(end));
                    self.1 += MSS;
                    let rtt = Some(Duration::from_millis(millis));
                    self.0.on_ack(&Acked { rtt, una, nxt, ..acked(MSS, MSS) }, 10 * MSS)
                })
                .collect()
        }
    }

    #[test]
    fn a_steady_round_trip_does_not_slow_down() {
        let mut rounds = Rounds::new();
        for millis in [50, 50, 55, 58] {
            assert_eq!(rounds.round(millis), [Some(MSS); 10]);
        }
    }

    // RFC 9406 §4.2, §4.3.
    #[test]
    fn a_longer_round_trip_slows_down_from_its_eighth_sample_and_ends_after_five_rounds() {
        let mut rounds = Rounds::new();
        rounds.round(50);
        let slower = rounds.round(57);
        assert_eq!((slower[6], slower[7]), (Some(MSS), Some(MSS / 4)));
        for _ in 0..4 {
            assert_eq!(rounds.round(57), [Some(MSS / 4); 10]);
        }
        assert_eq!(rounds.round(57)[0], None);
    }

    // RFC 9406 §4.2.
    #[test]
    fn a_round_trip_that_shrinks_again_was_a_mistake() {
        let mut rounds = Rounds::new();
        rounds.round(50);
        rounds.round(57);
        let faster = rounds.round(51);
        assert_eq!((faster[6], faster[7]), (Some(MSS / 4), Some(MSS)));
    }

    // RFC 9406 §4.3.
    #[test]
    fn the_threshold_is_an_eighth_between_four_and_sixteen_milliseconds() {
        let slows_down = |before, after| {
            let mut rounds = Rounds::new();
            rounds.round(before);
            rounds.round(after)[9] == Some(MSS / 4)
        };
        assert_eq!([slows_down(1, 4), slows_down(1, 5)], [false, true]);
        assert_eq!([slows_down(80, 89), slows_down(80, 90)], [false, true]);
        assert_eq!([slows_down(400, 415), slows_down(400, 416)], [false, true]);
    }

    #[test]
    fn a_round_ends_also_when_gigabytes_were_sent_since_that_left_window_to_spare() {
        let mut rounds = Rounds::new();
        rounds.round(50);
        for _ in 0..3 {
            rounds.1 = rounds.1.wrapping_add(1 << 30);
            let spare = Acked { una: SeqNumber::new(rounds.1), limited: false, ..acked(MSS, MSS) };
            rounds.0.on_spare_ack(&spare, 10 * MSS);
        }
        let slower = rounds.round(57);
        assert_eq!((slower[6], slower[7]), (Some(MSS), Some(MSS / 4)));
    }

    // RFC 9406 §4.3.
    #[test]
    fn one_acknowledgement_of_a_whole_window_opens_as_much() {
        let mut hystart = HyStart::new();
        assert_eq!(hystart.on_ack(&acked(100 * MSS, MSS), 100 * MSS), Some(100 * MSS));
    }
}
