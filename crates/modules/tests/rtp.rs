//! Video by RTP from one host to another, in memory: what goes up, and what a bad network or a bad
//! sender cannot do.

mod rig;

use core::time::Duration;
use proptest::prelude::*;
use rig::{Host, Options, exchange, graph, ip};
use silk_modules::rtp::{Counts, RtpStage};
use silk_path::classify::{Between, Filter, Found, Framed, Protocol};
use silk_path::{
    Attr, Attrs, Checksum, Coded, DropReason, Endpoint, Event, Framing, Outcome, PathId, Ticket, Value,
};
use silk_wire::{rtp, rtp_mpv};

fn at(n: u8, port: u16) -> Endpoint {
    Endpoint::v4(ip(n), port)
}

/// Two hosts: one that sends from port 6000, one with an RTP path at port 5004.
struct Pair {
    sender: Host,
    player: Host,
    socket: PathId,
    path: PathId,
}

impl Pair {
    fn new(payload: &str) -> Self {
        let graph = graph()
            .module("rtp", "rtp", &[("payload", Value::Text(payload.into()))])
            .link("rtp.down", "udp.up");
        let mut sender = Host::new(1);
        let mut player = Host::with(2, Options { graph, ..Options::default() });
        let socket = sender.create("socket", Attrs::new().with(Attr::Local(at(1, 6000))));
        let path = player.create("rtp", Attrs::new());
        Self { sender, player, socket, path }
    }

    fn send(&mut self, packet: &[u8]) {
        assert_eq!(self.sender.send(self.socket, at(2, 5004), packet), Outcome::Done);
        exchange(&mut self.sender, &mut self.player);
    }

    /// The payloads that went up.
    fn went_up(&self) -> Vec<&[u8]> {
        self.player.world.delivered.iter().map(|(_, _, bytes)| &bytes[..]).collect()
    }

    fn framings(&self) -> &[Framing] {
        &self.player.world.framings
    }

    fn counts(&self) -> Counts {
        self.player.paths.path(self.path).unwrap().stage::<RtpStage>().unwrap().counts()
    }

    fn state(&self) -> &'static str {
        self.player.paths.path(self.path).unwrap().shown_state()
    }

    fn drops(&self, reason: DropReason) -> u32 {
        self.player.drops(self.path, reason)
    }
}

fn header(sequence: u16, timestamp: u32, marker: bool) -> rtp::Header {
    rtp::Header::new(rtp::MPV, marker, sequence, timestamp, 0x5172)
}

/// A packet of MPEG video: RTP, RFC 2250's header, the data.
fn mpv(header: rtp::Header, kind: u8, begins_slice: bool, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; rtp::HEADER + rtp_mpv::HEADER];
    header.emit(&mut bytes);
    let told = rtp_mpv::Header { kind, begins_slice, ..rtp_mpv::Header::default() };
    told.emit(&mut bytes[rtp::HEADER..]);
    bytes.extend_from_slice(data);
    bytes
}

const PICTURE: &[u8] = &[0, 0, 1, 0, 0, 0x0f];
const SLICE: &[u8] = &[0, 0, 1, 2, 9, 9];

#[test]
fn packets_go_up_without_their_headers_and_say_which_picture_they_are_of() {
    let mut pair = Pair::new("mpv");
    assert_eq!(pair.state(), "WAITING");
    pair.send(&mpv(header(65535, 1000, false), 1, true, PICTURE));
    assert_eq!(pair.state(), "PROBATION");
    pair.send(&mpv(header(0, 1000, true), 1, true, SLICE));
    pair.send(&mpv(header(1, 4600, true), 3, true, PICTURE));
    assert_eq!(pair.went_up(), [PICTURE, SLICE, PICTURE]);
    let expected = [
        Framing { stamp: 1000, kind: 1, first: true, last: false, gap: false, coded: Coded::Mpeg },
        Framing { stamp: 1000, kind: 1, first: false, last: true, gap: false, coded: Coded::Mpeg },
        Framing { stamp: 4600, kind: 3, first: true, last: true, gap: false, coded: Coded::Mpeg },
    ];
    assert_eq!((pair.framings(), pair.state()), (&expected[..], "RECEIVING"));
}

#[test]
fn a_source_that_has_proved_itself_is_known_to_the_classifier_until_the_stream_is_over() {
    let mut pair = Pair::new("mpv");
    let flow = |port| Between { protocol: Protocol::Udp, local: at(2, 5004), remote: at(1, port) };
    let found = Found { domain: 0, index: pair.path.index };
    let known = |pair: &Pair| [6000, 6001].map(|port| pair.player.tables.flows.lookup(&flow(port)));
    pair.send(&mpv(header(1, 1000, false), 1, true, PICTURE));
    assert_eq!(known(&pair), [None, None], "it may be a stray packet");
    pair.send(&mpv(header(2, 1000, true), 1, true, SLICE));
    assert_eq!(known(&pair), [Some(found), None]);
    // What is not wanted is dropped where it is classified now.
    let no_b = Filter { types: 1 << 3, ..Filter::none(Framed::RtpVideo) };
    pair.player.tables.discard(found, &no_b).unwrap();
    pair.send(&mpv(header(3, 4600, true), 3, true, PICTURE));
    pair.send(&mpv(header(4, 8200, true), 2, true, PICTURE));
    assert_eq!((pair.went_up().len(), pair.counts().discarded, pair.counts().lost()), (3, 1, 0));
    // A second sender changes nothing while the first one is heard.
    let other = pair.sender.create("socket", Attrs::new().with(Attr::Local(at(1, 6001))));
    let stranger = |pair: &mut Pair, sequence| {
        let packet = mpv(header(sequence, 0, false), 1, true, PICTURE);
        assert_eq!(pair.sender.send(other, at(2, 5004), &packet), Outcome::Done);
        exchange(&mut pair.sender, &mut pair.player);
    };
    stranger(&mut pair, 1);
    stranger(&mut pair, 2);
    assert_eq!((known(&pair), pair.counts().others), ([Some(found), None], 2));
    pair.player.advance(Duration::from_secs(6));
    assert_eq!(known(&pair), [None, None], "it was silent for long");
    stranger(&mut pair, 3);
    stranger(&mut pair, 4);
    assert_eq!(known(&pair), [None, Some(found)]);
    pair.player.destroy(pair.path);
    assert_eq!(known(&pair), [None, None]);
}

#[test]
fn a_path_with_a_known_peer_has_its_flow_from_udp_alone() {
    let mut pair = Pair::new("mpv");
    pair.player.destroy(pair.path);
    pair.path = pair
        .player
        .create("rtp", Attrs::new().with(Attr::Local(at(2, 5004))).with(Attr::Remote(at(1, 6000))));
    pair.send(&mpv(header(1, 1000, false), 1, true, PICTURE));
    pair.send(&mpv(header(2, 1000, true), 1, true, SLICE));
    assert_eq!(pair.went_up().len(), 2);
    pair.player.advance(Duration::from_secs(6));
    let flow = Between { protocol: Protocol::Udp, local: at(2, 5004), remote: at(1, 6000) };
    assert!(pair.player.tables.flows.lookup(&flow).is_some(), "it is not the stage's to remove");
}

#[test]
fn all_that_stands_around_the_payload_is_taken_off() {
    let mut pair = Pair::new("auto");
    let mut packet = mpv(header(1, 1000, true), 1, true, SLICE);
    // Two contributing sources, an extension of one word, three bytes of padding.
    packet[0] |= 0x32;
    packet.splice(12..12, [0xaa; 8].into_iter().chain([0xbe, 0xde, 0, 1, 1, 2, 3, 4]));
    packet.extend([0, 0, 3]);
    pair.send(&packet);
    assert_eq!(pair.went_up(), [SLICE]);
}

#[test]
fn lost_late_and_repeated_packets_are_told_and_never_waited_for() {
    let mut pair = Pair::new("mpv");
    for sequence in [1, 2, 2, 4, 3, 5] {
        pair.send(&mpv(header(sequence, 1000, false), 2, true, &[0, 0, 1, sequence as u8]));
    }
    let went_up: Vec<u8> = pair.went_up().iter().map(|bytes| bytes[3]).collect();
    let gaps: Vec<bool> = pair.framings().iter().map(|framing| framing.gap).collect();
    assert_eq!((went_up, gaps), (vec![1, 2, 4, 5], vec![true, false, true, false]));
    assert_eq!((pair.drops(DropReason::RtpDuplicate), pair.drops(DropReason::RtpOld)), (1, 1));
    let counts = pair.counts();
    assert_eq!((counts.received, counts.expected, counts.late, counts.repeated), (6, 5, 1, 1));
}

#[test]
fn a_second_sender_disturbs_nothing() {
    let mut pair = Pair::new("mpv");
    pair.send(&mpv(header(1, 1000, false), 1, true, PICTURE));
    pair.send(&mpv(header(2, 1000, false), 1, true, SLICE));
    // Another SSRC from the same place, and the same SSRC from another place.
    let other = rtp::Header::new(rtp::MPV, false, 3, 9999, 0xbad);
    pair.send(&mpv(other, 1, true, PICTURE));
    let elsewhere = pair.sender.create("socket", Attrs::new().with(Attr::Local(at(1, 6001))));
    pair.sender.send(elsewhere, at(2, 5004), &mpv(header(3, 1000, false), 1, true, SLICE));
    exchange(&mut pair.sender, &mut pair.player);
    assert_eq!((pair.went_up().len(), pair.drops(DropReason::RtpSource), pair.counts().others), (2, 2, 2));
    pair.send(&mpv(header(3, 1000, true), 1, true, SLICE));
    assert_eq!(pair.framings().last().map(|framing| framing.gap), Some(false));
    // When the first is silent for long, the next may begin.
    pair.player.advance(Duration::from_secs(4));
    assert_eq!((pair.state(), pair.player.world.events.len()), ("RECEIVING", 0));
    pair.player.advance(Duration::from_secs(1));
    assert_eq!(
        (pair.state(), &pair.player.world.events[..]),
        ("WAITING", &[(pair.path, Event::PeerFinished)][..])
    );
    pair.send(&mpv(other, 1, true, PICTURE));
    let expected = Framing { stamp: 9999, kind: 1, first: true, last: false, gap: true, coded: Coded::Mpeg };
    assert_eq!((pair.framings().last(), pair.counts().restarts), (Some(&expected), 1));
}

#[test]
fn a_stray_packet_is_no_stream_that_could_end() {
    let mut pair = Pair::new("mpv");
    pair.send(&mpv(header(1, 1000, false), 1, true, PICTURE));
    pair.player.advance(Duration::from_secs(3));
    pair.send(&mpv(header(9, 1000, false), 1, true, PICTURE));
    pair.player.advance(Duration::from_secs(4));
    assert_eq!(pair.state(), "PROBATION");
    pair.player.advance(Duration::from_secs(4));
    assert_eq!((pair.state(), &pair.player.world.events[..]), ("WAITING", &[][..]));
}

/// Packets of a sender that has proved itself.
fn begun() -> Pair {
    let mut pair = Pair::new("mpv");
    for sequence in 1..3 {
        pair.send(&mpv(header(sequence, 1000, false), 1, true, PICTURE));
    }
    assert_eq!(pair.state(), "RECEIVING");
    pair
}

#[test]
fn a_stream_is_not_over_while_its_packets_wait_for_the_path() {
    let mut pair = begun();
    let (checksum, arrival) = (Checksum::Unknown, pair.player.world.now);
    let ticket = Ticket { frame: 0, offset: 0, len: 0, device: 0, checksum, arrival };
    pair.player.paths.enqueue(pair.path, ticket).unwrap();
    pair.player.advance(Duration::from_secs(20));
    assert_eq!((pair.state(), pair.player.world.events.len()), ("RECEIVING", 0));
    pair.player.paths.dequeue(pair.path).unwrap();
    pair.player.advance(Duration::from_secs(2));
    assert_eq!(pair.player.world.events, [(pair.path, Event::PeerFinished)]);
}

#[test]
fn a_player_that_was_stopped_looks_at_what_was_sent_before_it_takes_the_stream_for_over() {
    let mut pair = begun();
    let expire = |pair: &mut Pair| {
        let Pair { player, path, .. } = pair;
        player.world.timers.remove(path);
        player.paths.expire(*path, player.world.now, &mut player.world);
    };
    pair.player.world.now += Duration::from_secs(60);
    expire(&mut pair);
    assert_eq!((pair.state(), pair.player.world.events.len()), ("RECEIVING", 0));
    pair.send(&mpv(header(3, 1000, false), 1, true, PICTURE));
    pair.player.advance(Duration::from_millis(4900));
    assert_eq!((pair.state(), pair.player.world.events.len()), ("RECEIVING", 0));
    pair.player.advance(Duration::from_millis(200));
    assert_eq!(pair.player.world.events, [(pair.path, Event::PeerFinished)]);
}

#[test]
fn a_sender_that_does_not_cut_at_slices_plays_and_is_told() {
    let mut pair = Pair::new("mpv");
    pair.send(&mpv(header(1, 1000, false), 1, true, PICTURE));
    pair.send(&mpv(header(2, 1000, false), 1, false, b"the rest of a slice"));
    assert_eq!((pair.went_up().len(), pair.counts().uncut, pair.state()), (2, 1, "NOT CUT AT SLICES"));
}

#[test]
fn a_sender_that_fills_in_no_header_is_understood_all_the_same() {
    let mut pair = Pair::new("mpv");
    // No type, no slice bits, one timestamp for all: the marker and the start codes must do.
    pair.send(&mpv(header(1, 0, false), 0, false, &[0, 0, 1, 0, 0, 0x0f, 0xff]));
    pair.send(&mpv(header(2, 0, true), 0, false, b"the middle of a slice"));
    pair.send(&mpv(header(3, 0, false), 0, false, &[0, 0, 1, 0, 0, 0x5f, 0xff]));
    let told: Vec<_> =
        pair.framings().iter().map(|framing| (framing.kind, framing.first, framing.last)).collect();
    assert_eq!(told, [(1, true, false), (1, false, true), (3, true, false)]);
}

#[test]
fn what_the_path_was_not_made_for_is_dropped_with_its_reason() {
    let mut pair = Pair::new("mpv");
    let good = mpv(header(1, 1000, false), 1, true, PICTURE);
    let edited = |at: usize, value: u8| {
        let mut packet = good.clone();
        packet[at] = value;
        packet
    };
    for (packet, reason) in [
        (edited(0, 0x40), DropReason::RtpVersion),
        (edited(1, 200), DropReason::RtpControl),
        (edited(1, 0), DropReason::RtpType),
        (edited(14, 7), DropReason::RtpPayload),
        (good[..11].to_vec(), DropReason::RtpTruncated),
    ] {
        pair.send(&packet);
        assert_eq!((pair.drops(reason), pair.state()), (1, "WAITING"));
    }
    pair.send(&good);
    pair.send(&edited(1, 96));
    assert_eq!((pair.drops(DropReason::RtpType), pair.went_up().len()), (2, 1), "one type for a stream");
}

#[test]
fn h264_keeps_the_header_that_the_stage_above_needs() {
    let mut pair = Pair::new("auto");
    let packet = |sequence, marker, timestamp, payload: &[u8]| {
        let mut bytes = vec![0; rtp::HEADER];
        rtp::Header::new(96, marker, sequence, timestamp, 7).emit(&mut bytes);
        [&bytes, payload].concat()
    };
    let payloads: [&[u8]; 3] = [&[0x67, 1, 2], &[0x7c, 0x85, 0x88, 1], &[0x7c, 0x45, 2]];
    for (n, payload) in payloads.iter().enumerate() {
        pair.send(&packet(n as u16, n == 2, 500, payload));
    }
    assert_eq!(pair.went_up(), payloads);
    let flags: Vec<_> =
        pair.framings().iter().map(|framing| (framing.first, framing.last, framing.gap)).collect();
    assert_eq!(flags, [(true, false, false), (false, false, false), (false, true, false)]);
    assert!(pair.framings().iter().all(|framing| framing.coded == Coded::H264));
    pair.send(&packet(3, true, 4100, &[0x7c, 0x41]));
    assert!(!pair.framings()[3].gap && pair.framings()[3].first, "a new timestamp after the marker");
}

#[test]
fn a_path_of_rtp_sends_nothing() {
    let mut pair = Pair::new("mpv");
    let sent = pair.player.send(pair.path, at(1, 6000), b"out");
    assert_eq!(sent, Outcome::Dropped(DropReason::Unexpected));
}

/// A packet of a sender that is seldom right.
fn hostile() -> impl Strategy<Value = (Vec<u8>, u64)> {
    let sequence = prop_oneof![4 => 0u16..40, 1 => any::<u16>()];
    let data = proptest::collection::vec(any::<u8>(), 0..40);
    let source = prop_oneof![8 => Just(7u32), 1 => Just(8), 1 => any::<u32>()];
    let types = prop_oneof![4 => Just(rtp::MPV), 2 => Just(96u8), 1 => any::<u8>()];
    let change = proptest::option::weighted(0.3, (0usize..24, any::<u8>()));
    let packet = (sequence, any::<(bool, u8)>(), data, source, types, change, 0usize..60, 0u64..3000);
    packet.prop_map(|(sequence, (marker, stamp), data, ssrc, payload_type, change, cut, pause)| {
        let header = rtp::Header::new(payload_type, marker, sequence, u32::from(stamp) * 3600, ssrc);
        let mut bytes = mpv(header, stamp % 4, marker, &data);
        if let Some((at, value)) = change.filter(|(at, _)| *at < bytes.len()) {
            bytes[at] = value;
        }
        bytes.truncate(60 - cut);
        (bytes, pause)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn whatever_comes_goes_up_in_order_or_not_at_all(packets in proptest::collection::vec(hostile(), 1..60)) {
        let mut pair = Pair::new("auto");
        for (packet, pause) in &packets {
            pair.send(packet);
            pair.player.advance(Duration::from_millis(*pause));
        }
        let (up, counts) = (pair.went_up().len() as u64, pair.counts());
        let drops = pair.player.paths.path(pair.path).unwrap().state.drops.total();
        prop_assert_eq!(up + drops, packets.len() as u64, "each is passed on or counted");
        prop_assert_eq!(counts.passed, up);
        prop_assert!(counts.received >= up && counts.uncut <= up);
    }
}
