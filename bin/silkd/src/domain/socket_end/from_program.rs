//! The half of a socket's end that comes from the program: what it has written, what of it was sent, and
//! what is done with.

use super::references::References;
use super::side::Side;
use crate::domain::files::Files;
use silk_path::Outgoing;
use silk_stream::{Bytes, RingPlace, used, vacate, waiting};
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

/// What comes from the program.
pub struct FromProgram {
    pub(super) side: Side,
    /// Bytes done with: `N_read`. Ours alone; the slot has a copy.
    pub(super) read: u32,
    /// How far the program had written when we last looked. Never moves backwards, whatever
    /// the program says, and never more than the ring's size ahead of `read`.
    pub(super) write: u32,
    /// How far the bytes have been sent once at least: between `read` and `write`.
    pub(super) sent: u32,
    /// The bytes not yet sent from which on the socket is not writable (`TCP_NOTSENT_LOWAT`).
    pub(super) not_sent: u32,
    /// What of it is bytes of files, once the program has referred to any.
    pub(super) references: Option<Box<References>>,
}

/// The ring as the program says that it begins. It says nothing else before all of what we know is done
/// with.
fn bytes(side: &Side) -> Bytes<'_> {
    side.bytes_from(side.slot().tx_first.load(Relaxed))
}

impl FromProgram {
    pub fn bytes(&self) -> Bytes<'_> {
        bytes(&self.side)
    }

    /// Looks how far the program has written. Whether there is anything new.
    pub fn look(&mut self, files: &Files) -> bool {
        let known = self.write;
        let more = self.look_at_bytes();
        if more {
            self.look_at_references(known, files);
        }
        more | self.references.as_mut().is_some_and(|known| std::mem::take(&mut known.unheard))
    }

    /// Whether somebody waits to write.
    fn waits(&self) -> bool {
        self.side.slot().waiting.load(Relaxed) & waiting::WRITE != 0
    }

    /// Bytes that the program says there are.
    fn claimed(&self) -> u32 {
        used(self.side.slot().tx_write.load(SeqCst), self.read, self.side.size)
    }

    /// The same of a socket that knows no files.
    pub fn look_at_bytes(&mut self) -> bool {
        let (claimed, known) = (self.claimed(), self.write.wrapping_sub(self.read));
        if claimed > known {
            self.write = self.read.wrapping_add(claimed);
        }
        claimed > known
    }

    /// Takes the references among the bytes from `known` on.
    fn look_at_references(&mut self, known: u32, files: &Files) {
        // The program stores this before it says how far it has written.
        let newest = self.side.slot().tx_reference.load(SeqCst);
        if newest != self.references.as_ref().map_or(0, |known| known.newest) {
            let mut references = self.references.take().unwrap_or_default();
            references.take_in(newest, known..self.write, self.bytes(), files);
            if references.nonsense {
                // Nobody is to take what lies in the ring there for what was written.
                self.write = known;
            }
            self.references = Some(references);
        }
    }

    pub fn is_nonsense(&self) -> bool {
        self.references.as_ref().is_some_and(|references| references.nonsense)
    }

    pub fn keep_copy_of(&mut self, place: Option<u32>, files: &Files) {
        if self.references.is_none() && self.side.slot().tx_reference.load(SeqCst) == 0 {
            return;
        }
        let unheard = self.look(files);
        let references = self.references.get_or_insert_default();
        references.keep_copy_of(place, self.read, bytes(&self.side));
        // Whoever rings for them finds that they are new.
        references.unheard = unheard;
    }

    /// What the program wrote beyond what was sent is half of what it may be, as Linux wants it
    /// before it wakes a writer.
    pub fn sends_enough(&self) -> bool {
        let waits = self.side.slot().tx_write.load(SeqCst).wrapping_sub(self.sent);
        self.not_sent == u32::MAX || u64::from(waits) * 2 < u64::from(self.not_sent)
    }

    pub fn show_sent(&mut self) {
        if self.not_sent != u32::MAX {
            self.side.slot().tx_sent.store(self.sent, SeqCst);
            self.side.news = true;
        }
    }

    /// A period is over: the memory is given back if all that was written had been done with before, and nobody is
    /// about to write. Whether it was.
    pub fn give_memory_back(&mut self) -> bool {
        let read = self.read;
        let is_empty = |side: &Side| side.slot().tx_write.load(SeqCst) == read;
        if !self.side.has_become_idle(read, is_empty(&self.side)) {
            return false;
        }
        let (side, slot) = (&self.side, self.side.slot());
        let give_back = || side.arena.give_back(side.ring());
        vacate::vacate(&slot.tx_writers, &slot.tx_vacating, || is_empty(side), give_back)
    }

    /// Everything in the ring is copied into this larger one, which is used from now on, if nobody is about to write and all
    /// that was written is known. Whether it was.
    pub fn move_to(&mut self, ring: RingPlace) -> bool {
        let (side, slot) = (&self.side, self.side.slot());
        let Some(larger) = side.arena.ring(ring.place, ring.size) else { return false };
        let is_known = || slot.tx_write.load(SeqCst) == self.write;
        let copy = || {
            let (from, to) = (bytes(side), larger.beginning_at(self.read));
            for (at, len) in References::between(self.references.as_deref(), (self.read, self.write)) {
                let [one, other] = from.peek(at, len as usize);
                to.write(at, one);
                to.write(at.wrapping_add(one.len() as u32), other);
            }
            slot.tx_first.store(self.read, Relaxed);
            slot.tx_place.store(ring.place, Relaxed);
            slot.tx_size.store(ring.size, Relaxed);
        };
        let moved = vacate::vacate(&slot.tx_writers, &slot.tx_vacating, is_known, copy);
        // A writer that has come meanwhile would sleep for a moment.
        silk_stream::wake::wake(&slot.tx_vacating, i32::MAX);
        if moved {
            self.side.lie_in(ring);
            self.side.news = true;
        }
        moved
    }

    pub fn give_back(&mut self, read: u32) {
        self.read = read;
        if let Some(references) = &mut self.references {
            references.forget_before(read);
        }
        if used(self.sent, read, self.side.size) != self.sent.wrapping_sub(read) {
            // What is gone was sent.
            self.sent = read;
            self.show_sent();
        }
        self.side.slot().tx_read.store(read, Release);
        self.side.news = true;
    }
}

impl Outgoing for FromProgram {
    fn len(&self) -> usize {
        self.write.wrapping_sub(self.read) as usize
    }

    fn has_more(&self) -> bool {
        self.claimed() > self.write.wrapping_sub(self.read)
    }

    fn is_waited_for(&self) -> bool {
        // It is called as soon as half of the ring is free.
        self.len() * 2 >= self.side.size as usize && self.waits()
    }

    fn peek(&mut self, offset: usize, len: usize) -> [&[u8]; 2] {
        let there = self.len();
        let offset = offset.min(there);
        let (at, len) = (self.read.wrapping_add(offset as u32), len.min(there - offset));
        let ring = bytes(&self.side);
        match &mut self.references {
            Some(references) if references.are_there() => references.peek(at, len, ring),
            _ => ring.peek(at, len),
        }
    }

    fn consume(&mut self, n: usize) {
        let n = n.min(self.len());
        if n > 0 {
            self.give_back(self.read.wrapping_add(n as u32));
        }
    }

    fn sent(&mut self, n: usize) {
        let sent = self.read.wrapping_add(n.min(self.len()) as u32);
        if std::mem::replace(&mut self.sent, sent) != sent {
            self.show_sent();
        }
    }

    fn want(&mut self, n: usize) {
        let size = self.side.size as usize;
        if n > size && self.waits() {
            // What is in it has to be copied, so that it should not happen often.
            self.side.want(n.max(8 * size));
        }
    }
}
