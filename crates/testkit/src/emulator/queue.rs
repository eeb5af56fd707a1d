//! The queue before a transmitter: first in, first out, and never longer than its limit. Which
//! packets leave it for the transmitter is the discipline's decision.

use std::collections::VecDeque;

use silk_instant::Instant;

use super::codel::CoDel;
use super::{Conditions, Discipline};

/// Packets in the order in which they came, and when they did.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    packets: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    /// The largest packet it ever held, RFC 8289's maxpacket.
    largest: usize,
}

impl Fifo {
    fn push(&mut self, now: Instant, packet: Vec<u8>) {
        self.bytes += packet.len();
        self.largest = self.largest.max(packet.len());
        self.packets.push_back((now, packet));
    }

    /// The oldest packet, and when it came.
    pub(super) fn pop(&mut self) -> Option<(Instant, Vec<u8>)> {
        let oldest = self.packets.pop_front();
        self.bytes -= oldest.as_ref().map_or(0, |(_, packet)| packet.len());
        oldest
    }

    /// Whether no more is held than one packet at the most.
    pub(super) const fn is_short(&self) -> bool {
        self.bytes <= self.largest
    }

    fn oldest(&self) -> Option<Instant> {
        self.packets.front().map(|(came, _)| *came)
    }
}

/// A queue with its limit and its discipline.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    fifo: Fifo,
    limit: usize,
    codel: Option<CoDel>,
}

/// What left a queue at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// The packet for the transmitter.
    pub(super) packet: Option<Vec<u8>>,
    /// How many were dropped before it.
    pub(super) dropped: u64,
}

impl Queue {
    pub(super) fn new(conditions: &Conditions) -> Self {
        let codel = (conditions.discipline == Discipline::CoDel).then(CoDel::default);
        Self { fifo: Fifo::default(), limit: conditions.queue.max(1), codel }
    }

    /// Takes a packet; false when there is no room.
    pub(super) fn push(&mut self, now: Instant, packet: Vec<u8>) -> bool {
        let room = self.fifo.packets.len() < self.limit;
        if room {
            self.fifo.push(now, packet);
        }
        room
    }

    /// The transmitter asks for a packet.
    pub(super) fn pop(&mut self, now: Instant) -> Left {
        match &mut self.codel {
            None => Left { packet: self.fifo.pop().map(|(_, packet)| packet), dropped: 0 },
            Some(codel) => codel.dequeue(now, &mut self.fifo),
        }
    }

    /// When the oldest packet came.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.fifo.oldest()
    }

    pub(super) fn len(&self) -> usize {
        self.fifo.packets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_who_comes_last() {
        let mut queue = Queue::new(&Conditions { queue: 2, ..Conditions::default() });
        let taken = [1, 2, 3].map(|n| queue.push(Instant::ZERO, vec![n]));
        assert_eq!(taken, [true, true, false]);
        let left = [(); 3].map(|()| queue.pop(Instant::ZERO).packet);
        assert_eq!(left, [Some(vec![1]), Some(vec![2]), None]);
    }

    #[test]
    fn there_is_room_for_one_at_least() {
        let mut queue = Queue::new(&Conditions { queue: 0, ..Conditions::default() });
        assert!(queue.push(Instant::ZERO, vec![1]));
        assert_eq!((queue.len(), queue.oldest()), (1, Some(Instant::ZERO)));
    }
}
