//! BBR congestion control (draft-ietf-ccwg-bbr, version 3): it sends at the rate at which the path
//! delivers and keeps little more in the network than fills it, whatever is lost, as long as that is
//! not too much. What it believes is in `path_model`; here is what it does in which phase: it starts
//! up, drains the queue that made, and then cruises, now and then probing for more bandwidth and for
//! a shorter round trip. It needs pacing.

use core::time::Duration;

use silk_instant::Instant;

use crate::congestion::{Acked, Congestion, Delivery, MAX_WINDOW, Model};
use crate::path_model::{PathModel, percent};

/// BBR.StartupPacingGain, in hundredths.
const STARTUP_GAIN: u64 = 277;
/// BBR.FullBwCount: rounds without a quarter more bandwidth.
const FULL_BW_COUNT: u8 = 3;
/// BBR.StartupFullLossCnt: times in a round that something was lost.
const FULL_LOSS_COUNT: u32 = 6;
/// BBR.MinPipeCwnd in segments.
const LEAST_SEGMENTS: u64 = 4;
/// BBR.PacingMarginPercent: a little below the bandwidth, so that queues drain.
const MARGIN: u64 = 99;

/// What it is doing (§4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
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
    pub(crate) model: PathModel,
    pub(crate) phase: Phase,
    pub(crate) cwnd: u32,
    /// The initial window.
    pub(crate) initial: u32,
    /// cwnd before the phase that looks for the round trip, or before a time-out.
    pub(crate) prior_cwnd: u32,
    /// None before the first sample.
    pub(crate) pacing_rate: Option<u64>,
    /// Octets in a full segment, lately.
    pub(crate) mss: u32,
    /// BBR.full_bw and its count; `full_bw_now` and, once it was so, `full_bw_reached`.
    pub(crate) full_bw: u64,
    pub(crate) full_bw_count: u8,
    pub(crate) full_bw_now: bool,
    pub(crate) full_bw_reached: bool,
    /// When this phase of probing for bandwidth began, and how long until the next.
    pub(crate) cycle_start: Instant,
    pub(crate) probe_wait: Duration,
    pub(crate) rounds_since_probe: u64,
    /// Rounds of this ascent, and octets towards its next step.
    pub(crate) up_rounds: u32,
    pub(crate) up_credit: u64,
    /// When the look for the round trip may end.
    pub(crate) probe_rtt_done: Option<Instant>,
    pub(crate) probe_rtt_round_done: bool,
    /// Sending has started again after nothing was in the network.
    pub(crate) idle_restart: bool,
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

    pub(crate) fn least(&self) -> u64 {
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

    pub(crate) fn reset_full_bw(&mut self) {
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

    /// BBRInitPacingRate() (§4.6.2): before anything is known of the bandwidth, the initial window in
    /// a round trip is taken for it.
    fn initial_rate(&self, rtt: Duration) -> u64 {
        let nanos = rtt.max(Duration::from_micros(1)).as_nanos();
        let rate = u128::from(self.initial) * 1_000_000_000 / nanos;
        percent(u64::try_from(rate).unwrap_or(u64::MAX), STARTUP_GAIN)
    }

    /// BBRSetPacingRate() (§4.6.2): in Startup it only rises. It is a full segment in a second at least: a path
    /// that stood still for minutes has been as slow as that, and pauses of minutes, by which it would then be
    /// probed, keep nobody from harm.
    fn set_pacing_rate(&mut self, rtt: Duration) {
        let before = self.pacing_rate.unwrap_or_else(|| self.initial_rate(rtt));
        let rate = percent(percent(self.model.bw(), self.gains().0), MARGIN);
        let changes = rate > 0 && (self.full_bw_reached || rate > before);
        let rate = if changes { rate } else { before };
        self.pacing_rate = Some(rate.max(self.mss.into()));
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

    fn on_timeout(&mut self, _: u32, mss: u32, first: bool) {
        if first {
            self.model.remember_bounds();
        }
        self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
        self.cwnd = mss;
    }

    /// The model does not age by silence.
    fn on_idle(&mut self, _: u32) {}

    fn models_the_path(&self) -> bool {
        true
    }

    fn model(&self) -> Option<Model> {
        let [pacing_gain, window_gain] = <[u64; 2]>::from(self.gains()).map(|gain| gain as u16);
        Some(Model { bandwidth: self.model.bw(), min_rtt: self.model.min_rtt(), pacing_gain, window_gain })
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

    /// BBRRestoreCwnd() (§4.6.4.4); the look for the round trip does it at its own end.
    fn on_recovered(&mut self) {
        if self.phase != Phase::ProbeRtt {
            self.cwnd = self.cwnd.max(core::mem::take(&mut self.prior_cwnd));
        }
        self.model.forget_remembered();
    }

    /// BBRHandleSpuriousLossDetection(): the round lost nothing, the window is what it was, and so are the bounds that a round has
    /// set since.
    fn on_spurious(&mut self) {
        self.model.forgive_round();
        self.model.restore_bounds();
        self.on_recovered();
    }

    fn on_lost_by_timer(&mut self, octets: u32) {
        self.model.on_lost(octets);
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        self.mss = delivery.mss.max(1);
        let Some(sample) = self.model.on_delivery(delivery, self.cwnd) else { return };
        self.rounds_since_probe += u64::from(self.model.round_start);
        self.check_full_bw(sample.app_limited);
        self.check_startup(sample.in_flight);
        self.adapt_upper_bound(delivery, sample);
        self.update_cycle(delivery);
        if self.model.round_start {
            // In the middle of a repair the window says nothing of what the path takes.
            self.model.end_round(!self.is_probing(), self.cwnd.max(self.prior_cwnd));
        }
        self.look_for_min_rtt(delivery);
        self.set_pacing_rate(delivery.rtt);
        self.set_cwnd(delivery.delivered);
    }
}

#[cfg(test)]
#[path = "bbr_tests.rs"]
mod tests;
