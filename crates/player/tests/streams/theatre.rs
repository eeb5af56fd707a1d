//! A player on the memory link in virtual time: a decoder that costs what a packet says, sources that send at
//! their rate over MFLOW, commands.

use silk_appliance::{Appliance, Clock, Parts, Virtual};
use silk_device::{End, Offload, link};
use silk_instant::Instant;
use silk_media::{
    Blank, Coding, Dark, DecodeError, Decoder, Decoders, DisplayStage, Library, Picture, Playing, Rate,
    Screens, Unit, Wish,
};
use silk_modules::shell::PORT;
use silk_modules::{Device, Setup, catalogue};
use silk_path::classify::{Domains, Owned, Tables};
use silk_path::{Endpoint, Graph, PathId, Paths};
use silk_player::{Carrier, GRAPH, Order, Player, PlayerOptions, Refusal, Schedule, Told, rules};
use silk_wire::checksum::Sum;
use silk_wire::mflow::{self, Data, HEADER};
use std::net::Ipv4Addr;
use std::time::Duration;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THEIRS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SIZE: (usize, usize) = (352, 240);
/// Milliseconds between pictures.
const PERIOD: u64 = 40;
/// Bytes of the code of a picture: I and P, and B. So few that all cost about the same.
const CODED: [usize; 2] = [1_200, 400];

/// The player and the host that its streams come from.
pub struct Theatre {
    pub appliance: Appliance,
    pub player: Player,
    /// How the films are coded.
    pub coding: mflow::Coding,
    /// The code of the rate that the films tell as their own (ISO 13818-2, table 6-4); 0: they tell none.
    pub own_rate: u8,
    clock: Virtual,
    source: End,
}

impl Theatre {
    /// A player that may use so much of the processor, and obeys that host.
    pub fn new(share: f64) -> Self {
        let (clock, tables) = (Virtual::default(), Tables::with_room(1024, 0x5eed));
        let (end, source) = link::pair(&link::Options::default()).unwrap();
        let owned = Owned { arp: true, icmp: true, fragments: true };
        tables.configure(owned, Domains::default(), &[], &[OURS]).unwrap();
        let mut setup = Setup::new(tables.clone());
        setup.standing = silk_modules::Standing::of(&[(OURS.into(), 24)], None);
        setup.neighbours_told = true;
        setup.devices = vec![Device::default()];
        let kinds = silk_media::catalogue(catalogue(setup), Recorded(clock.clone()));
        let text = GRAPH.replace("name = \"shell\"", "name = \"shell\"\ncontrollers = [\"10.0.0.2/32\"]");
        let spec = silk_config::Graph::check("video.toml", &text, &kinds).unwrap().spec();
        let paths = Paths::new(Graph::build(&spec, &kinds).unwrap(), rules(true));
        let policy = Schedule::Deadlines.policy(64);
        let (clock_of, random) = (Box::new(clock.clone()), Box::new(|| 7));
        let mut appliance = Appliance::new(Parts { paths, end, policy, tables, clock: clock_of, random });
        let mut player = Player::new(PlayerOptions { share, ..PlayerOptions::default() });
        player.open_shell(&mut appliance).unwrap();
        Self { appliance, player, coding: mflow::Coding::Mpeg, own_rate: 0, clock, source }
    }

    /// Each stream's source sends for so many pictures, from `first` on, and the player plays.
    pub fn play(&mut self, ports: &[u16], pictures: std::ops::Range<u32>, cost: Duration) {
        let start = self.clock.now();
        for (place, number) in pictures.enumerate() {
            for port in ports {
                let packet = self.packet(*port, number, cost);
                self.source.transmit.send(&packet, [&[], &[]], Offload::NONE);
            }
            self.source.transmit.flush();
            self.run_until(start + Duration::from_millis(PERIOD) * (place as u32 + 1));
        }
    }

    fn run_until(&mut self, until: Instant) {
        while self.clock.now() < until {
            let busy = self.appliance.turn();
            self.player.tend(&mut self.appliance);
            if !busy {
                // The player looks after its streams every few milliseconds.
                let soon = self.clock.now() + Duration::from_millis(5);
                self.clock.reach(self.appliance.due().map_or(soon, |due| due.min(soon)).min(until));
            }
        }
    }

    /// Has the player do what a controller says. What it makes of that is for its streams to show.
    pub fn tell(&mut self, number: u32, command: &str) {
        let text = format!("{number} {command}");
        self.source.transmit.send(&datagram(PORT, PORT, text.as_bytes()), [&[], &[]], Offload::NONE);
        self.source.transmit.flush();
        while self.appliance.turn() {}
        self.player.obey(&mut self.appliance, |_| {});
    }

    pub fn begin(&mut self, order: &Order) -> Result<PathId, Refusal> {
        self.player.begin(&mut self.appliance, order).map(|begun| begun.path)
    }

    pub fn display(&self, path: PathId) -> &DisplayStage {
        self.appliance.paths().path(path).unwrap().stage::<DisplayStage>().unwrap()
    }

    /// The picture's only packet: Ethernet, IP, UDP, MFLOW, its film's header, and at its end what decoding it costs.
    fn packet(&self, port: u16, number: u32, cost: Duration) -> Vec<u8> {
        let kind = match number % 15 {
            0 => 1,
            n if n % 3 == 0 => 2,
            _ => 3,
        };
        let bytes = CODED[usize::from(kind == 3)];
        let (sequence, picture, coding) = (number, number, self.coding);
        let data = Data { first: true, last: true, kind, sequence, picture, coding, ..Data::default() };
        let mut payload = vec![0; HEADER];
        data.emit(&mut payload);
        if self.own_rate > 0 {
            payload.extend([0, 0, 1, 0xb3, 0x16, 0, 0xf0, 0x10 | self.own_rate, 0xff, 0xff, 0xe0, 0]);
        }
        payload.resize(HEADER + bytes - 8, 0);
        payload.extend(u64::try_from(cost.as_nanos()).unwrap().to_be_bytes());
        datagram(port, port, &payload)
    }
}

pub fn order(port: u16, told: Option<Told>, accept_less: bool) -> Order {
    Order {
        name: format!("port{port}"),
        carrier: Carrier::Mflow,
        local: Endpoint::v4(OURS, port),
        remote: Some(Endpoint::v4(THEIRS, port)),
        wish: Wish { playing: Playing::At(Rate::from_millis(25_000).unwrap()), ..Wish::default() },
        told,
        input_queue: 64,
        realtime: true,
        accept_less,
    }
}

/// What the pictures of all streams here are like.
pub fn told() -> Told {
    let [needed, b] = CODED.map(|bytes| (bytes * 8) as f64);
    Told::group(SIZE, [(1.0, needed), (4.0, needed), (10.0, b)])
}

/// A datagram with Ethernet, IP and UDP in front.
fn datagram(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let (length, total) = (payload.len() as u16 + 8, payload.len() as u16 + 28);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(THEIRS.octets());
    frame.extend(OURS.octets());
    let sum = Sum::ZERO.bytes(&frame[14..34]).checksum();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    for part in [from, to, length, 0] {
        frame.extend(part.to_be_bytes());
    }
    frame.extend(payload);
    frame
}

struct Recorded(Virtual);

impl Library for Recorded {
    fn decoders(&self) -> Box<dyn Decoders> {
        Box::new(Self(self.0.clone()))
    }

    fn screens(&self) -> Box<dyn Screens> {
        Box::new(Dark)
    }
}

impl Decoders for Recorded {
    fn open(&mut self, _: Coding) -> Result<Box<dyn Decoder>, DecodeError> {
        Ok(Box::new(Self(self.0.clone())))
    }
}

impl Decoder for Recorded {
    fn decode(&mut self, unit: Unit<'_>, shown: &mut dyn FnMut(Box<dyn Picture>)) -> Result<(), DecodeError> {
        let cost = unit.bytes.last_chunk().copied().ok_or(DecodeError::Malformed)?;
        self.0.spend(Duration::from_nanos(u64::from_be_bytes(cost)));
        shown(Box::new(Blank { stamp: unit.stamp, size: SIZE }));
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn FnMut(Box<dyn Picture>)) {}

    fn memory(&self) -> u64 {
        1000
    }
}
