//! A TCP connection of the benchmarks: two hosts shake hands, and then segments are made by hand, since a
//! peer that makes them would cost as much as what is measured.

use super::case::{repeated, timed};
use super::host::{HEADROOM, HERE, Host, NOW, PAYLOAD, Program, Rules, THERE};
use core::net::SocketAddrV4;
use silk_path::{Attr, Attrs, Bell, ByteStream, ModuleId, Outcome, PathId};
use silk_wire::checksum::{Sum, pseudo};
use silk_wire::{eth, ipv4, tcp};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Where TCP's header is in a frame.
pub const TCP: usize = eth::HEADER + ipv4::HEADER;
/// Where a header of IP has its checksum, counted from the frame's start.
const IP_CHECKSUM: usize = eth::HEADER + 10;
/// Segments sent before the peer acknowledges them: less than the initial window, in bytes.
const BURST: u64 = 64;

/// A server with a listening path, and a client's two segments that open a connection to it.
pub struct Handshake {
    /// The server.
    pub server: Host,
    socket: ModuleId,
    /// Its listening path.
    pub listener: PathId,
    /// The client's first segment.
    pub syn: Vec<u8>,
    /// The client's second segment.
    pub ack: Vec<u8>,
}

impl Handshake {
    /// Lets a client open the connection once, to learn its segments.
    pub fn new(rules: Rules) -> Self {
        Self::roomy(rules, 1 << 16)
    }

    /// The same, with room for so many connections in the server's tables.
    pub fn roomy(rules: Rules, connections: usize) -> Self {
        let (mut server, mut client) = (Host::roomy(HERE, rules, connections), Host::at(THERE, Rules::None));
        let (socket, tcp) = (server.module("socket"), server.module("tcp"));
        server.create(tcp, Attrs::new().with(Attr::Listen(true)), None);
        let local = SocketAddrV4::new(HERE, 80);
        let attrs = Attrs::new().with(Attr::ProtId(ipv4::TCP.into())).with(Attr::Local(local.into()));
        let listener = server.create(socket, attrs.with(Attr::Listen(true)), None);
        let attrs = Attrs::new()
            .with(Attr::ProtId(ipv4::TCP.into()))
            .with(Attr::Local(SocketAddrV4::new(THERE, 5000).into()))
            .with(Attr::Remote(local.into()));
        (server.world.watch, client.world.watch) = (true, true);
        let path = client.create(client.module("socket"), attrs, Some(Program::silent()));
        let syn = client.world.last.clone();
        assert_eq!(server.arrive(listener, &syn), Outcome::Done, "the SYN is taken");
        let answer = server.world.last.clone();
        assert_eq!(client.arrive(path, &answer), Outcome::Done, "the SYN-ACK is taken");
        let ack = client.world.last.clone();
        server.world.watch = false;
        Self { server, socket, listener, syn, ack }
    }

    /// The server accepts the connection once more: its path, established.
    pub fn accept(&mut self, stream: Box<dyn ByteStream>) -> PathId {
        self.server.arrive(self.listener, &self.syn);
        let ack = std::mem::take(&mut self.ack);
        let path = self.establish(&ack, stream);
        self.ack = ack;
        path
    }

    /// An acknowledgement ends a handshake that was begun: the connection's path, established.
    pub fn establish(&mut self, ack: &[u8], stream: Box<dyn ByteStream>) -> PathId {
        let handed = self.server.arrive(self.listener, ack);
        assert_eq!(handed, Outcome::Handoff, "the ACK asks for a path");
        let attrs = self.server.world.asked.take().expect("it was asked for with attributes");
        let path = self.server.create(self.socket, attrs, Some(stream));
        self.server.arrive(path, ack);
        path
    }
}

/// An established connection of the server's, and the peer's next segment.
pub struct Established {
    server: Host,
    path: PathId,
    // The peer's segment behind its headroom; its numbers are written into it.
    segment: Vec<u8>,
    written: Arc<AtomicUsize>,
}

impl Established {
    /// A connection whose peer sends segments of `payload` bytes.
    fn new(rules: Rules, payload: usize) -> Self {
        let mut handshake = Handshake::new(rules);
        let written = Arc::<AtomicUsize>::default();
        let path = handshake.accept(Program::writing(written.clone()));
        let Handshake { mut server, ack, .. } = handshake;
        // So that small segments leave at once.
        assert!(server.paths.bell(path, NOW, &mut server.world, Bell::NoDelay(true)), "the path is alive");
        Self { server, path, segment: segment(&ack, payload), written }
    }

    /// The peer's text arrives in order; the program reads it at once, and every second segment is
    /// acknowledged.
    pub fn receiving(rules: Rules) -> impl FnMut(u64) -> Duration {
        let mut this = Self::new(rules, PAYLOAD);
        let mut sequence = this.number(SEQUENCE);
        move |operations| {
            let took = repeated(operations, |_| {
                this.write(SEQUENCE, sequence);
                sequence = sequence.wrapping_add(PAYLOAD as u32);
                this.server.arrive_in_place(this.path, &mut this.segment);
            });
            this.nothing_dropped();
            took
        }
    }

    /// The program writes, and each time one segment leaves. Acknowledgements are not timed.
    pub fn sending(rules: Rules) -> impl FnMut(u64) -> Duration {
        let mut this = Self::new(rules, 0);
        let mut acknowledged = this.number(ACKNOWLEDGEMENT);
        move |operations| {
            let mut whole = Duration::ZERO;
            for first in (0..operations).step_by(BURST as usize) {
                let burst = BURST.min(operations - first);
                let before = this.server.world.passed;
                whole += timed(|| (0..burst).for_each(|_| this.send()));
                assert_eq!(this.server.world.passed - before, burst, "each time one segment leaves");
                acknowledged = acknowledged.wrapping_add(burst as u32 * PAYLOAD as u32);
                this.write(ACKNOWLEDGEMENT, acknowledged);
                this.server.arrive_in_place(this.path, &mut this.segment);
            }
            this.nothing_dropped();
            whole
        }
    }

    fn send(&mut self) {
        self.written.fetch_add(PAYLOAD, Ordering::Relaxed);
        self.server.paths.bell(self.path, NOW, &mut self.server.world, Bell::Sent);
    }

    /// A 32-bit number of the segment's header.
    fn number(&self, at: usize) -> u32 {
        let bytes = &self.segment[HEADROOM + TCP + at..][..4];
        u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    fn write(&mut self, at: usize, number: u32) {
        self.segment[HEADROOM + TCP + at..][..4].copy_from_slice(&number.to_be_bytes());
    }

    fn nothing_dropped(&self) {
        let drops = self.server.paths.path(self.path).map(|path| path.state.drops.total());
        assert_eq!(drops, Some(0), "a segment was dropped");
    }
}

/// SEG.SEQ in TCP's header.
pub const SEQUENCE: usize = 4;
/// SEG.ACK in TCP's header.
pub const ACKNOWLEDGEMENT: usize = 8;

/// The peer's acknowledgement `ack` with `payload` bytes of text, behind a headroom. Its checksum is
/// partial, as on a veth, so it is right whatever the segment says.
pub fn segment(ack: &[u8], payload: usize) -> Vec<u8> {
    let mut buffer = vec![7; HEADROOM + ack.len() + payload];
    let frame = &mut buffer[HEADROOM..];
    frame[..ack.len()].copy_from_slice(ack);
    let total = (frame.len() - eth::HEADER) as u16;
    frame[eth::HEADER + 2..eth::HEADER + 4].copy_from_slice(&total.to_be_bytes());
    frame[IP_CHECKSUM..IP_CHECKSUM + 2].fill(0);
    let checksum = Sum::ZERO.bytes(&frame[eth::HEADER..TCP]).checksum();
    frame[IP_CHECKSUM..IP_CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    let partial = pseudo(THERE, HERE, ipv4::TCP, total - ipv4::HEADER as u16).folded();
    frame[TCP + tcp::CHECKSUM..TCP + tcp::CHECKSUM + 2].copy_from_slice(&partial.to_be_bytes());
    buffer
}
