//! The display's own clock where it has one: its vertical retrace (Scout §4.2 drains the output queue in response
//! to the interrupt for it). A picture that is due between two retraces is shown at the second.

use core::time::Duration;
use silk_instant::Instant;

/// The vertical retraces of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retrace {
    /// When there was one.
    pub at: Instant,
    /// The time from one to the next; more than nothing.
    pub period: Duration,
}

/// How much of what was seen is believed: one in so many.
const GIVE: u64 = 8;

/// The highest rate of a display that is believed, in Hz.
const MOST: u32 = 1000;

impl Retrace {
    /// The retraces of a display of `hertz` that had one at `at`; `None` where the rate is none.
    pub fn new(at: Instant, hertz: u32) -> Option<Self> {
        (1..=MOST).contains(&hertz).then(|| Self { at, period: Duration::from_secs(1) / hertz })
    }

    /// The same retraces, of which one was seen at `seen`, give or take what kept the one who saw it: they are moved an
    /// eighth of the way.
    pub fn seen(&self, seen: Instant) -> Self {
        let next = self.at_or_after(seen);
        let early = next.since(seen);
        let at = if early <= self.period / 2 {
            Instant::from_nanos(next.nanos() - early.as_nanos() as u64 / GIVE)
        } else {
            // The one before is nearer.
            let late = self.period - early;
            Instant::from_nanos(seen.nanos() - late.as_nanos() as u64) + late / GIVE as u32
        };
        Self { at, ..*self }
    }

    /// The first retrace that is not before `due`.
    pub fn at_or_after(&self, due: Instant) -> Instant {
        let period = self.period.as_nanos().max(1) as u64;
        let into = if due >= self.at {
            due.since(self.at).as_nanos() as u64 % period
        } else {
            (period - self.at.since(due).as_nanos() as u64 % period) % period
        };
        due + Duration::from_nanos((period - into) % period)
    }

    /// The first time from `due` on that is half-way between two retraces: pictures that are due there are
    /// shown at the same one, however much the clocks differ by.
    pub fn between(&self, due: Instant) -> Instant {
        Self { at: self.at + self.period / 2, ..*self }.at_or_after(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MILLI: u64 = 1_000_000;

    #[test]
    fn a_picture_is_shown_at_the_retrace_it_is_due_at_or_the_next() {
        let retrace = Retrace { at: Instant::from_nanos(100 * MILLI), period: Duration::from_millis(20) };
        let shown = |due: u64| retrace.at_or_after(Instant::from_nanos(due * MILLI)).nanos() / MILLI;
        assert_eq!([100, 101, 120, 139, 79, 80, 81].map(shown), [100, 120, 120, 140, 80, 80, 100]);
    }

    #[test]
    fn what_is_seen_late_moves_the_retraces_a_little_and_what_is_seen_often_moves_them_there() {
        let retrace = Retrace { at: Instant::from_nanos(100 * MILLI), period: Duration::from_millis(20) };
        let seen = |millis| retrace.seen(Instant::from_nanos(millis * MILLI)).at.nanos();
        assert_eq!([120, 128, 132].map(seen), [120 * MILLI, 121 * MILLI, 139 * MILLI]);
        let shifted =
            (1..100).fold(retrace, |retrace, n| retrace.seen(Instant::from_nanos((106 + n * 40) * MILLI)));
        let off = shifted.at_or_after(Instant::from_nanos(8_000 * MILLI)).nanos() - 8_000 * MILLI;
        assert!(off.abs_diff(6 * MILLI) < 1000, "{off}");
    }

    #[test]
    fn what_is_no_rate_is_no_clock() {
        assert_eq!(Retrace::new(Instant::ZERO, 0), None);
        assert_eq!(Retrace::new(Instant::ZERO, 1_000_000), None);
        assert_eq!(
            Retrace::new(Instant::ZERO, 50).map(|retrace| retrace.period),
            Some(Duration::from_millis(20))
        );
    }

    proptest! {
        #[test]
        fn no_picture_waits_for_as_long_as_a_period(at in 0u64..1 << 50, due in 0u64..1 << 50, hertz in 1u32..=240) {
            let retrace = Retrace::new(Instant::from_nanos(at), hertz).unwrap();
            let due = Instant::from_nanos(due);
            let shown = retrace.at_or_after(due);
            prop_assert!(shown >= due && shown.since(due) < retrace.period);
            let between = retrace.between(due);
            prop_assert!(between >= due && between.since(due) < retrace.period);
            prop_assert!(retrace.at_or_after(between).since(between) >= retrace.period / 2);
            let apart = shown.nanos().abs_diff(at);
            prop_assert_eq!(apart % retrace.period.as_nanos() as u64, 0);
        }
    }
}
