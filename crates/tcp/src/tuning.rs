//! Receive buffer tuning: the window limit follows what the program actually reads in a round trip
//! (dynamic right-sizing, Fisk and Feng 2001). A connection starts with a modest window and gets
//! twice what its program consumed, up to the maximum; a program that does not read keeps its
//! modest window, and its buffer need not grow. The limit itself only ever grows.

use core::time::Duration;

use silk_instant::Instant;

/// The limit on the window, and the measurement behind it.
#[derive(Clone, Debug)]
pub(crate) struct WindowTuning {
    limit: u32,
    max: u32,
    /// Octets read by the program when the measured round trip began, modulo 2³².
    mark: u32,
    /// When it began; `FAR` before the first reading.
    since: Instant,
}

/// A round trip shorter than this is measured over this time.
const SHORTEST: Duration = Duration::from_millis(1);

impl WindowTuning {
    pub(crate) fn new(initial: u32, max: u32) -> Self {
        let max = max.clamp(1, 1 << 30);
        Self { limit: initial.clamp(1, max), max, mark: 0, since: Instant::FAR }
    }

    /// The most window to offer now, in octets.
    pub(crate) const fn limit(&self) -> u32 {
        self.limit
    }

    /// Without window scaling no more than the field holds can be offered.
    pub(crate) fn cap(&mut self, max: u32) {
        self.max = self.max.min(max);
        self.limit = self.limit.min(self.max);
    }

    /// The program has read: in all `consumed` octets, modulo 2³², up to a constant.
    pub(crate) fn on_read(&mut self, now: Instant, rtt: Duration, consumed: u32) {
        if self.since != Instant::FAR && now - self.since < rtt.max(SHORTEST) {
            return;
        }
        let read = consumed.wrapping_sub(self.mark);
        // A negative difference is a buffer that became smaller, not reading.
        if self.since != Instant::FAR && read <= i32::MAX as u32 {
            self.limit = self.limit.max(read.saturating_mul(2)).min(self.max);
        }
        self.mark = consumed;
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(10);

    #[test]
    fn the_limit_becomes_twice_what_is_read_in_a_round_trip() {
        let mut tuning = WindowTuning::new(1_000, 1 << 20);
        tuning.on_read(Instant::ZERO, RTT, u32::MAX);
        tuning.on_read(Instant::from_millis(5), RTT, 4_000);
        assert_eq!(tuning.limit(), 1_000);
        tuning.on_read(Instant::from_millis(10), RTT, 8_999);
        assert_eq!(tuning.limit(), 18_000);
    }

    #[test]
    fn it_never_shrinks_and_stays_within_the_maximum() {
        let mut tuning = WindowTuning::new(1_000, 5_000);
        for (millis, consumed) in [(0, 0), (10, 100_000), (20, 100_001), (30, 50)] {
            tuning.on_read(Instant::from_millis(millis), RTT, consumed);
        }
        assert_eq!(tuning.limit(), 5_000);
    }
}
