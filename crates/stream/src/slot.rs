//! The control block of one socket, and the bits and words in it that the daemon and the program speak by.

use crate::counts::BELLS;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU16, AtomicU32, AtomicU64};

/// What kind of socket a slot is ([`Slot::kind`]).
pub mod kind {
    /// Not in use.
    pub const FREE: u32 = 0;
    /// A byte stream: TCP.
    pub const STREAM: u32 = 1;
    /// A listening socket; its queues are in [`crate::Listener`].
    pub const LISTENER: u32 = 2;
    /// Datagrams: UDP, and the paths of `PF_SCOUT` that carry messages.
    pub const DATAGRAM: u32 = 3;
}

/// Bits of [`Slot::status`], written by the daemon.
pub mod status {
    /// The connection is established (or was): data may flow.
    pub const CONNECTED: u32 = 1;
    /// `connect` is under way.
    pub const CONNECTING: u32 = 2;
    /// The peer will send no more: after what is in the ring comes end of file.
    pub const PEER_FIN: u32 = 4;
    /// Nothing can be sent any more: `EPIPE`.
    pub const SEND_CLOSED: u32 = 8;
    /// The connection failed; [`super::Slot::error`] holds the `errno`.
    pub const FAILED: u32 = 16;
    /// The socket is ready to connect to the address in [`super::Slot::peer`]. The program that owns it has
    /// it once it has changed this to [`CONNECTING`]; the daemon takes it back by changing it to nothing.
    pub const SPARE: u32 = 32;
    /// The peer's FIN has come, and not only a failure that ends all.
    pub const FIN_CAME: u32 = 64;
    // The daemon keeps them in a byte.
    const _: () = assert!(FIN_CAME <= u8::MAX as u32);
}

/// Bits of [`Slot::request`], written by the program and taken by the daemon.
pub mod request {
    /// `shutdown(SHUT_WR)`: send what is in the ring, then FIN.
    pub const SHUT_WRITE: u32 = 1;
    /// `shutdown(SHUT_RD)`: what still arrives is nobody's, once nothing is written either.
    pub const SHUT_READ: u32 = 2;
    /// The last descriptor is closed. The program must not touch the slot again.
    pub const CLOSE: u32 = 4;
    /// With `CLOSE`: reset the connection instead (`SO_LINGER` with zero seconds, or data
    /// left unread).
    pub const ABORT: u32 = 8;
    /// [`super::Slot::options`] or one of its values changed.
    pub const OPTIONS: u32 = 16;
    /// A thread has taken this connection from an accept queue by itself and serves it now:
    /// [`super::Slot::thread`] says which.
    pub const TAKEN: u32 = 32;
    /// Write into [`crate::Records::info`] what is known of the connection, then move
    /// [`super::Slot::info`].
    pub const INFO: u32 = 64;
    /// [`super::Slot::wishes`] changed.
    pub const WISHES: u32 = 128;
    /// The program has claimed a [`super::status::SPARE`]: connect, to the port that it has written into
    /// [`super::Slot::peer`].
    pub const CONNECT: u32 = 256;
    /// `TCP_NODELAY` was set, or `TCP_CORK` taken away, however they are now: what has been written is not held back.
    pub const PUSH: u32 = 512;
    /// What has been written is urgent up to [`crate::Urgent::sent`].
    pub const URGENT: u32 = 1024;
}

/// What few programs set, as words of [`Slot::wishes`]: it is looked at when
/// [`request::WISHES`] says so. A word that is zero wishes nothing.
pub mod wish {
    /// `TCP_USER_TIMEOUT`, ms.
    pub const USER_TIMEOUT: usize = 0;
    /// `SO_MAX_PACING_RATE`, bytes per second, with every bit inverted: the low half.
    pub const PACING_LOW: usize = 1;
    /// The high half.
    pub const PACING_HIGH: usize = 2;
    /// `TCP_NOTSENT_LOWAT`: the bytes not yet sent from which on a socket is not writable.
    pub const NOT_SENT: usize = 3;
    /// How many of them are whole words; those that follow are half as wide in a slot.
    pub const WIDE: usize = 4;
    /// `TCP_CONGESTION`: the algorithm's number plus one.
    pub const CONGESTION: usize = 4;
    /// `TCP_SYNCNT`.
    pub const SYN_RETRIES: usize = 5;
    /// `TCP_LINGER2`: seconds plus one.
    pub const LINGER: usize = 6;
    /// `TCP_MAXSEG`, bytes.
    pub const MAX_SEGMENT: usize = 7;
    /// `TCP_QUICKACK`: 1 off, 2 on.
    pub const QUICK_ACK: usize = 8;
    /// `IP_TTL`.
    pub const TTL: usize = 9;
    /// `IP_MTU_DISCOVER`: Linux's number plus one.
    pub const DISCOVERY: usize = 10;
    /// `IP_RECVERR`: errors that do not end the connection are told, too.
    pub const SOFT_ERRORS: usize = 11;
    /// `IPV6_RECVERR`.
    pub const SOFT_ERRORS6: usize = 12;
    /// `IPV6_MTU_DISCOVER`: Linux's number plus one.
    pub const DISCOVERY6: usize = 13;
    /// `IPV6_UNICAST_HOPS`, plus one.
    pub const HOPS: usize = 14;
    /// `IP_MULTICAST_TTL`, plus one.
    pub const GROUP_TTL: usize = 15;
    /// `IPV6_MULTICAST_HOPS`, plus one.
    pub const GROUP_HOPS: usize = 16;
    /// `IP_MULTICAST_IF` or `IPV6_MULTICAST_IF`, whichever was set last: Linux's number of the interface.
    pub const GROUP_LINK: usize = 17;
    /// How many words there are.
    pub const COUNT: usize = 18;
}

/// Bits of [`Slot::waiting`] (CM §4.2 `waiting_for_IO`).
pub mod waiting {
    /// A thread sleeps until data, end of file or an error can be read.
    pub const READ: u32 = 1;
    /// A thread sleeps until there is room to write, or an error.
    pub const WRITE: u32 = 2;
    /// Of those who wait a thread sleeps on [`super::Slot::event`]; the others wait for the bell of an event set.
    pub const ASLEEP: u32 = 4;
}

/// How a word names a thread's record: its number plus one; zero names none.
pub mod named {
    /// The thread waits for datagrams, or for several sockets: it follows the class of what wakes it (SILK §3.3).
    pub const FOLLOWS: u32 = 1 << 31;

    /// The word for a record, or for none.
    pub fn word(number: Option<u32>) -> u32 {
        number.map_or(0, |number| number + 1)
    }

    /// The record that a word names.
    pub fn number(word: u32) -> Option<u32> {
        (word & !FOLLOWS).checked_sub(1)
    }
}

/// Bits of [`Slot::options`].
pub mod option {
    /// `TCP_NODELAY`.
    pub const NODELAY: u32 = 1;
    /// `TCP_CORK`.
    pub const CORK: u32 = 2;
    /// `SO_KEEPALIVE`.
    pub const KEEPALIVE: u32 = 4;
    /// `SO_BROADCAST`.
    pub const BROADCAST: u32 = 16;
    /// Received datagrams are to come with [`crate::Details`] (`SO_TIMESTAMP` and its kin).
    pub const DETAILS: u32 = 32;
    /// `IP_MULTICAST_ALL` off: groups that others have joined are not heard.
    pub const JOINED_ALONE: u32 = 64;
    /// `IPV6_MULTICAST_ALL` off.
    pub const JOINED_ALONE6: u32 = 128;
    /// `SO_OOBINLINE`: urgent data is read among the rest.
    pub const URGENT_INLINE: u32 = 256;
    /// `IP_MULTICAST_LOOP` off: what is sent to groups is not heard on the machine itself.
    pub const NO_LOOP: u32 = 512;
    /// `IPV6_MULTICAST_LOOP` off.
    pub const NO_LOOP6: u32 = 1024;
    /// What was written last was `MSG_MORE`: it waits for what follows, as with [`CORK`].
    pub const MORE: u32 = 2048;
}

/// What is wished of one socket, as [`wish`] names it.
#[repr(C)]
#[derive(Default)]
pub struct Wished {
    wide: [AtomicU32; wish::WIDE],
    narrow: [AtomicU16; wish::COUNT - wish::WIDE],
}

impl Wished {
    /// The word in this place of [`wish`]; zero where there is none.
    #[inline]
    pub fn word(&self, place: usize) -> u32 {
        match self.wide.get(place) {
            Some(word) => word.load(Relaxed),
            None => {
                self.narrow.get(place.wrapping_sub(wish::WIDE)).map_or(0, |word| word.load(Relaxed).into())
            }
        }
    }

    /// Writes the word in this place; one too large for it as the largest that fits.
    pub fn put(&self, place: usize, word: u32) {
        if let Some(wide) = self.wide.get(place) {
            wide.store(word, Relaxed);
        } else if let Some(narrow) = self.narrow.get(place.wrapping_sub(wish::WIDE)) {
            narrow.store(u16::try_from(word).unwrap_or(u16::MAX), Relaxed);
        }
    }

    /// All words.
    pub fn words(&self) -> [u32; wish::COUNT] {
        std::array::from_fn(|place| self.word(place))
    }

    /// Writes all words.
    pub fn put_all(&self, words: &[u32; wish::COUNT]) {
        words.iter().enumerate().for_each(|(place, word)| self.put(place, *word));
    }
}

/// An address as sockets have it; IPv4 as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2).
#[repr(C)]
#[derive(Default)]
pub struct SharedAddress {
    /// The address in network byte order, two big-endian halves.
    pub ip: [AtomicU64; 2],
    /// The port, in host byte order.
    pub port: AtomicU32,
    /// IPv6 scope, zero for IPv4.
    pub scope: AtomicU32,
}

/// The control block of one socket: what it is, its rings, and how far each side is.
///
/// Indices run freely and wrap at 2³²; ring sizes are powers of two, so `(index - first) & (size-1)`
/// is the place. The invariant `write - read <= size` (wrapping) is kept by whoever moves
/// the index and checked by whoever reads it. `first` is the writer's: when it finds the ring empty it
/// begins at the start of its memory again, so that short exchanges use few pages, which stay in the
/// caches; the reader looks at it after `write`.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Slot {
    // Written once, by the daemon, before the slot is given out.
    /// Counts the uses of this slot; a descriptor that remembers another is stale.
    pub generation: AtomicU32,
    /// One of [`kind`].
    pub kind: AtomicU32,
    /// The domain whose doorbell this socket rings.
    pub domain: AtomicU32,
    /// Priority of the socket's path (`SOL_SILK`), by the daemon; changes when a program sets it.
    pub priority: AtomicU32,
    /// Place of the receive ring in the arena, bytes. The daemon exchanges it for a larger one as it may change
    /// [`Slot::rx_first`]: while the ring is empty.
    pub rx_place: AtomicU64,
    /// Place of the send ring in the arena, bytes. The daemon exchanges it for a larger one, with what is in it, while
    /// nobody may write ([`Slot::tx_vacating`]).
    pub tx_place: AtomicU64,
    /// Size of the receive ring, bytes; zero before it has one. It only ever grows.
    pub rx_size: AtomicU32,
    /// Size of the send ring, bytes. It only ever grows.
    pub tx_size: AtomicU32,
    /// The listener record of a listening socket; of a datagram socket [`Slot::lane`].
    pub listener: AtomicU32,
    /// How many processes hold the socket; one means a close needs no message.
    pub holders: AtomicU32,
    /// Path id, for `SOL_SILK` and for people.
    pub path: AtomicU64,
    /// Errors read from [`crate::Records::errors`] since the start; by the program, and seldom.
    pub error_read: AtomicU32,
    /// `IP_TOS`, or `IPV6_TCLASS`; of a listening socket both, the second in the next eight bits. By the program, and seldom.
    pub service: AtomicU32,

    // Written by the daemon while the socket lives.
    /// Bytes received into the ring since the start (`N_write`).
    pub rx_write: AtomicU32,
    /// Bytes acknowledged by the peer, and so gone from the send ring (`N_read`).
    pub tx_read: AtomicU32,
    /// Bits of [`status`].
    pub status: AtomicU32,
    /// `errno` of the failure, cleared by the program when it has reported it.
    pub error: AtomicU32,
    /// Moves whenever something changed that a sleeper waits for; threads sleep on it.
    pub event: AtomicU32,
    /// Ring the doorbell after reading when at least this many bytes are free again, because
    /// the peer waits for a window; zero: do not (CM §4.2 `B_start`).
    pub rx_note: AtomicU32,
    /// Bytes sent at least once since the start, while the program limits what it has not sent
    /// ([`wish::NOT_SENT`]).
    pub tx_sent: AtomicU32,
    /// Number of the congestion control that a connection has, plus one; zero: not known yet.
    pub congestion: AtomicU32,
    /// Moves when the daemon has answered [`request::INFO`], in [`crate::Records::info`]; threads sleep
    /// on it. Zero: never yet, and nothing of what is told about the connection means anything.
    pub info: AtomicU32,
    /// Datagrams dropped because the ring was full.
    pub drops: AtomicU32,
    /// Errors written to [`crate::Records::errors`] since the start.
    pub error_write: AtomicU32,
    /// What a connected datagram socket's path takes, bytes of IP; zero: as much as the link.
    pub path_mtu: AtomicU32,
    /// The index that lies at the start of the receive ring's memory.
    pub rx_first: AtomicU32,
    /// Odd while the memory of the send ring is being given back, or the ring exchanged ([`crate::vacate`]).
    pub tx_vacating: AtomicU32,
    /// The last urgent octet that the peer has told of: see [`crate::Mark`]. Zero: there never was one.
    pub rx_urgent: AtomicU64,

    // Written by the program.
    /// Bytes read from the receive ring since the start (`N_read`).
    pub rx_read: AtomicU32,
    /// Bytes written to the send ring since the start (`N_write`).
    pub tx_write: AtomicU32,
    /// Bits of [`waiting`]: who sleeps.
    pub waiting: AtomicU32,
    /// Wake a reader when this many bytes lie in the ring (`B_wakeup`), or at the end.
    pub wake_read: AtomicU32,
    /// Wake a writer when this many bytes are free.
    pub wake_write: AtomicU32,
    /// Bits of [`request`].
    pub request: AtomicU32,
    /// Process that holds the socket ([`crate::OWNER_QUEUED`], [`crate::OWNER_NOBODY`]).
    pub owner: AtomicU32,
    /// Which thread serves it, or has said last that it waits for it ([`named`]).
    pub thread: AtomicU32,
    /// Bits of [`option`].
    pub options: AtomicU32,
    /// `TCP_KEEPIDLE`, seconds; zero: the configured default (so below).
    pub keep_idle: AtomicU32,
    /// `TCP_KEEPINTVL`, seconds.
    pub keep_interval: AtomicU32,
    /// `TCP_KEEPCNT`.
    pub keep_count: AtomicU32,
    /// `SO_SNDBUF`: the most bytes that may lie in the send ring; zero: as many as it holds.
    pub send_limit: AtomicU32,
    /// `SO_RCVBUF`: the most unread bytes the peer is offered room for; zero: the whole ring.
    pub receive_limit: AtomicU32,
    /// How many threads, of any process, may be writing into the send ring ([`crate::vacate`]).
    pub tx_writers: AtomicU32,
    /// The index that lies at the start of the send ring's memory.
    pub tx_first: AtomicU32,

    /// The event sets that watch this socket, a bit each (`0..BELLS`), by the program.
    pub bells: [AtomicU64; BELLS as usize / 64],
    /// The local address.
    pub local: SharedAddress,
    /// The peer's address; of a [`status::SPARE`] the program writes the port.
    pub peer: SharedAddress,

    /// What the program wishes beyond the usual, by the program: see [`wish`].
    pub wishes: Wished,
    /// The index at which the newest [`crate::Reference`] of the send ring begins, with every bit
    /// inverted, so that zero means none at first; by the program, before [`Slot::tx_write`].
    pub tx_reference: AtomicU32,
}

impl Slot {
    /// The slot of a datagram socket's first lane, or of the lane behind a lane, plus one; zero: there is none. A lane has rings and a path of
    /// its own, for a class that is more important than the socket's; the most important come first. By the daemon.
    pub fn lane(&self) -> &AtomicU32 {
        &self.listener
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_side_writes_cache_lines_of_its_own() {
        assert_eq!(std::mem::offset_of!(Slot, rx_write) % 64, 0);
        assert_eq!(std::mem::offset_of!(Slot, rx_read) % 64, 0);
        assert_eq!(std::mem::offset_of!(Slot, bells) % 64, 0);
    }

    #[test]
    fn a_slot_is_five_cache_lines() {
        assert_eq!(size_of::<Slot>(), 320);
    }

    #[test]
    fn wishes_read_back_and_what_does_not_fit_is_the_largest() {
        let wished = Wished::default();
        let words = std::array::from_fn(|place| place as u32 + 1);
        wished.put_all(&words);
        assert_eq!(wished.words(), words);
        wished.put(wish::PACING_HIGH, u32::MAX);
        wished.put(wish::LINGER, 70_000);
        wished.put(wish::COUNT, 1);
        assert_eq!(
            [wish::PACING_HIGH, wish::LINGER, wish::COUNT].map(|place| wished.word(place)),
            [u32::MAX, 65_535, 0]
        );
    }
}
