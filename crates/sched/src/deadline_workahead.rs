//! Deadline/workahead scheduling (CM §2.2), for streams of audio and video beside other
//! work. A real-time member works on messages that each have a logical arrival time, and
//! should be done with each a fixed *delay* after it. When the logical arrival of its next
//! message has passed the member is *critical*; when it has a message that has logically
//! not arrived yet it may *work ahead*. In this order: critical members by deadline;
//! interactive ones in turn; those that work ahead, by logical arrival; background ones in
//! turn. Working ahead must never delay what is critical or interactive.

use crate::heap::Heap;
use crate::queue::{Chain, Queue};
use crate::reserve::{Book, WHOLE};
use crate::{Member, Policy, Refused, Terms};
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;

/// Deadline/workahead. A member is real-time when its terms give it a `delay`, else
/// background when they say so, else interactive.
#[derive(Debug)]
pub struct DeadlineWorkahead {
    limit: u32,
    members: Vec<Slot>,
    /// Logically arrived, by deadline.
    critical: Heap,
    /// Not arrived yet, by logical arrival.
    workahead: Heap,
    chain: Chain,
    interactive: Queue,
    background: Queue,
    /// Breaks ties first come, first served.
    arrivals: u64,
    book: Book,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    kind: Kind,
    place: Place,
    reserved: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Absent,
    RealTime { delay: Duration },
    Interactive,
    Background,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Critical,
    Workahead,
    Interactive,
    Background,
}

const ABSENT: Slot = Slot { kind: Kind::Absent, place: Place::Nowhere, reserved: 0 };

impl DeadlineWorkahead {
    /// A scheduler for the members below `limit`. Those that reserve are admitted as long
    /// as the reservations fit the processor: the "hard" variant of CM §3.4.
    pub fn new(limit: u32) -> Self {
        Self::with_capacity(limit, WHOLE)
    }

    /// The same, with `capacity` millionths of the processor open to reservations.
    pub fn with_capacity(limit: u32, capacity: u32) -> Self {
        Self {
            limit,
            members: Vec::new(),
            critical: Heap::default(),
            workahead: Heap::default(),
            chain: Chain::default(),
            interactive: Queue::EMPTY,
            background: Queue::EMPTY,
            arrivals: 0,
            book: Book::new(capacity),
        }
    }

    fn reach(&mut self, len: usize) {
        if self.members.len() < len {
            self.members.resize(len, ABSENT);
            self.chain.reach(len);
            self.critical.reach(len);
            self.workahead.reach(len);
        }
    }

    fn slot(&self, member: Member) -> Slot {
        self.members.get(member.index()).copied().unwrap_or(ABSENT)
    }

    fn take_out(&mut self, member: Member) {
        let place = core::mem::replace(&mut self.members[member.index()].place, Place::Nowhere);
        match place {
            Place::Nowhere => {}
            Place::Critical => drop(self.critical.remove(member.0)),
            Place::Workahead => drop(self.workahead.remove(member.0)),
            Place::Interactive => self.chain.unlink(&mut self.interactive, member.0),
            Place::Background => self.chain.unlink(&mut self.background, member.0),
        }
    }

    fn put(&mut self, member: Member, deadline: Instant, delay: Duration, now: Instant) {
        let arrival = before(deadline, delay);
        let order = self.arrivals;
        self.arrivals += 1;
        self.members[member.index()].place = if arrival <= now {
            self.critical.set(member.0, key(deadline, order));
            Place::Critical
        } else {
            self.workahead.set(member.0, key(arrival, order));
            Place::Workahead
        };
    }

    /// Moves those whose logical arrival has come to the critical ones.
    fn promote(&mut self, now: Instant) {
        while let Some((first, id)) = self.workahead.peek()
            && time_of(first) <= now
        {
            self.workahead.remove(id);
            if let Kind::RealTime { delay } = self.members[id as usize].kind {
                self.put(Member(id), time_of(first) + delay, delay, now);
            }
        }
    }

    /// The deadline of a member in one of the heaps.
    fn deadline_of(&self, member: Member, delay: Duration) -> Option<Instant> {
        match self.slot(member).place {
            Place::Critical => self.critical.key(member.0).map(time_of),
            Place::Workahead => self.workahead.key(member.0).map(|key| time_of(key) + delay),
            _ => None,
        }
    }
}

fn key(time: Instant, order: u64) -> u128 {
    u128::from(time.nanos()) << 64 | u128::from(order)
}

fn time_of(key: u128) -> Instant {
    Instant::from_nanos((key >> 64) as u64)
}

fn before(deadline: Instant, delay: Duration) -> Instant {
    let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
    Instant::from_nanos(deadline.nanos().saturating_sub(delay))
}

impl Policy for DeadlineWorkahead {
    /// A ready member keeps its deadline if it had one; one that becomes real-time is
    /// critical at once.
    fn admit(&mut self, member: Member, terms: Terms) -> Result<(), Refused> {
        if member.0 >= self.limit {
            return Err(Refused::BeyondLimit { limit: self.limit });
        }
        let kind = match (terms.delay, terms.background) {
            (Some(delay), _) => Kind::RealTime { delay },
            (None, true) => Kind::Background,
            (None, false) => Kind::Interactive,
        };
        let old = self.slot(member);
        let reserved = self.book.exchange(old.reserved, terms.reserved)?;
        self.reach(member.index() + 1);
        let was_ready = old.place != Place::Nowhere;
        let deadline = match old.kind {
            Kind::RealTime { delay } => self.deadline_of(member, delay),
            _ => None,
        };
        self.take_out(member);
        self.members[member.index()] = Slot { kind, place: Place::Nowhere, reserved };
        if was_ready {
            self.ready(member, Instant::ZERO, deadline);
        }
        Ok(())
    }

    fn remove(&mut self, member: Member) {
        let slot = self.slot(member);
        if slot.kind != Kind::Absent {
            self.book.release(slot.reserved);
            self.take_out(member);
            self.members[member.index()] = ABSENT;
        }
    }

    fn ready(&mut self, member: Member, now: Instant, deadline: Option<Instant>) {
        let Slot { kind, place, .. } = self.slot(member);
        match kind {
            Kind::Absent => {}
            Kind::RealTime { delay } => {
                let deadline = deadline.unwrap_or(now + delay);
                if self.deadline_of(member, delay).is_none_or(|old| deadline < old) {
                    self.take_out(member);
                    self.put(member, deadline, delay, now);
                }
            }
            Kind::Interactive if place == Place::Nowhere => {
                self.members[member.index()].place = Place::Interactive;
                self.chain.push(&mut self.interactive, member.0);
            }
            Kind::Background if place == Place::Nowhere => {
                self.members[member.index()].place = Place::Background;
                self.chain.push(&mut self.background, member.0);
            }
            Kind::Interactive | Kind::Background => {}
        }
    }

    fn next(&mut self, now: Instant) -> Option<Member> {
        self.promote(now);
        let id = self
            .critical
            .pop()
            .map(|(_, id)| id)
            .or_else(|| self.chain.pop(&mut self.interactive))
            .or_else(|| self.workahead.pop().map(|(_, id)| id))
            .or_else(|| self.chain.pop(&mut self.background))?;
        self.members[id as usize].place = Place::Nowhere;
        Some(Member(id))
    }

    fn charge(&mut self, _member: Member, _used: Duration, _now: Instant) {}

    fn is_idle(&self) -> bool {
        self.critical.is_empty()
            && self.workahead.is_empty()
            && self.interactive.is_empty()
            && self.background.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Members 0 and 1 are real-time with a delay of 10 ms, 2 is interactive, 3 background.
    fn one_of_each() -> DeadlineWorkahead {
        let mut policy = DeadlineWorkahead::new(8);
        let delay = Some(Duration::from_millis(10));
        let real_time = Terms { delay, ..Terms::default() };
        let terms = [real_time, real_time, Terms::default(), Terms { background: true, ..Terms::default() }];
        for (id, terms) in (0..).zip(terms) {
            policy.admit(Member(id), terms).unwrap();
        }
        policy
    }

    fn order(policy: &mut DeadlineWorkahead, now: Instant) -> Vec<u32> {
        core::iter::from_fn(|| policy.next(now)).map(|member| member.0).collect()
    }

    #[test]
    fn working_ahead_comes_after_the_interactive_and_before_the_background() {
        let mut policy = one_of_each();
        policy.ready(Member(3), at(0), None);
        policy.ready(Member(0), at(0), Some(at(30)));
        policy.ready(Member(2), at(0), None);
        policy.ready(Member(1), at(0), None);
        assert_eq!(order(&mut policy, at(0)), [1, 2, 0, 3]);
        assert!(policy.is_idle());
    }

    #[test]
    fn who_works_ahead_becomes_critical_at_its_logical_arrival() {
        let mut policy = one_of_each();
        policy.ready(Member(2), at(0), None);
        policy.ready(Member(0), at(0), Some(at(30)));
        assert_eq!(order(&mut policy, at(20)), [0, 2]);
    }

    #[test]
    fn the_critical_run_by_deadline() {
        let mut policy = one_of_each();
        policy.ready(Member(0), at(5), Some(at(14)));
        policy.ready(Member(1), at(5), Some(at(12)));
        assert_eq!(order(&mut policy, at(5)), [1, 0]);
    }

    #[test]
    fn of_the_critical_with_one_deadline_the_first_to_come_runs_first() {
        let mut policy = DeadlineWorkahead::new(4);
        let delay = Some(Duration::from_millis(10));
        (0..4).for_each(|id| policy.admit(Member(id), Terms { delay, ..Terms::default() }).unwrap());
        for come in [[2, 0, 3, 1], [1, 3, 0, 2]] {
            come.into_iter().for_each(|id| policy.ready(Member(id), at(0), None));
            assert_eq!(order(&mut policy, at(0)), come);
        }
    }

    #[test]
    fn a_ready_member_keeps_its_deadline_on_new_terms() {
        let mut policy = one_of_each();
        policy.ready(Member(0), at(0), Some(at(9)));
        policy.ready(Member(1), at(0), Some(at(8)));
        let delay = Some(Duration::from_millis(20));
        policy.admit(Member(0), Terms { delay, ..Terms::default() }).unwrap();
        assert_eq!(order(&mut policy, at(0)), [1, 0]);
    }

    #[test]
    fn a_ready_member_made_real_time_is_critical_at_once() {
        let mut policy = one_of_each();
        policy.ready(Member(2), at(3), None);
        policy.ready(Member(3), at(3), None);
        let delay = Some(Duration::from_millis(1));
        policy.admit(Member(3), Terms { delay, ..Terms::default() }).unwrap();
        assert_eq!(order(&mut policy, at(3)), [3, 2]);
    }
}
