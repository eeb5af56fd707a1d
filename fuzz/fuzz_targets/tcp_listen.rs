//! What listens, and what comes of it, under any sequence of segments, time and program's acts: the
//! half-open, cookies, connections that were accepted, and TIME-WAIT, as one listener and the peers of
//! its port. Peers know what they were sent, so that handshakes complete, and lie about it. Each
//! table must do what its plain model in `listening` says, and everything ends once all are silent.
#![no_main]

mod listening;

use libfuzzer_sys::fuzz_target;
use listening::{Accepted, Key, Listener, Place, Waiting};
use silk_instant::Instant;
use silk_tcp::listen::{Admission, ListenAction};
use silk_tcp::time_wait::TimeWaitAction;
use silk_tcp::{
    Algorithm, Codepoint, Config, Connection, Ecn, Flags, Header, IsnSecret, KeepaliveConfig, Options,
    Segment, SeqNumber,
};
use std::collections::BTreeMap;
use std::time::Duration;

const SECRET: IsnSecret = IsnSecret::new([1, 2]);
/// Peers, of which some do not fit any table.
const PEERS: u8 = 12;
/// Connections that may wait to be accepted.
const ACCEPTED: usize = 6;
/// How far from the truth a peer's number is.
const LIES: [u32; 8] = [0, 0, 0, 0, 1, u32::MAX, 1_000, 0x4000_0000];
const TEXT: [u8; 1_500] = [0; 1_500];

struct World {
    now: Instant,
    listener: Listener,
    connections: BTreeMap<Key, Accepted>,
    waiting: Waiting,
    /// What each peer was sent.
    places: BTreeMap<Key, Place>,
    /// The program takes no more.
    full: bool,
}

impl World {
    fn new([tables, traits, handshake]: [u8; 3]) -> Self {
        let config = Config {
            timestamps: traits & 1 == 0,
            sack: traits & 2 == 0,
            window_scaling: traits & 4 == 0,
            ecn: if traits & 8 == 0 { Ecn::Ask } else { Ecn::Off },
            receive_window: if traits & 16 == 0 { 32 << 10 } else { 500 },
            receive_window_max: 64 << 10,
            congestion: [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr][usize::from(traits >> 5) % 3],
            keepalive: (traits & 128 == 0).then(KeepaliveConfig::default),
            user_timeout_option: (handshake & 128 != 0).then(|| Duration::from_secs(600)),
            ..Config::default()
        };
        let config = handshakes(config, handshake);
        let waiting = Waiting::new(&config, SECRET, 1 + usize::from(tables >> 4) % 4);
        let listener = Listener::new(config, SECRET, 1 + usize::from(tables % 8));
        let (connections, places) = (BTreeMap::new(), BTreeMap::new());
        Self { now: Instant::from_millis(1_000), listener, connections, waiting, places, full: false }
    }

    fn heard(&mut self, key: Key, header: &Header, len: u32) {
        let place = self.places.entry(key).or_default();
        *place = place.after(header, len);
    }

    /// A segment arrives, and goes where the executor would send it.
    fn arrive(&mut self, key: Key, seg: &Segment) {
        if let Some(accepted) = self.connections.get_mut(&key) {
            return accepted.on_segment(self.now, seg);
        }
        let iss_floor = match self.waiting.on_segment(self.now, key, seg) {
            TimeWaitAction::Absent => None,
            TimeWaitAction::Reuse { iss_floor } => Some(iss_floor),
            TimeWaitAction::Ack(header) => return self.heard(key, &header, 0),
            TimeWaitAction::Ended | TimeWaitAction::Drop(_) => return,
        };
        let accept_queue_full = self.full || self.connections.len() >= ACCEPTED;
        let admission = Admission { accept_queue_full, iss_floor, ..Admission::default() };
        let (action, (irs, limit)) = self.listener.on_segment(self.now, key, seg, admission);
        match action {
            ListenAction::Reply(header)
            | ListenAction::Cookie(header)
            | ListenAction::Challenge(_, header) => {
                self.heard(key, &header, 0);
            }
            ListenAction::Established(half) => {
                let iss = seg.ack - 1;
                let connection = Connection::from_handshake(half, self.listener.table.config(), self.now);
                let mut accepted = Accepted::new(connection, iss, Some(irs), limit);
                accepted.on_segment(self.now, seg);
                self.connections.insert(key, accepted);
            }
            ListenAction::Reset(_) | ListenAction::Drop(_) => {}
        }
    }

    /// Our side opens a connection that is in TIME-WAIT anew.
    fn reopen(&mut self, key: Key) {
        if self.connections.contains_key(&key) {
            return;
        }
        let Some(floor) = self.waiting.reopen(key) else { return };
        let (iss, config) = (SECRET.iss(self.now, &key), self.listener.table.config());
        let connection = Connection::connect_again(config, iss, floor, self.now);
        let opened = Accepted::new(connection, iss.max(floor), None, config.mss);
        self.connections.insert(key, opened);
    }

    /// Everything that is due happens, and what is over goes.
    fn run(&mut self) {
        for (key, header) in self.listener.on_timeout(self.now) {
            self.heard(key, &header, 0);
        }
        self.waiting.on_timeout(self.now);
        for key in 0..PEERS {
            let Some(accepted) = self.connections.get_mut(&key) else { continue };
            let sent = accepted.run(self.now);
            let (left, closed) = (accepted.time_wait(), accepted.is_closed());
            for (header, len) in sent.iter().filter(|(header, _)| !header.flags.rst()) {
                self.heard(key, header, *len);
            }
            if let Some((left, ends)) = left {
                self.waiting.insert(self.now, key, left, ends);
            }
            if left.is_some() || closed {
                self.connections.remove(&key);
            }
        }
    }

    /// All peers are silent, and the programs close everything.
    fn end(mut self, drained: bool) {
        std::mem::take(&mut self.connections).into_values().for_each(|accepted| accepted.end(self.now));
        if drained {
            self.listener.drain();
        }
        for _ in 0..5_000 {
            let next = [self.listener.table.poll_timeout(), self.waiting.poll_timeout()];
            let Some(next) = next.into_iter().flatten().min() else { break };
            self.now = self.now.max(next);
            self.run();
        }
        assert!(self.listener.table.is_empty() && self.waiting.poll_timeout().is_none(), "it never ends");
    }
}

/// What a program may change while it listens.
fn handshakes(config: Config, how: u8) -> Config {
    Config {
        syn_cookies: how & 1 == 0,
        defer_accept: (how & 2 != 0).then(|| Duration::from_secs(u64::from(how >> 2 & 3) * 10 + 1)),
        syn_ack_retries: [2, 0, 1, 5, 9, 12, 127, 255][usize::from(how >> 4 & 7)],
        mss: if how & 128 == 0 { 1_460 } else { 536 },
        ..config
    }
}

/// What a peer offers in a SYN, or says in another segment.
fn options(how: u8, now: Instant, place: Place, syn: bool) -> Options {
    let late = if how & 2 == 0 { 0 } else { 5_000 };
    let value = (now.millis() as u32).wrapping_add(77_777).wrapping_sub(late);
    let timestamp = (how & 1 == 0).then(|| (value, place.stamp.unwrap_or(0)));
    let mut options = Options { timestamp, ..Options::default() };
    if syn {
        options.mss = [None, Some(1_460), Some(9_000), Some(1)][usize::from(how >> 2 & 3)];
        options.window_scale = (how & 16 == 0).then_some(how >> 6);
        options.sack_permitted = how & 32 == 0;
    } else if how & 4 != 0 {
        let start = place.ack - u32::from(how >> 3) * 64;
        options.sack.push(start, start + 64);
    }
    options
}

fuzz_target!(|bytes: &[u8]| {
    let [a, b, c, acts @ ..] = bytes else { return };
    let mut world = World::new([*a, *b, *c]);
    for act in acts.chunks_exact(5) {
        perform(&mut world, act[0], act[1] % PEERS, [act[2], act[3], act[4]]);
        world.run();
    }
    world.end(a & 8 != 0);
});

fn perform(world: &mut World, act: u8, key: Key, [a, b, c]: [u8; 3]) {
    match act % 16 {
        0 | 1 => world.now += Duration::from_millis(u64::from(a) << (b % 12)),
        2 => {
            let config = handshakes(world.listener.table.config().clone(), a);
            world.listener.table.set_config(config);
        }
        3 if a == 255 => world.listener.drain(),
        3 => world.full = a & 1 != 0,
        4 => world.reopen(key),
        5 | 6 => {
            if let Some(accepted) = world.connections.get_mut(&key) {
                accepted.act(world.now, a, b);
            }
        }
        7..=9 => {
            let syn = [Flags::SYN, Flags::SYN | Flags::ECE | Flags::CWR, Flags::SYN | Flags::FIN, Flags::SYN];
            send(world, key, (syn[usize::from(c % 4)], true), [a, b, c]);
        }
        10..=12 => {
            let fin = if c & 128 == 0 { Flags::NONE } else { Flags::FIN };
            send(world, key, (Flags::ACK | fin, false), [a, b, c]);
        }
        _ => send(world, key, (Flags::from_bits(c), false), [a, b, a ^ c]),
    }
}

/// A peer sends a segment: `how` are its options, its numbers, and its text.
fn send(world: &mut World, key: Key, (flags, opens): (Flags, bool), how: [u8; 3]) {
    let place = world.places.get(&key).copied().unwrap_or_default();
    let lie = |bits: u8| LIES[usize::from(bits & 7)];
    // Any of sixteen numbers opens a connection.
    let seq =
        if opens { SeqNumber::new(u32::from(how[1] >> 4).wrapping_mul(0x1111_1111)) } else { place.seq };
    let text = [0, 0, 1, 100, 536, 1_400, 0, 1_500][usize::from(how[2] >> 3 & 7)];
    let segment = Segment {
        seq: seq + lie(if opens { 0 } else { how[1] }),
        ack: place.ack + lie(how[1] >> 3),
        flags,
        window: [u16::MAX, 0, 1, 1_000][usize::from(how[1] >> 6)],
        urgent: u16::from(how[2]),
        ecn: Codepoint::from_tos(how[2] >> 6),
        options: options(how[0], world.now, place, flags.syn()),
        payload: &TEXT[..text],
    };
    world.arrive(key, &segment);
}
