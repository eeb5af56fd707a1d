//! Weighted fair queueing of the processor (SILK §2.1): every member gets the processor in
//! proportion to its weight, and what some do not use the others share. Worst-case fair:
//! while everybody has work nobody runs ahead of its ideal share by more than one run, and
//! nobody is left behind it by more than one (two where members come and go, or runs are of
//! many lengths, since what a run costs is known only after it). It must never let a member save up time by being idle.

use crate::fluid::Fluid;
use crate::{Member, Policy, Refused, Terms};
use core::time::Duration;
use silk_instant::Instant;

/// Weighted fair queueing. Weights only mean something against each other.
#[derive(Debug)]
pub struct Wfq {
    limit: u32,
    quantum: Duration,
    fluid: Fluid,
}

impl Wfq {
    /// A scheduler for the members below `limit`, whose runs take at most `quantum`.
    /// Longer runs are charged in full but weaken the promise to the longest of them.
    pub fn new(limit: u32, quantum: Duration) -> Self {
        Self { limit, quantum, fluid: Fluid::new() }
    }
}

/// The weight, if it is one.
pub(crate) fn weight(terms: &Terms) -> Result<u32, Refused> {
    match terms.weight {
        weight @ 1..=Refused::WEIGHT_MAX => Ok(weight),
        weight => Err(Refused::Weight(weight)),
    }
}

impl Policy for Wfq {
    fn admit(&mut self, member: Member, terms: Terms) -> Result<(), Refused> {
        if member.0 >= self.limit {
            return Err(Refused::BeyondLimit { limit: self.limit });
        }
        self.fluid.admit(member.0, weight(&terms)?, self.quantum);
        Ok(())
    }

    fn remove(&mut self, member: Member) {
        self.fluid.remove(member.0);
    }

    fn ready(&mut self, member: Member, _now: Instant, _deadline: Option<Instant>) {
        self.fluid.ready(member.0);
    }

    fn next(&mut self, _now: Instant) -> Option<Member> {
        self.fluid.next().map(Member)
    }

    fn charge(&mut self, member: Member, used: Duration, _now: Instant) {
        self.fluid.charge(member.0, used);
    }

    fn is_idle(&self) -> bool {
        self.fluid.is_idle()
    }
}
