//! A connection and a peer that stays legal, over a network that loses, repeats and reorders as it
//! likes: neither stream may be changed, no promise broken, the peer never reset; and once the
//! network is fair, everything arrives. The other half of this is the target `tcp`, whose peer
//! says anything.
#![no_main]

mod peer;

use libfuzzer_sys::fuzz_target;
use peer::{Agreed, Peer, Sent, octet};
use silk_instant::Instant;
use silk_tcp::{
    Algorithm, Config, Connection, DropReason, Flags, Header, Progress, RecvBuffer, SendBuffer, SeqNumber,
    State,
};
use std::time::Duration;

/// What the program has written: how much of it was acknowledged, and how much was not.
struct Tx {
    consumed: u32,
    len: usize,
}

impl SendBuffer for Tx {
    fn len(&self) -> usize {
        self.len
    }
    fn consume(&mut self, octets: usize) {
        self.len = self.len.checked_sub(octets).expect("acknowledges no more than was written");
        self.consumed += octets as u32;
    }
}

/// What the program was given, and how much of that it has read.
struct Rx {
    taken: u32,
    read: u32,
    /// Where the peer's urgent data was last said to end, if it was.
    urgent: Option<u32>,
}

const ROOM: usize = 64 << 10;

impl RecvBuffer for Rx {
    fn room(&self) -> usize {
        ROOM - (self.taken - self.read) as usize
    }
    fn write(&mut self, bytes: &[u8]) -> usize {
        let bytes = &bytes[..bytes.len().min(self.room())];
        for byte in bytes {
            assert_eq!(*byte, octet(self.taken), "at {} of the peer's stream", self.taken);
            self.taken += 1;
        }
        bytes.len()
    }
    fn unread(&self) -> usize {
        (self.taken - self.read) as usize
    }
    fn mark_urgent(&mut self, ahead: usize) {
        let last = self.taken + ahead as u32;
        assert!(self.urgent.is_none_or(|before| before < last), "urgent data only moves ahead");
        self.urgent = Some(last);
    }
}

/// Both ends and what is on its way between them.
struct World {
    now: Instant,
    connection: Connection,
    iss: SeqNumber,
    tx: Tx,
    rx: Rx,
    peer: Peer,
    to_us: Vec<Sent>,
    to_peer: Vec<(Header, u32)>,
    progress: Progress,
    offload: usize,
    written: u32,
    /// Where the program's urgent data ended.
    marks: Vec<u32>,
    /// The program has said that it writes no more.
    shut: bool,
}

/// The most that is on its way in one direction.
const FLIGHT: usize = 200;

impl World {
    /// A connection whose handshake is done.
    fn new(traits: [u8; 3]) -> Self {
        let now = Instant::from_millis(1_000);
        let algorithms = [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr];
        let config = Config {
            congestion: algorithms[usize::from(traits[0] % 3)],
            nodelay: traits[0] & 64 != 0,
            receive_window: 32 << 10,
            receive_window_max: ROOM as u32,
            ..Config::default()
        };
        // Of both, so that one of them soon goes round.
        let (ours, theirs) =
            if traits[0] & 128 == 0 { (1_000, u32::MAX - 3_000) } else { (u32::MAX - 3_000, 5) };
        let iss = SeqNumber::new(ours);
        let mut connection = Connection::connect(&config, iss, now);
        let (mut tx, mut rx) = (Tx { consumed: 0, len: 0 }, Rx { taken: 0, read: 0, urgent: None });
        let syn = connection.poll_transmit(now, &tx, &rx, 0).expect("a SYN").header;
        let agreed = Agreed {
            mss: (88 + u16::from(traits[1]) * 5, syn.options.mss.expect("an MSS")),
            shifts: (traits[2] & 1 == 0)
                .then(|| (traits[2] >> 4, syn.options.window_scale.expect("a shift"))),
            sack: traits[2] & 2 == 0,
            stamps: traits[2] & 4 == 0,
        };
        let agreed = Agreed { shifts: agreed.shifts.map(|(own, ours)| (own.min(14), ours)), ..agreed };
        let (peer, answer) = Peer::new(&syn, SeqNumber::new(theirs), agreed);
        let progress =
            connection.on_segment(now, &answer.segment(), &mut tx, &mut rx).expect("a legal answer");
        assert!(progress.contains(Progress::ESTABLISHED));
        let offload = if traits[2] & 8 == 0 { 65_000 } else { 0 };
        let (to_us, to_peer) = (Vec::new(), Vec::new());
        let mut world = Self {
            now,
            connection,
            iss,
            tx,
            rx,
            peer,
            to_us,
            to_peer,
            progress,
            offload,
            written: 0,
            marks: Vec::new(),
            shut: false,
        };
        world.transmit();
        world
    }

    fn is_over(&self) -> bool {
        matches!(self.connection.state(), State::Closed | State::TimeWait)
    }

    fn post(&mut self, sent: Option<Sent>) {
        self.to_us.extend(sent.filter(|_| self.to_us.len() < FLIGHT));
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.peer.clock = self.peer.clock.wrapping_add(time.as_millis() as u32);
        if self.connection.poll_timeout().is_some_and(|at| at <= self.now) {
            self.progress |= self.connection.on_timeout(self.now);
        }
    }

    fn write(&mut self, octets: u32) {
        if self.shut {
            return;
        }
        let room = (100_000 - self.tx.len as u32).min(octets);
        self.tx.len += room as usize;
        self.written += room;
    }

    /// What was written is urgent.
    fn mark(&mut self) {
        if !self.shut && self.tx.len > 0 {
            self.connection.mark_urgent(self.tx.len);
            self.marks.push(self.written);
        }
    }

    fn shut(&mut self) {
        self.shut = true;
        self.connection.shutdown_write();
    }

    fn read(&mut self, octets: u32) {
        self.rx.read = self.rx.read.saturating_add(octets).min(self.rx.taken);
        self.connection.on_read(self.now, &self.rx);
    }

    /// One of the peer's segments arrives here.
    fn arrive(&mut self, sent: &Sent) {
        match self.connection.on_segment(self.now, &sent.segment(), &mut self.tx, &mut self.rx) {
            Ok(progress) => self.progress |= progress,
            Err(
                reason @ (DropReason::AckOfUnsent
                | DropReason::NoAck
                | DropReason::MissingTimestamp
                | DropReason::BadHandshake
                | DropReason::UnexpectedSyn),
            ) => panic!("{reason:?} of a legal peer"),
            Err(_) => {}
        }
    }

    /// Whatever the connection wants to send is on its way.
    fn transmit(&mut self) {
        for _ in 0..10_000 {
            let out = self.connection.poll_transmit(self.now, &self.tx, &self.rx, self.offload);
            let Some(out) = out else { return };
            assert!(out.len <= self.tx.len.saturating_sub(out.offset), "sends what was not written");
            if out.len > 0 {
                let place = out.header.seq - (self.iss + 1);
                assert_eq!(place, self.tx.consumed + out.offset as u32, "text in a wrong place");
            }
            assert_eq!(out.header.flags.contains(Flags::URG), out.header.urgent > 0);
            if out.header.urgent > 0 {
                let end = out.header.seq - (self.iss + 1) + u32::from(out.header.urgent);
                assert!(self.marks.contains(&end), "urgent data does not end at {end}");
                assert_eq!(out.gso_size, 0, "a device would leave the pointer as it is");
            }
            let size = if out.gso_size == 0 { out.len.max(1) } else { usize::from(out.gso_size) };
            let count = out.len.div_ceil(size).max(1);
            for n in 0..count {
                let mut header = out.header;
                header.seq += (n * size) as u32;
                if n + 1 < count {
                    header.flags = header.flags.without(Flags::FIN | Flags::PSH);
                }
                self.to_peer.push((header, (out.len - n * size).min(size) as u32));
            }
        }
        panic!("it does not stop sending");
    }

    /// The network is fair from now on, both programs write nothing more and read everything.
    fn end(&mut self) {
        self.shut();
        for _ in 0..3_000 {
            self.peer.read(u32::MAX);
            let fin = self.peer.finish();
            self.post(fin);
            let heard = !self.to_peer.is_empty();
            self.to_peer.drain(..).for_each(|(header, len)| self.peer.hear(&header, len));
            if heard {
                let answer = self.peer.acknowledge();
                self.post(Some(answer));
            }
            for sent in std::mem::take(&mut self.to_us) {
                self.arrive(&sent);
            }
            self.read(u32::MAX);
            self.transmit();
            if self.is_over() || self.progress.contains(Progress::TIMED_OUT) {
                break;
            }
            if self.to_peer.is_empty() {
                let due = self.connection.poll_timeout().map_or(Duration::ZERO, |at| at - self.now);
                self.wait(due.clamp(Duration::from_millis(1), Duration::from_secs(1)));
                let again = self.peer.send_again(500);
                self.post(again);
                self.transmit();
            }
        }
        // Patience may have ended with the last loss before the network was fair.
        if !self.progress.contains(Progress::TIMED_OUT) {
            assert_eq!(self.rx.urgent.map(|last| last + 1), self.peer.urgent_end(), "the last urgent octet");
            let info = self.connection.info();
            assert!(self.is_over(), "it does not end: {info:?}");
            assert_eq!((self.peer.has(), self.rx.taken), (self.written + 1, self.peer.sent), "{info:?}");
            assert!(self.connection.state() == State::TimeWait || self.peer.is_done());
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [a, b, c, acts @ ..] = bytes else { return };
    let mut world = World::new([*a, *b, *c]);
    for act in acts.chunks_exact(2) {
        if world.is_over() {
            break;
        }
        perform(&mut world, act[0], act[1]);
        world.transmit();
        world.to_peer.truncate(FLIGHT);
    }
    world.end();
});

fn perform(world: &mut World, act: u8, much: u8) {
    let octets = u32::from(much) * 24;
    let (ours, theirs) = (pick(world.to_peer.len(), much), pick(world.to_us.len(), much));
    match act % 16 {
        0 => world.wait(Duration::from_millis(u64::from(much % 16) << (much / 16))),
        1 => world.wait(Duration::from_millis(u64::from(much % 16))),
        2 => {
            world.write(octets * 4);
            if act & 32 != 0 {
                world.mark();
            }
        }
        3 => world.read(octets * 4),
        4 => world.peer.read(octets * 4),
        5 => {
            let sent = world.peer.send(octets, act & 32 != 0);
            world.post(sent);
        }
        6 => {
            let sent = world.peer.send_again(octets);
            world.post(sent);
        }
        7 => {
            let sent = world.peer.acknowledge();
            world.post(Some(sent));
        }
        8 if much == 255 => world.shut(),
        9 if much == 255 => {
            let sent = world.peer.finish();
            world.post(sent);
        }
        // The network: arrives, arrives and comes once more, is lost, all arrive.
        8 => theirs.into_iter().for_each(|at| _ = world.to_us.remove(at)),
        9 => ours.into_iter().for_each(|at| _ = world.to_peer.remove(at)),
        10 | 11 => {
            if let Some(at) = theirs {
                let sent = if act & 16 == 0 { world.to_us.remove(at) } else { world.to_us[at].clone() };
                world.arrive(&sent);
            }
        }
        12 | 13 => {
            if let Some(at) = ours {
                let (header, len) = if act & 16 == 0 { world.to_peer.remove(at) } else { world.to_peer[at] };
                world.peer.hear(&header, len);
            }
        }
        14 => std::mem::take(&mut world.to_us).iter().for_each(|sent| world.arrive(sent)),
        _ => {
            world.to_peer.drain(..).for_each(|(header, len)| world.peer.hear(&header, len));
            let sent = world.peer.acknowledge();
            world.post(Some(sent));
        }
    }
}

/// One of so many.
fn pick(count: usize, choice: u8) -> Option<usize> {
    usize::from(choice).checked_rem(count)
}
