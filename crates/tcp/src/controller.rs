//! The congestion control of one connection: one of the algorithms, which can be changed for another while it runs.

use alloc::boxed::Box;
use core::time::Duration;

use silk_instant::Instant;

use crate::bbr::Bbr;
use crate::congestion::{Acked, Algorithm, Congestion, Delivery, Model};
use crate::cubic::Cubic;
use crate::reno::Reno;
use crate::train::is_near;

/// A connection's controller.
#[derive(Clone, Debug)]
pub(crate) enum Controller {
    Cubic(Cubic),
    Reno(Reno),
    Bbr(Box<Bbr>),
}

impl Controller {
    pub(crate) fn new(algorithm: Algorithm, initial: u32) -> Self {
        match algorithm {
            Algorithm::Cubic => Self::Cubic(Cubic::new(initial)),
            Algorithm::Reno => Self::Reno(Reno::new(initial)),
            Algorithm::Bbr => Self::Bbr(Box::new(Bbr::new(initial))),
        }
    }

    /// Which algorithm it is.
    pub(crate) const fn algorithm(&self) -> Algorithm {
        match self {
            Self::Cubic(_) => Algorithm::Cubic,
            Self::Reno(_) => Algorithm::Reno,
            Self::Bbr(_) => Algorithm::Bbr,
        }
    }

    /// Another algorithm goes on with the window and the threshold of this one: what they say of
    /// the path is as true for it.
    pub(crate) fn change(&mut self, algorithm: Algorithm) {
        if self.algorithm() == algorithm {
            return;
        }
        let (window, ssthresh) = (self.window(), self.ssthresh());
        *self = Self::new(algorithm, window);
        match self {
            Self::Cubic(cubic) => cubic.resume(ssthresh),
            Self::Reno(reno) => reno.resume(ssthresh),
            // It has no threshold; what it needs to know it measures.
            Self::Bbr(_) => {}
        }
    }

    /// Bytes of memory held outside of the connection itself.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Cubic(cubic) => cubic.memory(),
            Self::Reno(_) => 0,
            Self::Bbr(bbr) => size_of::<Bbr>() + bbr.memory(),
        }
    }

    /// Starts with another initial window, once the handshake has told its size.
    pub(crate) fn start(&mut self, initial: u32) {
        match self {
            Self::Cubic(cubic) => cubic.start(initial),
            Self::Reno(reno) => reno.start(initial),
            Self::Bbr(bbr) => bbr.start(initial),
        }
    }

    /// Begins, or begins again, with a window that is known to fit, over a path with this round trip: a far one gets it
    /// spread over the round trip. Whether the algorithm does.
    pub(crate) fn begin(&mut self, window: u32, round_trip: Duration) -> bool {
        match self {
            Self::Cubic(cubic) => cubic.begin(window, round_trip),
            Self::Reno(reno) if is_near(round_trip) && reno.ssthresh() == u32::MAX => {
                reno.start(window);
                true
            }
            // BBR finds out by itself, from what a small window does to the path.
            Self::Reno(_) | Self::Bbr(_) => false,
        }
    }

    fn inner(&self) -> &dyn Congestion {
        match self {
            Self::Cubic(cubic) => cubic,
            Self::Reno(reno) => reno,
            Self::Bbr(bbr) => &**bbr,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Congestion {
        match self {
            Self::Cubic(cubic) => cubic,
            Self::Reno(reno) => reno,
            Self::Bbr(bbr) => &mut **bbr,
        }
    }
}

impl Congestion for Controller {
    fn window(&self) -> u32 {
        self.inner().window()
    }
    fn ssthresh(&self) -> u32 {
        self.inner().ssthresh()
    }
    fn on_ack(&mut self, acked: &Acked) {
        self.inner_mut().on_ack(acked);
    }
    fn on_loss(&mut self, flight: u32, mss: u32) {
        self.inner_mut().on_loss(flight, mss);
    }
    fn on_mark(&mut self, flight: u32, mss: u32) {
        self.inner_mut().on_mark(flight, mss);
    }
    fn on_timeout(&mut self, flight: u32, mss: u32, first: bool) {
        self.inner_mut().on_timeout(flight, mss, first);
    }
    fn on_idle(&mut self, initial: u32) {
        self.inner_mut().on_idle(initial);
    }
    fn models_the_path(&self) -> bool {
        matches!(self, Self::Bbr(_))
    }
    fn model(&self) -> Option<Model> {
        self.inner().model()
    }
    fn pacing_rate(&self) -> Option<u64> {
        self.inner().pacing_rate()
    }
    fn on_sent(&mut self, now: Instant, pipe: u32, octets: u32) {
        self.inner_mut().on_sent(now, pipe, octets);
    }
    fn on_app_limited(&mut self, pipe: u32) {
        self.inner_mut().on_app_limited(pipe);
    }
    fn on_delivery(&mut self, delivery: &Delivery) {
        self.inner_mut().on_delivery(delivery);
    }
    fn on_recovered(&mut self) {
        self.inner_mut().on_recovered();
    }
    fn on_spurious(&mut self) {
        self.inner_mut().on_spurious();
    }
    fn on_lost_by_timer(&mut self, octets: u32) {
        self.inner_mut().on_lost_by_timer(octets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::acked;

    const MSS: u32 = 1000;

    fn both() -> [Controller; 2] {
        [Algorithm::Cubic, Algorithm::Reno].map(|algorithm| Controller::new(algorithm, 10 * MSS))
    }

    fn ack(bytes: u32) -> Acked {
        Acked { srtt: Duration::from_millis(10), ..acked(bytes, MSS) }
    }

    // RFC 9293 MUST-19; RFC 5681 §3.1.
    #[test]
    fn slow_start_grows_by_what_was_acknowledged() {
        for mut controller in both() {
            controller.on_ack(&ack(2 * MSS));
            assert_eq!(controller.window(), 12 * MSS);
        }
    }

    #[test]
    fn one_acknowledgement_of_a_whole_window_doubles_it() {
        for mut controller in both() {
            controller.on_ack(&ack(10 * MSS));
            assert_eq!(controller.window(), 20 * MSS);
        }
    }

    #[test]
    fn an_application_limited_sender_does_not_grow() {
        for mut controller in both() {
            controller.on_ack(&Acked { limited: false, ..ack(MSS) });
            assert_eq!(controller.window(), 10 * MSS);
        }
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_holds_ssthresh_during_back_off() {
        for mut controller in both() {
            controller.on_timeout(10 * MSS, MSS, true);
            let ssthresh = controller.ssthresh();
            assert_eq!(controller.window(), MSS);
            assert!((5 * MSS..=7 * MSS).contains(&ssthresh));
            controller.on_timeout(MSS, MSS, false);
            assert_eq!((controller.window(), controller.ssthresh()), (MSS, ssthresh));
        }
    }

    #[test]
    fn ssthresh_is_never_below_two_segments() {
        for mut controller in [Algorithm::Cubic, Algorithm::Reno].map(|which| Controller::new(which, MSS)) {
            controller.on_loss(MSS, MSS);
            assert_eq!((controller.window(), controller.ssthresh()), (2 * MSS, 2 * MSS));
        }
    }

    #[test]
    fn another_algorithm_goes_on_with_window_and_threshold() {
        for mut controller in both() {
            controller.on_loss(20 * MSS, MSS);
            let known = (controller.window(), controller.ssthresh());
            for algorithm in [Algorithm::Reno, Algorithm::Cubic] {
                controller.change(algorithm);
                assert_eq!(
                    (controller.algorithm(), controller.window(), controller.ssthresh()),
                    (algorithm, known.0, known.1)
                );
            }
            controller.change(Algorithm::Bbr);
            assert_eq!((controller.algorithm(), controller.window()), (Algorithm::Bbr, known.0));
        }
    }

    #[test]
    fn idleness_only_shrinks_the_window() {
        for mut controller in both() {
            controller.on_idle(20 * MSS);
            assert_eq!(controller.window(), 10 * MSS);
            controller.on_idle(4 * MSS);
            assert_eq!(controller.window(), 4 * MSS);
        }
    }
}
