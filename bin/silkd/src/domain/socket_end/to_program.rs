//! The half of a socket's end that goes to the program: what has arrived, and how much room a peer is
//! offered.

use super::larger::Larger;
use super::side::Side;
use silk_path::Incoming;
use silk_stream::{Bytes, begin_ring, free, kind, left_of, used};
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

/// The least room a peer is offered, bytes, however little the program asks for.
const LEAST_WINDOW: u32 = 4096;

/// What goes to the program.
pub struct ToProgram {
    pub(super) side: Side,
    /// Bytes written so far: `N_write`. Ours alone; the slot has a copy.
    pub(super) write: u32,
    /// The most unread bytes the peer is offered room for (`SO_RCVBUF`).
    pub(super) limit: u32,
    /// Once larger rings were wanted: those of both directions.
    pub(super) larger: Option<Box<Larger>>,
}

impl ToProgram {
    pub fn free(&self) -> u32 {
        free(self.write, self.side.slot().rx_read.load(SeqCst), self.side.size)
    }

    /// The ring, for writing.
    pub fn bytes_to_fill(&self) -> Bytes<'_> {
        let slot = self.side.slot();
        self.side.bytes_from(begin_ring(&slot.rx_first, self.write, &slot.rx_read))
    }

    /// A period is over: the memory is given back if nothing has arrived in it and the program has read all that had.
    /// Only we write there, and it reads nothing that it has not been told of. Whether it was.
    pub fn give_memory_back(&mut self) -> bool {
        let empty = self.side.slot().rx_read.load(SeqCst) == self.write;
        let gives = self.side.has_become_idle(self.write, empty);
        if gives {
            self.side.arena.give_back(self.side.ring());
        }
        gives
    }

    /// Takes over the program's `SO_RCVBUF`: of a stream, the window; datagrams are counted as they come.
    pub fn limit_receiving(&mut self) {
        let (size, slot) = (self.side.size, self.side.slot());
        let is_stream = slot.kind.load(Relaxed) != kind::DATAGRAM;
        self.limit = match slot.receive_limit.load(Relaxed) {
            0 => size,
            _ if !is_stream => size,
            set => set.max(LEAST_WINDOW).min(size),
        };
    }

    /// If the ring is empty a larger one is used from now on, where there is one. Whoever reads looks where the ring is, as
    /// he does for [`begin_ring`], once he has seen that there is something in it, and is done with it before he says that
    /// he has read that.
    pub(super) fn go_over(&mut self) {
        let slot = self.side.slot();
        if slot.rx_read.load(SeqCst) != self.write {
            return;
        }
        let Some(next) = self.larger.as_mut().and_then(|larger| larger.go_over_from(self.side.ring())) else {
            return;
        };
        slot.rx_place.store(next.place, Relaxed);
        slot.rx_size.store(next.size, Relaxed);
        self.side.lie_in(next);
        self.limit_receiving();
    }

    pub fn advance(&mut self, write: u32) {
        self.write = write;
        self.side.slot().rx_write.store(write, Release);
        self.side.news = true;
    }
}

impl Incoming for ToProgram {
    fn room(&self) -> usize {
        let room = self.free().saturating_sub(self.side.size - self.limit);
        let Some(reach) = self.side.arena.reach() else { return room as usize };
        let slot = self.side.slot();
        let read = slot.rx_read.load(SeqCst);
        room.min(left_of(reach, slot.rx_first.load(Relaxed), self.write, read)) as usize
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        if self.larger.is_some() {
            self.go_over();
        }
        let taken = bytes.len().min(self.free() as usize);
        if taken > 0 {
            self.bytes_to_fill().write(self.write, &bytes[..taken]);
            self.advance(self.write.wrapping_add(taken as u32));
        }
        taken
    }

    fn mark_urgent(&mut self, ahead: usize) {
        if let Some(urgent) = self.side.arena.urgent(self.side.slot) {
            urgent.set(self.side.slot(), self.write.wrapping_add(ahead as u32), self.write);
        }
    }

    fn unread(&self) -> usize {
        used(self.write, self.side.slot().rx_read.load(Relaxed), self.side.size) as usize
    }

    fn capacity(&self) -> usize {
        self.limit.min(self.side.arena.reach().unwrap_or(u32::MAX)) as usize
    }

    fn want(&mut self, n: usize) {
        self.side.want(n);
    }
}
