//! What it costs to find a packet's path among few and among a million (Scout §3.4): the flow table alone,
//! one flow at a time and in batches, and the whole way from a frame's first byte.

use super::case::{Case, repeated};
use super::host::HERE;
use super::row::Peers;
use core::net::{Ipv4Addr, SocketAddrV4};
use silk_path::classify::{Domains, Flow, Found, Owned, Protocol, Tables, Verdict};
use silk_wire::{MacAddr, eth, ipv4, tcp};
use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

/// Numbers of paths.
const COUNTS: [(u32, &str); 3] =
    [(10, "10 paths"), (10_000, "10 thousand paths"), (1_000_000, "a million paths")];
/// Packets whose paths are asked for, before the first is asked for again.
const ASKED: usize = 1 << 20;
/// Flows in one batch.
const BATCH: usize = 64;
/// The port that all paths have.
const PORT: u16 = 80;
/// A port that nobody has.
const OTHER: u16 = 81;
/// Where a frame has its source address, and behind the header of IP its source port.
const SOURCE: usize = eth::HEADER + 12;
const SOURCE_PORT: usize = eth::HEADER + ipv4::HEADER;

/// Every case of demultiplexing.
pub fn cases() -> Vec<Case> {
    COUNTS.into_iter().flat_map(|(count, name)| among(count, name)).collect()
}

fn among(count: u32, name: &str) -> Vec<Case> {
    let known = Rc::new(Known::new(count));
    let hit = if count == 1_000_000 { Peers::NONE.goal(100.0, 30.0) } else { Peers::NONE };
    let case = |what: &str, peers, work: Box<dyn FnMut(u64) -> Duration>| {
        Case::new(format!("demux {what}, {name}"), peers, work)
    };
    vec![
        case("hit", hit, Box::new(single(known.clone(), PORT))),
        case("miss", Peers::NONE, Box::new(single(known.clone(), OTHER))),
        case("hit, in batches of 64", hit, Box::new(batched(known.clone(), PORT))),
        case("miss, in batches of 64", Peers::NONE, Box::new(batched(known.clone(), OTHER))),
        case("hit, from the frame on", Peers::silk(1.8), Box::new(framed(known.clone(), PORT))),
        case("miss, from the frame on", Peers::silk(1.8), Box::new(framed(known, OTHER))),
    ]
}

/// Tables with many paths in them, and the packets' senders in an order that no prefetcher guesses.
struct Known {
    tables: Tables,
    senders: Vec<SocketAddrV4>,
}

impl Known {
    fn new(count: u32) -> Self {
        let tables = Tables::with_room(count as usize, 0x5eed_5eed);
        tables.configure(Owned::default(), Domains::default(), &[], &[HERE]).expect("one address fits");
        for n in 0..count {
            let found = Found { domain: 0, index: n };
            tables.flows.insert(&flow(sender(n), PORT), found).expect("at half load there is room");
        }
        let shuffled = |n: u32| (u64::from(n.wrapping_mul(2_654_435_761)) * u64::from(count) >> 32) as u32;
        Self { tables, senders: (0..ASKED as u32).map(|n| sender(shuffled(n))).collect() }
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
fn single(known: Rc<Known>, port: u16) -> impl FnMut(u64) -> Duration {
    let mut next = 0;
    move |operations| {
        repeated(operations, |_| {
            let found = known.tables.flows.lookup(&flow(known.senders[next], port));
            assert_eq!(black_box(found).is_some(), port == PORT, "only paths there are can be found");
            next = (next + 1) % ASKED;
        })
    }
}

/// Batches; fewer operations than one make one.
fn batched(known: Rc<Known>, port: u16) -> impl FnMut(u64) -> Duration {
    let flows: Vec<Flow> = known.senders.iter().map(|sender| flow(*sender, port)).collect();
    let (mut found, mut next) = ([None; BATCH], 0);
    move |operations| {
        let batches = operations.div_ceil(BATCH as u64);
        let took = repeated(batches, |_| {
            known.tables.flows.lookup_batch(&flows[next..next + BATCH], &mut found);
            let right = |found: &Option<Found>| found.is_some() == (port == PORT);
            assert!(black_box(&found).iter().all(right), "only paths there are can be found");
            next = (next + BATCH) % ASKED;
        });
        took.mul_f64(operations as f64 / (batches * BATCH as u64) as f64)
    }
}

/// From the frame on: what is it, whole and for us; then its flow. The sender is written into one frame.
fn framed(known: Rc<Known>, port: u16) -> impl FnMut(u64) -> Duration {
    let (mut frame, mut next) = (frame(port), 0);
    move |operations| {
        repeated(operations, |_| {
            let sender = known.senders[next];
            frame[SOURCE..SOURCE + 4].copy_from_slice(&sender.ip().octets());
            frame[SOURCE_PORT..SOURCE_PORT + 2].copy_from_slice(&sender.port().to_be_bytes());
            let verdict = known.tables.classify(black_box(&frame));
            assert_eq!(
                black_box(verdict) != Verdict::Pass,
                port == PORT,
                "only paths there are can be found"
            );
            next = (next + 1) % ASKED;
        })
    }
}

/// An acknowledgement to a port of ours.
fn frame(port: u16) -> Vec<u8> {
    let mut frame = vec![0; eth::HEADER + ipv4::HEADER + tcp::HEADER];
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
