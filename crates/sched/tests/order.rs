//! The policies that order by a key, against references that search all members for the
//! one that should run: fixed priority, earliest deadline first and deadline/workahead.

use proptest::collection::vec;
use proptest::prelude::*;
use silk_instant::Instant;
use silk_sched::{DeadlineWorkahead, Edf, Fixed, Member, Policy, Terms};
use std::time::Duration;

const MEMBERS: u32 = 8;

#[derive(Clone, Copy, Debug)]
enum Call {
    Admit { member: u32, class: u8 },
    Remove { member: u32 },
    Ready { member: u32, deadline: Option<u64> },
    Next,
}

fn call() -> impl Strategy<Value = Call> {
    let member = 0..MEMBERS;
    prop_oneof![
        1 => (member.clone(), 0u8..4).prop_map(|(member, class)| Call::Admit { member, class }),
        1 => member.clone().prop_map(|member| Call::Remove { member }),
        4 => (member, proptest::option::of(0u64..300))
            .prop_map(|(member, deadline)| Call::Ready { member, deadline }),
        3 => Just(Call::Next),
    ]
}

/// One entry of the reference: a ready member, when it was made so, and its deadline.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    member: u32,
    order: usize,
    deadline: Instant,
}

/// Everything ready, in no order at all.
#[derive(Default)]
struct Reference {
    classes: [Option<u8>; MEMBERS as usize],
    waiting: Vec<Waiting>,
}

impl Reference {
    fn class(&self, member: u32) -> u8 {
        self.classes[member as usize].unwrap_or_default()
    }

    fn remove(&mut self, member: u32) {
        self.classes[member as usize] = None;
        self.waiting.retain(|waiting| waiting.member != member);
    }

    /// A second call counts only if `tighten` is set and it makes the deadline earlier.
    fn ready(&mut self, member: u32, order: usize, deadline: Instant, tighten: bool) {
        if self.classes[member as usize].is_none() {
            return;
        }
        match self.waiting.iter_mut().find(|waiting| waiting.member == member) {
            None => self.waiting.push(Waiting { member, order, deadline }),
            Some(old) if tighten && deadline < old.deadline => *old = Waiting { member, order, deadline },
            Some(_) => {}
        }
    }

    /// Takes out the one whose `key` is smallest, first come first served among equals.
    fn next<K: Ord>(&mut self, key: impl Fn(&Self, &Waiting) -> K) -> Option<u32> {
        let best =
            (0..self.waiting.len()).min_by_key(|&i| (key(self, &self.waiting[i]), self.waiting[i].order))?;
        Some(self.waiting.swap_remove(best).member)
    }
}

fn at(micros: Option<u64>) -> Option<Instant> {
    micros.map(Instant::from_micros)
}

proptest! {
    #[test]
    fn fixed_never_runs_a_lower_priority_first_and_equals_in_turn(calls in vec(call(), 0..200)) {
        let mut fixed = Fixed::new(MEMBERS);
        let mut reference = Reference::default();
        for (order, call) in calls.into_iter().enumerate() {
            match call {
                Call::Admit { member, class } => {
                    fixed.admit(Member(member), Terms::with_priority(class)).unwrap();
                    reference.classes[member as usize] = Some(class);
                    // New terms put a ready member behind its new equals.
                    if let Some(old) = reference.waiting.iter_mut().find(|w| w.member == member) {
                        old.order = order;
                    }
                }
                Call::Remove { member } => {
                    fixed.remove(Member(member));
                    reference.remove(member);
                }
                Call::Ready { member, deadline } => {
                    fixed.ready(Member(member), Instant::ZERO, at(deadline));
                    reference.ready(member, order, Instant::FAR, false);
                }
                Call::Next => {
                    let expected = reference.next(|all, w| std::cmp::Reverse(all.class(w.member)));
                    prop_assert_eq!(fixed.next(Instant::ZERO), expected.map(Member));
                }
            }
            prop_assert_eq!(fixed.is_idle(), reference.waiting.is_empty());
        }
    }

    #[test]
    fn edf_never_runs_a_later_deadline_first(calls in vec(call(), 0..200)) {
        let mut edf = Edf::new(MEMBERS);
        let mut reference = Reference::default();
        for (order, call) in calls.into_iter().enumerate() {
            match call {
                Call::Admit { member, class } => {
                    edf.admit(Member(member), Terms::default()).unwrap();
                    reference.classes[member as usize] = Some(class);
                }
                Call::Remove { member } => {
                    edf.remove(Member(member));
                    reference.remove(member);
                }
                Call::Ready { member, deadline } => {
                    edf.ready(Member(member), Instant::ZERO, at(deadline));
                    reference.ready(member, order, at(deadline).unwrap_or(Instant::FAR), true);
                }
                Call::Next => {
                    let expected = reference.next(|_, w| w.deadline);
                    prop_assert_eq!(edf.next(Instant::ZERO), expected.map(Member));
                }
            }
            prop_assert_eq!(edf.is_idle(), reference.waiting.is_empty());
        }
    }

    /// Members 0 to 3 are real-time with a delay of 50 µs, 4 and 5 interactive, 6 and 7
    /// background; a microsecond passes with every call.
    #[test]
    fn working_ahead_delays_nothing_that_is_due(calls in vec(call(), 0..200)) {
        const DELAY: Duration = Duration::from_micros(50);
        let mut policy = DeadlineWorkahead::new(MEMBERS);
        let mut reference = Reference::default();
        for member in 0..MEMBERS {
            let delay = (member < 4).then_some(DELAY);
            let terms = Terms { delay, background: member >= 6, ..Terms::default() };
            policy.admit(Member(member), terms).unwrap();
            reference.classes[member as usize] = Some(0);
        }
        for (order, call) in calls.into_iter().enumerate() {
            let now = Instant::from_micros(order as u64);
            match call {
                Call::Admit { .. } | Call::Remove { .. } => {}
                Call::Ready { member, deadline } => {
                    policy.ready(Member(member), now, at(deadline));
                    let deadline = at(deadline).unwrap_or(now + DELAY);
                    reference.ready(member, order, deadline, member < 4);
                }
                Call::Next => {
                    let rank = |w: &Waiting| match w.member {
                        0..4 if w.deadline <= now + DELAY => (0, w.deadline),
                        0..4 => (2, w.deadline),
                        4 | 5 => (1, Instant::ZERO),
                        _ => (3, Instant::ZERO),
                    };
                    let chosen = policy.next(now).map(|member| member.0);
                    let expected = reference.waiting.iter().map(rank).min();
                    let at = reference.waiting.iter().position(|w| Some(w.member) == chosen);
                    let got = at.map(|at| rank(&reference.waiting.swap_remove(at)));
                    prop_assert_eq!(got, expected);
                }
            }
            prop_assert_eq!(policy.is_idle(), reference.waiting.is_empty());
        }
    }
}
