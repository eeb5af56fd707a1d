//! What the library remembers of a socket: one record for all descriptors that `dup` made
//! of it, as the kernel keeps one open file. The records lie in a static table and are taken
//! from a lock-free list, so that reading and writing never allocate and a forked child has
//! them all.
//!
//! A record must not be trusted for longer than one call: another thread may close it, and be given it
//! for another socket at once. A call is therefore about what it [`Found`], and every wait ends with a new look at
//! [`Found::slot`].

use crate::corked::Corked;
use crate::cursor::Cursor;
use crate::groups::early::Early;
use crate::lock::Lock;
use crate::settings::{self, Settings};
use crate::too_large::TooLarge;
use silk_control::Kind;
use silk_stream::option;
use std::ffi::c_int;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Sockets one process can have at one time; further ones are Linux's.
const SOCKETS: usize = 1 << 17;

static SLAB: [Socket; SOCKETS] = [const { Socket::new() }; SOCKETS];
/// First free record plus one, below a count that changes with every use (against ABA).
static FREE: AtomicU64 = AtomicU64::new(0);
/// Records that have never been used start here.
static FRESH: AtomicU32 = AtomicU32::new(0);
/// Silk has served a socket of this process, or of one that it was forked from.
static SERVED: AtomicBool = AtomicBool::new(false);

/// How far a socket has come.
pub mod stage {
    /// The record is free.
    pub const FREE: u32 = 0;
    /// Neither bound nor connected: whose it is will be decided then.
    pub const UNDECIDED: u32 = 1;
    /// Silk serves it.
    pub const SERVED: u32 = 2;
    /// Linux serves it.
    pub const LINUX: u32 = 3;
}

/// What a served socket does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A byte stream.
    Stream,
    /// It listens for byte streams.
    Listener,
    /// Datagrams.
    Datagram,
}

/// Bits of [`Socket::shape`]: what it was made as.
pub mod shape {
    /// `SOCK_DGRAM`; else `SOCK_STREAM`.
    pub const DATAGRAM: u32 = 1;
    /// `AF_INET6`: addresses are shown IPv4-mapped.
    pub const INET6: u32 = 2;
    /// `PF_SCOUT`.
    pub const SCOUT: u32 = 4;
    /// It came from `accept` and shares its kernel descriptor with others of the process.
    pub const ACCEPTED: u32 = 8;
    /// It has been bound by the program.
    pub const BOUND: u32 = 16;
    /// A datagram socket that has a peer.
    pub const CONNECTED: u32 = 32;
    /// The program has learnt that its `connect` succeeded.
    pub const GREETED: u32 = 64;
}

/// Bits of [`Socket::shut`].
pub mod shut {
    /// `SHUT_RD`.
    pub const READ: u32 = 1;
    /// `SHUT_WR`.
    pub const WRITE: u32 = 2;
}

/// The record.
pub struct Socket {
    next: AtomicU32,
    /// How many sockets it has been the record of.
    uses: AtomicU32,
    descriptors: AtomicU32,
    stage: AtomicU32,
    /// Bits of [`shape`].
    pub shape: AtomicU32,
    slot: AtomicU32,
    generation: AtomicU32,
    role: AtomicU32,
    /// `O_NONBLOCK` and whatever else `F_SETFL` sets.
    pub flags: AtomicU32,
    /// What the program has shut down: bits of [`shut`].
    pub shut: AtomicU32,
    /// Counts the times a write found no room, for edge-triggered event sets.
    pub starved: AtomicU32,
    /// The most threads seen waiting for its connections at one time.
    pub crowd: AtomicU32,
    /// Its last `accept` was told that the daemon is dead.
    pub told_of_death: AtomicBool,
    /// Other processes hold it too, or have ([`crate::shared`]).
    pub is_shared: AtomicBool,
    /// How often any of its holders had changed something when this process last looked.
    pub known: AtomicU32,
    /// Event sets that may watch it.
    pub watched: AtomicU32,
    /// Options it was given, of those that silk knows nothing of ([`crate::options::note_foreign`]):
    /// level in the upper half, name in the lower.
    pub foreign: [AtomicU32; 8],
    /// What was refused because it was too large, and nobody has heard why yet.
    pub refused: TooLarge,
    /// The groups it has joined before it was decided who serves it.
    pub early: Early,
    /// What has been written of a datagram that is not whole yet.
    pub corked: Corked,
    /// Who names it (`bind`, `listen`, `connect`, a first datagram) takes turns: the daemon is asked once.
    pub naming: Lock,
    /// Readers take turns.
    pub reading: Lock,
    /// Writers take turns.
    pub writing: Lock,
    /// Where who has the turn writes.
    pub cursor: Cursor,
    /// Socket options.
    pub settings: Settings,
}

impl Socket {
    const fn new() -> Self {
        Self {
            next: AtomicU32::new(0),
            uses: AtomicU32::new(0),
            descriptors: AtomicU32::new(0),
            stage: AtomicU32::new(stage::FREE),
            shape: AtomicU32::new(0),
            slot: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            role: AtomicU32::new(0),
            flags: AtomicU32::new(0),
            shut: AtomicU32::new(0),
            starved: AtomicU32::new(0),
            crowd: AtomicU32::new(0),
            told_of_death: AtomicBool::new(false),
            is_shared: AtomicBool::new(false),
            known: AtomicU32::new(0),
            watched: AtomicU32::new(0),
            foreign: [const { AtomicU32::new(0) }; 8],
            refused: TooLarge::new(),
            early: Early::new(),
            corked: Corked::new(),
            naming: Lock::new(),
            reading: Lock::new(),
            writing: Lock::new(),
            cursor: Cursor::new(),
            settings: Settings::new(),
        }
    }

    /// Nobody has a turn any more.
    pub fn open_locks(&self) {
        [&self.naming, &self.reading, &self.writing].into_iter().for_each(Lock::force_open);
        self.corked.force_open();
        self.cursor.reset();
    }

    /// Its place in the table.
    pub fn index(&self) -> u32 {
        let offset = std::ptr::from_ref(self).addr().wrapping_sub(SLAB.as_ptr().addr());
        (offset / size_of::<Self>()) as u32
    }

    /// How far it has come: one of [`stage`].
    pub fn stage(&self) -> u32 {
        self.stage.load(Ordering::Acquire)
    }

    /// Whether silk serves it.
    #[inline]
    pub fn is_served(&self) -> bool {
        self.stage() == stage::SERVED
    }

    /// Whether nobody serves it yet.
    pub fn is_undecided(&self) -> bool {
        self.stage() == stage::UNDECIDED
    }

    /// Whether silk serves it, or may come to: by one look, since another thread may just be naming it, and who asked for the one and
    /// then for the other could miss both.
    pub fn may_be_silks(&self) -> bool {
        matches!(self.stage(), stage::SERVED | stage::UNDECIDED)
    }

    /// The word that says who serves it, as it is now, to sleep on until that is decided.
    pub fn server(&self) -> (&AtomicU32, u32) {
        (&self.stage, self.stage())
    }

    /// From now on silk serves it with this slot.
    pub fn serve(&self, slot: u32, generation: u32, role: Role) {
        self.slot.store(slot, Ordering::Relaxed);
        self.generation.store(generation, Ordering::Relaxed);
        self.set_role(role);
        SERVED.store(true, Ordering::Relaxed);
        self.stage.store(stage::SERVED, Ordering::Release);
    }

    /// From now on Linux serves it.
    pub fn leave_to_linux(&self) {
        self.stage.store(stage::LINUX, Ordering::Release);
    }

    /// What it does.
    #[inline]
    pub fn role(&self) -> Role {
        match self.role.load(Ordering::Relaxed) {
            1 => Role::Listener,
            2 => Role::Datagram,
            _ => Role::Stream,
        }
    }

    /// Changes what it does.
    pub fn set_role(&self, role: Role) {
        let word = match role {
            Role::Stream => 0,
            Role::Listener => 1,
            Role::Datagram => 2,
        };
        self.role.store(word, Ordering::Relaxed);
    }

    /// Whether a bit of [`shape`] is set.
    pub fn is(&self, bit: u32) -> bool {
        self.shape.load(Ordering::Relaxed) & bit != 0
    }

    /// What to ask the daemon for.
    pub fn kind(&self) -> Kind {
        if self.is(shape::DATAGRAM) { Kind::Datagram } else { Kind::Stream }
    }

    /// Whether calls return instead of waiting.
    pub fn is_nonblocking(&self, flags: c_int) -> bool {
        flags & libc::MSG_DONTWAIT != 0 || self.flags.load(Ordering::Relaxed) & libc::O_NONBLOCK as u32 != 0
    }

    /// Its slot's number and use.
    pub fn name(&self) -> (u32, u32) {
        (self.slot.load(Ordering::Relaxed), self.generation.load(Ordering::Relaxed))
    }

    /// Which of the sockets that the record has been of it is now.
    pub fn uses(&self) -> u32 {
        self.uses.load(Ordering::Acquire)
    }

    /// One more descriptor names it.
    pub fn add_descriptor(&self) {
        self.descriptors.fetch_add(1, Ordering::AcqRel);
    }

    /// The same, if any names it: whether one did.
    pub fn add_descriptor_if_any(&self) -> bool {
        let more = |count: u32| (count > 0).then_some(count + 1);
        self.descriptors.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Whether no other descriptor names it.
    pub fn has_one_descriptor(&self) -> bool {
        self.descriptors.load(Ordering::Acquire) == 1
    }

    /// One descriptor fewer names it; whether it was the last.
    pub fn drop_descriptor(&self) -> bool {
        self.descriptors.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Gives the record back. No descriptor may name it any more.
    pub fn free(&self) {
        self.stage.store(stage::FREE, Ordering::Release);
        let mine = u64::from(self.index()) + 1;
        let mut free = FREE.load(Ordering::Acquire);
        loop {
            self.next.store(free as u32, Ordering::Relaxed);
            let next = ((free >> 32).wrapping_add(1) << 32) | mine;
            match FREE.compare_exchange_weak(free, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => free = now,
            }
        }
    }
}

/// What a call is about: the record that its descriptor named, and which of the record's sockets that was. The record may
/// become another socket's while the call lasts, but what is found of it is never that one's.
#[derive(Clone, Copy)]
pub struct Found {
    record: &'static Socket,
    uses: u32,
}

impl Found {
    /// The socket that the record is of now, for who knows that nobody closes it meanwhile, or looks afterwards whether the
    /// descriptor still named the record.
    #[inline]
    pub fn now(record: &'static Socket) -> Self {
        Self { record, uses: record.uses() }
    }

    /// The record.
    pub fn record(self) -> &'static Socket {
        self.record
    }

    /// Whether it is the same socket.
    pub fn is_same(self, other: Self) -> bool {
        std::ptr::eq(self.record, other.record) && self.uses == other.uses
    }

    /// Whether the record is still this socket's.
    pub fn is_still_it(self) -> bool {
        self.record.uses() == self.uses
    }
}

impl Deref for Found {
    type Target = Socket;

    #[inline]
    fn deref(&self) -> &Socket {
        self.record
    }
}

/// Whether silk has ever served a socket of this process, or of one that it was forked from.
pub fn has_served() -> bool {
    SERVED.load(Ordering::Relaxed)
}

/// The record at `index`.
#[inline]
pub fn at(index: u32) -> Option<&'static Socket> {
    SLAB.get(index as usize)
}

/// All records that have ever been used.
pub fn used() -> &'static [Socket] {
    let end = (FRESH.load(Ordering::Acquire) as usize).min(SOCKETS);
    SLAB.get(..end).unwrap_or_default()
}

/// A new record with one descriptor, at `stage`; `None` when there are too many.
pub fn make(stage: u32, shape: u32, flags: u32) -> Option<&'static Socket> {
    let socket = reused().or_else(fresh)?;
    socket.uses.fetch_add(1, Ordering::AcqRel);
    socket.descriptors.store(1, Ordering::Relaxed);
    socket.shape.store(shape, Ordering::Relaxed);
    socket.flags.store(flags, Ordering::Relaxed);
    socket.role.store(0, Ordering::Relaxed);
    socket.shut.store(0, Ordering::Relaxed);
    socket.starved.store(0, Ordering::Relaxed);
    socket.crowd.store(0, Ordering::Relaxed);
    socket.is_shared.store(false, Ordering::Relaxed);
    socket.told_of_death.store(false, Ordering::Relaxed);
    socket.settings.set([0; settings::WORDS]);
    if shape & shape::INET6 != 0 {
        // As Linux has it, of IPv4's groups a socket of IPv6 hears those alone that it has joined itself.
        socket.settings.stream.store(option::JOINED_ALONE, Ordering::Relaxed);
    }
    socket.refused.take();
    socket.early.clear();
    socket.corked.clear();
    socket.foreign.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    // Who comes late to name what it was before may have a turn of `naming`.
    socket.reading.force_open();
    socket.writing.force_open();
    socket.cursor.reset();
    socket.stage.store(stage, Ordering::Release);
    Some(socket)
}

fn reused() -> Option<&'static Socket> {
    let mut free = FREE.load(Ordering::Acquire);
    loop {
        let socket = at((free as u32).checked_sub(1)?)?;
        let next = ((free >> 32).wrapping_add(1) << 32) | u64::from(socket.next.load(Ordering::Relaxed));
        match FREE.compare_exchange_weak(free, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(socket),
            Err(now) => free = now,
        }
    }
}

fn fresh() -> Option<&'static Socket> {
    let index = FRESH.fetch_add(1, Ordering::AcqRel);
    if index as usize >= SOCKETS {
        FRESH.store(SOCKETS as u32, Ordering::Release);
    }
    at(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_given_out_once_and_again_after_it_was_freed() {
        let made: Vec<_> = (0..3).filter_map(|_| make(stage::UNDECIDED, 0, 0)).collect();
        let mut places: Vec<_> = made.iter().map(|s| s.index()).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 3);
        made.iter().for_each(|s| s.free());
        assert!(made.iter().all(|s| s.stage() == stage::FREE));
        let again =
            make(stage::LINUX, shape::DATAGRAM, 0).map(|s| (s.stage(), s.kind(), s.drop_descriptor()));
        assert_eq!(again, Some((stage::LINUX, Kind::Datagram, true)));
    }

    #[test]
    fn a_record_tells_one_socket_from_the_next() {
        let first = make(stage::UNDECIDED, 0, 0).expect("a record");
        let found = Found::now(first);
        assert!(found.is_still_it());
        first.free();
        // Others may take records meanwhile; whoever has this one is another socket.
        let others: Vec<_> = (0..8).filter_map(|_| make(stage::UNDECIDED, 0, 0)).collect();
        assert!(others.iter().all(|other| other.index() != first.index() || !found.is_still_it()));
        others.iter().for_each(|other| other.free());
    }
}
