//! Whether an executor that has nothing to do stays awake for a moment. Where the next packet of a conversation comes
//! a few microseconds after the last, giving the processor to a lower class in between helps nobody: the lower class
//! does not get warm before it is interrupted, and the packet waits for an interrupt from another CPU (20 µs in some
//! virtual machines). So the executor looks on for [`PATIENCE`], between looks letting the receive thread run,
//! which has the same priority; but only while what it waits for has lately come so soon.
//!
//! Better still, it [fetches](Anticipation::fetches) the packet itself while it waits. That is in vain if the receive thread has been
//! called already, which happens where packets come in pairs; so it goes on only as long as it mostly finds something.
//!
//! Why, and what it brings: `docs/design/anticipation.md`.

use silk_instant::Instant;
use std::time::Duration;

/// How long it looks on, and how long it fetches before it sleeps.
pub const PATIENCE: Duration = Duration::from_micros(25);
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
    /// Something was done for threads that run below.
    below: bool,
    fetching: Fetching,
}

/// Whether fetching pays. A packet that is fetched saves some microseconds, and a wait in vain costs ten times as much.
#[derive(Debug)]
struct Fetching {
    /// What it has saved less what it has cost, packets.
    saved: u32,
    /// So many waits it is left alone for.
    rest: u32,
    /// So many it was the last time.
    rested: u32,
}

impl Fetching {
    /// What a wait in vain costs.
    const VAIN: u32 = 15;
    /// What it is trusted with after a rest.
    const TRUST: u32 = 2 * Self::VAIN;
    /// What it can have saved at most; then it has proved itself, and the next rest is short.
    const MOST: u32 = 8 * Self::VAIN;
    /// The shortest and the longest rest.
    const REST: (u32, u32) = (16, 16_384);

    fn found(&mut self) {
        self.saved = (self.saved + 1).min(Self::MOST);
        if self.saved == Self::MOST {
            self.rested = 0;
        }
    }

    fn was_in_vain(&mut self) {
        self.saved = self.saved.saturating_sub(Self::VAIN);
        if self.saved == 0 {
            self.rested = (2 * self.rested).clamp(Self::REST.0, Self::REST.1);
            (self.rest, self.saved) = (self.rested, Self::TRUST);
        }
    }
}

impl Default for Fetching {
    fn default() -> Self {
        Self { saved: Self::TRUST, rest: 0, rested: 0 }
    }
}

impl Anticipation {
    /// There was something to do.
    pub fn worked(&mut self) {
        if self.looked.take().is_some() {
            self.fetching.rest = self.fetching.rest.saturating_sub(1);
        }
        self.waited = Duration::ZERO;
    }

    /// Something was done for threads of a lower priority, which would wait for the end of the next wait.
    pub fn helped_below(&mut self) {
        self.below = true;
    }

    /// There is nothing to do: whether to look again, after others of the same priority, instead of sleeping.
    pub fn looks_on(&mut self, now: Instant) -> bool {
        if std::mem::take(&mut self.below) {
            return false;
        }
        let since = self.looked.replace(now).map(|looked| now.since(looked));
        self.waited += since.filter(|since| *since <= LOOK).unwrap_or_default();
        self.soon && self.waited < PATIENCE
    }

    /// Whether to fetch what is waited for, where that can be done.
    pub fn fetches(&self) -> bool {
        self.soon && self.fetching.rest == 0
    }

    /// It slept so long, fetching first.
    pub fn fetched(&mut self, time: Duration) {
        self.slept(time);
        if time <= PATIENCE {
            self.fetching.found();
        } else {
            self.fetching.was_in_vain();
        }
    }

    /// It slept so long.
    pub fn slept(&mut self, time: Duration) {
        self.soon = time <= SOON;
        self.looked.get_or_insert_default();
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
        assert!(!looks.looks_on(1) && !looks.of.fetches());
        looks.of = Anticipation::default();
        assert!(!looks.looks_on(1) && !looks.of.fetches(), "nothing is known at first");
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
    fn who_has_helped_threads_below_lets_them_run() {
        let mut looks = Looks::after_a_sleep_of(SOON);
        looks.of.helped_below();
        assert!(!looks.looks_on(1));
        looks.of.slept(SOON);
        assert!(looks.looks_on(25), "of work for others afterwards");
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

    const VAIN: Duration = Duration::from_micros(40);

    /// Somebody who has been woken soon, and waits as often as this: how often it fetches, if of so many fetches one is in vain.
    fn fetches(waits: u32, one_of: u32) -> u32 {
        let mut of = Anticipation::default();
        of.slept(SOON);
        let mut fetches = 0;
        for _ in 0..waits {
            if of.fetches() {
                fetches += 1;
                of.fetched(if fetches % one_of == 0 { VAIN } else { PATIENCE });
            } else {
                of.slept(SOON);
            }
        }
        fetches
    }

    #[test]
    fn it_fetches_on_while_that_mostly_finds_something() {
        assert_eq!(fetches(100_000, u32::MAX), 100_000);
        assert_eq!(fetches(100_000, 200), 100_000);
        // A little less in vain than what it saves.
        assert_eq!(fetches(100_000, 17), 100_000);
    }

    #[test]
    fn it_gives_up_what_is_often_in_vain_and_rarely_tries_again() {
        for one_of in [1, 2, 3, 5] {
            let fetches = fetches(1_000_000, one_of);
            // Each try ends after a few, and the rests double: 16, 32, … 16 384, 16 384, …
            assert!((60..2_000).contains(&fetches), "one of {one_of} in vain: {fetches}");
        }
    }

    #[test]
    fn once_it_pays_again_a_single_wait_in_vain_is_forgiven() {
        let mut of = Anticipation::default();
        of.slept(SOON);
        for _ in 0..20 {
            of.fetched(VAIN);
        }
        while !of.fetches() {
            of.worked();
            of.slept(SOON);
        }
        for _ in 0..1_000 {
            of.fetched(PATIENCE);
        }
        of.fetched(VAIN);
        assert!(of.fetches());
    }

    #[test]
    fn looks_on_are_waits_too_that_a_rest_is_counted_in() {
        let mut looks = Looks::after_a_sleep_of(SOON);
        for _ in 0..2 {
            looks.of.fetched(VAIN);
        }
        for _ in 0..Fetching::REST.0 {
            assert!(!looks.of.fetches() && looks.looks_on(3));
            looks.of.worked();
            looks.of.worked();
        }
        assert!(looks.of.fetches());
    }
}
