//! MFLOW between two hosts in memory: a source that is a plain socket, and a path of MFLOW.

mod rig;

use core::time::Duration;
use proptest::prelude::*;
use rig::{Host, Options, exchange, graph, graph6, ip, ip6};
use silk_instant::Instant;
use silk_modules::mflow::{Figures, MflowStage};
use silk_path::classify::{Between, Filter, Found, Framed, Protocol};
use silk_path::transform::Measure;
use silk_path::{
    Attr, Attrs, Checksum, Coded, DropReason, Endpoint, Event, Framing, GraphSpec, NOWHERE, Outcome, PathId,
    Ticket, Value,
};
use silk_wire::mflow::{ADVERTISEMENT, Advertisement, Data, HEADER, Packet, parse};

const SOURCE: u16 = 6000;
const PLAYER: u16 = 5544;

struct Pair {
    source: Host,
    player: Host,
    socket: PathId,
    path: PathId,
}

fn with_mflow(graph: GraphSpec) -> GraphSpec {
    let bounds = [("least", Value::Number(4)), ("most", Value::Number(64))];
    graph.module("mflow", "mflow", &bounds).link("mflow.down", "udp.up")
}

fn at(host: u8, port: u16) -> Endpoint {
    Endpoint::v4(ip(host), port)
}

impl Pair {
    fn new(queue: u16) -> Self {
        Self::between(at(1, SOURCE), at(2, PLAYER), queue)
    }

    fn between(from: Endpoint, to: Endpoint, queue: u16) -> Self {
        let six = from.is_v6();
        let graph = || with_mflow(if six { graph6() } else { graph() });
        let options = || Options {
            graph: graph(),
            six,
            rules: vec![Box::new(Measure::default())],
            ..Options::default()
        };
        let (mut source, mut player) = (Host::with(1, options()), Host::with(2, options()));
        let ends = |ours, theirs| Attrs::new().with(Attr::Local(ours)).with(Attr::Remote(theirs));
        let socket = source.create("socket", ends(from, to));
        let path = player.create("mflow", ends(to, from).with(Attr::InputQueue(queue)));
        exchange(&mut source, &mut player);
        Self { source, player, socket, path }
    }

    fn send(&mut self, data: Data, payload: &[u8]) {
        let mut bytes = vec![0; HEADER];
        data.emit(&mut bytes);
        bytes.extend(payload);
        assert_eq!(self.source.send(self.socket, NOWHERE, &bytes), Outcome::Done);
        exchange(&mut self.source, &mut self.player);
    }

    fn number(&mut self, sequence: u32) {
        self.send(
            Data { sequence, picture: sequence / 2, kind: 2, ..Data::default() },
            &sequence.to_be_bytes(),
        );
    }

    /// What was delivered, by number.
    fn taken(&mut self) -> Vec<u32> {
        let delivered = self.player.world.delivered.drain(..);
        delivered.map(|(_, _, bytes)| u32::from_be_bytes(bytes.try_into().unwrap())).collect()
    }

    fn advertised(&mut self) -> Vec<Advertisement> {
        let delivered = self.source.world.delivered.drain(..);
        let read = |bytes: Vec<u8>| match parse(&bytes) {
            Ok(Packet::Advertisement(advertisement)) => advertisement,
            other => panic!("{other:?}"),
        };
        delivered.map(|(_, _, bytes)| read(bytes)).collect()
    }

    fn figures(&self) -> Figures {
        self.player.paths.path(self.path).unwrap().stage::<MflowStage>().unwrap().figures()
    }

    fn drops(&self, reason: DropReason) -> u32 {
        self.player.drops(self.path, reason)
    }

    fn limit(&self) -> usize {
        self.player.paths.path(self.path).unwrap().input.limit()
    }
}

/// Places beside those of what was advertised: a source that waits asks, and its questions take no data's place.
const QUESTIONS: usize = 24;

#[test]
fn packets_arrive_in_order_with_their_framing_and_the_source_is_told() {
    let mut pair = Pair::new(8);
    let first =
        Data { sequence: 7, picture: 3, kind: 1, first: true, last: true, clock: 99, ..Data::default() };
    pair.send(first, b"pict");
    assert_eq!(pair.player.world.delivered, [(pair.path, at(1, SOURCE), b"pict".to_vec())]);
    let framing = Framing { stamp: 3, kind: 1, first: true, last: true, gap: false, coded: Coded::Mpeg };
    assert_eq!(pair.player.world.framings, [framing]);
    let advertised = pair.advertised();
    assert_eq!(
        advertised
            .iter()
            .map(|a| (a.processed, a.highest, a.super_packet, a.clock, a.stop))
            .collect::<Vec<_>>(),
        [(7, 15, 4, 99, false)]
    );
}

#[test]
fn it_is_told_for_each_super_packet_and_whenever_it_asks() {
    let mut pair = Pair::new(8);
    (0..9).for_each(|sequence| pair.number(sequence));
    let told = |pair: &mut Pair| pair.advertised().iter().map(|a| a.processed).collect::<Vec<_>>();
    assert_eq!(told(&mut pair), [0, 4, 8]);
    pair.send(Data { sequence: 9, ends_super: true, ..Data::default() }, b"last");
    pair.send(Data { sequence: 9, ends_super: true, ..Data::default() }, b"");
    assert_eq!(told(&mut pair), [9, 9], "who repeats has not heard the answer");
    assert_eq!(pair.figures().old, 1);
}

#[test]
fn what_is_late_or_repeated_is_dropped_and_what_is_lost_leaves_a_gap() {
    let mut pair = Pair::new(8);
    [0, 1, 4, 3, 4, 5].into_iter().for_each(|sequence| pair.number(sequence));
    assert_eq!(pair.taken(), [0, 1, 4, 5]);
    let gaps: Vec<bool> = pair.player.world.framings.iter().map(|framing| framing.gap).collect();
    assert_eq!(gaps, [false, false, true, false]);
    let figures = pair.figures();
    assert_eq!((figures.received, figures.lost, figures.old), (4, 2, 2));
    assert_eq!(pair.drops(DropReason::MflowOld), 2);
}

/// The source's question has the number of what it sent last, and no data.
#[test]
fn a_question_in_the_place_of_what_was_lost_is_no_data_and_leaves_a_gap() {
    let mut pair = Pair::new(8);
    [0, 1].into_iter().for_each(|sequence| pair.number(sequence));
    pair.send(Data { sequence: 2, ends_super: true, ..Data::default() }, b"");
    assert_eq!(pair.advertised().last().map(|a| a.processed), Some(2));
    pair.number(3);
    let gaps: Vec<bool> = pair.player.world.framings.iter().map(|framing| framing.gap).collect();
    assert_eq!((pair.taken(), gaps), (vec![0, 1, 3], vec![false, false, true]));
    let figures = pair.figures();
    assert_eq!((figures.received, figures.lost), (4, 1));
}

#[test]
fn a_source_that_does_not_obey_is_not_heard_and_one_that_begins_anew_is() {
    let mut pair = Pair::new(8);
    [0, 9, 1, 1000, 1001, 1002].into_iter().for_each(|sequence| pair.number(sequence));
    assert_eq!(pair.taken(), [0, 1, 1001, 1002]);
    let figures = pair.figures();
    assert_eq!((figures.beyond, figures.begun_anew), (2, 1));
    assert_eq!(pair.advertised().last().map(|a| (a.processed, a.highest)), Some((1001, 1009)));
}

#[test]
fn the_queue_follows_the_round_trip_and_the_time_a_packet_takes() {
    let mut pair = Pair::new(8);
    assert_eq!(pair.limit(), 8);
    pair.number(0);
    let process = pair.player.paths.path(pair.path).unwrap().state.measure.unwrap().ns();
    assert!(process > 0);
    let told = |sequence, round_trip| Data { sequence, round_trip, ends_super: true, ..Data::default() };
    pair.send(told(1, (process * 20 / 1000) as u32), b"....");
    let advertised = *pair.advertised().last().unwrap();
    assert!((15..=22).contains(&advertised.super_packet), "{advertised:?}");
    assert_eq!(pair.limit(), 2 * usize::from(advertised.super_packet) + QUESTIONS);
    assert_eq!(advertised.highest as usize, 1 + pair.limit() - QUESTIONS);
    pair.send(told(2, u32::MAX), b"....");
    assert_eq!((pair.limit(), pair.figures().super_packet), (64 + QUESTIONS, 32), "a bound holds");
    pair.send(told(3, 1), b"....");
    assert_eq!(pair.figures().super_packet, 2);
    assert_eq!(pair.limit(), 63 + QUESTIONS, "what was advertised has its place");
}

#[test]
fn a_lost_advertisement_is_repeated_for_a_while() {
    let mut pair = Pair::new(8);
    pair.number(0);
    pair.advertised();
    for _ in 0..100 {
        pair.player.advance(Duration::from_millis(500));
        exchange(&mut pair.source, &mut pair.player);
    }
    let advertised = pair.advertised();
    assert_eq!(advertised.len(), 8);
    assert!(advertised.iter().all(|a| (a.processed, a.highest) == (0, 8)));
    assert!(advertised.last().unwrap().held >= 1_000_000, "it says how long the packet is gone");
    assert_eq!(pair.player.next_timer(), None);
}

/// A path that is held back, since its player shows a picture in ten seconds, does not look at what waits for it.
#[test]
fn as_long_as_the_source_asks_it_is_told_that_the_player_is_there() {
    let mut pair = Pair::new(8);
    pair.number(0);
    pair.advertised();
    let ticket = Ticket {
        frame: 0,
        offset: 0,
        len: 0,
        device: 0,
        checksum: Checksum::Unknown,
        arrival: Instant::ZERO,
    };
    assert_eq!(pair.player.paths.enqueue(pair.path, ticket), Ok(true));
    for _ in 0..100 {
        pair.player.advance(Duration::from_millis(500));
        exchange(&mut pair.source, &mut pair.player);
    }
    let advertised = pair.advertised().len();
    assert!((45..60).contains(&advertised), "each second: {advertised}");
}

#[test]
fn the_end_of_the_stream_is_told_once_and_the_end_of_the_path_to_the_source() {
    let mut pair = Pair::new(8);
    pair.number(0);
    let end = Data { sequence: 1, ends_stream: true, ..Data::default() };
    pair.send(end, b"");
    pair.send(end, b"");
    assert_eq!(pair.player.world.events, [(pair.path, Event::PeerFinished)]);
    assert_eq!(pair.advertised().last().map(|a| a.processed), Some(1));
    let mut pair = Pair::new(8);
    pair.number(0);
    pair.advertised();
    pair.player.destroy(pair.path);
    exchange(&mut pair.source, &mut pair.player);
    assert_eq!(pair.advertised().iter().map(|a| a.stop).collect::<Vec<_>>(), [true]);
}

#[test]
fn what_is_discarded_early_is_no_gap_and_the_window_goes_on() {
    for (from, to) in
        [(at(1, SOURCE), at(2, PLAYER)), (Endpoint::v6(ip6(1), SOURCE), Endpoint::v6(ip6(2), PLAYER))]
    {
        let mut pair = Pair::between(from, to, 16);
        let found = Found { domain: 0, index: pair.path.index };
        let filter = Filter { every: 3, skips: 1, ..Filter::none(Framed::Mflow) };
        pair.player.tables.discard(found, &filter).unwrap();
        // Two packets a picture, the last of each eight asks.
        for sequence in 0..48 {
            let data =
                Data { sequence, picture: sequence / 2, ends_super: sequence % 8 == 7, ..Data::default() };
            pair.send(data, &sequence.to_be_bytes());
        }
        let wanted: Vec<u32> = (0..48).filter(|sequence| sequence / 2 % 3 == 0).collect();
        assert_eq!(pair.taken(), wanted);
        assert!(pair.player.world.framings.iter().all(|framing| !framing.gap));
        let figures = pair.figures();
        assert_eq!((figures.lost, figures.unwanted, figures.received), (0, 4, 20));
        assert_eq!(figures.discarded, pair.player.tables.discarded(found), "{figures:?}");
        assert_eq!(pair.advertised().last().map(|a| a.processed), Some(47));
        pair.player.destroy(pair.path);
        assert_eq!(pair.player.tables.filter(found), None, "the next path of this index has none");
    }
}

#[test]
fn a_packet_that_is_lost_among_the_discarded_leaves_a_gap() {
    let mut pair = Pair::new(16);
    let found = Found { domain: 0, index: pair.path.index };
    let filter = Filter { types: 1 << 3, ..Filter::none(Framed::Mflow) };
    pair.player.tables.discard(found, &filter).unwrap();
    for (sequence, kind) in [(0, 2), (1, 3), (3, 3), (4, 2), (5, 3), (6, 2)] {
        pair.send(Data { sequence, kind, ..Data::default() }, &sequence.to_be_bytes());
    }
    assert_eq!(pair.taken(), [0, 4, 6]);
    let gaps: Vec<bool> = pair.player.world.framings.iter().map(|framing| framing.gap).collect();
    assert_eq!((gaps, pair.figures().lost), (vec![false, true, false], 1));
}

#[test]
fn a_path_without_a_peer_belongs_to_the_first_that_sends() {
    let options = || Options { graph: with_mflow(graph()), ..Options::default() };
    let (mut source, mut player) = (Host::with(1, options()), Host::with(2, options()));
    let path = player.create("mflow", Attrs::new());
    let [first, second] =
        [SOURCE, SOURCE + 1].map(|port| source.create("socket", Attrs::new().with(Attr::Local(at(1, port)))));
    let mut bytes = [0; HEADER + 1];
    for (sequence, socket) in [(0, first), (1, second), (1, first)] {
        Data { sequence, ..Data::default() }.emit(&mut bytes);
        source.send(socket, at(2, PLAYER), &bytes);
        exchange(&mut source, &mut player);
    }
    let remotes: Vec<Endpoint> = player.world.delivered.iter().map(|(_, remote, _)| *remote).collect();
    assert_eq!(remotes, [at(1, SOURCE), at(1, SOURCE)]);
    assert_eq!(player.drops(path, DropReason::NotForPath), 1);
    let flow = Between { protocol: Protocol::Udp, local: at(2, PLAYER), remote: at(1, SOURCE) };
    let found = Found { domain: 0, index: path.index };
    assert_eq!(player.tables.flows.lookup(&flow), Some(found));
    player.tables.discard(found, &Filter { types: 1, ..Filter::none(Framed::Mflow) }).unwrap();
    Data { sequence: 2, ..Data::default() }.emit(&mut bytes);
    source.send(first, at(2, PLAYER), &bytes);
    exchange(&mut source, &mut player);
    assert_eq!(player.tables.discarded(found), 1);
    player.advance(Duration::from_secs(5));
    source.send(second, at(2, PLAYER), &bytes);
    exchange(&mut source, &mut player);
    let next = Between { remote: at(1, SOURCE + 1), ..flow };
    let known = [flow, next].map(|flow| player.tables.flows.lookup(&flow));
    assert_eq!(known, [None, Some(found)], "who is silent for long may be replaced");
    let flow = next;
    player.destroy(path);
    assert_eq!((player.tables.flows.lookup(&flow), player.tables.filter(found)), (None, None));
}

#[test]
fn nonsense_is_dropped_with_its_reason() {
    let mut pair = Pair::new(8);
    let mut advertisement = [0; ADVERTISEMENT];
    Advertisement::default().emit(&mut advertisement);
    let unknown = [0x10, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for bytes in [&b""[..], &[0x10; 19], &[0x22; 40], &unknown, &advertisement] {
        pair.source.send(pair.socket, NOWHERE, bytes);
        exchange(&mut pair.source, &mut pair.player);
    }
    let reasons = [
        DropReason::MflowTruncated,
        DropReason::MflowVersion,
        DropReason::MflowMalformed,
        DropReason::Unexpected,
    ];
    assert_eq!(reasons.map(|reason| pair.drops(reason)), [2, 1, 1, 1]);
    assert_eq!(
        (pair.taken(), pair.advertised(), pair.figures()),
        (vec![], vec![], Figures { super_packet: 4, ..Figures::default() })
    );
}

/// A packet near the numbers in use, with anything else in it.
fn anything() -> impl Strategy<Value = (Data, usize)> {
    let near = prop_oneof![8 => 0..30u32, 1 => any::<u32>()];
    let round_trip = prop_oneof![Just(0), 1..100_000u32, any::<u32>()];
    (near, any::<[bool; 4]>(), 0..5u8, any::<[u32; 2]>(), round_trip, 0..40usize).prop_map(
        |(sequence, [first, last, ends_super, ends_stream], kind, [picture, clock], round_trip, length)| {
            let ends_stream = ends_stream && sequence % 8 == 0;
            let data = Data {
                first,
                last,
                ends_super,
                ends_stream,
                kind,
                sequence,
                picture,
                clock,
                round_trip,
                ..Data::default()
            };
            (data, length)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever a source sends: the queue keeps its bounds, each advertisement has its room, and
    /// there are no more advertisements than packets.
    #[test]
    fn a_hostile_source_changes_no_bound(packets in proptest::collection::vec(anything(), 1..80)) {
        let mut pair = Pair::new(8);
        let sent = packets.len();
        for (data, length) in packets {
            pair.send(data, &vec![0; length]);
            prop_assert!((4..=64 + QUESTIONS).contains(&pair.limit()));
        }
        let figures = pair.figures();
        let advertised = pair.advertised();
        prop_assert!(advertised.len() <= sent);
        prop_assert!(advertised.iter().all(|a| a.highest.wrapping_sub(a.processed) <= 64));
        prop_assert_eq!(figures.received + figures.old + figures.beyond, sent as u64);
    }
}
