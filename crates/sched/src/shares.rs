//! A guaranteed minimum share of the processor for each of several policies (Scout §3.3:
//! "an arbitrary number of scheduling policies, and allocates a percentage of CPU time to
//! each"). Between the policies it is fair queueing by share; inside each the policy
//! decides. A policy that has nothing to do leaves its share to the others. It must never
//! let a policy with work fall behind its share by more than a run, whatever the others do.

use crate::fluid::Fluid;
use crate::reserve::WHOLE;
use crate::{Member, Policy, Refused, Terms};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;

/// Several policies with a minimum share each; [`Terms::policy`] says which one a member
/// belongs to.
pub struct Shares {
    policies: Vec<Box<dyn Policy + Send>>,
    /// The policies as members of the fluid model, by their place in `policies`.
    fluid: Fluid,
    members: Vec<Option<Home>>,
    /// Who was chosen and not charged yet, and by which policy.
    running: Option<(Member, u8)>,
}

#[derive(Clone, Copy, Debug)]
struct Home {
    policy: u8,
    /// It waits: since when, and until when it is to have run.
    ready: Option<(Instant, Option<Instant>)>,
}

impl Shares {
    /// The policies, each with its minimum share in millionths of the processor. Runs take
    /// at most `quantum`.
    ///
    /// # Errors
    /// [`Refused::Overcommitted`] if the shares add up to more than the whole,
    /// [`Refused::Weight`] if one is 0, [`Refused::Policy`] if there are more than 256.
    pub fn new(quantum: Duration, policies: Vec<(u32, Box<dyn Policy + Send>)>) -> Result<Self, Refused> {
        u8::try_from(policies.len().saturating_sub(1)).map_err(|_| Refused::Policy(u8::MAX))?;
        let mut fluid = Fluid::new();
        let mut left = WHOLE;
        for (id, &(share, _)) in (0..).zip(&policies) {
            if share == 0 {
                return Err(Refused::Weight(0));
            }
            left = left.checked_sub(share).ok_or(Refused::Overcommitted { asked: share, left })?;
            fluid.admit(id, share, quantum);
        }
        let policies = policies.into_iter().map(|(_, policy)| policy).collect();
        Ok(Self { policies, fluid, members: Vec::new(), running: None })
    }

    fn home(&self, member: Member) -> Option<Home> {
        self.members.get(member.index()).copied().flatten()
    }

    fn policy(&mut self, number: u8) -> &mut dyn Policy {
        &mut *self.policies[usize::from(number)]
    }

    fn withdraw_if_idle(&mut self, policy: u8) {
        if self.policies[usize::from(policy)].is_idle() {
            self.fluid.withdraw(u32::from(policy));
        }
    }

    fn ready_unless_idle(&mut self, policy: u8) {
        if !self.policies[usize::from(policy)].is_idle() {
            self.fluid.ready(u32::from(policy));
        }
    }
}

impl Policy for Shares {
    /// The limit on members is that of the member's policy.
    fn admit(&mut self, member: Member, terms: Terms) -> Result<(), Refused> {
        let policy = terms.policy;
        self.policies.get_mut(usize::from(policy)).ok_or(Refused::Policy(policy))?.admit(member, terms)?;
        if self.members.len() <= member.index() {
            self.members.resize(member.index() + 1, None);
        }
        let old = self.home(member);
        let ready = old.and_then(|home| home.ready);
        self.members[member.index()] = Some(Home { policy, ready });
        if let Some(old) = old.filter(|old| old.policy != policy) {
            self.policy(old.policy).remove(member);
            self.withdraw_if_idle(old.policy);
            if let Some((since, deadline)) = ready {
                self.ready(member, since, deadline);
            }
        }
        Ok(())
    }

    fn remove(&mut self, member: Member) {
        if let Some(home) = self.home(member) {
            self.members[member.index()] = None;
            self.policy(home.policy).remove(member);
            self.withdraw_if_idle(home.policy);
        }
    }

    fn ready(&mut self, member: Member, now: Instant, deadline: Option<Instant>) {
        let Some(Some(home)) = self.members.get_mut(member.index()) else { return };
        let (since, known) = home.ready.unwrap_or((now, None));
        let earliest = known.into_iter().chain(deadline).min();
        home.ready = Some((since, earliest));
        let policy = home.policy;
        self.policy(policy).ready(member, now, deadline);
        self.ready_unless_idle(policy);
    }

    fn next(&mut self, now: Instant) -> Option<Member> {
        let policy = self.fluid.next()? as u8;
        let member = self.policy(policy).next(now)?;
        if let Some(home) = &mut self.members[member.index()] {
            home.ready = None;
        }
        self.running = Some((member, policy));
        self.ready_unless_idle(policy);
        Some(member)
    }

    fn charge(&mut self, member: Member, used: Duration, now: Instant) {
        let Some((_, policy)) = self.running.take_if(|(running, _)| *running == member) else { return };
        self.policy(policy).charge(member, used, now);
        self.fluid.charge(u32::from(policy), used);
        self.ready_unless_idle(policy);
    }

    fn is_idle(&self) -> bool {
        self.policies.iter().all(|policy| policy.is_idle())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edf, Fixed};

    const QUANTUM: Duration = Duration::from_micros(100);

    fn fixed_and_edf(fixed: u32, edf: u32) -> Shares {
        let policies: Vec<(u32, Box<dyn Policy + Send>)> =
            Vec::from([(fixed, Box::new(Fixed::new(8)) as _), (edf, Box::new(Edf::new(8)) as _)]);
        Shares::new(QUANTUM, policies).unwrap()
    }

    fn of_policy(policy: u8) -> Terms {
        Terms { policy, ..Terms::default() }
    }

    #[test]
    fn a_flood_in_one_policy_leaves_the_other_its_share() {
        let mut shares = fixed_and_edf(250_000, 500_000);
        shares.admit(Member(0), of_policy(0)).unwrap();
        shares.admit(Member(1), of_policy(1)).unwrap();
        let mut runs = [0; 2];
        for _ in 0..3000 {
            (0..2).for_each(|id| shares.ready(Member(id), Instant::ZERO, None));
            let member = shares.next(Instant::ZERO).unwrap();
            shares.charge(member, QUANTUM, Instant::ZERO);
            runs[member.index()] += 1;
        }
        assert_eq!(runs, [1000, 2000]);
    }

    #[test]
    fn a_ready_member_stays_ready_when_it_changes_policy() {
        let mut shares = fixed_and_edf(500_000, 500_000);
        shares.admit(Member(3), of_policy(0)).unwrap();
        shares.ready(Member(3), Instant::ZERO, None);
        shares.admit(Member(3), of_policy(1)).unwrap();
        assert_eq!(shares.next(Instant::ZERO), Some(Member(3)));
        shares.charge(Member(3), QUANTUM, Instant::ZERO);
        assert_eq!((shares.next(Instant::ZERO), shares.is_idle()), (None, true));
    }

    #[test]
    fn who_changes_policy_while_it_waits_has_waited_since_it_did() {
        let at = |millis: u64| Instant::from_millis(1_000_000 + millis);
        let order = |deadline: Option<Instant>| {
            let mut shares = fixed_and_edf(500_000, 500_000);
            shares.admit(Member(0), of_policy(0)).unwrap();
            shares.admit(Member(1), of_policy(1)).unwrap();
            shares.ready(Member(1), at(0), Some(at(10)));
            shares.ready(Member(0), at(0), deadline);
            let delay = Some(Duration::from_millis(50));
            shares.admit(Member(0), Terms { delay, ..of_policy(1) }).unwrap();
            [(); 2].map(|()| {
                let member = shares.next(at(0)).unwrap();
                shares.charge(member, QUANTUM, at(0));
                member.0
            })
        };
        assert_eq!([order(None), order(Some(at(5)))], [[1, 0], [0, 1]]);
    }

    #[test]
    fn a_policy_that_does_not_exist_is_refused() {
        let mut shares = fixed_and_edf(500_000, 500_000);
        assert_eq!(shares.admit(Member(0), of_policy(2)), Err(Refused::Policy(2)));
    }

    #[test]
    fn shares_beyond_the_whole_are_refused() {
        let half = || (600_000, Box::new(Fixed::new(8)) as Box<dyn Policy + Send>);
        let refused = Shares::new(QUANTUM, Vec::from([half(), half()])).err();
        assert_eq!(refused, Some(Refused::Overcommitted { asked: 600_000, left: 400_000 }));
    }
}
