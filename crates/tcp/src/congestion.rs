//! Congestion control behind one trait (RFC 5681 §3). A controller owns the congestion window and
//! the slow-start threshold and nothing else: which segments were lost, and what is sent when, is
//! decided by `recovery` and `transmit`.

use alloc::boxed::Box;
use core::time::Duration;

use silk_instant::Instant;

use crate::bbr::Bbr;
use crate::cubic::Cubic;
use crate::reno::Reno;
use crate::seq::SeqNumber;
use crate::train::is_near;

/// Which algorithm a connection uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// Reno (RFC 5681).
    Reno,
    /// BBR (draft-ietf-ccwg-bbr), paced.
    Bbr,
}

impl Algorithm {
    /// All of them; the place in this list is an algorithm's number.
    pub const ALL: [Self; 3] = [Self::Cubic, Self::Reno, Self::Bbr];

    /// Its name as programs know it (`TCP_CONGESTION`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::Bbr => "bbr",
        }
    }

    /// The algorithm of that number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// An acknowledgement of new data outside of loss recovery, as a controller sees it.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When it came.
    pub now: Instant,
    /// Octets newly acknowledged.
    pub bytes: u32,
    /// Octets in a full segment.
    pub mss: u32,
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// The round-trip time of the last octet acknowledged, if that was sent once.
    pub rtt: Option<Duration>,
    /// SND.UNA after it.
    pub una: SeqNumber,
    /// SND.NXT.
    pub nxt: SeqNumber,
    /// Whether the window, and not the program or the peer, limited the sender (RFC 9438 §5.8, RFC
    /// 7661).
    pub limited: bool,
}

/// What an acknowledgement says of the path, in recovery or not.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// When it came.
    pub now: Instant,
    /// Octets that have arrived, in order or not.
    pub delivered: u32,
    /// Octets that are seen to be lost.
    pub lost: u32,
    /// When the youngest text that has arrived was sent, and its round-trip time.
    pub sent_at: Instant,
    /// That round-trip time.
    pub rtt: Duration,
    /// Octets in the network after it.
    pub pipe: u32,
    /// Octets in a full segment.
    pub mss: u32,
    /// A number that differs between connections.
    pub seed: u32,
}

/// What an algorithm with a model of the path believes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Octets per second; 0 before the first measurement.
    pub bandwidth: u64,
    /// The round-trip time without queues; zero before the first measurement.
    pub min_rtt: Duration,
    /// At how many hundredths of the bandwidth it sends now.
    pub pacing_gain: u16,
    /// How many hundredths of what the path holds may be in the network.
    pub window_gain: u16,
}

/// The algorithm that sets the congestion window, in octets.
pub trait Congestion {
    /// The congestion window (cwnd).
    fn window(&self) -> u32;
    /// The slow-start threshold (ssthresh).
    fn ssthresh(&self) -> u32;
    /// New data was acknowledged.
    fn on_ack(&mut self, acked: &Acked);
    /// Fast retransmit starts: `flight` octets were outstanding. Called once per loss episode.
    fn on_loss(&mut self, flight: u32, mss: u32);
    /// A mark was echoed (RFC 3168 §6.1.2), with `flight` octets outstanding. Once in a round trip.
    fn on_mark(&mut self, flight: u32, mss: u32) {
        self.on_loss(flight, mss);
    }
    /// The retransmission timer went off. `first` when the segment had not timed out before (RFC
    /// 5681 §3.1: ssthresh is held during back-off).
    fn on_timeout(&mut self, flight: u32, mss: u32, first: bool);
    /// Sending starts again after an idle time longer than the time-out: the window falls to the
    /// initial one (RFC 5681 §4.1).
    fn on_idle(&mut self, initial: u32);

    /// Whether the algorithm has a model of the path, and so a mind of its own about losses: it is
    /// told of every delivery, and its window alone says what is sent during recovery.
    fn models_the_path(&self) -> bool {
        false
    }
    /// What it believes of the path.
    fn model(&self) -> Option<Model> {
        None
    }
    /// Octets per second at which to send; `None` for as fast as the window allows.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
    /// `octets` are sent, again or for the first time, with `pipe` others in the network.
    fn on_sent(&mut self, _now: Instant, _pipe: u32, _octets: u32) {}
    /// Neither window holds anything back, but there is nothing to send.
    fn on_app_limited(&mut self, _pipe: u32) {}
    /// An acknowledgement delivered something or showed that it was lost.
    fn on_delivery(&mut self, _delivery: &Delivery) {}

    /// Whether the window is in slow start.
    fn in_slow_start(&self) -> bool {
        self.window() < self.ssthresh()
    }
}

/// No window grows beyond what sequence arithmetic can hold.
pub(crate) const MAX_WINDOW: u32 = 1 << 30;

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
}

/// An acknowledgement for tests, at time zero and without a measured round trip.
#[cfg(test)]
pub(crate) fn acked(bytes: u32, mss: u32) -> Acked {
    let (now, srtt, nothing) = (Instant::ZERO, Duration::ZERO, SeqNumber::new(0));
    Acked { now, bytes, mss, srtt, rtt: None, una: nothing, nxt: nothing, limited: true }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for mut controller in both() {
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
    fn an_algorithm_is_found_by_its_number() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_number(algorithm.number()), Some(algorithm));
        }
        assert_eq!(Algorithm::from_number(3), None);
        assert_eq!(Algorithm::ALL.map(Algorithm::name), ["cubic", "reno", "bbr"]);
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
