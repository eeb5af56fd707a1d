//! A host in memory: a graph, its paths, and the smallest executor that obeys the contract of
//! [`Port`]. Frames go in, frames come out; time is what the test says it is.
#![allow(dead_code, unused_imports, reason = "each test file uses its part of the rig")]

mod stream;

pub use stream::{Handle, stream};

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use silk_instant::Instant;
use silk_modules::icmp::{Icmp, REFUSAL};
use silk_modules::ip::Ip;
use silk_modules::ip6::Ip6;
use silk_modules::nd::Nd;
use silk_modules::{Device, Setup, Standing, catalogue};
use silk_path::classify::{Belongs, Domains, Found, Owned, Tables};
use silk_path::transform::Rule;
use silk_path::{
    Advertised, Attr, Attrs, Bell, ByteStream, Checksum, CreateError, DropReason, Endpoint, Event, Framing,
    Graph, GraphSpec, Message, Meta, ModuleId, Outcome, Parcel, PathId, Paths, Port, Report, Request,
    Station, Value,
};
use silk_wire::icmp::Unreachable;
use std::collections::{BTreeMap, VecDeque};

pub const HEADROOM: usize = 128;

pub fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

pub fn ip(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

pub fn ip6(n: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n.into())
}

/// A program's buffers and its own side of them.
pub type Buffers = (Box<dyn ByteStream>, Handle);

/// What left at the top: the path, who sent it, and the bytes.
pub type Delivered = (PathId, Endpoint, Vec<u8>);

/// What a host's stages caused.
#[derive(Default)]
pub struct World {
    pub now: Instant,
    pub sent: VecDeque<Vec<u8>>,
    /// The segment size of each frame sent; 0: an ordinary one.
    pub gso: VecDeque<u16>,
    /// The device that each frame sent left by.
    pub over: VecDeque<u8>,
    pub delivered: Vec<Delivered>,
    /// Which unit of the application's data each of these belongs to.
    pub framings: Vec<Framing>,
    pub events: Vec<(PathId, Event)>,
    pub requests: VecDeque<Request>,
    pub timers: BTreeMap<PathId, Instant>,
    pub asked: Vec<IpAddr>,
    /// Addresses that other stations have, and at which they are.
    pub duplicates: Vec<(IpAddr, [u8; 6])>,
    /// Those that other stations claim in vain.
    pub claimed: Vec<(IpAddr, [u8; 6])>,
    /// What routers told, each time it changed.
    pub routed: Vec<Advertised>,
    /// Routers that did not answer, perhaps.
    pub lost: Vec<Ipv6Addr>,
    /// The device refuses this many messages.
    pub full: usize,
    random: u64,
}

impl Port for World {
    fn transmit(&mut self, _: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        if self.full > 0 {
            self.full -= 1;
            return Err(DropReason::DeviceFull);
        }
        let mut frame = vec![0; msg.len()];
        msg.copy_to(&mut frame).expect("sized for it");
        self.sent.push_back(frame);
        self.gso.push_back(msg.meta.gso_size);
        self.over.push_back(msg.meta.link.device);
        Ok(())
    }

    fn deliver(&mut self, path: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        self.framings.push(msg.meta.framing);
        self.delivered.push((path, msg.meta.remote, msg.bytes().to_vec()));
        Ok(())
    }

    fn arm(&mut self, path: PathId, at: Instant) {
        self.timers.insert(path, at);
        if at == Instant::FAR {
            self.timers.remove(&path);
        }
    }

    fn event(&mut self, path: PathId, event: Event) {
        self.events.push((path, event));
    }

    fn request(&mut self, request: Request) {
        self.requests.push_back(request);
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.random
    }

    fn clock(&mut self) -> Option<Instant> {
        self.now += Duration::from_micros(1);
        Some(self.now)
    }
}

/// A host.
pub struct Host {
    pub world: World,
    pub paths: Paths,
    pub tables: Tables,
    /// What a path asked for and whether it came to be: for listeners.
    pub created: Vec<PathId>,
    pub failed: Vec<CreateError>,
    /// Makes the program's buffers of an accepted connection.
    pub streams: fn() -> Option<Buffers>,
    /// The programs' sides of those.
    pub handles: Vec<Handle>,
    /// Frames nobody owned.
    pub passed: usize,
    /// More frames follow the one that arrives.
    pub more: bool,
    /// The device that frames arrive over.
    pub over: u8,
    /// What ARP said until our address was settled and announced.
    pub announced: Vec<Vec<u8>>,
    pub n: u8,
}

/// The graph of a whole host.
pub fn graph() -> GraphSpec {
    GraphSpec::default()
        .module("net", "vnet", &[])
        .module("eth", "eth", &[])
        .module("arp", "arp", &[])
        .module("ip", "ip", &[])
        .module("icmp", "icmp", &[])
        .module("udp", "udp", &[])
        .module("tcp", "tcp", &[])
        .module("echo", "echo", &[("port", Value::Number(7))])
        .module("socket", "socket", &[])
        .link("eth.down", "net.up")
        .link("arp.down", "eth.up")
        .link("ip.down", "eth.up")
        .link("ip.res", "arp.res")
        .link("icmp.down", "ip.up")
        .link("udp.down", "ip.up")
        .link("echo.down", "udp.up")
        .link("socket.net", "udp.up")
        .link("tcp.down", "ip.up")
        .link("socket.stream", "tcp.up")
}

/// The same with IPv6.
pub fn graph6() -> GraphSpec {
    graph()
        .module("nd", "nd", &[])
        .module("ip6", "ip6", &[])
        .module("icmp6", "icmp6", &[])
        .link("nd.down", "eth.up")
        .link("ip6.down", "eth.up")
        .link("ip6.res", "nd.res")
        .link("icmp6.down", "ip6.up")
        .link("udp.down6", "ip6.up")
        .link("tcp.down6", "ip6.up")
}

impl Options {
    /// With IPv6 too.
    pub fn six() -> Self {
        Self { graph: graph6(), six: true, ..Self::default() }
    }
}

pub struct Options {
    pub device: Device,
    pub rules: Vec<Box<dyn Rule>>,
    pub graph: GraphSpec,
    pub setup: fn(&mut Setup),
    /// With IPv6 too.
    pub six: bool,
    /// Nobody has objected to its address of IPv6, and the time for that is over.
    pub settled: bool,
    /// The virtual LAN of the host's frames, 0: of none.
    pub vlan: u16,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            device: Device::default(),
            rules: Vec::new(),
            graph: graph(),
            setup: |_| {},
            six: false,
            settled: true,
            vlan: 0,
        }
    }
}

impl Host {
    /// Host 10.0.0.`n` with its ARP and ICMP paths and the path for fragments.
    pub fn new(n: u8) -> Self {
        Self::with(n, Options::default())
    }

    /// The same with IPv6: fd00::`n`.
    pub fn six(n: u8) -> Self {
        Self::with(n, Options::six())
    }

    pub fn with(n: u8, options: Options) -> Self {
        let tables = Tables::with_room(1024, 0x5eed).on_vlan(options.vlan);
        let mut ours: Vec<IpAddr> = vec![ip(n).into()];
        ours.extend(options.six.then(|| IpAddr::from(ip6(n))));
        let owned = Owned { arp: true, icmp: true, fragments: true };
        tables.configure(owned, Domains::default(), &[], &ours).expect("few");
        let mut setup = Setup::new(tables.clone());
        setup.devices = vec![Device { address: mac(n), ..options.device }];
        let (mut addresses, mut routers): (Vec<(IpAddr, u8)>, Vec<IpAddr>) =
            (vec![(ip(n).into(), 24)], vec![ip(254).into()]);
        if options.six {
            addresses.push((ip6(n).into(), 64));
            routers.push(ip6(254).into());
        }
        setup.standing = Standing::of(&addresses, routers);
        setup.tcp.secret = [n.into(), 0x5ec2e7];
        (options.setup)(&mut setup);
        let graph =
            Graph::build(&options.graph, &catalogue(setup)).unwrap_or_else(|faults| panic!("{faults:?}"));
        let mut host = Self {
            world: World { random: n.into(), ..World::default() },
            paths: Paths::new(graph, options.rules),
            tables,
            created: Vec::new(),
            failed: Vec::new(),
            streams: || None,
            handles: Vec::new(),
            passed: 0,
            more: false,
            over: 0,
            announced: Vec::new(),
            n,
        };
        for top in ["arp", "icmp", "ip", "tcp"] {
            host.create(top, Attrs::new().with(Attr::Listen(true)));
        }
        // With both, it is IPv6 that is watched.
        if options.settled || options.six {
            host.advance(Duration::from_secs(4));
        }
        host.announced = host.sent();
        if options.six {
            let any = Attrs::new()
                .with(Attr::Listen(true))
                .with(Attr::Local(Endpoint::v6(Ipv6Addr::UNSPECIFIED, 0)));
            for top in ["nd", "icmp6", "ip6", "tcp"] {
                host.create(top, any);
            }
            if options.settled {
                host.advance(Duration::from_secs(1));
            }
        }
        host
    }

    pub fn module(&self, name: &str) -> ModuleId {
        self.paths.graph().modules().find(name).expect("in the graph")
    }

    pub fn create(&mut self, top: &str, attrs: Attrs) -> PathId {
        self.try_create(top, attrs, None).unwrap_or_else(|error| panic!("{top}: {error}"))
    }

    pub fn try_create(
        &mut self,
        top: &str,
        attrs: Attrs,
        stream: Option<Box<dyn ByteStream>>,
    ) -> Result<PathId, CreateError> {
        let (top, now) = (self.module(top), self.world.now);
        let path = self.paths.create(top, attrs, stream, now, &mut self.world);
        self.settle();
        path
    }

    /// A frame arrives.
    pub fn arrive(&mut self, frame: &[u8]) -> Option<Outcome> {
        self.arrive_with(frame, Checksum::Unknown)
    }

    pub fn arrive_with(&mut self, frame: &[u8], checksum: Checksum) -> Option<Outcome> {
        let outcome = self.run_frame(frame, checksum);
        self.settle();
        outcome
    }

    fn run_frame(&mut self, frame: &[u8], checksum: Checksum) -> Option<Outcome> {
        let belongs = self.tables.classify_over(frame, self.over);
        assert_eq!(
            belongs,
            self.paths.graph().classify_over(frame, self.over),
            "the tables and the modules agree"
        );
        if let Belongs::Discard { domain, index } = belongs {
            self.tables.count_discard(Found { domain, index });
            return None;
        }
        if belongs == Belongs::Pass {
            self.passed += 1;
            return None;
        }
        let Some(path) = self.paths.target(frame, belongs) else {
            self.passed += 1;
            return None;
        };
        let outcome = self.run_at(path, frame, checksum);
        if outcome == Outcome::Handoff {
            self.settle();
            return self.run_frame(frame, checksum);
        }
        Some(outcome)
    }

    /// A frame arrives that no path takes, for that which answers for such.
    pub fn arrive_for_nobody(&mut self, frame: &[u8], parcel: &Parcel) -> Outcome {
        assert_eq!(self.tables.classify_over(frame, self.over), Belongs::Pass);
        let path = self.paths.taker(parcel).expect("a path that answers");
        let outcome = self.run_at(path, frame, Checksum::Unknown);
        self.settle();
        outcome
    }

    fn run_at(&mut self, path: PathId, frame: &[u8], checksum: Checksum) -> Outcome {
        let mut buffer = vec![0; HEADROOM];
        buffer.extend_from_slice(frame);
        let end = buffer.len();
        let now = self.world.now;
        let link = Station::over(self.over);
        let meta = Meta { checksum, arrival: now, more: self.more, link, ..Meta::default() };
        let mut msg = Message::new(&mut buffer, HEADROOM, end, meta);
        self.paths.up(path, now, &mut self.world, &mut msg)
    }

    /// The program sends a datagram.
    pub fn send(&mut self, path: PathId, to: Endpoint, data: &[u8]) -> Outcome {
        let mut headroom = [0; HEADROOM];
        let meta = Meta { remote: to, ..Meta::default() };
        let mut msg = Message::outgoing(&mut headroom, [data, &[]], meta);
        let now = self.world.now;
        let outcome = self.paths.down(path, now, &mut self.world, &mut msg);
        self.settle();
        outcome
    }

    /// Refuses a packet that nobody owns; answers whether that may be told.
    pub fn refuse(&mut self, frame: &[u8], why: Unreachable) -> bool {
        let now = self.world.now;
        let mut buffer = [0; REFUSAL];
        let icmp = self.paths.module_mut::<Icmp>().expect("in the graph");
        let path = icmp.path().expect("made with the host");
        // Its sender may have left the checksum to a device.
        let frame = (frame, 0, Checksum::MaybePartial);
        let Some(mut refusal) = icmp.refuse(now, frame, why, &mut buffer) else { return false };
        self.paths.down(path, now, &mut self.world, &mut refusal);
        self.settle();
        true
    }

    pub fn bell(&mut self, path: PathId, bell: Bell) {
        let now = self.world.now;
        self.paths.bell(path, now, &mut self.world, bell);
        self.settle();
    }

    pub fn destroy(&mut self, path: PathId) {
        let now = self.world.now;
        self.paths.destroy(path, now, &mut self.world).expect("a live path");
        self.settle();
    }

    /// Does what was requested.
    pub fn settle(&mut self) {
        while let Some(request) = self.world.requests.pop_front() {
            let now = self.world.now;
            match request {
                Request::Create { top, attrs, .. } => {
                    let stream = (self.streams)().map(|(stream, handle)| {
                        self.handles.push(handle);
                        stream
                    });
                    match self.paths.create(top, attrs, stream, now, &mut self.world) {
                        Ok(path) => self.created.push(path),
                        Err(error) => self.failed.push(error),
                    }
                }
                Request::Destroy(path) => _ = self.paths.destroy(path, now, &mut self.world),
                Request::Resolve { address, .. } => self.world.asked.push(address),
                Request::Wake(path) => _ = self.paths.report(path, now, &mut self.world, Report::Resolved),
                Request::Report { udp, local, remote, report, .. } => self.report(udp, local, remote, report),
                Request::Arrived { device, frame, checksum } => {
                    self.over = device;
                    self.run_frame(&frame, checksum);
                }
                Request::Duplicate { address, station } => self.world.duplicates.push((address, station)),
                Request::Claimed { address, station } => self.world.claimed.push((address, station)),
                Request::RouterLost(router) => self.world.lost.push(router),
                Request::Routers(told) => self.world.routed.push(told),
                Request::Redirected { router, destination, hop, link } => {
                    let now = self.world.now;
                    match (router, destination, hop) {
                        (IpAddr::V4(router), IpAddr::V4(destination), IpAddr::V4(hop)) => {
                            self.paths.module_mut::<Ip>().unwrap().redirect(now, router, destination, hop);
                        }
                        (IpAddr::V6(router), IpAddr::V6(destination), IpAddr::V6(hop)) => {
                            let ip = self.paths.module_mut::<Ip6>().unwrap();
                            let believed = ip.redirect(now, router, destination, hop);
                            let nd = self.paths.module_mut::<Nd>().unwrap();
                            if let Some(link) = link.filter(|_| believed) {
                                nd.redirected(now, hop, link, &mut self.world);
                            }
                        }
                        _ => panic!("of one IP"),
                    }
                }
            }
        }
    }

    fn report(&mut self, udp: bool, local: Endpoint, remote: Endpoint, report: Report) {
        use silk_path::classify::{Between, Protocol};
        let protocol = if udp { Protocol::Udp } else { Protocol::Tcp };
        let found = self.tables.flows.lookup(&Between { protocol, local, remote });
        let now = self.world.now;
        if let Some(path) = found.and_then(|found| self.paths.at(found.index)) {
            self.paths.report(path, now, &mut self.world, report);
        }
    }

    /// Time passes; timers run when they are due.
    pub fn advance(&mut self, by: Duration) {
        let end = self.world.now + by;
        while let Some((path, at)) = self.next_timer().filter(|(_, at)| *at <= end) {
            self.world.now = self.world.now.max(at);
            self.world.timers.remove(&path);
            let now = self.world.now;
            self.paths.expire(path, now, &mut self.world);
            self.settle();
        }
        self.world.now = self.world.now.max(end);
    }

    pub fn next_timer(&self) -> Option<(PathId, Instant)> {
        self.world.timers.iter().map(|(path, at)| (*path, *at)).min_by_key(|(_, at)| *at)
    }

    pub fn drops(&self, path: PathId, reason: DropReason) -> u32 {
        self.paths.path(path).expect("a live path").state.drops.of(reason)
    }

    /// All frames sent since the last time.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        self.world.gso.clear();
        self.world.over.clear();
        self.world.sent.drain(..).collect()
    }
}

/// Carries frames between two hosts until neither has any more to say.
pub fn exchange(a: &mut Host, b: &mut Host) {
    for _ in 0..1000 {
        let (from_a, from_b) = (a.sent(), b.sent());
        if from_a.is_empty() && from_b.is_empty() {
            return;
        }
        from_a.iter().for_each(|frame| _ = b.arrive(frame));
        from_b.iter().for_each(|frame| _ = a.arrive(frame));
    }
    panic!("the hosts never fall silent");
}
