//! Silk's host of the pair: a whole stack in memory, and the program at the top of its connection.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::VecDeque;

use silk_instant::Instant;
use silk_modules::tcp::{ConnectionStage, Tcp};
use silk_path::{Attr, Attrs, Bell, DropReason, Endpoint, Event, PathId};
use silk_tcp::{Config, Info};

use crate::rig::{Handle, Host, Options, ip, ip6, stream};

/// Its number among the hosts: 10.0.0.1 and fd00::1.
pub const NUMBER: u8 = 1;

/// Octets that its program's buffers hold: received ones, and those to be sent.
const BUFFERS: (usize, usize) = (1 << 20, 16 << 10);

/// The host.
pub struct Ours {
    pub host: Host,
    pub connection: Option<(PathId, Handle)>,
    pub program: Program,
    /// Everything that was ever told of the connection.
    pub events: Vec<Event>,
    /// It has reached its end, and its path was given back.
    pub ended: Option<Event>,
}

/// The program on its connection.
#[derive(Default)]
pub struct Program {
    pub to_write: VecDeque<u8>,
    /// It closes its half behind its last octet.
    pub shuts_down: bool,
    /// But not before the peer has done so.
    pub waits: bool,
    /// It does not read.
    pub rests: bool,
    pub received: Vec<u8>,
}

/// An address of a host, as a path wants it.
pub fn at(n: u8, six: bool, port: u16) -> Endpoint {
    if six { Endpoint::v6(ip6(n), port) } else { Endpoint::v4(ip(n), port) }
}

/// The same as smoltcp wants it.
pub fn address(n: u8, six: bool, port: u16) -> (IpAddr, u16) {
    (if six { ip6(n).into() } else { ip(n).into() }, port)
}

fn anywhere(six: bool, port: u16) -> Endpoint {
    if six { Endpoint::v6(Ipv6Addr::UNSPECIFIED, port) } else { Endpoint::v4(Ipv4Addr::UNSPECIFIED, port) }
}

impl Ours {
    pub fn new(config: &Config) -> Self {
        let mut host = Host::with(NUMBER, Options::six());
        host.paths.module_mut::<Tcp>().expect("in the graph").configure(config.clone());
        host.streams = || Some(stream(BUFFERS.0, BUFFERS.1));
        Self { host, connection: None, program: Program::default(), events: vec![], ended: None }
    }

    pub fn listen(&mut self, six: bool, port: u16) -> PathId {
        self.host
            .create("socket", Attrs::new().with(Attr::Listen(true)).with(Attr::Local(at(NUMBER, six, port))))
    }

    pub fn connect(&mut self, port: u16, to: Endpoint) -> PathId {
        let (buffers, handle) = stream(BUFFERS.0, BUFFERS.1);
        let local = Attr::Local(anywhere(to.is_v6(), port));
        let attrs = Attrs::new().with(Attr::ProtId(6)).with(local).with(Attr::Remote(to));
        let path = self.host.try_create("socket", attrs, Some(buffers)).expect("a free port");
        self.connection = Some((path, handle));
        path
    }

    /// What TCP knows of the connection, while there is one.
    pub fn info(&self) -> Option<Info> {
        let (path, _) = self.connection.as_ref()?;
        Some(self.host.paths.path(*path)?.stage::<ConnectionStage>()?.info())
    }

    /// What was dropped, path by path.
    pub fn drops(&self) -> Vec<Vec<(DropReason, u32)>> {
        self.host.paths.iter().map(|path| path.state.drops.iter().collect()).collect()
    }

    /// A word to the connection from its program.
    pub fn bell(&mut self, bell: Bell) {
        if let Some((path, _)) = self.connection {
            self.host.bell(path, bell);
        }
    }

    pub fn saw(&self, event: Event) -> bool {
        self.events.contains(&event)
    }

    /// Lets timers run and the program act; gives what is sent.
    pub fn act(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.host.advance(now - self.host.world.now);
        self.hear();
        self.run_program();
        self.hear();
        self.host.sent()
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.host.next_timer().map(|(_, at)| at)
    }

    /// Takes what the stack tells; a connection that has ended gives its path back.
    fn hear(&mut self) {
        if let (None, Some(path), Some(handle)) =
            (&self.connection, self.host.created.last(), self.host.handles.last())
        {
            self.connection = Some((*path, handle.clone()));
            // Of a connection that was taken nobody says that it is open: it came so.
            self.events.push(Event::Connected);
        }
        let Some((path, _)) = self.connection else { return };
        let told = std::mem::take(&mut self.host.world.events);
        self.events.extend(told.into_iter().filter(|(of, _)| *of == path).map(|(_, event)| event));
        let end = self.events.last().filter(|event| matches!(event, Event::Closed | Event::TimeWait));
        if let (Some(end), None) = (end, self.ended) {
            self.ended = Some(*end);
            self.take();
            self.host.destroy(path);
        }
    }

    /// Reads what has arrived; whether there was anything.
    fn take(&mut self) -> bool {
        let Some((_, handle)) = &self.connection else { return false };
        let octets = handle.read();
        self.program.received.extend(&octets);
        !octets.is_empty()
    }

    fn run_program(&mut self) {
        let Some((path, handle)) = self.connection.clone().filter(|_| self.ended.is_none()) else { return };
        if !self.program.rests && self.take() {
            self.host.bell(path, Bell::Read);
        }
        if !self.saw(Event::Connected) {
            return;
        }
        if handle.unsent() == 0 && !self.program.to_write.is_empty() {
            let part = self.program.to_write.len().min(BUFFERS.1);
            handle.write(&self.program.to_write.drain(..part).collect::<Vec<_>>());
            self.host.bell(path, Bell::Sent);
        } else if handle.unsent() > 0 {
            self.host.bell(path, Bell::Sent);
        }
        let may = !self.program.waits || self.saw(Event::PeerFinished);
        if may && self.program.shuts_down && self.program.to_write.is_empty() && handle.unsent() == 0 {
            self.program.shuts_down = false;
            self.host.bell(path, Bell::ShutdownWrite);
        }
    }
}
