//! The book of what is reserved of the processor: the schedulability test by utilisation
//! of Liu and Layland for earliest deadline first (the "hard" variant of CM §3.4), kept in
//! millionths so that it is exact and the same for every policy.

use crate::{Refused, Reservation};

/// One, in millionths.
pub(crate) const WHOLE: u32 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Book {
    capacity: u32,
    /// Never more than `capacity`.
    reserved: u32,
}

impl Book {
    /// A book in which `capacity` millionths may be reserved.
    pub(crate) fn new(capacity: u32) -> Self {
        Self { capacity: capacity.min(WHOLE), reserved: 0 }
    }

    pub(crate) fn left(&self) -> u32 {
        self.capacity - self.reserved
    }

    pub(crate) fn reserved(&self) -> u32 {
        self.reserved
    }

    /// Replaces a reservation of `old` millionths by `new`, or changes nothing.
    pub(crate) fn exchange(&mut self, old: u32, new: Option<Reservation>) -> Result<u32, Refused> {
        let asked = new.map_or(Ok(0), millionths)?;
        let left = self.left() + old;
        if asked > left {
            return Err(Refused::Overcommitted { asked, left });
        }
        self.reserved = self.reserved - old + asked;
        Ok(asked)
    }

    /// Gives back `old` millionths.
    pub(crate) fn release(&mut self, old: u32) {
        self.reserved -= old;
    }
}

/// The part of the processor a reservation needs, rounded up.
pub(crate) fn millionths(reservation: Reservation) -> Result<u32, Refused> {
    let (budget, period) = (reservation.budget.as_nanos(), reservation.period.as_nanos());
    if budget == 0 || budget > period {
        return Err(Refused::Reservation(reservation));
    }
    Ok((budget * u128::from(WHOLE)).div_ceil(period) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn of(budget: u64, period: u64) -> Option<Reservation> {
        Some(Reservation { budget: Duration::from_micros(budget), period: Duration::from_micros(period) })
    }

    #[test]
    fn the_sum_never_passes_the_capacity() {
        let mut book = Book::new(900_000);
        assert_eq!(book.exchange(0, of(1, 2)), Ok(500_000));
        assert_eq!(book.exchange(0, of(1, 2)), Err(Refused::Overcommitted { asked: 500_000, left: 400_000 }));
        assert_eq!(book.exchange(500_000, of(9, 10)), Ok(900_000));
        book.release(900_000);
        assert_eq!(book.left(), 900_000);
    }

    #[test]
    fn an_impossible_reservation_is_refused() {
        for (budget, period) in [(0, 1), (2, 1), (0, 0)] {
            assert_eq!(
                Book::new(WHOLE).exchange(0, of(budget, period)),
                Err(Refused::Reservation(of(budget, period).unwrap()))
            );
        }
    }
}
