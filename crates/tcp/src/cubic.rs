//! CUBIC congestion control (RFC 9438): after a loss the window follows a cubic in the time since,
//! so its growth does not depend on the round-trip time, and never falls behind what Reno would do.
//! Before the first loss HyStart++ looks for the end of slow start (§4.10).
//! All windows are in octets; time is the argument's.

use alloc::boxed::Box;
use core::time::Duration;

use silk_instant::Instant;

use crate::congestion::{Acked, Congestion, MAX_WINDOW};
use crate::hystart::HyStart;

/// C of RFC 9438 §5.1, in segments per second cubed.
const C: f64 = 0.4;
/// β_cubic of RFC 9438 §4.6.
const BETA: f64 = 0.7;
/// α_cubic of RFC 9438 §4.3: 3 (1 − β) / (1 + β).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Congestion avoidance since a reduction of the window, or since slow start ended by itself.
#[derive(Clone, Debug)]
struct Curve {
    /// W_max: the window before the last reduction, after fast convergence.
    w_max: f64,
    /// cwnd_prior: the window before the last reduction.
    prior: f64,
    /// W_est: the window Reno would have.
    w_est: f64,
    /// K: seconds until the cubic is back at W_max.
    k: f64,
    /// The start of this congestion-avoidance stage; `FAR` when the next acknowledgement starts
    /// one.
    epoch: Instant,
}

/// What a connection is in for good once it has left the first slow start.
#[derive(Clone, Debug)]
enum Stage {
    /// The first slow start.
    First(HyStart),
    // In a place of its own: most connections end before.
    Avoidance(Box<Curve>),
}

/// Growth along a cubic, reduction by 0.7.
#[derive(Clone, Debug)]
pub struct Cubic {
    /// cwnd; a fraction of an octet is kept so that slow growth is not rounded away.
    cwnd: f64,
    stage: Stage,
    ssthresh: u32,
}

impl Curve {
    const NEW: Self = Self { w_max: 0.0, prior: 0.0, w_est: 0.0, k: 0.0, epoch: Instant::FAR };

    /// A stage of congestion avoidance starts (RFC 9438 §4.2, equation 2).
    fn start_epoch(&mut self, now: Instant, cwnd: f64, mss: f64) {
        self.epoch = now;
        self.w_est = cwnd;
        if cwnd < self.w_max {
            self.k = cube_root((self.w_max - cwnd) / (C * mss));
        } else {
            self.k = 0.0;
            self.w_max = cwnd;
        }
    }

    /// W_cubic(t) (equation 1).
    fn at(&self, t: f64, mss: f64) -> f64 {
        let from_plateau = t - self.k;
        C * from_plateau * from_plateau * from_plateau * mss + self.w_max
    }

    /// Time in which the program was the limit is no part of t (§4.2): it starts again.
    fn forget_epoch(&mut self) {
        self.epoch = Instant::FAR;
    }

    /// The window after an acknowledgement that finds it at `cwnd`.
    // RFC 9438 §4.3, §4.4, §4.5.
    fn grow(&mut self, acked: &Acked, cwnd: f64) -> f64 {
        let mss = f64::from(acked.mss);
        if self.epoch == Instant::FAR {
            self.start_epoch(acked.now, cwnd, mss);
        }
        let bytes = f64::from(acked.bytes);
        // §4.3, equation 4: α is 1 once the window of the last reduction is reached again.
        let alpha = if self.w_est >= self.prior { 1.0 } else { ALPHA };
        self.w_est += alpha * mss * bytes / cwnd;
        let t = seconds(acked.now - self.epoch);
        if self.at(t, mss) < self.w_est {
            return cwnd.max(self.w_est);
        }
        let target = self.at(t + seconds(acked.srtt), mss).clamp(cwnd, 1.5 * cwnd);
        cwnd + (target - cwnd) * (bytes / cwnd).min(1.0)
    }
}

impl Cubic {
    /// A controller with an initial window of `initial` octets.
    pub const fn new(initial: u32) -> Self {
        Self { cwnd: initial as f64, stage: Stage::First(HyStart::new()), ssthresh: u32::MAX }
    }

    /// Bytes of memory held outside of the connection itself.
    pub(crate) fn memory(&self) -> usize {
        if let Stage::Avoidance(_) = self.stage { size_of::<Curve>() } else { 0 }
    }

    /// Takes over the threshold of the algorithm that had the connection before.
    pub(crate) fn resume(&mut self, ssthresh: u32) {
        self.ssthresh = ssthresh;
    }

    /// Nothing was acknowledged yet; the window is to be this.
    pub(crate) fn start(&mut self, initial: u32) {
        self.cwnd = f64::from(initial);
    }

    /// Nothing is outstanding yet; the window is to be this, which is known to fit. Whether it is: the first slow start
    /// may know better.
    pub(crate) fn begin(&mut self, window: u32, round_trip: Duration) -> bool {
        let Stage::First(hystart) = &mut self.stage else { return false };
        let begins = self.ssthresh == u32::MAX && hystart.spread(window, round_trip);
        if begins {
            self.start(window);
        }
        begins
    }

    /// The curve, which begins here if the first slow start has lasted until now.
    fn curve(&mut self) -> &mut Curve {
        loop {
            match self.stage {
                Stage::Avoidance(ref mut curve) => return curve,
                Stage::First(_) => self.stage = Stage::Avoidance(Box::new(Curve::NEW)),
            }
        }
    }

    /// Slow start; the first one ends when HyStart++ says so.
    // RFC 9293 MUST-19; RFC 5681 §3.1; RFC 9438 §4.10; RFC 9406 §4.3.
    fn slow_start(&mut self, acked: &Acked) {
        let window = self.window();
        let octets = match &mut self.stage {
            Stage::First(hystart) => hystart.on_ack(acked, window),
            Stage::Avoidance(_) => Some(acked.bytes),
        };
        match octets {
            Some(octets) => self.cwnd += f64::from(octets),
            None => self.ssthresh = self.window(),
        }
    }

    fn forget_epoch(&mut self) {
        if let Stage::Avoidance(curve) = &mut self.stage {
            curve.forget_epoch();
        }
    }

    /// §4.6, of the window and not of what is outstanding, and, where the flow gives room to newer ones, fast convergence (§4.7).
    /// Where the program was the limit what is outstanding says nothing of the path, and a window that was not used has not
    /// grown (in slow start: that was used by less than half).
    // RFC 9438 §4.6, §4.7.
    fn reduce(&mut self, mss: u32) {
        let cwnd = self.cwnd;
        let curve = self.curve();
        curve.w_max = if cwnd < curve.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        curve.prior = cwnd;
        curve.epoch = Instant::FAR;
        self.ssthresh = ((cwnd * BETA) as u32).max(2 * mss);
    }
}

impl Congestion for Cubic {
    fn window(&self) -> u32 {
        self.cwnd as u32
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn pacing_rate(&self) -> Option<u64> {
        match &self.stage {
            Stage::First(hystart) if self.in_slow_start() => hystart.pacing_rate(self.window()),
            _ => None,
        }
    }

    // RFC 9438 §4.2.
    fn on_ack(&mut self, acked: &Acked) {
        if !acked.limited {
            let window = self.window();
            match &mut self.stage {
                Stage::First(hystart) => hystart.on_spare_ack(acked, window),
                Stage::Avoidance(curve) => curve.forget_epoch(),
            }
            return;
        }
        if self.in_slow_start() {
            self.slow_start(acked);
        } else {
            let cwnd = self.cwnd;
            self.cwnd = self.curve().grow(acked, cwnd);
        }
        self.cwnd = self.cwnd.min(f64::from(MAX_WINDOW));
    }

    // RFC 9438 §4.6.
    fn on_loss(&mut self, _flight: u32, mss: u32) {
        self.reduce(mss);
        self.cwnd = f64::from(self.ssthresh);
    }

    /// §4.6: a mark may leave a single segment, where a loss leaves two.
    // RFC 9438 §4.6; RFC 3168 §6.1.2.
    fn on_mark(&mut self, _flight: u32, mss: u32) {
        self.reduce(mss);
        self.cwnd = (self.cwnd * BETA).max(f64::from(mss));
    }

    /// §4.8: as Reno, but ssthresh by β_cubic. What follows slow start grows from the window that this ends with.
    // RFC 9438 §4.8.
    fn on_timeout(&mut self, _flight: u32, mss: u32, first: bool) {
        if first {
            self.reduce(mss);
            self.curve().w_max = 0.0;
        }
        self.cwnd = f64::from(mss);
        self.forget_epoch();
    }

    fn on_idle(&mut self, initial: u32) {
        match &mut self.stage {
            Stage::First(hystart) if hystart.is_over() => {
                self.ssthresh = self.window();
                self.curve();
            }
            // What it found so far was of a window that is no more.
            Stage::First(hystart) => *hystart = HyStart::new(),
            Stage::Avoidance(_) => {}
        }
        self.cwnd = self.cwnd.min(f64::from(initial));
        self.forget_epoch();
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e9
}

/// The cube root of a number that is not negative, by Newton's method from an estimate in the
/// exponent; `core` has none.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    // A third of the exponent, with the bias put back: within 6 % of the root.
    let mut root = f64::from_bits(x.to_bits() / 3 + 0x2A9F_7893_0000_0000);
    for _ in 0..4 {
        root = (2.0 * root + x / (root * root)) / 3.0;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::acked;
    use crate::seq::SeqNumber;

    const MSS: u32 = 1000;

    /// Acknowledges `seconds` of a saturated path with this round-trip time.
    fn run(cubic: &mut Cubic, from: Instant, seconds: u64, rtt: Duration) -> Instant {
        let mut now = from;
        while now < from + Duration::from_secs(seconds) {
            let mut bytes = cubic.window();
            now += rtt;
            while bytes > 0 {
                let part = bytes.min(2 * MSS);
                cubic.on_ack(&Acked { now, srtt: rtt, ..acked(part, MSS) });
                bytes -= part;
            }
        }
        now
    }

    fn after_loss_at(window: u32) -> Cubic {
        let mut cubic = Cubic::new(window);
        cubic.on_loss(window, MSS);
        cubic
    }

    #[test]
    fn the_cube_root_is_exact_to_nine_digits() {
        for x in [1e-9, 0.027, 1.0, 8.0, 27.0, 1e6, 3.3e12] {
            let root = cube_root(x);
            assert!(((root * root * root - x) / x).abs() < 1e-9, "{x}: {root}");
        }
        assert_eq!(cube_root(0.0), 0.0);
    }

    // RFC 9438 §4.6.
    #[test]
    fn a_loss_leaves_seven_tenths() {
        assert_eq!(after_loss_at(100 * MSS).window(), 70 * MSS);
    }

    // RFC 9438 §4.6.
    #[test]
    fn where_little_was_outstanding_a_loss_leaves_seven_tenths_of_the_window_all_the_same() {
        let after = |reduce: fn(&mut Cubic)| {
            let mut cubic = Cubic::new(100 * MSS);
            reduce(&mut cubic);
            (cubic.window(), cubic.ssthresh())
        };
        assert_eq!(after(|cubic| cubic.on_loss(300, MSS)), (70 * MSS, 70 * MSS));
        assert_eq!(after(|cubic| cubic.on_mark(300, MSS)), (70 * MSS, 70 * MSS));
        assert_eq!(after(|cubic| cubic.on_timeout(300, MSS, true)), (MSS, 70 * MSS));
    }

    // RFC 9438 §4.4, §4.5, §5.1.
    #[test]
    fn the_window_is_back_after_k_seconds_then_probes_beyond() {
        let mut cubic = after_loss_at(100 * MSS);
        // K = cbrt(30 / 0.4) = 4.2 s.
        let now = run(&mut cubic, Instant::ZERO, 4, Duration::from_millis(100));
        let plateau = cubic.window();
        assert!((97 * MSS..=101 * MSS).contains(&plateau), "{plateau}");
        run(&mut cubic, now, 5, Duration::from_millis(100));
        assert!(cubic.window() > 125 * MSS, "{}", cubic.window());
    }

    // RFC 9438 §4.10.
    #[test]
    fn the_first_slow_start_ends_where_the_round_trip_grows() {
        let mut cubic = Cubic::new(10 * MSS);
        let mut una = SeqNumber::new(0);
        let mut millis = 50;
        while cubic.in_slow_start() {
            let (nxt, rtt) = (una + cubic.window(), Some(Duration::from_millis(millis)));
            while una.before(nxt) {
                una += MSS;
                cubic.on_ack(&Acked { una, nxt, rtt, ..acked(MSS, MSS) });
            }
            // Eighty segments fill the path; the rest of them waits.
            millis = 50 + u64::from(cubic.window() / MSS).saturating_sub(80);
        }
        assert_eq!((cubic.ssthresh(), cubic.window() / MSS), (320_750, 320));
    }

    // RFC 9438 §4.4.
    #[test]
    fn growth_is_concave_before_the_plateau() {
        let mut cubic = after_loss_at(1000 * MSS);
        let start = cubic.window();
        let now = run(&mut cubic, Instant::ZERO, 3, Duration::from_millis(100));
        let early = cubic.window() - start;
        let middle = cubic.window();
        run(&mut cubic, now, 3, Duration::from_millis(100));
        assert!(cubic.window() - middle < early);
    }

    // RFC 9438 §4.3.
    #[test]
    fn with_a_short_round_trip_it_is_no_slower_than_reno() {
        let mut cubic = after_loss_at(20 * MSS);
        let rtt = Duration::from_millis(1);
        run(&mut cubic, Instant::ZERO, 1, rtt);
        // Reno with α = 0.53 gains over 500 segments in 1000 round trips.
        assert!(cubic.window() > 500 * MSS, "{}", cubic.window());
    }

    // RFC 9438 §4.3.
    #[test]
    fn beyond_the_window_of_the_last_loss_it_gains_a_segment_in_each_round_trip() {
        let mut cubic = after_loss_at(20 * MSS);
        let rtt = Duration::from_millis(1);
        let now = run(&mut cubic, Instant::ZERO, 1, rtt);
        let before = cubic.window();
        run(&mut cubic, now, 1, rtt);
        let gained = (cubic.window() - before) / MSS;
        assert!((990..=1_001).contains(&gained), "{gained} in a thousand round trips");
    }

    // RFC 9438 §4.2.
    #[test]
    fn time_in_which_the_program_is_the_limit_opens_no_window() {
        let (mut cubic, rtt) = (after_loss_at(100 * MSS), Duration::from_millis(100));
        let now = run(&mut cubic, Instant::ZERO, 2, rtt);
        let mut paused = cubic.clone();
        let later = now + Duration::from_secs(60);
        paused.on_ack(&Acked { now: later, srtt: rtt, limited: false, ..acked(MSS, MSS) });
        run(&mut cubic, now, 1, rtt);
        run(&mut paused, later, 1, rtt);
        let (expected, found) = (cubic.window() / MSS, paused.window() / MSS);
        // No more than Reno's five segments in ten round trips.
        assert!((expected..=expected + 5).contains(&found), "{found} instead of {expected}");
    }

    // RFC 9438 §4.8.
    #[test]
    fn after_a_timeout_growth_begins_where_slow_start_ended() {
        let mut cubic = Cubic::new(100 * MSS);
        cubic.on_timeout(100 * MSS, MSS, true);
        assert_eq!((cubic.window(), cubic.ssthresh()), (MSS, 70 * MSS));
        while cubic.in_slow_start() {
            cubic.on_ack(&acked(MSS, MSS));
        }
        cubic.on_ack(&acked(MSS, MSS));
        assert_eq!((cubic.curve().w_est as u32 / MSS, cubic.window() / MSS), (70, 70));
        assert_eq!((cubic.curve().k, cubic.curve().w_max as u32 / MSS), (0.0, 70));
    }

    // RFC 9406 §4.3.
    #[test]
    fn slow_start_after_a_timeout_ends_at_the_threshold_and_not_where_the_round_trip_grows() {
        let mut cubic = Cubic::new(1_000 * MSS);
        cubic.on_timeout(1_000 * MSS, MSS, true);
        let (mut una, mut rounds) = (SeqNumber::new(0), 0);
        while cubic.in_slow_start() {
            let nxt = una + cubic.window();
            let rtt = Some(Duration::from_millis(50 + 20 * rounds));
            while una.before(nxt) && cubic.in_slow_start() {
                una += MSS;
                cubic.on_ack(&Acked { una, nxt, rtt, ..acked(MSS, MSS) });
            }
            rounds += 1;
        }
        assert_eq!((rounds, cubic.window()), (10, 700 * MSS));
    }

    // RFC 9438 §4.7.
    #[test]
    fn fast_convergence_gives_room_after_a_second_loss() {
        let mut cubic = after_loss_at(100 * MSS);
        cubic.on_loss(70 * MSS, MSS);
        assert_eq!(cubic.curve().w_max as u32, 59_500);
        assert_eq!(cubic.window(), 49 * MSS);
    }
}
