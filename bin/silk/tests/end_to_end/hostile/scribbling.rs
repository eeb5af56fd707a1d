//! What a program may do to the memory that it shares with the daemon: anything, to any word. Most of it goes where the daemon
//! looks; all of it is written as to a file, so that nothing here is more than bytes.

use silk_control::SlotNumber;
use silk_stream::{
    Arena, BELLS, Bell, DOMAINS, Doorbell, FILES, LISTENERS, Listener, Records, Sent, SharedFile, Slot,
    THREADS, Thread, Way, free, kind, push_datagram, request, status, wake,
};
use silk_testkit::dice::Dice;
use silk_testkit::netns::{CLIENT, CLIENT6, PREFERRED, SERVER};
use std::fs::File;
use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::SeqCst;

/// Slots that are written to: most are among the first of the three books that take some.
const SLOTS_AT_PLAY: u64 = 200;

/// One family's memory, and what wakes the domains.
pub struct Memory {
    arena: Arena,
    file: File,
    events: Vec<OwnedFd>,
}

impl Memory {
    /// That of a process that has just been attached.
    pub fn new(arena: OwnedFd, events: Vec<OwnedFd>) -> Self {
        let file = File::from(arena.try_clone().unwrap());
        Self { arena: Arena::attach(arena).unwrap(), file, events }
    }

    /// A slot that may be in use.
    pub fn any_slot(dice: &mut Dice) -> SlotNumber {
        dice.below(SLOTS_AT_PLAY) as u32
    }

    /// The program has something to say of a socket.
    pub fn ring(&self, slot: SlotNumber) {
        for (domain, event) in self.events.iter().enumerate() {
            if let Some(doorbell) = self.arena.doorbell(domain) {
                doorbell.set.mark(slot);
                wake::ring(&doorbell.sleeping, event.as_fd());
            }
        }
    }

    /// Asks something of a socket's executor, as a program does.
    pub fn ask(&self, slot: SlotNumber, dice: &mut Dice) {
        const ALL: [u32; 11] = [
            request::SHUT_WRITE,
            request::SHUT_READ,
            request::CLOSE,
            request::ABORT,
            request::OPTIONS,
            request::TAKEN,
            request::INFO,
            request::WISHES,
            request::CONNECT,
            request::PUSH,
            request::URGENT,
        ];
        let Some(record) = self.arena.slot(slot) else { return };
        let bits = match dice.below(4) {
            0 => dice.word() as u32,
            _ => ALL[dice.below(ALL.len() as u64) as usize] | ALL[dice.below(ALL.len() as u64) as usize],
        };
        if dice.falls(0.3) {
            let _ = record.status.compare_exchange(status::SPARE, status::CONNECTING, SeqCst, SeqCst);
        }
        record.request.fetch_or(bits, SeqCst);
        self.ring(slot);
    }

    /// Connects with a socket that was made ready, or was once, without a look whether it still is.
    pub fn claim(&self, slot: SlotNumber, port: u16) {
        if let Some(record) = self.arena.slot(slot) {
            record.peer.port.store(port.into(), SeqCst);
            record.request.fetch_or(request::CONNECT, SeqCst);
            self.ring(slot);
        }
    }

    /// Says that a slot is used anew, which is nobody's to say but the daemon's.
    pub fn count(&self, slot: SlotNumber) {
        self.arena.slot(slot).unwrap().generation.fetch_add(1, SeqCst);
    }

    /// Writes to a socket, as a program does or nearly so.
    pub fn write(&self, slot: SlotNumber, dice: &mut Dice) {
        let Some(record) = self.arena.slot(slot) else { return };
        let (place, size) = (record.tx_place.load(SeqCst), record.tx_size.load(SeqCst));
        let Some(ring) = self.arena.ring(place, size) else { return };
        let ring = ring.beginning_at(record.tx_first.load(SeqCst));
        let (write, read) = (record.tx_write.load(SeqCst), record.tx_read.load(SeqCst));
        let bytes: Vec<u8> = (0..dice.below(3000)).map(|n| n as u8).collect();
        let next = if record.kind.load(SeqCst) == kind::DATAGRAM && dice.falls(0.9) {
            let segment = if dice.falls(0.8) { 0 } else { dice.word() as u16 };
            let from = dice.falls(0.2).then(|| address(dice));
            let way = Way { hops: dice.below(4) as u8, service: dice.word() as u8 };
            let sent = Sent { peer: SocketAddr::new(address(dice), port(dice)), way, segment, from };
            push_datagram(ring, write, free(write, read, size), &sent, &[&bytes])
        } else {
            ring.write(write, &bytes);
            Some(write.wrapping_add(bytes.len() as u32))
        };
        record.tx_write.store(next.unwrap_or(write), SeqCst);
        self.ring(slot);
    }

    /// Reads all that has come to a socket.
    pub fn read(&self, slot: SlotNumber) {
        let Some(record) = self.arena.slot(slot) else { return };
        record.rx_read.store(record.rx_write.load(SeqCst), SeqCst);
        self.ring(slot);
    }

    /// Takes a connection that waits at a listening socket for one of the first processes; the socket.
    pub fn accept(&self, dice: &mut Dice) -> Option<(SlotNumber, u32)> {
        let listener = self.arena.listener(dice.below(4) as u32)?;
        let queue = listener.queue.get(dice.below(2) as usize)?;
        let slot = queue.pop(1 + dice.below(4) as u32, |slot| Some(&self.arena.slot(slot)?.owner))?;
        let record = self.arena.slot(slot)?;
        record.thread.store(dice.below(4) as u32, SeqCst);
        record.request.fetch_or(request::TAKEN, SeqCst);
        self.ring(slot);
        Some((slot, record.generation.load(SeqCst)))
    }

    /// An event set watches a socket, and somebody sleeps there.
    pub fn watch(&self, slot: SlotNumber, bell: u32) {
        let (record, shared) = (self.arena.slot(slot).unwrap(), self.arena.bell(bell).unwrap());
        record.bells[bell as usize / 64].fetch_or(1 << (bell % 64), SeqCst);
        shared.armed.store(1, SeqCst);
    }

    /// All threads that there could be wait at the first listening sockets.
    pub fn crowd(&self) {
        for listener in (0..4).filter_map(|number| self.arena.listener(number)) {
            (0..THREADS).for_each(|thread| listener.waiters.enter(thread));
        }
    }

    /// Writes something somewhere.
    pub fn scribble(&self, dice: &mut Dice) {
        let slot = Self::any_slot(dice);
        let in_slot = |at: usize| offset_of!(Records, slot) + slot as usize * size_of::<Slot>() + at;
        let any = |dice: &mut Dice, bytes: usize| dice.below(bytes as u64 / 4) as usize * 4;
        let record = |dice: &mut Dice, count: u32, size: usize| {
            // The first few are those in use.
            let most = if dice.falls(0.9) { 6 } else { u64::from(count) };
            dice.below(most) as usize * size + any(dice, size)
        };
        let at = match dice.below(20) {
            0 => in_slot(offset_of!(Slot, owner)),
            1 => in_slot(offset_of!(Slot, holders)),
            2 => in_slot(offset_of!(Slot, generation)),
            3 => in_slot(offset_of!(Slot, kind)),
            4 => in_slot(offset_of!(Slot, status)),
            5 => in_slot(offset_of!(Slot, listener)),
            6 => in_slot(offset_of!(Slot, wishes)) + any(dice, size_of::<silk_stream::Wished>()),
            7 => in_slot(offset_of!(Slot, bells)) + any(dice, 32),
            8 | 9 => in_slot(any(dice, size_of::<Slot>())),
            10 => offset_of!(Records, listener) + record(dice, LISTENERS, size_of::<Listener>()),
            11 => {
                // The heads of its queues, and who waits there.
                let first = dice.below(4) as usize * size_of::<Listener>();
                let queue = dice.below(3) as usize * size_of::<silk_stream::AcceptQueue>();
                let at = match dice.below(4) {
                    0 => 0,
                    1 => offset_of!(Listener, waiters),
                    _ => offset_of!(Listener, queue) + queue,
                };
                offset_of!(Records, listener) + first + at + any(dice, 48)
            }
            12 => offset_of!(Records, thread) + record(dice, THREADS, size_of::<Thread>()),
            13 => {
                let thread = dice.below(6) as usize * size_of::<Thread>();
                offset_of!(Records, thread) + thread + offset_of!(Thread, handed)
            }
            14 => offset_of!(Records, bell) + record(dice, BELLS, size_of::<Bell>()),
            15 => offset_of!(Records, doorbell) + record(dice, DOMAINS as u32, size_of::<Doorbell>()),
            16 => offset_of!(Records, file) + record(dice, FILES, size_of::<SharedFile>()),
            17 => offset_of!(Records, header) + any(dice, size_of::<silk_stream::Header>()),
            18 => {
                let tables = [
                    (offset_of!(Records, info), size_of::<silk_stream::SharedInfo>()),
                    (offset_of!(Records, errors), size_of::<silk_stream::ErrorQueue>()),
                    (offset_of!(Records, urgent), size_of::<silk_stream::Urgent>()),
                    (offset_of!(Records, shared), size_of::<silk_stream::Shared>()),
                ];
                let (table, size) = tables[dice.below(4) as usize];
                table + slot as usize * size + any(dice, size)
            }
            _ => in_slot(offset_of!(Slot, rx_read)) + any(dice, 64),
        };
        let word = word(dice);
        let _ = self.file.write_at(&word.to_ne_bytes(), at as u64);
        if dice.falls(0.5) {
            self.ring(slot);
        }
    }
}

/// A number that may mean something, or too much.
fn word(dice: &mut Dice) -> u32 {
    match dice.below(8) {
        0 => 0,
        1 => dice.below(5) as u32,
        2 => Memory::any_slot(dice) + 1,
        3 => u32::MAX - dice.below(3) as u32,
        4 => 1 << dice.below(32),
        5 => (1 << 31) | dice.word() as u32,
        _ => dice.word() as u32,
    }
}

/// Who may be meant.
pub fn address(dice: &mut Dice) -> IpAddr {
    match dice.below(12) {
        0..4 => CLIENT.into(),
        4 => PREFERRED.into(),
        5 => CLIENT6.into(),
        6 => SERVER.into(),
        7 => Ipv4Addr::LOCALHOST.into(),
        8 => Ipv4Addr::UNSPECIFIED.into(),
        9 => Ipv4Addr::new(239, 1, 2, dice.below(4) as u8).into(),
        10 => CLIENT.to_ipv6_mapped().into(),
        _ => Ipv4Addr::from(dice.word() as u32).into(),
    }
}

/// Where: at the peer's echo, where nobody is, at one of the program's own, or anywhere.
pub fn port(dice: &mut Dice) -> u16 {
    match dice.below(8) {
        0..4 => 7,
        4 | 5 => 9,
        6 => super::PORTS[dice.below(super::PORTS.len() as u64) as usize],
        _ => dice.word() as u16,
    }
}
