//! A peer, a program and a caller that do anything at all: nothing panics, memory stays bounded,
//! and every promise of the interface holds.

use std::time::Duration;

use proptest::prelude::*;
use silk_instant::Instant;
use silk_tcp::listen::{Admission, ListenAction, SynTable};
use silk_tcp::{
    Algorithm, Codepoint, Config, Connection, Cork, Ecn, Flags, IsnSecret, Options, RecvBuffer, Segment,
    SendBuffer, SeqNumber, State,
};

use crate::solo::{OURS, Solo, THEIRS};

/// A program that scribbles over its buffers: sizes change at random, writes are taken in part.
struct Liar(u64);

impl Liar {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match self.0 >> 61 {
            0 => 0,
            1 => usize::MAX,
            _ => (self.0 >> 40) as usize,
        }
    }
}

impl SendBuffer for Liar {
    fn len(&self) -> usize {
        Liar(self.0).next()
    }
    fn consume(&mut self, _octets: usize) {
        self.next();
    }
}

impl RecvBuffer for Liar {
    fn room(&self) -> usize {
        Liar(self.0 ^ 0xFFFF).next()
    }
    fn write(&mut self, _bytes: &[u8]) -> usize {
        self.next()
    }
    fn unread(&self) -> usize {
        Liar(self.0 ^ 0xFF).next()
    }
}

/// What may be done to a connection.
#[derive(Clone, Debug)]
enum Act {
    Segment {
        seq: u32,
        ack: u32,
        flags: u8,
        window: u16,
        urgent: u16,
        len: u16,
        stamp: Option<(u32, u32)>,
        sack: Vec<(u32, u32)>,
    },
    Write(u16),
    Urgent(u16),
    Read(u16),
    Poll(u16),
    Wait(u32),
    Close,
    Abort,
    Shutdown(bool),
    Mtu(u16),
    Tune(bool, u8),
    Pace(Option<u32>),
}

/// Numbers near those in use, for blind ones are refused at once.
fn near(base: u32) -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => (-3_000i32..30_000).prop_map(move |by| base.wrapping_add_signed(by)),
        1 => any::<u32>(),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let segment = (
        near(THEIRS),
        near(OURS),
        prop_oneof![6 => Just(0x10u8), 2 => Just(0x18), 1 => Just(0x11), 1 => Just(0x30), 2 => any::<u8>()],
        any::<u16>(),
        prop_oneof![4 => 0u16..5_000, 1 => any::<u16>()],
        0u16..3_000,
        prop::option::of((0u32..400, any::<u32>())),
        prop::collection::vec((near(OURS), near(OURS)), 0..4),
    )
        .prop_map(|(seq, ack, flags, window, urgent, len, stamp, sack)| Act::Segment {
            seq,
            ack,
            flags,
            window,
            urgent,
            len,
            stamp,
            sack,
        });
    prop_oneof![
        30 => segment,
        8 => (0u16..9_000).prop_map(Act::Write),
        2 => (0u16..9_000).prop_map(Act::Urgent),
        8 => any::<u16>().prop_map(Act::Read),
        16 => any::<u16>().prop_map(Act::Poll),
        8 => (0u32..3_000).prop_map(Act::Wait),
        1 => Just(Act::Close),
        1 => Just(Act::Abort),
        1 => any::<bool>().prop_map(Act::Shutdown),
        1 => any::<u16>().prop_map(Act::Mtu),
        2 => any::<(bool, u8)>().prop_map(|(nodelay, cork)| Act::Tune(nodelay, cork)),
        1 => any::<Option<u32>>().prop_map(Act::Pace),
    ]
}

fn perform(solo: &mut Solo, act: Act) {
    match act {
        Act::Segment { seq, ack, flags, window, urgent, len, stamp, sack } => {
            let payload = vec![7; usize::from(len)];
            let mut options = Options { timestamp: stamp, ..Options::default() };
            for (start, end) in sack {
                options.sack.push(SeqNumber::new(start), SeqNumber::new(end));
            }
            let (seq, ack, flags) = (SeqNumber::new(seq), SeqNumber::new(ack), Flags::from_bits(flags));
            let _ = solo.arrive(Segment {
                seq,
                ack,
                flags,
                window,
                urgent,
                ecn: Codepoint::from_tos(flags.bits()),
                options,
                payload: &payload,
            });
        }
        Act::Write(octets) => solo.write(usize::from(octets)),
        Act::Urgent(octets) => solo.connection.mark_urgent(usize::from(octets)),
        Act::Read(octets) => {
            let octets = usize::from(octets).min(solo.rx.held.len());
            solo.rx.held.drain(..octets);
            solo.connection.on_read(solo.now, &solo.rx);
        }
        Act::Poll(offload) => {
            solo.offload = usize::from(offload);
            check_all_sent(solo);
        }
        Act::Wait(millis) => drop(solo.after(Duration::from_millis(u64::from(millis)))),
        Act::Close => solo.connection.close(solo.now),
        Act::Abort => solo.connection.abort(),
        Act::Shutdown(true) => solo.connection.shutdown_write(),
        Act::Shutdown(false) => solo.connection.shutdown_read(),
        Act::Pace(rate) => solo.connection.set_max_pacing_rate(rate.map(u64::from)),
        Act::Mtu(mss) => solo.connection.on_packet_too_big(solo.now, mss),
        Act::Tune(nodelay, cork) => {
            solo.connection.set_nodelay(nodelay);
            solo.connection.set_cork([Cork::Out, Cork::Loose, Cork::Tight][usize::from(cork) % 3]);
        }
    }
}

/// Everything that leaves keeps the promises of [`silk_tcp::Transmit`].
fn check_all_sent(solo: &mut Solo) {
    for transmit in solo.sent() {
        let size = usize::from(transmit.gso_size);
        assert!(size == 0 || transmit.len > size);
        let urgent = transmit.header.flags.contains(Flags::URG);
        assert_eq!(urgent, transmit.header.urgent > 0);
        assert!(!urgent || size == 0, "a device would leave the pointer as it is");
        assert!(transmit.header.options.encoded_len() <= Options::MAX_BYTES);
        assert!(transmit.len <= solo.offload.max(1_012));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn anything_may_happen(
        acts in prop::collection::vec(act(), 1..120),
        (sack, timestamps, window_scaling, asks) in any::<(bool, bool, bool, bool)>(),
        congestion in prop::sample::select(vec![Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr]),
    ) {
        let ecn = if asks { Ecn::Ask } else { Ecn::Off };
        let config = Config { sack, timestamps, window_scaling, ecn, congestion, ..crate::solo::plain() };
        let mut solo = Solo::established(&config);
        for act in acts {
            perform(&mut solo, act);
            let info = solo.connection.info();
            prop_assert!(info.sacked <= info.in_flight.max(1));
            prop_assert!(solo.rx.held.len() <= 10_000);
            prop_assert!(solo.connection.memory() < 40_000, "{} bytes", solo.connection.memory());
        }
        solo.connection.abort();
        solo.sent();
        prop_assert_eq!((solo.state(), solo.connection.poll_timeout()), (State::Closed, None));
        // A model of the path lives as long as the connection, so do CUBIC's curve and what counts mishaps.
        let bare = solo.connection.memory() <= size_of::<Connection>() + 40 + 72;
        prop_assert!(bare || congestion == Algorithm::Bbr);
    }

    /// A program cannot make its own connection panic by lying about its buffers.
    #[test]
    fn a_lying_program_harms_only_itself(acts in prop::collection::vec(act(), 1..120), seed in any::<u64>()) {
        let mut solo = Solo::established(&crate::solo::with_sack());
        let (mut tx, mut rx) = (Liar(seed), Liar(!seed));
        for act in acts {
            match act {
                Act::Segment { seq, ack, flags, window, urgent, len, .. } => {
                    let payload = vec![7; usize::from(len)];
                    let (seq, ack, flags) = (SeqNumber::new(seq), SeqNumber::new(ack), Flags::from_bits(flags));
                    let options = Options::default();
                    let seg = Segment { seq, ack, flags, window, urgent, ecn: Codepoint::NotEct, options, payload: &payload };
                    let _ = solo.connection.on_segment(solo.now, &seg, &mut tx, &mut rx);
                }
                Act::Read(_) => drop(solo.connection.on_read(solo.now, &rx)),
                Act::Poll(offload) => {
                    for _ in 0..20 {
                        let _ = solo.connection.poll_transmit(solo.now, &tx, &rx, usize::from(offload));
                        tx.next();
                        rx.next();
                    }
                }
                other => perform(&mut solo, Act::Wait(if matches!(other, Act::Wait(_)) { 900 } else { 1 })),
            }
        }
        prop_assert!(solo.connection.memory() < 40_000);
    }

    /// Any segments at a listener: bounded, and what it establishes is well-formed.
    #[test]
    fn any_segments_at_a_listener(
        segments in prop::collection::vec((0u8..6, 0u32..50, any::<u32>(), any::<u8>(), any::<bool>()), 0..200),
        defer in any::<bool>(),
    ) {
        let defer_accept = defer.then_some(Duration::from_secs(3));
        let config = Config { defer_accept, ..Config::default() };
        let mut table = SynTable::new(config.clone(), IsnSecret::new([1, 2]), 4);
        let mut now = Instant::from_millis(1);
        let mut last_iss = SeqNumber::new(0);
        for (key, seq, ack, flags, answers) in segments {
            now += Duration::from_millis(u64::from(ack % 700));
            let ack = if answers { last_iss + 1 } else { SeqNumber::new(ack) };
            let flags = if answers { Flags::ACK } else { Flags::from_bits(flags) };
            let options = Options { timestamp: Some((1, 1)), ..Options::default() };
            let seg = Segment { seq: SeqNumber::new(seq), ack, flags, window: 9, urgent: 0, ecn: Codepoint::NotEct, options, payload: &[] };
            match table.on_segment(now, key, &seg, Admission::default()) {
                ListenAction::Reply(header) => last_iss = header.seq,
                ListenAction::Established(established) => {
                    let connection = Connection::from_handshake(established, &config, now);
                    prop_assert_eq!(connection.state(), State::Established);
                }
                _ => {}
            }
            while table.on_timeout(now).is_some() {}
            prop_assert!(table.len() <= 4);
            prop_assert!(table.poll_timeout().is_none_or(|at| at > now));
        }
    }
}
