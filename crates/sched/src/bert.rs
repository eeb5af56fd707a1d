//! BERT, a scheduler for best effort and real-time paths (Bavier, Peterson and Mosberger,
//! Princeton TR-587-98 and TR-602-99; SILK §2.1). Members share the processor by virtual
//! time. One that *reserves* gets the rate it reserved; all others together form the
//! *pool*, which has what is not reserved and divides it by weight. All weights add up to the
//! part of the processor that the members have together, Linux and other policies beside
//! them: so a weight is a rate of processor time, and virtual time never runs
//! slower than real time. Therefore a deadline can be compared with the virtual time at which a
//! member's reservation would let it finish. When that is too late, an *important* member
//! steals: its service is moved up to the deadline, and the difference is taken, never
//! more than they would have had until then, from the pool and from reservations that are
//! not important. So a reservation need not be a perfect guess, and when there is not
//! enough for all it is the unimportant that go without. A theft must never touch an
//! important member's reservation.

use crate::fluid::Fluid;
use crate::queue::{Chain, Queue};
use crate::reserve::{Book, WHOLE};
use crate::{Member, Policy, Refused, Terms, Wfq, wfq};
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;

/// The pool's place in the fluid model; a member that reserves has its number plus one.
const POOL: u32 = 0;
/// What the pool always keeps: one in so many of what the members have.
const POOL_KEEPS: u32 = 100;
/// How many victims one theft may go through, so that it stays short.
const VICTIMS: usize = 8;

/// Best effort and real time together.
#[derive(Debug)]
pub struct Bert {
    limit: u32,
    quantum: Duration,
    /// The part of the processor that the members have at least, in millionths: the sum of all
    /// weights in `fluid`.
    part: u32,
    members: Vec<Slot>,
    /// The pool and the members that reserve.
    fluid: Fluid,
    pool: Wfq,
    book: Book,
    /// Members that reserve and may be stolen from.
    victims: Queue,
    chain: Chain,
    /// Who was chosen and not charged yet, and as what in `fluid`.
    running: Option<(Member, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Absent,
    Pooled {
        ready: bool,
    },
    /// `delay`: how soon after it becomes ready an important one wants to have run.
    Reserved {
        millionths: u32,
        important: bool,
        delay: Option<Duration>,
        expected: Duration,
        ready: bool,
    },
}

impl Slot {
    fn is_ready(self) -> bool {
        match self {
            Self::Absent => false,
            Self::Pooled { ready } | Self::Reserved { ready, .. } => ready,
        }
    }

    fn millionths(self) -> u32 {
        match self {
            Self::Reserved { millionths, .. } => millionths,
            _ => 0,
        }
    }
}

impl Bert {
    /// A scheduler for the members below `limit`, whose runs take at most `quantum`, and who
    /// have at least `part` millionths of the processor while they have work. Of these they can
    /// reserve all but 1 %.
    pub fn new(limit: u32, quantum: Duration, part: u32) -> Self {
        let part = part.clamp(1, WHOLE);
        let mut fluid = Fluid::new();
        fluid.admit(POOL, part, quantum);
        Self {
            limit,
            quantum,
            part,
            members: Vec::new(),
            fluid,
            pool: Wfq::new(limit, quantum),
            book: Book::new(part - part.div_ceil(POOL_KEEPS)),
            victims: Queue::EMPTY,
            chain: Chain::default(),
            running: None,
        }
    }

    /// Leaves to the pool what is not reserved.
    fn resize_pool(&mut self, reserved: u32) {
        self.fluid.admit(POOL, self.part - reserved, self.quantum);
    }

    fn slot(&self, member: Member) -> Slot {
        self.members.get(member.index()).copied().unwrap_or(Slot::Absent)
    }

    fn reach(&mut self, len: usize) {
        if self.members.len() < len {
            self.members.resize(len, Slot::Absent);
            self.chain.reach(len);
        }
    }

    /// Has `member` wait to be chosen.
    fn enter(&mut self, member: Member, now: Instant) {
        match self.members.get_mut(member.index()) {
            None | Some(Slot::Absent) => {}
            Some(Slot::Pooled { ready }) => {
                *ready = true;
                self.pool.ready(member, now, None);
                self.fluid.ready(POOL);
            }
            Some(Slot::Reserved { ready, .. }) => {
                *ready = true;
                self.fluid.ready(member.0 + 1);
            }
        }
    }

    /// Takes `member` out of wherever it is, but not out of the book.
    fn expel(&mut self, member: Member) {
        let slot = core::mem::replace(&mut self.members[member.index()], Slot::Absent);
        match slot {
            Slot::Absent => {}
            Slot::Pooled { .. } => {
                self.pool.remove(member);
                if self.pool.is_idle() {
                    self.fluid.withdraw(POOL);
                }
            }
            Slot::Reserved { important, .. } => {
                self.fluid.remove(member.0 + 1);
                if !important {
                    self.chain.unlink(&mut self.victims, member.0);
                }
            }
        }
    }

    /// Puts a reserving member in, or changes it.
    fn reserve(&mut self, member: Member, terms: &Terms, millionths: u32) {
        let old = self.slot(member);
        let budget = terms.reserved.map_or(self.quantum, |reservation| reservation.budget);
        let expected = match old {
            Slot::Reserved { expected, important, .. } => {
                if !important {
                    self.chain.unlink(&mut self.victims, member.0);
                }
                expected
            }
            _ => {
                self.expel(member);
                budget.min(self.quantum)
            }
        };
        let Terms { important, delay, .. } = *terms;
        if !important {
            self.chain.push(&mut self.victims, member.0);
        }
        self.members[member.index()] =
            Slot::Reserved { millionths, important, delay, expected, ready: old.is_ready() };
        self.fluid.admit(member.0 + 1, millionths, expected);
    }

    /// Moves up the service of an important member that its reservation would serve too
    /// late, at the cost of the unimportant.
    fn steal(&mut self, thief: u32, allowed: Duration) {
        let late = self.fluid.lateness(thief, allowed);
        let mut need = self.fluid.service(thief, late);
        need -= self.rob(POOL, thief, need, allowed);
        for _ in 0..VICTIMS {
            if need == 0 {
                break;
            }
            let Some(victim) = self.chain.pop(&mut self.victims) else { break };
            self.chain.push(&mut self.victims, victim);
            need -= self.rob(victim + 1, thief, need, allowed);
        }
    }

    /// What could be taken.
    fn rob(&mut self, victim: u32, thief: u32, need: u64, allowed: Duration) -> u64 {
        let taken = self.fluid.spare(victim, allowed).min(need);
        if taken > 0 {
            self.fluid.transfer(victim, thief, taken);
        }
        taken
    }

    /// Expects the longest of its recent runs, forgetting one part in sixteen each time.
    fn learn(&mut self, member: Member, used: Duration) {
        if let Some(Slot::Reserved { expected, .. }) = self.members.get_mut(member.index()) {
            *expected = used.max(*expected - *expected / 16);
            self.fluid.expect(member.0 + 1, *expected);
        }
    }

    fn choose_from_pool(&mut self, now: Instant) -> Option<Member> {
        let member = self.pool.next(now)?;
        self.members[member.index()] = Slot::Pooled { ready: false };
        if !self.pool.is_idle() {
            self.fluid.ready(POOL);
        }
        Some(member)
    }

    fn choose_reserved(&mut self, id: u32) -> Member {
        let member = Member(id - 1);
        if let Slot::Reserved { ready, .. } = &mut self.members[member.index()] {
            *ready = false;
        }
        member
    }
}

impl Policy for Bert {
    fn admit(&mut self, member: Member, terms: Terms) -> Result<(), Refused> {
        if member.0 >= self.limit {
            return Err(Refused::BeyondLimit { limit: self.limit });
        }
        wfq::weight(&terms)?;
        let old = self.slot(member);
        let millionths = self.book.exchange(old.millionths(), terms.reserved)?;
        self.reach(member.index() + 1);
        if terms.reserved.is_some() {
            self.reserve(member, &terms, millionths);
        } else {
            if !matches!(old, Slot::Pooled { .. }) {
                self.expel(member);
            }
            self.members[member.index()] = Slot::Pooled { ready: old.is_ready() };
            self.pool.admit(member, terms)?;
        }
        self.resize_pool(self.book.reserved());
        if old.is_ready() {
            // It waits already, since nobody knows when: what it may take was taken then.
            self.enter(member, Instant::ZERO);
        }
        Ok(())
    }

    fn remove(&mut self, member: Member) {
        let slot = self.slot(member);
        if slot != Slot::Absent {
            self.expel(member);
            self.book.release(slot.millionths());
            self.resize_pool(self.book.reserved());
        }
    }

    fn ready(&mut self, member: Member, now: Instant, deadline: Option<Instant>) {
        self.enter(member, now);
        if let Slot::Reserved { important: true, delay, .. } = self.slot(member) {
            let allowed = deadline.map(|deadline| deadline.since(now)).or(delay);
            allowed.into_iter().for_each(|allowed| self.steal(member.0 + 1, allowed));
        }
    }

    fn next(&mut self, now: Instant) -> Option<Member> {
        let id = self.fluid.next()?;
        let member = if id == POOL { self.choose_from_pool(now)? } else { self.choose_reserved(id) };
        self.running = Some((member, id));
        Some(member)
    }

    fn charge(&mut self, member: Member, used: Duration, now: Instant) {
        let Some((_, id)) = self.running.take_if(|(running, _)| *running == member) else { return };
        if id == POOL {
            self.pool.charge(member, used, now);
        } else {
            self.learn(member, used);
        }
        self.fluid.charge(id, used);
        if id == POOL && !self.pool.is_idle() {
            self.fluid.ready(POOL);
        }
    }

    fn is_idle(&self) -> bool {
        self.fluid.is_idle() && self.pool.is_idle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reservation;

    const QUANTUM: Duration = Duration::from_micros(100);

    fn reserving(percent: u64, important: bool) -> Terms {
        let reserved = Some(Reservation {
            budget: Duration::from_micros(percent * 100),
            period: Duration::from_millis(10),
        });
        Terms { reserved, important, ..Terms::default() }
    }

    /// Keeps the members in `busy` ready for a second; how much of it each of them ran, in
    /// per cent. `deadline` is how soon member 0 wants each of its runs to end.
    fn shares(bert: &mut Bert, busy: &[u32], deadline: Option<Duration>) -> Vec<u64> {
        shares_of_runs(bert, busy, deadline, QUANTUM)
    }

    /// The same where each run takes so long, of ten thousand of them.
    fn shares_of_runs(bert: &mut Bert, busy: &[u32], deadline: Option<Duration>, run: Duration) -> Vec<u64> {
        let mut used = [0u64; 8];
        for step in 0..10_000 {
            let now = Instant::ZERO + run * step;
            for &id in busy {
                let deadline = deadline.filter(|_| id == 0).map(|after| now + after);
                bert.ready(Member(id), now, deadline);
            }
            let member = bert.next(now).unwrap();
            bert.charge(member, run, now + run);
            used[member.index()] += 1;
        }
        busy.iter().map(|&id| (used[id as usize] + 50) / 100).collect()
    }

    #[test]
    fn reservations_get_their_rate_and_the_pool_divides_the_rest_by_weight() {
        let mut bert = Bert::new(8, QUANTUM, WHOLE);
        bert.admit(Member(0), reserving(50, false)).unwrap();
        bert.admit(Member(1), Terms::with_weight(3)).unwrap();
        bert.admit(Member(2), Terms::with_weight(2)).unwrap();
        assert_eq!(shares(&mut bert, &[0, 1, 2], None), [50, 30, 20]);
    }

    #[test]
    fn of_a_part_of_the_processor_a_reservation_is_so_much_more() {
        for (part, of_part) in [(500_000, [80, 20]), (450_000, [89, 11]), (800_000, [50, 50])] {
            let mut bert = Bert::new(8, QUANTUM, part);
            bert.admit(Member(0), reserving(40, false)).unwrap();
            bert.admit(Member(1), Terms::default()).unwrap();
            assert_eq!(shares(&mut bert, &[0, 1], None), of_part, "{part}");
        }
    }

    #[test]
    fn the_pool_keeps_a_hundredth_of_the_part() {
        let mut bert = Bert::new(8, QUANTUM, 200_000);
        assert_eq!(
            bert.admit(Member(0), reserving(20, false)),
            Err(Refused::Overcommitted { asked: 200_000, left: 198_000 })
        );
        let most = Reservation { budget: Duration::from_micros(1980), period: Duration::from_millis(10) };
        bert.admit(Member(0), Terms { reserved: Some(most), ..Terms::default() }).unwrap();
        bert.admit(Member(1), Terms::default()).unwrap();
        assert_eq!(shares(&mut bert, &[0, 1], None), [99, 1]);
    }

    #[test]
    fn an_important_deadline_takes_from_the_pool_and_the_unimportant_only() {
        let mut bert = Bert::new(8, QUANTUM, WHOLE);
        bert.admit(Member(0), reserving(20, true)).unwrap();
        bert.admit(Member(1), reserving(30, true)).unwrap();
        bert.admit(Member(2), reserving(30, false)).unwrap();
        bert.admit(Member(3), Terms::default()).unwrap();
        let stolen = shares(&mut bert, &[0, 1, 2, 3], Some(Duration::from_micros(150)));
        assert_eq!(stolen[1], 30);
        assert!(stolen[0] > 60 && stolen[2] + stolen[3] < 10, "{stolen:?}");
    }

    // As the executor tells it of a path that has more to do.
    #[test]
    fn a_deadline_that_is_told_in_the_middle_of_a_run_takes_as_much_as_one_that_is_told_behind_it() {
        let mut bert = Bert::new(8, QUANTUM, WHOLE);
        bert.admit(Member(0), reserving(20, true)).unwrap();
        bert.admit(Member(1), Terms::default()).unwrap();
        let deadline = |id, now| (id == 0).then(|| now + Duration::from_micros(150));
        (0..2).for_each(|id| bert.ready(Member(id), Instant::ZERO, deadline(id, Instant::ZERO)));
        let mut runs = [0; 2];
        for step in 0..1000 {
            let now = Instant::ZERO + QUANTUM * step;
            let member = bert.next(now).unwrap();
            bert.ready(member, now, deadline(member.0, now));
            bert.charge(member, QUANTUM, now + QUANTUM);
            runs[member.index()] += 1;
        }
        assert!(runs[0] > 600, "{runs:?}");
    }

    #[test]
    fn who_proves_to_need_less_than_was_expected_of_it_steals_no_more() {
        let stolen = |run| {
            let mut bert = Bert::new(8, QUANTUM, WHOLE);
            bert.admit(Member(0), reserving(20, true)).unwrap();
            bert.admit(Member(1), Terms::default()).unwrap();
            shares_of_runs(&mut bert, &[0, 1], Some(Duration::from_micros(150)), Duration::from_micros(run))
                [0]
        };
        // Of a fifth of the processor 10 µs take 50, and 100 take 500.
        assert!((20..22).contains(&stolen(10)), "{}", stolen(10));
        assert!(stolen(100) > 60, "{}", stolen(100));
    }

    #[test]
    fn all_who_wait_in_the_pool_run_though_nobody_is_ready_anew() {
        let mut bert = Bert::new(8, QUANTUM, WHOLE);
        for id in 0..3 {
            bert.admit(Member(id), Terms::default()).unwrap();
            bert.ready(Member(id), Instant::ZERO, None);
        }
        let mut ran = core::array::from_fn::<_, 3, _>(|_| {
            let member = bert.next(Instant::ZERO).unwrap();
            bert.charge(member, QUANTUM, Instant::ZERO);
            member.0
        });
        ran.sort_unstable();
        assert_eq!((ran, bert.is_idle(), bert.next(Instant::ZERO)), ([0, 1, 2], true, None));
    }

    #[test]
    fn the_delay_of_the_terms_stands_in_for_a_missing_deadline() {
        let stolen = |important| {
            let mut bert = Bert::new(8, QUANTUM, WHOLE);
            let delay = Some(Duration::from_micros(150));
            bert.admit(Member(0), Terms { delay, ..reserving(20, important) }).unwrap();
            bert.admit(Member(1), Terms::default()).unwrap();
            shares(&mut bert, &[0, 1], None)
        };
        assert_eq!(stolen(false), [20, 80]);
        assert!(stolen(true)[0] > 60, "{:?}", stolen(true));
    }

    #[test]
    fn who_is_admitted_anew_while_it_waits_takes_nothing_more() {
        let shares = |readmitted: bool| {
            let mut bert = Bert::new(8, QUANTUM, WHOLE);
            let terms = Terms { delay: Some(Duration::from_micros(150)), ..reserving(20, true) };
            bert.admit(Member(0), Terms { delay: None, ..terms }).unwrap();
            bert.admit(Member(1), Terms::default()).unwrap();
            bert.ready(Member(1), Instant::ZERO, None);
            bert.ready(Member(0), Instant::ZERO, None);
            if readmitted {
                bert.admit(Member(0), terms).unwrap();
            }
            core::array::from_fn::<_, 2, _>(|_| {
                let member = bert.next(Instant::ZERO).unwrap();
                bert.charge(member, QUANTUM, Instant::ZERO);
                member
            })
        };
        assert_eq!(shares(true), shares(false));
    }

    #[test]
    fn an_unimportant_deadline_steals_nothing() {
        let mut bert = Bert::new(8, QUANTUM, WHOLE);
        bert.admit(Member(0), reserving(20, false)).unwrap();
        bert.admit(Member(1), Terms::default()).unwrap();
        assert_eq!(shares(&mut bert, &[0, 1], Some(Duration::from_micros(150))), [20, 80]);
    }

    #[test]
    fn what_is_not_used_is_shared_out() {
        let mut bert = Bert::new(8, QUANTUM, WHOLE);
        bert.admit(Member(0), reserving(50, true)).unwrap();
        bert.admit(Member(1), Terms::default()).unwrap();
        assert_eq!(shares(&mut bert, &[1], None), [100]);
    }

    #[test]
    fn a_member_removed_while_it_runs_leaves_the_pool_running() {
        let mut bert = Bert::new(8, QUANTUM, WHOLE);
        (0..2).for_each(|id| bert.admit(Member(id), Terms::default()).unwrap());
        (0..2).for_each(|id| bert.ready(Member(id), Instant::ZERO, None));
        let first = bert.next(Instant::ZERO).unwrap();
        bert.remove(first);
        bert.charge(first, QUANTUM, Instant::ZERO);
        assert_eq!(bert.next(Instant::ZERO), Some(Member(1 - first.0)));
        bert.charge(Member(1 - first.0), QUANTUM, Instant::ZERO);
        assert!(bert.is_idle());
    }

    #[test]
    fn a_member_may_move_between_the_pool_and_a_reservation_while_ready() {
        let mut bert = Bert::new(8, QUANTUM, WHOLE);
        bert.admit(Member(0), Terms::default()).unwrap();
        bert.ready(Member(0), Instant::ZERO, None);
        bert.admit(Member(0), reserving(99, true)).unwrap();
        assert!(matches!(
            bert.admit(Member(1), reserving(1, true)),
            Err(Refused::Overcommitted { left: 0, .. })
        ));
        bert.admit(Member(0), Terms::default()).unwrap();
        assert_eq!(bert.next(Instant::ZERO), Some(Member(0)));
        bert.charge(Member(0), QUANTUM, Instant::ZERO);
        assert_eq!(bert.admit(Member(1), reserving(99, true)), Ok(()));
    }
}
