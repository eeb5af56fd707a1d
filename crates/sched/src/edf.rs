//! Earliest deadline first (Scout §3.3, §4.3; Liu and Layland 1973): the natural policy
//! for a path that moves data from one queue to another at a known rate. While every deadline
//! is met with time to spare it never runs a later one before an earlier one. Members with the same deadline, or
//! with none, run in the order they became ready. What a member has reserved is due by the end of its
//! period, unless its terms say sooner or later: admission by utilisation is for such deadlines.
//!
//! Where more is asked for than there is, that order alone makes *all* members late, and each of
//! them most of the time: whoever is late has the earliest deadline. So while a deadline is all but missed,
//! and for a while after it, a member that uses no more than an equal part of the processor, or than it has reserved, and whose
//! deadline is near, comes before those that use more: what is missing is missing where it is asked for
//! (max-min fairness; docs/design/overload.md).

use crate::heap::Heap;
use crate::recent::Recent;
use crate::reserve::{Book, WHOLE};
use crate::{Member, Policy, Refused, Terms};
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;

/// Where the earliest deadline is nearer than this, or has passed, there may be too little for all.
const SCARCE: Duration = Duration::from_millis(5);
/// Or nearer than this part of a delay by which it was given, if that is less: who is always in a hurry is not always late.
const OF_ITS_DELAY: u32 = 4;
/// And for so long after that.
const LASTS: Duration = Duration::from_secs(1);
/// How far before its deadline a light member then comes first.
const NEAR: Duration = Duration::from_millis(100);

/// Earliest deadline first, with admission by utilisation for members that reserve.
#[derive(Debug)]
pub struct Edf {
    limit: u32,
    members: Vec<Option<Slot>>,
    /// Ready members by deadline, then by arrival.
    ready: Heap,
    /// Those of them that were light when they became ready.
    light: Heap,
    recent: Recent,
    /// Until when light members come first.
    scarce: Instant,
    arrivals: u64,
    book: Book,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// How long after it became ready a member is due that names no deadline.
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
        Self {
            limit,
            members: Vec::new(),
            ready: Heap::default(),
            light: Heap::default(),
            recent: Recent::default(),
            scarce: Instant::ZERO,
            arrivals: 0,
            book: Book::new(capacity),
        }
    }

    fn slot(&self, member: Member) -> Option<Slot> {
        self.members.get(member.index()).copied().flatten()
    }

    /// Who runs now.
    fn choose(&mut self, now: Instant) -> Option<Member> {
        let (first, id) = self.ready.peek()?;
        let delay = self.slot(Member(id)).and_then(|slot| slot.delay);
        if deadline_of(first) < now + delay.map_or(SCARCE, |delay| SCARCE.min(delay / OF_ITS_DELAY)) {
            self.scarce = now + LASTS;
        }
        let near = |key| deadline_of(key) < now + NEAR;
        let light = self.light.peek().filter(|(key, _)| now < self.scarce && near(*key));
        Some(Member(light.map_or(id, |(_, id)| id)))
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
            self.light.reach(member.index() + 1);
            self.recent.reach(member.index() + 1);
        }
        let period = terms.reserved.map(|reservation| reservation.period);
        self.members[member.index()] = Some(Slot { delay: terms.delay.or(period), reserved });
        Ok(())
    }

    fn remove(&mut self, member: Member) {
        let Some(slot) = self.slot(member) else { return };
        self.book.release(slot.reserved);
        self.ready.remove(member.0);
        self.light.remove(member.0);
        self.recent.forget(member.index());
        self.members[member.index()] = None;
    }

    fn ready(&mut self, member: Member, now: Instant, deadline: Option<Instant>) {
        let Some(slot) = self.slot(member) else { return };
        let deadline = deadline.or(slot.delay.map(|delay| now + delay)).unwrap_or(Instant::FAR);
        let waiting = self.ready.key(member.0);
        if waiting.is_none_or(|key| deadline < deadline_of(key)) {
            let key = key(deadline, self.arrivals);
            self.arrivals += 1;
            self.ready.set(member.0, key);
            if self.recent.is_light(member.index(), slot.reserved, now) {
                self.light.set(member.0, key);
            } else {
                self.light.remove(member.0);
            }
        }
    }

    fn next(&mut self, now: Instant) -> Option<Member> {
        let member = self.choose(now)?;
        self.ready.remove(member.0);
        self.light.remove(member.0);
        Some(member)
    }

    fn charge(&mut self, member: Member, used: Duration, now: Instant) {
        self.recent.charge(member.index(), used, now);
    }

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

    /// Members 0 and 1 have used nine times what member 2 has.
    fn with_a_light_one() -> Edf {
        let mut edf = of(3);
        for (id, millis) in [(0, 90), (1, 90), (2, 10)] {
            edf.charge(Member(id), Duration::from_millis(millis), Instant::from_millis(100));
        }
        edf
    }

    #[test]
    fn when_a_deadline_has_passed_a_light_member_whose_own_is_near_comes_first() {
        let mut edf = with_a_light_one();
        let now = Instant::from_millis(200);
        for (id, deadline) in [(0, 199), (1, 190), (2, 290)] {
            edf.ready(Member(id), now, at(deadline));
        }
        let order: Vec<_> = core::iter::from_fn(|| edf.next(now)).map(|member| member.0).collect();
        assert_eq!(order, [2, 1, 0]);
        assert!(edf.is_idle());
    }

    #[test]
    fn while_no_deadline_is_missed_or_its_own_is_far_a_light_member_waits_for_its_turn() {
        let mut edf = with_a_light_one();
        let now = Instant::from_millis(200);
        for (first, own) in [(206, 290), (190, 301)] {
            edf.ready(Member(2), now, at(own));
            edf.ready(Member(0), now, at(first));
            assert_eq!([edf.next(now), edf.next(now)], [Some(Member(0)), Some(Member(2))], "{first} {own}");
        }
    }

    #[test]
    fn a_while_after_the_last_missed_deadline_the_order_is_that_of_deadlines_again() {
        let mut edf = with_a_light_one();
        let mut order = |millis: u64, first: u64| {
            let now = Instant::from_millis(millis);
            for (id, millis) in [(0, 9), (1, 9), (2, 1)] {
                edf.charge(Member(id), Duration::from_millis(millis), now);
            }
            edf.ready(Member(0), now, at(first));
            edf.ready(Member(2), now, at(millis + 90));
            [edf.next(now), edf.next(now)].map(|member| member.map(|member| member.0))
        };
        assert_eq!(order(200, 199), [Some(2), Some(0)]);
        assert_eq!(order(1100, 1150), [Some(2), Some(0)]);
        assert_eq!(order(1300, 1350), [Some(0), Some(2)]);
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

    /// Two thirds of the processor.
    fn two_thirds() -> Terms {
        let reserved = Reservation { budget: Duration::from_millis(2), period: Duration::from_millis(3) };
        Terms { reserved: Some(reserved), ..Terms::default() }
    }

    #[test]
    fn what_is_reserved_is_due_by_the_end_of_its_period() {
        let mut edf = of(3);
        edf.admit(Member(3), two_thirds()).unwrap();
        edf.ready(Member(0), NOW, None);
        edf.ready(Member(1), NOW, at(4));
        edf.ready(Member(2), NOW, at(2));
        edf.ready(Member(3), NOW, None);
        assert_eq!(order(&mut edf), [2, 3, 1, 0]);
    }

    #[test]
    fn who_is_always_in_a_hurry_is_no_sign_that_there_is_too_little() {
        let mut edf = with_a_light_one();
        edf.admit(Member(0), two_thirds()).unwrap();
        let mut order = |waited: u64| {
            let now = Instant::from_millis(2_000 + waited);
            for (id, millis) in [(0, 500), (1, 90), (2, 10)] {
                edf.charge(Member(id), Duration::from_millis(millis), Instant::from_millis(2_000));
            }
            edf.ready(Member(1), Instant::from_millis(2_000), at(2_070));
            edf.ready(Member(0), Instant::from_millis(2_000), None);
            edf.ready(Member(2), Instant::from_millis(2_000), at(2_090));
            [(); 3].map(|()| edf.next(now).map(|member| member.0))
        };
        // Due three milliseconds after it was ready.
        assert_eq!(order(2), [Some(0), Some(1), Some(2)]);
        assert_eq!(
            order(3),
            [Some(1), Some(2), Some(0)],
            "it is all but late, and uses more than it has reserved"
        );
    }

    #[test]
    fn where_there_is_too_little_who_uses_what_it_has_reserved_comes_before_those_that_use_more_than_their_part()
     {
        let mut edf = of(3);
        edf.admit(Member(0), two_thirds()).unwrap();
        for (id, millis) in [(0, 600), (1, 350), (2, 10)] {
            edf.charge(Member(id), Duration::from_millis(millis), Instant::from_millis(900));
        }
        let now = Instant::from_millis(999);
        edf.ready(Member(0), now, at(1_090));
        edf.ready(Member(1), now, at(998));
        edf.ready(Member(2), now, at(1_095));
        assert_eq!([(); 3].map(|()| edf.next(now).map(|member| member.0)), [Some(0), Some(2), Some(1)]);
    }

    #[test]
    fn a_delay_or_a_deadline_comes_before_the_period() {
        let mut edf = of(2);
        edf.admit(Member(2), Terms { delay: Some(Duration::from_millis(7)), ..two_thirds() }).unwrap();
        edf.ready(Member(0), NOW, at(6));
        edf.ready(Member(1), NOW, at(8));
        edf.ready(Member(2), NOW, None);
        assert_eq!(order(&mut edf), [0, 2, 1]);
        edf.admit(Member(2), two_thirds()).unwrap();
        edf.ready(Member(0), NOW, at(6));
        edf.ready(Member(2), NOW, at(9));
        assert_eq!(order(&mut edf), [0, 2]);
    }

    #[test]
    fn without_its_reservation_a_member_has_no_deadline_from_it() {
        let mut edf = of(1);
        edf.admit(Member(1), two_thirds()).unwrap();
        assert!(matches!(edf.admit(Member(2), two_thirds()), Err(Refused::Overcommitted { .. })));
        edf.admit(Member(2), Terms { reserved: None, ..two_thirds() }).unwrap();
        edf.ready(Member(2), NOW, None);
        edf.ready(Member(0), NOW, at(1_000_000));
        edf.ready(Member(1), NOW, None);
        assert_eq!(order(&mut edf), [1, 0, 2]);
    }

    #[test]
    fn what_a_removed_member_reserved_is_free_again() {
        let (mut edf, two_thirds) = (Edf::new(16), two_thirds());
        edf.admit(Member(0), two_thirds).unwrap();
        assert!(matches!(edf.admit(Member(1), two_thirds), Err(Refused::Overcommitted { .. })));
        edf.remove(Member(0));
        assert_eq!(edf.admit(Member(1), two_thirds), Ok(()));
    }
}
