//! A connection that was accepted, or opened between the same ports, with a program's buffers: it
//! acknowledges just what the program has been given, sends what was written from where the handshake
//! ended, and ends when the program has closed it, whatever the peer says or does not say.

use super::{check_options, end};
use silk_instant::Instant;
use silk_tcp::time_wait::TimeWait;
use silk_tcp::{Connection, Flags, Header, RecvBuffer, Segment, SendBuffer, SeqNumber, State};
use std::time::Duration;

struct Tx {
    len: usize,
    consumed: u32,
}

impl SendBuffer for Tx {
    fn len(&self) -> usize {
        self.len
    }
    fn consume(&mut self, octets: usize) {
        self.len = self.len.checked_sub(octets).expect("acknowledges no more than was written");
        self.consumed = self.consumed.wrapping_add(octets as u32);
    }
}

struct Rx {
    room: usize,
    taken: u32,
}

impl RecvBuffer for Rx {
    fn room(&self) -> usize {
        self.room
    }
    fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room);
        self.room -= taken;
        self.taken = self.taken.wrapping_add(taken as u32);
        taken
    }
}

/// The most that either buffer holds.
const ROOM: usize = 64 << 10;
/// The most that a connection with such buffers costs.
const COST: usize = 512 << 10;

/// One connection.
pub struct Accepted {
    pub connection: Connection,
    iss: SeqNumber,
    /// The peer's number, unless it was us who opened.
    irs: Option<SeqNumber>,
    /// The largest segment, options counted.
    limit: u16,
    tx: Tx,
    rx: Rx,
    /// The ends of what was sent and of what was acknowledged.
    ends: (SeqNumber, SeqNumber),
}

impl Accepted {
    pub fn new(connection: Connection, iss: SeqNumber, irs: Option<SeqNumber>, limit: u16) -> Self {
        let (tx, rx) = (Tx { len: 0, consumed: 0 }, Rx { room: ROOM, taken: 0 });
        let ends = (iss + 1, irs.unwrap_or_default() + 1);
        Self { connection, iss, irs, limit, tx, rx, ends }
    }

    pub fn on_segment(&mut self, now: Instant, seg: &Segment) {
        let _ = self.connection.on_segment(now, seg, &mut self.tx, &mut self.rx);
        let memory = self.connection.memory();
        assert!(memory <= COST, "{memory} bytes");
    }

    /// The program does something.
    pub fn act(&mut self, now: Instant, act: u8, much: u8) {
        let connection = &mut self.connection;
        match act % 8 {
            0 => connection.close(now),
            1 => connection.abort(),
            2 => connection.shutdown_write(),
            3 => connection.shutdown_read(),
            4 => connection.set_nodelay(much & 1 == 0),
            5 => connection.set_quickack(much & 1 == 0),
            6 => {
                self.rx.room = (self.rx.room + usize::from(much) * 256).min(ROOM);
                connection.on_read(now, &self.rx);
            }
            _ => self.tx.len = (self.tx.len + usize::from(much) * 64).min(ROOM),
        }
    }

    /// Timers that are due run, and what is to be sent is answered.
    pub fn run(&mut self, now: Instant) -> Vec<(Header, u32)> {
        let mut sent = self.transmit(now);
        for _ in 0..64 {
            if self.connection.poll_timeout().is_none_or(|at| at > now) {
                return sent;
            }
            self.connection.on_timeout(now);
            sent.extend(self.transmit(now));
        }
        panic!("a deadline stays in the past");
    }

    fn transmit(&mut self, now: Instant) -> Vec<(Header, u32)> {
        let mut sent = Vec::new();
        while let Some(out) = self.connection.poll_transmit(now, &self.tx, &self.rx, 0) {
            assert!(out.offset + out.len <= self.tx.len, "sends what was not written");
            self.check(&out.header, out.len);
            if out.len > 0 {
                let place = out.header.seq - (self.iss + 1);
                assert_eq!(place, self.tx.consumed.wrapping_add(out.offset as u32), "text in a wrong place");
            }
            if !out.header.flags.rst() {
                self.ends.0 = self.ends.0.max(end(&out.header, out.len as u32));
            }
            sent.push((out.header, out.len as u32));
            assert!(sent.len() < 10_000, "it does not stop sending");
        }
        sent
    }

    fn check(&mut self, header: &Header, len: usize) {
        check_options(&header.options);
        assert!(len == 0 || len + header.options.encoded_len() <= usize::from(self.limit));
        let (flags, opening) = (header.flags, self.irs.is_none());
        assert!(opening || !flags.syn(), "a handshake that is over");
        assert!(flags.ack() || flags.syn() || flags.rst());
        if !flags.ack() {
            return;
        }
        if let Some(irs) = self.irs {
            let given = header.ack - (irs + 1);
            let fin = given.wrapping_sub(self.rx.taken);
            assert!(fin <= 1, "acknowledges {given}, and the program has {}", self.rx.taken);
        }
        if !flags.contains(Flags::RST) {
            self.ends.1 = header.ack;
        }
    }

    /// What is left to remember of it, and what it sent and received.
    pub fn time_wait(&self) -> Option<(TimeWait, (SeqNumber, SeqNumber))> {
        Some((self.connection.time_wait()?, self.ends))
    }

    pub fn is_closed(&self) -> bool {
        self.connection.state() == State::Closed
    }

    /// The program closes it, and the peer says nothing more.
    pub fn end(mut self, mut now: Instant) {
        self.connection.close(now);
        for _ in 0..500 {
            self.run(now);
            if self.is_closed() || self.connection.state() == State::TimeWait {
                return;
            }
            let due = self.connection.poll_timeout().expect("it waits for something");
            assert!(due - now < Duration::from_secs(2 * 7200), "it waits for ever");
            now = due;
        }
        panic!("it does not end: {:?}", self.connection.info());
    }
}
