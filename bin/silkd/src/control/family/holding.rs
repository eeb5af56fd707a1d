//! Who holds which socket: the control thread's book, so that a process that dies in the middle of
//! anything leaves nothing behind. A socket on its way to another process is held as if its message
//! were a process.

use super::{Family, Process, Socket, State};
use crate::control::spares::is_spare;
use silk_control::{Kind, ProcessNumber, SlotNumber};
use silk_stream::Arena;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;

/// How often the sockets of a family are held at most, by all of its processes: what bounds the memory of the book.
const HOLDINGS: usize = 4 << 20;

/// Why a socket is not passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPassed {
    /// The process does not hold it.
    NotHeld,
    /// Its family has as many processes, or holds its sockets as often, as it may.
    NoRoom,
}

impl Family {
    /// Whether its sockets may be held so many times more; counted from then on.
    fn may_hold(&mut self, more: usize) -> bool {
        if self.holdings + more > HOLDINGS {
            self.holdings = self.sockets.values().map(|socket| socket.holders.len()).sum();
        }
        let may = self.holdings + more <= HOLDINGS;
        self.holdings += if may { more } else { 0 };
        may
    }

    /// Takes in the child of a process. It holds whatever its parent holds, and as often: the parent may have been passed what
    /// it had already. `None`: there is no room for it.
    pub fn fork(&mut self, parent: ProcessNumber) -> Option<ProcessNumber> {
        if !self.has_room() {
            return None;
        }
        let handed = self.handed_to(parent);
        (0..self.pool.slots_touched()).for_each(|slot| self.note_accepted(parent, slot, &handed));
        let arena = self.arena.clone();
        // What the parent may come to connect with it keeps to itself.
        let is_spare = |slot| arena.slot(slot).is_some_and(is_spare);
        let holds = |(slot, socket): (&SlotNumber, &Socket)| {
            let times = socket.holders.iter().filter(|holder| **holder == parent).count();
            (times > 0 && !is_spare(*slot)).then_some((*slot, times))
        };
        let held: Vec<_> = self.sockets.iter().filter_map(holds).collect();
        if !self.may_hold(held.iter().map(|(_, times)| times).sum()) {
            return None;
        }
        let child = self.join(None);
        for (slot, times) in held {
            if let Some(socket) = self.sockets.get_mut(&slot) {
                socket.holders.extend(std::iter::repeat_n(child, times));
                mirror_holders(&arena, slot, socket);
            }
        }
        Some(child)
    }

    /// The socket that a process means, if it holds it: that use of the slot.
    pub fn held(
        &mut self,
        process: ProcessNumber,
        (slot, generation): (SlotNumber, u32),
    ) -> Option<&mut Socket> {
        let is_its =
            |socket: &&mut Socket| socket.generation == generation && socket.holders.contains(&process);
        self.sockets.get_mut(&slot).filter(is_its)
    }

    /// The connections that threads of this process were handed and have not taken yet.
    fn handed_to(&self, process: ProcessNumber) -> BTreeSet<SlotNumber> {
        let threads = self.processes.get(&process).map_or(&[][..], |known| &known.threads);
        let records = threads.iter().filter_map(|number| self.arena.thread(*number));
        records.filter_map(|thread| thread.handed.load(SeqCst).checked_sub(1)).collect()
    }

    /// A connection that `owner` has accepted gets an entry of its own, now that it is to have several holders, unless it was
    /// only `handed` to one of its threads.
    fn note_accepted(&mut self, owner: ProcessNumber, slot: SlotNumber, handed: &BTreeSet<SlotNumber>) {
        let Some(record) = self.arena.slot(slot) else { return };
        // Its last holder has ended that by the slot, and the executor has used the slot again since.
        let is_over = |known: &Socket| {
            known.state == State::Accepted && known.generation != record.generation.load(SeqCst)
        };
        if self.sockets.get(&slot).is_some_and(|known| !is_over(known)) {
            return;
        }
        self.sockets.remove(&slot);
        let is_its =
            record.owner.load(SeqCst) == owner && record.kind.load(SeqCst) == silk_stream::kind::STREAM;
        if is_its && !handed.contains(&slot) {
            self.sockets.insert(
                slot,
                Socket {
                    kind: Kind::Stream,
                    generation: record.generation.load(SeqCst),
                    local: None,
                    held: None,
                    state: State::Accepted,
                    holders: vec![owner],
                    chose_port: false,
                    has_peer: false,
                    is_of_graph: false,
                    opened: 0,
                    rings: None,
                },
            );
        }
    }

    /// `process` passes a socket to another: who holds it on its way, as if that were a process.
    ///
    /// # Errors
    /// It is not its own, or there is no room.
    pub fn pass(
        &mut self,
        process: ProcessNumber,
        (slot, generation): (SlotNumber, u32),
        ticket: u64,
    ) -> Result<ProcessNumber, NotPassed> {
        let handed = self.handed_to(process);
        self.note_accepted(process, slot, &handed);
        self.held(process, (slot, generation)).ok_or(NotPassed::NotHeld)?;
        if !self.has_room() || !self.may_hold(1) {
            return Err(NotPassed::NoRoom);
        }
        let carrier = self.join(None);
        self.processes.entry(carrier).and_modify(|known| known.ticket = Some((ticket, slot)));
        let socket = self.sockets.get_mut(&slot).ok_or(NotPassed::NotHeld)?;
        socket.holders.push(carrier);
        mirror_holders(&self.arena, slot, socket);
        Ok(carrier)
    }

    /// `process` has received a socket that was passed to it, and holds it now; once more, if it did already. Whether it had been.
    pub fn take(
        &mut self,
        process: ProcessNumber,
        (slot, generation): (SlotNumber, u32),
        ticket: u64,
    ) -> bool {
        let carrier = self.processes.iter().find(|(_, known)| known.ticket == Some((ticket, slot)));
        let carrier = carrier.map(|(carrier, _)| *carrier);
        let Some(socket) = self.sockets.get_mut(&slot).filter(|socket| socket.generation == generation)
        else {
            return false;
        };
        let place = socket.holders.iter().position(|holder| Some(*holder) == carrier);
        if let Some(place) = place {
            socket.holders[place] = process;
            mirror_holders(&self.arena, slot, socket);
        }
        place.is_some()
    }

    /// `process` lets go of a socket. `Some` when it was the last holder, with the socket. It
    /// is then forgotten here, unless an executor has something of it: that says when it is gone.
    pub fn release(&mut self, process: ProcessNumber, slot: SlotNumber) -> Option<Socket> {
        let holders = &mut self.sockets.get_mut(&slot)?.holders;
        let place = holders.iter().position(|holder| *holder == process)?;
        holders.swap_remove(place);
        self.released(slot)
    }

    /// Of a socket that a holder has let go of: as [`Family::release`].
    fn released(&mut self, slot: SlotNumber) -> Option<Socket> {
        let socket = self.sockets.get(&slot)?;
        match (socket.holders.is_empty(), socket.state) {
            (true, State::Served { .. } | State::Leaving { .. }) => Some(socket.clone()),
            (true, _) => self.sockets.remove(&slot),
            (false, _) => {
                mirror_holders(&self.arena, slot, socket);
                None
            }
        }
    }

    /// `process` lets go of a socket, however often it holds it: as [`Family::release`].
    fn release_all(&mut self, process: ProcessNumber, slot: SlotNumber) -> Option<Socket> {
        let holders = &mut self.sockets.get_mut(&slot)?.holders;
        let before = holders.len();
        holders.retain(|holder| *holder != process);
        if holders.len() < before { self.released(slot) } else { None }
    }

    /// Everything a process held, let go. Returns the sockets of which it was the last
    /// holder, and the threads and bells that it had. The records of the threads, and the numbers of
    /// the bells, are free when no executor knows them ([`Family::return_thread`], [`Family::return_bell`]).
    pub fn leave(&mut self, process: ProcessNumber) -> (Vec<(SlotNumber, Socket)>, Process) {
        let gone = self.processes.remove(&process).unwrap_or_default();
        let held =
            |(slot, socket): (&SlotNumber, &Socket)| socket.holders.contains(&process).then_some(*slot);
        let slots = match gone.ticket {
            Some((_, slot)) => vec![slot],
            None => self.sockets.iter().filter_map(held).collect(),
        };
        let mut last = Vec::new();
        for slot in slots {
            // It may have been killed in the middle of something.
            if let Some(shared) = self.arena.shared(slot).filter(|_| self.is_shared(slot)) {
                shared.let_go(process);
            }
            last.extend(self.release_all(process, slot).map(|socket| (slot, socket)));
        }
        (last, gone)
    }

    /// `process` is another program now, by `exec`: the threads and the event sets that it had before are
    /// gone, and it does not know what it might have come to connect with. As [`Family::leave`].
    pub fn renew(&mut self, process: ProcessNumber) -> (Vec<(SlotNumber, Socket)>, Process) {
        let Some(known) = self.processes.get_mut(&process) else { return Default::default() };
        let before = Process { pid: known.pid, user: known.user, ..Process::default() };
        let gone = std::mem::replace(known, before);
        let is_left = |(slot, socket): (&SlotNumber, &Socket)| {
            let spare = self.arena.slot(*slot).is_some_and(is_spare);
            (spare && socket.holders.contains(&process)).then_some(*slot)
        };
        let left: Vec<_> = self.sockets.iter().filter_map(is_left).collect();
        let last = left.into_iter().filter_map(|slot| Some((slot, self.release(process, slot)?)));
        (last.collect(), gone)
    }

    /// `process` is about to execute another program, or could not.
    pub fn executes(&mut self, process: ProcessNumber, now: bool) {
        self.processes.get_mut(&process).into_iter().for_each(|process| process.executes = now);
    }

    /// Whether several hold it.
    fn is_shared(&self, slot: SlotNumber) -> bool {
        self.sockets.get(&slot).is_some_and(|socket| socket.holders.len() > 1)
    }
}

/// Tells the library whether a close needs a message, and the executors who is left.
fn mirror_holders(arena: &Arena, slot: SlotNumber, socket: &Socket) {
    let is_its = |record: &&silk_stream::Slot| record.generation.load(SeqCst) == socket.generation;
    let Some(record) = arena.slot(slot).filter(is_its) else { return };
    if let [last] = socket.holders[..] {
        record.owner.store(last, SeqCst);
    }
    record.holders.store(socket.holders.len() as u32, SeqCst);
}

#[cfg(test)]
mod tests {
    use super::super::PROCESSES;
    use super::super::tests::family;
    use super::*;
    use silk_stream::BELLS;

    fn socket(holder: ProcessNumber) -> Socket {
        Socket {
            kind: Kind::Stream,
            generation: 1,
            local: None,
            held: None,
            state: State::Bound,
            holders: vec![holder],
            chose_port: false,
            has_peer: false,
            is_of_graph: false,
            opened: 0,
            rings: None,
        }
    }

    /// A slot with a socket that `holder` holds.
    fn held(family: &mut Family, holder: ProcessNumber) -> SlotNumber {
        let slot = family.pool.take_slot().unwrap();
        family.arena.slot(slot).unwrap().generation.store(1, SeqCst);
        family.sockets.insert(slot, socket(holder));
        slot
    }

    #[test]
    fn a_childs_copy_outlives_its_parent() {
        let mut family = family();
        let parent = family.join(Some(1));
        let slot = held(&mut family, parent);
        let child = family.fork(parent).unwrap();
        let (last, _) = family.leave(parent);
        assert!(last.is_empty());
        assert_eq!(family.arena.slot(slot).unwrap().owner.load(SeqCst), child);
        assert_eq!(family.arena.slot(slot).unwrap().holders.load(SeqCst), 1);
        let (last, _) = family.leave(child);
        assert_eq!(last.len(), 1);
        assert!(family.is_deserted());
    }

    #[test]
    fn a_child_holds_what_its_parent_was_passed_once_more_as_often_as_that() {
        let mut family = family();
        let parent = family.join(Some(1));
        let slot = held(&mut family, parent);
        family.pass(parent, (slot, 1), 99).unwrap();
        assert!(family.take(parent, (slot, 1), 99));
        let child = family.fork(parent).unwrap();
        assert!(family.leave(parent).0.is_empty());
        assert!(family.release(child, slot).is_none());
        assert!(family.held(child, (slot, 1)).is_some());
        assert!(family.release(child, slot).is_some());
    }

    #[test]
    fn an_accepted_connection_gets_an_entry_when_its_owner_forks() {
        let mut family = family();
        let parent = family.join(None);
        let slot = family.pool.take_slot().unwrap();
        let record = family.arena.clone();
        let record = record.slot(slot).unwrap();
        record.kind.store(silk_stream::kind::STREAM, SeqCst);
        record.owner.store(parent, SeqCst);
        // As long as it was only handed to one of the threads, no child knows of it.
        let thread = family.take_thread(parent).unwrap();
        family.arena.thread(thread).unwrap().handed.store(slot + 1, SeqCst);
        assert!(family.fork(parent).is_some());
        assert!(family.sockets.is_empty());
        family.arena.thread(thread).unwrap().handed.store(0, SeqCst);
        let child = family.fork(parent).unwrap();
        assert_eq!(record.holders.load(SeqCst), 2);
        assert!(family.release(child, slot).is_none());
        assert!(family.release(parent, slot).is_some_and(|s| s.state == State::Accepted));
    }

    #[test]
    fn a_socket_on_its_way_is_held_until_it_is_taken_and_then_by_who_has_it() {
        let mut family = family();
        let [sender, receiver] = [family.join(Some(1)), family.join(Some(2))];
        let slot = held(&mut family, sender);
        let holders = |family: &Family| family.arena.slot(slot).unwrap().holders.load(SeqCst);
        assert_eq!(family.pass(receiver, (slot, 1), 99), Err(NotPassed::NotHeld), "not its own");
        assert_eq!(family.pass(sender, (slot, 2), 99), Err(NotPassed::NotHeld), "another use of the slot");
        let carrier = family.pass(sender, (slot, 1), 99).unwrap();
        assert_eq!(holders(&family), 2);
        assert!(family.release(sender, slot).is_none(), "it is on its way");
        assert!(!family.take(receiver, (slot, 1), 98) && !family.take(receiver, (slot, 2), 99));
        assert!(family.take(receiver, (slot, 1), 99));
        assert!(!family.take(receiver, (slot, 1), 99), "once");
        assert!(family.leave(carrier).0.is_empty());
        assert_eq!(family.arena.slot(slot).unwrap().owner.load(SeqCst), receiver);
        assert_eq!(family.leave(receiver).0.len(), 1);
    }

    #[test]
    fn a_socket_that_nobody_takes_goes_with_the_message() {
        let mut family = family();
        let sender = family.join(Some(1));
        let slot = held(&mut family, sender);
        let carrier = family.pass(sender, (slot, 1), 99).unwrap();
        assert!(family.leave(sender).0.is_empty());
        assert!(!family.is_deserted());
        assert_eq!(family.leave(carrier).0.len(), 1);
        assert!(family.is_deserted());
    }

    #[test]
    fn who_passes_to_itself_holds_it_twice() {
        let mut family = family();
        let own = family.join(Some(1));
        let slot = held(&mut family, own);
        let carrier = family.pass(own, (slot, 1), 99).unwrap();
        assert!(family.take(own, (slot, 1), 99));
        family.leave(carrier);
        assert!(family.release(own, slot).is_none());
        assert_eq!(family.arena.slot(slot).unwrap().holders.load(SeqCst), 1);
        family.sockets.get_mut(&slot).unwrap().holders.push(own);
        assert_eq!(family.leave(own).0.len(), 1);
    }

    #[test]
    fn a_family_has_so_many_processes_at_most_and_holds_its_sockets_so_often() {
        let mut family = family();
        let own = family.join(Some(1));
        let slot = held(&mut family, own);
        let first = family.pass(own, (slot, 1), 0).unwrap();
        let others = (2..PROCESSES).map(|ticket| family.pass(own, (slot, 1), ticket as u64));
        assert!(others.collect::<Result<Vec<_>, _>>().is_ok());
        assert_eq!(family.pass(own, (slot, 1), 7), Err(NotPassed::NoRoom));
        assert_eq!(family.fork(own), None);
        family.leave(first);
        family.sockets.get_mut(&slot).unwrap().holders = vec![own; HOLDINGS / 2 + 1];
        family.holdings = HOLDINGS;
        assert!(family.has_room() && family.fork(own).is_none());
        family.sockets.get_mut(&slot).unwrap().holders.pop();
        let child = family.fork(own).unwrap();
        assert_eq!(family.pass(own, (slot, 1), 7), Err(NotPassed::NoRoom));
        family.leave(child);
        assert!(family.pass(own, (slot, 1), 7).is_ok());
    }

    #[test]
    fn an_accepted_connection_that_is_over_does_not_stand_for_the_next_of_its_slot() {
        let mut family = family();
        let parent = family.join(None);
        let slot = family.pool.take_slot().unwrap();
        let arena = family.arena.clone();
        let record = arena.slot(slot).unwrap();
        record.kind.store(silk_stream::kind::STREAM, SeqCst);
        record.owner.store(parent, SeqCst);
        let [child, _other] = [(); 2].map(|()| family.fork(parent).unwrap());
        // It has ended, and the parent accepts the next.
        record.generation.fetch_add(1, SeqCst);
        record.owner.store(parent, SeqCst);
        record.holders.store(1, SeqCst);
        assert!(family.leave(child).0.is_empty());
        assert_eq!(record.holders.load(SeqCst), 1);
        let generation = record.generation.load(SeqCst);
        assert!(family.pass(parent, (slot, generation), 99).is_ok());
        assert_eq!(family.sockets[&slot].generation, generation);
        assert_eq!(record.holders.load(SeqCst), 2);
    }

    #[test]
    fn an_exec_leaves_the_sockets_and_nothing_else() {
        let mut family = family();
        let [process, other] = [(); 2].map(|()| family.join(Some(1)));
        let [kept, spare, others] = [process, process, other].map(|holder| held(&mut family, holder));
        for slot in [spare, others] {
            family.arena.slot(slot).unwrap().status.store(silk_stream::status::SPARE, SeqCst);
        }
        for _ in 0..3 {
            let threads = [(); 2].map(|()| family.take_thread(process).unwrap());
            let bells: Vec<_> = std::iter::from_fn(|| family.take_bell(process)).collect();
            assert_eq!(bells.len(), BELLS as usize);
            let (_, gone) = family.renew(process);
            assert_eq!((gone.threads, &gone.bells), (threads.to_vec(), &bells));
            threads.into_iter().for_each(|thread| family.return_thread(thread));
            bells.into_iter().for_each(|bell| family.return_bell(bell));
        }
        assert_eq!(family.processes[&process].pid, Some(1));
        assert_eq!(family.sockets.keys().copied().collect::<Vec<_>>(), [kept, others]);
    }
}
