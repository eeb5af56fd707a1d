//! Integrated layer processing (Scout §4.1): whatever arrives, whole or damaged, a path whose checksums are
//! verified while the data are first read ends in the same state, with the same drops, as one whose UDP
//! does it alone; and so does its decoder, whether it offers room or not.

use proptest::prelude::*;
use silk_instant::Instant;
use silk_media::{
    Blank, Coding, Dark, DecodeError, Decoded, Decoder, Decoders, DisplayStage, Library, MpegStage, Picture,
    Screens, Shown, Unit, Wish,
};
use silk_modules::mflow::{Figures, MflowStage};
use silk_modules::rtp::{Counts, RtpStage};
use silk_modules::{Device, IntegratedLayers, Setup};
use silk_path::classify::{Between, Domains, Found, Owned, Protocol, Tables, Verdict};
use silk_path::transform::Rule;
use silk_path::{
    Attr, Attrs, Bell, Checksum, DropReason, Drops, Endpoint, Event, Graph, GraphSpec, Message, Meta, PathId,
    Paths, Port, Request, Value,
};
use silk_wire::checksum::{Sum, pseudo};
use silk_wire::{mflow, rtp, udp};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THEIRS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PORT: u16 = 5544;
/// Room for headers in front of a frame.
const HEADROOM: usize = 64;
/// ETH and IP.
const BELOW: usize = 34;

/// What a decoder was given: bytes, stamp, first, last, gap.
type Given = Arc<Mutex<Vec<(Vec<u8>, u32, bool, bool, bool)>>>;

/// A decoder that keeps what it is given, and may offer room for it.
#[derive(Clone)]
struct Keeper {
    given: Given,
    room: Option<Vec<u8>>,
    // Units that were copied into the room.
    copied: Arc<AtomicUsize>,
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
        0
    }
}

impl Decoders for Keeper {
    fn open(&mut self, _: Coding) -> Result<Box<dyn Decoder>, DecodeError> {
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
enum Carrier {
    Mflow,
    Rtp,
}

impl Carrier {
    fn name(self) -> &'static str {
        if self == Self::Mflow { "mflow" } else { "rtp" }
    }
}

/// A path from device to display.
struct Player {
    paths: Paths,
    tables: Tables,
    outside: Outside,
    path: PathId,
    given: Given,
    copied: Arc<AtomicUsize>,
}

/// All that anybody could see of it.
#[derive(Debug, PartialEq)]
struct State {
    drops: Drops,
    mflow: Option<Figures>,
    rtp: Option<(Counts, Option<(u32, Endpoint)>)>,
    decoded: Decoded,
    shown: Shown,
    given: Vec<(Vec<u8>, u32, bool, bool, bool)>,
    sent: Vec<Vec<u8>>,
    events: Vec<Event>,
    due: Option<Instant>,
    flow: Option<Found>,
}

impl Player {
    fn new(carrier: Carrier, rules: Vec<Box<dyn Rule>>, offers_room: bool) -> Self {
        let tables = Tables::with_room(64, 0x5eed);
        let owned = Owned { arp: true, icmp: true, fragments: true };
        tables.configure(owned, Domains::default(), &[], &[OURS]).unwrap();
        let mut setup = Setup::new(tables.clone());
        setup.standing = silk_modules::Standing::of(&[(OURS.into(), 24)], None);
        setup.devices = vec![Device::default()];
        setup.neighbours_told = true;
        let given = Given::default();
        let copied = Arc::<AtomicUsize>::default();
        let keeper =
            Keeper { given: given.clone(), room: offers_room.then(Vec::new), copied: copied.clone() };
        let kinds = silk_media::catalogue(silk_modules::catalogue(setup), keeper);
        let graph = Graph::build(&graph(carrier), &kinds).unwrap();
        let mut paths = Paths::new(graph, rules);
        let mut outside = Outside::default();
        let top = paths.graph().modules().find("display").unwrap();
        let wish = Wish { every: 2, ticks: carrier == Carrier::Rtp, ..Wish::default() };
        let attrs = Attrs::new().with(Attr::Local(Endpoint::v4(OURS, PORT)));
        let path = paths.create(top, wish.add_to(attrs), None, Instant::ZERO, &mut outside).unwrap();
        Self { paths, tables, outside, path, given, copied }
    }

    fn arrives(&mut self, frame: &[u8], checksum: Checksum) {
        let verdict = self.tables.classify(frame);
        if let Verdict::Discard { .. } | Verdict::Pass = verdict {
            return;
        }
        let Some(path) = self.paths.target(frame, verdict) else { return };
        let mut buffer = vec![0; HEADROOM];
        buffer.extend_from_slice(frame);
        let (end, now) = (buffer.len(), self.outside.now);
        let meta = Meta { checksum, arrival: now, ..Meta::default() };
        let _ =
            self.paths.up(path, now, &mut self.outside, &mut Message::new(&mut buffer, HEADROOM, end, meta));
        self.paths.bell(self.path, now, &mut self.outside, Bell::Read);
    }

    fn passes(&mut self, time: Duration) {
        let end = self.outside.now + time;
        while let Some(due) = self.outside.due.filter(|due| *due <= end) {
            self.outside.now = self.outside.now.max(due);
            let now = self.outside.now;
            self.outside.due = None;
            self.paths.expire(self.path, now, &mut self.outside);
        }
        self.outside.now = end;
    }

    fn state(&self) -> State {
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
fn frame(source: u16, data: &[u8]) -> Vec<u8> {
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

/// What happens next.
#[derive(Clone, Debug)]
struct Happening {
    /// How far the number goes on; 1: the next.
    step: i8,
    /// Bytes of video.
    video: Vec<u8>,
    /// Type of the picture, and flags of the packet.
    kind: u8,
    flags: u8,
    /// The port it is sent from is another.
    stranger: bool,
    /// A byte of the datagram that is changed, and how.
    damage: Option<(u16, u8)>,
    /// What the device says of the checksum.
    told: u8,
    /// The time before it, ms.
    pause: u16,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let step = prop_oneof![8 => Just(1i8), 1 => 2i8..5, 1 => -3i8..1];
    let damage = prop_oneof![2 => Just(None), 1 => (0u16..1400, 1u8..).prop_map(Some)];
    let pause = prop_oneof![8 => 0u16..40, 1 => 5000u16..6000];
    let video = proptest::collection::vec(any::<u8>(), 0..200);
    let one = (step, video, 0u8..4, any::<u8>(), proptest::bool::weighted(0.1), damage, 0u8..4, pause);
    let make = |(step, video, kind, flags, stranger, damage, told, pause)| Happening {
        step,
        video,
        kind,
        flags,
        stranger,
        damage,
        told,
        pause,
    };
    proptest::collection::vec(one.prop_map(make), 1..60)
}

fn datagram(carrier: Carrier, number: u32, happening: &Happening) -> Vec<u8> {
    let Happening { kind, flags, video, .. } = happening;
    let set = |bit: u8| flags >> bit & 1 != 0;
    match carrier {
        Carrier::Mflow => {
            let data = mflow::Data {
                sequence: number,
                picture: number / 3,
                kind: *kind,
                first: number.is_multiple_of(3),
                last: number % 3 == 2,
                ends_super: set(0),
                ends_stream: set(1) && set(2) && set(3) && set(4),
                round_trip: u32::from(flags >> 5) * 100,
                clock: number,
                ..mflow::Data::default()
            };
            let mut bytes = vec![0; mflow::HEADER];
            data.emit(&mut bytes);
            [bytes, video.clone()].concat()
        }
        Carrier::Rtp => {
            let header = rtp::Header::new(rtp::MPV, number % 3 == 2, number as u16, number / 3 * 3000, 9);
            let mut bytes = vec![0; rtp::HEADER];
            header.emit(&mut bytes);
            bytes.extend([0, 0, 0x10 | kind, 0]);
            // Padding makes data end in front of the datagram's end.
            bytes.extend(video);
            if set(0) {
                bytes[0] |= 0x20;
                let padding = 1 + (flags >> 1 & 7);
                bytes.extend(vec![0; usize::from(padding) - 1]);
                bytes.push(padding);
            }
            bytes
        }
    }
}

fn state_after(mut player: Player, carrier: Carrier, happenings: &[Happening]) -> State {
    let mut number = 100u32;
    for happening in happenings {
        player.passes(Duration::from_millis(happening.pause.into()));
        number = number.wrapping_add_signed(happening.step.into());
        let source = if happening.stranger { 6001 } else { 6000 };
        let mut frame = frame(source, &datagram(carrier, number, happening));
        if let Some((at, change)) = happening.damage {
            let room = frame.len() - BELOW;
            frame[BELOW + usize::from(at) % room] ^= change;
        }
        let checksum = match happening.told {
            0 => Checksum::Verified,
            1 => Checksum::MaybePartial,
            _ => Checksum::Unknown,
        };
        player.arrives(&frame, checksum);
    }
    let mut state = player.state();
    state.decoded.time = 0;
    state
}

proptest! {
    #[test]
    fn a_path_means_the_same_with_and_without_the_rule(
        happenings in happenings(),
        over_rtp: bool,
        offers_room: bool,
    ) {
        let carrier = if over_rtp { Carrier::Rtp } else { Carrier::Mflow };
        let apart = state_after(Player::new(carrier, vec![], offers_room), carrier, &happenings);
        let integrated = Player::new(carrier, vec![Box::new(IntegratedLayers)], offers_room);
        prop_assert_eq!(state_after(integrated, carrier, &happenings), apart);
    }
}

#[test]
fn a_damaged_packet_changes_nothing_but_the_count_of_drops() {
    let whole = Happening {
        step: 1,
        video: vec![7; 99],
        kind: 2,
        flags: 0,
        stranger: false,
        damage: None,
        told: 2,
        pause: 1,
    };
    for carrier in [Carrier::Mflow, Carrier::Rtp] {
        let damaged = |at| Happening { damage: Some((at, 4)), ..whole.clone() };
        let again = Happening { step: 0, ..whole.clone() };
        let packets = [damaged(60), again.clone(), damaged(9), again.clone(), damaged(120), again];
        let player = || Player::new(carrier, vec![Box::new(IntegratedLayers)], true);
        let integrated = player();
        let copied = integrated.copied.clone();
        let state = state_after(integrated, carrier, &packets);
        // MFLOW gives itself to a source only when it knows that the packet is right.
        let first = if carrier == Carrier::Mflow { 1 } else { 0 };
        assert_eq!(copied.load(Relaxed) + first, 3, "the data were read once");
        assert_eq!((state.drops.of(DropReason::UdpChecksum), state.drops.total()), (3, 3), "{carrier:?}");
        let clean = state_after(player(), carrier, &[whole.clone(), whole.clone(), whole.clone()]);
        assert_eq!((state.given, state.decoded.packets), (clean.given, 3));
    }
}
