//! Receive buffer tuning: the window limit follows what the program actually reads in a round trip
//! (dynamic right-sizing, Fisk and Feng 2001). A connection starts with a modest window and gets
//! [`AHEAD`] times what its program consumed, up to the maximum, as soon as it has: a peer that is still
//! finding out what the way takes (slow start) doubles what it sends in each round trip, must not wait for
//! the window to follow, and sends bursts that nobody has room for where it had to. A program that does not read keeps its
//! modest window, and its buffer need not grow. The limit itself only ever grows. Near by a program reads in bursts, and
//! what it reads of one in a round trip says nothing about the way: there it is the rate over a longer time that counts.

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

/// So many times what was read in a round trip is offered. At the end of slow start, while the first lost segment is missing, a
/// peer sends twice what was read in the last round trip before, and in each that it takes to repair the loss a share of that which its
/// congestion control leaves it (CUBIC 0.7). With one repair that is lost, too, these are 4.8 times in all.
const AHEAD: u32 = 6;
/// A round trip shorter than this is near by, and measured over this time.
const SHORTEST: Duration = Duration::from_millis(1);
/// What is taken for a round trip that was never measured: that of a peer which is only read from, and whose handshake told
/// nothing.
const UNKNOWN: Duration = Duration::from_millis(100);
/// A peer near by is offered so much even so, octets, if its text is read: one flow over a veth comes fastest with it
/// (29, 38, 43, 40 and 38 Gb/s with 128, 256, 512, 1024 and 4096 KB).
const NEAR: u32 = 512 << 10;

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

    /// The program has read: in all `consumed` octets, modulo 2³². `rtt` is zero before it was measured.
    #[inline]
    pub(crate) fn on_read(&mut self, now: Instant, rtt: Duration, consumed: u32) {
        if self.since == Instant::FAR {
            (self.mark, self.since) = (consumed, now);
            return;
        }
        // What is not read yet is only what somebody says: a negative difference is no reading.
        let read = consumed.wrapping_sub(self.mark).cast_signed().max(0).cast_unsigned();
        let time = now - self.since;
        let rtt = if rtt.is_zero() { UNKNOWN } else { rtt };
        let is_over = time >= rtt.max(SHORTEST);
        let worth = match rtt < SHORTEST {
            false => read.saturating_mul(AHEAD),
            true if is_over => near(read, rtt, time),
            true => 0,
        };
        self.limit = self.limit.max(worth.min(self.max));
        if is_over {
            (self.mark, self.since) = (consumed, now);
        }
    }
}

/// What is worth offering to a peer near by, of which so much was read in `time`, longer than a round trip: twice that, up to
/// [`NEAR`], or what comes in a round trip. More only leaves the caches.
fn near(read: u32, rtt: Duration, time: Duration) -> u32 {
    let in_a_round_trip = u128::from(read) * rtt.as_nanos() / time.as_nanos().max(1);
    read.saturating_mul(2).min(NEAR).max(in_a_round_trip as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(10);

    #[test]
    fn the_limit_becomes_several_times_what_is_read_in_a_round_trip_as_soon_as_it_is() {
        let mut tuning = WindowTuning::new(10_000, 1 << 20);
        tuning.on_read(Instant::ZERO, RTT, u32::MAX);
        for (millis, consumed, limit) in [
            (5, 1_600, 10_000),
            (6, 3_999, 24_000),
            (10, 4_999, 30_000),
            (15, 9_999, 30_000),
            (20, 10_999, 36_000),
        ] {
            tuning.on_read(Instant::from_millis(millis), RTT, consumed);
            assert_eq!(tuning.limit(), limit, "{millis} ms");
        }
    }

    #[test]
    fn a_round_trip_that_was_never_measured_is_not_taken_for_a_near_one() {
        let mut tuning = WindowTuning::new(10_000, 1 << 20);
        tuning.on_read(Instant::ZERO, Duration::ZERO, 0);
        for (millis, consumed, limit) in [(50, 10_000, 60_000), (99, 20_000, 120_000), (150, 40_000, 240_000)]
        {
            tuning.on_read(Instant::from_millis(millis), Duration::ZERO, consumed);
            assert_eq!(tuning.limit(), limit, "{millis} ms");
        }
        tuning.on_read(Instant::from_millis(249), Duration::ZERO, 79_000);
        assert_eq!(tuning.limit(), 240_000);
    }

    #[test]
    fn near_by_the_rate_counts_and_not_the_burst() {
        const MB: u32 = 1 << 20;
        let limit = |micros, read| {
            let mut tuning = WindowTuning::new(1_000, 64 * MB);
            tuning.on_read(Instant::ZERO, Duration::from_micros(micros), 0);
            tuning.on_read(Instant::from_millis(1), Duration::from_micros(micros), read);
            tuning.limit()
        };
        assert_eq!(limit(50, 100_000), 200_000);
        assert_eq!(limit(50, 4 * MB), NEAR);
        assert_eq!(limit(500, 4 * MB), 2 * MB);
        assert_eq!(limit(1_000, 4 * MB), 24 * MB, "far away it does");
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
