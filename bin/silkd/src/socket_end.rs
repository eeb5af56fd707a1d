//! The daemon's end of a socket: its slot and rings, with the daemon's own indices, clamped
//! against whatever the program wrote (CM §4.2). This is the byte stream that TCP reads from
//! and writes to; nothing is copied but what arrives.

use crate::command::{Rings, SocketName};
use silk_path::{ByteStream, Incoming, Outgoing};
use silk_stream::{
    Arena, Bytes, Datagram, ERRORS, RingPlace, Slot, SocketError, free, status, used, waiting, wish,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

/// The least room a peer is offered, bytes, however little the program asks for.
const LEAST_WINDOW: u32 = 4096;

/// Bytes of a cache line, of which all rings have whole ones.
const LINE: u64 = 64;

/// One ring of a socket, as its daemon's end sees it.
struct Side {
    arena: Arc<Arena>,
    slot: u32,
    /// Where the ring lies in the arena, in cache lines.
    place: u32,
    /// Its bytes.
    size: u32,
    /// The program has not been told of all that has come, or that there is more room.
    news: bool,
}

impl Side {
    /// `None` where there is no such ring in the arena.
    fn new(arena: &Arc<Arena>, slot: u32, ring: RingPlace) -> Option<Self> {
        arena.ring(ring.place, ring.size)?;
        let place = u32::try_from(ring.place / LINE).ok().filter(|_| ring.place.is_multiple_of(LINE))?;
        Some(Self { arena: arena.clone(), slot, place, size: ring.size, news: false })
    }

    fn ring(&self) -> RingPlace {
        RingPlace { place: u64::from(self.place) * LINE, size: self.size }
    }

    fn slot(&self) -> &Slot {
        self.arena.slot(self.slot).expect("checked when the end was made; arenas do not shrink")
    }

    fn bytes(&self) -> Bytes<'_> {
        self.arena.ring(self.ring().place, self.size).expect("checked when the end was made")
    }
}

/// What goes to the program.
pub struct ToProgram {
    side: Side,
    /// Bytes written so far: `N_write`. Ours alone; the slot has a copy.
    write: u32,
    /// The most unread bytes the peer is offered room for (`SO_RCVBUF`).
    limit: u32,
    /// `write` when somebody last looked for what is idle.
    looked_at: u32,
    /// `write` when the ring last gave its memory back.
    empty_at: u32,
}

/// What comes from the program.
pub struct FromProgram {
    side: Side,
    /// Bytes done with: `N_read`. Ours alone; the slot has a copy.
    read: u32,
    /// How far the program had written when we last looked. Never moves backwards, whatever
    /// the program says, and never more than the ring's size ahead of `read`.
    write: u32,
    /// How far the bytes have been sent once at least: between `read` and `write`.
    sent: u32,
    /// The bytes not yet sent from which on the socket is not writable (`TCP_NOTSENT_LOWAT`).
    not_sent: u32,
}

/// The end.
pub struct SocketEnd {
    /// Which socket.
    pub name: SocketName,
    /// Bits of [`status`]. Ours; the slot has a copy.
    status: u32,
    /// `IP_TOS` as the path has it.
    service: u8,
    /// What the network has told of the connection since the peer last answered; 0: nothing.
    soft_error: i32,
    /// An error that ends nothing is to be told.
    told_error: bool,
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
        Some(Self {
            name,
            status: slot.status.load(Relaxed),
            service: 0,
            soft_error: 0,
            told_error: false,
            finished: false,
            to_program: ToProgram {
                side: Side::new(arena, name.slot, rings.rx)?,
                write: 0,
                limit: rings.rx.size,
                looked_at: u32::MAX,
                empty_at: u32::MAX,
            },
            from_program: FromProgram {
                side: Side::new(arena, name.slot, rings.tx)?,
                read: 0,
                write: 0,
                sent: 0,
                not_sent: u32::MAX,
            },
        })
    }

    /// Its rings, as the daemon's book has them.
    pub fn rings(&self) -> Rings {
        Rings { rx: self.to_program.side.ring(), tx: self.from_program.side.ring() }
    }

    /// The shared control block.
    pub fn slot(&self) -> &Slot {
        self.to_program.side.slot()
    }

    /// Looks how far the program has written. Whether there is anything new.
    pub fn look(&mut self) -> bool {
        self.from_program.look()
    }

    /// A period is over in which nothing has arrived, and the program has read all that had: the ring
    /// gives its memory back. Only we write there, and it reads nothing that it has not been told of;
    /// where it writes itself, nobody knows whether it has just begun. Whether there was any.
    pub fn give_back(&mut self) -> bool {
        let to_program = &mut self.to_program;
        let write = to_program.write;
        let idle = std::mem::replace(&mut to_program.looked_at, write) == write;
        let read = to_program.side.slot().rx_read.load(SeqCst) == write;
        if !idle || !read || to_program.empty_at == write {
            return false;
        }
        to_program.empty_at = write;
        to_program.side.arena.give_back(to_program.side.ring());
        true
    }

    /// Bytes the program has not read yet.
    pub fn unread(&self) -> u32 {
        used(self.to_program.write, self.slot().rx_read.load(SeqCst), self.to_program.side.size)
    }

    /// Sets and clears bits of [`status`], which is news for everybody.
    pub fn change_status(&mut self, set: u32, clear: u32) {
        self.status = (self.status | set) & !clear;
        self.slot().status.store(self.status, SeqCst);
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
        let read = self.status & status::PEER_FIN != 0 && !self.finished;
        self.fail(if read { libc::EPIPE } else { libc::ECONNRESET });
    }

    /// Asks the program to ring once half the ring is free, while less than that is, because
    /// the peer may be waiting for a window (CM §4.2 `B_start`). `true` when it has read so
    /// much in this very moment that it may not have seen that it was asked.
    pub fn ask_for_room(&self) -> bool {
        let (size, half) = (self.to_program.side.size, self.to_program.limit / 2);
        // The program counts what is free of the whole ring.
        let full = size - self.to_program.limit;
        let note = if self.to_program.room() < half as usize { full + half } else { 0 };
        if self.slot().rx_note.load(Relaxed) != note {
            self.slot().rx_note.store(note, SeqCst);
        }
        note != 0 && self.to_program.room() >= half as usize
    }

    /// Takes over the program's `SO_RCVBUF`: the peer is offered no more room than that. What
    /// it has been offered already is taken all the same.
    pub fn limit_receiving(&mut self) {
        let size = self.to_program.side.size;
        self.to_program.limit = match self.slot().receive_limit.load(Relaxed) {
            0 => size,
            set => set.max(LEAST_WINDOW).min(size),
        };
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
        self.soft_error = errno;
        let wishes = [wish::SOFT_ERRORS, wish::SOFT_ERRORS6];
        if wishes.iter().any(|wish| self.slot().wishes.word(*wish) != 0) {
            self.tell_error(errno);
        }
    }

    /// The program is to hear of an error that ends nothing.
    pub fn tell_error(&mut self, errno: i32) {
        self.slot().error.store(errno.unsigned_abs(), SeqCst);
        self.to_program.side.news = true;
        self.from_program.side.news = true;
        self.told_error = true;
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
        self.fail(if self.soft_error != 0 { self.soft_error } else { libc::ETIMEDOUT });
    }

    /// The peer has acknowledged text: what the network said before is past.
    pub fn forget_soft_error(&mut self) {
        self.soft_error = 0;
    }

    /// The program's `IP_TOS`, if it is another than before.
    pub fn new_service(&mut self) -> Option<u8> {
        let set = self.slot().service.load(Relaxed) as u8;
        (std::mem::replace(&mut self.service, set) != set).then_some(set)
    }

    /// Writes a datagram that arrived; `false` when there is no room for it.
    pub fn push_datagram(&mut self, peer: SocketAddr, data: &[&[u8]]) -> bool {
        let to = &mut self.to_program;
        let room = to.free();
        let Some(write) = silk_stream::push_datagram(to.side.bytes(), to.write, room, peer, 0, data) else {
            self.slot().drops.fetch_add(1, Relaxed);
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
        from.look();
        let there = from.write.wrapping_sub(from.read);
        if there == 0 {
            return false;
        }
        let ring = from.side.bytes();
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
        // Event sets are told of more room only where somebody waits for it: nearly every
        // acknowledgement makes some.
        let bells = readable || self.slot().waiting.load(SeqCst) & waiting::WRITE != 0;
        let error = std::mem::take(&mut self.told_error);
        Some(Wake { threads: self.whom_to_wake(readable, writable, error), bells })
    }

    /// Of the threads that sleep on the socket, whether those whose level is reached are to
    /// be woken (CM §4.2 `B_wakeup`); their bits are then taken from the slot.
    fn whom_to_wake(&self, readable: bool, writable: bool, error: bool) -> bool {
        // The indices have been stored; whoever sets its bit after this sees them.
        std::sync::atomic::fence(SeqCst);
        let slot = self.slot();
        let sleeping = slot.waiting.load(SeqCst);
        if sleeping == 0 {
            return false;
        }
        let level = |word: &std::sync::atomic::AtomicU32, size: u32| word.load(Relaxed).min(size);
        let read_over = self.status & (status::FAILED | status::PEER_FIN) != 0;
        let write_over = self.status & (status::FAILED | status::SEND_CLOSED) != 0;
        let room = free(slot.tx_write.load(SeqCst), self.from_program.read, self.from_program.side.size);
        let reader = readable
            && (read_over || error || self.unread() >= level(&slot.wake_read, self.to_program.side.size));
        let room =
            room >= level(&slot.wake_write, self.from_program.side.size) && self.from_program.sends_enough();
        let writer = writable && (write_over || error || room);
        let bits = if reader { waiting::READ } else { 0 } | if writer { waiting::WRITE } else { 0 };
        sleeping & bits != 0 && slot.waiting.fetch_and(!bits, SeqCst) & bits != 0
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

impl ToProgram {
    fn free(&self) -> u32 {
        free(self.write, self.side.slot().rx_read.load(SeqCst), self.side.size)
    }

    fn advance(&mut self, write: u32) {
        self.write = write;
        self.side.slot().rx_write.store(write, Release);
        self.side.news = true;
    }
}

impl Incoming for ToProgram {
    fn room(&self) -> usize {
        self.free().saturating_sub(self.side.size - self.limit) as usize
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.free() as usize);
        if taken > 0 {
            self.side.bytes().write(self.write, &bytes[..taken]);
            self.advance(self.write.wrapping_add(taken as u32));
        }
        taken
    }
}

impl FromProgram {
    fn look(&mut self) -> bool {
        let claimed = used(self.side.slot().tx_write.load(SeqCst), self.read, self.side.size);
        let known = self.write.wrapping_sub(self.read);
        if claimed > known {
            self.write = self.read.wrapping_add(claimed);
        }
        claimed > known
    }

    /// What the program wrote beyond what was sent is half of what it may be, as Linux wants it
    /// before it wakes a writer.
    fn sends_enough(&self) -> bool {
        let waits = self.side.slot().tx_write.load(SeqCst).wrapping_sub(self.sent);
        self.not_sent == u32::MAX || u64::from(waits) * 2 < u64::from(self.not_sent)
    }

    fn show_sent(&mut self) {
        if self.not_sent != u32::MAX {
            self.side.slot().tx_sent.store(self.sent, SeqCst);
            self.side.news = true;
        }
    }

    fn give_back(&mut self, read: u32) {
        self.read = read;
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

    fn peek(&self, offset: usize, len: usize) -> [&[u8]; 2] {
        let there = self.len();
        let offset = offset.min(there);
        self.side.bytes().peek(self.read.wrapping_add(offset as u32), len.min(there - offset))
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
}

impl ByteStream for SocketEnd {
    fn split(&mut self) -> (&mut dyn Incoming, &mut dyn Outgoing) {
        (&mut self.to_program, &mut self.from_program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_stream::{Pool, Sizes};

    fn end() -> SocketEnd {
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1, huge_pages: false }).unwrap();
        let mut pool = Pool::new(arena.clone());
        let slot = pool.take_slot().unwrap();
        let rings = Rings { rx: pool.take_ring(4096).unwrap(), tx: pool.take_ring(4096).unwrap() };
        SocketEnd::new(&arena, SocketName { family: 0, slot }, rings).unwrap()
    }

    /// Each connection has one. What is beyond 104 bytes takes the C library's allocator 128 for each.
    #[test]
    fn an_end_is_small() {
        assert!(size_of::<SocketEnd>() <= 104, "{}", size_of::<SocketEnd>());
    }

    #[test]
    fn what_the_program_writes_is_there_until_it_is_consumed() {
        let mut end = end();
        end.from_program.side.bytes().write(0, b"hello");
        end.slot().tx_write.store(5, SeqCst);
        assert!(end.look());
        assert!(!end.look());
        let (_, outgoing) = end.split();
        assert_eq!(outgoing.peek(1, 9).concat(), b"ello");
        outgoing.consume(2);
        assert_eq!(outgoing.len(), 3);
        assert_eq!(end.slot().tx_read.load(SeqCst), 2);
    }

    #[test]
    fn a_receive_ring_that_was_read_and_is_idle_gives_its_memory_back() {
        let mut end = end();
        assert_eq!(end.split().0.write(b"hello"), 5);
        assert_eq!([end.give_back(), end.give_back()], [false, false], "not read yet");
        end.slot().rx_read.store(5, SeqCst);
        assert_eq!(end.to_program.side.bytes().peek(0, 5).concat(), b"hello");
        assert_eq!([end.give_back(), end.give_back()], [true, false]);
        assert_eq!(end.to_program.side.bytes().peek(0, 5).concat(), [0; 5]);
        assert_eq!(end.split().0.write(b"more"), 4);
        assert_eq!(end.to_program.side.bytes().peek(5, 4).concat(), b"more");
        end.slot().rx_read.store(9, SeqCst);
        assert_eq!([end.give_back(), end.give_back()], [false, true], "what just came is not idle");
    }

    #[test]
    fn a_program_that_takes_bytes_back_or_claims_too_many_changes_nothing_else() {
        let mut end = end();
        end.slot().tx_write.store(100, SeqCst);
        end.look();
        end.slot().tx_write.store(50, SeqCst);
        end.look();
        assert_eq!(end.split().1.len(), 100);
        end.slot().tx_write.store(u32::MAX, SeqCst);
        end.look();
        assert_eq!(end.split().1.len(), 4096);
        end.slot().rx_read.store(77, SeqCst);
        assert_eq!(end.split().0.room(), 0);
    }

    #[test]
    fn a_reader_is_woken_at_its_level_and_once() {
        let mut end = end();
        end.slot().wake_read.store(4, SeqCst);
        end.slot().waiting.store(waiting::READ, SeqCst);
        end.split().0.write(b"abc");
        assert_eq!(end.take_news(), Some(Wake { threads: false, bells: true }));
        end.split().0.write(b"d");
        assert_eq!(end.take_news(), Some(Wake { threads: true, bells: true }));
        assert_eq!(end.take_news(), None);
        assert_eq!(end.slot().waiting.load(SeqCst), 0);
    }

    #[test]
    fn a_smaller_receive_buffer_offers_less_and_takes_what_was_offered() {
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1, huge_pages: false }).unwrap();
        let mut pool = Pool::new(arena.clone());
        let slot = pool.take_slot().unwrap();
        let rings = Rings { rx: pool.take_ring(16384).unwrap(), tx: pool.take_ring(4096).unwrap() };
        let mut end = SocketEnd::new(&arena, SocketName { family: 0, slot }, rings).unwrap();
        end.slot().receive_limit.store(1, SeqCst);
        end.limit_receiving();
        assert_eq!(end.split().0.room(), 4096);
        assert_eq!(end.split().0.write(&[7; 8000]), 8000);
        assert_eq!(end.split().0.room(), 0);
        assert!(!end.ask_for_room());
        assert_eq!(end.slot().rx_note.load(SeqCst), 12288 + 2048);
        end.slot().rx_read.store(6000, SeqCst);
        assert_eq!(end.split().0.room(), 2096);
        assert!(!end.ask_for_room());
        assert_eq!(end.slot().rx_note.load(SeqCst), 0, "there is room enough");
        end.slot().receive_limit.store(0, SeqCst);
        end.limit_receiving();
        assert_eq!(end.split().0.room(), 16384 - 2000);
    }

    // RFC 9293 MUST-47, SHLD-20.
    #[test]
    fn an_error_that_ends_nothing_is_told_to_whoever_asked_for_it() {
        let mut end = end();
        end.note_soft_error(libc::EHOSTUNREACH);
        assert_eq!((end.slot().error.load(SeqCst), end.take_news()), (0, None));
        end.slot().wishes.put(wish::SOFT_ERRORS, 1);
        end.slot().waiting.store(waiting::READ, SeqCst);
        end.slot().wake_read.store(1, SeqCst);
        end.note_soft_error(libc::EHOSTUNREACH);
        assert_eq!(end.slot().error.load(SeqCst), libc::EHOSTUNREACH.unsigned_abs());
        assert_eq!(end.take_news(), Some(Wake { threads: true, bells: true }));
        assert_eq!(end.slot().status.load(SeqCst) & status::FAILED, 0);
    }

    #[test]
    fn a_silent_peer_is_told_as_what_the_network_said_last() {
        for (said, acknowledged, errno) in [
            (0, false, libc::ETIMEDOUT),
            (libc::EHOSTUNREACH, false, libc::EHOSTUNREACH),
            (libc::EHOSTUNREACH, true, libc::ETIMEDOUT),
        ] {
            let mut end = end();
            end.note_soft_error(said);
            if acknowledged {
                end.forget_soft_error();
            }
            end.time_out();
            assert_eq!(end.slot().error.load(SeqCst), errno.unsigned_abs());
        }
    }

    #[test]
    fn a_reset_behind_the_peers_end_breaks_the_pipe_of_who_still_writes() {
        for (peer_ended, finished, errno) in
            [(false, false, libc::ECONNRESET), (true, false, libc::EPIPE), (true, true, libc::ECONNRESET)]
        {
            let mut end = end();
            end.change_status(if peer_ended { status::PEER_FIN } else { 0 }, 0);
            if finished {
                end.finish();
            }
            end.reset();
            assert_eq!(end.slot().error.load(SeqCst), errno.unsigned_abs());
        }
    }

    #[test]
    fn a_writer_that_limits_what_is_not_sent_is_woken_when_half_of_it_is() {
        let mut end = end();
        end.slot().wishes.put(wish::NOT_SENT, 1000);
        end.limit_not_sent();
        end.slot().tx_write.store(1200, SeqCst);
        end.look();
        let waits = |end: &SocketEnd| {
            end.slot().waiting.store(waiting::WRITE, SeqCst);
            end.slot().wake_write.store(1, SeqCst);
        };
        waits(&end);
        end.from_program.sent(700);
        assert_eq!(end.slot().tx_sent.load(SeqCst), 700);
        assert_eq!(end.take_news(), Some(Wake { threads: false, bells: true }), "500 are not sent");
        end.from_program.sent(701);
        assert_eq!(end.take_news(), Some(Wake { threads: true, bells: true }));
        // What is acknowledged was sent, whoever sent it.
        waits(&end);
        end.from_program.consume(1200);
        assert_eq!((end.slot().tx_sent.load(SeqCst), end.slot().tx_read.load(SeqCst)), (1200, 1200));
        assert_eq!(end.take_news(), Some(Wake { threads: true, bells: true }));
    }

    #[test]
    fn a_service_is_new_once() {
        let mut end = end();
        assert_eq!(end.new_service(), None);
        end.slot().service.store(0x48, SeqCst);
        assert_eq!([end.new_service(), end.new_service()], [Some(0x48), None]);
        end.slot().service.store(0, SeqCst);
        assert_eq!(end.new_service(), Some(0));
    }

    #[test]
    fn datagrams_pass_in_both_directions_and_a_malformed_one_empties_the_ring() {
        let mut end = end();
        let peer = "10.0.0.9:53".parse().unwrap();
        assert!(end.push_datagram(peer, &[b"query"]));
        let ring = end.from_program.side.bytes();
        let write = silk_stream::push_datagram(ring, 0, 4096, peer, 0, &[b"answer"]).unwrap();
        end.slot().tx_write.store(write + 8, SeqCst);
        let mut seen = Vec::new();
        while end.pop_datagram(|to, parts| seen.push((to.peer, parts.concat()))) {}
        assert_eq!(seen, [(peer, b"answer".to_vec())]);
        assert_eq!(end.slot().tx_read.load(SeqCst), write + 8);
    }
}
