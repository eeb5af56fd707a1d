//! Makes sockets ready beforehand for who connects often, and takes back those that nobody wants.

use crate::between::command::Command;
use crate::between::names::SocketName;
use crate::between::sockets::Spare;
use crate::binding::any_like;
use crate::control::family::State;
use crate::control::server::Server;
use crate::control::spares::UNWANTED;
use crate::slots::store_address;
use silk_control::{Kind, ProcessNumber, SlotNumber};
use silk_path::Endpoint;
use silk_stream::status;
use std::net::IpAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;
impl Server {
    /// Makes spares for a process that has just asked to connect to `remote` from `source`.
    pub(crate) fn spares(
        &mut self,
        (family, process): (u32, ProcessNumber),
        source: IpAddr,
        remote: IpAddr,
    ) -> Vec<(SlotNumber, u32)> {
        let known = self.families.get_mut(&family).and_then(|known| known.processes.get_mut(&process));
        let count = known.map_or(0, |known| known.habit.asks(Instant::now()));
        let makes = |_| self.spare((family, process), source, remote);
        (0..count).map_while(makes).collect()
    }

    /// `None` where there is no room for one.
    fn spare(
        &mut self,
        (family, process): (u32, ProcessNumber),
        source: IpAddr,
        remote: IpAddr,
    ) -> Option<(SlotNumber, u32)> {
        let memory = &self.settings.config.memory;
        let sizes = [memory.receive_ring.get() as u32, memory.send_ring.get() as u32];
        if !self.families.get(&family)?.pool.has_room(sizes) {
            return None;
        }
        let held = self.ports.take_to_connect(Kind::Stream, source, Endpoint::new(remote, 0)).ok()?;
        let (port, local) = (held.port, Endpoint::new(source, held.port));
        let named = (Endpoint::new(any_like(source), port), held);
        let Ok((slot, generation)) = self.new_slot(family, process, Kind::Stream, Some(named)) else {
            self.ports.give_back(&held);
            return None;
        };
        let Ok(rings) = self.rings(family, slot) else {
            self.unmake(family, slot);
            return None;
        };
        let domain = self.settings.classes.domain_of(remote, 0, port);
        let known = self.families.get_mut(&family)?;
        if let Some(entry) = known.sockets.get_mut(&slot) {
            entry.state = State::Served { domain };
        }
        known.spares.add(slot, generation);
        let record = known.arena.slot(slot)?;
        store_address(&record.local, local);
        store_address(&record.peer, Endpoint::new(remote, 0));
        record.domain.store(domain as u32, SeqCst);
        if let Some(orders) = self.orders.get(domain) {
            // Before anybody can ring for it.
            let spare = Spare { rings, local, remote };
            let _ = orders.leave(Command::Spare { socket: SocketName { family, slot }, spare });
        }
        record.status.store(status::SPARE, SeqCst);
        Some((slot, generation))
    }

    /// Takes spares back that nobody has wanted for a while; all of them, where what they were made for has
    /// changed.
    pub(crate) fn take_spares_back(&mut self, all: bool) {
        let before = if all { None } else { Instant::now().checked_sub(UNWANTED) };
        if !all && before.is_none() {
            return;
        }
        let back = self
            .families
            .iter_mut()
            .map(|(family, known)| (*family, known.spares.unwanted(&known.arena, before)));
        let back: Vec<_> = back.filter(|(_, slots)| !slots.is_empty()).collect();
        for (family, slots) in back {
            for slot in slots {
                let known = self.families.get_mut(&family);
                // A socket that its process will never have is nobody's.
                let let_go = known.and_then(|known| {
                    let holder = *known.sockets.get(&slot)?.holders.first()?;
                    known.release(holder, slot)
                });
                if let Some(socket) = let_go {
                    self.close(family, slot, &socket, false);
                }
            }
        }
    }
}
