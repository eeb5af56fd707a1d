//! Any fragments of either IP, in any order and at any time, for a host in memory as the tests have
//! it: what is put together is exactly what fragments of that datagram said that do not overlap, it is
//! put together when it can be, and what is held is within its limits and given back in the end.
#![no_main]

mod pieces;
#[path = "../../crates/modules/tests/rig/mod.rs"]
mod rig;

use libfuzzer_sys::fuzz_target;
use pieces::{Heard, Name, Piece, Sum};
use rig::{Host, Options, ip, ip6, mac};
use silk_modules::arp::Arp;
use silk_modules::ip::ReassemblyLimits;
use silk_modules::nd::Nd;
use silk_path::{Checksum, DropReason, Message, Meta, Outcome, PathId, Request, Station};
use silk_wire::extension::{self, Fragment};
use silk_wire::{MacAddr, eth, ipv4, ipv6};
use std::collections::BTreeMap;
use std::time::Duration;

/// What may be held.
const LIMITS: [fn() -> ReassemblyLimits; 4] = [
    ReassemblyLimits::default,
    || ReassemblyLimits { memory: 4 << 10, ..ReassemblyLimits::default() },
    || ReassemblyLimits { datagrams: 2, ..ReassemblyLimits::default() },
    || ReassemblyLimits { datagrams: 3, memory: 32 << 10, timeout: Duration::from_millis(700) },
];
/// How long IPv6 waits (RFC 8200 §4.5).
const SIX: Duration = Duration::from_secs(60);
/// What may wait for a neighbour beside fragments.
const WAITING: u64 = 16 << 10;

struct World {
    host: Host,
    limits: ReassemblyLimits,
    /// The paths of IPv4 and IPv6, and what each holds without any fragment.
    paths: [(PathId, u64); 2],
    heard: BTreeMap<Name, Heard>,
    /// Something may have been given up to make room.
    crowded: bool,
}

/// The host that all know, which has room as the first byte says.
fn host(limits: u8) -> Host {
    let setup: [fn(&mut silk_modules::Setup); 4] = [
        |setup| setup.reassembly = LIMITS[0](),
        |setup| setup.reassembly = LIMITS[1](),
        |setup| setup.reassembly = LIMITS[2](),
        |setup| setup.reassembly = LIMITS[3](),
    ];
    let mut host = Host::with(1, Options { setup: setup[usize::from(limits % 4)], ..Options::six() });
    let now = host.world.now;
    for n in [2, 3] {
        let arp = host.paths.module_mut::<Arp>().expect("in the graph");
        arp.learn(now, (0, ip(n)), Some(MacAddr(mac(n))), &mut host.world);
        let nd = host.paths.module_mut::<Nd>().expect("in the graph");
        nd.learn(now, (0, ip6(n)), Some(MacAddr(mac(n))), &mut host.world);
    }
    host.advance(Duration::from_secs(2));
    host
}

impl World {
    fn new(limits: u8) -> Self {
        let host = host(limits);
        let paths = ["ip", "ip6"].map(|top| {
            let top = host.module(top);
            let path = host.paths.iter().find(|path| path.state.top == top).expect("made with the host");
            (path.id(), path.state.account.memory())
        });
        let limits = LIMITS[usize::from(limits % 4)]();
        Self { host, limits, paths, heard: BTreeMap::new(), crowded: false }
    }

    /// Bytes held for fragments of one IP.
    fn held(&self, six: bool) -> u64 {
        let (path, empty) = self.paths[usize::from(six)];
        let held = self.host.paths.path(path).expect("it stays").state.account.memory();
        held.checked_sub(empty).expect("no less than at first")
    }

    fn timeout(&self, six: bool) -> Duration {
        if six { SIX } else { self.limits.timeout }
    }

    fn wait(&mut self, time: Duration) {
        self.host.advance(time);
        let (now, exactly) = (self.host.world.now, !self.crowded);
        for six in [false, true] {
            let timeout = self.timeout(six);
            let of_it = self.heard.iter_mut().filter(|(name, _)| name.0 == six);
            of_it.for_each(|(_, heard)| heard.expire(now, timeout, exactly));
        }
        self.heard.retain(|_, heard| !heard.is_empty());
        self.check();
    }

    /// Whether there is room for one more, whatever becomes of it.
    fn look_for_room(&mut self, name: &Name, piece: &Piece) {
        let of_it = || self.heard.iter().filter(|(other, _)| other.0 == name.0);
        let cost: usize = of_it().map(|(_, heard)| heard.cost()).sum();
        let datagrams = of_it().count() + usize::from(!self.heard.contains_key(name));
        self.crowded |= cost + piece.bytes.len() + 144 > self.limits.memory;
        self.crowded |= datagrams > self.limits.datagrams;
    }

    /// A fragment arrives.
    fn fragment(&mut self, name: Name, piece: Piece, frame: &[u8]) {
        self.look_for_room(&name, &piece);
        let (outcome, whole) = self.arrive(frame);
        let wanted = [DropReason::IpFragmentOverlap, DropReason::IpFragmentEcn];
        let taken = match outcome {
            Outcome::Done => true,
            Outcome::Dropped(DropReason::IpFragmentLimit) => {
                assert!(self.crowded, "there is room");
                false
            }
            Outcome::Dropped(reason) => wanted.contains(&reason),
            Outcome::Handoff => panic!("nobody asks for a path"),
        };
        if taken {
            let whole = whole.as_ref().map(|frame| read(name, frame));
            self.compare(name, piece, outcome, whole);
        }
        if let Some(frame) = whole {
            // Whatever it carries.
            self.host.arrive(&frame);
        }
        self.host.sent();
        self.host.world.delivered.clear();
        self.check();
    }

    fn compare(&mut self, name: Name, piece: Piece, outcome: Outcome, whole: Option<Sum>) {
        let now = self.host.world.now;
        let heard = self.heard.entry(name).or_default();
        let sum = heard.add(now, piece);
        match (&outcome, &whole) {
            (Outcome::Done, None) => assert!(self.crowded || sum == Sum::Part, "{outcome:?}, not {sum:?}"),
            (Outcome::Done, Some(whole)) => {
                assert!(
                    if self.crowded { heard.ends_with(whole) } else { sum == *whole },
                    "not what was sent"
                );
                self.heard.remove(&name);
            }
            (Outcome::Dropped(DropReason::IpFragmentEcn), None) => {
                assert!(if self.crowded { heard.ends_with(&Sum::Marked) } else { sum == Sum::Marked });
                self.heard.remove(&name);
            }
            (_, None) => {
                assert!(self.crowded || sum == Sum::Spoiled, "{outcome:?}, not {sum:?}");
                heard.spoil();
            }
            (_, Some(_)) => panic!("refused and put together"),
        }
    }

    /// A frame arrives; what was put together of it is answered and not yet looked at.
    fn arrive(&mut self, frame: &[u8]) -> (Outcome, Option<Vec<u8>>) {
        let host = &mut self.host;
        let belongs = host.tables.classify(frame);
        let path = host.paths.target(frame, belongs).expect("fragments have a path");
        let mut buffer = vec![0; rig::HEADROOM];
        buffer.extend_from_slice(frame);
        let (now, end) = (host.world.now, buffer.len());
        let meta =
            Meta { checksum: Checksum::Unknown, arrival: now, link: Station::over(0), ..Meta::default() };
        let mut msg = Message::new(&mut buffer, rig::HEADROOM, end, meta);
        let outcome = host.paths.up(path, now, &mut host.world, &mut msg);
        let mut whole = None;
        for request in std::mem::take(&mut host.world.requests) {
            match request {
                Request::Arrived { frame, .. } => assert_eq!(whole.replace(frame), None, "one of one"),
                other => host.world.requests.push_back(other),
            }
        }
        host.settle();
        (outcome, whole)
    }

    fn check(&self) {
        for six in [false, true] {
            let held = self.held(six);
            assert!(held <= self.limits.memory as u64 + WAITING, "{held} bytes");
            let of_it = self.heard.iter().filter(|(name, _)| name.0 == six);
            let kept: usize = of_it.map(|(_, heard)| heard.kept()).sum();
            assert!(self.crowded || held >= kept as u64, "{held} bytes are paid for of {kept}");
        }
    }

    /// The paths go, with whatever they hold.
    fn destroy(mut self) {
        for (path, _) in self.paths {
            self.host.destroy(path);
        }
        let left: u64 = self.host.paths.iter().map(|path| path.state.account.memory()).sum();
        assert_eq!(self.host.paths.classes.of(0).memory(), left, "all is given back");
    }

    /// Nothing more comes.
    fn end(mut self) {
        self.wait(SIX);
        assert!(self.heard.is_empty());
        // Who is told that it was given up may have to be found first.
        for _ in 0..6 {
            self.host.advance(Duration::from_secs(20));
            self.host.sent();
        }
        assert_eq!([self.held(false), self.held(true)], [0, 0], "all is given back");
    }
}

/// The datagram in a frame that was put together, which must be that of this name.
fn read(name: Name, frame: &[u8]) -> Sum {
    let (_, packet) = eth::parse(frame).expect("a frame");
    if name.0 {
        let packet = ipv6::parse(packet).expect("a whole packet");
        assert!(packet.fragment.is_none());
        assert_eq!((packet.header.source(), packet.header.destination()), (ip6(name.1), ip6(1)));
        // Extension headers behind the fragment's are part of what was cut up.
        let bytes = &frame[eth::HEADER + ipv6::HEADER..];
        return Sum::Whole(packet.header.next_header, bytes.to_vec());
    }
    let packet = ipv4::parse(packet).expect("a whole packet");
    assert!(!packet.header.is_fragment());
    assert_eq!((packet.header.source(), packet.header.destination()), (ip(name.1), ip(1)));
    assert_eq!(packet.header.protocol, name.3);
    Sum::Whole(packet.header.protocol, packet.payload.to_vec())
}

/// A frame with a fragment; `extra`: with something in front of it that belongs to none.
fn frame(name: Name, piece: &Piece, extra: bool) -> Vec<u8> {
    let (six, source, id, _) = name;
    let kind = if six { eth::IPV6 } else { eth::IPV4 };
    let mut frame = vec![0; eth::HEADER];
    eth::Header::new(MacAddr(mac(1)), MacAddr(mac(source)), kind).emit(&mut frame);
    let packet = if six { packet6(source, id, piece, extra) } else { packet4(source, id, piece, extra) };
    [frame, packet].concat()
}

fn packet4(source: u8, id: u8, piece: &Piece, extra: bool) -> Vec<u8> {
    let header = ipv4::Emit {
        tos: piece.ecn,
        identification: id.into(),
        dont_fragment: false,
        protocol: piece.protocol,
        source: ip(source),
        destination: ip(1),
        payload_len: piece.bytes.len() as u16,
        offset: piece.offset as u16,
        more_fragments: piece.more,
        ..Default::default()
    };
    let mut bytes = vec![0; ipv4::HEADER + if extra { 4 } else { 0 }];
    if extra {
        header.emit_alert(&mut bytes)
    } else {
        header.emit(&mut bytes)
    }
    [bytes, piece.bytes.clone()].concat()
}

fn packet6(source: u8, id: u8, piece: &Piece, extra: bool) -> Vec<u8> {
    let options = if extra { &[extension::FRAGMENT, 0, 1, 4, 0, 0, 0, 0][..] } else { &[] };
    let mut fragment = vec![0; extension::FRAGMENT_HEADER];
    let (offset, more) = (piece.offset, piece.more);
    Fragment { identification: id.into(), offset, more }.emit(piece.protocol, &mut fragment);
    let payload = [options, &fragment, &piece.bytes].concat();
    let mut bytes = vec![0; ipv6::HEADER];
    let header = ipv6::Emit {
        traffic_class: piece.ecn,
        next_header: if extra { extension::HOP_BY_HOP } else { extension::FRAGMENT },
        source: ip6(source),
        destination: ip6(1),
        hop_limit: 64,
        payload_len: payload.len() as u16,
        ..Default::default()
    };
    header.emit(&mut bytes);
    [bytes, payload].concat()
}

fuzz_target!(|bytes: &[u8]| {
    let [limits, acts @ ..] = bytes else { return };
    let mut world = World::new(*limits);
    for act in acts.chunks_exact(5).take(400) {
        perform(&mut world, [act[0], act[1], act[2], act[3], act[4]]);
    }
    if limits & 4 == 0 { world.end() } else { world.destroy() }
});

fn perform(world: &mut World, [act, key, at, len, how]: [u8; 5]) {
    match act % 8 {
        0 => return world.wait(Duration::from_millis(u64::from(at) << (len % 10))),
        1 if how == 255 => {
            let (path, _) = world.paths[usize::from(key & 1)];
            let account = &mut world.host.paths.path_mut(path).expect("it stays").state.account;
            account.set_memory_limit(account.memory() + u64::from(at) * 64);
            // What it may have can be less than reassembly keeps.
            world.crowded = true;
            return;
        }
        _ => {}
    }
    let six = key & 1 != 0;
    let protocol = if six { [17, 58, 60, 6] } else { [17, 1, 253, 6] }[usize::from(key >> 4 & 3)];
    let name = (six, 2 + (key >> 1 & 1), key >> 2 & 3, if six { 0 } else { protocol });
    let unit = 8usize << [0, 0, 3, 6][usize::from(act >> 3 & 3)];
    let (offset, more) = ((usize::from(at) * unit).min(65_528), how & 1 == 0);
    let length = usize::from(len % 64) * unit + if more { 0 } else { usize::from(how >> 5) };
    let headers = ipv6::HEADER + 16;
    if length + headers > 65_535 || (offset == 0 && !more) {
        return;
    }
    let octet =
        |at: usize| (at * 7 + at / 256 + usize::from(key) * 31 + usize::from(how >> 1 & 1) * 101) as u8;
    let bytes: Vec<u8> = (offset..offset + length).map(octet).collect();
    let piece = Piece { offset, more, protocol, ecn: how >> 2 & 3, bytes };
    let frame = frame(name, &piece, how >> 4 & 1 != 0);
    world.fragment(name, piece, &frame);
}
