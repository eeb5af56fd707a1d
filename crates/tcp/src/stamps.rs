//! Timestamps and PAWS (RFC 7323 §3 to §5). The clock has a tick of one millisecond and an offset
//! of its own for each connection, so that it tells nothing about the machine (§7.1).

use core::time::Duration;

use silk_instant::Instant;

use crate::seq::SeqNumber;

/// After this long without a new timestamp TS.Recent is no longer valid (RFC 7323 §5.5): the peer's clock may have turned by
/// half a circle. The RFC says 24 days, for clocks of a millisecond. Linux's may be of a microsecond (`tcp_usec_ts`, since 6.7), and
/// whatever was sent before so long a silence is long since dead.
const OUTDATED: Duration = Duration::from_micros(i32::MAX as u64);

/// Both directions' timestamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamps {
    /// Snd.TS.OK: both SYNs carried the option.
    pub(crate) on: bool,
    /// TS.Recent: what we echo.
    pub(crate) recent: u32,
    /// Added to the clock.
    pub(crate) offset: u32,
    /// When TS.Recent was set.
    pub(crate) recent_at: Instant,
}

impl Timestamps {
    pub(crate) fn new(on: bool, offset: u32) -> Self {
        Self { on, recent: 0, offset, recent_at: Instant::ZERO }
    }

    /// TSval now.
    pub(crate) fn value(&self, now: Instant) -> u32 {
        (now.millis() as u32).wrapping_add(self.offset)
    }

    /// The option for a segment that is no SYN.
    pub(crate) fn option(&self, now: Instant) -> Option<(u32, u32)> {
        self.on.then(|| (self.value(now), self.recent))
    }

    /// PAWS: whether `value` is older than TS.Recent while that is still valid (§5.3, R1).
    // RFC 7323 §5.3.
    pub(crate) fn is_old(&self, value: u32, now: Instant) -> bool {
        stamp_before(value, self.recent) && now - self.recent_at < OUTDATED
    }

    /// Takes a segment's TSval when it is the one to echo (§4.3, step 2).
    // RFC 7323 §4.3.
    pub(crate) fn update(&mut self, now: Instant, value: u32, seq: SeqNumber, last_ack_sent: SeqNumber) {
        if !self.is_old(value, now) && seq.at_or_before(last_ack_sent) {
            self.set(now, value);
        }
    }

    pub(crate) fn set(&mut self, now: Instant, value: u32) {
        self.recent = value;
        self.recent_at = now;
    }

    /// The echo of a segment's timestamp option.
    pub(crate) fn echo(&self, option: Option<(u32, u32)>) -> Echo {
        Echo { value: option.filter(|_| self.on).map(|stamp| stamp.1), offset: self.offset }
    }

    /// The round trip that an echo of our clock measures (§4.1), in its coarse tick; none for an
    /// echo that cannot be true.
    // RFC 7323 §4.1.
    pub(crate) fn round_trip(&self, now: Instant, echo: u32) -> Option<Duration> {
        let ticks = self.value(now).wrapping_sub(echo);
        (self.on && echo != 0 && ticks < 300_000).then(|| Duration::from_millis(u64::from(ticks)))
    }
}

/// What an acknowledgement echoes of our clock, to be compared with times of transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo {
    value: Option<u32>,
    offset: u32,
}

impl Echo {
    /// No echo, or one of something else than what is acknowledged.
    pub(crate) const NONE: Self = Self { value: None, offset: 0 };

    /// Whether the echoed segment was sent before `at`.
    pub(crate) fn is_before(self, at: Instant) -> bool {
        let sent = (at.millis() as u32).wrapping_add(self.offset);
        self.value.is_some_and(|value| stamp_before(value, sent))
    }
}

/// Whether timestamp `a` comes before `b` on their circle.
pub(crate) const fn stamp_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(recent: u32) -> Timestamps {
        let mut stamps = Timestamps::new(true, 1_000);
        stamps.set(Instant::ZERO, recent);
        stamps
    }

    #[test]
    fn an_older_stamp_is_old_across_the_wrap() {
        assert!(stamps(5).is_old(u32::MAX, Instant::from_millis(1)));
        assert!(!stamps(u32::MAX).is_old(3, Instant::from_millis(1)));
        assert!(!stamps(5).is_old(5, Instant::from_millis(1)));
    }

    #[test]
    fn after_a_long_silence_any_stamp_is_taken() {
        let later = Instant::ZERO + OUTDATED;
        let mut stamps = stamps(1_000);
        stamps.update(later, 4, SeqNumber::new(0), SeqNumber::new(0));
        assert_eq!(stamps.recent, 4);
    }

    #[test]
    fn only_a_segment_at_the_last_acknowledgement_is_echoed() {
        let mut stamps = stamps(5);
        stamps.update(Instant::ZERO, 9, SeqNumber::new(101), SeqNumber::new(100));
        assert_eq!(stamps.recent, 5);
        stamps.update(Instant::ZERO, 9, SeqNumber::new(100), SeqNumber::new(100));
        assert_eq!(stamps.recent, 9);
    }

    #[test]
    fn a_round_trip_is_measured_from_a_true_echo_only() {
        let now = Instant::from_millis(70);
        assert_eq!(stamps(0).round_trip(now, 1_050), Some(Duration::from_millis(20)));
        assert_eq!(stamps(0).round_trip(now, 1_080), None);
        assert_eq!(stamps(0).round_trip(now, 0), None);
    }

    // RFC 7323 §5.5.
    #[test]
    fn a_long_silence_is_counted_from_the_latest_stamp() {
        let minute = |n: u32| Instant::ZERO + n * Duration::from_secs(60);
        let mut stamps = stamps(1_000);
        stamps.update(minute(20), 2_000, SeqNumber::new(0), SeqNumber::new(0));
        assert!(stamps.is_old(1_999, minute(55)));
        assert!(!stamps.is_old(1_999, minute(56)));
    }
}
