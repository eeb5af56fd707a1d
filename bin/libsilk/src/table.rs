//! What a descriptor is, by its [word](numbers).
//!
//! The table must never hold on to a number the program has closed: everything that closes
//! or replaces descriptors passes through here.

use crate::ending;
use crate::epoll_set::{self, Epoll};
use crate::numbers::{self, EPOLL, INDEX, INTERNAL, SOCKET};
use crate::shared;
use crate::socket::{self, Found, Socket};
use std::ffi::c_int;

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

#[inline]
fn decode(word: u32) -> Option<Entry> {
    match word & !INDEX {
        INTERNAL => Some(Entry::Internal),
        SOCKET => socket::at(word & INDEX).map(Entry::Socket),
        EPOLL => epoll_set::at(word & INDEX).map(Entry::Epoll),
        _ => None,
    }
}

/// What `fd` is, if it is anything here.
#[inline]
pub fn entry(fd: c_int) -> Option<Entry> {
    let word = numbers::word(fd);
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
    let found = found(fd)?;
    if found.is_served() {
        shared::catch_up(&found);
        return Some(found);
    }
    ending::heed();
    None
}

/// The socket behind `fd`, decided or not, for a call that is to be about no other.
#[inline]
pub fn found(fd: c_int) -> Option<Found> {
    let mut word = numbers::word(fd);
    loop {
        let Entry::Socket(socket) = decode(word)? else { return None };
        let found = Found::now(socket);
        // A record is another socket's only after no descriptor names it as this one's.
        let now = numbers::word(fd);
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

/// Notes what `fd` is; `false` when its number is too high to be noted.
pub fn put(fd: c_int, entry: Entry) -> bool {
    numbers::put(fd, encode(entry))
}

/// Notes what `fd` is, or that it is nothing, instead of what it was, which is given back.
pub fn exchange(fd: c_int, entry: Option<Entry>) -> Option<Entry> {
    decode(numbers::exchange(fd, entry.map_or(0, encode)))
}

/// Forgets `fd`; what it was.
pub fn take(fd: c_int) -> Option<Entry> {
    decode(numbers::take(fd))
}

/// Every known descriptor from `first` to `last`.
pub fn within(first: u32, last: u32) -> impl Iterator<Item = (c_int, Entry)> {
    let end = last.saturating_add(1).min(numbers::end());
    (first..end).filter_map(|fd| {
        let fd = c_int::try_from(fd).ok()?;
        Some((fd, entry(fd)?))
    })
}
