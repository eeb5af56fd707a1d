//! The daemon's end of a socket: its slot and rings, with the daemon's own indices, clamped
//! against whatever the program wrote (CM §4.2). This is the byte stream that TCP reads from
//! and writes to; nothing is copied but what arrives.

mod from_program;
mod larger;
mod references;
mod side;
mod to_program;

use crate::between::names::{FamilyIndex, SocketName};
use crate::between::sockets::Rings;
use crate::domain::files::Files;
use from_program::FromProgram;
use side::Side;
use silk_path::{ByteStream, Incoming, Outgoing};
use silk_stream::{
    Arena, Datagram, ERRORS, Received, Slot, SocketError, Way, free, option, request, status, used, waiting,
    wake, wish,
};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use to_program::ToProgram;

/// The least that a program can ask room for, of datagrams that have arrived: what Linux makes of less.
const LEAST_ROOM: u32 = 2304;

/// The end.
pub struct SocketEnd {
    /// Whose socket it is; its slot is in both halves.
    family: FamilyIndex,
    /// The slot of its socket's program: its own, or, of a lane, that of the socket it is of.
    of: u32,
    /// Bits of [`status`]. Ours; the slot has a copy.
    status: u8,
    /// `IP_TOS` as the path has it, and the hops that the last datagram asked for.
    pub told: Way,
    /// What the network has told of the connection since the peer last answered; 0: nothing.
    soft_error: i16,
    /// Something is to be told that no level counts: an error that ends nothing, or urgent data.
    tells_anyway: bool,
    /// The program writes no more.
    finished: bool,
    to_program: ToProgram,
    from_program: FromProgram,
}

impl SocketEnd {
    /// The end of the socket `name`, whose slot has been set up. `None` when there is no such
    /// slot or its rings do not lie in the arena.
    pub fn new(arena: &Arc<Arena>, name: SocketName, rings: Rings) -> Option<Self> {
        let slot = arena.slot(name.slot)?;
        let mut end = Self {
            family: name.family,
            of: name.slot,
            status: slot.status.load(Relaxed) as u8,
            told: Way::default(),
            soft_error: 0,
            tells_anyway: false,
            finished: false,
            to_program: ToProgram {
                side: Side::new(arena, name.slot, rings.rx)?,
                write: 0,
                limit: rings.rx.size,
                larger: None,
            },
            from_program: FromProgram {
                side: Side::new(arena, name.slot, rings.tx)?,
                read: 0,
                write: 0,
                sent: 0,
                not_sent: u32::MAX,
                references: None,
            },
        };
        end.limit_receiving();
        Some(end)
    }

    /// Which socket it is the end of.
    pub fn name(&self) -> SocketName {
        SocketName { family: self.family, slot: self.to_program.side.slot }
    }

    /// It is the end of a lane of this socket.
    pub fn be_lane_of(&mut self, of: u32) {
        self.of = of;
    }

    /// Whether it is the end of a lane.
    pub fn is_lane(&self) -> bool {
        self.of != self.to_program.side.slot
    }

    /// The socket that its program knows: of a lane, the one that it is of.
    pub fn socket(&self) -> SocketName {
        SocketName { family: self.family, slot: self.of }
    }

    /// The control block of that.
    pub fn socket_slot(&self) -> &Slot {
        self.to_program.side.arena.slot(self.of).unwrap_or_else(|| self.slot())
    }

    /// The rings that it began with, as the daemon's book has them.
    pub fn rings(&self) -> Rings {
        Rings { rx: self.first_ring(larger::RECEIVE), tx: self.first_ring(larger::SEND) }
    }

    /// The shared control block.
    pub fn slot(&self) -> &Slot {
        self.to_program.side.slot()
    }

    /// Looks how far the program has written, of these files too. Whether there is anything new.
    pub fn look(&mut self, files: &Files) -> bool {
        self.from_program.look(files)
    }

    /// Whether the program has referred to what there is not, so that nobody knows what it has written.
    pub fn is_nonsense(&self) -> bool {
        self.from_program.is_nonsense()
    }

    /// The file at this place, or every one, is about to change: what was written by reference to it is
    /// copied into the ring, where it has its room.
    pub fn keep_copy_of(&mut self, place: Option<u32>, files: &Files) {
        self.from_program.keep_copy_of(place, files);
    }

    /// A period is over: of what was silent in it, and is empty, the rings give their memory back. Of how many.
    pub fn give_back(&mut self) -> usize {
        usize::from(self.to_program.give_memory_back()) + usize::from(self.from_program.give_memory_back())
    }

    /// Bytes the program has not read yet.
    pub fn unread(&self) -> u32 {
        used(self.to_program.write, self.slot().rx_read.load(SeqCst), self.to_program.side.size)
    }

    /// Bits of [`status`].
    fn status(&self) -> u32 {
        self.status.into()
    }

    /// Sets and clears bits of [`status`], which is news for everybody.
    pub fn change_status(&mut self, set: u32, clear: u32) {
        // All of them fit.
        self.status = ((self.status() | set) & !clear) as u8;
        self.slot().status.store(self.status(), SeqCst);
        self.to_program.side.news = true;
        self.from_program.side.news = true;
    }

    /// The connection has failed with `errno`.
    pub fn fail(&mut self, errno: i32) {
        self.slot().error.store(errno.unsigned_abs(), SeqCst);
        self.change_status(status::FAILED | status::PEER_FIN | status::SEND_CLOSED, status::CONNECTING);
    }

    /// The program writes no more.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The peer has reset the connection. Behind its own end of the stream only a writer can be
    /// disappointed: its pipe is broken, as Linux has it.
    pub fn reset(&mut self) {
        let read = self.status() & status::PEER_FIN != 0 && !self.finished;
        self.fail(if read { libc::EPIPE } else { libc::ECONNRESET });
    }

    /// Asks the program to ring once half the ring is free, while less than that is, because
    /// the peer may be waiting for a window (CM §4.2 `B_start`). `true` when it has read so
    /// much in this very moment that it may not have seen that it was asked.
    pub fn ask_for_room(&self) -> bool {
        let (size, limit) = (self.to_program.side.size, self.to_program.limit);
        // The program counts what is free of the whole ring.
        let (half, wanted) = match self.to_program.side.arena.reach() {
            None => (limit / 2, size - limit + limit / 2),
            Some(reach) => (limit.min(reach) / 2, size),
        };
        let note = if self.to_program.room() < half as usize { wanted } else { 0 };
        if self.slot().rx_note.load(Relaxed) != note {
            self.slot().rx_note.store(note, SeqCst);
        }
        note != 0 && self.to_program.room() >= half as usize
    }

    /// Takes over the program's `SO_RCVBUF`: the peer is offered no more room than that. What
    /// it has been offered already is taken all the same.
    pub fn limit_receiving(&mut self) {
        self.to_program.limit_receiving();
    }

    /// Takes over the program's `TCP_NOTSENT_LOWAT`.
    pub fn limit_not_sent(&mut self) {
        self.from_program.not_sent = match self.slot().wishes.word(wish::NOT_SENT) {
            0 => u32::MAX,
            set => set,
        };
        self.from_program.show_sent();
    }

    /// The network has told of a failure that the connection survives: a program that wants to hear
    /// of those (`IP_RECVERR`) does, others when the connection fails of it.
    // RFC 9293 MUST-47, SHLD-20, SHLD-25.
    pub fn note_soft_error(&mut self, errno: i32) {
        self.soft_error = errno as i16;
        let wishes = [wish::SOFT_ERRORS, wish::SOFT_ERRORS6];
        if wishes.iter().any(|wish| self.slot().wishes.word(*wish) != 0) {
            self.tell_error(errno);
        }
    }

    /// What the path takes now, bytes of IP: a program that lets nothing be cut up is told what is more
    /// (`IP_PMTUDISC_DO`).
    pub fn show_path_mtu(&mut self, mtu: u16) {
        self.slot().path_mtu.store(mtu.into(), SeqCst);
    }

    /// The program is to hear of an error that ends nothing.
    pub fn tell_error(&mut self, errno: i32) {
        self.slot().error.store(errno.unsigned_abs(), SeqCst);
        self.to_program.side.news = true;
        self.from_program.side.news = true;
        self.tells_anyway = true;
    }

    /// The program is to look, whatever it waits for: at the peer's urgent data, or at what another process has shut down.
    pub fn tell_anyway(&mut self) {
        self.to_program.side.news = true;
        self.tells_anyway = true;
    }

    /// How many of the bytes to be sent end with the program's urgent data; `None`: it is gone already, or not written
    /// yet, and then the program still asks.
    pub fn urgent_octets(&self) -> Option<u32> {
        let Side { arena, slot, .. } = &self.from_program.side;
        let ahead = arena.urgent(*slot)?.sent.load(SeqCst).wrapping_sub(self.from_program.read);
        if ahead.cast_signed() <= 0 {
            return None;
        }
        let there = self.from_program.write.wrapping_sub(self.from_program.read);
        if ahead > there {
            self.slot().request.fetch_or(request::URGENT, SeqCst);
            return None;
        }
        Some(ahead)
    }

    /// Puts an error into the socket's queue, with the head of the datagram; one that finds no room
    /// is lost.
    pub fn queue_error(&self, error: &SocketError, data: &[u8]) {
        let Side { arena, slot: number, .. } = &self.to_program.side;
        let (slot, Some(queue)) = (self.slot(), arena.errors(*number)) else { return };
        let write = slot.error_write.load(Relaxed);
        if write.wrapping_sub(slot.error_read.load(SeqCst)) < ERRORS {
            queue.put(write, error, data);
            slot.error_write.store(write.wrapping_add(1), SeqCst);
        }
    }

    /// The peer did not answer for too long: why, as far as the network has said it since the peer
    /// last answered.
    pub fn time_out(&mut self) {
        self.fail(if self.soft_error != 0 { self.soft_error.into() } else { libc::ETIMEDOUT });
    }

    /// The peer has acknowledged text: what the network said before is past.
    pub fn forget_soft_error(&mut self) {
        self.soft_error = 0;
    }

    /// The program's `IP_TOS`, if it is another than before.
    pub fn new_service(&mut self) -> Option<u8> {
        let set = self.socket_slot().service.load(Relaxed) as u8;
        (std::mem::replace(&mut self.told.service, set) != set).then_some(set)
    }

    /// Whether the program hears groups of this one's IP only if the socket has joined them.
    pub fn hears_joined_alone(&self, group: IpAddr) -> bool {
        let bit = if group.is_ipv6() { option::JOINED_ALONE6 } else { option::JOINED_ALONE };
        self.socket_slot().options.load(Relaxed) & bit != 0
    }

    /// A ring for datagrams as large as the program has asked for (`SO_RCVBUF`) would be of use.
    pub fn want_what_is_asked(&mut self) {
        let asked = self.socket_slot().receive_limit.load(Relaxed);
        self.to_program.side.want(asked as usize);
    }

    /// Writes a datagram that arrived; its details only for a program that wants them. `false` when
    /// there is no room for it, or as much waits as the program has asked room for.
    pub fn push_datagram(&mut self, mut received: Received, data: &[&[u8]]) -> bool {
        let program = self.socket_slot();
        let asked = program.receive_limit.load(Relaxed);
        if program.options.load(Relaxed) & option::DETAILS == 0 {
            received.details = None;
        }
        let to = &mut self.to_program;
        if to.larger.is_some() {
            to.go_over();
        }
        // As on Linux, one finds room wherever there is some yet.
        let is_full = asked != 0 && to.unread() >= asked.max(LEAST_ROOM) as usize;
        let room = if is_full { 0 } else { to.free() };
        let written = silk_stream::push_received(to.bytes_to_fill(), to.write, room, &received, data);
        let Some(write) = written else {
            self.socket_slot().drops.fetch_add(1, Relaxed);
            return false;
        };
        to.advance(write);
        true
    }

    /// Hands the next datagram the program has written to `send`: what it says of itself, and its
    /// bytes in at most two pieces. `false` when there is none. A malformed record empties the ring;
    /// it is the program's mistake and its loss.
    pub fn pop_datagram(&mut self, send: impl FnOnce(Datagram, [&[u8]; 2])) -> bool {
        let from = &mut self.from_program;
        from.look_at_bytes();
        let there = from.write.wrapping_sub(from.read);
        if there == 0 {
            return false;
        }
        let ring = from.bytes();
        let next = match silk_stream::pop_datagram(ring, from.read, there) {
            None => from.write,
            Some((datagram, at, next)) => {
                send(datagram, ring.peek(at, datagram.len as usize));
                next
            }
        };
        from.give_back(next);
        true
    }

    /// Whether the program is to be told something; asked once after each run.
    pub fn take_news(&mut self) -> Option<Wake> {
        let (readable, writable) = (self.to_program.side.news, self.from_program.side.news);
        if !readable && !writable {
            return None;
        }
        self.to_program.side.news = false;
        self.from_program.side.news = false;
        // The indices have been stored; whoever sets its bit after this sees them.
        std::sync::atomic::fence(SeqCst);
        // Event sets are told of more room only where somebody waits for it: nearly every
        // acknowledgement makes some.
        let bells = readable || self.socket_slot().waiting.load(SeqCst) & waiting::WRITE != 0;
        let anyway = std::mem::take(&mut self.tells_anyway);
        Some(Wake { threads: self.whom_to_wake(readable, writable, anyway), bells })
    }

    /// Of the threads that sleep on the socket, whether those whose level is reached are to
    /// be woken (CM §4.2 `B_wakeup`); their bits are then taken from the slot.
    fn whom_to_wake(&self, readable: bool, writable: bool, anyway: bool) -> bool {
        let slot = self.socket_slot();
        let sleeping = slot.waiting.load(SeqCst);
        if self.is_lane() {
            // The socket's own executor may have taken them already, to wake them when it has its turn, which may be long hence.
            if readable {
                wake::take_sleepers(&slot.waiting, waiting::READ);
            }
            return readable;
        }
        if sleeping == 0 {
            return false;
        }
        let level = |word: &std::sync::atomic::AtomicU32, size: u32| word.load(Relaxed).min(size);
        // While memory is short no more may come than this before some is read.
        let most = self.to_program.side.arena.reach().map_or(u32::MAX, |reach| reach / 2);
        let most = self.to_program.side.size.min(most);
        let read_over = self.status() & (status::FAILED | status::PEER_FIN) != 0;
        let write_over = self.status() & (status::FAILED | status::SEND_CLOSED) != 0;
        let room = free(slot.tx_write.load(SeqCst), self.from_program.read, self.from_program.side.size);
        let reader = readable && (read_over || anyway || self.unread() >= level(&slot.wake_read, most));
        let room =
            room >= level(&slot.wake_write, self.from_program.side.size) && self.from_program.sends_enough();
        let writer = writable && (write_over || anyway || room);
        let bits = if reader { waiting::READ } else { 0 } | if writer { waiting::WRITE } else { 0 };
        sleeping & bits != 0 && wake::take_sleepers(&slot.waiting, bits)
    }
}

/// What the program is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Threads sleep on the slot and their level is reached.
    pub threads: bool,
    /// The event sets that watch the socket are to be told.
    pub bells: bool,
}

impl ByteStream for SocketEnd {
    fn split(&mut self) -> (&mut dyn Incoming, &mut dyn Outgoing) {
        (&mut self.to_program, &mut self.from_program)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_references;
