//! What lies where in an arena: the records that the daemon and the program share.
//!
//! Every field is atomic and says who writes it. "Daemon" fields are hints to the program;
//! the daemon never reads them back, but for [`status::SPARE`](crate::status::SPARE), which a program may take away, and
//! [`Slot::rx_first`] and [`Slot::tx_vacating`], where one value is as good as another.
//! "Program" fields are claims, which the daemon clamps.
//! The records contain no pointers: places are offsets from the start of the arena.

use crate::accept::{AcceptQueue, THREADS, Waiters};
use crate::counts::{BELLS, DOMAINS, FILES, LISTENERS, RANKS, SLOTS, WAYS};
use crate::dirty::DirtySet;
use crate::errors::ErrorQueue;
use crate::shared::Shared;
use crate::slot::Slot;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU32, AtomicU64};
use crate::tcp_info::SharedInfo;
use crate::urgent::Urgent;

/// First word of an arena: `SILK` in the low bytes, the layout's version above.
pub const MAGIC: u64 = 0x000d_0000_4b4c_4953;
/// By which the programs of a family tell one domain's executor that sockets have work.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Doorbell {
    /// Set by the executor before it sleeps. Whoever rings and swaps it from one to zero
    /// writes the domain's eventfd.
    pub sleeping: AtomicU32,
    _pad: [AtomicU32; 15],
    /// The sockets with news.
    pub set: DirtySet,
}

/// By which executors tell one event set (an `epoll` instance) that sockets became ready.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Bell {
    /// Set by the program before it sleeps in the kernel; an executor that swaps it from one
    /// to zero writes the set's eventfd.
    pub armed: AtomicU32,
    /// The thread that sleeps there, or did last ([`crate::named`]). It
    /// gets the priority of what wakes it.
    pub thread: AtomicU32,
    /// How many of its process's threads sleep where another process may come to sleep too.
    pub sleepers: AtomicU32,
    /// Not zero: another process waits there, and this bell is to leave the place to it.
    pub crowded: AtomicU32,
    _pad: [AtomicU32; 12],
    /// The sockets that changed since the program last looked.
    pub set: DirtySet,
}

/// One thread of the family, known to the daemon.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Thread {
    /// What the thread sleeps on in `accept`; the waker adds one.
    pub wake: AtomicU32,
    /// Slot number plus one of a connection handed to it, by the daemon; taken (set to zero)
    /// by the thread.
    pub handed: AtomicU32,
    /// The class whose priority the daemon has given the thread, as its place among the
    /// accept queues plus one; zero: its own priority, which a thread that gives that of a class back says itself. A thread with
    /// a priority must not take a connection of a lower class by itself.
    pub extended: AtomicU32,
    /// Kernel thread id, by the program, for people.
    pub tid: AtomicU32,
    /// When the daemon last woke this thread, CLOCK_MONOTONIC ns; the thread turns it into
    /// [`Thread::woken_after`] when it runs.
    pub woken_at: AtomicU64,
    /// How long the last wake-up took to arrive, ns (SILK Table 2), by the program.
    pub woken_after: AtomicU64,
    _pad: [AtomicU64; 4],
}

/// The shared part of a listening socket.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Listener {
    /// How many waiting threads an ordinary class must leave for the higher ones; a thread
    /// that would leave fewer waiters than this does not take from queue 0.
    pub reserve: AtomicU32,
    /// How many of [`Listener::queue`] are in use: `0..ranks`, highest first in `accept`.
    pub ranks: AtomicU32,
    /// The waiting thread that was called to take queued connections and has not looked yet,
    /// plus one; zero: nobody. One is called at a time. It says zero before it looks, and
    /// calls the next if more is there than it takes: of threads that come back for another
    /// connection by themselves none was woken in vain.
    pub called: AtomicU32,
    /// How many connections may wait in each queue, where the program asked for as many; one more does.
    pub backlog: AtomicU32,
    /// Threads sleeping in `accept` on this socket.
    pub waiters: Waiters,
    /// Established connections, a queue for each class, the least important first.
    pub queue: [AcceptQueue; RANKS],
}

/// A file that programs of the family may send by reference, by the daemon.
#[repr(C)]
#[derive(Default)]
pub struct SharedFile {
    /// Counts the uses of this place; zero while no file is to be sent from it.
    pub generation: AtomicU32,
    /// Which file it is: the device that it is on.
    pub device: AtomicU64,
    /// And its inode there.
    pub inode: AtomicU64,
    /// Its length, bytes, which does not change meanwhile.
    pub length: AtomicU64,
}

/// The daemon's defaults for what programs can set.
#[repr(C)]
#[derive(Default)]
pub struct Usual {
    /// Number of the congestion control.
    pub congestion: AtomicU32,
    /// `TCP_SYNCNT`.
    pub syn_retries: AtomicU32,
    /// `TCP_LINGER2`, seconds.
    pub linger: AtomicU32,
    /// `TCP_KEEPIDLE`, seconds.
    pub keep_idle: AtomicU32,
    /// `TCP_KEEPINTVL`, seconds.
    pub keep_interval: AtomicU32,
    /// `TCP_KEEPCNT`.
    pub keep_count: AtomicU32,
    /// Bytes of the largest IP packet of the link.
    pub mtu: AtomicU32,
    /// Linux's numbers of the interfaces that silk shares with it, the first for `IP_PKTINFO`; zero: none.
    pub interfaces: [AtomicU32; 4],
    /// An address of silk's as a number in host byte order, for what arrives at a socket that is
    /// bound to all of them.
    pub address: AtomicU32,
    /// The addresses that mean everyone on one of silk's networks, as numbers in host byte order;
    /// zero: none.
    pub broadcasts: [AtomicU32; 4],
    /// Bytes of the largest ring that a socket may get.
    pub largest_ring: AtomicU32,
}

impl Usual {
    /// The first interface's number; zero: silk shares none with Linux.
    pub fn interface(&self) -> u32 {
        self.interfaces[0].load(Relaxed)
    }

    /// The number of the interface, where silk shares one with Linux and no other.
    pub fn only_interface(&self) -> Option<u32> {
        let [first, others @ ..] = self.interfaces.each_ref().map(|shared| shared.load(Relaxed));
        (first != 0 && others.iter().all(|other| *other == 0)).then_some(first)
    }

    /// Whether silk receives over the interface of this number. One that it does not share has none.
    pub fn has_interface(&self, number: u32) -> bool {
        self.interface() == 0 || self.interfaces.iter().any(|shared| shared.load(Relaxed) == number)
    }
}

/// The first page: what the arena is. Written by the daemon before it is shared.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// Length of the arena, bytes.
    pub length: AtomicU64,
    /// How many domains ring here.
    pub domains: AtomicU32,
    /// Set when the daemon has gone: every wait ends with `ECONNRESET`.
    pub dead: AtomicU32,
    /// While memory is short: so far from the start of its memory a byte stream is written at most, until
    /// the ring is empty and begins again; zero: as far as there is room. By the daemon at any time.
    pub reach: AtomicU32,
    /// Whether some way leads to everywhere ([`crate::Ways`]). By the daemon at any time.
    pub ways: AtomicU32,
    /// What a socket has that wishes nothing, so that `getsockopt` can say so.
    pub usual: Usual,
}

/// The records of an arena, in order, before its rings.
#[repr(C)]
#[derive(Default)]
pub struct Records {
    /// What it is.
    pub header: Header,
    /// One a domain.
    pub doorbell: [Doorbell; DOMAINS],
    /// Threads.
    pub thread: Table<Thread, { THREADS as usize }>,
    /// Event sets.
    pub bell: Table<Bell, { BELLS as usize }>,
    /// Files.
    pub file: Table<SharedFile, { FILES as usize }>,
    /// Listening sockets.
    pub listener: Table<Listener, { LISTENERS as usize }>,
    /// Sockets.
    pub slot: Table<Slot, { SLOTS as usize }>,
    /// What was last told about each socket; memory only where somebody asked.
    pub info: Table<SharedInfo, { SLOTS as usize }>,
    /// What the network said of the datagrams of each socket; memory only where it did, and where
    /// the program wants to know.
    pub errors: Table<ErrorQueue, { SLOTS as usize }>,
    /// What there is to know of each socket's urgent data; memory only where there is some.
    pub urgent: Table<Urgent, { SLOTS as usize }>,
    /// What the processes that hold each socket share; memory only where several do.
    pub shared: Table<Shared, { SLOTS as usize }>,
}

/// The places in which the file of this device and inode may be, by which it is found.
pub fn places_of_file(device: u64, inode: u64) -> std::ops::Range<u32> {
    // Fibonacci hashing: inodes of a folder are often neighbours.
    let mixed = (device.rotate_left(32) ^ inode).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let first = (mixed >> 32) as u32 % (FILES / WAYS) * WAYS;
    first..first + WAYS
}

/// A table of records that is only ever found in zeroed shared memory.
#[repr(C)]
pub struct Table<T, const N: usize>(pub [T; N]);

impl<T: Default, const N: usize> Default for Table<T, N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| T::default()))
    }
}

/// Where the rings start: the first page behind the records.
pub const RINGS_AT: usize = size_of::<Records>().next_multiple_of(4096);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_files_are_spread_over_all_places() {
        let mut found = [0; FILES as usize];
        for inode in 0..u64::from(FILES) {
            let places = places_of_file(0xfe00, 10_396_302 + inode);
            assert_eq!(places.len(), WAYS as usize);
            places.for_each(|place| found[place as usize] += 1);
        }
        assert!(found.iter().all(|files| (4..=16).contains(files)), "{found:?}");
    }
}
