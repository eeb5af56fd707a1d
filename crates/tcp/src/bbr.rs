//! BBR congestion control (draft-ietf-ccwg-bbr, version 3): it sends at the rate at which the path
//! delivers and keeps little more in the network than fills it, whatever is lost, as long as that is
//! not too much. What it believes is in `path_model`; here is what it does in which phase: it starts
//! up, drains the queue that made, and then cruises, now and then probing for more bandwidth and for
//! a shorter round trip. It needs pacing.

use core::time::Duration;

use silk_instant::Instant;

use crate::congestion::{Acked, Congestion, Delivery, MAX_WINDOW};
use crate::path_model::{PathModel, percent};

/// BBR.StartupPacingGain, in hundredths.
const STARTUP_GAIN: u64 = 277;
/// BBR.FullBwCount: rounds without a quarter more bandwidth.
const FULL_BW_COUNT: u8 = 3;
/// BBR.StartupFullLossCnt: times in a round that something was lost.
const FULL_LOSS_COUNT: u32 = 6;
/// BBR.ProbeRTTDuration.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// A probe for bandwidth follows the last one after so many rounds, so that Reno keeps its share.
const MOST_ROUNDS: u64 = 63;
/// BBR.MinPipeCwnd in segments.
const LEAST_SEGMENTS: u64 = 4;
/// BBR.PacingMarginPercent: a little below the bandwidth, so that queues drain.
const MARGIN: u64 = 99;

/// What it is doing (§4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    ProbeDown,
    ProbeCruise,
    ProbeRefill,
    ProbeUp,
    ProbeRtt,
}

/// Model-based congestion control.
#[derive(Clone, Debug)]
pub struct Bbr {
    model: PathModel,
    phase: Phase,
    cwnd: u32,
    /// The initial window.
    initial: u32,
    /// cwnd before the phase that looks for the round trip, or before a time-out.
    prior_cwnd: u32,
    /// None before the first sample.
    pacing_rate: Option<u64>,
    /// Octets in a full segment, lately.
    mss: u32,
    /// BBR.full_bw and its count; `full_bw_now` and, once it was so, `full_bw_reached`.
    full_bw: u64,
    full_bw_count: u8,
    full_bw_now: bool,
    full_bw_reached: bool,
    /// When this phase of probing for bandwidth began, and how long until the next.
    cycle_start: Instant,
    probe_wait: Duration,
    rounds_since_probe: u64,
    /// Rounds of this ascent, and octets towards its next step.
    up_rounds: u32,
    up_credit: u64,
    /// When the look for the round trip may end.
    probe_rtt_done: Option<Instant>,
    probe_rtt_round_done: bool,
    /// Sending has started again after nothing was in the network.
    idle_restart: bool,
}

impl Bbr {
    /// A controller with an initial window of `initial` octets.
    pub const fn new(initial: u32) -> Self {
        Self {
            model: PathModel::new(),
            phase: Phase::Startup,
            cwnd: initial,
            initial,
            prior_cwnd: 0,
            pacing_rate: None,
            mss: 1,
            full_bw: 0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            cycle_start: Instant::ZERO,
            probe_wait: Duration::ZERO,
            rounds_since_probe: 0,
            up_rounds: 0,
            up_credit: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            idle_restart: false,
        }
    }

    /// Nothing was acknowledged yet; the window is to be this.
    pub(crate) fn start(&mut self, initial: u32) {
        (self.cwnd, self.initial) = (initial, initial);
    }

    /// Bytes of memory held outside of the controller itself.
    pub(crate) fn memory(&self) -> usize {
        self.model.rate.memory()
    }

    const fn gains(&self) -> (u64, u64) {
        match self.phase {
            Phase::Startup => (STARTUP_GAIN, 200),
            Phase::Drain => (50, 200),
            Phase::ProbeDown => (90, 200),
            Phase::ProbeCruise | Phase::ProbeRefill => (100, 200),
            Phase::ProbeUp => (125, 225),
            Phase::ProbeRtt => (100, 50),
        }
    }

    /// Whether losses are expected, because more is sent than the path was seen to carry.
    const fn is_probing(&self) -> bool {
        matches!(self.phase, Phase::Startup | Phase::ProbeRefill | Phase::ProbeUp)
    }

    fn least(&self) -> u64 {
        LEAST_SEGMENTS * u64::from(self.mss)
    }

    /// BBRCheckFullBWReached() (§4.3.1.2).
    fn check_full_bw(&mut self, app_limited: bool) {
        if self.full_bw_now || !self.model.round_start || app_limited {
            return;
        }
        if self.model.max_bw() >= percent(self.full_bw, 125) {
            (self.full_bw, self.full_bw_count) = (self.model.max_bw(), 0);
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_COUNT;
        self.full_bw_reached |= self.full_bw_now;
    }

    fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (0, 0, false);
    }

    /// BBRCheckStartupDone() (§4.3.1): the bandwidth is found, or too much is lost.
    fn check_startup(&mut self, in_flight: u32) {
        if self.phase != Phase::Startup {
            return;
        }
        if self.model.loss_events >= FULL_LOSS_COUNT && self.model.loses_too_much(in_flight) {
            self.full_bw_reached = true;
            self.model.inflight_hi = self.model.bdp().max(self.model.inflight_latest);
        }
        if self.full_bw_reached {
            self.phase = Phase::Drain;
        }
    }

    /// BBRUpdateProbeBWCyclePhase() (§4.3.3.6), and the end of Drain.
    fn update_cycle(&mut self, delivery: &Delivery) {
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

    /// BBRAdaptUpperBounds() (§4.5.6.2).
    fn adapt_upper_bound(&mut self, delivery: &Delivery, in_flight: u32) {
        if self.model.loses_too_much(in_flight) {
            if matches!(self.phase, Phase::ProbeRefill | Phase::ProbeUp) {
                self.model.lower_inflight_hi(in_flight);
                self.start_down(delivery);
            }
            return;
        }
        if self.model.inflight_hi == u64::MAX {
            return;
        }
        self.model.inflight_hi = self.model.inflight_hi.max(u64::from(in_flight));
        if self.phase == Phase::ProbeUp && u64::from(self.cwnd) >= self.model.inflight_hi {
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
    fn look_for_min_rtt(&mut self, delivery: &Delivery) {
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

    fn probe_rtt_cwnd(&self) -> u64 {
        percent(self.model.bdp(), 50).max(self.least())
    }

    /// BBRSetPacingRate() (§4.6.2): in Startup it only rises.
    fn set_pacing_rate(&mut self) {
        let rate = percent(percent(self.model.bw(), self.gains().0), MARGIN);
        if rate > 0 && (self.full_bw_reached || rate > self.pacing_rate.unwrap_or(0)) {
            self.pacing_rate = Some(rate);
        }
    }

    /// BBRSetCwnd() (§4.6.4).
    fn set_cwnd(&mut self, delivered: u32) {
        let (model, least) = (&self.model, self.least());
        let portion = self.pacing_rate.unwrap_or(0) / 1_000;
        let gained = percent(model.bdp(), self.gains().1);
        let most = gained.saturating_add(model.extra_acked()).saturating_add(3 * portion);
        let grown = u64::from(self.cwnd) + u64::from(delivered);
        let mut cwnd = if self.full_bw_reached {
            grown.min(most.max(least))
        } else if u64::from(self.cwnd) < most || model.rate.delivered() < self.initial.into() {
            grown
        } else {
            self.cwnd.into()
        };
        cwnd = match self.phase {
            Phase::ProbeRtt => cwnd.min(self.probe_rtt_cwnd()).min(model.inflight_with_headroom()),
            Phase::ProbeCruise => cwnd.min(model.inflight_with_headroom()),
            Phase::Startup | Phase::Drain => cwnd,
            _ => cwnd.min(model.inflight_hi),
        };
        cwnd = cwnd.min(model.inflight_lo).max(least);
        self.cwnd = u32::try_from(cwnd).unwrap_or(MAX_WINDOW).min(MAX_WINDOW);
    }
}

impl Congestion for Bbr {
    fn window(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        u32::MAX
    }

    fn on_ack(&mut self, _: &Acked) {}

    /// A loss by itself means nothing; how much is lost in a round does.
    fn on_loss(&mut self, _: u32, _: u32) {}

    fn on_timeout(&mut self, _: u32, mss: u32, _: bool) {
        self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
        self.cwnd = mss;
    }

    /// The model does not age by silence.
    fn on_idle(&mut self, _: u32) {}

    fn models_the_path(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.pacing_rate
    }

    fn on_sent(&mut self, now: Instant, pipe: u32, octets: u32) {
        self.idle_restart |= pipe == 0;
        self.model.rate.on_sent(now, pipe, octets);
    }

    fn on_app_limited(&mut self, pipe: u32) {
        self.model.rate.on_app_limited(pipe);
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        self.mss = delivery.mss.max(1);
        let Some(sample) = self.model.on_delivery(delivery, self.cwnd) else { return };
        self.rounds_since_probe += u64::from(self.model.round_start);
        self.check_full_bw(sample.app_limited);
        self.check_startup(sample.in_flight);
        self.adapt_upper_bound(delivery, sample.in_flight);
        self.update_cycle(delivery);
        if self.model.round_start {
            self.model.end_round(!self.is_probing(), self.cwnd);
        }
        self.look_for_min_rtt(delivery);
        self.set_pacing_rate();
        self.set_cwnd(delivery.delivered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1_000;
    const RTT: Duration = Duration::from_millis(100);

    /// A path that delivers ten segments in each round trip of 100 ms, and says what it lost.
    struct Rounds {
        bbr: Bbr,
        now: Instant,
    }

    impl Rounds {
        fn new() -> Self {
            Self { bbr: Bbr::new(10 * MSS), now: Instant::from_millis(1_000) }
        }

        /// Sends and delivers ten segments; answers the phase after that.
        fn round(&mut self, rtt: Duration, lost: u32) -> Phase {
            let sent_at = self.now;
            self.bbr.on_sent(sent_at, 0, 10 * MSS);
            self.now += rtt;
            let delivery = Delivery {
                now: self.now,
                delivered: 10 * MSS,
                lost,
                sent_at,
                rtt,
                pipe: 0,
                mss: MSS,
                seed: 7,
            };
            self.bbr.on_delivery(&delivery);
            self.bbr.phase
        }
    }

    #[test]
    fn it_is_not_paced_before_the_first_sample_and_then_well_above_it() {
        let mut rounds = Rounds::new();
        assert_eq!(rounds.bbr.pacing_rate(), None);
        rounds.round(RTT, 0);
        // 100 000 octets per second, times 2.77, less one in a hundred.
        assert_eq!((rounds.bbr.pacing_rate(), rounds.bbr.window()), (Some(274_230), 20_000));
    }

    #[test]
    fn three_rounds_without_a_quarter_more_bandwidth_end_the_startup() {
        let mut rounds = Rounds::new();
        let phases: alloc::vec::Vec<_> = (0..5).map(|_| rounds.round(RTT, 0)).collect();
        // With nothing in the network the queue is drained at once.
        let drained = Phase::ProbeDown;
        let cruising = Phase::ProbeCruise;
        assert_eq!(phases, [Phase::Startup, Phase::Startup, Phase::Startup, drained, cruising]);
        assert_eq!(rounds.bbr.pacing_rate(), Some(99_000));
    }

    #[test]
    fn a_probe_for_bandwidth_follows_and_ends() {
        let mut rounds = Rounds::new();
        let mut seen = alloc::vec![];
        for _ in 0..40 {
            let phase = rounds.round(RTT, 0);
            if seen.last() != Some(&phase) {
                seen.push(phase);
            }
        }
        let cycle = [Phase::ProbeCruise, Phase::ProbeRefill, Phase::ProbeUp, Phase::ProbeDown];
        assert_eq!(seen[..2], [Phase::Startup, Phase::ProbeDown]);
        assert_eq!(seen[2..6], cycle);
    }

    #[test]
    fn the_round_trip_is_looked_for_when_it_was_not_seen_for_five_seconds() {
        let mut rounds = Rounds::new();
        rounds.round(RTT, 0);
        let mut delivery = Delivery {
            now: rounds.now + Duration::from_secs(6),
            delivered: MSS,
            lost: 0,
            sent_at: rounds.now,
            rtt: 2 * RTT,
            pipe: 9 * MSS,
            mss: MSS,
            seed: 7,
        };
        rounds.bbr.on_delivery(&delivery);
        assert_eq!((rounds.bbr.phase, rounds.bbr.window()), (Phase::ProbeRtt, 5_000));
        // Once little is in the network it stays so for 200 ms and a round.
        delivery.pipe = 2 * MSS;
        for millis in [0, 100, 201] {
            delivery.now += Duration::from_millis(millis);
            rounds.bbr.on_sent(delivery.now, 2 * MSS, MSS);
            delivery.sent_at = delivery.now;
            rounds.bbr.on_delivery(&delivery);
        }
        assert_ne!(rounds.bbr.phase, Phase::ProbeRtt);
        assert!(rounds.bbr.window() >= 20_000, "{}", rounds.bbr.window());
    }

    #[test]
    fn losses_while_cruising_lower_the_window_until_the_next_probe() {
        let mut rounds = Rounds::new();
        while rounds.round(RTT, 0) != Phase::ProbeCruise {}
        let before = rounds.bbr.window();
        rounds.round(RTT, 2 * MSS);
        let after = rounds.bbr.window();
        assert!(after < before && after >= 10 * MSS, "{before}, then {after}");
        while rounds.round(RTT, 0) != Phase::ProbeRefill {}
        assert!(rounds.bbr.window() > after);
    }

    #[test]
    fn a_time_out_leaves_one_segment_and_forgets_nothing() {
        let mut rounds = Rounds::new();
        (0..5).for_each(|_| _ = rounds.round(RTT, 0));
        let before = rounds.bbr.window();
        rounds.bbr.on_timeout(10 * MSS, MSS, true);
        assert_eq!(rounds.bbr.window(), MSS);
        (0..3).for_each(|_| _ = rounds.round(RTT, 0));
        assert_eq!(rounds.bbr.window(), before);
    }
}
