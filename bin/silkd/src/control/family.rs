//! The processes that share an arena: what one `silk run` started, and its children, with their
//! numbers for threads, event sets and listening sockets. Who holds which socket stands in
//! [`holding`].

mod holding;

pub use holding::NotPassed;

use crate::between::names::FamilyIndex;
use crate::between::sockets::Rings;
use crate::between::watch::Doorbell;
use crate::binding::Sides;
use crate::control::files::Places;
use crate::control::lanes::Lanes;
use crate::control::ports::Held;
use crate::control::spares::{Book, Habit};
use crate::control::unobeyed::Unobeyed;
use silk_control::{FamilyToken, Kind, ProcessNumber, SlotNumber};
use silk_path::Endpoint;
use silk_stream::{Arena, BELLS, LISTENERS, OWNER_QUEUED, Pool, THREADS};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

/// Processes of a family, and sockets that are on their way to one, at most: each takes a descriptor of the daemon.
const PROCESSES: usize = 16 << 10;
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
    /// The user whose it is, where it is known.
    pub user: Option<u32>,
    /// Its processes.
    pub processes: BTreeMap<ProcessNumber, Process>,
    /// Lifelines that keep the family without being a process of it (`silk run`).
    pub founders: u32,
    /// Sockets that have a name at the control thread: bound, listening, connecting,
    /// datagram, and accepted ones with several holders.
    pub sockets: BTreeMap<SlotNumber, Socket>,
    /// The lanes of those of them that have any.
    pub lanes: BTreeMap<SlotNumber, Lanes>,
    /// Of each lane, by its slot, the socket's.
    pub lane_of: BTreeMap<SlotNumber, SlotNumber>,
    /// Sockets made ready for those that connect often.
    pub spares: Book,
    /// The files that they may send by reference.
    pub files: Places,
    /// Its event sets are rung: none has let an executor wait.
    pub bells_ring: bool,
    /// What the executors were ordered for it.
    pub unobeyed: Unobeyed,
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
    /// Its real user when it asked for something last.
    pub user: Option<u32>,
    /// The thread records it has been given.
    pub threads: Vec<u32>,
    /// The event sets it has made.
    pub bells: Vec<u32>,
    /// It is no process but a socket that is passed to one: what lets that take it, and which it is.
    pub ticket: Option<(u64, SlotNumber)>,
    /// How often it connects.
    pub habit: Habit,
    /// It is about to execute another program: what it leaves is closed in order.
    pub executes: bool,
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
    /// Its program chose its port.
    pub chose_port: bool,
    /// It is a datagram socket that hears one peer alone.
    pub has_peer: bool,
    /// It is a path of the graph, with modules of its own: it has no lanes, which are ordinary paths.
    pub is_of_graph: bool,
    /// The how manieth datagram socket that was opened it is.
    pub opened: u64,
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
            user: None,
            processes: BTreeMap::new(),
            founders: 0,
            sockets: BTreeMap::new(),
            lanes: BTreeMap::new(),
            lane_of: BTreeMap::new(),
            spares: Book::default(),
            files: Places::default(),
            bells_ring: true,
            unobeyed: Unobeyed::default(),
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

    /// Takes a process in.
    pub fn join(&mut self, pid: Option<u32>) -> ProcessNumber {
        // One that is old may live still when the numbers begin again.
        while self.processes.contains_key(&self.next_process) {
            self.next_process = after(self.next_process);
        }
        let number = self.next_process;
        self.next_process = after(number);
        self.processes.insert(number, Process { pid, ..Process::default() });
        number
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

    /// An event set of `process` is gone; whether it was one. Its eventfd is still with executors.
    pub fn end_bell(&mut self, process: ProcessNumber, number: u32) -> bool {
        let Some(process) = self.processes.get_mut(&process) else { return false };
        let held = process.bells.iter().position(|n| *n == number);
        held.map(|place| process.bells.swap_remove(place)).is_some()
    }

    /// No executor knows the event set any more: its number is free.
    pub fn return_bell(&mut self, number: u32) {
        self.bells.give_back(number);
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

/// The number of the next process. Zero and what is above mean something else in an owner word.
fn after(number: ProcessNumber) -> ProcessNumber {
    if number == OWNER_QUEUED - 1 { 1 } else { number + 1 }
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

    pub fn family() -> Family {
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
        Family::new(0, 7, arena, "test".into())
    }

    #[test]
    fn the_number_of_an_event_set_is_free_when_no_executor_knows_it() {
        let mut family = family();
        let process = family.join(None);
        let all: Vec<_> = std::iter::from_fn(|| family.take_bell(process)).collect();
        assert_eq!(all.len(), BELLS as usize);
        assert!(family.end_bell(process, 3) && !family.end_bell(process, 3));
        assert_eq!(family.take_bell(process), None, "an executor may still hold its eventfd");
        family.return_bell(3);
        assert_eq!(family.take_bell(process), Some(3));
        let (_, gone) = family.leave(process);
        assert_eq!(gone.bells.len(), BELLS as usize);
        let next = family.join(None);
        assert_eq!(family.take_bell(next), None);
        family.return_bell(7);
        assert_eq!(family.take_bell(next), Some(7));
        assert!(!family.end_thread(next, 5));
    }

    #[test]
    fn who_lives_keeps_its_number_when_they_begin_again() {
        let mut family = family();
        let old = [(); 3].map(|()| family.join(Some(1)));
        family.leave(old[1]);
        family.next_process = OWNER_QUEUED - 1;
        assert_eq!([(); 3].map(|()| family.join(None)), [OWNER_QUEUED - 1, old[1], old[2] + 1]);
        assert_eq!(family.processes[&old[0]].pid, Some(1));
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
}
