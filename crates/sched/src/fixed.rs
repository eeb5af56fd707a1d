//! Fixed priorities, round robin among equals: Scout's default scheduler (Scout §3.3,
//! SILK §2.1). One queue per priority and one bit per queue that is not empty, so that
//! every operation takes constant time. It must never run a lower priority while a higher
//! one is ready.

use crate::queue::{Chain, Queue};
use crate::{Member, Policy, Refused, Terms};
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;

const LEVELS: usize = Terms::PRIORITIES as usize;

/// Fixed-priority round-robin.
#[derive(Debug)]
pub struct Fixed {
    limit: u32,
    members: Vec<Slot>,
    chain: Chain,
    levels: [Queue; LEVELS],
    /// Bit *p* is set exactly when `levels[p]` is not empty.
    occupied: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    priority: u8,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Idle,
    /// In the queue of its priority.
    Ready,
}

impl Fixed {
    /// A scheduler for the members below `limit`. Memory is taken as they are admitted.
    pub fn new(limit: u32) -> Self {
        Self {
            limit,
            members: Vec::new(),
            chain: Chain::default(),
            levels: [Queue::EMPTY; LEVELS],
            occupied: 0,
        }
    }

    fn enqueue(&mut self, member: Member) {
        let slot = &mut self.members[member.index()];
        slot.state = State::Ready;
        self.chain.push(&mut self.levels[usize::from(slot.priority)], member.0);
        self.occupied |= 1 << slot.priority;
    }

    fn dequeue(&mut self, member: Member) {
        let slot = &mut self.members[member.index()];
        slot.state = State::Idle;
        let level = &mut self.levels[usize::from(slot.priority)];
        self.chain.unlink(level, member.0);
        if level.is_empty() {
            self.occupied &= !(1 << slot.priority);
        }
    }

    fn reach(&mut self, len: usize) {
        if self.members.len() < len {
            self.members.resize(len, Slot { priority: 0, state: State::Absent });
            self.chain.reach(len);
        }
    }

    fn state(&self, member: Member) -> State {
        self.members.get(member.index()).map_or(State::Absent, |slot| slot.state)
    }
}

impl Policy for Fixed {
    fn admit(&mut self, member: Member, terms: Terms) -> Result<(), Refused> {
        if member.0 >= self.limit {
            return Err(Refused::BeyondLimit { limit: self.limit });
        }
        if terms.priority >= Terms::PRIORITIES {
            return Err(Refused::Priority(terms.priority));
        }
        self.reach(member.index() + 1);
        let was_ready = self.state(member) == State::Ready;
        if was_ready {
            self.dequeue(member);
        }
        self.members[member.index()] = Slot { priority: terms.priority, state: State::Idle };
        if was_ready {
            self.enqueue(member);
        }
        Ok(())
    }

    fn remove(&mut self, member: Member) {
        match self.state(member) {
            State::Absent => return,
            State::Idle => {}
            State::Ready => self.dequeue(member),
        }
        self.members[member.index()].state = State::Absent;
    }

    fn ready(&mut self, member: Member, _now: Instant, _deadline: Option<Instant>) {
        if self.state(member) == State::Idle {
            self.enqueue(member);
        }
    }

    fn next(&mut self, _now: Instant) -> Option<Member> {
        let highest = self.occupied.checked_ilog2()?;
        let level = &mut self.levels[highest as usize];
        let id = self.chain.pop(level)?;
        if level.is_empty() {
            self.occupied &= !(1 << highest);
        }
        self.members[id as usize].state = State::Idle;
        Some(Member(id))
    }

    fn charge(&mut self, _member: Member, _used: Duration, _now: Instant) {}

    fn is_idle(&self) -> bool {
        self.occupied == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn with(priorities: &[u8]) -> Fixed {
        let mut fixed = Fixed::new(16);
        for (id, &priority) in (0..).zip(priorities) {
            fixed.admit(Member(id), Terms::with_priority(priority)).unwrap();
            fixed.ready(Member(id), NOW, None);
        }
        fixed
    }

    fn order(fixed: &mut Fixed) -> Vec<u32> {
        core::iter::from_fn(|| fixed.next(NOW)).map(|member| member.0).collect()
    }

    #[test]
    fn higher_priorities_run_first_and_equals_in_turn() {
        assert_eq!(order(&mut with(&[0, 2, 1, 2])), [1, 3, 2, 0]);
    }

    #[test]
    fn a_member_put_back_waits_behind_its_equals() {
        let mut fixed = with(&[5, 5]);
        let first = fixed.next(NOW).unwrap();
        fixed.ready(first, NOW, None);
        assert_eq!(order(&mut fixed), [1, 0]);
    }

    #[test]
    fn being_ready_twice_is_being_ready_once() {
        let mut fixed = with(&[1, 1]);
        fixed.ready(Member(0), NOW, None);
        assert_eq!(order(&mut fixed), [0, 1]);
        assert!(fixed.is_idle());
    }

    #[test]
    fn a_ready_member_moves_with_its_priority() {
        let mut fixed = with(&[1, 2]);
        fixed.admit(Member(0), Terms::with_priority(3)).unwrap();
        assert_eq!(order(&mut fixed), [0, 1]);
    }

    #[test]
    fn a_removed_member_never_runs() {
        let mut fixed = with(&[1, 2]);
        fixed.remove(Member(1));
        fixed.remove(Member(1));
        fixed.ready(Member(1), NOW, None);
        assert_eq!(order(&mut fixed), [0]);
    }

    #[test]
    fn strangers_and_impossible_terms_change_nothing() {
        let mut fixed = Fixed::new(4);
        fixed.ready(Member(900), NOW, None);
        fixed.remove(Member(900));
        assert_eq!(fixed.admit(Member(4), Terms::default()), Err(Refused::BeyondLimit { limit: 4 }));
        assert_eq!(fixed.admit(Member(0), Terms::with_priority(64)), Err(Refused::Priority(64)));
        assert_eq!(fixed.next(NOW), None);
    }
}
