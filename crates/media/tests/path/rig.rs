//! A path from device to display in memory, in the time that a test says it is, with a decoder that keeps what it is
//! given.

use silk_instant::Instant;
use silk_media::{
    Blank, Coding, Dark, DecodeError, Decoded, Decoder, Decoders, DisplayStage, Library, MpegStage, Picture,
    Screens, Shown, Unit, Wish,
};
use silk_modules::mflow::{Figures, MflowStage};
use silk_modules::rtp::{Counts, RtpStage};
use silk_modules::{Device, Setup};
use silk_path::classify::{Belongs, Between, Domains, Found, Owned, Protocol, Tables};
use silk_path::transform::Rule;
use silk_path::{
    Attr, Attrs, Bell, Checksum, DropReason, Drops, Endpoint, Event, Graph, GraphSpec, Message, Meta, PathId,
    Paths, Port, Request, Value,
};
use silk_wire::checksum::{Sum, pseudo};
use silk_wire::udp;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THEIRS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PORT: u16 = 5544;
/// Room for headers in front of a frame.
const HEADROOM: usize = 64;
/// ETH and IP.
pub const BELOW: usize = 34;

/// What a decoder was given: bytes, stamp, first, last, gap.
type Given = Arc<Mutex<Vec<(Vec<u8>, u32, bool, bool, bool)>>>;

/// A decoder that keeps what it is given, and may offer room for it.
#[derive(Clone)]
struct Keeper {
    given: Given,
    room: Option<Vec<u8>>,
    // Units that were copied into the room.
    copied: Arc<AtomicUsize>,
    // What it was opened for.
    opened: Arc<Mutex<Vec<Coding>>>,
    // Bytes of its own.
    own: Arc<AtomicU64>,
}

impl Decoder for Keeper {
    fn decode(&mut self, unit: Unit<'_>, shown: &mut dyn FnMut(Box<dyn Picture>)) -> Result<(), DecodeError> {
        let Unit { bytes, stamp, first, last, gap } = unit;
        self.given.lock().unwrap().push((bytes.to_vec(), stamp, first, last, gap));
        if last {
            shown(Box::new(Blank { stamp, size: (16, 16) }));
        }
        Ok(())
    }

    fn room(&mut self, unit: &Unit<'_>) -> Option<&mut [u8]> {
        let room = self.room.as_mut()?;
        room.clear();
        room.resize(unit.bytes.len(), 0xaa);
        Some(room)
    }

    fn decode_copied(
        &mut self,
        unit: Unit<'_>,
        shown: &mut dyn FnMut(Box<dyn Picture>),
    ) -> Result<(), DecodeError> {
        let copied = self.room.clone().unwrap();
        assert_eq!(copied, unit.bytes);
        self.copied.fetch_add(1, Relaxed);
        self.decode(unit, shown)
    }

    fn finish(&mut self, _: &mut dyn FnMut(Box<dyn Picture>)) {}

    fn memory(&self) -> u64 {
        self.own.load(Relaxed)
    }
}

impl Decoders for Keeper {
    fn open(&mut self, coding: Coding) -> Result<Box<dyn Decoder>, DecodeError> {
        self.opened.lock().unwrap().push(coding);
        Ok(Box::new(self.clone()))
    }
}

impl Library for Keeper {
    fn decoders(&self) -> Box<dyn Decoders> {
        Box::new(self.clone())
    }

    fn screens(&self) -> Box<dyn Screens> {
        Box::new(Dark)
    }
}

/// What a path causes.
#[derive(Default)]
struct Outside {
    now: Instant,
    sent: Vec<Vec<u8>>,
    events: Vec<Event>,
    due: Option<Instant>,
}

impl Port for Outside {
    fn transmit(&mut self, _: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        let mut frame = vec![0; msg.len()];
        msg.copy_to(&mut frame).unwrap();
        self.sent.push(frame);
        Ok(())
    }

    fn deliver(&mut self, _: PathId, _: &Message<'_>) -> Result<(), DropReason> {
        Err(DropReason::NoReceiver)
    }

    fn arm(&mut self, _: PathId, at: Instant) {
        self.due = Some(at).filter(|at| *at != Instant::FAR);
    }

    fn event(&mut self, _: PathId, event: Event) {
        self.events.push(event);
    }

    fn request(&mut self, _: Request) {}

    fn random(&mut self) -> u64 {
        7
    }

    fn clock(&mut self) -> Option<Instant> {
        Some(self.now)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    Mflow,
    Rtp,
}

impl Carrier {
    fn name(self) -> &'static str {
        if self == Self::Mflow { "mflow" } else { "rtp" }
    }
}

/// A path from device to display.
pub struct Player {
    paths: Paths,
    tables: Tables,
    outside: Outside,
    path: PathId,
    given: Given,
    /// Units that were copied into the decoder's room.
    pub copied: Arc<AtomicUsize>,
    /// What decoders were opened for.
    pub opened: Arc<Mutex<Vec<Coding>>>,
    /// Bytes that the decoder has of its own.
    pub own: Arc<AtomicU64>,
}

/// All that anybody could see of it.
#[derive(Debug, PartialEq)]
pub struct State {
    pub drops: Drops,
    pub mflow: Option<Figures>,
    pub rtp: Option<(Counts, Option<(u32, Endpoint)>)>,
    pub decoded: Decoded,
    pub shown: Shown,
    pub given: Vec<(Vec<u8>, u32, bool, bool, bool)>,
    pub sent: Vec<Vec<u8>>,
    pub events: Vec<Event>,
    pub due: Option<Instant>,
    pub flow: Option<Found>,
}

impl Player {
    /// One of whose pictures each second is shown.
    pub fn new(carrier: Carrier, rules: Vec<Box<dyn Rule>>, offers_room: bool) -> Self {
        Self::wishing(Wish { every: 2, ..Wish::default() }, carrier, rules, offers_room)
    }

    /// One that shows what is wished.
    pub fn wishing(wish: Wish, carrier: Carrier, rules: Vec<Box<dyn Rule>>, offers_room: bool) -> Self {
        let tables = Tables::with_room(64, 0x5eed);
        let owned = Owned { arp: true, icmp: true, fragments: true };
        tables.configure(owned, Domains::default(), &[], &[OURS]).unwrap();
        let mut setup = Setup::new(tables.clone());
        setup.standing = silk_modules::Standing::of(&[(OURS.into(), 24)], None);
        setup.devices = vec![Device::default()];
        setup.neighbours_told = true;
        let given = Given::default();
        let copied = Arc::<AtomicUsize>::default();
        let opened = Arc::<Mutex<Vec<Coding>>>::default();
        let own = Arc::<AtomicU64>::default();
        let keeper = Keeper {
            given: given.clone(),
            room: offers_room.then(Vec::new),
            copied: copied.clone(),
            opened: opened.clone(),
            own: own.clone(),
        };
        let kinds = silk_media::catalogue(silk_modules::catalogue(setup), keeper);
        let graph = Graph::build(&graph(carrier), &kinds).unwrap();
        let mut paths = Paths::new(graph, rules);
        let mut outside = Outside::default();
        let top = paths.graph().modules().find("display").unwrap();
        let wish = Wish { ticks: carrier == Carrier::Rtp, ..wish };
        let attrs = Attrs::new().with(Attr::Local(Endpoint::v4(OURS, PORT)));
        let path = paths.create(top, wish.add_to(attrs), None, Instant::ZERO, &mut outside).unwrap();
        Self { paths, tables, outside, path, given, copied, opened, own }
    }

    /// From now on the path may have so many bytes more.
    pub fn limit_memory(&mut self, more: u64) {
        let account = &mut self.paths.path_mut(self.path).unwrap().state.account;
        account.set_memory_limit(account.memory() + more);
    }

    /// A frame comes from the device.
    pub fn arrives(&mut self, frame: &[u8], checksum: Checksum) {
        let belongs = self.tables.classify(frame);
        if let Belongs::Discard { .. } | Belongs::Refuse { .. } | Belongs::Pass = belongs {
            return;
        }
        let Some(path) = self.paths.target(frame, belongs) else { return };
        let mut buffer = vec![0; HEADROOM];
        buffer.extend_from_slice(frame);
        let (end, now) = (buffer.len(), self.outside.now);
        let meta = Meta { checksum, arrival: now, ..Meta::default() };
        let _ =
            self.paths.up(path, now, &mut self.outside, &mut Message::new(&mut buffer, HEADROOM, end, meta));
        self.paths.bell(self.path, now, &mut self.outside, Bell::Read);
    }

    /// So much time passes.
    pub fn passes(&mut self, time: Duration) {
        let end = self.outside.now + time;
        while let Some(due) = self.outside.due.filter(|due| *due <= end) {
            self.outside.now = self.outside.now.max(due);
            let now = self.outside.now;
            self.outside.due = None;
            self.paths.expire(self.path, now, &mut self.outside);
        }
        self.outside.now = end;
    }

    /// What anybody could see.
    pub fn state(&self) -> State {
        let path = self.paths.path(self.path).unwrap();
        let (local, remote) = (Endpoint::v4(OURS, PORT), Endpoint::v4(THEIRS, 6000));
        State {
            drops: path.state.drops.clone(),
            mflow: path.stage::<MflowStage>().map(MflowStage::figures),
            rtp: path.stage::<RtpStage>().map(|stage| (stage.counts(), stage.sender())),
            decoded: path.stage::<MpegStage>().unwrap().decoded(),
            shown: path.stage::<DisplayStage>().unwrap().counts(),
            given: self.given.lock().unwrap().clone(),
            sent: self.outside.sent.clone(),
            events: self.outside.events.clone(),
            due: self.outside.due,
            flow: self.tables.flows.lookup(&Between { protocol: Protocol::Udp, local, remote }),
        }
    }
}

fn graph(carrier: Carrier) -> GraphSpec {
    GraphSpec::default()
        .module("net", "vnet", &[])
        .module("eth", "eth", &[])
        .module("arp", "arp", &[("told", Value::Flag(true))])
        .module("ip", "ip", &[])
        .module("udp", "udp", &[])
        .module("carrier", carrier.name(), &[])
        .module("mpeg", "mpeg", &[])
        .module("display", "display", &[])
        .link("eth.down", "net.up")
        .link("arp.down", "eth.up")
        .link("ip.down", "eth.up")
        .link("ip.res", "arp.res")
        .link("udp.down", "ip.up")
        .link("carrier.down", "udp.up")
        .link("mpeg.down", "carrier.up")
        .link("display.down", "mpeg.up")
}

/// A frame with a datagram from `source`, its checksum right.
pub fn frame(source: u16, data: &[u8]) -> Vec<u8> {
    let total = (data.len() + 28) as u16;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(THEIRS.octets());
    frame.extend(OURS.octets());
    let sum = Sum::ZERO.bytes(&frame[14..BELOW]).checksum();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.resize(BELOW + udp::HEADER, 0);
    frame.extend(data);
    udp::emit(source, PORT, data.len() as u16, 0, &mut frame[BELOW..]);
    let whole = pseudo(THEIRS, OURS, 17, data.len() as u16 + 8).bytes(&frame[BELOW..]);
    let at = BELOW + udp::CHECKSUM;
    frame[at..at + 2].copy_from_slice(&udp::seal(whole).to_be_bytes());
    frame
}
