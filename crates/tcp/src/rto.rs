//! The retransmission time-out (RFC 6298), in whole microseconds with the scaled averages of
//! Jacobson's original. It only computes; the timer itself is in `timers`. Ambiguous samples (Karn)
//! must be kept out by the caller.

use core::time::Duration;

use crate::config::Config;

/// Round-trip estimator and the time-out made from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rto {
    /// SRTT times eight, in µs; zero before the first sample.
    srtt_8: u32,
    /// RTTVAR times four, in µs.
    rttvar_4: u32,
    /// The time-out without back-off, in µs; within min..=max.
    base: u32,
    min: u32,
    max: u32,
    /// Doublings since the last sample: progress alone does not end the back-off, for it proves
    /// nothing about the round trip (Karn; §5, after 5.7).
    backoff: u8,
}

/// Clock granularity G of RFC 6298 §2.3 in µs.
const GRANULARITY: u32 = 1_000;
/// Samples above this are cut, so that the scaled averages cannot overflow.
const LONGEST: u32 = 300_000_000;

impl Rto {
    // RFC 6298 §2.1.
    pub(crate) fn new(config: &Config) -> Self {
        let max = micros(config.max_rto).clamp(1, LONGEST);
        let min = micros(config.min_rto).clamp(1, max);
        let base = micros(config.initial_rto).clamp(min, max);
        Self { srtt_8: 0, rttvar_4: 0, base, min, max, backoff: 0 }
    }

    /// Takes a measurement R (RFC 6298 §2.2 and §2.3).
    // RFC 9293 MUST-18.
    pub(crate) fn sample(&mut self, rtt: Duration) {
        let r = micros(rtt).clamp(1, LONGEST);
        if self.srtt_8 == 0 {
            self.srtt_8 = r * 8;
            self.rttvar_4 = r * 2;
        } else {
            let difference = (self.srtt_8 / 8).abs_diff(r);
            self.rttvar_4 = self.rttvar_4 - self.rttvar_4 / 4 + difference;
            self.srtt_8 = self.srtt_8 - self.srtt_8 / 8 + r;
        }
        // The least is one of what is waited beyond the round trip, as Linux has it: an acknowledgement may be delayed, however long the way.
        let rto = self.srtt_8 / 8 + self.rttvar_4.max(self.min).max(GRANULARITY);
        self.base = rto.min(self.max);
        self.backoff = 0;
    }

    /// Doubles the time-out (§5.5).
    // RFC 6298 §2.5, §5.5.
    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// After a SYN was lost, data starts with at least 3 s (§5.7).
    // RFC 6298 §5.7.
    pub(crate) fn after_lost_syn(&mut self) {
        if self.srtt_8 == 0 {
            self.base = self.base.max(3_000_000).min(self.max);
            self.backoff = 0;
        }
    }

    /// The time-out now.
    pub(crate) fn current(&self) -> Duration {
        self.doubled(self.backoff)
    }

    /// The time-out doubled `times`, within the maximum.
    pub(crate) fn doubled(&self, times: u8) -> Duration {
        Duration::from_micros(self.micros(times))
    }

    fn micros(&self, times: u8) -> u64 {
        let micros = u64::from(self.base) << times.min(32);
        micros.min(u64::from(self.max))
    }

    /// Doublings of the time-out.
    pub(crate) const fn doublings(&self) -> u8 {
        self.backoff
    }

    /// The time-out now and the smoothed round-trip time in µs, for every acknowledgement.
    pub(crate) fn current_and_srtt_micros(&self) -> (u64, u32) {
        (self.micros(self.backoff), self.srtt_8 / 8)
    }

    /// The smoothed round-trip time; zero before the first sample.
    pub(crate) fn srtt(&self) -> Duration {
        Duration::from_micros(u64::from(self.srtt_8 / 8))
    }

    /// The round-trip time's variation.
    pub(crate) fn rttvar(&self) -> Duration {
        Duration::from_micros(u64::from(self.rttvar_4 / 4))
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rto() -> Rto {
        Rto::new(&Config { min_rto: Duration::from_millis(1), ..Config::default() })
    }

    // RFC 6298 §2.1.
    #[test]
    fn before_any_sample_it_is_one_second() {
        assert_eq!(rto().current(), Duration::from_secs(1));
    }

    // RFC 9293 MUST-18; RFC 6298 §2.2.
    #[test]
    fn the_first_sample_sets_srtt_and_half_of_it_as_variation() {
        let mut rto = rto();
        rto.sample(Duration::from_millis(100));
        assert_eq!((rto.srtt(), rto.rttvar()), (Duration::from_millis(100), Duration::from_millis(50)));
        assert_eq!(rto.current(), Duration::from_millis(300));
    }

    // RFC 6298 §2.3.
    #[test]
    fn steady_samples_shrink_the_variation() {
        let mut rto = rto();
        (0..100).for_each(|_| rto.sample(Duration::from_millis(80)));
        assert_eq!(rto.srtt(), Duration::from_millis(80));
        assert!(rto.current() < Duration::from_millis(83), "{:?}", rto.current());
    }

    #[test]
    fn the_least_is_waited_beyond_the_round_trip_however_long_that_is() {
        let mut rto = Rto::new(&Config::default());
        (0..100).for_each(|_| rto.sample(Duration::from_millis(180)));
        assert_eq!(rto.current(), Duration::from_millis(380));
    }

    // RFC 6298 §2.5, §5.5.
    #[test]
    fn back_off_doubles_up_to_the_maximum_and_ends_with_a_sample() {
        let mut rto = rto();
        let seen: alloc::vec::Vec<_> = (0..9)
            .map(|_| {
                rto.back_off();
                rto.current().as_secs()
            })
            .collect();
        assert_eq!(seen, [2, 4, 8, 16, 32, 64, 120, 120, 120]);
        rto.sample(Duration::from_millis(100));
        assert_eq!(rto.current(), Duration::from_millis(300));
    }

    // RFC 6298 §5.7.
    #[test]
    fn a_lost_syn_makes_it_three_seconds_until_a_sample() {
        let mut rto = rto();
        rto.after_lost_syn();
        assert_eq!(rto.current(), Duration::from_secs(3));
        rto.sample(Duration::from_millis(10));
        assert_eq!(rto.current(), Duration::from_millis(30));
    }

    #[test]
    fn extreme_samples_do_not_overflow() {
        let mut rto = rto();
        for rtt in [Duration::MAX, Duration::ZERO, Duration::MAX, Duration::MAX] {
            rto.sample(rtt);
            assert!(rto.current() <= Duration::from_secs(120));
        }
    }
}
