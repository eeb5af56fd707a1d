//! A listening socket: its terms, what waits in its queues, and who waits for that.

use crate::errno::Answer;
use crate::family::{self, Family};
use crate::socket::Socket;
use silk_control::Request;
use silk_stream::{AcceptQueue, Listener, Slot, wake};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Tells the daemon the terms a socket listens under: at first, and whenever they change.
///
/// # Errors
/// What the daemon refuses with.
pub fn tell_terms(socket: &Socket) -> Answer<()> {
    let (backlog, defer_accept) =
        (socket.settings.backlog.load(SeqCst), socket.settings.defer_accept.load(SeqCst));
    let (slot, generation) = socket.name();
    family::ask(&Request::Listen { slot, generation, backlog, defer_accept }, &[])?;
    Ok(())
}

/// Whether a connection waits to be accepted.
pub fn is_waiting(slot: &Slot) -> bool {
    of(slot).is_some_and(is_waiting_in)
}

/// Whether a connection of a class above the ordinary waits to be accepted.
pub fn is_waiting_above_ordinary(slot: &Slot) -> bool {
    of(slot).is_some_and(|listener| queues(listener).any(|(rank, queue)| rank > 0 && !queue.is_empty()))
}

/// Whether connections of several classes may wait.
pub fn has_classes(slot: &Slot) -> bool {
    of(slot).is_some_and(|listener| listener.ranks.load(Relaxed) > 1)
}

/// The same of its listener.
pub fn is_waiting_in(listener: &Listener) -> bool {
    queues(listener).any(|(_, queue)| !queue.is_empty())
}

/// The record that a socket listens with, plus one, and how many connections have been queued there so far, also those that
/// were taken. When one more has come the two are not what they ever were before, also where the socket has listened anew
/// meanwhile: whoever has a record, its counts go on.
pub fn arrivals(slot: &Slot) -> (u32, u32) {
    let number = slot.listener.load(Relaxed);
    let record = family::joined().and_then(|family| family.arena.listener(number));
    record.map_or((0, 0), |listener| {
        (number + 1, queues(listener).map(|(_, queue)| queue.queued()).fold(0, u32::wrapping_add))
    })
}

/// What the daemon and its program share of a listening socket.
pub fn of(slot: &Slot) -> Option<&'static Listener> {
    family::joined()?.arena.listener(slot.listener.load(Relaxed))
}

/// The queues in use, the most important first.
pub fn queues(listener: &Listener) -> impl Iterator<Item = (usize, &AcceptQueue)> {
    let ranks = listener.ranks.load(Relaxed) as usize;
    listener.queue.iter().enumerate().take(ranks).rev()
}

/// Wakes the threads of the family that sleep in `accept` on a listener, to look again.
pub fn disturb(family: &Family, slot: &Slot) {
    let Some(listener) = of(slot) else { return };
    while let Some(number) = listener.waiters.choose_low() {
        if let Some(thread) = family.arena.thread(number) {
            thread.wake.fetch_add(1, SeqCst);
            wake::wake(&thread.wake, 1);
        }
    }
}
