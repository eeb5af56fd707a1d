//! The queue before a transmitter: first in, first out, and never longer than its limit. Which
//! packets leave it for the transmitter is the discipline's decision.

use silk_instant::Instant;

use super::codel::CoDel;
use super::fifo::{Fifo, Left};
use super::{Conditions, Discipline, Packet};

/// A queue with its limit and its discipline.
#[derive(Clone, Debug)]
pub(super) struct Queue<P> {
    fifo: Fifo<P>,
    limit: usize,
    codel: Option<CoDel>,
}

impl<P: Packet> Queue<P> {
    pub(super) fn new(conditions: &Conditions) -> Self {
        let codel = (conditions.discipline == Discipline::CoDel).then(CoDel::default);
        Self { fifo: Fifo::new(), limit: conditions.queue.max(1), codel }
    }

    /// Takes a packet; false when there is no room.
    pub(super) fn push(&mut self, now: Instant, packet: P) -> bool {
        let room = self.fifo.len() < self.limit;
        if room {
            self.fifo.push(now, packet);
        }
        room
    }

    /// The transmitter asks for a packet.
    pub(super) fn pop(&mut self, now: Instant) -> Left<P> {
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
        self.fifo.len()
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
