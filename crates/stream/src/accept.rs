//! Established connections waiting for a program to accept them, and the threads waiting
//! for such connections.
//!
//! Each class of a listener has a queue of its own, filled by that class's executor and
//! emptied by the threads of several processes. Ownership of a connection is one word in
//! its slot, changed by compare-and-swap from where it lies ([`OWNER_QUEUED`]) to the taker's
//! process, so a process killed at any point has either taken the connection (the daemon then
//! finds its name there) or not. A thread that is stopped on its way takes nothing that has come to
//! lie elsewhere since.

use crate::counts::RANKS;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// The owner word of a slot that nobody may take.
pub const OWNER_NOBODY: u32 = u32::MAX;
/// The bit of an owner word that says that the slot lies in an accept queue; the others say where: in which queue
/// ([`AcceptQueue::begin`]), and at which of its last 262 144 places. The numbers of processes are smaller.
pub const OWNER_QUEUED: u32 = 1 << 31;

/// Threads of one family that may wait in `accept` at one time.
pub const THREADS: u32 = Waiters::CAPACITY;

const PLACE_BITS: u32 = 18;
/// Which queue, at most, so that no place is [`OWNER_NOBODY`].
const NAMES: u32 = 1 << (30 - PLACE_BITS);

#[cfg(not(loom))]
const QUEUE: usize = 4096;
#[cfg(loom)]
const QUEUE: usize = 2;

/// A bounded queue of slot numbers: one producer (the class's executor), many consumers.
#[repr(C, align(64))]
pub struct AcceptQueue {
    head: AtomicU32,
    tail: AtomicU32,
    /// Which queue of its family it is.
    name: AtomicU32,
    entry: [AtomicU32; QUEUE],
}

impl Default for AcceptQueue {
    fn default() -> Self {
        Self {
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            name: AtomicU32::new(0),
            entry: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

impl AcceptQueue {
    /// The most a queue can hold, whatever the program asks for as its backlog.
    pub const CAPACITY: u32 = QUEUE as u32;

    /// How many entries lie between head and tail, at most the capacity.
    pub fn len(&self) -> u32 {
        let head = self.head.load(Ordering::SeqCst);
        self.tail.load(Ordering::SeqCst).wrapping_sub(head).min(Self::CAPACITY)
    }

    /// Whether there is nothing to take.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries have been taken so far (wrapping): whether it moves shows whether
    /// anybody takes.
    pub fn taken(&self) -> u32 {
        self.head.load(Ordering::SeqCst)
    }

    /// How many entries have been queued so far (wrapping), also those that were taken: whether it moves shows
    /// whether anybody comes. It goes on where the queue is another listening socket's.
    pub fn queued(&self) -> u32 {
        self.tail.load(Ordering::SeqCst)
    }

    /// The daemon's, before a socket listens: it is the queue of the class at `rank` of that listening socket's record.
    pub fn begin(&self, listener: u32, rank: usize) {
        self.name.store(listener * RANKS as u32 + rank as u32, Ordering::SeqCst);
    }

    /// The owner word of what lies at a place.
    fn owner_at(&self, place: u32) -> u32 {
        let name = self.name.load(Ordering::SeqCst) % NAMES;
        OWNER_QUEUED | (name << PLACE_BITS) | (place % (1 << PLACE_BITS))
    }

    /// Queues `slot`, whose owner word is `owner`, and makes it takeable. `false` when the
    /// queue is full. Only the daemon calls this, from one thread a queue.
    pub fn push(&self, slot: u32, owner: &AtomicU32) -> bool {
        if self.len() == Self::CAPACITY {
            return false;
        }
        let tail = self.tail.load(Ordering::SeqCst);
        self.entry[tail as usize % QUEUE].store(slot, Ordering::SeqCst);
        owner.store(self.owner_at(tail), Ordering::SeqCst);
        self.tail.store(tail.wrapping_add(1), Ordering::SeqCst);
        // Pairs with the fence in `Waiters::enter`: of a push and a wait at the same time,
        // at least one sees the other.
        fence(Ordering::SeqCst);
        true
    }

    /// Takes the oldest connection for process `me`; `owner_of` gives a slot's owner word,
    /// or `None` for a number that is no slot. An entry that somebody has taken already
    /// (and perhaps died before moving the head) is stepped over. After as many tries as two full queues have it is given
    /// up: somebody writes into the queue who should not.
    pub fn pop<'a>(&self, me: u32, owner_of: impl Fn(u32) -> Option<&'a AtomicU32>) -> Option<u32> {
        for _ in 0..2 * QUEUE {
            let head = self.head.load(Ordering::SeqCst);
            let waiting = self.tail.load(Ordering::SeqCst).wrapping_sub(head);
            if waiting == 0 || waiting > Self::CAPACITY {
                return None;
            }
            let slot = self.entry[head as usize % QUEUE].load(Ordering::SeqCst);
            let queued = self.owner_at(head);
            let mine = owner_of(slot).is_some_and(|owner| {
                owner.compare_exchange(queued, me, Ordering::SeqCst, Ordering::SeqCst).is_ok()
            });
            let _ =
                self.head.compare_exchange(head, head.wrapping_add(1), Ordering::SeqCst, Ordering::SeqCst);
            if mine {
                return Some(slot);
            }
        }
        None
    }
}

#[cfg(not(loom))]
const WORDS: usize = 32;
#[cfg(loom)]
const WORDS: usize = 1;

/// The threads that wait in `accept` on one listener, a bit each. Ordinary classes take
/// waiters from the low end and preferred ones from the high end, so each keeps using the
/// same few warm threads and their priorities seldom change.
#[repr(C, align(64))]
pub struct Waiters([AtomicU64; WORDS]);

impl Default for Waiters {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Waiters {
    /// How many threads a set can name: `0..CAPACITY`.
    pub const CAPACITY: u32 = (WORDS * 64) as u32;

    /// Thread `number` waits from now on. It must look at the queues once more after this.
    pub fn enter(&self, number: u32) {
        self.0[number as usize / 64].fetch_or(1 << (number % 64), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Thread `number` gives up waiting; `false` when a waker has chosen it already (a
    /// connection may have been handed to it: it must look).
    pub fn leave(&self, number: u32) -> bool {
        let bit = 1 << (number % 64);
        self.0[number as usize / 64].fetch_and(!bit, Ordering::SeqCst) & bit != 0
    }

    /// How many wait.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.load(Ordering::SeqCst).count_ones()).sum()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Chooses the lowest waiter and takes it out of the set.
    pub fn choose_low(&self) -> Option<u32> {
        (0..WORDS).find_map(|word| self.choose(word, |bits| bits.trailing_zeros()))
    }

    /// Chooses the highest waiter and takes it out of the set.
    pub fn choose_high(&self) -> Option<u32> {
        (0..WORDS).rev().find_map(|word| self.choose(word, |bits| 63 - bits.leading_zeros()))
    }

    fn choose(&self, word: usize, pick: impl Fn(u64) -> u32) -> Option<u32> {
        // Each try that fails is somebody else's that does not, as long as nobody writes here who should not.
        for _ in 0..Self::CAPACITY {
            let bits = self.0[word].load(Ordering::SeqCst);
            if bits == 0 {
                return None;
            }
            let number = word as u32 * 64 + pick(bits);
            if self.leave(number) {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn connections_are_taken_in_order_and_once() {
        let queue = AcceptQueue::default();
        let owners: Vec<AtomicU32> = (0..3).map(|_| AtomicU32::new(OWNER_NOBODY)).collect();
        for slot in 0..3 {
            assert!(queue.push(slot, &owners[slot as usize]));
        }
        let owner_of = |slot: u32| owners.get(slot as usize);
        assert_eq!(queue.pop(7, owner_of), Some(0));
        assert_eq!(queue.pop(8, owner_of), Some(1));
        assert_eq!(queue.pop(9, owner_of), Some(2));
        assert_eq!(queue.pop(9, owner_of), None);
        assert_eq!(owners[1].load(Ordering::SeqCst), 8);
    }

    #[test]
    fn a_taker_that_died_before_moving_the_head_is_stepped_over() {
        let queue = AcceptQueue::default();
        let owners = [AtomicU32::new(OWNER_NOBODY), AtomicU32::new(OWNER_NOBODY)];
        queue.push(0, &owners[0]);
        queue.push(1, &owners[1]);
        owners[0].store(99, Ordering::SeqCst);
        assert_eq!(queue.pop(7, |slot| owners.get(slot as usize)), Some(1));
        assert!(queue.is_empty());
    }

    #[test]
    fn what_has_come_is_counted_whoever_takes_it_and_whoever_listens() {
        let queue = AcceptQueue::default();
        let owner = AtomicU32::new(OWNER_NOBODY);
        let mut counts = vec![queue.queued()];
        for _ in 0..2 {
            queue.begin(3, 0);
            assert!(queue.push(0, &owner));
            counts.push(queue.queued());
            assert_eq!(queue.pop(7, |_| Some(&owner)), Some(0));
            counts.push(queue.queued());
        }
        assert_eq!(counts, [0, 1, 1, 2, 2]);
    }

    #[test]
    fn who_was_stopped_takes_nothing_from_another_queue() {
        let [one, other] = [AcceptQueue::default(), AcceptQueue::default()];
        one.begin(3, 0);
        other.begin(4, 0);
        let owner = AtomicU32::new(OWNER_NOBODY);
        assert!(one.push(0, &owner));
        // Between its look at the queue and its attempt the connection is served, ends, and its slot lies elsewhere.
        let taken = one.pop(7, |_| {
            if one.tail.load(Ordering::SeqCst) == 1 && other.is_empty() {
                assert_eq!(one.pop(8, |_| Some(&owner)), Some(0));
                assert!(other.push(0, &owner));
            }
            Some(&owner)
        });
        assert_eq!(taken, None);
        assert_eq!(other.pop(9, |_| Some(&owner)), Some(0));
    }

    #[test]
    fn who_was_stopped_takes_nothing_that_lies_elsewhere_in_the_queue_now() {
        let queue = AcceptQueue::default();
        let owners = [AtomicU32::new(OWNER_NOBODY), AtomicU32::new(OWNER_NOBODY)];
        let owner_of = |slot: u32| owners.get(slot as usize);
        assert!(queue.push(0, &owners[0]));
        let stopped = std::cell::Cell::new(true);
        let taken = queue.pop(7, |slot| {
            if stopped.take() {
                assert_eq!(queue.pop(8, owner_of), Some(0));
                assert!(queue.push(1, &owners[1]) && queue.push(0, &owners[0]));
            }
            owner_of(slot)
        });
        assert_eq!(taken, Some(1), "the oldest");
        assert_eq!(queue.pop(9, owner_of), Some(0));
    }

    #[test]
    fn a_place_in_a_queue_is_neither_a_process_nor_nobody() {
        let queue = AcceptQueue::default();
        queue.begin(crate::LISTENERS - 1, RANKS - 1);
        for place in [0, 1, u32::MAX] {
            assert_ne!(queue.owner_at(place), OWNER_NOBODY);
            assert!(queue.owner_at(place) >= OWNER_QUEUED);
        }
        let [first, last] = [AcceptQueue::default(), queue];
        assert_ne!(first.owner_at(5), last.owner_at(5));
    }

    #[test]
    fn a_full_queue_refuses_and_nonsense_indices_yield_nothing() {
        let queue = AcceptQueue::default();
        let owner = AtomicU32::new(OWNER_NOBODY);
        for _ in 0..AcceptQueue::CAPACITY {
            assert!(queue.push(0, &owner));
        }
        assert!(!queue.push(0, &owner));
        queue.head.store(12345, Ordering::SeqCst);
        assert_eq!(queue.pop(1, |_| None), None);
    }

    #[test]
    fn who_writes_into_a_queue_or_a_set_all_the_time_keeps_nobody_for_good() {
        let queue = AcceptQueue::default();
        let owner = AtomicU32::new(7);
        let taken = queue.pop(1, |_| {
            queue.tail.fetch_add(1, Ordering::SeqCst);
            Some(&owner)
        });
        assert_eq!(taken, None, "nothing was there at first");
        assert!(queue.push(0, &owner));
        owner.store(7, Ordering::SeqCst);
        let taken = queue.pop(1, |_| {
            queue.tail.fetch_add(1, Ordering::SeqCst);
            Some(&owner)
        });
        assert_eq!(taken, None);
        let waiters = Waiters::default();
        waiters.enter(3);
        assert_eq!(waiters.choose(0, |_| 5), None, "it is gone whenever it is to be taken");
    }

    #[test]
    fn waiters_are_chosen_from_both_ends() {
        let waiters = Waiters::default();
        for n in [3, 70, 200] {
            waiters.enter(n);
        }
        assert_eq!(waiters.choose_high(), Some(200));
        assert_eq!(waiters.choose_low(), Some(3));
        assert!(waiters.leave(70));
        assert!(!waiters.leave(70));
        assert!(waiters.is_empty());
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Two threads accept while the daemon queues one connection: exactly one gets it.
    #[test]
    fn one_connection_has_one_taker() {
        loom::model(|| {
            let shared = Arc::new((AcceptQueue::default(), AtomicU32::new(OWNER_NOBODY)));
            let takers: Vec<_> = [1, 2]
                .into_iter()
                .map(|me| {
                    let shared = shared.clone();
                    thread::spawn(move || shared.0.pop(me, |_| Some(&shared.1)).is_some())
                })
                .collect();
            assert!(shared.0.push(0, &shared.1));
            let taken = takers.into_iter().map(|t| t.join().unwrap());
            let taken = taken.filter(|took| *took).count();
            let left = usize::from(shared.0.pop(3, |_| Some(&shared.1)).is_some());
            assert_eq!(taken + left, 1);
        });
    }

    /// A thread that announces its wait and then looks once more, and a daemon that queues
    /// and then looks for waiters, never miss each other.
    #[test]
    fn a_wait_and_a_push_meet() {
        loom::model(|| {
            let shared = Arc::new((AcceptQueue::default(), AtomicU32::new(OWNER_NOBODY), Waiters::default()));
            let waiter = {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.2.enter(5);
                    shared.0.pop(1, |_| Some(&shared.1)).is_some()
                })
            };
            shared.0.push(0, &shared.1);
            let woken = shared.2.choose_low().is_some();
            assert!(waiter.join().unwrap() || woken);
        });
    }
}
