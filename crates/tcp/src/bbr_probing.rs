//! BBR's probing (draft-ietf-ccwg-bbr §4.3.3 and §4.3.4): now and then for more bandwidth, by filling
//! the pipe and then a little more, until it gives no more or too much is lost; and for a shorter
//! round trip, by leaving the pipe half empty for a moment.

use core::time::Duration;

use silk_instant::Instant;

use crate::bbr::{Bbr, Phase};
use crate::congestion::Delivery;
use crate::path_model::percent;
use crate::rate::RateSample;

/// BBR.ProbeRTTDuration.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// A probe for bandwidth follows the last one after so many rounds, so that Reno keeps its share.
const MOST_ROUNDS: u64 = 63;

impl Bbr {
    /// BBRUpdateProbeBWCyclePhase() (§4.3.3.6), and the end of Drain.
    pub(crate) fn update_cycle(&mut self, delivery: &Delivery) {
        let (now, pipe) = (delivery.now, u64::from(delivery.pipe));
        match self.phase {
            Phase::Drain if pipe <= self.model.bdp() => self.start_down(delivery),
            Phase::ProbeDown if self.is_time_to_probe(now) => self.start_refill(),
            Phase::ProbeDown if pipe <= self.model.bdp().min(self.model.inflight_with_headroom()) => {
                self.phase = Phase::ProbeCruise;
            }
            Phase::ProbeCruise if self.is_time_to_probe(now) => self.start_refill(),
            Phase::ProbeRefill if self.model.round_start => self.start_up(now),
            Phase::ProbeUp if self.full_bw_now => self.start_down(delivery),
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        let segments = self.model.bdp() / u64::from(self.mss.max(1));
        now - self.cycle_start > self.probe_wait || self.rounds_since_probe >= segments.min(MOST_ROUNDS)
    }

    /// Whether the window was full until now, and is as large as the upper bound lets it be. Near by up to a third of it
    /// stands open until that is worth a transmission.
    fn is_held_by_upper_bound(&self, delivery: &Delivery) -> bool {
        let Delivery { delivered, lost, pipe, mss, .. } = *delivery;
        let in_network = [delivered, lost, mss].into_iter().fold(pipe, u32::saturating_add);
        in_network > self.cwnd - self.cwnd / 3 && u64::from(self.cwnd) >= self.model.inflight_hi
    }

    /// The wait is of two to three seconds, unlike other flows'. What is random in it is the
    /// connection's numbers.
    fn start_down(&mut self, delivery: &Delivery) {
        let random = delivery.seed.wrapping_mul(0x9E37_79B9) >> 16;
        self.probe_wait = Duration::from_millis(2_000 + u64::from(random % 1_000));
        self.rounds_since_probe = u64::from(random & 1);
        self.cycle_start = delivery.now;
        self.phase = Phase::ProbeDown;
        self.model.advance_max_bw();
    }

    fn start_refill(&mut self) {
        self.model.forget_lower_bounds();
        self.model.start_round();
        (self.up_rounds, self.up_credit) = (0, 0);
        self.phase = Phase::ProbeRefill;
    }

    fn start_up(&mut self, now: Instant) {
        self.reset_full_bw();
        self.full_bw = self.model.max_bw();
        self.cycle_start = now;
        self.phase = Phase::ProbeUp;
    }

    /// BBRAdaptUpperBounds() (§4.5.6.2), and BBRIsTimeToGoDown(): while it is the bound that holds the flow back, which the
    /// ascent moves, the bandwidth was not seen to be all that there is.
    pub(crate) fn adapt_upper_bound(&mut self, delivery: &Delivery, sample: RateSample) {
        let RateSample { in_flight, rate, app_limited, .. } = sample;
        if self.model.loses_too_much(in_flight) {
            if matches!(self.phase, Phase::ProbeRefill | Phase::ProbeUp) {
                // What of a little was lost says nothing of how much the path takes.
                if !app_limited {
                    self.model.lower_inflight_hi(in_flight);
                }
                self.start_down(delivery);
            }
            return;
        }
        if self.model.inflight_hi == u64::MAX {
            return;
        }
        self.model.inflight_hi = self.model.inflight_hi.max(u64::from(in_flight));
        if self.phase == Phase::ProbeUp && self.is_held_by_upper_bound(delivery) {
            self.reset_full_bw();
            self.full_bw = rate;
            self.ascend(delivery.delivered);
        }
    }

    /// BBRProbeInflightHiUpward(): one segment in the first round, then two, four, …
    fn ascend(&mut self, delivered: u32) {
        self.up_rounds += u32::from(self.model.round_start && self.up_rounds < 30);
        let step = (u64::from(self.cwnd) >> self.up_rounds).max(self.mss.into()).max(1);
        self.up_credit += u64::from(delivered);
        let steps = self.up_credit / step * u64::from(self.mss);
        self.model.inflight_hi = self.model.inflight_hi.saturating_add(steps);
        self.up_credit %= step;
    }

    /// BBRUpdateMinRTT() and BBRCheckProbeRTT() (§4.3.4).
    pub(crate) fn look_for_min_rtt(&mut self, delivery: &Delivery) {
        let expired = self.model.update_min_rtt(delivery.now, delivery.rtt);
        if expired && self.phase != Phase::ProbeRtt && !self.idle_restart {
            self.prior_cwnd = self.cwnd.max(self.prior_cwnd);
            self.phase = Phase::ProbeRtt;
            self.probe_rtt_done = None;
        }
        if self.phase == Phase::ProbeRtt {
            self.model.rate.on_app_limited(delivery.pipe);
            self.wait_for_min_rtt(delivery);
        }
        self.idle_restart = false;
    }

    fn wait_for_min_rtt(&mut self, delivery: &Delivery) {
        match self.probe_rtt_done {
            None if u64::from(delivery.pipe) <= self.probe_rtt_cwnd() => {
                self.probe_rtt_done = Some(delivery.now + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                self.model.start_round();
            }
            None => {}
            Some(done) => {
                self.probe_rtt_round_done |= self.model.round_start;
                if self.probe_rtt_round_done && delivery.now > done {
                    self.leave_probe_rtt(delivery);
                }
            }
        }
    }

    fn leave_probe_rtt(&mut self, delivery: &Delivery) {
        self.model.min_rtt_is_fresh(delivery.now);
        self.cwnd = self.cwnd.max(core::mem::take(&mut self.prior_cwnd));
        self.model.forget_lower_bounds();
        if self.full_bw_reached {
            self.start_down(delivery);
            self.phase = Phase::ProbeCruise;
        } else {
            self.phase = Phase::Startup;
        }
    }

    pub(crate) fn probe_rtt_cwnd(&self) -> u64 {
        percent(self.model.bdp(), 50).max(self.least())
    }
}
