//! Earliest deadline first (Scout §3.3, §4.3; Liu and Layland 1973): the natural policy
//! for a path that moves data from one queue to another at a known rate. It must never run
//! a later deadline before an earlier one. Members with the same deadline, or with none,
//! run in the order they became ready.

use crate::heap::Heap;
use crate::reserve::{Book, WHOLE};
use crate::{Member, Policy, Refused, Terms};
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;

/// Earliest deadline first, with admission by utilisation for members that reserve.
#[derive(Debug)]
pub struct Edf {
    limit: u32,
    members: Vec<Option<Slot>>,
    /// Ready members by deadline, then by arrival.
    ready: Heap,
    arrivals: u64,
    book: Book,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    delay: Option<Duration>,
    /// In millionths of the processor.
    reserved: u32,
}

impl Edf {
    /// A scheduler for the members below `limit`, all of the processor open to
    /// reservations.
    pub fn new(limit: u32) -> Self {
        Self::with_capacity(limit, WHOLE)
    }

    /// The same, with `capacity` millionths of the processor open to reservations.
    pub fn with_capacity(limit: u32, capacity: u32) -> Self {
        Self { limit, members: Vec::new(), ready: Heap::default(), arrivals: 0, book: Book::new(capacity) }
    }

    fn slot(&self, member: Member) -> Option<Slot> {
        self.members.get(member.index()).copied().flatten()
    }
}

/// Deadlines in the upper half, arrivals in the lower.
fn key(deadline: Instant, arrival: u64) -> u128 {
    u128::from(deadline.nanos()) << 64 | u128::from(arrival)
}

fn deadline_of(key: u128) -> Instant {
    Instant::from_nanos((key >> 64) as u64)
}

impl Policy for Edf {
    fn admit(&mut self, member: Member, terms: Terms) -> Result<(), Refused> {
        if member.0 >= self.limit {
            return Err(Refused::BeyondLimit { limit: self.limit });
        }
        let old = self.slot(member).map_or(0, |slot| slot.reserved);
        let reserved = self.book.exchange(old, terms.reserved)?;
        if self.members.len() <= member.index() {
            self.members.resize(member.index() + 1, None);
            self.ready.reach(member.index() + 1);
        }
        self.members[member.index()] = Some(Slot { delay: terms.delay, reserved });
        Ok(())
    }

    fn remove(&mut self, member: Member) {
        let Some(slot) = self.slot(member) else { return };
        self.book.release(slot.reserved);
        self.ready.remove(member.0);
        self.members[member.index()] = None;
    }

    fn ready(&mut self, member: Member, now: Instant, deadline: Option<Instant>) {
        let Some(slot) = self.slot(member) else { return };
        let deadline = deadline.or(slot.delay.map(|delay| now + delay)).unwrap_or(Instant::FAR);
        let waiting = self.ready.key(member.0);
        if waiting.is_none_or(|key| deadline < deadline_of(key)) {
            self.ready.set(member.0, key(deadline, self.arrivals));
            self.arrivals += 1;
        }
    }

    fn next(&mut self, _now: Instant) -> Option<Member> {
        self.ready.pop().map(|(_, id)| Member(id))
    }

    fn charge(&mut self, _member: Member, _used: Duration, _now: Instant) {}

    fn is_idle(&self) -> bool {
        self.ready.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reservation;

    const NOW: Instant = Instant::ZERO;

    fn of(members: u32) -> Edf {
        let mut edf = Edf::new(16);
        (0..members).for_each(|id| edf.admit(Member(id), Terms::default()).unwrap());
        edf
    }

    fn order(edf: &mut Edf) -> Vec<u32> {
        core::iter::from_fn(|| edf.next(NOW)).map(|member| member.0).collect()
    }

    fn at(millis: u64) -> Option<Instant> {
        Some(Instant::from_millis(millis))
    }

    #[test]
    fn the_earliest_deadline_runs_first_and_no_deadline_last() {
        let mut edf = of(4);
        edf.ready(Member(0), NOW, None);
        edf.ready(Member(1), NOW, at(9));
        edf.ready(Member(2), NOW, at(3));
        edf.ready(Member(3), NOW, None);
        assert_eq!(order(&mut edf), [2, 1, 0, 3]);
    }

    #[test]
    fn a_waiting_members_deadline_can_only_become_earlier() {
        let mut edf = of(2);
        edf.ready(Member(0), NOW, at(5));
        edf.ready(Member(1), NOW, at(4));
        edf.ready(Member(1), NOW, at(8));
        assert_eq!(edf.next(NOW), Some(Member(1)));
        edf.ready(Member(1), NOW, at(8));
        edf.ready(Member(1), NOW, at(2));
        assert_eq!(order(&mut edf), [1, 0]);
    }

    #[test]
    fn the_delay_of_the_terms_stands_in_for_a_missing_deadline() {
        let mut edf = of(1);
        let delay = Some(Duration::from_millis(2));
        edf.admit(Member(1), Terms { delay, ..Terms::default() }).unwrap();
        edf.ready(Member(0), NOW, at(3));
        edf.ready(Member(1), NOW, None);
        assert_eq!(order(&mut edf), [1, 0]);
    }

    #[test]
    fn what_a_removed_member_reserved_is_free_again() {
        let mut edf = Edf::new(16);
        let two_thirds = Terms {
            reserved: Some(Reservation {
                budget: Duration::from_millis(2),
                period: Duration::from_millis(3),
            }),
            ..Terms::default()
        };
        edf.admit(Member(0), two_thirds).unwrap();
        assert!(matches!(edf.admit(Member(1), two_thirds), Err(Refused::Overcommitted { .. })));
        edf.remove(Member(0));
        assert_eq!(edf.admit(Member(1), two_thirds), Ok(()));
    }
}
