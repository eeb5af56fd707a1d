//! A point in time, as an argument. The pure crates (`wire`, `path`, `sched`, `tcp`,
//! `modules`) read no clock: whoever runs them says what time it is, so a test can run a
//! year of network weather in a second and a simulation repeats exactly.
#![no_std]
#![forbid(unsafe_code)]

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// Nanoseconds since an origin that the caller chose (`CLOCK_MONOTONIC` in the daemon,
/// zero in a simulation). Only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// Later than any time a program will see (584 years).
    pub const FAR: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// The instant `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }
    /// The instant `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }
    /// Nanoseconds since the origin.
    pub const fn nanos(self) -> u64 {
        self.0
    }
    /// Whole milliseconds since the origin (the clock of TCP timestamps).
    pub const fn millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// How long after `earlier` this is; zero when it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, after: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, after: Duration) {
        *self = *self + after;
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} s", self.0 / 1_000_000_000, self.0 / 1_000 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_never_runs_backwards() {
        assert_eq!(Instant::ZERO - Instant::from_millis(3), Duration::ZERO);
        assert_eq!(Instant::from_millis(3) - Instant::ZERO, Duration::from_millis(3));
    }

    #[test]
    fn far_stays_far() {
        assert_eq!(Instant::FAR + Duration::from_secs(1), Instant::FAR);
    }
}
