//! A crowd: one server in this process with as many connections as asked for, each from a port of its own,
//! opened by handshakes whose segments are made by hand, and their next segments in an order that nobody
//! guesses. What a device, a timer wheel, a system call and the programs' rings cost is not in it.

use super::case::timed;
use super::connection::{ACKNOWLEDGEMENT, Handshake, SEQUENCE, TCP, segment};
use super::host::{HEADROOM, HERE, Host, PAYLOAD, Program, Rules, neighbour};
use silk_path::{Outcome, PathId};
use silk_wire::checksum::{Sum, pseudo};
use silk_wire::{eth, ipv4, tcp};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

/// Connections of one address of the peers'.
const PORTS: u32 = 30_000;
/// Segments that are made before, and then timed, together: few enough to stay in the nearest cache.
const BATCH: usize = 128;
/// Where a frame has its source address and its source port.
const SOURCE: usize = eth::HEADER + 12;
const SOURCE_PORT: usize = TCP;
/// Kind and length of a timestamps option.
const TIMESTAMPS: [u8; 2] = [8, 10];

/// How a segment finds its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is known, as where the XDP program has written it in front of the frame.
    Known,
    /// From the frame's first byte on.
    FromTheFrame,
}

/// The connections, and the server that has them.
pub struct Crowd {
    server: Host,
    peers: Vec<Peer>,
    batch: Vec<(PathId, Vec<u8>)>,
    next: u32,
}

/// What a connection's next segment needs.
#[derive(Clone, Copy)]
struct Peer {
    path: PathId,
    sequence: u32,
    acknowledgement: u32,
    echo: [u8; 4],
}

impl Crowd {
    /// Opens `count` connections; `each` is told of every one. Says how long all of them took.
    pub fn open(count: u32) -> (Self, Duration) {
        let mut handshake = Handshake::roomy(Rules::Template, count as usize);
        for n in 0..count.div_ceil(PORTS) {
            neighbour(&mut handshake.server, *address(n * PORTS).ip());
        }
        let sample = handshake.accept(Program::silent());
        handshake.server.destroy(sample);
        handshake.server.world.watch = true;
        let nobody = Peer { path: sample, sequence: 1, acknowledgement: 1, echo: [1; 4] };
        // Every page is there before anybody looks how much the process grows.
        let mut peers = vec![nobody; count as usize];
        let batch = (0..BATCH).map(|_| (sample, segment(&handshake.ack, PAYLOAD))).collect();
        let mut frame = handshake.syn.clone();
        let mut ack = handshake.ack.clone();
        let took = timed(|| {
            for (n, peer) in peers.iter_mut().enumerate() {
                *peer = enter(&mut handshake, address(n as u32), &mut frame, &mut ack);
            }
        });
        handshake.server.world.watch = false;
        let Handshake { server, .. } = handshake;
        (Self { server, peers, batch, next: 0 }, took)
    }

    /// How long it takes to receive so many segments of `busy` connections, in an order that nobody guesses;
    /// the others are idle. Every second one of a connection is acknowledged.
    pub fn receive(&mut self, segments: u64, busy: u32, way: Way) -> Duration {
        let mut whole = Duration::ZERO;
        for _ in 0..segments.div_ceil(BATCH as u64) {
            (0..BATCH).for_each(|place| self.make(place, busy));
            let Self { server, batch, .. } = self;
            whole += timed(|| {
                for (path, frame) in batch.iter_mut() {
                    let path = match way {
                        Way::Known => *path,
                        Way::FromTheFrame => {
                            let frame = &frame[HEADROOM..];
                            let belongs = server.tables.classify(frame);
                            server.paths.target(frame, belongs).expect("it is a connection's")
                        }
                    };
                    server.arrive_in_place(path, frame);
                }
            });
        }
        whole
    }

    /// Whether every connection is there and nothing of it was dropped.
    pub fn is_whole(&self) -> bool {
        let whole =
            |peer: &Peer| self.server.paths.path(peer.path).is_some_and(|path| path.state.drops.total() == 0);
        self.peers.iter().all(whole)
    }

    /// Makes the next segment of some busy connection, at this place of the batch.
    fn make(&mut self, place: usize, busy: u32) {
        let scattered = u64::from(self.next.wrapping_mul(2_654_435_761));
        self.next = self.next.wrapping_add(1);
        let which = ((scattered * u64::from(busy)) >> 32) as u32 * (self.peers.len() as u32 / busy);
        let peer = &mut self.peers[which as usize];
        let (path, buffer) = &mut self.batch[place];
        *path = peer.path;
        let frame = &mut buffer[HEADROOM..];
        number(frame, SEQUENCE, peer.sequence);
        number(frame, ACKNOWLEDGEMENT, peer.acknowledgement);
        echo(frame, peer.echo);
        come_from(frame, address(which));
        peer.sequence = peer.sequence.wrapping_add(PAYLOAD as u32);
    }
}

/// The `n`th peer.
fn address(n: u32) -> SocketAddrV4 {
    let ip = u32::from(HERE) + 1 + n / PORTS;
    SocketAddrV4::new(Ipv4Addr::from(ip), (n % PORTS) as u16 + 1024)
}

/// One more connection: SYN, SYN-ACK, ACK, and the server's path.
fn enter(handshake: &mut Handshake, from: SocketAddrV4, syn: &mut [u8], ack: &mut [u8]) -> Peer {
    come_from(syn, from);
    assert_eq!(handshake.server.arrive(handshake.listener, syn), Outcome::Done, "the SYN is taken");
    let answer = &handshake.server.world.last;
    let theirs = u32::from_be_bytes(four(answer, TCP + SEQUENCE)).wrapping_add(1);
    let stamp = timestamps(answer).map_or([0; 4], |at| four(answer, at + 2));
    number(ack, ACKNOWLEDGEMENT, theirs);
    echo(ack, stamp);
    come_from(ack, from);
    let path = handshake.establish(ack, Program::silent());
    let sequence = u32::from_be_bytes(four(ack, TCP + SEQUENCE));
    Peer { path, sequence, acknowledgement: theirs, echo: stamp }
}

fn number(frame: &mut [u8], at: usize, number: u32) {
    frame[TCP + at..][..4].copy_from_slice(&number.to_be_bytes());
}

fn four(frame: &[u8], at: usize) -> [u8; 4] {
    [frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]
}

/// Where the timestamps option is in a frame, if it has one: segments made by one stack have it at one place.
fn timestamps(frame: &[u8]) -> Option<usize> {
    let end = TCP + usize::from(frame[TCP + 12] >> 4) * 4;
    (TCP + tcp::HEADER..end - 1).find(|at| frame[*at..*at + 2] == TIMESTAMPS)
}

/// Echoes a timestamp of the server's.
fn echo(frame: &mut [u8], stamp: [u8; 4]) {
    if let Some(at) = timestamps(frame) {
        frame[at + 6..at + 10].copy_from_slice(&stamp);
    }
}

/// Gives a frame its sender. Its TCP checksum is partial, as on a veth.
fn come_from(frame: &mut [u8], from: SocketAddrV4) {
    frame[SOURCE..SOURCE + 4].copy_from_slice(&from.ip().octets());
    frame[SOURCE_PORT..SOURCE_PORT + 2].copy_from_slice(&from.port().to_be_bytes());
    let checksum = eth::HEADER + 10;
    frame[checksum..checksum + 2].fill(0);
    let sum = Sum::ZERO.bytes(&frame[eth::HEADER..TCP]).checksum();
    frame[checksum..checksum + 2].copy_from_slice(&sum.to_be_bytes());
    let length = (frame.len() - TCP) as u16;
    let partial = pseudo(*from.ip(), HERE, ipv4::TCP, length).folded();
    frame[TCP + tcp::CHECKSUM..TCP + tcp::CHECKSUM + 2].copy_from_slice(&partial.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_enters_and_is_heard() {
        let (mut crowd, _) = Crowd::open(PORTS + 10);
        assert_eq!(crowd.peers.len() as u32, PORTS + 10);
        let before = crowd.server.world.passed;
        for way in [Way::Known, Way::FromTheFrame] {
            crowd.receive(1000, PORTS + 10, way);
            crowd.receive(1000, 10, way);
        }
        assert!(crowd.is_whole());
        assert!(crowd.server.world.passed >= before, "acknowledgements leave");
        let heard: u32 = crowd.peers.iter().map(|peer| peer.sequence).fold(0, u32::wrapping_add);
        let first = crowd.peers.iter().map(|peer| peer.sequence).min().unwrap();
        assert!(heard.wrapping_sub(first.wrapping_mul(PORTS + 10)) > 0);
    }
}
