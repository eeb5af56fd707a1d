//! What does the state machine itself cost, without devices and buffers? Prints nanoseconds on this
//! machine for: a server's connection from SYN to TIME-WAIT with one request and one response, a
//! segment of text received in order, an acknowledgement received, and a 64 KB transmission chosen.
//! The best of several rounds is shown beside the median, because the machine is shared.
//!
//! `cargo run --release -p silk-tcp --example cost`

use std::time::Instant as Clock;

use silk_instant::Instant;
use silk_tcp::listen::{Admission, Established, ListenAction, SynTable};
use silk_tcp::time_wait::TimeWaitTable;
use silk_tcp::{
    Codepoint, Config, Connection, Flags, IsnSecret, Options, Progress, RecvBuffer, Segment, SendBuffer,
    SeqNumber,
};

/// Buffers that only count.
struct Counter(usize);

impl SendBuffer for Counter {
    fn len(&self) -> usize {
        self.0
    }
    fn consume(&mut self, octets: usize) {
        self.0 -= octets;
    }
}

struct Sink;

impl RecvBuffer for Sink {
    fn room(&self) -> usize {
        1 << 20
    }
    fn write(&mut self, bytes: &[u8]) -> usize {
        bytes.len()
    }
}

const ROUNDS: usize = 15;
const SECRET: IsnSecret = IsnSecret::new([1, 2]);

/// The peer's segments, in the order in which it sends them.
struct Peer {
    seq: SeqNumber,
    ack: SeqNumber,
    stamp: u32,
}

impl Peer {
    fn segment<'a>(&mut self, flags: Flags, payload: &'a [u8]) -> Segment<'a> {
        self.stamp += 1;
        let options = Options { timestamp: Some((self.stamp, 0)), ..Options::default() };
        let (seq, ack) = (self.seq, self.ack);
        let segment =
            Segment { seq, ack, flags, window: 60_000, urgent: 0, ecn: Codepoint::NotEct, options, payload };
        self.seq += segment.sequence_len();
        segment
    }

    fn syn(&mut self) -> Segment<'static> {
        let mut segment = self.segment(Flags::SYN, &[]);
        let offer =
            Options { mss: Some(1460), window_scale: Some(7), sack_permitted: true, ..segment.options };
        segment.options = offer;
        segment
    }
}

struct Server {
    listener: SynTable<(u32, u16)>,
    time_wait: TimeWaitTable<(u32, u16)>,
    config: Config,
}

impl Server {
    fn new() -> Self {
        let config = Config::default();
        let listener = SynTable::new(config.clone(), SECRET, 1024);
        Self { listener, time_wait: TimeWaitTable::new(SECRET, 65_536, &config), config }
    }

    fn handshake(&mut self, now: Instant, key: (u32, u16)) -> (Peer, Established) {
        let mut peer = Peer { seq: SeqNumber::new(77), ack: SeqNumber::new(0), stamp: 1 };
        let reply = self.listener.on_segment(now, key, &peer.syn(), Admission::default());
        let ListenAction::Reply(header) = reply else { panic!("{reply:?}") };
        peer.ack = header.seq + 1;
        let last = peer.segment(Flags::ACK, &[]);
        let action = self.listener.on_segment(now, key, &last, Admission::default());
        let ListenAction::Established(established) = action else { panic!("{action:?}") };
        (peer, established)
    }

    fn accept(&mut self, now: Instant, key: (u32, u16)) -> (Connection, Peer) {
        let (peer, established) = self.handshake(now, key);
        (Connection::from_handshake(established, &self.config, now), peer)
    }

    /// One request and one response of 1 KB, closed by us.
    fn serve(&mut self, now: Instant, key: (u32, u16)) {
        let (mut connection, mut peer) = self.accept(now, key);
        let (mut tx, mut rx) = (Counter(0), Sink);
        connection
            .on_segment(now, &peer.segment(Flags::ACK | Flags::PSH, &[1; 100]), &mut tx, &mut rx)
            .unwrap();
        tx.0 = 1_200;
        connection.close(now);
        let response = connection.poll_transmit(now, &tx, &rx, 65_000).expect("the response");
        assert!(response.header.flags.fin() && connection.poll_transmit(now, &tx, &rx, 65_000).is_none());
        peer.ack += 1_201;
        let progress =
            connection.on_segment(now, &peer.segment(Flags::ACK | Flags::FIN, &[]), &mut tx, &mut rx);
        assert!(progress.is_ok_and(|progress| progress.contains(Progress::TIME_WAIT)));
        connection.poll_transmit(now, &tx, &rx, 65_000).expect("the last acknowledgement");
        self.time_wait.insert(now, key, connection.time_wait().expect("TIME-WAIT"));
    }
}

/// Runs `work` in rounds and prints nanoseconds per operation.
fn report(name: &str, operations: u32, mut work: impl FnMut()) {
    let mut costs: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Clock::now();
            work();
            start.elapsed().as_nanos() as f64 / f64::from(operations)
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    println!("{name:<44} {:>8.1} ns best, {:>8.1} ns median", costs[0], costs[ROUNDS / 2]);
}

fn main() {
    let now = Instant::from_millis(5_000);
    println!("size of a connection: {} bytes", size_of::<Connection>());
    let mut server = Server::new();
    let mut next = 0;
    report("connection, SYN to TIME-WAIT, one exchange", 20_000, || {
        for _ in 0..20_000 {
            next += 1;
            server.serve(now, (next >> 10, next as u16));
        }
    });
    let mut server = Server::new();
    report("SYN answered with a cookie", 100_000, || {
        let mut peer = Peer { seq: SeqNumber::new(77), ack: SeqNumber::new(0), stamp: 1 };
        let syn = peer.syn();
        for n in 0..100_000 {
            std::hint::black_box(server.listener.on_segment(now, (n, 1), &syn, Admission::default()));
        }
    });
    let mut server = Server::new();
    let (_, established) = server.handshake(now, (1, 1));
    let config = Config::default();
    report("connection made from a handshake and dropped", 100_000, || {
        for _ in 0..100_000 {
            std::hint::black_box(Connection::from_handshake(established, &config, now));
        }
    });
    report("text received in order, 1448 octets", 100_000, || {
        let (mut connection, mut peer) = server.accept(now, (1, 1));
        for _ in 0..50_000 {
            for _ in 0..2 {
                let segment = peer.segment(Flags::ACK, &[7; 1448]);
                connection.on_segment(now, &segment, &mut Counter(0), &mut Sink).unwrap();
            }
            connection.poll_transmit(now, &Counter(0), &Sink, 0).expect("every second");
        }
    });
    report("64 KB chosen and acknowledged", 50_000, || {
        let (mut connection, mut peer) = server.accept(now, (1, 1));
        let mut tx = Counter(1 << 30);
        for _ in 0..50_000 {
            if tx.0 < 1 << 20 {
                tx.0 = 1 << 30;
            }
            let transmit = connection.poll_transmit(now, &tx, &Sink, 65_000).expect("text");
            peer.ack = transmit.header.seq + transmit.len as u32;
            connection.on_segment(now, &peer.segment(Flags::ACK, &[]), &mut tx, &mut Sink).unwrap();
        }
    });
}
