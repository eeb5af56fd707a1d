//! The rate at which the path delivers (draft-cheng-iccrg-delivery-rate-estimation): how much
//! arrived between two acknowledgements, over the longer of the times it took to send and to
//! acknowledge it. What was known at each time of transmission is kept until it is acknowledged;
//! their number is bounded. A sample of a program that had nothing to send says so.

use alloc::collections::VecDeque;
use core::time::Duration;

use silk_instant::Instant;

/// With so many times of transmission the oldest is forgotten.
const MOST: usize = 1024;

/// What was known when something was sent (the draft's per-packet state).
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    /// P.sent_time.
    at: Instant,
    /// P.delivered.
    delivered: u64,
    /// P.delivered_time.
    delivered_time: Instant,
    /// P.first_sent_time.
    first_sent_time: Instant,
    /// P.tx_in_flight: octets in the network, these included.
    in_flight: u32,
    /// P.is_app_limited.
    app_limited: bool,
}

/// A rate sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateSample {
    /// Octets per second; zero when it cannot be told.
    pub(crate) rate: u64,
    /// Octets that arrived over the sample.
    pub(crate) delivered: u64,
    /// Octets that had arrived when the sampled text was sent.
    pub(crate) prior_delivered: u64,
    /// Octets in the network when it was sent.
    pub(crate) in_flight: u32,
    /// The program had too little to send.
    pub(crate) app_limited: bool,
}

/// The estimator of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Rate {
    /// C.delivered.
    delivered: u64,
    /// C.delivered_time.
    delivered_time: Instant,
    /// C.first_sent_time.
    first_sent_time: Instant,
    /// C.app_limited: samples say so until this much was delivered; zero otherwise.
    app_limited: u64,
    /// By time.
    sent: VecDeque<Snapshot>,
}

impl Rate {
    pub(crate) const fn new() -> Self {
        let (delivered_time, first_sent_time) = (Instant::ZERO, Instant::ZERO);
        Self { delivered: 0, delivered_time, first_sent_time, app_limited: 0, sent: VecDeque::new() }
    }

    /// Octets delivered so far.
    pub(crate) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// `octets` are sent while `in_flight` others are in the network (§3.2).
    pub(crate) fn on_sent(&mut self, now: Instant, in_flight: u32, octets: u32) {
        if in_flight == 0 {
            (self.first_sent_time, self.delivered_time) = (now, now);
            self.sent.clear();
        }
        if let Some(last) = self.sent.back_mut()
            && last.at == now
        {
            last.in_flight = in_flight.saturating_add(octets);
            return;
        }
        if self.sent.len() >= MOST {
            self.sent.pop_front();
        }
        let Self { delivered, delivered_time, first_sent_time, app_limited, .. } = *self;
        let (in_flight, app_limited) = (in_flight.saturating_add(octets), app_limited > 0);
        let at = now;
        self.sent.push_back(Snapshot {
            at,
            delivered,
            delivered_time,
            first_sent_time,
            in_flight,
            app_limited,
        });
    }

    /// The program has nothing to send and the windows would let it: what is sent from now on, until
    /// all that is in the network has arrived, says little about the path (§3.4).
    pub(crate) fn on_app_limited(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// `octets` have arrived, the youngest of them sent at `sent_at` (§3.3). A sample over less than
    /// the least round trip is of an aggregate and not of the path.
    pub(crate) fn on_delivered(
        &mut self,
        now: Instant,
        octets: u32,
        sent_at: Instant,
        min_rtt: Duration,
    ) -> Option<RateSample> {
        self.delivered += u64::from(octets);
        self.delivered_time = now;
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let at = self.sent.partition_point(|snapshot| snapshot.at <= sent_at).checked_sub(1)?;
        let snapshot = *self.sent.get(at)?;
        self.first_sent_time = snapshot.at;
        let interval = (snapshot.at - snapshot.first_sent_time).max(now - snapshot.delivered_time);
        let delivered = self.delivered - snapshot.delivered;
        let nanos = interval.as_nanos();
        let known = nanos > 0 && interval >= min_rtt;
        let rate = if known { u128::from(delivered) * 1_000_000_000 / nanos } else { 0 };
        Some(RateSample {
            rate: u64::try_from(rate).unwrap_or(u64::MAX),
            delivered,
            prior_delivered: snapshot.delivered,
            in_flight: snapshot.in_flight,
            app_limited: snapshot.app_limited,
        })
    }

    /// Bytes of memory held outside of the estimator itself.
    pub(crate) fn memory(&self) -> usize {
        self.sent.capacity() * size_of::<Snapshot>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    const NO_RTT: Duration = Duration::ZERO;

    #[test]
    fn the_rate_is_what_arrived_over_the_time_it_took() {
        let mut rate = Rate::new();
        rate.on_sent(at(0), 0, 10_000);
        rate.on_sent(at(10), 10_000, 10_000);
        let first = rate.on_delivered(at(100), 10_000, at(0), NO_RTT).unwrap();
        assert_eq!((first.rate, first.delivered, first.in_flight), (100_000, 10_000, 10_000));
        // The second was sent 10 ms after the first and arrived 20 ms after it.
        let second = rate.on_delivered(at(120), 10_000, at(10), NO_RTT).unwrap();
        assert_eq!((second.rate, second.prior_delivered, second.in_flight), (166_666, 0, 20_000));
        rate.on_sent(at(120), 5_000, 5_000);
        let third = rate.on_delivered(at(220), 10_000, at(120), NO_RTT).unwrap();
        assert_eq!((third.rate, third.prior_delivered), (90_909, 20_000));
    }

    #[test]
    fn acknowledgements_that_were_squeezed_together_do_not_make_the_path_faster() {
        let mut rate = Rate::new();
        rate.on_sent(at(0), 0, 1_000);
        rate.on_sent(at(50), 1_000, 1_000);
        rate.on_delivered(at(100), 1_000, at(0), NO_RTT);
        rate.on_sent(at(100), 1_000, 1_000);
        rate.on_delivered(at(101), 1_000, at(50), NO_RTT);
        // It took 50 ms to send what was acknowledged within one.
        let sample = rate.on_delivered(at(101), 1_000, at(100), NO_RTT).unwrap();
        assert_eq!((sample.delivered, sample.rate), (2_000, 20_000));
    }

    #[test]
    fn a_sample_shorter_than_a_round_trip_tells_no_rate() {
        let mut rate = Rate::new();
        rate.on_sent(at(0), 0, 1_000);
        let sample = rate.on_delivered(at(5), 1_000, at(0), Duration::from_millis(6)).unwrap();
        assert_eq!((sample.rate, sample.delivered), (0, 1_000));
    }

    #[test]
    fn a_program_that_had_nothing_to_send_is_the_limit_until_that_has_arrived() {
        let mut rate = Rate::new();
        rate.on_sent(at(0), 0, 1_000);
        rate.on_app_limited(1_000);
        rate.on_sent(at(10), 1_000, 1_000);
        rate.on_sent(at(20), 2_000, 1_000);
        let limited = |rate: &mut Rate, now, sent| {
            rate.on_delivered(at(now), 1_000, at(sent), NO_RTT).map(|sample| sample.app_limited)
        };
        assert_eq!(limited(&mut rate, 50, 0), Some(false));
        assert_eq!(limited(&mut rate, 60, 10), Some(true));
        rate.on_sent(at(60), 1_000, 1_000);
        assert_eq!(limited(&mut rate, 70, 20), Some(true));
        assert_eq!(limited(&mut rate, 110, 60), Some(false));
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut rate = Rate::new();
        (1..10_000).for_each(|n| rate.on_sent(at(n), 1, 1));
        assert_eq!(rate.sent.len(), MOST);
        assert_eq!(rate.on_delivered(at(20_000), 1, at(5), NO_RTT), None);
    }
}
