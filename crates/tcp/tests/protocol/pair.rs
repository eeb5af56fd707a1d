//! Two hosts on a link, with a program on each: a client that opens, and a server that listens.
//! `drive` runs them from event to event until nothing is left to happen.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::Duration;

use silk_instant::Instant;
use silk_tcp::ensemble::{Ensembles, Member};
use silk_tcp::listen::{Admission, ListenAction, SynTable};
use silk_tcp::time_wait::{TimeWaitAction, TimeWaitTable};
use silk_tcp::{
    Codepoint, Config, Connection, DropReason, Header, IsnSecret, Progress, RecvBuffer, State, Transmit,
    reset_for,
};
use silk_testkit::emulator::Conditions;

use crate::buffers::{Rx, Tx};
use crate::link::{Link, Packet, Weather};

/// Where the other host is, for what connections share.
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// What the program of a host does.
pub struct Program {
    /// Octets still to write.
    pub to_write: VecDeque<u8>,
    /// The most octets in the send buffer.
    pub send_buffer: usize,
    /// Whether it reads what arrives.
    pub reads: bool,
    /// What it has read.
    pub received: Vec<u8>,
    /// Whether it shuts writing down after its last octet.
    pub shuts_down: bool,
}

/// One end.
pub struct Host {
    pub connection: Option<Connection>,
    pub listener: Option<SynTable<u8>>,
    pub time_wait: TimeWaitTable<u8>,
    pub tx: Tx,
    pub rx: Rx,
    pub program: Program,
    /// Everything that ever became true.
    pub progress: Progress,
    pub drops: Vec<DropReason>,
    /// Every packet's header, and when it was sent.
    pub sent: Vec<(Instant, Header)>,
    /// The largest text for one transmission (segmentation offload).
    pub offload: usize,
    /// What it shares with other connections, if it does.
    pub shares: Option<(Rc<RefCell<Ensembles>>, Member)>,
}

impl Host {
    fn new(config: &Config) -> Self {
        let program = Program {
            to_write: VecDeque::new(),
            send_buffer: 256 << 10,
            reads: true,
            received: vec![],
            shuts_down: false,
        };
        Self {
            connection: None,
            listener: None,
            time_wait: TimeWaitTable::new(IsnSecret::new([3, 4]), 16, config),
            tx: Tx::default(),
            rx: Rx::new(config.receive_window_max as usize),
            program,
            progress: Progress::NONE,
            drops: vec![],
            sent: vec![],
            offload: 65_000,
            shares: None,
        }
    }

    pub fn state(&self) -> State {
        self.connection.as_ref().map_or(State::Closed, Connection::state)
    }

    pub fn connection(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("a connection")
    }

    fn run_program(&mut self, now: Instant) {
        let Some(connection) = &mut self.connection else { return };
        let room = self.program.send_buffer.saturating_sub(self.tx.0.len());
        let part = self.program.to_write.len().min(room);
        self.tx.0.extend(self.program.to_write.drain(..part));
        let connected = self.progress.contains(Progress::ESTABLISHED);
        if connected && self.program.to_write.is_empty() && self.program.shuts_down {
            self.program.shuts_down = false;
            connection.shutdown_write();
        }
        if self.program.reads && !self.rx.held.is_empty() {
            self.program.received.extend(self.rx.read());
            connection.on_read(now, &self.rx);
        }
    }

    fn transmit(&mut self, now: Instant, link: &mut Link) {
        self.begin_together(now);
        while let Some(connection) = &mut self.connection
            && let Some(transmit) = connection.poll_transmit(now, &self.tx, &self.rx, self.offload)
        {
            for packet in cut(&transmit, &self.tx) {
                link.send(now, &packet);
                self.sent.push((now, packet.header));
            }
        }
        self.go_on_together(now);
        if let Some(record) = self.connection.as_ref().and_then(Connection::time_wait) {
            self.time_wait.insert(now, 1, record);
            self.connection = None;
        }
    }

    fn begin_together(&mut self, now: Instant) {
        if let (Some(connection), Some((all, member))) = (&mut self.connection, &mut self.shares)
            && connection.outgrows_window(now, self.tx.0.len())
        {
            all.borrow_mut().begin(now, PEER, connection, member);
        }
    }

    fn go_on_together(&mut self, now: Instant) {
        if let (Some(connection), Some((all, member))) = (&self.connection, &mut self.shares)
            && (member.is_some() || connection.outgrows_initial_window())
        {
            all.borrow_mut().follow(now, PEER, connection, member);
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        let connection = self.connection.as_ref().and_then(Connection::poll_timeout);
        let listener = self.listener.as_ref().and_then(SynTable::poll_timeout);
        [connection, listener, self.time_wait.poll_timeout()].into_iter().flatten().min()
    }

    fn on_timeout(&mut self, now: Instant, link: &mut Link) {
        if let Some(connection) = &mut self.connection {
            self.progress |= connection.on_timeout(now);
        }
        while let Some((_, header)) = self.listener.as_mut().and_then(|listener| listener.on_timeout(now)) {
            self.reply(now, header, link);
        }
        while self.time_wait.on_timeout(now).is_some() {}
    }

    fn reply(&mut self, now: Instant, header: Header, link: &mut Link) {
        let packet = Packet { header, ecn: Codepoint::NotEct, text: vec![] };
        link.send(now, &packet);
        self.sent.push((now, packet.header));
    }

    fn receive(&mut self, now: Instant, packet: &Packet, link: &mut Link) {
        let alive = self.state() != State::Closed;
        match (&mut self.connection, alive) {
            (Some(connection), true) => {
                match connection.on_segment(now, &packet.segment(), &mut self.tx, &mut self.rx) {
                    Ok(progress) => self.progress |= progress,
                    Err(reason) => self.drops.push(reason),
                }
                check_edges(connection, &self.rx);
            }
            _ => self.receive_without_connection(now, packet, link),
        }
    }

    fn receive_without_connection(&mut self, now: Instant, packet: &Packet, link: &mut Link) {
        let mut admission = Admission::default();
        match self.time_wait.on_segment(now, &1, &packet.segment()) {
            TimeWaitAction::Ack(header) => return self.reply(now, header, link),
            TimeWaitAction::Drop(reason) => return self.drops.push(reason),
            TimeWaitAction::Reuse { iss_floor } => admission.iss_floor = Some(iss_floor),
            TimeWaitAction::Absent => {}
            TimeWaitAction::Ended => return,
        }
        let Some(listener) = &mut self.listener else {
            if let Some(header) = reset_for(&packet.segment()) {
                self.reply(now, header, link);
            }
            return;
        };
        match listener.on_segment(now, 1, &packet.segment(), admission) {
            ListenAction::Reply(header)
            | ListenAction::Cookie(header)
            | ListenAction::Challenge(_, header)
            | ListenAction::Reset(header) => {
                self.reply(now, header, link);
            }
            ListenAction::Drop(reason) => self.drops.push(reason),
            ListenAction::Established(established) => {
                self.connection = Some(Connection::from_handshake(established, listener.config(), now));
                self.progress |= Progress::ESTABLISHED;
                self.receive(now, packet, link);
            }
        }
    }
}

/// Invariants that hold after every segment.
fn check_edges(connection: &Connection, rx: &Rx) {
    let info = connection.info();
    assert!(info.sacked <= info.in_flight, "holds more than is outstanding");
    assert!(info.cwnd > 0, "a congestion window of nothing");
    // The window promised is there, but for what scaling rounds.
    let rounding = 1usize << info.window_shifts.1;
    assert!(info.rcv_wnd as usize <= rx.room() + rounding, "promised more than there is");
}

/// Segmentation offload: one transmission becomes packets.
fn cut(transmit: &Transmit, tx: &Tx) -> Vec<Packet> {
    let text = tx.range(transmit.offset, transmit.len);
    if transmit.gso_size == 0 {
        return vec![Packet { header: transmit.header, ecn: transmit.ecn, text }];
    }
    let size = usize::from(transmit.gso_size);
    assert!(text.len() > size, "offload of a single segment");
    let count = text.len().div_ceil(size);
    let ending = silk_tcp::Flags::FIN | silk_tcp::Flags::PSH;
    let piece = |(index, part): (usize, &[u8])| {
        let mut header = transmit.header;
        header.seq += (index * size) as u32;
        if index + 1 < count {
            header.flags = header.flags.without(ending);
        }
        Packet { header, ecn: transmit.ecn, text: part.to_vec() }
    };
    text.chunks(size).enumerate().map(piece).collect()
}

/// A client, a server, and a link between them.
pub struct Pair {
    pub now: Instant,
    pub client: Host,
    pub server: Host,
    pub to_server: Link,
    pub to_client: Link,
}

impl Pair {
    /// A listening server, and a client about to send its SYN.
    pub fn new(config: &Config, conditions: impl Into<Conditions>, seed: u64) -> Self {
        Self::with(config, config, conditions, seed)
    }

    pub fn with(client: &Config, server: &Config, conditions: impl Into<Conditions>, seed: u64) -> Self {
        let conditions = conditions.into();
        Self::over(&[client.clone(), server.clone()], &[conditions.clone(), conditions], seed)
    }

    /// The client's configuration and the way to the server first.
    pub fn over(configs: &[Config; 2], ways: &[Conditions; 2], seed: u64) -> Self {
        let now = Instant::from_millis(1_000);
        let [mut client, mut server] = configs.each_ref().map(Host::new);
        server.listener = Some(SynTable::new(configs[1].clone(), IsnSecret::new([5, 6]), 16));
        let iss = IsnSecret::new([7, seed]).iss(now, &1u8);
        client.connection = Some(Connection::connect(&configs[0], iss, now));
        let (to_server, to_client) = (Link::new(&ways[0], seed), Link::new(&ways[1], seed ^ 0xABCD));
        Self { now, client, server, to_server, to_client }
    }

    /// A pair whose handshake is done, over a fair link.
    pub fn established(config: &Config) -> Self {
        let mut pair = Self::new(config, Weather::FAIR, 1);
        pair.drive_for(Duration::from_millis(100));
        assert_eq!((pair.client.state(), pair.server.state()), (State::Established, State::Established));
        pair.client.sent.clear();
        pair.server.sent.clear();
        pair
    }

    /// Lets both programs and machines act at this moment.
    pub fn settle(&mut self) {
        for (host, link) in [(&mut self.client, &mut self.to_server), (&mut self.server, &mut self.to_client)]
        {
            host.run_program(self.now);
            host.transmit(self.now, link);
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let arrivals = [self.to_server.next_event(), self.to_client.next_event()];
        let timeouts = [self.client.next_timeout(), self.server.next_timeout()];
        arrivals.into_iter().chain(timeouts).flatten().min()
    }

    /// Goes to the next event; false when there is none before `end`.
    fn step(&mut self, end: Instant) -> bool {
        self.settle();
        let Some(next) = self.next_event().filter(|next| *next <= end) else { return false };
        self.now = next.max(self.now);
        while let Some(packet) = self.to_server.arrive(self.now) {
            self.server.receive(self.now, &packet, &mut self.to_client);
            self.settle();
        }
        while let Some(packet) = self.to_client.arrive(self.now) {
            self.client.receive(self.now, &packet, &mut self.to_server);
            self.settle();
        }
        self.client.on_timeout(self.now, &mut self.to_server);
        self.server.on_timeout(self.now, &mut self.to_client);
        true
    }

    /// Runs for this long.
    pub fn drive_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// Runs until `done`; panics when that takes longer than `limit`.
    pub fn drive_until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        while !done(self) {
            assert!(self.step(end), "not done after {limit:?}: {}", self.describe());
        }
    }

    pub fn describe(&self) -> String {
        let host = |host: &Host| {
            let info = host.connection.as_ref().map(Connection::info);
            format!("{info:?}, {} read, drops {:?}", host.program.received.len(), host.drops)
        };
        format!("at {}: client {}; server {}", self.now, host(&self.client), host(&self.server))
    }
}

/// Octets with a pattern that shows any shift.
pub fn pattern(len: usize, salt: u8) -> VecDeque<u8> {
    (0..len).map(|n| (n as u8).wrapping_mul(31).wrapping_add((n >> 8) as u8).wrapping_add(salt)).collect()
}
