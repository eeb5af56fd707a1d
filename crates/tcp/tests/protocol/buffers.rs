//! The buffers of a program: plain queues with a capacity.

use std::collections::VecDeque;

use silk_tcp::{RecvBuffer, SendBuffer};

/// What the program wrote and the peer has not acknowledged; whether it has written more, which nobody has looked at; and
/// whether it waits for room.
#[derive(Default)]
pub struct Tx(pub VecDeque<u8>, pub bool, pub bool);

impl SendBuffer for Tx {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn has_more(&self) -> bool {
        self.1
    }

    fn is_waited_for(&self) -> bool {
        self.2
    }

    fn consume(&mut self, octets: usize) {
        assert!(octets <= self.0.len(), "consumed more than was written");
        self.0.drain(..octets);
    }
}

impl Tx {
    /// The octets of a range, as a device would fetch them.
    pub fn range(&self, offset: usize, len: usize) -> Vec<u8> {
        assert!(offset + len <= self.0.len(), "sent beyond what was written");
        self.0.range(offset..offset + len).copied().collect()
    }
}

/// A send buffer that only counts.
pub struct Count(pub usize);

impl SendBuffer for Count {
    fn len(&self) -> usize {
        self.0
    }

    fn consume(&mut self, octets: usize) {
        self.0 -= octets;
    }
}

/// What the peer sent and the program has not read.
pub struct Rx {
    pub held: VecDeque<u8>,
    pub capacity: usize,
    /// Octets written since the start.
    written: usize,
    /// The places in the stream at which the peer's urgent data was said to end, in the order in which they were.
    pub marks: Vec<usize>,
}

impl RecvBuffer for Rx {
    fn room(&self) -> usize {
        self.capacity.saturating_sub(self.held.len())
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room());
        self.held.extend(&bytes[..taken]);
        self.written += taken;
        taken
    }

    fn unread(&self) -> usize {
        self.held.len()
    }

    fn mark_urgent(&mut self, ahead: usize) {
        self.marks.push(self.written + ahead);
    }
}

impl Rx {
    pub fn new(capacity: usize) -> Self {
        Self { held: VecDeque::new(), capacity, written: 0, marks: vec![] }
    }

    /// The program reads all there is.
    pub fn read(&mut self) -> Vec<u8> {
        self.held.drain(..).collect()
    }
}
