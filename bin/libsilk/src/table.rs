//! Descriptor number → what this library knows of it. One load answers for every descriptor
//! that is not silk's, without locks, so that `read` on a file costs next to nothing more.
//!
//! The table must never hold on to a number the program has closed: everything that closes
//! or replaces descriptors passes through here.

use crate::epoll::{self, Epoll};
use crate::shared;
use crate::socket::{self, Found, Socket};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

/// Descriptors at or above this number are always Linux's.
const DESCRIPTORS: usize = 1 << 20;
/// What lies behind the number is in the upper bits, which one of its kind in the lower.
const SHIFT: u32 = 28;
const INTERNAL: u32 = 1 << SHIFT;
const SOCKET: u32 = 2 << SHIFT;
const EPOLL: u32 = 3 << SHIFT;
const INDEX: u32 = INTERNAL - 1;

static TABLE: [AtomicU32; DESCRIPTORS] = [const { AtomicU32::new(0) }; DESCRIPTORS];
/// All entries are below this.
static ABOVE: AtomicU32 = AtomicU32::new(0);

/// What a descriptor is.
#[derive(Clone, Copy)]
pub enum Entry {
    /// A socket that silk serves or may come to serve.
    Socket(&'static Socket),
    /// An event set.
    Epoll(&'static Epoll),
    /// One of the library's own, which the program does not know of.
    Internal,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        encode(*self) == encode(*other)
    }
}

fn encode(entry: Entry) -> u32 {
    match entry {
        Entry::Internal => INTERNAL,
        Entry::Socket(socket) => SOCKET | socket.index(),
        Entry::Epoll(set) => EPOLL | set.index(),
    }
}

fn decode(word: u32) -> Option<Entry> {
    match word & !INDEX {
        INTERNAL => Some(Entry::Internal),
        SOCKET => socket::at(word & INDEX).map(Entry::Socket),
        EPOLL => epoll::at(word & INDEX).map(Entry::Epoll),
        _ => None,
    }
}

#[inline]
fn cell(fd: c_int) -> Option<&'static AtomicU32> {
    TABLE.get(usize::try_from(fd).ok()?)
}

/// What `fd` is, if it is anything here.
#[inline]
pub fn entry(fd: c_int) -> Option<Entry> {
    let word = cell(fd)?.load(Ordering::Acquire);
    if word == 0 { None } else { decode(word) }
}

/// The socket behind `fd`, decided or not.
#[inline]
pub fn socket(fd: c_int) -> Option<&'static Socket> {
    match entry(fd)? {
        Entry::Socket(socket) => Some(socket),
        _ => None,
    }
}

/// The socket behind `fd` if silk serves it.
#[inline]
pub fn served(fd: c_int) -> Option<Found> {
    found(fd).filter(|socket| socket.is_served()).inspect(|socket| shared::catch_up(socket))
}

/// The socket behind `fd`, decided or not, for a call that is to be about no other.
#[inline]
pub fn found(fd: c_int) -> Option<Found> {
    let cell = cell(fd)?;
    let mut word = cell.load(Ordering::Acquire);
    loop {
        let Entry::Socket(socket) = decode(word)? else { return None };
        let found = Found::now(socket);
        // A record is another socket's only after no descriptor names it as this one's.
        let now = cell.load(Ordering::Acquire);
        if now == word {
            return Some(found);
        }
        word = now;
    }
}

/// The event set behind `fd`.
pub fn epoll(fd: c_int) -> Option<&'static Epoll> {
    match entry(fd)? {
        Entry::Epoll(set) => Some(set),
        _ => None,
    }
}

/// Whether `fd` is one of the library's own.
pub fn is_internal(fd: c_int) -> bool {
    entry(fd) == Some(Entry::Internal)
}

/// Notes what `fd` is; `false` when its number is too high to be noted.
pub fn put(fd: c_int, entry: Entry) -> bool {
    let Some(cell) = cell(fd) else { return false };
    cell.store(encode(entry), Ordering::Release);
    ABOVE.fetch_max(fd.unsigned_abs() + 1, Ordering::AcqRel);
    true
}

/// Forgets `fd`; what it was.
pub fn take(fd: c_int) -> Option<Entry> {
    let cell = cell(fd)?;
    // A load first: most descriptors that are closed were never here.
    if cell.load(Ordering::Relaxed) == 0 { None } else { decode(cell.swap(0, Ordering::AcqRel)) }
}

/// Every known descriptor from `first` to `last`.
pub fn within(first: u32, last: u32) -> impl Iterator<Item = (c_int, Entry)> {
    let end = last.saturating_add(1).min(ABOVE.load(Ordering::Acquire));
    (first..end).filter_map(|fd| {
        let fd = c_int::try_from(fd).ok()?;
        Some((fd, entry(fd)?))
    })
}
