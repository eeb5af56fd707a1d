//! What the first slow start can read off trains of acknowledgements: the rate of the bottleneck.
//! Segments that leave together are spread by the slowest link, and their acknowledgements come back
//! with the same gaps (J. Hoe, "Improving the Start-up Behavior of a Congestion Control Scheme for
//! TCP", SIGCOMM 1996; the trains are those of HyStart, S. Ha and I. Rhee, "Taming the elephants",
//! 2011).
//!
//! Where two rounds have trains of the same rate although the window has doubled between them, that is
//! the path's. (What only delays stretch doubles its rate with the window.) So is the rate of a long train in which round
//! trips grow: its text left faster than its acknowledgements come. From then on slow start is
//! paced an eighth above it, so that a doubled window fills no queue; a path that has more to give
//! shows a faster train, and is believed no longer.
//!
//! A train tells something also before that, where hosts are late and no two rounds agree: over far paths text is paced a
//! quarter above the latest, and no slower than a doubled window in a round trip.
//!
//! When the window is an eighth more than fits on the path it grows no more: enough that a loss that comes by chance leaves
//! the path busy, and less than most queues hold. If that is so, round trips are longer by as much from then on, and slow start is
//! over. If they are not, the rate was believed wrongly: the window grows on, by a quarter in each round, until they are.

use core::time::Duration;

use silk_instant::Instant;

/// Round trips below it, in µs, say more of how hosts take turns than of the path.
const NEAR: u32 = 4_000;
/// Below it, in µs, one train says nothing: delays that differ by a millisecond are as long as it is.
const FAR: u32 = 20_000;
/// So many acknowledgements are needed behind the first.
const LEAST_ACKS: u8 = 4;
/// A train takes this part of the round trip at least, and a pause of as much ends it.
const PART: u32 = 16;
/// A long one takes this part, and round trips grow in it by an eighth of its time at least.
const LONG: u32 = 4;
/// The pace above the rate that is known, in thousandths of it: so much faster a path would show itself to be.
const GAIN: u64 = 1_125;
/// The pace above what may be the rate, and above what a window that grows slowly needs.
const GUESS: u64 = 1_250;
/// A round trip that is longer by this part is so because of the window.
const RISE: u32 = 16;

/// Whether a path's round trip is so short that nothing is paced.
pub(crate) fn is_near(round_trip: Duration) -> bool {
    round_trip < Duration::from_micros(NEAR as u64)
}

/// Octets that leave in each millisecond where so many leave in a round trip.
fn in_a_millisecond(octets: u32, round_trip: Duration) -> u32 {
    let millis = round_trip.as_millis().max(1) as u64;
    u32::try_from(u64::from(octets) / millis).unwrap_or(u32::MAX)
}

/// An acknowledgement, as a train sees it. Times are in µs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now: Instant,
    /// Octets it acknowledges.
    pub(crate) octets: u32,
    /// The window that it finds.
    pub(crate) window: u32,
    /// Its own round trip; 0: it has none.
    pub(crate) own: u32,
    /// The least that is known.
    pub(crate) round_trip: u32,
}

/// The watch over trains of acknowledgements. Times are in µs and wrap, rates in octets per ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Train {
    first: u32,
    last: u32,
    /// The round trip of the first.
    first_round_trip: u32,
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
    /// Its rate.
    Known,
    /// The round began with that knowledge, so its text came at a pace.
    Paced,
    /// The window fills it, and what that allows is still to be sent.
    Filled,
    /// It is sent; what is acknowledged was sent before.
    Held,
    /// What is acknowledged was sent with that window.
    Weighed,
    /// The window did not fill it.
    Doubted,
    /// The window fills it.
    Over,
}

impl Train {
    pub(crate) const NONE: Self = Self {
        first: 0,
        last: 0,
        first_round_trip: 0,
        octets: 0,
        acks: 0,
        rate: 0,
        before: 0,
        state: State::Open,
    };

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

    /// A round trip begins. `latest` is the least of the one that is over, and `least` that of all before, in µs.
    pub(crate) fn start_round(&mut self, latest: u32, least: u32) {
        if self.state == State::Spread {
            *self = Self::NONE;
            return;
        }
        if self.rate != 0 || !self.is_believed() {
            self.before = self.rate;
        }
        (self.rate, self.acks) = (0, 0);
        self.state = match self.state {
            State::Filled => State::Held,
            State::Held => State::Weighed,
            State::Weighed | State::Doubted if latest >= least.saturating_add(least / RISE) => State::Over,
            State::Weighed | State::Doubted => State::Doubted,
            State::Over => State::Over,
            _ if self.before == 0 => State::Open,
            State::Known => State::Paced,
            state => state,
        };
    }

    pub(crate) fn on_ack(&mut self, arrival: Arrival) {
        let Arrival { octets, window, own, round_trip, .. } = arrival;
        if round_trip < NEAR {
            return;
        }
        let now = (arrival.now.nanos() / 1_000) as u32;
        if self.acks == 0 || now.wrapping_sub(self.last) > round_trip / PART {
            (self.first, self.first_round_trip, self.octets, self.acks) = (now, own, 0, 1);
        } else {
            self.octets = self.octets.saturating_add(octets);
            self.acks = self.acks.saturating_add(1);
        }
        self.last = now;
        let took = now.wrapping_sub(self.first);
        if self.acks > LEAST_ACKS && took >= round_trip / PART {
            let first = self.rate == 0;
            self.rate = (u64::from(self.octets) * 1_000 / u64::from(took)).min(u64::from(u32::MAX)) as u32;
            let grew = self.first_round_trip != 0 && own.saturating_sub(self.first_round_trip) >= took / 8;
            let is_limit = round_trip >= FAR && took >= round_trip / LONG && grew;
            self.judge(window, round_trip, first, is_limit);
        }
    }

    /// The rate is known; that of the round before may be. `is_limit`: by this train alone it is the path's.
    fn judge(&mut self, window: u32, round_trip: u32, first: bool, is_limit: bool) {
        let (rate, before) = (u64::from(self.rate), u64::from(self.before));
        let fits = before * u64::from(round_trip) / 1_000 * 9 / 8;
        self.state = match self.state {
            State::Open if first && rate * 16 > before * 15 && rate * 16 < before * 17 => State::Known,
            State::Open if is_limit => State::Known,
            State::Paced if first && rate * 16 >= before * 17 => State::Open,
            State::Paced if u64::from(window) >= fits => State::Filled,
            state => state,
        }
    }

    /// Octets per second at which to send, once there is reason to, with this window and this least round trip in µs,
    /// if one is known. Half the window leaves in a round trip at least: a rate below that is no path's, whatever it was
    /// read off.
    pub(crate) fn pacing_rate(&self, window: u32, round_trip: Option<u32>) -> Option<u64> {
        let rate = u64::from(self.rate.max(self.before));
        if rate == 0 {
            return None;
        }
        if self.state == State::Spread {
            return Some(rate * 1_000);
        }
        let round_trip = round_trip?;
        let windows =
            |thousandths: u64| u64::from(window) * thousandths * 1_000 / u64::from(round_trip.max(1));
        let rate = match self.state {
            State::Open if round_trip < FAR => return None,
            State::Open => {
                let latest = u64::from(if self.rate == 0 { self.before } else { self.rate });
                (latest * GUESS).max(windows(2_000))
            }
            State::Known | State::Paced | State::Filled | State::Held | State::Weighed => rate * GAIN,
            State::Doubted => windows(GUESS),
            State::Spread | State::Over => rate * 1_000,
        };
        Some(rate.max(windows(500)))
    }

    /// Whether the rate counts until another is read: a round may have no train.
    fn is_believed(&self) -> bool {
        self.is_filled() || self.is_doubted()
    }

    /// Whether the window seems to fill the path, so that it is to grow no more for now.
    pub(crate) fn is_filled(&self) -> bool {
        matches!(self.state, State::Filled | State::Held | State::Weighed | State::Over)
    }

    /// Whether it did not, and is to grow slowly.
    pub(crate) fn is_doubted(&self) -> bool {
        self.state == State::Doubted
    }

    /// Whether it does: slow start is over.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Over
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
        /// The least round trip of the round that is over.
        latest: u32,
    }

    impl Rounds {
        fn new(window: u32) -> Self {
            Self { train: Train::NONE, now: Instant::ZERO, window: window * SEGMENT, latest: ROUND_TRIP }
        }

        /// A round whose segments are acknowledged with these gaps, in µs, and with round trips that grow by so much from
        /// one to the next. The pace at its end.
        fn growing_round(&mut self, gap: u64, growth: u32) -> Option<u64> {
            self.train.start_round(self.latest, ROUND_TRIP);
            let begun = self.now;
            for n in 0..self.window / SEGMENT {
                self.train.on_ack(Arrival {
                    now: self.now,
                    octets: SEGMENT,
                    window: self.window,
                    own: ROUND_TRIP + n * growth,
                    round_trip: ROUND_TRIP,
                });
                if !self.train.is_filled() {
                    self.window += SEGMENT;
                }
                self.now += Duration::from_micros(gap);
            }
            self.now = self.now.max(begun + Duration::from_millis(100));
            self.train.pacing_rate(self.window, Some(ROUND_TRIP))
        }

        fn round(&mut self, gap: u64) -> Option<u64> {
            self.growing_round(gap, 0)
        }

        /// Rounds of a path that takes ten segments a millisecond, so that a thousand fit, until the window seems to fill it.
        fn filled() -> Self {
            let mut rounds = Self::new(100);
            while !rounds.train.is_filled() {
                rounds.round(100);
            }
            rounds
        }
    }

    #[test]
    fn two_rounds_of_one_rate_tell_it_and_a_window_that_fits_on_the_path_grows_no_more() {
        let mut rounds = Rounds::new(100);
        assert_eq!(rounds.round(100), Some(10_000_000 * 5 / 4), "what may be the rate");
        assert_eq!(rounds.round(100), Some(10_000_000 * 9 / 8));
        assert_eq!(rounds.round(100), Some(10_000_000 * 9 / 8));
        assert!(!rounds.train.is_filled());
        assert_eq!(rounds.round(100), Some(10_000_000 * 9 / 8));
        assert!(rounds.train.is_filled() && !rounds.train.is_over());
        assert_eq!(rounds.window, 1_125 * SEGMENT);
    }

    #[test]
    fn slow_start_is_over_where_round_trips_are_longer_by_what_is_too_much() {
        let mut rounds = Rounds::filled();
        rounds.round(100);
        rounds.round(100);
        rounds.latest = ROUND_TRIP * 9 / 8;
        assert_eq!(rounds.round(100), Some(10_000_000));
        assert!(rounds.train.is_over());
    }

    #[test]
    fn a_window_that_fills_nothing_grows_on_slowly_until_it_does() {
        let mut rounds = Rounds::filled();
        rounds.round(100);
        rounds.round(100);
        rounds.round(100);
        assert!(rounds.train.is_doubted() && !rounds.train.is_filled());
        assert_eq!(rounds.train.pacing_rate(2_000 * SEGMENT, Some(ROUND_TRIP)), Some(20_000_000 * 5 / 4));
        rounds.latest = ROUND_TRIP * 17 / 16;
        rounds.round(100);
        assert!(rounds.train.is_over());
    }

    #[test]
    fn trains_that_are_faster_with_a_larger_window_say_nothing() {
        let mut rounds = Rounds::new(100);
        for gap in [100, 50, 25, 10] {
            // A quarter above what may be the rate, and no slower than a window of twice the size in a round trip.
            let doubled = u64::from(rounds.window) * 2 * 2 * 10;
            assert_eq!(rounds.round(gap), Some((1_000_000_000 / gap * 5 / 4).max(doubled)));
        }
    }

    #[test]
    fn a_long_train_in_which_round_trips_grow_tells_the_rate_alone() {
        for (segments, growth, told) in [(300, 13, true), (300, 12, false), (200, 13, false)] {
            let mut rounds = Rounds::new(segments);
            let known = rounds.growing_round(100, growth) == Some(10_000_000 * 9 / 8);
            assert_eq!(known, told, "{segments} segments, {growth} µs each");
        }
    }

    #[test]
    fn a_path_that_shows_more_is_believed_no_longer() {
        let mut rounds = Rounds::new(100);
        rounds.round(100);
        assert_eq!(rounds.round(100), Some(10_000_000 * 9 / 8));
        assert_ne!(rounds.round(90), Some(1_000_000_000 / 90 * 9 / 8));
        assert!(!rounds.train.is_filled());
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

    /// A train of a program that has little to say, two rounds without one, and again: text must leave all the same.
    #[test]
    fn however_little_the_trains_tell_half_the_window_leaves_in_a_round_trip() {
        let mut rounds = Rounds::filled();
        let full = rounds.window;
        let least = u64::from(full) * 10 / 2;
        let mut unseen = [State::Held, State::Weighed, State::Doubted, State::Over].map(Some);
        for round in 0..12 {
            rounds.window = if round % 3 == 0 { 10 * SEGMENT } else { 0 };
            rounds.latest = ROUND_TRIP + 2_000 * (round / 2);
            rounds.round(9_000);
            unseen.iter_mut().for_each(|state| *state = state.filter(|state| *state != rounds.train.state));
            let rate = rounds.train.pacing_rate(full, Some(ROUND_TRIP));
            assert!(rate.is_some_and(|rate| rate >= least), "round {round}, {:?}: {rate:?}", rounds.train);
            assert_eq!(rounds.train.pacing_rate(full, None), None);
        }
        assert_eq!(unseen, [None; 4]);
    }

    #[test]
    fn before_a_rate_is_known_only_far_paths_are_paced() {
        for (round_trip, paced) in [(FAR - 1, false), (FAR, true)] {
            let train = Train { rate: 1_000, ..Train::NONE };
            assert_eq!(train.pacing_rate(SEGMENT, Some(round_trip)).is_some(), paced);
        }
    }
}
