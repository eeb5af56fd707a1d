//! Pacing: where the congestion controller, or the program (SO_MAX_PACING_RATE), gives a rate, text
//! leaves in portions with pauses between them. The pause is a deadline like others:
//! `poll_transmit` has no text before it and `poll_timeout` says when it is. What the controller
//! must know of each transmission and of each delivery is told from here, too.

use core::time::Duration;

use silk_instant::Instant;

use crate::congestion::{Congestion, Delivery};
use crate::connection::Connection;
use crate::flight::Outstanding;
use crate::timers::Timer;

/// A portion lasts so long at the rate: timers need not be finer.
const PORTION: Duration = Duration::from_millis(1);

impl Connection {
    /// Octets per second that may leave, if there is a limit.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        let most = self.limits.max_pacing_rate();
        match self.congestion.pacing_rate() {
            Some(rate) => Some(most.map_or(rate, |most| rate.min(most))),
            None => most,
        }
    }

    /// The most octets that may leave at once; `None` while text must wait.
    pub(crate) fn portion_at_once(&self, now: Instant, mss: u32) -> Option<u32> {
        let Some(rate) = self.pacing_rate() else { return Some(u32::MAX) };
        if self.timers.is_armed_beyond(Timer::Pacing, now) {
            return None;
        }
        let octets = rate.saturating_mul(PORTION.as_nanos() as u64) / 1_000_000_000;
        let segments = u32::try_from(octets).unwrap_or(u32::MAX) / mss;
        Some(segments.max(2).saturating_mul(mss))
    }

    /// Octets of text leave now.
    pub(crate) fn pace(&mut self, now: Instant, out: Outstanding, octets: u32) {
        if self.congestion.models_the_path() {
            self.congestion.on_sent(now, self.recovery.pipe(out), octets);
        }
        if let Some(rate) = self.pacing_rate() {
            let nanos = u64::from(octets) * 1_000_000_000 / rate.max(1);
            // What a time-out sends again has not waited for what was sent before.
            self.timers.put_off(Timer::Pacing, now, Duration::from_nanos(nanos));
        }
    }

    /// Tells a controller that models the path what an acknowledgement has delivered: SND.UNA moved
    /// by `octets`, and the peer had `held` before, and `lost` octets had been lost. Answers how much
    /// that is.
    pub(crate) fn tell_delivery(&mut self, now: Instant, octets: u32, held: u32, lost: u32) -> u32 {
        let out = self.outstanding();
        let delivered = (octets + self.recovery.held(out)).saturating_sub(held);
        self.note_delivered(now, delivered);
        if !self.congestion.models_the_path() {
            return delivered;
        }
        let lost = self.recovery.lost_ever().wrapping_sub(lost);
        if delivered > 0 || lost > 0 {
            let (sent_at, rtt) = self.recovery.youngest();
            let (pipe, mss, seed) = (self.recovery.pipe(out), out.mss, out.nxt.raw());
            self.congestion.on_delivery(&Delivery { now, delivered, lost, sent_at, rtt, pipe, mss, seed });
        }
        delivered
    }

    /// A timer has looked for losses, and `lost` octets had been lost before: what it found comes between two
    /// acknowledgements, of which each tells its own only.
    pub(crate) fn tell_lost(&mut self, lost: u32) {
        self.congestion.on_lost_by_timer(self.recovery.lost_ever().wrapping_sub(lost));
    }

    /// There is nothing to send: rate samples say little of the path until it is over.
    pub(crate) fn note_app_limited(&mut self) {
        let pipe = self.recovery.pipe(self.outstanding());
        if pipe < self.congestion.window() {
            self.congestion.on_app_limited(pipe);
        }
    }

    /// The congestion window's say in what may be sent. It has room for a segment at least, also when
    /// the path came to take larger ones (RFC 5681 §3.1): with less the connection would stand still.
    pub(crate) fn congestion_budget(&self, out: Outstanding) -> u32 {
        let window = self.congestion.window().max(out.mss);
        if self.congestion.models_the_path() {
            return window.saturating_sub(self.recovery.pipe(out));
        }
        self.recovery.budget(window, out)
    }
}
