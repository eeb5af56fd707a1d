//! What does a path cost? Creation and destruction, a packet up, a packet up and down again,
//! each with and without transformation rules, and the classifier's hit and miss with few and
//! with a million flows. Unit: nanoseconds per operation; the best and the median of several
//! runs (the best is what the code costs, the median what the machine made of it); one line of
//! JSON per figure. Peers: SILK's Table 1 (2002: create 41.5 µs, destroy 12.3 µs,
//! demultiplexing 1.8 µs).
//!
//! `cargo run --release -p silk-modules --example path_costs` (with `-- lives`, for a profiler,
//! only creation and destruction, for a while)

use core::hint::black_box;
use core::net::{Ipv4Addr, SocketAddrV4};
use silk_instant::Instant;
use silk_modules::arp::Arp;
use silk_modules::{Device, HeaderTemplate, Setup, catalogue};
use silk_path::classify::{Domains, Flow, Flows, Found, Owned, Protocol, Tables};
use silk_path::transform::Rule;
use silk_path::{
    Attr, Attrs, ByteStream, Checksum, DropReason, Event, Graph, GraphSpec, Incoming, Message, Meta,
    ModuleId, Outcome, Outgoing, PathId, Paths, Port, Request,
};
use silk_wire::{MacAddr, checksum, eth, ipv4, udp};

const RUNS: usize = 201;
const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const NOW: Instant = Instant::from_millis(1000);

/// The least a port can do.
#[derive(Default)]
struct Nowhere {
    bytes: usize,
    // What left last, where somebody wants to see it.
    watch: bool,
    last: Vec<u8>,
    asked: Option<Attrs>,
}

impl Port for Nowhere {
    fn transmit(&mut self, _: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        self.bytes += msg.len();
        if self.watch {
            self.last.resize(msg.len(), 0);
            msg.copy_to(&mut self.last);
        }
        Ok(())
    }
    fn deliver(&mut self, _: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        self.bytes += msg.len();
        Ok(())
    }
    fn arm(&mut self, _: PathId, _: Instant) {}
    fn event(&mut self, _: PathId, _: Event) {}
    fn request(&mut self, request: Request) {
        if let Request::Create { attrs, .. } = request {
            self.asked = Some(attrs);
        }
    }
    fn random(&mut self) -> u64 {
        4
    }
}

/// Buffers of a program that reads at once and has nothing to say.
#[derive(Default)]
struct Idle {
    incoming: Sink,
    outgoing: Nothing,
}

#[derive(Default)]
struct Sink;
#[derive(Default)]
struct Nothing;

impl Incoming for Sink {
    fn room(&self) -> usize {
        65_536
    }
    fn write(&mut self, bytes: &[u8]) -> usize {
        bytes.len()
    }
}

impl Outgoing for Nothing {
    fn len(&self) -> usize {
        0
    }
    fn peek(&self, _: usize, _: usize) -> [&[u8]; 2] {
        [&[], &[]]
    }
    fn consume(&mut self, _: usize) {}
}

impl ByteStream for Idle {
    fn split(&mut self) -> (&mut dyn Incoming, &mut dyn Outgoing) {
        (&mut self.incoming, &mut self.outgoing)
    }
}

fn graph() -> GraphSpec {
    GraphSpec::default()
        .module("net", "vnet", &[])
        .module("eth", "eth", &[])
        .module("arp", "arp", &[])
        .module("ip", "ip", &[])
        .module("udp", "udp", &[])
        .module("tcp", "tcp", &[])
        .module("echo", "echo", &[])
        .module("socket", "socket", &[])
        .link("eth.down", "net.up")
        .link("arp.down", "eth.up")
        .link("ip.down", "eth.up")
        .link("ip.res", "arp.res")
        .link("udp.down", "ip.up")
        .link("tcp.down", "ip.up")
        .link("echo.down", "udp.up")
        .link("socket.net", "udp.up")
        .link("socket.stream", "tcp.up")
}

struct Rig {
    paths: Paths,
    tables: Tables,
    port: Nowhere,
}

impl Rig {
    fn new(template: bool) -> Self {
        Self::at(HERE, template)
    }

    /// A host at one of the two addresses; it knows the other's.
    fn at(here: Ipv4Addr, template: bool) -> Self {
        let tables = Tables::with_room(1 << 16, 0x5eed);
        tables.configure(Owned::default(), Domains::default(), &[], &[here]).expect("few");
        let mut setup = Setup::new(tables.clone());
        setup.addresses = vec![(here, 24)];
        setup.devices = vec![Device { checksum_offload: true, gso: 65_000, ..Device::default() }];
        let graph = Graph::build(&graph(), &catalogue(setup)).expect("a good graph");
        let rules: Vec<Box<dyn Rule>> = if template { vec![Box::new(HeaderTemplate)] } else { Vec::new() };
        let mut rig = Self { paths: Paths::new(graph, rules), tables, port: Nowhere::default() };
        let arp = rig.paths.module_mut::<Arp>().expect("in the graph");
        // Both stations have the same address: nothing here looks at it twice.
        for address in [HERE, THERE].into_iter().filter(|address| *address != here) {
            arp.learn(NOW, address, Some(MacAddr(Device::default().address)), &mut rig.port);
        }
        rig
    }

    fn module(&self, name: &str) -> ModuleId {
        self.paths.graph().modules().find(name).expect("in the graph")
    }

    fn arrive(&mut self, path: PathId, frame: &[u8]) -> Outcome {
        let mut buffer = [0; 256];
        let end = HEADROOM + frame.len();
        buffer[HEADROOM..end].copy_from_slice(frame);
        let meta = Meta { checksum: Checksum::MaybePartial, ..Meta::default() };
        let mut msg = Message::new(&mut buffer, HEADROOM, end, meta);
        self.paths.up(path, NOW, &mut self.port, &mut msg)
    }

    fn create(&mut self, top: ModuleId, attrs: Attrs, stream: Option<Box<dyn ByteStream>>) -> PathId {
        self.paths.create(top, attrs, stream, NOW, &mut self.port).expect("nothing in its way")
    }
}

fn attrs(port: u16) -> Attrs {
    Attrs::new()
        .with(Attr::Local(SocketAddrV4::new(HERE, port)))
        .with(Attr::Remote(SocketAddrV4::new(THERE, 9)))
}

/// Nanoseconds per call of `work`, `count` calls in short runs so that a busy machine leaves
/// some of them alone: the best and the median run.
fn nanos(count: usize, mut work: impl FnMut(usize)) -> [f64; 2] {
    let each = (count / RUNS).max(1);
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|run| {
            let start = std::time::Instant::now();
            (run * each..(run + 1) * each).for_each(&mut work);
            start.elapsed().as_nanos() as f64 / each as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    [runs[0], runs[RUNS / 2]]
}

fn say(what: &str, [best, median]: [f64; 2]) {
    println!("{{\"what\": \"{what}\", \"best_ns\": {best:.1}, \"median_ns\": {median:.1}}}");
}

fn lives(template: bool) {
    let name = if template { "with" } else { "without" };
    let mut rig = Rig::new(template);
    let (echo, socket) = (rig.module("echo"), rig.module("socket"));
    let ns = nanos(200_000, |_| {
        let path = rig.create(echo, attrs(5000), None);
        rig.paths.destroy(path, NOW, &mut rig.port).expect("live");
    });
    say(&format!("udp path (4 stages) create + destroy, {name} template"), ns);
    let ns = nanos(200_000, |_| {
        let path = rig.create(socket, attrs(5000).with(Attr::ProtId(6)), Some(Box::new(Idle::default())));
        rig.paths.destroy(path, NOW, &mut rig.port).expect("live");
    });
    say(&format!("tcp path (4 stages) create, SYN sent, destroy, {name} template"), ns);
    let before = rig.paths.classes.of(0).memory();
    let path = rig.create(socket, attrs(5000).with(Attr::ProtId(6)), Some(Box::new(Idle::default())));
    let bytes = rig.paths.classes.of(0).memory() - before;
    println!("{{\"what\": \"bytes of a tcp path and its stages, {name} template\", \"bytes\": {bytes}}}");
    rig.paths.destroy(path, NOW, &mut rig.port).expect("live");
}

/// A connection that a listening path accepts. The time stands still and the secrets are
/// fixed, so the peer's two segments are the same every time.
fn accepted(template: bool) {
    let name = if template { "with" } else { "without" };
    let (mut server, mut client) = (Rig::at(HERE, template), Rig::at(THERE, false));
    let (socket, tcp) = (server.module("socket"), server.module("tcp"));
    server.create(tcp, Attrs::new().with(Attr::Listen(true)), None);
    let local = SocketAddrV4::new(HERE, 80);
    let listener = Attrs::new().with(Attr::ProtId(6)).with(Attr::Listen(true)).with(Attr::Local(local));
    let listener = server.create(socket, listener, None);
    let opened = Attrs::new()
        .with(Attr::ProtId(6))
        .with(Attr::Local(SocketAddrV4::new(THERE, 5000)))
        .with(Attr::Remote(local));
    (server.port.watch, client.port.watch) = (true, true);
    let path = client.create(socket, opened, Some(Box::new(Idle::default())));
    let syn = client.port.last.clone();
    assert_eq!(server.arrive(listener, &syn), Outcome::Done);
    let answer = server.port.last.clone();
    assert_eq!(client.arrive(path, &answer), Outcome::Done);
    let ack = client.port.last.clone();
    server.port.watch = false;
    // Once to get it out of the half-open table, as every round does.
    let mut creation = Vec::new();
    let whole = nanos(100_000, |_| {
        server.arrive(listener, &syn);
        assert_eq!(server.arrive(listener, &ack), Outcome::Handoff);
        let attrs = server.port.asked.take().expect("a path was asked for");
        let start = std::time::Instant::now();
        let path = server.create(socket, attrs, Some(Box::new(Idle::default())));
        let made = start.elapsed();
        server.arrive(path, &ack);
        let end = std::time::Instant::now();
        server.paths.destroy(path, NOW, &mut server.port).expect("live");
        creation.push((made + end.elapsed()).as_nanos() as f64);
    });
    say(&format!("tcp connection accepted: SYN, SYN-ACK, ACK, path, destroy, {name} template"), whole);
    creation.sort_by(f64::total_cmp);
    let figures = [creation[creation.len() / 100], creation[creation.len() / 2]];
    say(&format!("of that, path create + destroy (two clock readings included), {name} template"), figures);
}

fn packets(template: bool) {
    let name = if template { "with" } else { "without" };
    let mut rig = Rig::new(template);
    let (echo, socket) = (rig.module("echo"), rig.module("socket"));
    let path = rig.create(socket, attrs(5001), None);
    let mut buffer = frame(5001);
    let ns = nanos(1_000_000, |_| {
        let mut msg = Message::new(black_box(&mut buffer), HEADROOM, HEADROOM + FRAME, Meta::default());
        rig.paths.up(path, NOW, &mut rig.port, &mut msg);
    });
    say(&format!("udp packet of 64 bytes up to the program, {name} template"), ns);
    let path = rig.create(echo, attrs(5002), None);
    let original = frame(5002);
    let ns = nanos(1_000_000, |_| {
        let mut buffer = original;
        let mut msg = Message::new(black_box(&mut buffer), HEADROOM, HEADROOM + FRAME, Meta::default());
        rig.paths.up(path, NOW, &mut rig.port, &mut msg);
    });
    say(&format!("udp packet of 64 bytes echoed, {name} template"), ns);
    assert_eq!(rig.paths.path(path).expect("live").state.drops.total(), 0);
}

const HEADROOM: usize = 128;
const FRAME: usize = eth::HEADER + ipv4::HEADER + udp::HEADER + 64;

/// A datagram of 64 bytes from the peer.
fn frame(port: u16) -> [u8; HEADROOM + FRAME] {
    let mut buffer = [7; HEADROOM + FRAME];
    let bytes = &mut buffer[HEADROOM..];
    eth::Header::new(MacAddr(Device::default().address), MacAddr([2, 0, 0, 0, 0, 2]), eth::IPV4).emit(bytes);
    let ip = ipv4::Emit {
        protocol: ipv4::UDP,
        source: THERE,
        destination: HERE,
        payload_len: (udp::HEADER + 64) as u16,
        ..Default::default()
    };
    ip.emit(&mut bytes[eth::HEADER..]);
    let datagram = &mut bytes[eth::HEADER + ipv4::HEADER..];
    udp::emit(9, port, 64, 0, datagram);
    let sum = checksum::pseudo(THERE, HERE, ipv4::UDP, datagram.len() as u16).bytes(datagram);
    datagram[udp::CHECKSUM..udp::HEADER].copy_from_slice(&udp::seal(sum).to_be_bytes());
    buffer
}

fn flow(n: u32) -> Flow {
    Flow {
        protocol: Protocol::Tcp,
        local: SocketAddrV4::new(HERE, 80),
        remote: SocketAddrV4::new(Ipv4Addr::from(0x0a01_0000 + (n >> 14)), (n & 0x3fff) as u16 + 1024),
    }
}

fn classifier(count: u32) {
    let flows = Flows::with_room(count as usize, 0x5eed_5eed);
    for n in 0..count {
        flows.insert(&flow(n), Found { domain: 0, index: n }).expect("room at half load");
    }
    // In an order that no prefetcher guesses.
    let shuffled: Vec<Flow> = (0..1u32 << 20)
        .map(|n| flow(((u64::from(n.wrapping_mul(2_654_435_761)) * u64::from(count)) >> 32) as u32))
        .collect();
    let strangers: Vec<Flow> =
        shuffled.iter().map(|f| Flow { local: SocketAddrV4::new(HERE, 81), ..*f }).collect();
    let ns = nanos(shuffled.len(), |n| assert!(black_box(flows.lookup(&shuffled[n])).is_some()));
    say(&format!("classifier hit, {count} paths"), ns);
    let ns = nanos(strangers.len(), |n| assert!(black_box(flows.lookup(&strangers[n])).is_none()));
    say(&format!("classifier miss, {count} paths"), ns);
    let mut found = vec![None; 64];
    let ns = nanos(shuffled.len() / 64, |n| {
        flows.lookup_batch(&shuffled[n * 64..][..64], &mut found);
        assert!(black_box(&found).iter().all(Option::is_some));
    });
    say(&format!("classifier hit in a batch of 64, {count} paths"), ns.map(|ns| ns / 64.0));
}

fn many() {
    let mut rig = Rig::new(false);
    let socket = rig.module("socket");
    let before = rig.paths.classes.of(0).memory();
    let paths: Vec<PathId> = (0..60_000).map(|n| rig.create(socket, attrs(1000 + n), None)).collect();
    let each = (rig.paths.classes.of(0).memory() - before) / paths.len() as u64;
    println!("{{\"what\": \"bytes of a udp path and its stages, 60000 paths\", \"bytes\": {each}}}");
    for path in paths {
        rig.paths.destroy(path, NOW, &mut rig.port).expect("live");
    }
    assert_eq!((rig.paths.classes.of(0).memory(), rig.tables.flows.count()), (before, 0));
}

fn main() {
    if std::env::args().any(|argument| argument == "lives") {
        // For a profiler: nothing but paths that come and go.
        (0..20).for_each(|_| lives(false));
        return;
    }
    for template in [false, true] {
        lives(template);
        accepted(template);
        packets(template);
    }
    for count in [10, 10_000, 1_000_000] {
        classifier(count);
    }
    many();
}
