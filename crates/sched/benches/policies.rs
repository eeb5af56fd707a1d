//! Question: what does one scheduling decision cost (`ready`, `next`, `charge`)? Unit:
//! nanoseconds per decision, the least of several rounds, with few and with many members
//! ready. Peer: the first row, a `VecDeque` that knows no policy. Prints a table; asserts
//! nothing.

use silk_instant::Instant;
use silk_sched::{Bert, DeadlineWorkahead, Edf, Fixed, Member, Policy, Reservation, Shares, Terms, Wfq};
use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;

const QUANTUM: Duration = Duration::from_micros(50);
const DECISIONS: u32 = 200_000;
const ROUNDS: usize = 7;

/// First in, first out.
struct Plain(VecDeque<Member>);

impl Policy for Plain {
    fn admit(&mut self, _: Member, _: Terms) -> Result<(), silk_sched::Refused> {
        Ok(())
    }
    fn remove(&mut self, _: Member) {}
    fn ready(&mut self, member: Member, _: Instant, _: Option<Instant>) {
        self.0.push_back(member);
    }
    fn next(&mut self, _: Instant) -> Option<Member> {
        self.0.pop_front()
    }
    fn charge(&mut self, _: Member, _: Duration, _: Instant) {}
    fn is_idle(&self) -> bool {
        self.0.is_empty()
    }
}

fn terms(id: u32) -> Terms {
    Terms {
        priority: (id % 3) as u8,
        weight: 1 + id % 5,
        reserved: (id < 8).then_some(Reservation { budget: QUANTUM, period: QUANTUM * 10 }),
        delay: id.is_multiple_of(2).then_some(Duration::from_millis(1)),
        important: id.is_multiple_of(4),
        ..Terms::default()
    }
}

/// Nanoseconds per decision with `members` of them always ready.
fn measure(policy: &mut dyn Policy, members: u32) -> f64 {
    let mut now = Instant::ZERO;
    for id in 0..members {
        policy.admit(Member(id), terms(id)).expect("the terms fit every policy");
        policy.ready(Member(id), now, None);
    }
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = std::time::Instant::now();
        for step in 0..DECISIONS {
            let member = policy.next(now).expect("somebody is always ready");
            now += Duration::from_nanos(1000);
            policy.charge(member, Duration::from_nanos(u64::from(500 + step % 512)), now);
            policy.ready(black_box(member), now, Some(now + Duration::from_micros(u64::from(step % 97))));
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(DECISIONS));
    }
    best
}

fn policies(limit: u32) -> Vec<(&'static str, Box<dyn Policy>)> {
    let half = || -> Vec<(u32, Box<dyn Policy + Send>)> {
        vec![(500_000, Box::new(Fixed::new(limit))), (500_000, Box::new(Edf::new(limit)))]
    };
    vec![
        ("plain queue", Box::new(Plain(VecDeque::new()))),
        ("fixed", Box::new(Fixed::new(limit))),
        ("edf", Box::new(Edf::new(limit))),
        ("wfq", Box::new(Wfq::new(limit, QUANTUM))),
        ("bert", Box::new(Bert::new(limit, QUANTUM, 900_000))),
        ("deadline-workahead", Box::new(DeadlineWorkahead::new(limit))),
        ("shares(fixed, edf)", Box::new(Shares::new(QUANTUM, half()).expect("two halves are a whole"))),
    ]
}

fn main() {
    println!("{:<20} {:>9} {:>9} {:>9}  ns per decision, members ready", "policy", 2, 100, 10_000);
    for which in 0..policies(1).len() {
        let mut row = Vec::new();
        let mut name = "";
        for members in [2, 100, 10_000] {
            let (label, mut policy) = policies(members).swap_remove(which);
            name = label;
            row.push(measure(&mut *policy, members));
        }
        println!("{name:<20} {:>9.1} {:>9.1} {:>9.1}", row[0], row[1], row[2]);
    }
}
