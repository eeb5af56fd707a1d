//! The socket options of one socket, as the program set them: kept before it is decided who
//! serves the socket, answered by `getsockopt`, inherited by accepted connections, carried
//! across an exec.

use silk_stream::{option, wish};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Options that are only on or off and concern the library or the daemon's control thread.
pub mod flag {
    /// `SO_REUSEADDR`.
    pub const REUSE_ADDRESS: u32 = 1;
    /// `SO_REUSEPORT`.
    pub const REUSE_PORT: u32 = 2;
    /// `IPV6_V6ONLY`.
    pub const ONLY_INET6: u32 = 4;
    /// `IP_PKTINFO`: `recvmsg` says where a datagram of IPv4 arrived.
    pub const PACKET_INFO: u32 = 16;
    /// `IPV6_RECVPKTINFO`: the same of both IPs.
    pub const PACKET_INFO6: u32 = 8;
    /// `UDP_GRO`: several datagrams of one sender may be received at once.
    pub const COALESCE: u32 = 32;
    /// `IP_RECVTTL`: `recvmsg` says how many hops an IPv4 datagram had left (and so below).
    pub const TELL_TTL: u32 = 256;
    /// `IP_RECVTOS`.
    pub const TELL_SERVICE: u32 = 512;
    /// `IPV6_RECVHOPLIMIT`: the same of IPv6's datagrams.
    pub const TELL_HOPS: u32 = 1024;
    /// `IPV6_RECVTCLASS`.
    pub const TELL_CLASS: u32 = 2048;
    /// `IP_RECVORIGDSTADDR`.
    pub const TELL_TARGET: u32 = 4096;
    /// `IPV6_RECVORIGDSTADDR`.
    pub const TELL_TARGET6: u32 = 8192;
    /// `SO_TIMESTAMP`: `recvmsg` says when a datagram arrived.
    pub const TELL_TIME: u32 = 1 << 14;
    /// It was `SO_TIMESTAMPNS`: in nanoseconds.
    pub const TELL_NANOS: u32 = 1 << 15;
    /// `UDP_CORK`: datagrams are written in parts.
    pub const CORK: u32 = 1 << 16;
    /// `TCP_INQ`: `recvmsg` says how much is left to be read.
    pub const TELL_LEFT: u32 = 1 << 17;
    /// `IPV6_DONTFRAG`: what the path does not take as one is refused.
    pub const WHOLE6: u32 = 1 << 18;
    /// What the daemon has to write beside each datagram ([`silk_stream::option::DETAILS`]).
    pub const OF_DETAILS: u32 = PACKET_INFO | PACKET_INFO6 | TELL_TIME | TELL_TARGET | TELL_TARGET6;
}

/// How many words [`Settings::words`] has.
pub const WORDS: usize = OWN + wish::COUNT;
/// Those of them that are not wishes.
const OWN: usize = 18;

/// The options.
pub struct Settings {
    /// Bits of [`flag`].
    pub flags: AtomicU32,
    /// Bits of [`silk_stream::option`].
    pub stream: AtomicU32,
    /// `SO_LINGER`: zero is off, else the seconds plus one.
    pub linger: AtomicU32,
    /// `SO_RCVTIMEO`, ms; zero waits for ever.
    pub receive_timeout: AtomicU32,
    /// `SO_SNDTIMEO`, ms.
    pub send_timeout: AtomicU32,
    /// `TCP_KEEPIDLE`, seconds; zero: the daemon's default (so the next two).
    pub keep_idle: AtomicU32,
    /// `TCP_KEEPINTVL`, seconds.
    pub keep_interval: AtomicU32,
    /// `TCP_KEEPCNT`.
    pub keep_count: AtomicU32,
    /// `SO_RCVBUF` as set; zero: not set.
    pub receive_buffer: AtomicU32,
    /// `SO_SNDBUF` as set; zero: not set.
    pub send_buffer: AtomicU32,
    /// The backlog given to `listen`.
    pub backlog: AtomicU32,
    /// `TCP_DEFER_ACCEPT`, seconds.
    pub defer_accept: AtomicU32,
    /// `IP_TOS` as set.
    pub service: AtomicU32,
    /// `IPV6_TCLASS` as set.
    pub traffic_class: AtomicU32,
    /// `SO_INCOMING_CPU` as set, plus one.
    pub incoming_cpu: AtomicU32,
    /// `UDP_SEGMENT`, bytes of each datagram; 0: what is sent is one.
    pub segment: AtomicU32,
    /// `SO_RCVLOWAT`; zero: one byte.
    pub low_water: AtomicU32,
    /// `SO_BINDTODEVICE` before the socket had a name: the interface's number; zero: any.
    pub interface: AtomicU32,
    /// As [`silk_stream::Slot::wishes`].
    pub wishes: [AtomicU32; wish::COUNT],
}

impl Settings {
    /// Nothing set.
    pub const fn new() -> Self {
        Self {
            flags: AtomicU32::new(0),
            stream: AtomicU32::new(0),
            linger: AtomicU32::new(0),
            receive_timeout: AtomicU32::new(0),
            send_timeout: AtomicU32::new(0),
            keep_idle: AtomicU32::new(0),
            keep_interval: AtomicU32::new(0),
            keep_count: AtomicU32::new(0),
            receive_buffer: AtomicU32::new(0),
            send_buffer: AtomicU32::new(0),
            backlog: AtomicU32::new(0),
            defer_accept: AtomicU32::new(0),
            service: AtomicU32::new(0),
            traffic_class: AtomicU32::new(0),
            incoming_cpu: AtomicU32::new(0),
            segment: AtomicU32::new(0),
            low_water: AtomicU32::new(0),
            interface: AtomicU32::new(0),
            wishes: [const { AtomicU32::new(0) }; wish::COUNT],
        }
    }

    fn cells(&self) -> impl Iterator<Item = &AtomicU32> {
        // Exhaustive, so that a new option must be considered here.
        let Self {
            flags,
            stream,
            linger,
            receive_timeout,
            send_timeout,
            keep_idle,
            keep_interval,
            keep_count,
            receive_buffer,
            send_buffer,
            backlog,
            defer_accept,
            service,
            traffic_class,
            incoming_cpu,
            segment,
            low_water,
            interface,
            wishes,
        } = self;
        let own: [&AtomicU32; OWN] = [
            flags,
            stream,
            linger,
            receive_timeout,
            send_timeout,
            keep_idle,
            keep_interval,
            keep_count,
            receive_buffer,
            send_buffer,
            backlog,
            defer_accept,
            service,
            traffic_class,
            incoming_cpu,
            segment,
            low_water,
            interface,
        ];
        own.into_iter().chain(wishes)
    }

    /// All of them, in a fixed order.
    pub fn words(&self) -> [u32; WORDS] {
        let mut words = [0; WORDS];
        words.iter_mut().zip(self.cells()).for_each(|(word, cell)| *word = cell.load(Relaxed));
        words
    }

    /// Sets all of them.
    pub fn set(&self, words: [u32; WORDS]) {
        self.cells().zip(words).for_each(|(cell, word)| cell.store(word, Relaxed));
    }

    /// Sets these `bits` of them.
    pub fn put_bits(&self, words: &[u32; WORDS], bits: &[u32; WORDS]) {
        let words = words.iter().zip(bits);
        self.cells().zip(words).for_each(|(cell, (word, bits))| put_bits(cell, *word, *bits));
    }

    /// The service bits of what is sent to a peer of IPv4 or `six`.
    pub fn service_over(&self, six: bool) -> &AtomicU32 {
        if six { &self.traffic_class } else { &self.service }
    }

    /// One word of the wishes.
    pub fn wish(&self, place: usize) -> u32 {
        self.wishes.get(place).map_or(0, |cell| cell.load(Relaxed))
    }

    /// The wishes alone.
    pub fn wished(&self) -> [u32; wish::COUNT] {
        self.wishes.each_ref().map(|cell| cell.load(Relaxed))
    }

    /// Sets or clears bits of [`flag`].
    pub fn set_flag(&self, bit: u32, on: bool) {
        if on {
            self.flags.fetch_or(bit, Relaxed)
        } else {
            self.flags.fetch_and(!bit, Relaxed)
        };
    }

    /// Sets or clears the bits of `SO_TIMESTAMP`, or `SO_TIMESTAMPNS`, each of which ends the other.
    pub fn set_time(&self, nanos: bool, on: bool) {
        self.set_flag(flag::TELL_NANOS, on && nanos);
        self.set_flag(flag::TELL_TIME, on);
    }

    /// Whether that one is on.
    pub fn has_time(&self, nanos: bool) -> bool {
        self.has_flag(flag::TELL_TIME) && self.has_flag(flag::TELL_NANOS) == nanos
    }

    /// Has the daemon write what [`flag::OF_DETAILS`] need, or no longer.
    pub fn ask_for_details(&self) {
        if self.has_flag(flag::OF_DETAILS) {
            self.stream.fetch_or(option::DETAILS, Relaxed)
        } else {
            self.stream.fetch_and(!option::DETAILS, Relaxed)
        };
    }

    /// Whether a bit of [`flag`] is set.
    pub fn has_flag(&self, bit: u32) -> bool {
        self.flags.load(Relaxed) & bit != 0
    }

    /// `SO_RCVTIMEO`.
    pub fn receive_limit(&self) -> Option<Duration> {
        limit(&self.receive_timeout)
    }

    /// `SO_SNDTIMEO`.
    pub fn send_limit(&self) -> Option<Duration> {
        limit(&self.send_timeout)
    }
}

/// Sets these `bits` of a word, of which other threads may be setting others.
pub fn put_bits(cell: &AtomicU32, word: u32, bits: u32) {
    if bits != 0 {
        let _ = cell.fetch_update(Relaxed, Relaxed, |now| Some((now & !bits) | (word & bits)));
    }
}

/// A time below zero (`SO_RCVTIMEO`): nothing is waited for.
pub const AT_ONCE: u32 = u32::MAX;

fn limit(cell: &AtomicU32) -> Option<Duration> {
    match cell.load(Relaxed) {
        0 => None,
        AT_ONCE => Some(Duration::ZERO),
        ms => Some(Duration::from_millis(ms.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_as_words() {
        let (from, to) = (Settings::new(), Settings::new());
        from.linger.store(6, Relaxed);
        from.receive_timeout.store(1500, Relaxed);
        from.set_flag(flag::REUSE_PORT, true);
        from.wishes[wish::SOFT_ERRORS].store(1, Relaxed);
        to.set(from.words());
        assert_eq!(to.words(), from.words());
        assert_eq!(to.receive_limit(), Some(Duration::from_millis(1500)));
        assert!(to.has_flag(flag::REUSE_PORT) && !to.has_flag(flag::ONLY_INET6));
    }

    #[test]
    fn one_of_the_two_times_is_told_and_the_daemon_hears_of_it() {
        let settings = Settings::new();
        let now = || {
            settings.ask_for_details();
            let details = settings.stream.load(Relaxed) == option::DETAILS;
            (settings.has_time(false), settings.has_time(true), details)
        };
        assert_eq!(now(), (false, false, false));
        settings.set_time(true, true);
        assert_eq!(now(), (false, true, true));
        settings.set_time(false, true);
        assert_eq!(now(), (true, false, true));
        settings.set_time(true, false);
        assert_eq!(now(), (false, false, false));
        settings.set_flag(flag::TELL_TARGET6, true);
        assert_eq!(now(), (false, false, true));
    }
}
