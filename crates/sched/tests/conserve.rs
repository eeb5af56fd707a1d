//! Whatever is called in whatever order, every policy chooses exactly the members that are
//! ready: none is lost, none is invented, none runs twice for once being ready.

use proptest::collection::vec;
use proptest::prelude::*;
use silk_instant::Instant;
use silk_sched::{Bert, DeadlineWorkahead, Edf, Fixed, Member, Policy, Reservation, Shares, Terms, Wfq};
use std::collections::BTreeSet;
use std::time::Duration;

const MEMBERS: u32 = 10;
const QUANTUM: Duration = Duration::from_micros(100);

#[derive(Clone, Debug)]
enum Call {
    Admit(u32, Terms),
    Remove(u32),
    Ready(u32, Option<u64>),
    Next,
    Charge(u64),
}

fn terms() -> impl Strategy<Value = Terms> {
    let reserved = proptest::option::of((1u64..400, 100u64..2000)).prop_map(|reserved| {
        reserved.map(|(budget, period)| Reservation {
            budget: Duration::from_micros(budget),
            period: Duration::from_micros(period),
        })
    });
    let delay = proptest::option::of((1u64..500).prop_map(Duration::from_micros));
    (0u8..70, 0u32..50, reserved, delay, any::<(bool, bool)>(), 0u8..4).prop_map(
        |(priority, weight, reserved, delay, (important, background), policy)| Terms {
            priority,
            weight,
            reserved,
            delay,
            important,
            background,
            policy,
        },
    )
}

fn call() -> impl Strategy<Value = Call> {
    let member = 0..MEMBERS + 2;
    prop_oneof![
        2 => (member.clone(), terms()).prop_map(|(member, terms)| Call::Admit(member, terms)),
        1 => member.clone().prop_map(Call::Remove),
        5 => (member, proptest::option::of(0u64..5000)).prop_map(|(m, deadline)| Call::Ready(m, deadline)),
        4 => Just(Call::Next),
        4 => (0u64..300).prop_map(Call::Charge),
    ]
}

/// Calls `policy` and checks what it chooses; afterwards it is drained.
fn check(mut policy: impl Policy, calls: &[Call]) -> Result<(), TestCaseError> {
    let (mut admitted, mut ready) = (BTreeSet::new(), BTreeSet::new());
    let mut running = None;
    let mut now = Instant::ZERO;
    for call in calls {
        now += Duration::from_micros(7);
        match call {
            Call::Admit(member, terms) => {
                if policy.admit(Member(*member), *terms).is_ok() {
                    prop_assert!(*member < MEMBERS);
                    admitted.insert(*member);
                }
            }
            Call::Remove(member) => {
                policy.remove(Member(*member));
                admitted.remove(member);
                ready.remove(member);
            }
            Call::Ready(member, deadline) => {
                policy.ready(Member(*member), now, deadline.map(Instant::from_micros));
                if admitted.contains(member) {
                    ready.insert(*member);
                }
            }
            Call::Next if running.is_none() => {
                let chosen = policy.next(now).map(|member| member.0);
                prop_assert_eq!(chosen.is_none(), ready.is_empty());
                prop_assert!(chosen.is_none_or(|member| ready.remove(&member)), "{:?} was not ready", chosen);
                running = chosen;
            }
            Call::Next => {}
            Call::Charge(micros) => {
                if let Some(member) = running.take() {
                    policy.charge(Member(member), Duration::from_micros(*micros), now);
                }
            }
        }
        if running.is_none() {
            prop_assert_eq!(policy.is_idle(), ready.is_empty());
        }
    }
    if let Some(member) = running {
        policy.charge(Member(member), QUANTUM, now);
    }
    while let Some(Member(member)) = policy.next(now) {
        prop_assert!(ready.remove(&member));
        policy.charge(Member(member), QUANTUM, now);
    }
    prop_assert_eq!(ready, BTreeSet::new());
    Ok(())
}

proptest! {
    #[test]
    fn no_member_is_lost_or_invented(calls in vec(call(), 0..250)) {
        check(Fixed::new(MEMBERS), &calls)?;
        check(Edf::new(MEMBERS), &calls)?;
        check(Wfq::new(MEMBERS, QUANTUM), &calls)?;
        check(Bert::new(MEMBERS, QUANTUM, 900_000), &calls)?;
        check(DeadlineWorkahead::new(MEMBERS), &calls)?;
        let policies: Vec<(u32, Box<dyn Policy + Send>)> = vec![
            (200_000, Box::new(Fixed::new(MEMBERS))),
            (300_000, Box::new(Bert::new(MEMBERS, QUANTUM, 500_000))),
            (500_000, Box::new(DeadlineWorkahead::new(MEMBERS))),
        ];
        check(Shares::new(QUANTUM, policies).unwrap(), &calls)?;
    }
}
