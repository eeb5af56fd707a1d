//! What BBR believes of the path (draft-ietf-ccwg-bbr §2.9 to §2.13): its bandwidth, its least round
//! trip, how much acknowledgements are aggregated, how much may be in the network before too much is
//! lost. It only remembers and computes; what to do about it is `bbr`'s.

use core::time::Duration;

use silk_instant::Instant;

use crate::congestion::Delivery;
use crate::rate::{Rate, RateSample};

/// BBR.Beta, in hundredths: what a loss leaves of a bound.
const BETA: u64 = 70;
/// BBR.LossThresh, in hundredths: more than this is too much.
const LOSS_THRESH: u64 = 2;
/// BBR.Headroom, in hundredths: left to others while cruising.
const HEADROOM: u64 = 15;
/// BBR.MinRTTFilterLen.
const MIN_RTT_LASTS: Duration = Duration::from_secs(10);
/// BBR.ProbeRTTInterval.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// Half of BBR.ExtraAckedFilterLen, in rounds.
const EXTRA_ROUNDS: u32 = 5;

/// `hundredths` of `value`.
pub(crate) fn percent(value: u64, hundredths: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(hundredths) / 100).unwrap_or(u64::MAX)
}

/// A least round trip and when it was seen.
#[derive(Clone, Copy, Debug)]
struct Least {
    rtt: Duration,
    at: Instant,
}

/// The model of one path. Rates are in octets per second, amounts in octets.
#[derive(Clone, Debug)]
pub(crate) struct PathModel {
    pub(crate) rate: Rate,
    /// BBR.max_bw of the last cycle of probing and of this one.
    max_bw: [u64; 2],
    /// BBR.bw_lo: the short-term bound, after losses.
    bw_lo: u64,
    /// BBR.inflight_lo, likewise.
    pub(crate) inflight_lo: u64,
    /// BBR.inflight_hi: more in the network lost too much.
    pub(crate) inflight_hi: u64,
    /// The three as they were before a time-out that may have been a mistake.
    remembered: Option<[u64; 3]>,
    min_rtt: Least,
    probe_rtt_min: Least,
    /// The round ends when what is sent now has arrived.
    next_round_delivered: u64,
    pub(crate) round_start: bool,
    pub(crate) rounds: u32,
    /// Of this round: the best rate, the most delivered over a sample, what was lost and how often.
    bw_latest: u64,
    pub(crate) inflight_latest: u64,
    round_lost: u64,
    pub(crate) loss_events: u32,
    /// BBR.extra_acked of the rounds before and of these.
    extra_acked: [u64; 2],
    extra_since: u32,
    epoch_start: Instant,
    epoch_delivered: u64,
}

impl PathModel {
    pub(crate) const fn new() -> Self {
        let unknown = Least { rtt: Duration::MAX, at: Instant::ZERO };
        Self {
            rate: Rate::new(),
            max_bw: [0; 2],
            bw_lo: u64::MAX,
            inflight_lo: u64::MAX,
            inflight_hi: u64::MAX,
            remembered: None,
            min_rtt: unknown,
            probe_rtt_min: unknown,
            next_round_delivered: 0,
            round_start: false,
            rounds: 0,
            bw_latest: 0,
            inflight_latest: 0,
            round_lost: 0,
            loss_events: 0,
            extra_acked: [0; 2],
            extra_since: 0,
            epoch_start: Instant::ZERO,
            epoch_delivered: 0,
        }
    }

    /// BBR.max_bw.
    pub(crate) fn max_bw(&self) -> u64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// BBR.bw.
    pub(crate) fn bw(&self) -> u64 {
        self.max_bw().min(self.bw_lo)
    }

    /// BBR.min_rtt; zero before the first.
    pub(crate) fn min_rtt(&self) -> Duration {
        if self.min_rtt.rtt == Duration::MAX { Duration::ZERO } else { self.min_rtt.rtt }
    }

    /// The bandwidth-delay product.
    pub(crate) fn bdp(&self) -> u64 {
        let bits = u128::from(self.bw()) * self.min_rtt().as_nanos() / 1_000_000_000;
        u64::try_from(bits).unwrap_or(u64::MAX)
    }

    /// BBRInflightWithHeadroom().
    pub(crate) fn inflight_with_headroom(&self) -> u64 {
        if self.inflight_hi == u64::MAX { u64::MAX } else { percent(self.inflight_hi, 100 - HEADROOM) }
    }

    /// BBR.extra_acked.
    pub(crate) fn extra_acked(&self) -> u64 {
        self.extra_acked[0].max(self.extra_acked[1])
    }

    /// Takes what an acknowledgement says. `None`: nothing arrived of which anything is known.
    pub(crate) fn on_delivery(&mut self, delivery: &Delivery, cwnd: u32) -> Option<RateSample> {
        self.on_lost(delivery.lost);
        let Delivery { now, delivered, sent_at, .. } = *delivery;
        self.round_start = false;
        let sample = self.rate.on_delivered(now, delivered, sent_at, self.min_rtt())?;
        if sample.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = self.rate.delivered();
            self.rounds = self.rounds.wrapping_add(1);
            self.round_start = true;
        }
        self.bw_latest = self.bw_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if sample.rate >= self.max_bw() || !sample.app_limited {
            self.max_bw[1] = self.max_bw[1].max(sample.rate);
        }
        self.update_extra_acked(now, delivered, cwnd);
        Some(sample)
    }

    /// So many octets were seen to be lost in this round.
    pub(crate) fn on_lost(&mut self, octets: u32) {
        self.round_lost += u64::from(octets);
        self.loss_events = self.loss_events.saturating_add(u32::from(octets > 0));
    }

    /// Nothing was lost in this round after all.
    pub(crate) fn forgive_round(&mut self) {
        (self.round_lost, self.loss_events) = (0, 0);
    }

    /// What is bounded now may turn out to be bounded by mistake (BBR.undo_bw_lo and its kin).
    pub(crate) fn remember_bounds(&mut self) {
        self.remembered = Some([self.bw_lo, self.inflight_lo, self.inflight_hi]);
    }

    /// It was none.
    pub(crate) fn forget_remembered(&mut self) {
        self.remembered = None;
    }

    /// It was one: the bounds are what they were.
    pub(crate) fn restore_bounds(&mut self) {
        if let Some([bw_lo, inflight_lo, inflight_hi]) = self.remembered.take() {
            self.bw_lo = self.bw_lo.max(bw_lo);
            self.inflight_lo = self.inflight_lo.max(inflight_lo);
            self.inflight_hi = self.inflight_hi.max(inflight_hi);
        }
    }

    /// A new round is counted from here.
    pub(crate) fn start_round(&mut self) {
        self.next_round_delivered = self.rate.delivered();
    }

    /// Whether of `in_flight` octets too many were lost in this round (BBRIsInflightTooHigh()).
    pub(crate) fn loses_too_much(&self, in_flight: u32) -> bool {
        self.round_lost > percent(u64::from(in_flight), LOSS_THRESH)
    }

    /// The round is over; `adapts` when its losses lower the short-term bounds
    /// (BBRAdaptLowerBoundsFromCongestion()), which while probing they do not.
    pub(crate) fn end_round(&mut self, adapts: bool, cwnd: u32) {
        if adapts && self.round_lost > 0 {
            let bw = if self.bw_lo == u64::MAX { self.max_bw() } else { self.bw_lo };
            let inflight = if self.inflight_lo == u64::MAX { u64::from(cwnd) } else { self.inflight_lo };
            self.bw_lo = self.bw_latest.max(percent(bw, BETA));
            self.inflight_lo = self.inflight_latest.max(percent(inflight, BETA));
        }
        (self.bw_latest, self.inflight_latest) = (0, 0);
        self.forgive_round();
    }

    /// BBRResetLowerBounds().
    pub(crate) fn forget_lower_bounds(&mut self) {
        (self.bw_lo, self.inflight_lo) = (u64::MAX, u64::MAX);
    }

    /// Too much was lost with `in_flight` octets in the network (BBRHandleInflightTooHigh()).
    pub(crate) fn lower_inflight_hi(&mut self, in_flight: u32) {
        self.inflight_hi = u64::from(in_flight).max(percent(self.bdp(), BETA));
    }

    /// A cycle of probing is over: bandwidth seen in the one before it is forgotten
    /// (BBRAdvanceMaxBwFilter()).
    pub(crate) fn advance_max_bw(&mut self) {
        if self.max_bw[1] > 0 {
            self.max_bw = [self.max_bw[1], 0];
        }
    }

    /// Takes a round trip; answers whether the least of late is so old that it must be looked for
    /// (BBRUpdateMinRTT()).
    pub(crate) fn update_min_rtt(&mut self, now: Instant, rtt: Duration) -> bool {
        let expired = now - self.probe_rtt_min.at > PROBE_RTT_INTERVAL;
        let known = self.probe_rtt_min.rtt != Duration::MAX;
        if rtt < self.probe_rtt_min.rtt || expired {
            self.probe_rtt_min = Least { rtt, at: now };
        }
        if self.probe_rtt_min.rtt < self.min_rtt.rtt || now - self.min_rtt.at > MIN_RTT_LASTS {
            self.min_rtt = self.probe_rtt_min;
        }
        expired && known
    }

    /// The least round trip has just been looked for.
    pub(crate) fn min_rtt_is_fresh(&mut self, now: Instant) {
        self.probe_rtt_min.at = now;
    }

    /// How much more was acknowledged than the bandwidth explains (BBRUpdateACKAggregation()).
    fn update_extra_acked(&mut self, now: Instant, delivered: u32, cwnd: u32) {
        let nanos = (now - self.epoch_start).as_nanos();
        let expected = u64::try_from(u128::from(self.bw()) * nanos / 1_000_000_000).unwrap_or(u64::MAX);
        let mut explained = expected;
        if self.epoch_delivered <= expected {
            (self.epoch_start, self.epoch_delivered, explained) = (now, 0, 0);
        }
        self.epoch_delivered += u64::from(delivered);
        if self.rounds.wrapping_sub(self.extra_since) >= EXTRA_ROUNDS {
            self.extra_acked = [self.extra_acked[1], 0];
            self.extra_since = self.rounds;
        }
        let extra = self.epoch_delivered.saturating_sub(explained).min(u64::from(cwnd));
        self.extra_acked[1] = self.extra_acked[1].max(extra);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1_000;

    const fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// What is sent at `sent` arrives at `now`.
    fn deliver(model: &mut PathModel, sent: u64, now: u64, octets: u32, lost: u32) -> Option<RateSample> {
        model.rate.on_sent(at(sent), 0, octets);
        let (now, sent_at) = (at(now), at(sent));
        let rtt = now - sent_at;
        let delivery = Delivery { now, delivered: octets, lost, sent_at, rtt, pipe: 0, mss: MSS, seed: 0 };
        model.update_min_rtt(now, rtt);
        model.on_delivery(&delivery, 100 * MSS)
    }

    #[test]
    fn the_bandwidth_is_the_best_of_two_cycles_of_probing() {
        let mut model = PathModel::new();
        deliver(&mut model, 0, 100, 50_000, 0);
        assert_eq!((model.bw(), model.bdp()), (500_000, 50_000));
        model.advance_max_bw();
        deliver(&mut model, 200, 300, 20_000, 0);
        assert_eq!(model.bw(), 500_000);
        model.advance_max_bw();
        assert_eq!(model.bw(), 200_000);
        // A cycle without a sample forgets nothing.
        model.advance_max_bw();
        model.advance_max_bw();
        assert_eq!(model.bw(), 200_000);
    }

    #[test]
    fn the_least_round_trip_is_kept_for_ten_seconds_and_looked_for_after_five() {
        let mut model = PathModel::new();
        let update = |model: &mut PathModel, secs: u64, millis| {
            let stale = model.update_min_rtt(at(secs * 1_000), Duration::from_millis(millis));
            (stale, model.min_rtt().as_millis())
        };
        assert_eq!(update(&mut model, 100, 40), (false, 40));
        assert_eq!(update(&mut model, 105, 60), (false, 40));
        assert_eq!(update(&mut model, 106, 70), (true, 40));
        assert_eq!(update(&mut model, 109, 50), (false, 40));
        assert_eq!(update(&mut model, 111, 55), (false, 50));
    }

    #[test]
    fn a_round_ends_when_what_was_sent_at_its_beginning_has_arrived() {
        let mut model = PathModel::new();
        model.rate.on_sent(at(0), 0, 3_000);
        let mut round = |now: u64, sent: u64| {
            model.rate.on_sent(at(now), 2_000, 1_000);
            let (now, sent_at, rtt) = (at(now), at(sent), Duration::from_millis(50));
            let delivery =
                Delivery { now, delivered: MSS, lost: 0, sent_at, rtt, pipe: 0, mss: MSS, seed: 0 };
            model.on_delivery(&delivery, 100 * MSS);
            model.round_start
        };
        let ends = [round(50, 0), round(51, 0), round(52, 0), round(100, 50), round(101, 51)];
        // What left at 50 left before the first acknowledgement was taken.
        assert_eq!(ends, [true, false, false, false, true]);
    }

    #[test]
    fn losses_lower_the_short_term_bounds_but_not_below_what_was_delivered() {
        let mut model = PathModel::new();
        deliver(&mut model, 0, 100, 50_000, 0);
        model.end_round(true, 100 * MSS);
        assert_eq!((model.bw(), model.inflight_lo), (500_000, u64::MAX));
        deliver(&mut model, 200, 300, 20_000, 5_000);
        model.end_round(true, 100 * MSS);
        assert_eq!((model.bw(), model.inflight_lo), (350_000, 70_000));
        deliver(&mut model, 400, 500, 30_000, 5_000);
        model.end_round(true, 100 * MSS);
        assert_eq!((model.bw(), model.inflight_lo), (300_000, 49_000));
        model.forget_lower_bounds();
        assert_eq!(model.bw(), 500_000);
    }

    #[test]
    fn too_much_is_more_than_two_in_a_hundred() {
        let mut model = PathModel::new();
        deliver(&mut model, 0, 100, 50_000, 1_000);
        assert!(!model.loses_too_much(50_000) && model.loses_too_much(49_000));
        model.lower_inflight_hi(49_000);
        assert_eq!((model.inflight_hi, model.inflight_with_headroom()), (49_000, 41_650));
    }
}
