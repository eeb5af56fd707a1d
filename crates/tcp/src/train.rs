//! What the first slow start can read off trains of acknowledgements: the rate of the bottleneck.
//! Segments that leave together are spread by the slowest link, and their acknowledgements come back
//! with the same gaps (J. Hoe, "Improving the Start-up Behavior of a Congestion Control Scheme for
//! TCP", SIGCOMM 1996; the trains are those of HyStart, S. Ha and I. Rhee, "Taming the elephants",
//! 2011).
//!
//! Where two rounds have trains of the same rate although the window has doubled between them, that is
//! the path's. (What only delays stretch doubles its rate with the window.) From then on slow start is
//! paced an eighth above it, so that a doubled window fills no queue; a path that has more to give
//! shows a faster train, and is believed no longer. When it shows none, slow start is over as soon as
//! the window is an eighth more than fits on the path: enough that a loss that comes by chance leaves
//! the path busy, and less than most queues hold. What the window then allows is still sent at that
//! rate, in one more round.

use core::time::Duration;

use silk_instant::Instant;

/// Round trips below it, in µs, say more of how hosts take turns than of the path.
const NEAR: u32 = 4_000;
/// So many acknowledgements are needed behind the first.
const LEAST_ACKS: u8 = 4;
/// A train takes this part of the round trip at least, and a pause of as much ends it.
const PART: u32 = 16;
/// The pace above the rate that is known, in thousandths of it: so much faster a path would show itself to be.
const GAIN: u64 = 1_125;

/// Whether a path's round trip is so short that nothing is paced.
pub(crate) fn is_near(round_trip: Duration) -> bool {
    round_trip < Duration::from_micros(NEAR as u64)
}

/// Octets that leave in each millisecond where so many leave in a round trip.
fn in_a_millisecond(octets: u32, round_trip: Duration) -> u32 {
    let millis = round_trip.as_millis().max(1) as u64;
    u32::try_from(u64::from(octets) / millis).unwrap_or(u32::MAX)
}

/// The watch over trains of acknowledgements. Times are in µs and wrap, rates in octets per ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Train {
    first: u32,
    last: u32,
    /// Acknowledged behind the first.
    octets: u32,
    acks: u8,
    /// By this round's train; 0: not known.
    rate: u32,
    /// By that of the round before.
    before: u32,
    state: State,
}

/// What is believed of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing yet.
    Open,
    /// The window that it begins with fits.
    Spread,
    /// Two rounds agreed on its rate.
    Known,
    /// The round began with that knowledge, so its text came at a pace.
    Paced,
    /// The window fills it, and what that allows is still to be sent.
    Filled,
}

impl Train {
    pub(crate) const NONE: Self =
        Self { first: 0, last: 0, octets: 0, acks: 0, rate: 0, before: 0, state: State::Open };

    /// A window that is known to fit is spread over the round trip, until the first acknowledgement that finds it
    /// used up: it was proven by text that came at the path's pace, and not at once. Whether it is: not where the path's rate
    /// is known.
    pub(crate) fn spread(&mut self, window: u32, round_trip: Duration) -> bool {
        if !matches!(self.state, State::Open | State::Spread) {
            return false;
        }
        if !is_near(round_trip) {
            self.rate = in_a_millisecond(window, round_trip);
            self.state = State::Spread;
        }
        true
    }

    /// A round trip was measured. That over which the window is spread may have been longer, by what has nothing to do
    /// with the path: one with which a connection began in a queue that was full, say.
    pub(crate) fn heard(&mut self, window: u32, round_trip: Duration) {
        if self.state != State::Spread {
            return;
        }
        if is_near(round_trip) {
            *self = Self::NONE;
        } else {
            self.rate = self.rate.max(in_a_millisecond(window, round_trip));
        }
    }

    /// A round trip begins.
    pub(crate) fn start_round(&mut self) {
        if self.state == State::Spread {
            *self = Self::NONE;
            return;
        }
        (self.before, self.rate, self.acks) = (self.rate, 0, 0);
        self.state = match self.state {
            _ if self.before == 0 => State::Open,
            State::Known => State::Paced,
            state => state,
        };
    }

    /// An acknowledgement of `octets` that finds this window; `round_trip` is the least known, in µs.
    pub(crate) fn on_ack(&mut self, now: Instant, octets: u32, window: u32, round_trip: u32) {
        if round_trip < NEAR {
            return;
        }
        let now = (now.nanos() / 1_000) as u32;
        if self.acks == 0 || now.wrapping_sub(self.last) > round_trip / PART {
            (self.first, self.octets, self.acks) = (now, 0, 1);
        } else {
            self.octets = self.octets.saturating_add(octets);
            self.acks = self.acks.saturating_add(1);
        }
        self.last = now;
        let took = now.wrapping_sub(self.first);
        if self.acks > LEAST_ACKS && took >= round_trip / PART {
            let first = self.rate == 0;
            self.rate = (u64::from(self.octets) * 1_000 / u64::from(took)).min(u64::from(u32::MAX)) as u32;
            self.judge(window, round_trip, first);
        }
    }

    /// The rate is known; that of the round before may be.
    fn judge(&mut self, window: u32, round_trip: u32, first: bool) {
        let (rate, before) = (u64::from(self.rate), u64::from(self.before));
        let fits = before * u64::from(round_trip) / 1_000 * 9 / 8;
        self.state = match self.state {
            State::Open if first && rate * 16 > before * 15 && rate * 16 < before * 17 => State::Known,
            State::Paced if first && rate * 16 >= before * 17 => State::Open,
            State::Paced if u64::from(window) >= fits => State::Filled,
            state => state,
        }
    }

    /// Octets per second at which to send, once there is reason to.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        let rate = u64::from(self.rate.max(self.before));
        match self.state {
            State::Open => None,
            State::Known | State::Paced => Some(rate * GAIN),
            State::Spread | State::Filled => Some(rate * 1_000),
        }
    }

    /// Whether the window fills the path, so that it is to grow no more.
    pub(crate) fn is_filled(&self) -> bool {
        self.state == State::Filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: u32 = 100_000;
    const SEGMENT: u32 = 1_000;

    struct Rounds {
        train: Train,
        now: Instant,
        window: u32,
    }

    impl Rounds {
        fn new(window: u32) -> Self {
            Self { train: Train::NONE, now: Instant::ZERO, window: window * SEGMENT }
        }

        /// A round whose segments are acknowledged with these gaps, in µs. What is believed at its end.
        fn round(&mut self, gap: u64) -> Option<u64> {
            self.train.start_round();
            let begun = self.now;
            for _ in 0..self.window / SEGMENT {
                self.train.on_ack(self.now, SEGMENT, self.window, ROUND_TRIP);
                if !self.train.is_filled() {
                    self.window += SEGMENT;
                }
                self.now += Duration::from_micros(gap);
            }
            self.now = self.now.max(begun + Duration::from_millis(100));
            self.train.pacing_rate()
        }
    }

    #[test]
    fn two_rounds_of_one_rate_tell_it_and_a_window_that_fits_on_the_path_ends_slow_start() {
        // Ten segments a millisecond, so that a thousand fit.
        let mut rounds = Rounds::new(100);
        assert_eq!(rounds.round(100), None);
        assert_eq!(rounds.round(100), Some(10_000_000 * 9 / 8));
        assert_eq!(rounds.round(100), Some(10_000_000 * 9 / 8));
        assert!(!rounds.train.is_filled());
        assert_eq!(rounds.round(100), Some(10_000_000));
        assert!(rounds.train.is_filled());
        assert_eq!(rounds.window, 1_125 * SEGMENT);
    }

    #[test]
    fn trains_that_are_faster_with_a_larger_window_say_nothing() {
        let mut rounds = Rounds::new(100);
        for gap in [100, 50, 25, 12] {
            assert_eq!(rounds.round(gap), None);
        }
    }

    #[test]
    fn a_path_that_shows_more_is_believed_no_longer() {
        let mut rounds = Rounds::new(100);
        rounds.round(100);
        assert!(rounds.round(100).is_some());
        assert_eq!(rounds.round(90), None);
    }

    #[test]
    fn trains_of_a_sixteenth_of_the_round_trip_count_and_none_with_such_a_pause() {
        let told = |window, gap| {
            let mut rounds = Rounds::new(window);
            rounds.round(gap);
            rounds.window = window * SEGMENT;
            rounds.round(gap).is_some()
        };
        assert_eq!([told(62, 100), told(64, 100)], [false, true]);
        assert_eq!([told(40, 6_300), told(40, 6_200)], [false, true]);
    }
}
