//! Families that are gone, until the executors have let go of them, and the ports of those whose connections go
//! on: to a peer that has not closed yet, or has not heard of the end. Whoever connected from such a port to the
//! same peer would meet them there.

use crate::control::ports::Held;
use silk_control::SlotNumber;
use std::collections::{BTreeMap, BTreeSet};

/// The connections that a family has left, by their slots.
#[derive(Debug, Default)]
pub struct Departed {
    /// Whose it was, where that is known.
    user: Option<u32>,
    held: BTreeMap<SlotNumber, Held>,
    /// Those that an executor still has a path of.
    going_on: BTreeSet<SlotNumber>,
    /// Executors that have not said yet which they still have.
    unanswered: usize,
}

impl Departed {
    /// None yet, of a family of this user that so many executors are to speak of.
    pub fn new(executors: usize, user: Option<u32>) -> Self {
        Self { unanswered: executors, user, ..Self::default() }
    }

    /// The user whose it was.
    pub fn user(&self) -> Option<u32> {
        self.user
    }

    /// Whether an executor has not let go of the family yet.
    pub fn is_unanswered(&self) -> bool {
        self.unanswered > 0
    }

    /// A connection that may go on, and the port that it has.
    pub fn add(&mut self, slot: SlotNumber, held: Held) {
        self.held.insert(slot, held);
    }

    /// A connection is over. Answers its port.
    pub fn end(&mut self, slot: SlotNumber) -> Option<Held> {
        self.held.remove(&slot)
    }

    /// Whether none goes on, and every executor has let go of the family.
    pub fn is_over(&self) -> bool {
        self.held.is_empty() && !self.is_unanswered()
    }

    /// An executor has said which connections of the family go on. Answers the ports that nobody needs any more.
    pub fn answered(&mut self, going_on: Vec<SlotNumber>) -> Vec<Held> {
        self.going_on.extend(going_on);
        self.unanswered = self.unanswered.saturating_sub(1);
        if self.unanswered > 0 {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.held);
        let (held, free) = all.into_iter().partition(|(slot, _)| self.going_on.contains(slot));
        self.held = held;
        free.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_control::Kind;
    use std::net::IpAddr;

    #[test]
    fn a_port_is_free_when_no_executor_has_its_connection() {
        let held = |port| Held::at(Kind::Stream, IpAddr::from([10, 0, 0, 1]), port);
        let mut departed = Departed::new(2, None);
        (1..=3).for_each(|slot| departed.add(slot, held(slot as u16)));
        assert_eq!(departed.answered(vec![2]), []);
        assert!(!Departed::new(1, None).is_over(), "it has left nothing, and an executor has not said so");
        assert_eq!(departed.answered(vec![]), [held(1), held(3)]);
        assert_eq!((departed.end(2), departed.is_over()), (Some(held(2)), true));
    }
}
