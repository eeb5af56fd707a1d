//! Admission of streams (Scout §4.4) by a player on the memory link in virtual time: a decoder that costs what
//! a packet says, sources that send at their rate over MFLOW.

use silk_appliance::{Appliance, Clock, Parts, Virtual};
use silk_device::{End, Offload, link};
use silk_instant::Instant;
use silk_media::{
    Blank, Coding, Dark, DecodeError, Decoder, Decoders, DisplayStage, Library, Offer, Picture, Playing,
    Rate, Screens, Unit, Wish,
};
use silk_modules::{Device, Setup, catalogue};
use silk_path::classify::{Domains, Owned, Tables};
use silk_path::{Endpoint, Graph, PathId, Paths};
use silk_player::{Carrier, GRAPH, Order, Player, PlayerOptions, Refusal, Schedule, Told, rules};
use silk_wire::checksum::Sum;
use silk_wire::mflow::{Data, HEADER};
use std::net::Ipv4Addr;
use std::time::Duration;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THEIRS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SIZE: (usize, usize) = (352, 240);
/// Milliseconds between pictures.
const PERIOD: u64 = 40;
/// Bytes of the code of a picture: I and P, and B. So few that all cost about the same.
const CODED: [usize; 2] = [1_200, 400];

struct Theatre {
    appliance: Appliance,
    player: Player,
    clock: Virtual,
    source: End,
}

impl Theatre {
    fn new(share: f64) -> Self {
        let (clock, tables) = (Virtual::default(), Tables::with_room(1024, 0x5eed));
        let (end, source) = link::pair(&link::Options::default()).unwrap();
        let owned = Owned { arp: true, icmp: true, fragments: true };
        tables.configure(owned, Domains::default(), &[], &[OURS]).unwrap();
        let mut setup = Setup::new(tables.clone());
        setup.standing = silk_modules::Standing::of(&[(OURS.into(), 24)], None);
        setup.neighbours_told = true;
        setup.devices = vec![Device::default()];
        let kinds = silk_media::catalogue(catalogue(setup), Recorded(clock.clone()));
        let spec = silk_config::Graph::check("video.toml", GRAPH, &kinds).unwrap().spec();
        let paths = Paths::new(Graph::build(&spec, &kinds).unwrap(), rules(true));
        let policy = Schedule::Deadlines.policy(64);
        let (clock_of, random) = (Box::new(clock.clone()), Box::new(|| 7));
        let appliance = Appliance::new(Parts { paths, end, policy, tables, clock: clock_of, random });
        let player = Player::new(PlayerOptions { share, ..PlayerOptions::default() });
        Self { appliance, player, clock, source }
    }

    /// Each stream's source sends for so many pictures, from `first` on, and the player plays.
    fn play(&mut self, ports: &[u16], pictures: std::ops::Range<u32>, cost: Duration) {
        let start = self.clock.now();
        for (place, number) in pictures.enumerate() {
            for port in ports {
                self.source.transmit.send(&packet(*port, number, cost), [&[], &[]], Offload::NONE);
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

    fn begin(&mut self, order: &Order) -> Result<PathId, Refusal> {
        self.player.begin(&mut self.appliance, order).map(|begun| begun.path)
    }

    fn display(&self, path: PathId) -> &DisplayStage {
        self.appliance.paths().path(path).unwrap().stage::<DisplayStage>().unwrap()
    }
}

fn order(port: u16, told: Option<Told>, accept_less: bool) -> Order {
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
fn told() -> Told {
    let [needed, b] = CODED.map(|bytes| (bytes * 8) as f64);
    Told::group(SIZE, [(1.0, needed), (4.0, needed), (10.0, b)])
}

/// The picture's only packet: Ethernet, IP, UDP, MFLOW, and what decoding it costs.
fn packet(port: u16, number: u32, cost: Duration) -> Vec<u8> {
    let kind = match number % 15 {
        0 => 1,
        n if n % 3 == 0 => 2,
        _ => 3,
    };
    let bytes = CODED[usize::from(kind == 3)];
    let data = Data { first: true, last: true, kind, sequence: number, picture: number, ..Data::default() };
    let mut payload = vec![0; HEADER];
    data.emit(&mut payload);
    payload.extend(u64::try_from(cost.as_nanos()).unwrap().to_be_bytes());
    payload.resize(HEADER + bytes, 0);
    let (length, total) = (payload.len() as u16 + 8, payload.len() as u16 + 28);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(THEIRS.octets());
    frame.extend(OURS.octets());
    let sum = Sum::ZERO.bytes(&frame[14..34]).checksum();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    for part in [port, port, length, 0] {
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
        let cost = unit.bytes.first_chunk().copied().ok_or(DecodeError::Malformed)?;
        self.0.spend(Duration::from_nanos(u64::from_be_bytes(cost)));
        shown(Box::new(Blank { stamp: unit.stamp, size: SIZE }));
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn FnMut(Box<dyn Picture>)) {}

    fn memory(&self) -> u64 {
        1000
    }
}

/// A picture's: at this rate 10 % of the processor.
const COST: Duration = Duration::from_millis(4);

#[test]
fn what_is_told_is_admitted_by_what_the_streams_before_it_have_shown() {
    let mut theatre = Theatre::new(0.25);
    let first = theatre.begin(&order(5000, Some(told()), false)).unwrap();
    theatre.play(&[5000], 0..100, COST);
    theatre.player.end(&mut theatre.appliance, first);
    let second = theatre.begin(&order(5001, Some(told()), false)).unwrap();
    let promised = theatre.player.budget().share_used;
    assert!((0.085..0.115).contains(&promised), "{promised}");
    theatre.begin(&order(5002, Some(told()), false)).unwrap();
    // The third does not fit whole.
    let Err(Refusal::Offered(offer)) = theatre.begin(&order(5003, Some(told()), false)) else {
        panic!("let in")
    };
    assert!(offer.is_less(), "{offer:?}");
    let third = theatre.player.begin(&mut theatre.appliance, &order(5003, Some(told()), true)).unwrap();
    assert_eq!(third.terms.offer, offer);
    assert!(theatre.player.budget().share_used <= 0.25);
    // Each plays at what it was promised, with the memory it was promised.
    theatre.play(&[5001, 5002, 5003], 0..250, COST);
    for path in [second, third.path] {
        let figures = theatre.player.figures(&theatre.appliance, path).unwrap();
        assert_eq!((figures.shown.missed, figures.decoded.no_memory), (0, 0));
        assert_eq!(figures.account.memory_limit(), figures.promised.memory);
        let (used, promised) = (figures.used.unwrap(), figures.promised.share);
        assert!((0.8..1.25).contains(&(used / promised)), "{used} of {promised}");
    }
}

#[test]
fn of_streams_on_trial_the_one_that_is_too_much_goes_or_plays_with_less() {
    for accepts in [false, true] {
        let mut theatre = Theatre::new(0.25);
        let ports = [5000, 5001, 5002];
        let paths = ports.map(|port| {
            let path = theatre.begin(&order(port, None, accepts)).unwrap();
            theatre.play(&ports[..=usize::from(port - 5000)], 0..1, COST);
            path
        });
        theatre.play(&ports, 1..300, COST);
        let judgements = std::mem::take(&mut theatre.player.judgements);
        let [judgement] = &judgements[..] else { panic!("{judgements:?}") };
        assert_eq!((judgement.accepted, judgement.offer.is_less()), (accepts, true), "{judgement}");
        let judged = paths[ports.iter().position(|port| judgement.name == format!("port{port}")).unwrap()];
        assert_eq!(theatre.player.over(&mut theatre.appliance), if accepts { vec![] } else { vec![judged] });
        if accepts {
            let options = theatre.display(judged).output.options();
            assert!(options.every > 1 || options.without_b, "{options:?}");
            assert!(theatre.player.budget().share_used <= 0.25);
        }
        for path in paths.into_iter().filter(|path| *path != judged) {
            let figures = theatre.player.figures(&theatre.appliance, path).unwrap();
            assert_eq!((figures.on_trial, figures.promised.offer), (false, Offer::Whole));
            let (used, promised) = (figures.used.unwrap(), figures.promised.share);
            assert!((0.9..1.1).contains(&(used / promised)), "{used} of {promised}");
            assert_eq!(figures.account.memory_limit(), figures.promised.memory);
        }
    }
}

#[test]
fn a_stream_that_told_too_little_gets_no_more_and_the_others_play_on() {
    let mut theatre = Theatre::new(0.9);
    let small = Told { size: (16, 16), ..told() };
    let liar = theatre.begin(&order(5000, Some(small), false)).unwrap();
    let honest = theatre.begin(&order(5001, Some(told()), false)).unwrap();
    theatre.play(&[5000, 5001], 0..100, COST);
    let figures = |path| theatre.player.figures(&theatre.appliance, path).unwrap();
    let (liar, honest) = (figures(liar), figures(honest));
    assert!(liar.account.memory_limit() == liar.promised.memory && liar.promised.memory < 1 << 20);
    assert!(liar.account.memory_peak <= liar.promised.memory);
    assert_eq!((honest.shown.missed, honest.shown.lost, honest.decoded.no_memory), (0, 0, 0));
    assert!(honest.shown.shown > 80, "{:?}", honest.shown);
}

#[test]
fn without_memory_nothing_is_made() {
    let mut theatre = Theatre::new(0.9);
    let vast = Order { wish: Wish { queue: 4096, ..Wish::default() }, ..order(5000, None, false) };
    let large = Told { size: (1920, 1088), ..told() };
    let refusal = theatre.begin(&Order { told: Some(large), ..vast.clone() }).unwrap_err();
    assert_eq!(refusal.to_string(), "there is not enough memory for its pictures");
    // One that does not tell is found out by its first picture.
    theatre.player = Player::new(PlayerOptions { memory: 1 << 20, ..PlayerOptions::default() });
    let path = theatre.begin(&vast).unwrap();
    theatre.play(&[5000], 0..10, COST);
    assert_eq!(theatre.player.over(&mut theatre.appliance), [path]);
    assert_eq!(theatre.player.judgements[0].offer, Offer::NoMemory);
}
