//! TCP: reliable streams (RFC 9293), by the state machine of `silk-tcp`. A connection is a path;
//! half-open connections and those in TIME-WAIT are entries of bounded tables and have none.
//! It must never believe a number in a segment that the machine has not compared.
//!
//! # Configuration
//! None in the graph; connections take what [`Parameters`] says.
//!
//! # Services
//! `up` (stream, provider): SOCKET. `down` (net, needed): IP. `down6` (net, wanted): IP6; without
//! it there are no connections over IPv6.
//!
//! # Attributes
//! With `Listen`, a listening path at `Local`; without `Local`, or with port 0, the path that
//! answers for connections that are gone, over IPv4 or over the IP of that address. Otherwise a connection between `Local` and `Remote`: with
//! `Handshake` one that a listening path has agreed on, else one that is opened now. Reads
//! `Backlog`, `Mtu` and `Gso`; sets `ProtId` to 6. `Class`, `Priority`, `Owner`, `Tos` and `InputQueue`
//! of a listening path are those of its connections.
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
//! [`ip`](crate::ip) below; [`socket`](crate::socket) above.

mod buffers;
mod connection;
mod emit;
mod listen;
mod pending;
mod reasons;
mod resets;

pub use connection::ConnectionStage;

use crate::bound::Bound;
use alloc::boxed::Box;
use connection::opened;
use core::time::Duration;
use listen::ListenStage;
use pending::Pending;
use resets::Resets;
use silk_instant::Instant;
use silk_path::classify::{Answer, Between, Found, Protocol, Tables, View, layout::INDEX_LISTEN};
use silk_path::service::{NET, STREAM, Service};
use silk_path::{
    Attr, Attrs, Create, CreateError, Endpoint, Module, NOWHERE, Next, Parcel, PathId, Port, Request, Stage,
    Step,
};
use silk_tcp::ensemble::Ensembles;
use silk_tcp::time_wait::{TimeWait, TimeWaitTable};
use silk_tcp::{Config, IsnSecret};
use silk_wire::{ipv4, ipv6};

/// Its services.
pub const SERVICES: &[Service] =
    &[Service::offered("up", STREAM), Service::needed("down", NET), Service::wanted("down6", NET)];
const UP: u8 = 0;
const DOWN: u8 = 1;
const DOWN6: u8 = 2;

/// Bytes of the IP and TCP headers without options at this end's family: the MTU less these is
/// the MSS (RFC 9293 §3.7.1, RFC 6691).
const fn headers(end: &Endpoint) -> u16 {
    let ip = if end.is_v6() { ipv6::HEADER } else { ipv4::HEADER };
    (ip + silk_wire::tcp::HEADER) as u16
}

/// The way down for this end's family.
const fn down(end: &Endpoint) -> u8 {
    if end.is_v6() { DOWN6 } else { DOWN }
}
/// Half-open connections of a listening path whose attributes do not say.
const BACKLOG: u16 = 1024;

/// The four numbers that name a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub local: Endpoint,
    pub remote: Endpoint,
}

impl Key {
    /// That of a connection's path.
    fn of(attrs: &Attrs) -> Self {
        let end = |end: Option<Endpoint>| end.unwrap_or(NOWHERE);
        Self { local: end(attrs.local()), remote: end(attrs.remote()) }
    }

    fn flow(&self) -> Between {
        Between { protocol: Protocol::Tcp, local: self.local, remote: self.remote }
    }
}

/// What the module is made with.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// The parameters of connections; the MSS is the path's.
    pub config: Config,
    /// 128 random bits for initial sequence numbers (RFC 6528).
    pub secret: [u64; 2],
    /// The most connections in TIME-WAIT.
    pub time_wait: usize,
    /// Connections to one peer share what they find out of the way there (RFC 9040).
    pub share_windows: bool,
}

impl Default for Parameters {
    /// The usual ones. The secret is not secret: for checking graphs and for tests.
    fn default() -> Self {
        Self { config: Config::default(), secret: [0; 2], time_wait: 16_384, share_windows: true }
    }
}

/// The module.
pub struct Tcp {
    tables: Tables,
    domain: u8,
    config: Config,
    secret: IsnSecret,
    // The listening paths with an address.
    bound: Bound,
    // The paths that answer for connections that are gone, over IPv4 and over IPv6.
    stray: [Option<PathId>; 2],
    // Every entry has a flow in the classifier that leads to the listening path.
    time_wait: TimeWaitTable<Key>,
    // Handshakes whose paths have been asked for.
    pending: Pending,
    resets: Resets,
    // What connections know together of the ways to their peers; none where they share nothing.
    ensembles: Option<Ensembles>,
}

impl Tcp {
    /// The module of domain `domain`, its flows in `tables`.
    pub fn new(tables: Tables, domain: u8, parameters: &Parameters) -> Self {
        let secret = IsnSecret::new(parameters.secret);
        Self {
            tables,
            domain,
            time_wait: TimeWaitTable::new(secret, parameters.time_wait, &parameters.config),
            config: parameters.config.clone(),
            secret,
            bound: Bound::default(),
            stray: [None; 2],
            pending: Pending::default(),
            resets: Resets::default(),
            ensembles: parameters.share_windows.then(|| Ensembles::new(secret)),
        }
    }

    /// Changes the configuration of connections from now on.
    pub fn configure(&mut self, config: Config) {
        self.config = config;
    }

    /// Connections in TIME-WAIT.
    pub fn in_time_wait(&self) -> usize {
        self.time_wait.len()
    }

    fn found(&self, path: PathId) -> Found {
        Found { domain: self.domain, index: path.index }
    }

    /// A connection's path is about to end; what is left of it waits here. Its flow stays
    /// silk's, so that Linux does not reset what it knows nothing about.
    fn begin_time_wait(&mut self, now: Instant, key: Key, left: TimeWait, port: &mut dyn Port) {
        let first = self.time_wait.is_empty();
        if let Some(evicted) = self.time_wait.insert(now, key, left) {
            self.tables.flows.remove(&evicted.flow());
        }
        self.tables.flows.replace(&key.flow(), Found { domain: self.domain, index: INDEX_LISTEN });
        // Its timer runs on a path that answers for such.
        if let (true, Some(stray)) = (first, self.stray.iter().flatten().next()) {
            port.request(Request::Wake(*stray));
        }
    }

    /// Ends every TIME-WAIT that is over; answers when the next is.
    fn expire_time_wait(&mut self, now: Instant) -> Instant {
        while let Some(key) = self.time_wait.on_timeout(now) {
            self.tables.flows.remove(&key.flow());
        }
        self.time_wait.poll_timeout().unwrap_or(Instant::FAR)
    }

    fn listener(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let end = create.attrs.local().unwrap_or(NOWHERE);
        let local = (end.port() != 0).then_some(end);
        let backlog = usize::from(create.attrs.backlog().unwrap_or(BACKLOG).max(1));
        create.set(Attr::ProtId(ipv4::TCP.into()))?;
        let stage = ListenStage::new(local, end.is_v6(), &self.config, self.secret, backlog);
        Ok(Step { stage: Some(Box::new(stage)), next: Next::Service(down(&end)) })
    }

    fn connection(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let local = create.attrs.local().ok_or(CreateError::Missing("Local"))?;
        let remote = create.attrs.remote().ok_or(CreateError::Missing("Remote"))?;
        let key = Key { local, remote };
        // The configured MSS is that of IPv4: IPv6's header leaves less of the same packet.
        let most = self.config.mss.saturating_sub(headers(&remote) - headers(&NOWHERE));
        let stage: Box<dyn Stage> = match create.attrs.handshake() {
            Some(number) => {
                let half = self.pending.take(number, &key).ok_or(CreateError::Gone)?;
                let connection = if most == self.config.mss {
                    silk_tcp::Connection::from_handshake(half, &self.config, create.now)
                } else {
                    let config = Config { mss: most, ..self.config.clone() };
                    silk_tcp::Connection::from_handshake(half, &config, create.now)
                };
                opened(connection, false)
            }
            None => {
                // A new incarnation from our side ends the old one's wait.
                let floor = self.time_wait.reopen(&key);
                if floor.is_some() {
                    self.tables.flows.remove(&key.flow());
                }
                let iss = self.secret.iss(create.now, &key);
                let mss = create.attrs.max_segment().map_or(most, |mss| mss.min(most));
                let config = Config { mss, ..self.config.clone() };
                let floor = floor.unwrap_or(iss);
                opened(silk_tcp::Connection::connect_again(&config, iss, floor, create.now), true)
            }
        };
        create.set(Attr::ProtId(ipv4::TCP.into()))?;
        Ok(Step { stage: Some(stage), next: Next::Service(down(&remote)) })
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

    // RFC 9293 MUST-45.
    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let nobody = create.attrs.remote().is_none();
        if nobody || create.attrs.listen() == Some(true) {
            self.listener(create)
        } else {
            self.connection(create)
        }
    }

    fn classify(&self, view: &mut View<'_>) -> Answer {
        crate::bound::classify(&self.tables, Protocol::Tcp, silk_wire::tcp::HEADER, view)
    }

    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        match parcel {
            Parcel::Listen(flow) if flow.protocol == Protocol::Tcp => {
                self.bound.find(flow).or(self.stray[usize::from(flow.local.is_v6())])
            }
            _ => None,
        }
    }
}

/// Seconds as a duration, 0 as none.
fn seconds(seconds: u32) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}
