//! Queues, which are only at the ends of a path (Scout §4.1), and what is in them: tickets, a
//! few words that name a buffer of whoever owns the frames. A full queue drops at once. The
//! tickets of all queues of a domain live in one arena, so a path's queue costs twelve bytes
//! and making one allocates nothing.

use crate::{Checksum, DropReason};
use alloc::vec::Vec;
use silk_instant::Instant;

/// A message that waits: the name of a buffer and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Which frame, to the frames' owner.
    pub frame: u32,
    /// Where the bytes start in the frame.
    pub offset: u32,
    /// How many bytes.
    pub len: u32,
    /// Which device it came over: what `frame` names is that device's.
    pub device: u8,
    /// What is known of the checksum.
    pub checksum: Checksum,
    /// When it arrived.
    pub arrival: Instant,
}

/// No node: the end of a list.
const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    ticket: Ticket,
    next: u32,
}

/// The arena of a domain's tickets. Grows to the most tickets that ever waited at once, which
/// the frames bound, and reuses.
#[derive(Debug)]
pub struct Tickets {
    nodes: Vec<Node>,
    free: u32,
    waiting: usize,
}

impl Default for Tickets {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: NIL, waiting: 0 }
    }
}

impl Tickets {
    /// Tickets in all queues.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    fn take(&mut self, ticket: Ticket) -> u32 {
        self.waiting += 1;
        let node = Node { ticket, next: NIL };
        if self.free == NIL {
            self.nodes.push(node);
            return (self.nodes.len() - 1) as u32;
        }
        let at = self.free;
        self.free = core::mem::replace(&mut self.nodes[at as usize], node).next;
        at
    }

    fn give_back(&mut self, at: u32) -> Node {
        self.waiting -= 1;
        let free = self.free;
        let node = &mut self.nodes[at as usize];
        let taken = *node;
        node.next = free;
        self.free = at;
        taken
    }
}

/// One end queue of a path: first in, first out, bounded.
#[derive(Debug)]
pub struct Queue {
    // NIL when empty; else both name nodes of the arena.
    first: u32,
    last: u32,
    length: u16,
    limit: u16,
}

impl Queue {
    /// An empty queue for at most `limit` tickets.
    pub const fn new(limit: u16) -> Self {
        Self { first: NIL, last: NIL, length: 0, limit }
    }

    /// Puts a ticket at the end, or says that the queue is full. Answers whether it was
    /// empty, which is when the path becomes ready.
    pub fn push(&mut self, tickets: &mut Tickets, ticket: Ticket) -> Result<bool, DropReason> {
        if self.length >= self.limit {
            return Err(DropReason::QueueFull);
        }
        let at = tickets.take(ticket);
        match self.first {
            NIL => self.first = at,
            _ => tickets.nodes[self.last as usize].next = at,
        }
        self.last = at;
        self.length += 1;
        Ok(self.length == 1)
    }

    /// Takes the oldest ticket.
    pub fn pop(&mut self, tickets: &mut Tickets) -> Option<Ticket> {
        if self.first == NIL {
            return None;
        }
        let node = tickets.give_back(self.first);
        self.first = node.next;
        self.length -= 1;
        Some(node.ticket)
    }

    /// Tickets waiting.
    pub fn len(&self) -> usize {
        self.length.into()
    }

    /// None waiting.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Sets the most that may wait; what waits already stays.
    pub fn set_limit(&mut self, limit: u16) {
        self.limit = limit;
    }

    /// The most that may wait.
    pub fn limit(&self) -> usize {
        self.limit.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    fn ticket(frame: u32) -> Ticket {
        Ticket { frame, offset: 0, len: 0, device: 0, checksum: Checksum::Unknown, arrival: Instant::ZERO }
    }

    #[test]
    fn a_full_queue_refuses_and_an_empty_one_says_it_was() {
        let (mut tickets, mut queue) = (Tickets::default(), Queue::new(2));
        assert_eq!(queue.push(&mut tickets, ticket(1)), Ok(true));
        assert_eq!(queue.push(&mut tickets, ticket(2)), Ok(false));
        assert_eq!(queue.push(&mut tickets, ticket(3)), Err(DropReason::QueueFull));
        assert_eq!(tickets.waiting(), 2);
    }

    #[test]
    fn a_limit_can_follow_and_nothing_that_waits_is_lost() {
        let (mut tickets, mut queue) = (Tickets::default(), Queue::new(1));
        let mut push = |queue: &mut Queue, frame| queue.push(&mut tickets, ticket(frame)).is_ok();
        assert!(push(&mut queue, 1) && !push(&mut queue, 2));
        queue.set_limit(2);
        assert!(push(&mut queue, 2));
        queue.set_limit(1);
        assert!(!push(&mut queue, 3));
        assert_eq!((queue.len(), queue.pop(&mut tickets).map(|ticket| ticket.frame)), (2, Some(1)));
    }

    proptest! {
        /// Two queues over one arena against two `VecDeque`s.
        #[test]
        fn queues_share_an_arena_and_keep_their_order(steps in proptest::collection::vec((0usize..2, any::<bool>()), 0..200)) {
            let mut tickets = Tickets::default();
            let mut queues = [Queue::new(8), Queue::new(8)];
            let mut model = [VecDeque::new(), VecDeque::new()];
            for (n, (which, push)) in steps.into_iter().enumerate() {
                if push {
                    let done = queues[which].push(&mut tickets, ticket(n as u32)).is_ok();
                    prop_assert_eq!(done, model[which].len() < 8);
                    if done { model[which].push_back(n as u32); }
                } else {
                    let popped = queues[which].pop(&mut tickets).map(|ticket| ticket.frame);
                    prop_assert_eq!(popped, model[which].pop_front());
                }
                prop_assert_eq!(tickets.waiting(), model[0].len() + model[1].len());
                prop_assert!(tickets.nodes.len() <= 16);
            }
        }
    }
}
