//! What a program at a real-time priority owes all others: some of the time, for the kernel stops real-time threads
//! for long where they use more than 95 % of a second (sched(7)). It is paid in short sleeps; what the program sleeps
//! for want of work counts too.

use std::time::Duration;

/// The least that is paid at a time: a shorter sleep costs more than it gives.
const LEAST: Duration = Duration::from_micros(700);
/// Of a hundred parts of the time, those that it may work: fewer than the kernel grants, for a sleep is
/// not over at the microsecond.
const WORK: u32 = 93;

/// Time owed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Debt(Duration);

impl Debt {
    /// It has worked so long.
    pub fn worked(&mut self, time: Duration) {
        self.0 += time.min(MOST) * (100 - WORK) / WORK;
    }

    /// It has slept so long. Sleep is no credit for later: a second's account knows nothing of the one before.
    pub fn slept(&mut self, time: Duration) {
        self.0 = self.0.saturating_sub(time);
    }

    /// How long to sleep now, although there may be work; zero: go on.
    pub fn due(&self) -> Duration {
        if self.0 >= LEAST { self.0 } else { Duration::ZERO }
    }
}

/// The longest time of work that counts: whoever was stopped for long has not worked.
const MOST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const MILLIS: Duration = Duration::from_millis(1);

    /// Works in pieces with a short sleep after each, for a second; the part of it that was work.
    fn second(piece: Duration, pause: Duration) -> f64 {
        let (mut debt, mut work, mut all) = (Debt::default(), Duration::ZERO, Duration::ZERO);
        while all < MILLIS * 1000 {
            debt.worked(piece);
            let sleep = debt.due().max(pause);
            debt.slept(sleep);
            (work, all) = (work + piece, all + piece + sleep);
        }
        work.as_secs_f64() / all.as_secs_f64()
    }

    #[test]
    fn others_have_their_part_however_the_work_comes() {
        for piece in [MILLIS / 10, MILLIS * 2, MILLIS * 9, MILLIS * 30] {
            for pause in [Duration::ZERO, MILLIS / 100, MILLIS / 20] {
                let share = second(piece, pause);
                assert!(share <= 0.94, "{share} of the time in pieces of {piece:?} with {pause:?} between");
            }
        }
    }

    #[test]
    fn one_that_sleeps_enough_is_not_held_up() {
        let mut debt = Debt::default();
        for _ in 0..1000 {
            debt.worked(MILLIS);
            assert_eq!(debt.due(), Duration::ZERO);
            debt.slept(MILLIS / 10);
        }
        debt.slept(MILLIS * 1000);
        debt.worked(MILLIS * 10);
        assert!(debt.due() >= LEAST, "a long sleep is no credit");
    }
}
