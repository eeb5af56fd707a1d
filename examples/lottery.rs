//! A scheduling policy of one's own: lottery scheduling (Waldspurger & Weihl, OSDI 1994).
//! Every ready member holds as many tickets as its weight; each decision draws one ticket and
//! its holder runs. Over many runs each member gets its part of them, nobody starves, and a
//! member that was idle has saved up nothing. What is shared is *runs*, not time: it must not
//! be used where runs differ much in length.
//!
//! `cargo run -p silk-sched --example lottery` draws and prints the shares;
//! `cargo test -p silk-sched --example lottery` tests it. To have it in the daemon: a file in
//! `crates/sched/src`, a name in `crates/config/src/scheduler.rs`, a line in
//! `bin/silkd/src/stack.rs` (see CONTRIBUTING.md).

use silk_instant::Instant;
use silk_sched::{Member, Policy, Refused, Terms};
use std::time::Duration;

/// Tickets of the ready members, as a binary indexed tree (Fenwick 1994): entering, leaving
/// and finding the holder of a ticket cost the logarithm of the number of members.
#[derive(Default)]
struct Tickets {
    // Invariant: sums[n - 1] holds the tickets of the members (n - lowest set bit of n) .. n.
    // The length is a power of two, or zero.
    sums: Vec<u64>,
    total: u64,
}

impl Tickets {
    /// Makes room for members below `len`, all of whom have left.
    fn reach(&mut self, len: usize) {
        self.sums = vec![0; len.next_power_of_two()];
        self.total = 0;
    }

    fn enter(&mut self, member: Member, tickets: u32) {
        self.total += u64::from(tickets);
        self.each_sum_of(member, |sum| *sum += u64::from(tickets));
    }

    fn leave(&mut self, member: Member, tickets: u32) {
        self.total -= u64::from(tickets);
        self.each_sum_of(member, |sum| *sum -= u64::from(tickets));
    }

    fn each_sum_of(&mut self, member: Member, change: impl Fn(&mut u64)) {
        let mut n = member.0 as usize + 1;
        while let Some(sum) = self.sums.get_mut(n - 1) {
            change(sum);
            n += n & n.wrapping_neg();
        }
    }

    /// Who holds ticket number `ticket`, which is below the total.
    fn holder(&self, mut ticket: u64) -> Member {
        let mut below = 0;
        let mut step = self.sums.len();
        while step > 0 {
            match self.sums.get(below + step - 1) {
                Some(&sum) if sum <= ticket => {
                    ticket -= sum;
                    below += step;
                }
                _ => {}
            }
            step /= 2;
        }
        Member(below as u32)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Idle,
    /// Its tickets are in the draw.
    Ready,
}

#[derive(Clone, Copy)]
struct Slot {
    tickets: u32,
    state: State,
}

/// The policy.
pub struct Lottery {
    limit: u32,
    members: Vec<Slot>,
    ready: Tickets,
    random: u64,
}

impl Lottery {
    /// A lottery among the members below `limit`, drawn from `seed`. Randomness is an
    /// argument: the same seed draws the same winners.
    pub fn new(limit: u32, seed: u64) -> Self {
        Self { limit, members: Vec::new(), ready: Tickets::default(), random: seed }
    }

    fn slot(&self, member: Member) -> Slot {
        let absent = Slot { tickets: 0, state: State::Absent };
        self.members.get(member.0 as usize).copied().unwrap_or(absent)
    }

    fn put(&mut self, member: Member, slot: Slot) {
        let was = self.slot(member);
        if was.state == State::Ready {
            self.ready.leave(member, was.tickets);
        }
        if slot.state == State::Ready {
            self.ready.enter(member, slot.tickets);
        }
        self.members[member.0 as usize] = slot;
    }

    /// Makes room for `member`. The only place that allocates.
    fn reach(&mut self, member: Member) {
        let len = member.0 as usize + 1;
        if len <= self.members.len() {
            return;
        }
        self.members.resize(len.next_power_of_two(), self.slot(member));
        self.ready.reach(len);
        for (id, slot) in (0..).zip(&self.members).filter(|(_, slot)| slot.state == State::Ready) {
            self.ready.enter(Member(id), slot.tickets);
        }
    }

    /// A number below `bound`, which is not zero (SplitMix64, Steele et al. 2014).
    fn draw(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(bound)) >> 64) as u64
    }
}

impl Policy for Lottery {
    fn admit(&mut self, member: Member, terms: Terms) -> Result<(), Refused> {
        if member.0 >= self.limit {
            return Err(Refused::BeyondLimit { limit: self.limit });
        }
        if terms.weight == 0 || terms.weight > Refused::WEIGHT_MAX {
            return Err(Refused::Weight(terms.weight));
        }
        self.reach(member);
        let state = if self.slot(member).state == State::Ready { State::Ready } else { State::Idle };
        self.put(member, Slot { tickets: terms.weight, state });
        Ok(())
    }

    fn remove(&mut self, member: Member) {
        if self.slot(member).state != State::Absent {
            self.put(member, Slot { tickets: 0, state: State::Absent });
        }
    }

    fn ready(&mut self, member: Member, _now: Instant, _deadline: Option<Instant>) {
        let slot = self.slot(member);
        if slot.state == State::Idle {
            self.put(member, Slot { state: State::Ready, ..slot });
        }
    }

    fn next(&mut self, _now: Instant) -> Option<Member> {
        if self.is_idle() {
            return None;
        }
        let ticket = self.draw(self.ready.total);
        let winner = self.ready.holder(ticket);
        self.put(winner, Slot { state: State::Idle, ..self.slot(winner) });
        Some(winner)
    }

    fn charge(&mut self, _member: Member, _used: Duration, _now: Instant) {}

    fn is_idle(&self) -> bool {
        self.ready.total == 0
    }
}

/// How often each of `weights` won in `draws` draws with all of them always ready.
fn wins(weights: &[u32], draws: u32) -> Vec<u32> {
    let mut lottery = Lottery::new(weights.len() as u32, 2026);
    for (id, &weight) in (0..).zip(weights) {
        lottery.admit(Member(id), Terms::with_weight(weight)).expect("a weight from 1 on");
        lottery.ready(Member(id), Instant::ZERO, None);
    }
    let mut wins = vec![0; weights.len()];
    for _ in 0..draws {
        let winner = lottery.next(Instant::ZERO).expect("all are ready");
        wins[winner.0 as usize] += 1;
        lottery.charge(winner, Duration::ZERO, Instant::ZERO);
        lottery.ready(winner, Instant::ZERO, None);
    }
    wins
}

fn main() {
    let (weights, draws) = ([1, 2, 3, 10], 160_000);
    println!("weight   wins   ideal");
    for (weight, wins) in weights.iter().zip(wins(&weights, draws)) {
        println!("{weight:>6} {wins:>6} {:>7}", draws / weights.iter().sum::<u32>() * weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn with(weights: &[u32]) -> Lottery {
        let mut lottery = Lottery::new(64, 7);
        for (id, &weight) in (0..).zip(weights) {
            lottery.admit(Member(id), Terms::with_weight(weight)).unwrap();
            lottery.ready(Member(id), NOW, None);
        }
        lottery
    }

    fn drawn(lottery: &mut Lottery) -> Vec<u32> {
        let mut all: Vec<u32> = std::iter::from_fn(|| lottery.next(NOW)).map(|member| member.0).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn every_member_gets_its_part_of_the_runs() {
        let weights = [1, 2, 3, 10];
        for (weight, wins) in weights.iter().zip(wins(&weights, 160_000)) {
            let ideal = f64::from(weight * 10_000);
            // Four standard deviations of a binomial distribution.
            let spread = 4.0 * (ideal * (1.0 - ideal / 160_000.0)).sqrt();
            assert!((f64::from(wins) - ideal).abs() < spread, "weight {weight} won {wins} times");
        }
    }

    #[test]
    fn who_is_ready_is_drawn_exactly_once() {
        let mut lottery = with(&[5, 1, 9, 1, 1000]);
        lottery.ready(Member(2), NOW, None);
        assert_eq!(drawn(&mut lottery), [0, 1, 2, 3, 4]);
        assert!(lottery.is_idle());
        lottery.ready(Member(3), NOW, None);
        assert_eq!(drawn(&mut lottery), [3]);
    }

    #[test]
    fn who_is_removed_wins_no_more() {
        let mut lottery = with(&[1, 1_000_000, 1]);
        lottery.remove(Member(1));
        lottery.ready(Member(1), NOW, None);
        assert_eq!(drawn(&mut lottery), [0, 2]);
    }

    #[test]
    fn new_terms_and_new_members_keep_who_is_ready() {
        let mut lottery = with(&[3, 4]);
        lottery.admit(Member(0), Terms::with_weight(8)).unwrap();
        lottery.admit(Member(40), Terms::default()).unwrap();
        assert_eq!(lottery.ready.total, 8 + 4);
        assert_eq!(drawn(&mut lottery), [0, 1]);
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let mut lottery = with(&[1]);
        assert_eq!(lottery.admit(Member(64), Terms::default()), Err(Refused::BeyondLimit { limit: 64 }));
        assert_eq!(lottery.admit(Member(0), Terms::with_weight(0)), Err(Refused::Weight(0)));
        assert_eq!(drawn(&mut lottery), [0]);
    }

    #[test]
    fn the_holder_of_every_ticket_is_found() {
        let mut tickets = Tickets::default();
        tickets.reach(5);
        let held = [2, 0, 3, 1, 4];
        (0..).zip(held).for_each(|(id, count)| tickets.enter(Member(id), count));
        let holders: Vec<u32> = (0..tickets.total).map(|ticket| tickets.holder(ticket).0).collect();
        assert_eq!(holders, [0, 0, 2, 2, 2, 3, 4, 4, 4, 4]);
    }
}
