//! A family goes: its ports are free, but for those whose connections go on.

use crate::between::names::FamilyIndex;
use crate::control::departed::Departed;
use crate::control::family::State;
use crate::control::server::Server;
use silk_control::SlotNumber;

impl Server {
    /// A family is gone. The ports that its programs chose are free; those that were chosen for them are once
    /// no executor has a path of them.
    pub(crate) fn take_leave(&mut self, family: FamilyIndex) {
        let Some(known) = self.families.remove(&family) else { return };
        let mut departed = Departed::new(self.orders.len(), known.user);
        for (slot, socket) in known.sockets {
            match socket.held.filter(|held| held.peer.is_some()) {
                Some(held) if matches!(socket.state, State::Served { .. }) => {
                    departed.add(slot, held);
                }
                _ => self.give_port_back(&socket),
            }
        }
        if !departed.is_over() {
            self.departed.insert(family, departed);
        }
    }

    /// An executor has ended what it had of a family, but for these connections.
    pub(crate) fn family_ended(&mut self, family: FamilyIndex, going_on: Vec<SlotNumber>) {
        let Some(departed) = self.departed.get_mut(&family) else { return };
        let free = departed.answered(going_on);
        if departed.is_over() {
            self.departed.remove(&family);
        }
        free.iter().for_each(|held| self.free_port(held));
    }

    /// A connection is over whose family has been gone for long.
    pub(crate) fn departed_gone(&mut self, family: FamilyIndex, slot: SlotNumber) {
        let Some(departed) = self.departed.get_mut(&family) else { return };
        let held = departed.end(slot);
        if departed.is_over() {
            self.departed.remove(&family);
        }
        held.iter().for_each(|held| self.free_port(held));
    }
}
