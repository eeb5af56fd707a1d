//! A host of the benchmarks: the real modules in the graph of a server, paths through them, and around
//! them a world that takes everything and costs next to nothing.

use core::net::{Ipv4Addr, SocketAddrV4};
use silk_instant::Instant;
use silk_modules::arp::Arp;
use silk_modules::{Device, HeaderTemplate, Setup, catalogue};
use silk_path::classify::{Domains, Owned, Tables};
use silk_path::transform::{Measure, Rule};
use silk_path::{
    Attr, Attrs, ByteStream, Checksum, DropReason, Event, Graph, GraphSpec, Incoming, Message, Meta,
    ModuleId, Outcome, Outgoing, PathId, Paths, Port, Request,
};
use silk_wire::MacAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The host that is measured.
pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Its peer.
pub const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// The time, which stands still.
pub const NOW: Instant = Instant::from_millis(1000);
/// Room for headers in front of a message.
pub const HEADROOM: usize = 128;
/// Bytes of payload of the packets that are measured.
pub const PAYLOAD: usize = 64;

/// Which transformation rules paths are created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// None.
    None,
    /// *Header template*.
    Template,
    /// *Measure*.
    Measure,
}

impl Rules {
    /// How they are named in a row.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no rules",
            Self::Template => "header template",
            Self::Measure => "measure",
        }
    }

    fn list(self) -> Vec<Box<dyn Rule>> {
        match self {
            Self::None => Vec::new(),
            Self::Template => vec![Box::new(HeaderTemplate)],
            Self::Measure => vec![Box::new(Measure::default())],
        }
    }
}

/// The ends of the paths: what is sent and delivered is counted and gone.
pub struct World {
    /// Messages sent and delivered.
    pub passed: u64,
    /// Keep what is sent.
    pub watch: bool,
    /// The last message sent while somebody watched.
    pub last: Vec<u8>,
    /// The attributes of the last path that was asked for.
    pub asked: Option<Attrs>,
    began: std::time::Instant,
}

impl World {
    fn new() -> Self {
        let began = std::time::Instant::now();
        Self { passed: 0, watch: false, last: Vec::new(), asked: None, began }
    }
}

impl Port for World {
    fn transmit(&mut self, _: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        self.passed += 1;
        if self.watch {
            self.last.resize(msg.len(), 0);
            msg.copy_to(&mut self.last);
        }
        Ok(())
    }

    fn deliver(&mut self, _: PathId, _: &Message<'_>) -> Result<(), DropReason> {
        self.passed += 1;
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

    fn clock(&mut self) -> Option<Instant> {
        Some(NOW + self.began.elapsed())
    }
}

/// The buffers of a program that reads at once, and writes what it is told to.
pub struct Program {
    incoming: Reading,
    outgoing: Writing,
}

impl Program {
    /// A program with nothing to say, unless somebody adds to the bytes it has written.
    pub fn writing(written: Arc<AtomicUsize>) -> Box<dyn ByteStream> {
        Box::new(Self { incoming: Reading, outgoing: Writing { written, consumed: 0 } })
    }

    /// A program that never writes.
    pub fn silent() -> Box<dyn ByteStream> {
        Self::writing(Arc::default())
    }
}

struct Reading;

struct Writing {
    written: Arc<AtomicUsize>,
    consumed: usize,
}

/// What programs say.
static TEXT: [u8; 65_536] = [7; 65_536];

impl Incoming for Reading {
    fn room(&self) -> usize {
        65_536
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        bytes.len()
    }
}

impl Outgoing for Writing {
    fn len(&self) -> usize {
        self.written.load(Ordering::Relaxed) - self.consumed
    }

    fn peek(&mut self, offset: usize, len: usize) -> [&[u8]; 2] {
        let len = len.min(self.len().saturating_sub(offset)).min(TEXT.len());
        [&TEXT[..len], &[]]
    }

    fn consume(&mut self, n: usize) {
        self.consumed += n;
    }
}

impl ByteStream for Program {
    fn split(&mut self) -> (&mut dyn Incoming, &mut dyn Outgoing) {
        (&mut self.incoming, &mut self.outgoing)
    }
}

/// A host.
pub struct Host {
    /// Its paths.
    pub paths: Paths,
    /// The classifier's tables.
    pub tables: Tables,
    /// What is around them.
    pub world: World,
}

impl Host {
    /// The host that is measured, with its neighbour known.
    pub fn new(rules: Rules) -> Self {
        Self::at(HERE, rules)
    }

    /// A host at one of the two addresses. Its device completes checksums and cuts large messages up.
    pub fn at(here: Ipv4Addr, rules: Rules) -> Self {
        Self::roomy(here, rules, 1 << 16)
    }

    /// The same, with room for about so many paths in its tables.
    pub fn roomy(here: Ipv4Addr, rules: Rules, paths: usize) -> Self {
        let tables = Tables::with_room(paths, 0x5eed);
        tables.configure(Owned::default(), Domains::default(), &[], &[here]).expect("one address fits");
        let mut setup = Setup::new(tables.clone());
        setup.standing = silk_modules::Standing::of(&[(here.into(), 24)], None);
        setup.devices = vec![Device { checksum_offload: true, gso: 65_000, ..Device::default() }];
        let graph = Graph::build(&graph(), &catalogue(setup)).expect("the graph is a good one");
        let paths = Paths::new(graph, rules.list());
        let mut host = Self { paths, tables, world: World::new() };
        for address in [HERE, THERE].into_iter().filter(|address| *address != here) {
            neighbour(&mut host, address);
        }
        host
    }

    /// The module of this name.
    pub fn module(&self, name: &str) -> ModuleId {
        self.paths.graph().modules().find(name).expect("the graph has it")
    }

    /// Creates a path from the module of this name.
    pub fn create(&mut self, top: ModuleId, attrs: Attrs, stream: Option<Box<dyn ByteStream>>) -> PathId {
        self.paths.create(top, attrs, stream, NOW, &mut self.world).expect("nothing is in its way")
    }

    /// Destroys a path.
    pub fn destroy(&mut self, path: PathId) {
        self.paths.destroy(path, NOW, &mut self.world).expect("it was alive");
    }

    /// A frame arrives for a path.
    pub fn arrive(&mut self, path: PathId, frame: &[u8]) -> Outcome {
        let mut buffer = vec![0; HEADROOM + frame.len()];
        buffer[HEADROOM..].copy_from_slice(frame);
        self.arrive_in_place(path, &mut buffer)
    }

    /// A frame arrives for a path, in `buffer` behind its headroom. Its checksum may be partial, as it is
    /// on a veth.
    pub fn arrive_in_place(&mut self, path: PathId, buffer: &mut [u8]) -> Outcome {
        let meta = Meta { checksum: Checksum::MaybePartial, ..Meta::default() };
        let end = buffer.len();
        self.paths.up(path, NOW, &mut self.world, &mut Message::new(buffer, HEADROOM, end, meta))
    }
}

/// Lets a host know a neighbour. All stations have the same hardware address: nothing here looks at it twice.
pub fn neighbour(host: &mut Host, address: Ipv4Addr) {
    let arp = host.paths.module_mut::<Arp>().expect("the graph has it");
    arp.learn(NOW, (0, address), Some(MacAddr(Device::default().address)), &mut host.world);
}

/// A path to the peer from this port of ours.
pub fn between(port: u16) -> Attrs {
    let (local, remote) = (SocketAddrV4::new(HERE, port), SocketAddrV4::new(THERE, 9));
    Attrs::new().with(Attr::Local(local.into())).with(Attr::Remote(remote.into()))
}

fn graph() -> GraphSpec {
    GraphSpec::default()
        .module("net", "vnet", &[])
        .module("eth", "eth", &[])
        .module("arp", "arp", &[])
        .module("ip", "ip", &[])
        .module("udp", "udp", &[])
        .module("tcp", "tcp", &[])
        .module("socket", "socket", &[])
        .link("eth.down", "net.up")
        .link("arp.down", "eth.up")
        .link("ip.down", "eth.up")
        .link("ip.res", "arp.res")
        .link("udp.down", "ip.up")
        .link("tcp.down", "ip.up")
        .link("socket.net", "udp.up")
        .link("socket.stream", "tcp.up")
}
