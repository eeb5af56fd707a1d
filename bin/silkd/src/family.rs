//! The processes that share an arena: what one `silk run` started, and its children. The
//! control thread's book of who holds what, so that a process that dies in the middle of
//! anything leaves nothing behind.

use crate::command::{FamilyIndex, Rings};
use crate::files::Places;
use crate::ports::{Held, Sides};
use crate::sleep::Doorbell;
use crate::spares::{Book, Habit, is_spare};
use silk_control::{FamilyToken, Kind, ProcessNumber, SlotNumber};
use silk_path::Endpoint;
use silk_stream::{Arena, BELLS, LISTENERS, OWNER_QUEUED, Pool, THREADS};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

/// Processes of a family, and sockets that are on their way to one, at most: each takes a descriptor of the daemon.
const PROCESSES: usize = 16 << 10;
/// How often the sockets of a family are held at most, by all of its processes: what bounds the memory of the book.
const HOLDINGS: usize = 4 << 20;

/// A family.
pub struct Family {
    /// Its place in every executor's tables.
    pub index: FamilyIndex,
    /// What lets a process join.
    pub token: FamilyToken,
    /// What it shares with the daemon.
    pub arena: Arc<Arena>,
    /// What its programs write to wake each executor.
    pub doorbells: Arc<[Doorbell]>,
    /// The priority each of its threads has now, plus one; the executors' too.
    pub priorities: Arc<[AtomicU32]>,
    /// The control thread's own slots and rings of the arena.
    pub pool: Pool,
    /// The program it was founded for.
    pub program: String,
    /// Its processes.
    pub processes: BTreeMap<ProcessNumber, Process>,
    /// Lifelines that keep the family without being a process of it (`silk run`).
    pub founders: u32,
    /// Sockets that have a name at the control thread: bound, listening, connecting,
    /// datagram, and accepted ones with several holders.
    pub sockets: BTreeMap<SlotNumber, Socket>,
    /// Sockets made ready for those that connect often.
    pub spares: Book,
    /// The files that they may send by reference.
    pub files: Places,
    /// Its event sets are rung: none has let an executor wait.
    pub bells_ring: bool,
    /// At most so often is a socket of it held, but for the first time each.
    holdings: usize,
    next_process: ProcessNumber,
    threads: Numbers,
    bells: Numbers,
    listeners: Numbers,
}

/// A process of a family.
#[derive(Debug, Default)]
pub struct Process {
    /// Its kernel id, once known.
    pub pid: Option<u32>,
    /// The thread records it has been given.
    pub threads: Vec<u32>,
    /// The event sets it has made.
    pub bells: Vec<u32>,
    /// It is no process but a socket that is passed to one: what lets that take it, and which it is.
    pub ticket: Option<(u64, SlotNumber)>,
    /// How often it connects.
    pub habit: Habit,
}

/// A socket the control thread knows.
#[derive(Clone, Debug)]
pub struct Socket {
    /// Stream or datagram.
    pub kind: Kind,
    /// Which use of the slot this is.
    pub generation: u32,
    /// Where it is bound, if it is.
    pub local: Option<Endpoint>,
    /// Where it has its port, if it has one.
    pub held: Option<Held>,
    /// How far it has come.
    pub state: State,
    /// Who holds it.
    pub holders: Vec<ProcessNumber>,
    /// Its rings, once it has them (an accepted connection's are its executor's).
    pub rings: Option<Rings>,
}

impl Socket {
    /// At which IPs it is, as far as it is named.
    pub fn sides(&self) -> Sides {
        self.held.map_or(Sides::BOTH, |held| held.sides)
    }
}

/// How far a socket has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has an address; no executor knows it.
    Bound,
    /// Executors listen for it.
    Listening,
    /// This domain's executor serves it.
    Served {
        /// The domain.
        domain: usize,
    },
    /// Accepted by a program; every executor may be asked.
    Accepted,
    /// Executors still let go of what it was; it will be bound again.
    Leaving {
        /// The lifeline that waits for that.
        peer: u64,
    },
}

/// Why a socket is not passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPassed {
    /// The process does not hold it.
    NotHeld,
    /// Its family has as many processes, or holds its sockets as often, as it may.
    NoRoom,
}

impl Family {
    /// A new family without processes.
    pub fn new(index: FamilyIndex, token: FamilyToken, arena: Arc<Arena>, program: String) -> Self {
        Self {
            index,
            token,
            pool: Pool::new(arena.clone()),
            arena,
            doorbells: Arc::default(),
            priorities: (0..THREADS).map(|_| AtomicU32::new(0)).collect(),
            program,
            processes: BTreeMap::new(),
            founders: 0,
            sockets: BTreeMap::new(),
            spares: Book::default(),
            files: Places::default(),
            bells_ring: true,
            holdings: 0,
            next_process: 1,
            threads: Numbers::new(THREADS),
            bells: Numbers::new(BELLS),
            listeners: Numbers::new(LISTENERS),
        }
    }

    /// Whether nobody is left.
    pub fn is_deserted(&self) -> bool {
        self.processes.is_empty() && self.founders == 0
    }

    /// Whether there is room for a process more.
    pub fn has_room(&self) -> bool {
        self.processes.len() < PROCESSES
    }

    /// Whether its sockets may be held so many times more; counted from then on.
    fn may_hold(&mut self, more: usize) -> bool {
        if self.holdings + more > HOLDINGS {
            self.holdings = self.sockets.values().map(|socket| socket.holders.len()).sum();
        }
        let may = self.holdings + more <= HOLDINGS;
        self.holdings += if may { more } else { 0 };
        may
    }

    /// Takes a process in.
    pub fn join(&mut self, pid: Option<u32>) -> ProcessNumber {
        let number = self.next_process;
        // Zero and what is above mean something else in an owner word.
        self.next_process = if number == OWNER_QUEUED - 1 { 1 } else { number + 1 };
        self.processes.insert(number, Process { pid, ..Process::default() });
        number
    }

    /// Takes in the child of a process. It holds whatever its parent holds, and as often: the parent may have been passed what
    /// it had already. `None`: there is no room for it.
    pub fn fork(&mut self, parent: ProcessNumber) -> Option<ProcessNumber> {
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
        if !self.has_room() || !self.may_hold(held.iter().map(|(_, times)| times).sum()) {
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
    /// holder, and the threads and bells that it had. The records of the threads are free when
    /// no executor knows them ([`Family::return_thread`]).
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
        gone.bells.iter().for_each(|n| self.bells.give_back(*n));
        (last, gone)
    }

    /// `process` is another program now, by `exec`: the threads and the event sets that it had before are
    /// gone, and it does not know what it might have come to connect with. As [`Family::leave`].
    pub fn renew(&mut self, process: ProcessNumber) -> (Vec<(SlotNumber, Socket)>, Process) {
        let Some(known) = self.processes.get_mut(&process) else { return Default::default() };
        let before = Process { pid: known.pid, ..Process::default() };
        let gone = std::mem::replace(known, before);
        gone.bells.iter().for_each(|n| self.bells.give_back(*n));
        let is_left = |(slot, socket): (&SlotNumber, &Socket)| {
            let spare = self.arena.slot(*slot).is_some_and(is_spare);
            (spare && socket.holders.contains(&process)).then_some(*slot)
        };
        let left: Vec<_> = self.sockets.iter().filter_map(is_left).collect();
        let last = left.into_iter().filter_map(|slot| Some((slot, self.release(process, slot)?)));
        (last.collect(), gone)
    }

    /// Whether several hold it.
    fn is_shared(&self, slot: SlotNumber) -> bool {
        self.sockets.get(&slot).is_some_and(|socket| socket.holders.len() > 1)
    }

    /// What a socket had of the arena's rings is there for others again.
    pub fn return_rings(&mut self, rings: Option<Rings>) {
        if let Some(Rings { rx, tx }) = rings {
            self.pool.return_ring(rx);
            self.pool.return_ring(tx);
        }
    }

    /// How many threads it has that wait in `accept` now and then.
    pub fn thread_count(&self) -> usize {
        self.processes.values().map(|process| process.threads.len()).sum()
    }

    /// A record for a thread of `process`.
    pub fn take_thread(&mut self, process: ProcessNumber) -> Option<u32> {
        let process = self.processes.get_mut(&process)?;
        let number = self.threads.take()?;
        process.threads.push(number);
        Some(number)
    }

    /// A thread of `process` has ended; whether it was one. Its record is still an executor's to write.
    pub fn end_thread(&mut self, process: ProcessNumber, number: u32) -> bool {
        let Some(process) = self.processes.get_mut(&process) else { return false };
        let held = process.threads.iter().position(|n| *n == number);
        held.map(|place| process.threads.swap_remove(place)).is_some()
    }

    /// No executor knows the thread any more: its record is free. One that was killed, or ended by an
    /// exec, has left its mark where it waited.
    pub fn return_thread(&mut self, number: u32) {
        for listener in (0..self.listeners.next).filter_map(|n| self.arena.listener(n)) {
            listener.waiters.leave(number);
            let _ = listener.called.compare_exchange(number + 1, 0, SeqCst, SeqCst);
        }
        self.threads.give_back(number);
    }

    /// A number for an event set of `process`.
    pub fn take_bell(&mut self, process: ProcessNumber) -> Option<u32> {
        let process = self.processes.get_mut(&process)?;
        let number = self.bells.take()?;
        process.bells.push(number);
        Some(number)
    }

    /// The event set is gone.
    pub fn return_bell(&mut self, process: ProcessNumber, number: u32) -> bool {
        let Some(process) = self.processes.get_mut(&process) else { return false };
        let held = process.bells.iter().position(|n| *n == number);
        held.map(|place| process.bells.swap_remove(place)).map(|n| self.bells.give_back(n)).is_some()
    }

    /// A record for a listening socket.
    pub fn take_listener(&mut self) -> Option<u32> {
        self.listeners.take()
    }

    /// The record is free again.
    pub fn return_listener(&mut self, number: u32) {
        self.listeners.give_back(number);
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

/// Small numbers given out and taken back, the lowest first.
struct Numbers {
    free: Vec<u32>,
    next: u32,
    limit: u32,
}

impl Numbers {
    fn new(limit: u32) -> Self {
        Self { free: Vec::new(), next: 0, limit }
    }

    fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let number = self.next;
            self.next += u32::from(number < self.limit);
            (number < self.limit).then_some(number)
        })
    }

    fn give_back(&mut self, number: u32) {
        self.free.push(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_stream::Sizes;

    fn family() -> Family {
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
        Family::new(0, 7, arena, "test".into())
    }

    fn socket(holder: ProcessNumber) -> Socket {
        Socket {
            kind: Kind::Stream,
            generation: 1,
            local: None,
            held: None,
            state: State::Bound,
            holders: vec![holder],
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
    fn numbers_return_with_their_process() {
        let mut family = family();
        let process = family.join(None);
        let all: Vec<_> = std::iter::from_fn(|| family.take_bell(process)).collect();
        assert_eq!(all.len(), BELLS as usize);
        family.leave(process);
        let next = family.join(None);
        assert!(family.take_bell(next).is_some());
        assert!(!family.end_thread(next, 5));
    }

    #[test]
    fn a_threads_record_is_free_when_no_executor_knows_it_and_its_marks_go_with_it() {
        let mut family = family();
        let process = family.join(None);
        let [first, killed] = [(); 2].map(|()| family.take_thread(process).unwrap());
        let listener = family.take_listener().unwrap();
        let arena = family.arena.clone();
        let waiters = &arena.listener(listener).unwrap().waiters;
        [first, killed].into_iter().for_each(|thread| waiters.enter(thread));
        arena.listener(listener).unwrap().called.store(killed + 1, SeqCst);
        assert!(family.end_thread(process, killed) && !family.end_thread(process, killed));
        let third = family.take_thread(process).unwrap();
        assert!(third != killed, "an executor may still hand it something");
        family.return_thread(killed);
        assert_eq!(waiters.len(), 1);
        assert!(waiters.leave(first));
        assert_eq!(arena.listener(listener).unwrap().called.load(SeqCst), 0);
        assert_eq!(family.take_thread(process), Some(killed));
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
            assert_eq!((gone.threads, gone.bells), (threads.to_vec(), bells));
            threads.into_iter().for_each(|thread| family.return_thread(thread));
        }
        assert_eq!(family.processes[&process].pid, Some(1));
        assert_eq!(family.sockets.keys().copied().collect::<Vec<_>>(), [kept, others]);
    }
}
