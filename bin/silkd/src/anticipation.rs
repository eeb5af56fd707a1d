//! Whether an executor that has nothing to do stays awake for a moment. Where the next packet of a conversation comes
//! a few microseconds after the last, giving the processor to a lower class in between helps nobody: the lower class
//! does not get warm before it is interrupted, and the packet waits for an interrupt from another CPU (20 µs in some
//! virtual machines). So the executor looks on for [`PATIENCE`], between looks letting the receive thread run,
//! which has the same priority; but only while what it waits for has lately come so soon.
//!
//! Where that leaves ordinary programs nothing at all ([`STARVED`]), the executor naps now and then, and nothing wakes
//! it: Linux would else take the processor from all real-time threads for 50 ms of every second.
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
/// Ordinary programs that have not run for so long get nothing.
const STARVED: Duration = Duration::from_millis(150);
/// For how long they are helped then.
const HELPED: Duration = Duration::from_secs(2);
/// How long a nap is.
const NAP: Duration = Duration::from_micros(150);
/// How often: it comes to a little more than the twentieth part that Linux takes care of.
const NAPS: Duration = Duration::from_micros(2500);

/// What to do when there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Look again, after others of the same priority.
    Look,
    /// Let everybody have the processor for so long, whatever comes.
    Nap(Duration),
    /// Sleep until something comes.
    Sleep,
}

/// What an executor has learnt about how soon its next work comes.
#[derive(Debug)]
pub struct Anticipation {
    /// What is waited for has lately come soon.
    soon: bool,
    /// The last look of this wait; `None`: nothing is waited for.
    looked: Option<Instant>,
    /// How long this wait has kept the processor.
    waited: Duration,
    /// Until when ordinary programs are helped.
    helps: Instant,
    /// When the next nap is due.
    nap: Instant,
}

impl Anticipation {
    /// Nothing is known yet.
    pub fn new() -> Self {
        let long_ago = Instant::from_nanos(0);
        Self { soon: false, looked: None, waited: Duration::ZERO, helps: long_ago, nap: long_ago }
    }

    /// There was something to do.
    pub fn worked(&mut self) {
        (self.looked, self.waited) = (None, Duration::ZERO);
    }

    /// There is nothing to do, and an ordinary program has run at `ordinary`.
    pub fn idle(&mut self, now: Instant, ordinary: Instant) -> Idle {
        if now.since(ordinary) > STARVED {
            self.helps = now + HELPED;
        }
        if now < self.helps && now >= self.nap {
            self.nap = now + NAPS;
            self.looked = None;
            return Idle::Nap(NAP);
        }
        let since = self.looked.replace(now).map(|looked| now.since(looked));
        self.waited += since.filter(|since| *since <= LOOK).unwrap_or_default();
        if self.soon && self.waited < PATIENCE { Idle::Look } else { Idle::Sleep }
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
        ordinary: Instant,
    }

    impl Looks {
        fn after_a_sleep_of(time: Duration) -> Self {
            let mut of = Anticipation::new();
            of.slept(time);
            let now = Instant::from_nanos(1_000_000_000);
            Self { of, now, ordinary: now }
        }

        fn look_after(&mut self, time: Duration) -> Idle {
            self.now += time;
            self.of.idle(self.now, self.ordinary)
        }

        /// What it does at the last of `count` looks that find nothing.
        fn find_nothing(&mut self, count: usize) -> Option<Idle> {
            (0..count).map(|_| self.look_after(Duration::from_micros(1))).last()
        }
    }

    #[test]
    fn who_has_slept_long_sleeps_at_once() {
        let mut looks = Looks::after_a_sleep_of(SOON + Duration::from_nanos(1));
        assert_eq!(looks.find_nothing(1), Some(Idle::Sleep));
        looks.of = Anticipation::new();
        assert_eq!(looks.find_nothing(1), Some(Idle::Sleep), "nothing is known at first");
    }

    #[test]
    fn who_was_soon_woken_looks_on_for_a_moment() {
        let mut looks = Looks::after_a_sleep_of(SOON);
        assert_eq!(looks.find_nothing(25), Some(Idle::Look));
        assert_eq!(looks.find_nothing(1), Some(Idle::Sleep));
        // It sleeps, and is woken as soon again.
        looks.of.slept(Duration::from_micros(1));
        assert_eq!(looks.find_nothing(1), Some(Idle::Look));
    }

    #[test]
    fn work_begins_a_new_wait() {
        let mut looks = Looks::after_a_sleep_of(SOON);
        for _ in 0..5 {
            assert_eq!(looks.find_nothing(20), Some(Idle::Look));
            looks.of.worked();
        }
    }

    #[test]
    fn what_others_do_between_looks_is_no_waiting() {
        let mut looks = Looks::after_a_sleep_of(SOON);
        for _ in 0..100 {
            assert_eq!(looks.look_after(LOOK + Duration::from_nanos(1)), Idle::Look);
        }
    }

    #[test]
    fn it_naps_only_where_ordinary_programs_starve_and_for_a_twentieth_of_the_time() {
        let mut looks = Looks::after_a_sleep_of(SOON);
        let naps = |looks: &mut Looks, time: Duration| {
            let (end, mut napped) = (looks.now + time, Duration::ZERO);
            while looks.now < end {
                match looks.look_after(Duration::from_micros(1)) {
                    Idle::Nap(time) => {
                        looks.now += time;
                        napped += time;
                    }
                    Idle::Look | Idle::Sleep => looks.of.worked(),
                }
            }
            napped
        };
        assert_eq!(naps(&mut looks, STARVED - Duration::from_micros(10)), Duration::ZERO);
        let starving = naps(&mut looks, Duration::from_secs(1)).as_micros();
        assert!((50_000..70_000).contains(&starving), "{starving} µs");
        // What has run now helps for a while.
        looks.ordinary = looks.now + Duration::from_secs(60);
        assert!(naps(&mut looks, HELPED) > Duration::from_millis(100));
        assert_eq!(naps(&mut looks, HELPED), Duration::ZERO);
    }
}
