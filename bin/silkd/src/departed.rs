//! The ports of families that are gone while connections of theirs go on: to a peer that has not closed yet, or
//! has not heard of the end. Whoever connected from such a port to the same peer would meet them there.

use crate::command::FamilyIndex;
use crate::family::State;
use crate::ports::Held;
use crate::server::Server;
use silk_control::SlotNumber;
use std::collections::{BTreeMap, BTreeSet};

/// The connections that a family has left, by their slots.
#[derive(Debug, Default)]
pub struct Departed {
    held: BTreeMap<SlotNumber, Held>,
    /// Those that an executor still has a path of.
    going_on: BTreeSet<SlotNumber>,
    /// Executors that have not said yet which they still have.
    unanswered: usize,
}

impl Departed {
    /// An executor has said which connections of the family go on. Answers the ports that nobody needs any more.
    fn answered(&mut self, going_on: Vec<SlotNumber>) -> Vec<Held> {
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

impl Server {
    /// A family is gone. The ports that its programs chose are free; those that were chosen for them are once
    /// no executor has a path of them.
    pub(crate) fn take_leave(&mut self, family: FamilyIndex) {
        let mut departed = Departed { unanswered: self.orders.len(), ..Departed::default() };
        for (slot, socket) in self.families.remove(&family).into_iter().flat_map(|known| known.sockets) {
            match socket.held.filter(|held| held.peer.is_some()) {
                Some(held) if matches!(socket.state, State::Served { .. }) => {
                    departed.held.insert(slot, held);
                }
                _ => self.give_port_back(&socket),
            }
        }
        if !departed.held.is_empty() {
            self.departed.insert(family, departed);
        }
    }

    /// An executor has ended what it had of a family, but for these connections.
    pub(crate) fn family_ended(&mut self, family: FamilyIndex, going_on: Vec<SlotNumber>) {
        let Some(departed) = self.departed.get_mut(&family) else { return };
        let free = departed.answered(going_on);
        if departed.held.is_empty() {
            self.departed.remove(&family);
        }
        free.iter().for_each(|held| self.free_port(held));
    }

    /// A connection is over whose family has been gone for long.
    pub(crate) fn departed_gone(&mut self, family: FamilyIndex, slot: SlotNumber) {
        let Some(departed) = self.departed.get_mut(&family) else { return };
        let held = departed.held.remove(&slot);
        if departed.held.is_empty() {
            self.departed.remove(&family);
        }
        held.iter().for_each(|held| self.free_port(held));
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
        let mut departed = Departed { unanswered: 2, ..Departed::default() };
        departed.held.extend((1..=3).map(|slot| (slot, held(slot as u16))));
        assert_eq!(departed.answered(vec![2]), []);
        assert_eq!(departed.answered(vec![]), [held(1), held(3)]);
        assert_eq!(departed.held.into_keys().collect::<Vec<_>>(), [2]);
    }
}
