//! A program's buffers in memory, shared between the test and the path.

use silk_path::{ByteStream, Incoming, Outgoing};
use std::sync::{Arc, Mutex};

/// What the program sees of its buffers.
#[derive(Clone, Default)]
pub struct Program(Arc<Mutex<Buffers>>);

#[derive(Default)]
struct Buffers {
    received: Vec<u8>,
    room: usize,
    // Bytes received since the start, and at which of them urgent data ended.
    written: usize,
    marks: Vec<usize>,
}

/// Both buffers, the path's side.
struct Stream {
    incoming: Program,
    outgoing: Ring,
}

/// What is to be sent, in a ring, so that it wraps.
struct Ring {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
    // What the program has written and did not fit yet.
    to_send: Arc<Mutex<Vec<u8>>>,
}

impl ByteStream for Stream {
    fn split(&mut self) -> (&mut dyn Incoming, &mut dyn Outgoing) {
        self.outgoing.fill();
        (&mut self.incoming, &mut self.outgoing)
    }
}

/// The program's side: writes and reads.
#[derive(Clone)]
pub struct Handle {
    program: Program,
    to_send: Arc<Mutex<Vec<u8>>>,
}

/// A stream whose receive buffer has room for `room` bytes and whose ring has `ring`, and the
/// program's side of it.
pub fn stream(room: usize, ring: usize) -> (Box<dyn ByteStream>, Handle) {
    let program = Program::default();
    program.0.lock().unwrap().room = room;
    let to_send = Arc::new(Mutex::new(Vec::new()));
    let outgoing = Ring { bytes: vec![0; ring], start: ring / 3, length: 0, to_send: to_send.clone() };
    (Box::new(Stream { incoming: program.clone(), outgoing }), Handle { program, to_send })
}

impl Handle {
    /// The program writes.
    pub fn write(&self, bytes: &[u8]) {
        self.to_send.lock().unwrap().extend_from_slice(bytes);
    }

    /// Bytes that the program has written and that do not fit the ring yet.
    pub fn unsent(&self) -> usize {
        self.to_send.lock().unwrap().len()
    }

    /// The program takes everything that has arrived.
    pub fn read(&self) -> Vec<u8> {
        let mut buffers = self.program.0.lock().unwrap();
        let bytes = std::mem::take(&mut buffers.received);
        buffers.room += bytes.len();
        bytes
    }
}

impl Handle {
    /// The places in the received stream that were said to be urgent data's last.
    pub fn marks(&self) -> Vec<usize> {
        self.program.0.lock().unwrap().marks.clone()
    }
}

impl Ring {
    /// What the program has written goes into the ring as it fits.
    fn fill(&mut self) {
        let mut waiting = self.to_send.lock().unwrap();
        let n = waiting.len().min(self.bytes.len() - self.length);
        for byte in waiting.drain(..n) {
            let at = (self.start + self.length) % self.bytes.len();
            self.bytes[at] = byte;
            self.length += 1;
        }
    }
}

impl Incoming for Program {
    fn room(&self) -> usize {
        self.0.lock().unwrap().room
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let mut buffers = self.0.lock().unwrap();
        let n = bytes.len().min(buffers.room);
        buffers.received.extend_from_slice(&bytes[..n]);
        buffers.room -= n;
        buffers.written += n;
        n
    }

    fn mark_urgent(&mut self, ahead: usize) {
        let mut buffers = self.0.lock().unwrap();
        let mark = buffers.written + ahead;
        buffers.marks.push(mark);
    }
}

impl Outgoing for Ring {
    fn len(&self) -> usize {
        self.length
    }

    fn peek(&mut self, offset: usize, len: usize) -> [&[u8]; 2] {
        let len = len.min(self.length - offset.min(self.length));
        let start = (self.start + offset) % self.bytes.len();
        let first = len.min(self.bytes.len() - start);
        [&self.bytes[start..start + first], &self.bytes[..len - first]]
    }

    fn consume(&mut self, n: usize) {
        self.start = (self.start + n) % self.bytes.len();
        self.length -= n;
    }
}
