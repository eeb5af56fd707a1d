//! Scheduling policies: which ready path runs next (Scout §3.3, SILK §2.1). A policy is a
//! pure data structure behind the short trait [`Policy`]: it reads no clock, starts no
//! thread and knows nothing of paths beyond a small number. Whoever owns the processor (a
//! domain's executor) tells it who became ready, asks who runs next, and says afterwards
//! what the run cost. Nothing in here is preempted: between domains the kernel preempts,
//! inside one every run is short and goes to its end.
//!
//! | policy | orders by | promise |
//! |---|---|---|
//! | [`Fixed`] | priority, then arrival | never a lower priority before a higher one |
//! | [`Edf`] | deadline | never a later deadline before an earlier one, while all are met with time to spare |
//! | [`Wfq`] | virtual finish | each member within one quantum of its ideal share |
//! | [`Bert`] | virtual finish, with stealing | reservations hold; important deadlines take from the unimportant |
//! | [`DeadlineWorkahead`] | critical, interactive, workahead, background | work ahead never delays what is due |
//! | [`Shares`] | share of each policy | every policy gets its part of the processor, whatever the others do |
//!
//! SILK's "Linux thread" (SILK §3.2) is a member like any other: when it is chosen the
//! executor sleeps for its quantum and charges it for the time.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bert;
mod deadline_workahead;
mod edf;
mod fixed;
mod fluid;
mod heap;
mod queue;
mod recent;
mod reserve;
mod shares;
mod terms;
mod wfq;

pub use bert::Bert;
pub use deadline_workahead::DeadlineWorkahead;
pub use edf::Edf;
pub use fixed::Fixed;
pub use shares::Shares;
pub use terms::{Refused, Reservation, Terms};
pub use wfq::Wfq;

use core::time::Duration;
use silk_instant::Instant;

/// Who is scheduled: the index of a path in its domain's path table. Policies keep arrays
/// indexed by it, so the numbers must be small and reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u32);

impl Member {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A scheduling policy (Scout §3.3). The order of calls for one member is
/// `admit (ready next charge)* remove`; `ready` may come at any time, also twice, and while
/// the member runs. A call that names a member never admitted changes nothing.
///
/// Nothing but `admit` allocates, and no call costs more than the logarithm of the number
/// of members.
pub trait Policy {
    /// Takes `member` in on these terms. For a member already in, changes its terms; it
    /// stays ready if it was, and a refusal leaves the old terms in force.
    ///
    /// # Errors
    /// [`Refused`] says which of the terms this policy cannot keep.
    fn admit(&mut self, member: Member, terms: Terms) -> Result<(), Refused>;

    /// Forgets `member`, ready or not. What it had reserved is free again.
    fn remove(&mut self, member: Member);

    /// `member` has work. `deadline` is when its first message should be done, for the
    /// policies that look at deadlines. A second call before it is chosen can only make
    /// the deadline earlier.
    fn ready(&mut self, member: Member, now: Instant, deadline: Option<Instant>);

    /// The member to run now, taken off the ready ones; [`Policy::ready`] puts it back if
    /// it has more work. Every member chosen must be charged, if only for nothing.
    fn next(&mut self, now: Instant) -> Option<Member>;

    /// `member`, chosen by [`Policy::next`], ran for `used` and stopped at `now`.
    fn charge(&mut self, member: Member, used: Duration, now: Instant);

    /// Whether no member is ready.
    fn is_idle(&self) -> bool;
}
