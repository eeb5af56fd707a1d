//! TCP: connections and listening paths around the state machine of `silk-tcp` (RFC 9293). It
//! must never believe a segment whose checksum is wrong, and keeps no path for a connection
//! before its handshake is complete or after its TIME-WAIT has begun.
//!
//! # Configuration
//! None in the graph; connections take what [`Parameters`] says.
//!
//! # Services
//! `up` (stream): SOCKET, or whatever speaks in a stream of bytes. `down` (net, needed): IP.
//!
//! # Attributes
//! Reads `Local` and `Remote`: a connection with both. With `Listen` and `Local`: a listening
//! path at that address and port, with `Backlog` half-open connections at most. With `Listen`
//! alone: the path for segments that belong to no connection and no listener, which answers
//! them with resets and keeps the connections in TIME-WAIT; every domain needs one. `Handshake`
//! names the finished handshake that a new connection continues. Sets `ProtId` to 6.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "tcp"
//! kind = "tcp"
//!
//! [[link]]
//! from = "tcp.down"
//! to = "ip.up"
//! ```
//!
//! # See also
//! [`ip`](crate::ip) below; [`socket`](crate::socket) above; `silk-tcp`, which does the work.

mod connection;
mod listen;
mod segment;

pub use connection::ConnectionStage;
use listen::ListenStage;

use crate::bound::{Bound, enter_flow};
use alloc::boxed::Box;
use core::net::SocketAddrV4;
use silk_path::classify::layout::INDEX_LISTEN;
use silk_path::classify::{Answer, Flow, Found, Protocol, Tables, View};
use silk_path::service::{NET, STREAM, Service};
use silk_path::{Attr, Create, CreateError, Module, ModuleId, Next, Parcel, PathId, Step};
use silk_tcp::listen::Established;
use silk_tcp::time_wait::{TimeWait, TimeWaitTable};
use silk_tcp::{Config, Connection, IsnSecret};
use silk_wire::{ipv4, tcp};

/// Its services.
pub const SERVICES: &[Service] = &[Service::offered("up", STREAM), Service::needed("down", NET)];
const UP: u8 = 0;
const DOWN: u8 = 1;

/// Bytes of the IP and TCP headers without options: the MTU less these is the MSS
/// (RFC 9293 §3.7.1).
const HEADERS: u16 = (ipv4::HEADER + tcp::HEADER) as u16;

/// What the module is made with.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// The parameters of connections; the MSS is the path's.
    pub config: Config,
    /// 128 random bits for initial sequence numbers (RFC 6528).
    pub secret: [u64; 2],
    /// The most connections in TIME-WAIT.
    pub time_wait: usize,
}

impl Default for Parameters {
    /// The usual ones. The secret is not secret: for checking graphs and for tests.
    fn default() -> Self {
        Self { config: Config::default(), secret: [0; 2], time_wait: 16_384 }
    }
}

/// A connection's name: both addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Four {
    pub local: SocketAddrV4,
    pub remote: SocketAddrV4,
}

impl Four {
    fn flow(self) -> Flow {
        Flow { protocol: Protocol::Tcp, local: self.local, remote: self.remote }
    }
}

/// The module.
pub struct Tcp {
    tables: Tables,
    domain: u8,
    id: ModuleId,
    pub(crate) config: Config,
    pub(crate) secret: IsnSecret,
    listening: Bound,
    /// The path without an address.
    stray: Option<PathId>,
    pub(crate) time_wait: TimeWaitTable<Four>,
    /// A handshake that has just finished, until its connection is made or another finishes;
    /// with its number.
    finished: Option<(Established, Four)>,
    finished_number: u32,
}

impl Tcp {
    /// The module of domain `domain`, its flows in `tables`.
    pub fn new(tables: Tables, domain: u8, setup: &Parameters) -> Self {
        let secret = IsnSecret::new(setup.secret);
        Self {
            tables,
            domain,
            id: ModuleId(0),
            time_wait: TimeWaitTable::new(secret, setup.time_wait, setup.config.time_wait),
            config: setup.config.clone(),
            secret,
            listening: Bound::default(),
            stray: None,
            finished: None,
            finished_number: 0,
        }
    }

    /// Connections in TIME-WAIT.
    pub fn time_waits(&self) -> usize {
        self.time_wait.len()
    }

    /// Keeps a finished handshake for the connection that is now asked for; its number.
    fn keep(&mut self, established: Established, four: Four) -> u32 {
        self.finished = Some((established, four));
        self.finished_number = self.finished_number.wrapping_add(1);
        self.finished_number
    }

    fn take_finished(&mut self, number: u32, four: Four) -> Option<Established> {
        let current = number == self.finished_number;
        self.finished.take_if(|(_, of)| current && *of == four).map(|(established, _)| established)
    }

    /// Enters a connection into the classifier.
    fn enter(&mut self, four: Four, path: PathId) -> Result<(), CreateError> {
        let found = Found { domain: self.domain, index: path.index };
        enter_flow(&self.tables, &four.flow(), found)
    }

    /// Takes a connection out of the classifier.
    fn leave(&mut self, four: Four) {
        self.tables.flows.remove(&four.flow());
    }

    /// A connection's TIME-WAIT begins: its flow leads to the listening path from now on.
    fn begin_time_wait(&mut self, now: silk_instant::Instant, four: Four, connection: TimeWait) {
        self.tables.flows.replace(&four.flow(), Found { domain: self.domain, index: INDEX_LISTEN });
        if let Some(forgotten) = self.time_wait.insert(now, four, connection) {
            self.leave(forgotten);
        }
    }

    /// The TIME-WAITs that are over at `now`.
    fn end_time_waits(&mut self, now: silk_instant::Instant) {
        while let Some(four) = self.time_wait.on_timeout(now) {
            self.leave(four);
        }
    }
}

impl Module for Tcp {
    fn kind(&self) -> &'static str {
        "tcp"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn protocol(&self) -> Option<u16> {
        Some(ipv4::TCP.into())
    }

    fn initialise(&mut self, id: ModuleId) {
        self.id = id;
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        create.set(Attr::ProtId(ipv4::TCP.into()))?;
        let next = Next::Service(DOWN);
        if create.attrs.listen() == Some(true) {
            let stage = ListenStage::new(create.attrs.local(), create.attrs.backlog().unwrap_or(128));
            return Ok(Step { stage: Some(Box::new(stage)), next });
        }
        let local = create.attrs.local().ok_or(CreateError::Missing("Local"))?;
        let remote = create.attrs.remote().ok_or(CreateError::Missing("Remote"))?;
        let four = Four { local, remote };
        let connection = match create.attrs.handshake() {
            Some(number) => {
                let established = self.take_finished(number, four).ok_or(CreateError::Gone)?;
                Connection::from_handshake(established, &self.config, create.now)
            }
            None => {
                // A new incarnation from our side ends the old one's wait (RFC 6191 §4).
                self.time_wait.remove(&four);
                Connection::connect(&self.config, self.secret.iss(create.now, &four), create.now)
            }
        };
        Ok(Step { stage: Some(Box::new(ConnectionStage::new(connection, four))), next })
    }

    fn classify(&self, view: &mut View<'_>) -> Answer {
        crate::bound::classify(&self.tables, Protocol::Tcp, tcp::HEADER, view)
    }

    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        match parcel {
            Parcel::Listen(Protocol::Tcp, local) => self.listening.find(*local).or(self.stray),
            _ => None,
        }
    }
}
