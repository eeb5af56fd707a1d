//! A source, a network that delays and loses, and a path of MFLOW whose end takes its time: all in
//! virtual time, so it comes out the same every time.

use core::time::Duration;
use silk_instant::Instant;
use silk_media::{Act, Over, Piece, Sending, Source, SourceFigures, SourceOptions};
use silk_modules::mflow::{Bounds, Figures, Mflow, MflowStage};
use silk_path::classify::Tables;
use silk_path::service::{NET, Service};
use silk_path::transform::Measure;
use silk_path::*;
use silk_testkit::emulator::{Conditions, Link, Loss};
use silk_wire::mflow::HEADER;
use std::collections::VecDeque;

/// The bottom of the player's paths: bytes are datagrams.
struct Wire;

const UP: &[Service] = &[Service::offered("up", NET)];

impl Module for Wire {
    fn kind(&self) -> &'static str {
        "wire"
    }
    fn services(&self) -> &'static [Service] {
        UP
    }
    fn create_stage(&mut self, _: &mut Create<'_>) -> Result<Step, CreateError> {
        Ok(Step { stage: Some(Box::new(WireStage)), next: Next::End })
    }
}

struct WireStage;

impl Stage for WireStage {
    fn up(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Forward
    }
    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Forward
    }
}

/// The modules of the player, with these bounds of its input queue.
struct Kinds(Bounds);

impl Catalogue for Kinds {
    fn kinds(&self) -> &[Kind] {
        const KINDS: &[Kind] = &[
            Kind { name: "wire", services: UP, parameters: &[] },
            Kind { name: "mflow", services: silk_modules::mflow::SERVICES, parameters: &[] },
        ];
        KINDS
    }
    fn make(&self, spec: &ModuleSpec) -> Result<Box<dyn Module>, BadParameter> {
        Ok(match spec.kind.as_str() {
            "wire" => Box::new(Wire),
            _ => Box::new(Mflow::new(Tables::with_room(8, 1), 0, self.0, 5544)),
        })
    }
}

/// What the player's stages cause.
#[derive(Default)]
struct World {
    now: Instant,
    // What is left of the packet that is being processed.
    rest: Duration,
    sent: Vec<Vec<u8>>,
    timer: Option<Instant>,
    ended: bool,
    taken: Vec<u32>,
}

impl Port for World {
    fn transmit(&mut self, _: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        let mut bytes = vec![0; msg.len()];
        msg.copy_to(&mut bytes).expect("sized for it");
        self.sent.push(bytes);
        Ok(())
    }
    fn deliver(&mut self, _: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        self.taken.push(u32::from_be_bytes(msg.bytes().try_into().expect("four bytes")));
        // Processing ends here.
        self.rest = Duration::ZERO;
        Ok(())
    }
    fn arm(&mut self, _: PathId, at: Instant) {
        self.timer = (at != Instant::FAR).then_some(at);
    }
    fn event(&mut self, _: PathId, event: Event) {
        self.ended |= event == Event::PeerFinished;
    }
    fn request(&mut self, _: Request) {}
    fn random(&mut self) -> u64 {
        7
    }
    fn clock(&mut self) -> Option<Instant> {
        Some(Instant::ZERO + (self.now - (Instant::ZERO + self.rest)))
    }
}

/// What a run is like.
struct Weather {
    delay: Duration,
    loss: f64,
    most: u16,
    /// Time to process a packet.
    process: Duration,
    packets: u32,
    seed: u64,
}

impl Default for Weather {
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(10),
            loss: 0.0,
            most: 512,
            process: Duration::from_micros(500),
            packets: 4000,
            seed: 1,
        }
    }
}

/// How a run ended.
struct Played {
    over: Over,
    taken: Vec<u32>,
    ended: bool,
    figures: Figures,
    source: SourceFigures,
    overflowed: u32,
    took: Duration,
}

struct Rig {
    weather: Weather,
    paths: Paths,
    path: PathId,
    world: World,
    waiting: VecDeque<Vec<u8>>,
    busy_until: Option<Instant>,
    there: Link,
    back: Link,
    source: Source,
    next: u32,
}

impl Rig {
    fn new(weather: Weather, options: SourceOptions) -> Self {
        let spec = GraphSpec::default()
            .module("wire", "wire", &[])
            .module("mflow", "mflow", &[])
            .link("mflow.down", "wire.up");
        let graph = Graph::build(&spec, &Kinds(Bounds { least: 2, most: weather.most })).expect("a graph");
        let top = graph.modules().find("mflow").expect("in the graph");
        let mut paths = Paths::new(graph, vec![Box::new(Measure::default())]);
        let mut world = World::default();
        let attrs = Attrs::new().with(Attr::InputQueue(2));
        let path = paths.create(top, attrs, None, Instant::ZERO, &mut world).expect("a path");
        let loss = Loss::random(weather.loss);
        let conditions = Conditions { delay: weather.delay, loss, queue: 10_000, ..Conditions::default() };
        let [there, back] = [1, 2].map(|n| Link::new(&conditions, weather.seed * 2 + n));
        let source = Source::new(options, Instant::ZERO);
        Self {
            weather,
            paths,
            path,
            world,
            waiting: VecDeque::new(),
            busy_until: None,
            there,
            back,
            source,
            next: 0,
        }
    }

    /// Lets the source do what it may; when it wants to be asked again, or how it ended.
    fn send(&mut self) -> Result<Instant, Over> {
        loop {
            let piece = Piece {
                picture: self.next / 4,
                kind: 1,
                first: self.next.is_multiple_of(4),
                last: self.next % 4 == 3,
            };
            let piece = (self.next < self.weather.packets).then_some(piece);
            let (data, payload) = match self.source.next(self.world.now, piece.as_ref()) {
                Act::Send(data) => {
                    self.next += 1;
                    (data, Some(self.next - 1))
                }
                Act::Ask(data) => (data, None),
                Act::Wait(at) => return Ok(at),
                Act::Over(over) => return Err(over),
            };
            let mut bytes = vec![0; HEADER];
            data.emit(&mut bytes);
            bytes.extend(payload.into_iter().flat_map(u32::to_be_bytes));
            self.there.send(self.world.now, bytes);
        }
    }

    /// What has arrived at either side.
    fn receive(&mut self) {
        let now = self.world.now;
        while let Some(bytes) = self.back.arrive(now) {
            self.source.hear(now, &bytes);
        }
        while let Some(bytes) = self.there.arrive(now) {
            let ticket =
                Ticket { frame: 0, offset: 0, len: 0, device: 0, checksum: Checksum::Unknown, arrival: now };
            if self.paths.enqueue(self.path, ticket).is_ok() {
                self.waiting.push_back(bytes);
            }
        }
    }

    /// The player processes one packet at a time, and its timer goes off.
    fn play(&mut self) {
        let now = self.world.now;
        if self.busy_until.is_some_and(|until| until <= now) {
            self.busy_until = None;
            let ticket = self.paths.dequeue(self.path).expect("it was waiting");
            let mut bytes = self.waiting.pop_front().expect("with its ticket");
            bytes.splice(0..0, [0; 128]);
            let end = bytes.len();
            let meta = Meta {
                arrival: ticket.arrival,
                remote: Endpoint::v4([10, 0, 0, 1].into(), 9),
                ..Meta::default()
            };
            self.world.rest = if end > 128 + HEADER { self.weather.process } else { Duration::ZERO };
            self.paths.up(self.path, now, &mut self.world, &mut Message::new(&mut bytes, 128, end, meta));
            self.world.rest = Duration::ZERO;
        }
        if self.busy_until.is_none() && !self.waiting.is_empty() {
            self.busy_until = Some(now + self.weather.process);
        }
        if self.world.timer.is_some_and(|at| at <= now) {
            self.world.timer = None;
            self.paths.expire(self.path, now, &mut self.world);
        }
        for bytes in self.world.sent.drain(..) {
            self.back.send(now, bytes);
        }
    }

    fn run(mut self) -> Played {
        let over = loop {
            self.receive();
            self.play();
            let asks = match self.send() {
                Ok(at) => at,
                Err(over) => break over,
            };
            let next = [
                self.there.next_event(),
                self.back.next_event(),
                self.busy_until,
                self.world.timer,
                Some(asks),
            ];
            let next = next.into_iter().flatten().min().expect("the source waits");
            self.world.now = next.max(self.world.now + Duration::from_nanos(1));
            assert!(self.world.now < Instant::from_millis(3_600_000), "it comes to an end");
        };
        let path = self.paths.path(self.path).expect("still there");
        let stage = path.stage::<MflowStage>().expect("of MFLOW");
        Played {
            over,
            figures: stage.figures(),
            overflowed: path.state.drops.of(DropReason::QueueFull),
            source: self.source.figures(),
            took: self.world.now - Instant::ZERO,
            taken: self.world.taken,
            ended: self.world.ended,
        }
    }
}

fn free() -> SourceOptions {
    SourceOptions { sending: Sending::Free, sequence: u32::MAX - 1000, ..SourceOptions::default() }
}

fn is_ordered(taken: &[u32]) -> bool {
    taken.is_sorted_by(|a, b| a < b)
}

#[test]
fn everything_arrives_in_order_where_nothing_is_lost() {
    let played = Rig::new(Weather::default(), free()).run();
    assert_eq!((played.over, played.ended, played.overflowed), (Over::Ended, true, 0));
    assert_eq!(played.taken, (0..4000).collect::<Vec<_>>());
    assert_eq!(played.source.ignored, 0);
}

#[test]
fn over_bad_networks_it_goes_on_and_no_queue_overflows() {
    for seed in 0..40 {
        let loss = [0.0, 0.01, 0.1, 0.4][seed as usize % 4];
        let delay = Duration::from_millis([0, 1, 30, 200][seed as usize / 4 % 4]);
        let weather = Weather { loss, delay, seed, packets: 1500, most: 64, ..Weather::default() };
        let patience = Duration::from_secs(60);
        let played = Rig::new(weather, SourceOptions { patience, ..free() }).run();
        // The very last word may be lost as often as it is repeated.
        assert!(matches!(played.over, Over::Ended | Over::Unanswered), "seed {seed}: {:?}", played.over);
        assert_eq!(played.overflowed, 0, "seed {seed}");
        assert!(is_ordered(&played.taken), "seed {seed}");
        let share = played.taken.len() as f64 / 1500.0;
        assert!((share - (1.0 - loss)).abs() < 0.06, "seed {seed}: {share}");
        assert_eq!(played.figures.beyond, 0, "seed {seed}");
    }
}

/// Packets in a second.
fn throughput(most: u16, delay: u64) -> (f64, Figures) {
    let weather = Weather { most, delay: Duration::from_millis(delay), ..Weather::default() };
    let played = Rig::new(weather, free()).run();
    (f64::from(4000) / played.took.as_secs_f64(), played.figures)
}

#[test]
fn at_long_round_trips_the_throughput_grows_with_n_up_to_what_can_be_processed() {
    // A packet takes 500 µs, a round trip 40 ms: at most 2 000 packets in a second.
    let (rates, figures): (Vec<f64>, Vec<Figures>) =
        [2, 8, 32, 512].map(|most| throughput(most, 20)).into_iter().unzip();
    assert!(rates.windows(2).all(|pair| pair[1] > 2.0 * pair[0]), "{rates:?}");
    assert!(rates[0] < 60.0 && rates[3] > 1800.0, "{rates:?}");
    // n packets take as long as a round trip (Scout §4.2).
    assert!((75..=90).contains(&figures[3].super_packet), "{:?}", figures[3]);
    assert!((39_000..=45_000).contains(&figures[3].round_trip), "{:?}", figures[3]);
}

#[test]
fn where_the_round_trip_is_short_a_queue_of_two_is_enough() {
    let weather = Weather { delay: Duration::from_micros(100), ..Weather::default() };
    let played = Rig::new(weather, free()).run();
    assert_eq!(played.figures.super_packet, 1);
    assert!(4000.0 / played.took.as_secs_f64() > 1900.0, "{:?}", played.took);
}

#[test]
fn a_paced_source_takes_as_long_as_its_clip() {
    let options = SourceOptions { sending: SourceOptions::default().sending, ..free() };
    let played = Rig::new(Weather { packets: 1200, ..Weather::default() }, options).run();
    // 300 pictures of four packets, 30 in a second.
    assert!((9.9..10.2).contains(&played.took.as_secs_f64()), "{:?}", played.took);
    assert_eq!((played.taken.len(), played.overflowed, played.source.asked), (1200, 0, 1));
}

#[test]
fn a_player_that_is_not_there_is_given_up() {
    let played = Rig::new(Weather { loss: 1.0, ..Weather::default() }, free()).run();
    assert_eq!((played.over, played.took), (Over::Silent, Duration::from_secs(5)));
    assert_eq!(played.source.sent, 2);
}
