//! Memory-mapped streams between the daemon and the programs it serves (CM §4).
//!
//! One *arena* is shared with one family of processes (what one `silk run` started). It
//! holds a control block ([`Slot`]) for every socket, byte rings for the data, and the
//! bells by which each side tells the other that something changed. In the common case
//! data moves, windows open and connections are accepted without a system call; a system
//! call is made only to wake a side that has said it sleeps.
//!
//! Trust: the daemon shares an arena with nobody but the family it serves, keeps its own
//! copy of every index and size, and clamps whatever it reads. A program that scribbles
//! over its arena harms its own connections and nothing else.
//!
//! | CM §4.2 | here |
//! |---|---|
//! | `N_read`, `N_write` | [`Slot::rx_read`], [`Slot::rx_write`], [`Slot::tx_read`], [`Slot::tx_write`] |
//! | `B_wakeup` | [`Slot::wake_read`], [`Slot::wake_write`] |
//! | `waiting_for_IO` | [`Slot::waiting`] |
//! | `active`, `B_start` | [`Doorbell::sleeping`]; [`Slot::rx_note`] |
//!
//! [`mail`] is what the threads of the daemon tell each other by: like everything here it lets no side wait for
//! another.
//!
//! `unsafe` is used to map memory and files, to take leases on these, to copy bytes in and out, and for the letters
//! of `mail`, nowhere else.

mod accept;
#[cfg(not(loom))]
mod arena;
#[cfg(not(loom))]
mod budget;
mod counts;
#[cfg(not(loom))]
mod datagram;
mod dirty;
mod errors;
mod layout;
#[cfg(not(loom))]
mod leased;
pub mod mail;
#[cfg(not(loom))]
mod pool;
mod reference;
mod ring;
mod shared;
mod slot;
mod sync;
#[cfg(not(loom))]
mod taken;
mod tcp_info;
mod urgent;
pub mod vacate;
#[cfg(not(loom))]
pub mod wake;
mod ways;

pub use accept::{AcceptQueue, OWNER_NOBODY, OWNER_QUEUED, THREADS, Waiters};
#[cfg(not(loom))]
pub use arena::{Arena, AttachError, CreateError, RingPlace, Sizes};
#[cfg(not(loom))]
pub use budget::Budget;
pub use counts::*;
#[cfg(not(loom))]
pub use datagram::{
    Datagram, Details, RECORD_HEADER, Received, Sent, Way, pop as pop_datagram, push as push_datagram,
    push_received,
};
pub use dirty::{DirtySet, MARKS};
#[cfg(not(loom))]
pub use errors::{ERRORS, ErrorQueue, QUOTED, SocketError};
pub use layout::*;
#[cfg(not(loom))]
pub use leased::Leased;
#[cfg(not(loom))]
pub use pool::{Left, Pool};
pub use reference::Reference;
pub use ring::{Bytes, begin as begin_ring, free, left_of, used};
pub use shared::{SHARED_WORDS, Shared, SharedLock};
pub use slot::*;
pub use tcp_info::{INFO_WORDS, MODEL_WORDS, SharedInfo, TcpInfo};
pub use urgent::{Ahead, Mark, Urgent};
pub use ways::Ways;
