//! A host with one end of a device: TCP/IP under a policy, driven as every executor drives it. It knows
//! its neighbours by their numbers, so that nothing is on the line that only Ethernet would guard.

use crate::stream::{Handle, stream};
use crate::world::World;
use silk_device::End;
use silk_executor::join::frame_of;
use silk_executor::{Dispatch, clock};
use silk_instant::Instant;
use silk_modules::{Device, Setup, Standing, catalogue};
use silk_path::classify::{Domains, Owned, Tables};
use silk_path::{
    Attr, Attrs, Bell, DropReason, Endpoint, Event, Graph, GraphSpec, Outcome, PathId, Paths, Report,
    Request, Ticket,
};
use silk_sched::{Fixed, Member, Terms};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;

/// What a program's buffers have room for: all that is sent here, so that nobody has to read meanwhile.
const ROOM: usize = 1 << 20;
/// A ring that wraps many times.
const RING: usize = 30_000;

fn ip(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

pub fn at(n: u8, port: u16) -> Endpoint {
    Endpoint::v4(ip(n), port)
}

/// Host 10.0.0.`n`.
pub struct Host {
    core: Dispatch<World>,
    /// Its connections: their programs' sides of them.
    pub connections: Vec<(PathId, Handle)>,
}

impl Host {
    pub fn new(n: u8, end: End, device: Device) -> Self {
        let tables = Tables::with_room(1024, 0x5eed);
        let owned = Owned { arp: true, icmp: true, fragments: true };
        tables.configure(owned, Domains::default(), &[], &[ip(n)]).unwrap();
        let mut setup = Setup::new(tables.clone());
        setup.devices = vec![Device { address: mac(n), ..device }];
        setup.standing = Standing::of(&[(ip(n).into(), 24)], None);
        setup.neighbours_told = true;
        let graph = Graph::build(&graph(), &catalogue(setup)).unwrap();
        let (paths, world) = (Paths::new(graph, Vec::new()), World::new(end.transmit));
        let ask = |_: &Paths, tables: &Tables, frame: &[u8], device| tables.classify_over(frame, device);
        let core = Dispatch::new(paths, world, end.receive, Box::new(Fixed::new(64)), tables, ask);
        let mut host = Self { core, connections: Vec::new() };
        ["ip", "icmp", "tcp"]
            .iter()
            .for_each(|top| _ = host.create(top, Attrs::new().with(Attr::Listen(true))));
        host
    }

    /// Listens at an address of its own; as many frames may wait for that.
    pub fn listen(&mut self, local: Endpoint, queue: u16) -> PathId {
        let attrs = Attrs::new().with(Attr::Listen(true)).with(Attr::Local(local));
        self.create("socket", attrs.with(Attr::InputQueue(queue)))
    }

    /// Begins a connection to `remote`.
    pub fn connect(&mut self, local: Endpoint, remote: Endpoint) {
        let ends = Attrs::new().with(Attr::Local(local)).with(Attr::Remote(remote));
        let top = self.core.paths.graph().modules().find("socket").unwrap();
        self.open(top, ends.with(Attr::ProtId(6)));
    }

    fn create(&mut self, top: &str, attrs: Attrs) -> PathId {
        let top = self.core.paths.graph().modules().find(top).unwrap();
        let path = self.core.paths.create(top, attrs, None, clock::now(), &mut self.core.port).unwrap();
        self.core.policy.admit(Member(path.index), Terms::default()).unwrap();
        path
    }

    /// Makes a connection's path, and buffers for its program.
    fn open(&mut self, top: silk_path::ModuleId, attrs: Attrs) {
        let (buffers, handle) = stream(ROOM, RING);
        let made = self.core.paths.create(top, attrs, Some(buffers), clock::now(), &mut self.core.port);
        let path = made.unwrap();
        self.core.policy.admit(Member(path.index), Terms::default()).unwrap();
        self.connections.push((path, handle));
    }

    /// Tells every connection something of its program.
    pub fn ring(&mut self, bell: Bell) {
        let now = clock::now();
        for (path, _) in &self.connections {
            self.core.paths.bell(*path, now, &mut self.core.port, bell);
        }
        self.settle(now);
    }

    /// Whether a path is left of any of its connections.
    pub fn is_connected(&self) -> bool {
        self.connections.iter().any(|(path, _)| self.core.paths.path(*path).is_some())
    }

    /// Readable when there are frames.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.core.device.fd()
    }

    /// When it wants to run without any.
    pub fn due(&self) -> Option<Instant> {
        self.core.port.timers.values().min().copied()
    }

    /// Takes what has come to the queues of its paths, and runs none of them.
    pub fn receive(&mut self, now: Instant) -> bool {
        let any = self.core.receive(now) > 0;
        for (frame, reason) in std::mem::take(&mut self.core.astray) {
            self.core.turn_away(frame, reason, now);
        }
        any
    }

    /// Frames that found a queue full: by this path's count, and by that of those that are nobody's.
    pub fn overflow(&self, path: PathId) -> [u64; 2] {
        let of_path = self.core.paths.path(path).map_or(0, |path| path.state.drops.of(DropReason::QueueFull));
        let totals = self.core.drops.iter().filter(|(reason, _)| *reason == DropReason::QueueFull);
        [of_path.into(), totals.map(|(_, count)| count).sum()]
    }

    /// Does what there is to do now; `false` when there was nothing.
    pub fn turn(&mut self) -> bool {
        let now = clock::now();
        let mut busy = false;
        while let Some(path) = self.core.port.expired(now) {
            busy = true;
            self.core.paths.expire(path, now, &mut self.core.port);
            self.settle(now);
        }
        busy |= self.receive(now);
        while let Some(member) = self.core.choose(now) {
            busy = true;
            self.run(member, now);
        }
        self.settle(now);
        self.core.port.transmit.flush();
        busy
    }

    fn run(&mut self, member: Member, now: Instant) {
        let Some(path) = self.core.path_at(member, now) else { return };
        while let Some(ticket) = self.core.paths.dequeue(path) {
            self.deliver(path, ticket, now);
        }
        self.core.charge(path, member, now, clock::now());
    }

    /// Up the path that it belongs to by now: its connection may have been made since it came.
    fn deliver(&mut self, path: PathId, ticket: Ticket, now: Instant) {
        let frame = frame_of(ticket);
        let path = self.core.path_of(frame).unwrap_or(path);
        if self.core.up(path, ticket, false, now) == Outcome::Handoff {
            self.settle(now);
            if let Ok(made) = self.core.path_of(frame) {
                self.core.up(made, ticket, false, now);
            }
        }
        self.core.device.release(frame);
        self.settle(now);
    }

    /// Does what was asked for, and what follows from what became true.
    fn settle(&mut self, now: Instant) {
        while !self.core.port.requests.is_empty() || !self.core.port.events.is_empty() {
            std::mem::take(&mut self.core.port.requests)
                .into_iter()
                .for_each(|request| self.answer(request, now));
            std::mem::take(&mut self.core.port.events).into_iter().for_each(|event| self.heed(event, now));
        }
    }

    fn answer(&mut self, request: Request, now: Instant) {
        match request {
            Request::Create { top, attrs, .. } => self.open(top, attrs),
            Request::Destroy(path) => _ = self.core.destroy(path, now),
            Request::Wake(path) => {
                self.core.paths.report(path, now, &mut self.core.port, Report::Resolved);
            }
            Request::Resolve { device, address } => {
                let IpAddr::V4(four) = address else { panic!("{address}") };
                self.core.learn((device, address), Some(mac(four.octets()[3])), now);
            }
            other => panic!("nobody has a reason for {other:?}"),
        }
    }

    fn heed(&mut self, (path, event): (PathId, Event), now: Instant) {
        match event {
            Event::Connected | Event::Writable => {
                self.core.paths.bell(path, now, &mut self.core.port, Bell::Sent);
            }
            Event::Unfinished => {
                self.core.paths.report(path, now, &mut self.core.port, Report::Ready);
            }
            Event::Closed | Event::TimeWait => _ = self.core.destroy(path, now),
            Event::Readable | Event::PeerFinished => {}
            other => panic!("{other:?} on {path:?}"),
        }
    }
}

fn graph() -> GraphSpec {
    GraphSpec::default()
        .module("net", "vnet", &[])
        .module("eth", "eth", &[])
        .module("arp", "arp", &[])
        .module("ip", "ip", &[])
        .module("icmp", "icmp", &[])
        .module("tcp", "tcp", &[])
        .module("socket", "socket", &[])
        .link("eth.down", "net.up")
        .link("arp.down", "eth.up")
        .link("ip.down", "eth.up")
        .link("ip.res", "arp.res")
        .link("icmp.down", "ip.up")
        .link("tcp.down", "ip.up")
        .link("socket.stream", "tcp.up")
}
