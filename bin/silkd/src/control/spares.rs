//! Sockets made ready beforehand. A process that connects often to an address gets some with its
//! answer, each with its port, rings and slot; the executor knows them too. To connect, the process
//! claims one in shared memory and rings, and asks nobody (`docs/design/spares.md`).
//!
//! Whoever changes a spare's `SPARE` in [`Slot::status`](silk_stream::Slot::status) has it: the process,
//! or the control thread, which takes back what nobody has wanted for a while.

use silk_control::SlotNumber;
use silk_stream::{Arena, Slot, status};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Connections that come sooner one after the other are often.
const OFTEN: Duration = Duration::from_millis(100);
/// What is not wanted for so long is taken back.
pub const UNWANTED: Duration = Duration::from_secs(2);

/// How often a process asks to connect.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habit {
    last: Option<Instant>,
    /// How many times it has asked soon after the time before.
    streak: u32,
}

impl Habit {
    /// It asks once more; how many spares it is worth.
    pub fn asks(&mut self, now: Instant) -> usize {
        let often = self.last.is_some_and(|last| now.duration_since(last) < OFTEN);
        self.streak = if often { self.streak.saturating_add(1) } else { 0 };
        self.last = Some(now);
        match self.streak {
            0..4 => 0,
            4..8 => 8,
            _ => 32,
        }
    }
}

/// The control thread's list of a family's spares, the oldest first. Some may have been claimed since.
#[derive(Default)]
pub struct Book(VecDeque<(SlotNumber, u32, Instant)>);

impl Book {
    /// One more was made just now.
    pub fn add(&mut self, slot: SlotNumber, generation: u32) {
        self.0.push_back((slot, generation, Instant::now()));
    }

    /// Those that nobody has claimed, and nobody can any more, of which the time came before this.
    pub fn unwanted(&mut self, arena: &Arena, before: Option<Instant>) -> Vec<SlotNumber> {
        let mut back = Vec::new();
        while let Some(&(slot, generation, since)) = self.0.front()
            && before.is_none_or(|before| since < before)
        {
            self.0.pop_front();
            let is_back = arena.slot(slot).is_some_and(|record| take_back(record, generation));
            back.extend(is_back.then_some(slot));
        }
        back
    }
}

/// Takes a spare away from whoever might claim it; whether it still was one.
fn take_back(slot: &Slot, generation: u32) -> bool {
    slot.generation.load(SeqCst) == generation
        && slot.status.compare_exchange(status::SPARE, 0, SeqCst, SeqCst).is_ok()
}

/// Whether this slot's socket is one that nobody has claimed.
pub fn is_spare(slot: &Slot) -> bool {
    slot.status.load(SeqCst) & status::SPARE != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_often_gets_more_and_who_pauses_none() {
        let (mut habit, mut now) = (Habit::default(), Instant::now());
        let mut asks = |pause: Duration| {
            now += pause;
            habit.asks(now)
        };
        let counts: Vec<_> = (0..10).map(|_| asks(OFTEN / 2)).collect();
        assert_eq!(counts, [0, 0, 0, 0, 8, 8, 8, 8, 32, 32]);
        assert_eq!((asks(OFTEN), asks(OFTEN / 2)), (0, 0));
    }

    #[test]
    fn a_spare_is_claimed_or_taken_back_but_not_both() {
        let slot = Slot::default();
        slot.generation.store(7, SeqCst);
        slot.status.store(status::SPARE, SeqCst);
        assert!(is_spare(&slot) && !take_back(&slot, 6), "another use of the slot");
        let claims =
            || slot.status.compare_exchange(status::SPARE, status::CONNECTING, SeqCst, SeqCst).is_ok();
        assert!(take_back(&slot, 7) && !claims());
        slot.status.store(status::SPARE, SeqCst);
        assert!(claims() && !take_back(&slot, 7) && !is_spare(&slot));
    }
}
