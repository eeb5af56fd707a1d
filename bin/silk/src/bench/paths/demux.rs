//! What it costs to find a packet's path among few and among a million (Scout §3.4): the flow table alone,
//! one flow at a time and in batches, and the whole way from a frame's first byte.

use super::case::{Case, Work, timed};
use super::host::HERE;
use super::row::Peers;
use core::net::{Ipv4Addr, SocketAddrV4};
use silk_path::classify::{Belongs, Domains, Flow, Found, Owned, Protocol, Tables};
use silk_wire::{MacAddr, eth, ipv4, tcp};
use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

/// Numbers of paths.
const COUNTS: [(u32, &str); 3] =
    [(10, "10 paths"), (10_000, "10 thousand paths"), (1_000_000, "a million paths")];
/// Packets whose paths are asked for in one go, which is timed: few enough to stay in the nearest cache, so
/// that the tables have the others to themselves.
const CHUNK: usize = 512;
/// Flows in one batch.
const BATCH: usize = 64;
/// The port that all paths have.
const PORT: u16 = 80;
/// A port that nobody has.
const OTHER: u16 = 81;
/// Where a frame has its source address, and behind the header of IP its source port.
const SOURCE: usize = eth::HEADER + 12;
const SOURCE_PORT: usize = eth::HEADER + ipv4::HEADER;
/// Bytes of a frame without text.
const FRAME: usize = eth::HEADER + ipv4::HEADER + tcp::HEADER;

/// Every case of demultiplexing.
pub fn cases() -> Vec<Case> {
    COUNTS.into_iter().flat_map(|(count, name)| among(count, name)).collect()
}

fn among(count: u32, name: &str) -> Vec<Case> {
    let tables = Rc::new(tables(count));
    let hit = if count == 1_000_000 { Peers::NONE.goal(100.0, 30.0) } else { Peers::NONE };
    let case = |what: &str, peers, port, ask| {
        let work = Question { tables: tables.clone(), packets: Packets::new(count, port), ask };
        Case::new(format!("demux {what}, {name}"), peers, work)
    };
    vec![
        case("hit", hit, PORT, single as Ask),
        case("miss", Peers::NONE, OTHER, single),
        case("hit, in batches of 64", hit, PORT, batched),
        case("miss, in batches of 64", Peers::NONE, OTHER, batched),
        case("hit, from the frame on", Peers::silk(1.8), PORT, framed),
        case("miss, from the frame on", Peers::silk(1.8), OTHER, framed),
    ]
}

/// How the path of a packet is asked for; whether there is one is known.
type Ask = fn(&Tables, &[Flow], bool);

/// Asks for the paths of packets.
struct Question {
    tables: Rc<Tables>,
    packets: Packets,
    ask: Ask,
}

impl Work for Question {
    fn run(&mut self, operations: u64) -> Duration {
        let there = self.packets.port == PORT;
        self.packets.timed(operations, |flows| (self.ask)(&self.tables, flows, there))
    }

    fn warm(&mut self) {
        black_box(self.tables.flows.count());
    }
}

/// Tables with so many paths in them.
fn tables(count: u32) -> Tables {
    let tables = Tables::with_room(count as usize, 0x5eed_5eed);
    tables.configure(Owned::default(), Domains::default(), &[], &[HERE]).expect("one address fits");
    for n in 0..count {
        let found = Found { domain: 0, index: n };
        tables.flows.insert(&flow(sender(n), PORT), found).expect("at half load there is room");
    }
    tables
}

/// Packets of all senders, in an order that no prefetcher guesses.
struct Packets {
    senders: u32,
    port: u16,
    next: u32,
    flows: Vec<Flow>,
}

impl Packets {
    fn new(senders: u32, port: u16) -> Self {
        Self { senders, port, next: 0, flows: Vec::with_capacity(CHUNK) }
    }

    /// How long `ask` takes for so many packets in all.
    fn timed(&mut self, operations: u64, ask: impl Fn(&[Flow])) -> Duration {
        let (mut left, mut whole) = (operations as usize, Duration::ZERO);
        while left > 0 {
            self.renew(left.min(CHUNK));
            whole += timed(|| ask(black_box(&self.flows)));
            left -= self.flows.len();
        }
        whole
    }

    fn renew(&mut self, count: usize) {
        self.flows.clear();
        for _ in 0..count {
            let scattered = u64::from(self.next.wrapping_mul(2_654_435_761));
            let sender = sender(((scattered * u64::from(self.senders)) >> 32) as u32);
            self.flows.push(flow(sender, self.port));
            self.next = self.next.wrapping_add(1);
        }
    }
}

/// The `n`th peer.
fn sender(n: u32) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(0x0a01_0000 + (n >> 14)), (n & 0x3fff) as u16 + 1024)
}

fn flow(remote: SocketAddrV4, port: u16) -> Flow {
    Flow { protocol: Protocol::Tcp, local: SocketAddrV4::new(HERE, port), remote }
}

/// One flow at a time.
fn single(tables: &Tables, flows: &[Flow], there: bool) {
    for flow in flows {
        let found = tables.flows.lookup(flow);
        assert_eq!(black_box(found).is_some(), there, "only paths there are can be found");
    }
}

/// Several flows at a time.
fn batched(tables: &Tables, flows: &[Flow], there: bool) {
    let mut found = [None; BATCH];
    for flows in flows.chunks(BATCH) {
        tables.flows.lookup_batch(flows, &mut found);
        let right = black_box(&found)[..flows.len()].iter().all(|found| found.is_some() == there);
        assert!(right, "only paths there are can be found");
    }
}

/// From the frame on: what is it, is it whole, is it for us; then its flow. The senders take turns in one
/// frame.
fn framed(tables: &Tables, flows: &[Flow], there: bool) {
    let Some(port) = flows.first().map(|flow| flow.local.port()) else { return };
    let mut frame = frame(port);
    for Flow { remote, .. } in flows {
        frame[SOURCE..SOURCE + 4].copy_from_slice(&remote.ip().octets());
        frame[SOURCE_PORT..SOURCE_PORT + 2].copy_from_slice(&remote.port().to_be_bytes());
        let belongs = tables.classify(black_box(&frame));
        assert_eq!(belongs != Belongs::Pass, there, "only paths there are can be found");
    }
}

/// An acknowledgement to a port of ours.
fn frame(port: u16) -> [u8; FRAME] {
    let mut frame = [0; FRAME];
    eth::Header::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), eth::IPV4).emit(&mut frame);
    let ip = ipv4::Emit {
        protocol: ipv4::TCP,
        source: sender(0).ip().to_owned(),
        destination: HERE,
        payload_len: tcp::HEADER as u16,
        ..Default::default()
    };
    ip.emit(&mut frame[eth::HEADER..]);
    let header = tcp::Emit { destination: port, flags: tcp::flag::ACK, ..Default::default() };
    header.emit(0, &mut frame[eth::HEADER + ipv4::HEADER..]);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_hit_and_misses_miss() {
        for mut case in among(100, "100 paths") {
            case.round(Duration::ZERO);
            assert!(case.row().is_some_and(|row| row.operations > 0));
        }
    }
}
