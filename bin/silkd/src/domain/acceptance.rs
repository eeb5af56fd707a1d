//! Bringing established connections to the threads that accept them (SILK §3.3).
//!
//! An ordinary connection goes to its class's accept queue, and one waiting thread is called
//! if nobody is on the way there and enough of them remain for the higher classes. A
//! connection of an extended class is handed to a thread that waits: it gets the connection's
//! priority first, then the connection, then it is woken. Every step is a compare-and-swap, so
//! executors of different classes never wait for each other.

use crate::domain::delivery::Delivery;
use crate::domain::family_end::FamilyEnd;
use silk_stream::{Listener, OWNER_NOBODY, Slot, THREADS, named, waiting, wake};
use std::sync::atomic::Ordering::SeqCst;

/// What became of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    /// Handed to this thread, which has the connection's priority.
    Handed(u32),
    /// Queued.
    Queued,
    /// The queue is full.
    Full,
}

/// Brings connection `slot` (its record `record`) to whoever accepts on the listening socket
/// `on` (its record `on_record`, its shared part `listener`, of that number).
pub fn bring(
    family: &FamilyEnd,
    (number, listener): (u32, &Listener),
    (on, on_record): (u32, &Slot),
    (slot, record): (u32, &Slot),
    delivery: Delivery,
) -> Brought {
    if let Some(priority) = delivery.extend_to
        && let Some(thread) = hand_over(family, listener, (slot, record), delivery, priority)
    {
        return Brought::Handed(thread);
    }
    let Some(queue) = listener.queue.get(delivery.rank) else { return Brought::Full };
    if !queue.push(slot, &record.owner) {
        return Brought::Full;
    }
    call_one(family, (number, listener), delivery);
    if on_record.waiting.load(SeqCst) & waiting::READ != 0
        && wake::take_sleepers(&on_record.waiting, waiting::READ)
    {
        family.wake_sleepers(on, on_record, None);
    }
    family.ring_bells(on, on_record);
    Brought::Queued
}

/// Chooses a waiting thread, raises it, gives it the connection and wakes it.
fn hand_over(
    family: &FamilyEnd,
    listener: &Listener,
    (slot, record): (u32, &Slot),
    Delivery { rank, base, .. }: Delivery,
    priority: u32,
) -> Option<u32> {
    // A program that writes there all the time is not obeyed for good.
    for _ in 0..THREADS {
        let number = listener.waiters.choose_high()?;
        let Some(thread) = family.thread(number) else { continue };
        let shared = family.arena.thread(number)?;
        // A thread we may not raise is served all the same, at its own priority.
        family.extend(number, base, priority, rank);
        record.owner.store(thread.process, SeqCst);
        record.thread.store(named::word(Some(number)), SeqCst);
        if shared.handed.compare_exchange(0, slot + 1, SeqCst, SeqCst).is_err() {
            // It holds one it has not taken yet: it will come back for a queue's.
            record.owner.store(OWNER_NOBODY, SeqCst);
            family.wake_thread(number);
            continue;
        }
        family.wake_thread(number);
        return Some(number);
    }
    None
}

/// Calls one waiting thread to look at the queues, if more wait than must be left and nobody
/// is on the way.
pub fn call_one(family: &FamilyEnd, (number, listener): (u32, &Listener), delivery: Delivery) {
    if family.is_called(number, listener) {
        return;
    }
    let left = if delivery.rank == 0 { listener.reserve.load(SeqCst) } else { 0 };
    for _ in 0..THREADS {
        if listener.waiters.len() <= left {
            return;
        }
        let Some(waiter) = listener.waiters.choose_low() else { return };
        if family.thread(waiter).is_none() {
            continue;
        }
        if family.priority_of(waiter).is_some() && delivery.extend_to.is_none() {
            family.extend(waiter, delivery.base, 0, 0);
        }
        listener.called.store(waiter + 1, SeqCst);
        family.wake_thread(waiter);
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::between::thread_end::ThreadEnd;
    use crate::threads::program_thread::ProgramThread;
    use silk_stream::{Arena, Sizes};
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    const ORDINARY: Delivery = Delivery { rank: 0, extend_to: None, base: 10 };

    /// A family with threads 0..n, which are records only.
    fn family(n: u32) -> FamilyEnd {
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 2 }).unwrap();
        let priorities: Arc<[AtomicU32]> = (0..THREADS).map(|_| AtomicU32::new(0)).collect();
        let mut family = FamilyEnd::new(arena, priorities, (0, 1));
        let thread = Arc::new(ProgramThread::nobody());
        (0..n)
            .for_each(|t| family.set_thread(t, Some(ThreadEnd { process: 70 + t, thread: thread.clone() })));
        family
    }

    fn bring_to(family: &FamilyEnd, slot: u32, delivery: Delivery) -> Brought {
        let arena = &family.arena;
        let on = (9, arena.slot(9).unwrap());
        bring(family, (0, arena.listener(0).unwrap()), on, (slot, arena.slot(slot).unwrap()), delivery)
    }

    #[test]
    fn an_extended_connection_is_handed_to_the_highest_waiter() {
        let family = family(3);
        let listener = family.arena.listener(0).unwrap();
        (0..3).for_each(|t| listener.waiters.enter(t));
        let delivery = Delivery { rank: 1, extend_to: Some(2), base: 10 };
        assert_eq!(bring_to(&family, 5, delivery), Brought::Handed(2));
        assert_eq!(family.arena.thread(2).unwrap().handed.load(SeqCst), 6);
        assert_eq!(family.arena.slot(5).unwrap().owner.load(SeqCst), 72);
        assert_eq!(listener.waiters.len(), 2);
    }

    #[test]
    fn an_ordinary_one_leaves_the_reserve_alone() {
        let family = family(2);
        let listener = family.arena.listener(0).unwrap();
        listener.reserve.store(2, SeqCst);
        (0..2).for_each(|t| listener.waiters.enter(t));
        assert_eq!(bring_to(&family, 5, ORDINARY), Brought::Queued);
        assert_eq!(listener.waiters.len(), 2);
        listener.reserve.store(1, SeqCst);
        assert_eq!(bring_to(&family, 6, ORDINARY), Brought::Queued);
        assert!(!listener.waiters.leave(0));
    }

    #[test]
    fn one_thread_is_called_at_a_time_and_another_when_it_has_looked_or_is_lost() {
        let mut family = family(4);
        let arena = family.arena.clone();
        let listener = arena.listener(0).unwrap();
        (0..4).for_each(|t| listener.waiters.enter(t));
        (5..8).for_each(|slot| assert_eq!(bring_to(&family, slot, ORDINARY), Brought::Queued));
        assert_eq!((listener.waiters.len(), listener.called.load(SeqCst)), (3, 1));
        listener.called.store(0, SeqCst);
        bring_to(&family, 8, ORDINARY);
        assert_eq!((listener.waiters.len(), listener.called.load(SeqCst)), (2, 2));
        // Thread 1 dies on the way.
        family.set_thread(1, None);
        bring_to(&family, 9, ORDINARY);
        assert_eq!((listener.waiters.len(), listener.called.load(SeqCst)), (1, 3));
    }

    #[test]
    fn without_a_waiter_an_extended_one_is_queued_in_its_own_queue() {
        let family = family(0);
        let delivery = Delivery { rank: 1, extend_to: Some(2), base: 10 };
        assert_eq!(bring_to(&family, 5, delivery), Brought::Queued);
        assert_eq!(family.arena.listener(0).unwrap().queue[1].len(), 1);
    }
}
