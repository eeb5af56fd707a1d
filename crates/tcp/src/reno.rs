//! Reno congestion control (RFC 5681 §3.1) with appropriate byte counting (RFC 3465) without its
//! limit in slow start, for the reason that `hystart` tells. Kept as the
//! simplest complete controller and as the yardstick for CUBIC.

use crate::congestion::{Acked, Congestion, MAX_WINDOW};

/// Additive increase, multiplicative decrease by half.
#[derive(Clone, Debug)]
pub struct Reno {
    cwnd: u32,
    ssthresh: u32,
    /// Octets acknowledged since the window last grew in congestion avoidance.
    counted: u32,
}

impl Reno {
    /// A controller with an initial window of `initial` octets.
    pub const fn new(initial: u32) -> Self {
        Self { cwnd: initial, ssthresh: u32::MAX, counted: 0 }
    }

    /// Takes over the threshold of the algorithm that had the connection before.
    pub(crate) fn resume(&mut self, ssthresh: u32) {
        self.ssthresh = ssthresh;
    }

    /// Nothing was acknowledged yet; the window is to be this.
    pub(crate) fn start(&mut self, initial: u32) {
        self.cwnd = initial;
    }

    /// One segment more for each window of acknowledged octets (RFC 5681 §3.1, RFC 3465 §2.1).
    fn avoid_congestion(&mut self, acked: &Acked) {
        self.counted = self.counted.saturating_add(acked.bytes);
        if self.counted >= self.cwnd {
            self.counted -= self.cwnd;
            self.cwnd = self.cwnd.saturating_add(acked.mss).min(MAX_WINDOW);
        }
    }

    /// Equation 4 of RFC 5681: half the flight, at least two segments.
    fn reduce(&mut self, flight: u32, mss: u32) {
        self.ssthresh = (flight / 2).max(2 * mss);
        self.counted = 0;
    }
}

impl Congestion for Reno {
    fn window(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    // RFC 9293 MUST-19; RFC 5681 §3.1.
    fn on_ack(&mut self, acked: &Acked) {
        if !acked.limited {
            return;
        }
        if self.in_slow_start() {
            self.cwnd = self.cwnd.saturating_add(acked.bytes).min(MAX_WINDOW);
        } else {
            self.avoid_congestion(acked);
        }
    }

    fn on_loss(&mut self, flight: u32, mss: u32) {
        self.reduce(flight, mss);
        self.cwnd = self.ssthresh;
    }

    /// A mark may leave a single segment, where a loss leaves two.
    // RFC 3168 §6.1.2.
    fn on_mark(&mut self, flight: u32, mss: u32) {
        self.reduce(flight, mss);
        self.cwnd = (flight / 2).max(mss);
    }

    fn on_timeout(&mut self, flight: u32, mss: u32, first: bool) {
        if first {
            self.reduce(flight, mss);
        }
        self.cwnd = mss;
    }

    fn on_idle(&mut self, initial: u32) {
        self.cwnd = self.cwnd.min(initial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::acked;

    const MSS: u32 = 1000;

    // RFC 9293 MUST-19; RFC 5681 §3.1.
    #[test]
    fn congestion_avoidance_adds_one_segment_per_window() {
        let mut reno = Reno::new(20 * MSS);
        reno.on_loss(20 * MSS, MSS);
        assert_eq!(reno.window(), 10 * MSS);
        (0..10).for_each(|_| reno.on_ack(&acked(MSS, MSS)));
        assert_eq!(reno.window(), 11 * MSS);
        (0..11).for_each(|_| reno.on_ack(&acked(MSS, MSS)));
        assert_eq!(reno.window(), 12 * MSS);
    }
}
