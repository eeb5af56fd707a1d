//! An appliance on the memory link in virtual time, with sources that always have the next packet
//! ready where the path has room for it: an ideal MFLOW.

use silk_appliance::{Appliance, Clock, Parts, Virtual};
use silk_device::{End, Offload, link};
use silk_instant::Instant;
use silk_media::{
    Blank, Coding, DecodeError, Decoder, Decoders, DisplayStage, Library, Picture, Rate, Screen, Screens,
    Shown, Unit, Wish,
};
use silk_modules::{Device, Setup, catalogue};
use silk_path::classify::{Domains, Owned, Tables};
use silk_path::service::{NET, Service};
use silk_path::transform::Measure;
use silk_path::{
    Attr, Attrs, BadParameter, Catalogue, Create, CreateError, Cx, DropReason, Endpoint, Framing, Graph,
    GraphSpec, Kind, Message, Module, ModuleSpec, Next, PathId, Paths, Route, Stage, Step, Value, Verdict,
    Wakeup,
};
use silk_sched::{Policy, Terms};
use silk_wire::checksum::Sum;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THEIRS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const FIRST_PORT: u16 = 6000;
/// Packets that may wait for a path.
const INPUT: u16 = 16;

/// A film as the experiment needs it.
#[derive(Clone, Copy)]
pub struct Film {
    pub pictures: u32,
    /// Thousandths of a picture a second.
    pub rate: u32,
    /// The most pictures in its output queue.
    pub queue: usize,
    /// Packets of each picture.
    pub packets: u32,
    /// What decoding a picture costs, on average.
    pub cost_ns: u64,
}

struct Playing {
    film: Film,
    path: PathId,
    port: u16,
    /// Packets sent.
    sent: u32,
}

/// Which picture was shown when.
pub type Seen = Arc<Mutex<Vec<(u32, Instant)>>>;

/// The appliance with its sources.
pub struct Theatre {
    pub appliance: Appliance,
    clock: Virtual,
    source: End,
    playing: Vec<Playing>,
    pub seen: Seen,
}

impl Theatre {
    pub fn new(policy: Box<dyn Policy + Send>, clock: Virtual) -> Self {
        Self::with_screens(policy, clock, Duration::ZERO)
    }

    /// As [`Self::new`], with screens that take so long for each picture.
    pub fn with_screens(policy: Box<dyn Policy + Send>, clock: Virtual, showing: Duration) -> Self {
        let seen = Seen::default();
        let (end, source) = link::pair(&link::Options::default()).unwrap();
        let tables = Tables::with_room(1024, 0x5eed);
        let owned = Owned { arp: true, icmp: true, fragments: true };
        tables.configure(owned, Domains::default(), &[], &[OURS]).unwrap();
        let mut setup = Setup::new(tables.clone());
        setup.standing = silk_modules::Standing::of(&[(OURS.into(), 24)], None);
        setup.neighbours_told = true;
        setup.devices = vec![Device::default()];
        let kinds = silk_media::catalogue(
            Kinds::new(catalogue(setup)),
            Recorded(clock.clone(), seen.clone(), showing),
        );
        let graph = Graph::build(&graph(), &kinds).unwrap();
        let (paths, mut seed) = (Paths::new(graph, vec![Box::new(Measure::default())]), 7u64);
        let random = Box::new(move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            seed
        });
        let appliance =
            Appliance::new(Parts { paths, end, policy, tables, clock: Box::new(clock.clone()), random });
        Self { appliance, clock, source, playing: Vec::new(), seen }
    }

    /// Begins to play a film.
    pub fn play(&mut self, film: Film, wakeup: Wakeup) -> PathId {
        let port = FIRST_PORT + self.playing.len() as u16;
        let modules = self.appliance.paths().graph().modules();
        let route: Vec<_> =
            ["display", "mpeg", "numbers"].iter().map(|name| modules.find(name).unwrap()).collect();
        let wish = Wish {
            playing: silk_media::Playing::At(Rate::from_millis(film.rate).unwrap()),
            queue: film.queue,
            ..Wish::default()
        };
        let attrs = Attrs::new()
            .with(Attr::PathName(Route::new(&route).unwrap()))
            .with(Attr::Local(Endpoint::v4(OURS, port)))
            .with(Attr::Remote(Endpoint::v4(THEIRS, port)))
            .with(Attr::InputQueue(INPUT));
        let path =
            self.appliance.create(route[0], wish.add_to(attrs), Terms::default(), Some(wakeup)).unwrap();
        self.playing.push(Playing { film, path, port, sent: 0 });
        path
    }

    /// Plays until every film is over.
    pub fn run(&mut self) {
        let end = Instant::from_millis(200_000);
        while self.clock.now() < end && !self.is_over() {
            self.feed();
            if self.appliance.turn() {
                continue;
            }
            self.clock.reach(self.appliance.due().unwrap_or(end));
        }
    }

    /// A packet arrives from the network.
    pub fn arrives(&mut self, packet: &[u8]) {
        self.source.transmit.send(packet, [&[], &[]], Offload::NONE);
        self.source.transmit.flush();
    }

    /// Does what there is to do until `until`.
    pub fn run_until(&mut self, until: Instant) {
        while self.clock.now() < until {
            if !self.appliance.turn() {
                self.clock.reach(self.appliance.due().map_or(until, |due| due.min(until)));
            }
        }
    }

    /// The packets of a film's picture, as its source sends them.
    pub fn picture(film: Film, number: u32) -> Vec<Vec<u8>> {
        let packets = number * film.packets..(number + 1) * film.packets;
        packets.map(|sent| packet(film, FIRST_PORT, sent)).collect()
    }

    fn is_over(&self) -> bool {
        self.playing.iter().all(|playing| {
            let shown = self.shown(playing.path);
            shown.shown + shown.missed >= playing.film.pictures.into()
        })
    }

    pub fn shown(&self, path: PathId) -> Shown {
        let path = self.appliance.paths().path(path).unwrap();
        path.stage::<DisplayStage>().unwrap().counts()
    }

    /// Each source sends what its path has room for.
    fn feed(&mut self) {
        for playing in &mut self.playing {
            let waiting = self.appliance.paths().path(playing.path).unwrap().input.len();
            // All that was sent has arrived: the appliance receives at every turn.
            let all = playing.film.pictures * playing.film.packets;
            for _ in waiting..usize::from(INPUT).min(waiting + 1) {
                if playing.sent < all {
                    let packet = packet(playing.film, playing.port, playing.sent);
                    self.source.transmit.send(&packet, [&[], &[]], Offload::NONE);
                    playing.sent += 1;
                }
            }
        }
        self.source.transmit.flush();
    }
}

/// The next packet of a film: Ethernet, IP, UDP, and the number and place of the picture.
fn packet(film: Film, port: u16, sent: u32) -> Vec<u8> {
    let (number, place) = (sent / film.packets, sent % film.packets);
    let mut payload = number.to_be_bytes().to_vec();
    payload.extend([u8::from(place == 0), u8::from(place + 1 == film.packets)]);
    // I pictures cost half as much again as the mean, B pictures less (a group of 15).
    let weight: u64 = match number % 15 {
        0 => 150,
        n if n % 3 == 0 => 110,
        _ => 92,
    };
    let mean = (150 + 4 * 110 + 10 * 92) / 15;
    let cost = film.cost_ns * weight / mean / u64::from(film.packets);
    payload.extend(cost.to_be_bytes());
    let (length, total) = (payload.len() as u16 + 8, payload.len() as u16 + 28);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(THEIRS.octets());
    frame.extend(OURS.octets());
    let sum = Sum::ZERO.bytes(&frame[14..34]).checksum();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend(length.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

fn graph() -> GraphSpec {
    GraphSpec::default()
        .module("net", "vnet", &[])
        .module("eth", "eth", &[])
        .module("arp", "arp", &[("told", Value::Flag(true))])
        .module("ip", "ip", &[])
        .module("udp", "udp", &[])
        .module("numbers", "numbers", &[])
        .module("mpeg", "mpeg", &[])
        .module("display", "display", &[])
        .link("eth.down", "net.up")
        .link("arp.down", "eth.up")
        .link("ip.down", "eth.up")
        .link("ip.res", "arp.res")
        .link("udp.down", "ip.up")
        .link("numbers.down", "udp.up")
        .link("mpeg.down", "numbers.up")
        .link("display.down", "mpeg.up")
}

/// The kinds of modules of the network, and the numbers of pictures.
struct Kinds<C> {
    network: C,
    kinds: Vec<Kind>,
}

impl<C: Catalogue> Kinds<C> {
    fn new(network: C) -> Self {
        let mut kinds = network.kinds().to_vec();
        kinds.push(Kind { name: "numbers", services: NUMBERS, parameters: &[] });
        Self { network, kinds }
    }
}

impl<C: Catalogue> Catalogue for Kinds<C> {
    fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    fn make(&self, spec: &ModuleSpec) -> Result<Box<dyn Module>, BadParameter> {
        if spec.kind == "numbers" { Ok(Box::new(Numbers)) } else { self.network.make(spec) }
    }
}

impl Library for Recorded {
    fn decoders(&self) -> Box<dyn Decoders> {
        Box::new(self.again())
    }

    fn screens(&self) -> Box<dyn Screens> {
        Box::new(self.again())
    }
}

impl Recorded {
    fn again(&self) -> Self {
        Self(self.0.clone(), self.1.clone(), self.2)
    }
}

const NUMBERS: &[Service] = &[Service::offered("up", NET), Service::needed("down", NET)];

/// Reads the number of the picture in front of a packet.
struct Numbers;

impl Module for Numbers {
    fn kind(&self) -> &'static str {
        "numbers"
    }

    fn services(&self) -> &'static [Service] {
        NUMBERS
    }

    fn create_stage(&mut self, _: &mut Create<'_>) -> Result<Step, CreateError> {
        Ok(Step { stage: Some(Box::new(Numbers)), next: Next::Service(1) })
    }
}

impl Stage for Numbers {
    fn up(&mut self, _: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let Some([a, b, c, d, first, last]) = msg.bytes().first_chunk().copied() else {
            return Verdict::Drop(DropReason::Unexpected);
        };
        let stamp = u32::from_be_bytes([a, b, c, d]);
        msg.meta.framing = Framing { stamp, first: first == 1, last: last == 1, ..Framing::default() };
        msg.pop(6);
        Verdict::Forward
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }
}

/// A decoder that takes as long as the packet says, in virtual time, and screens that take as long for each
/// picture.
struct Recorded(Virtual, Seen, Duration);

impl Decoders for Recorded {
    fn open(&mut self, _: Coding) -> Result<Box<dyn Decoder>, DecodeError> {
        Ok(Box::new(self.again()))
    }
}

impl Decoder for Recorded {
    fn decode(&mut self, unit: Unit<'_>, shown: &mut dyn FnMut(Box<dyn Picture>)) -> Result<(), DecodeError> {
        let cost = unit.bytes.first_chunk().copied().ok_or(DecodeError::Malformed)?;
        self.0.spend(Duration::from_nanos(u64::from_be_bytes(cost)));
        if unit.last {
            shown(Box::new(Blank { stamp: unit.stamp, size: (352, 240) }));
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn FnMut(Box<dyn Picture>)) {}

    fn memory(&self) -> u64 {
        0
    }
}

/// What notes when each picture is shown.
impl Screens for Recorded {
    fn open(&mut self, _: PathId, _: &Attrs) -> Option<Box<dyn Screen>> {
        Some(Box::new(self.again()))
    }
}

impl Screen for Recorded {
    fn show(&mut self, picture: &dyn Picture) {
        self.1.lock().unwrap().push((picture.stamp(), self.0.now()));
        self.0.spend(self.2);
    }
}
