//! Sockets made ready beforehand. A process that connects often to an address gets some with its
//! answer, each with its port, rings and slot; the executor knows them too. To connect, the process
//! claims one in shared memory and rings, and asks nobody (`docs/design/spares.md`).
//!
//! Whoever changes a spare's `SPARE` in [`Slot::status`](silk_stream::Slot::status) has it: the process,
//! or the control thread, which takes back what nobody has wanted for a while.

use crate::command::{Command, Event as Told, Rings, SocketName};
use crate::engine::Engine;
use crate::family::{Family, Socket, State};
use crate::server::Server;
use crate::settings::any_like;
use crate::slots::{retire, store_address};
use silk_control::{Kind, ProcessNumber, SlotNumber};
use silk_instant::Instant as Now;
use silk_path::Endpoint;
use silk_stream::{Slot, request, status};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Connections that come sooner one after the other are often.
const OFTEN: Duration = Duration::from_millis(100);
/// What is not wanted for so long is taken back.
const UNWANTED: Duration = Duration::from_secs(2);

/// How often a process asks to connect.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habit {
    last: Option<Instant>,
    /// How many times it has asked soon after the time before.
    streak: u32,
}

impl Habit {
    /// It asks once more; how many spares it is worth.
    fn asks(&mut self, now: Instant) -> usize {
        let often = self.last.is_some_and(|last| now.duration_since(last) < OFTEN);
        self.streak = if often { self.streak.saturating_add(1) } else { 0 };
        self.last = Some(now);
        match self.streak {
            0..4 => 0,
            4..8 => 8,
            _ => 32,
        }
    }
}

/// The control thread's list of a family's spares, the oldest first. Some may have been claimed since.
#[derive(Default)]
pub struct Book(VecDeque<(SlotNumber, u32, Instant)>);

/// Takes a spare away from whoever might claim it; whether it still was one.
fn take_back(slot: &Slot, generation: u32) -> bool {
    slot.generation.load(SeqCst) == generation
        && slot.status.compare_exchange(status::SPARE, 0, SeqCst, SeqCst).is_ok()
}

/// Whether this slot's socket is one that nobody has claimed.
pub fn is_spare(slot: &Slot) -> bool {
    slot.status.load(SeqCst) & status::SPARE != 0
}

impl Family {
    /// Those of the spares that nobody has claimed, and nobody can any more, of which the time came before
    /// this.
    fn unwanted(&mut self, before: Option<Instant>) -> Vec<SlotNumber> {
        let mut back = Vec::new();
        while let Some(&(slot, generation, since)) = self.spares.0.front()
            && before.is_none_or(|before| since < before)
        {
            self.spares.0.pop_front();
            let is_back = self.arena.slot(slot).is_some_and(|record| take_back(record, generation));
            back.extend(is_back.then_some(slot));
        }
        back
    }
}

impl Family {
    /// A socket that its process will never have is nobody's.
    fn let_go_of(&mut self, slot: SlotNumber) -> Option<Socket> {
        let holder = *self.sockets.get(&slot)?.holders.first()?;
        self.release(holder, slot)
    }
}

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
        known.spares.0.push_back((slot, generation, Instant::now()));
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
        let back = self.families.iter_mut().map(|(family, known)| (*family, known.unwanted(before)));
        let back: Vec<_> = back.filter(|(_, slots)| !slots.is_empty()).collect();
        for (family, slots) in back {
            for slot in slots {
                let known = self.families.get_mut(&family);
                if let Some(socket) = known.and_then(|known| known.let_go_of(slot)) {
                    self.close(family, slot, &socket, false);
                }
            }
        }
    }
}

/// A spare, as its executor has it.
#[derive(Clone, Copy, Debug)]
pub struct Spare {
    /// Its rings.
    rings: Rings,
    /// Where it will connect from.
    local: Endpoint,
    /// And to; the program says which port.
    remote: IpAddr,
}

impl Engine {
    /// A spare was made.
    pub fn take_spare(&mut self, name: SocketName, spare: Spare, now: Now) {
        self.spares.insert(name, spare);
        // Its process may have been quicker.
        self.rung_spare(name, now);
    }

    /// A spare may have rung, to connect. Whether the socket is one.
    pub(crate) fn rung_spare(&mut self, name: SocketName, now: Now) -> bool {
        let Some(spare) = self.spares.get(&name).copied() else { return false };
        let slot = self.families.get(&name.family).and_then(|family| family.arena.slot(name.slot));
        let Some(slot) = slot.filter(|slot| slot.request.load(SeqCst) & request::CONNECT != 0) else {
            return true;
        };
        slot.request.fetch_and(!request::CONNECT, SeqCst);
        let peer = Endpoint::new(spare.remote, slot.peer.port.load(SeqCst) as u16);
        store_address(&slot.peer, peer);
        slot.status.store(status::CONNECTING, SeqCst);
        self.spares.remove(&name);
        self.connect(name, spare.rings, (spare.local, peer), None, now);
        true
    }

    /// A spare that nobody has claimed is closed.
    pub(crate) fn forget_spare(&mut self, name: SocketName) {
        if self.spares.remove(&name).is_some()
            && let Some(family) = self.families.get(&name.family)
        {
            retire(&family.arena, name.slot);
            let _ = self.events.send(Told::SocketGone { name });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_often_gets_more_and_who_pauses_none() {
        let (mut habit, mut now) = (Habit::default(), Instant::now());
        let mut asks = |pause: Duration| {
            now += pause;
            habit.asks(now)
        };
        let counts: Vec<_> = (0..10).map(|_| asks(OFTEN / 2)).collect();
        assert_eq!(counts, [0, 0, 0, 0, 8, 8, 8, 8, 32, 32]);
        assert_eq!((asks(OFTEN), asks(OFTEN / 2)), (0, 0));
    }

    #[test]
    fn a_spare_is_claimed_or_taken_back_but_not_both() {
        let slot = Slot::default();
        slot.generation.store(7, SeqCst);
        slot.status.store(status::SPARE, SeqCst);
        assert!(is_spare(&slot) && !take_back(&slot, 6), "another use of the slot");
        let claims =
            || slot.status.compare_exchange(status::SPARE, status::CONNECTING, SeqCst, SeqCst).is_ok();
        assert!(take_back(&slot, 7) && !claims());
        slot.status.store(status::SPARE, SeqCst);
        assert!(claims() && !take_back(&slot, 7) && !is_spare(&slot));
    }
}
