//! Whether an executor that has nothing to do stays awake for a moment. Where the next packet of a conversation comes
//! a few microseconds after the last, giving the processor to a lower class in between helps nobody: the lower class
//! does not get warm before it is interrupted, and the packet waits for an interrupt from another CPU (20 µs in some
//! virtual machines). So the executor looks on for [`PATIENCE`], between looks letting the receive thread run,
//! which has the same priority; but only while what it waits for has lately come so soon.
//!
//! Why, and what it brings: `docs/design/anticipation.md`.

use silk_instant::Instant;
use std::time::Duration;

/// How long it looks on.
const PATIENCE: Duration = Duration::from_micros(25);
/// What came after a sleep as short as this came soon: looking on would have found it or nearly.
const SOON: Duration = Duration::from_micros(60);
/// Two looks farther apart than this had somebody else's work between them.
const LOOK: Duration = Duration::from_micros(5);

/// What an executor has learnt about how soon its next work comes.
#[derive(Debug, Default)]
pub struct Anticipation {
    /// What is waited for has lately come soon.
    soon: bool,
    /// The last look of this wait; `None`: nothing is waited for.
    looked: Option<Instant>,
    /// How long this wait has kept the processor.
    waited: Duration,
}

impl Anticipation {
    /// There was something to do.
    pub fn worked(&mut self) {
        (self.looked, self.waited) = (None, Duration::ZERO);
    }

    /// There is nothing to do: whether to look again, after others of the same priority, instead of sleeping.
    pub fn looks_on(&mut self, now: Instant) -> bool {
        let since = self.looked.replace(now).map(|looked| now.since(looked));
        self.waited += since.filter(|since| *since <= LOOK).unwrap_or_default();
        self.soon && self.waited < PATIENCE
    }

    /// It slept so long.
    pub fn slept(&mut self, time: Duration) {
        self.soon = time <= SOON;
        self.worked();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An executor that looks once in a microsecond.
    struct Looks {
        of: Anticipation,
        now: Instant,
    }

    impl Looks {
        fn after_a_sleep_of(time: Duration) -> Self {
            let mut of = Anticipation::default();
            of.slept(time);
            Self { of, now: Instant::from_nanos(1) }
        }

        fn look_after(&mut self, time: Duration) -> bool {
            self.now += time;
            self.of.looks_on(self.now)
        }

        /// Whether it looks on after each of `count` looks that find nothing.
        fn looks_on(&mut self, count: usize) -> bool {
            (0..count).all(|_| self.look_after(Duration::from_micros(1)))
        }
    }

    #[test]
    fn who_has_slept_long_sleeps_at_once() {
        let mut looks = Looks::after_a_sleep_of(SOON + Duration::from_nanos(1));
        assert!(!looks.looks_on(1));
        looks.of = Anticipation::default();
        assert!(!looks.looks_on(1), "nothing is known at first");
    }

    #[test]
    fn who_was_soon_woken_looks_on_for_a_moment() {
        let mut looks = Looks::after_a_sleep_of(SOON);
        assert!(looks.looks_on(25));
        assert!(!looks.looks_on(1));
        // It sleeps, and is woken as soon again.
        looks.of.slept(Duration::from_micros(1));
        assert!(looks.looks_on(25));
    }

    #[test]
    fn work_begins_a_new_wait() {
        let mut looks = Looks::after_a_sleep_of(SOON);
        for _ in 0..5 {
            assert!(looks.looks_on(20));
            looks.of.worked();
        }
        assert!(!looks.looks_on(30));
    }

    #[test]
    fn what_others_do_between_looks_is_no_waiting() {
        let mut looks = Looks::after_a_sleep_of(SOON);
        assert!((0..100).all(|_| looks.look_after(LOOK + Duration::from_nanos(1))));
        assert!((0..4).all(|_| looks.look_after(LOOK)));
        assert!(!looks.look_after(LOOK), "25 µs are over");
    }
}
