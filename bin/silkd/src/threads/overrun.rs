//! What to do where more is received than can be taken: an ordinary receive thread then has a whole slice of the processor,
//! 4 ms where the tick is that long, and its executor's ring is full after the first of them. All that it receives afterwards is thrown
//! away, and its work with it (receive livelock: Mogul and Ramakrishnan, USENIX 1996). An executor that finds packets lost there lets
//! the thread run only while it and its programs sleep, for [`PAUSE`]; what is too much is then lost before it is received, where
//! it costs nothing (lazy receiver processing: Druschel and Banga, OSDI 1996).

use silk_instant::Instant;
use std::time::Duration;

/// Packets that are taken without a sleep until it is asked whether some were lost, which takes a quarter of a microsecond. A ring
/// that holds fewer may run over unnoticed.
const CROWD: usize = 256;
/// For how long the receive thread is held back. Then it is seen anew whether there is too much.
const PAUSE: Duration = Duration::from_millis(100);
/// It ends with a sleep that was this long: nothing comes any more, or others keep the thread from bringing it.
const SILENCE: Duration = Duration::from_millis(10);
/// A thread that runs only when nobody else does brings nothing beside a program that computes. So for this long there is no other pause after one
/// that ended so, for twice as long after the next, and for the longer of these times at most.
const VAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(1600));

/// What an executor knows of it.
#[derive(Debug, Default)]
pub struct Overrun {
    /// Packets taken since it slept, or asked.
    taken: usize,
    /// What was lost when it was asked last.
    lost: u64,
    /// When the pause ends, in one.
    until: Option<Instant>,
    /// There is no other before.
    not_before: Instant,
    /// How long after the last one that ended early; zero after one that did not.
    vain: Duration,
}

impl Overrun {
    /// So many packets more were taken; whether it is to be asked how many were lost.
    pub fn took(&mut self, packets: usize) -> bool {
        self.taken += packets;
        let crowd = self.taken >= CROWD;
        if crowd {
            self.taken = 0;
        }
        crowd
    }

    /// So many were lost in all; whether a pause begins with that.
    pub fn lost(&mut self, lost: u64, now: Instant) -> bool {
        let more = lost > self.lost;
        self.lost = lost;
        let begins = more && self.until.is_none() && now >= self.not_before;
        if begins {
            self.until = Some(now + PAUSE);
        }
        begins
    }

    /// The executor has slept this long until `now`: there was nothing more to take.
    pub fn slept(&mut self, slept: Duration, now: Instant) {
        self.taken = 0;
        if slept >= SILENCE && self.until.is_some() {
            self.vain = (2 * self.vain).clamp(VAIN.0, VAIN.1);
            (self.until, self.not_before) = (Some(now), now + self.vain);
        }
    }

    /// Whether a pause is over with this.
    pub fn ends(&mut self, now: Instant) -> bool {
        let over = self.until.is_some_and(|until| until <= now);
        if over {
            self.until = None;
            if self.not_before <= now {
                self.vain = Duration::ZERO;
            }
        }
        over
    }

    /// When an executor is to wake that goes to sleep `now`, if there is a pause.
    pub fn wakes(&self, now: Instant) -> Option<Instant> {
        self.until.map(|until| until.min(now + SILENCE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    #[test]
    fn only_a_crowd_is_asked_about() {
        let mut overrun = Overrun::default();
        assert!(!overrun.took(CROWD - 1));
        assert!(overrun.took(1) && !overrun.took(CROWD - 1));
        overrun.slept(SILENCE, NOW);
        assert!(!overrun.took(CROWD - 1), "those before the sleep were not too many");
    }

    #[test]
    fn new_losses_begin_a_pause_that_ends() {
        let mut overrun = Overrun::default();
        assert!(!overrun.lost(0, NOW) && overrun.wakes(NOW).is_none());
        assert!(overrun.lost(7, NOW));
        assert!(!overrun.lost(9, NOW), "there is one already");
        overrun.slept(SILENCE / 2, NOW);
        assert!(!overrun.ends(NOW + PAUSE / 2) && overrun.wakes(NOW).is_some());
        assert!(overrun.ends(NOW + PAUSE) && !overrun.ends(NOW + PAUSE));
        assert!(!overrun.lost(9, NOW + PAUSE), "these are known");
        assert!(overrun.lost(10, NOW + PAUSE));
    }

    #[test]
    fn a_pause_in_which_nothing_comes_is_over_and_none_follows_soon() {
        let mut overrun = Overrun::default();
        overrun.slept(SILENCE, NOW);
        assert!(!overrun.ends(NOW), "there is none");
        assert!(overrun.lost(1, NOW));
        assert_eq!(overrun.wakes(NOW), Some(NOW + SILENCE));
        assert_eq!(overrun.wakes(NOW + (PAUSE - SILENCE / 2)), Some(NOW + PAUSE));
        overrun.slept(SILENCE, NOW + SILENCE);
        assert!(overrun.ends(NOW + SILENCE) && overrun.wakes(NOW).is_none());
        assert!(!overrun.lost(2, NOW + VAIN.0), "it was in vain");
        let mut now = NOW + SILENCE + VAIN.0;
        assert!(overrun.lost(3, now), "but may be tried again");
        now += SILENCE;
        overrun.slept(SILENCE, now);
        assert!(overrun.ends(now) && !overrun.lost(4, now + VAIN.0), "and again in vain");
        now += 2 * VAIN.0;
        assert!(overrun.lost(5, now) && overrun.ends(now + PAUSE), "this one brought something");
        assert!(overrun.lost(6, now + PAUSE));
        now += PAUSE + SILENCE;
        overrun.slept(SILENCE, now);
        assert!(overrun.ends(now) && overrun.lost(7, now + VAIN.0), "all is forgotten");
    }
}
