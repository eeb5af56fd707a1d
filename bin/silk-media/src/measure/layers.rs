//! The question: what does integrated layer processing save (Scout §4.1)? A clip's packets run up paths from
//! the device to the display, over MFLOW, with the rule *integrated layers* and without it, in turn: where the
//! device vouches for UDP's checksum, so that nobody sums anything, and where it does not. The packets lie in
//! a ring as a device has them. Told are the CPU time of a packet where its bytes are only copied, that of a
//! picture where libavcodec decodes it too, and, before that, what the routines cost alone.

use super::packets::packets;
use crate::avcodec::{AvDecoder, Limits};
use crate::clock::thread_cpu;
use crate::demux::{Coded, Demuxer};
use crate::trouble::Trouble;
use silk_instant::Instant;
use silk_media::{
    Coding, Dark, DecodeError, Decoder, Decoders, Library, MpegStage, Picture, Playing, Screens, Unit, Wish,
};
use silk_modules::{Device, Setup, Standing};
use silk_path::classify::{Domains, Owned, Tables};
use silk_path::{
    Attr, Attrs, Checksum, DropReason, Endpoint, Event, Graph, GraphSpec, Message, Meta, PathId, Paths, Port,
    Request, Value,
};
use silk_player::rules;
use silk_wire::checksum::{Sum, copy_and_sum, pseudo};
use silk_wire::{eth, ipv4, mflow, udp};
use std::hint::black_box;
use std::io::{Write, stdout};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// What is measured.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The clip
    clip: PathBuf,
    /// How often each way is measured
    #[arg(long, value_name = "N", default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THEIRS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// ETH and IP.
const BELOW: usize = eth::HEADER + ipv4::HEADER;

/// Measures and prints the table.
pub fn run(options: &Options) -> Result<(), Trouble> {
    let demuxer = Demuxer::open(&options.clip)?;
    let coding = demuxer.coding();
    let pictures: Vec<Coded> = demuxer.collect();
    let units: Vec<Unit<'_>> =
        pictures.iter().zip(0..).flat_map(|(picture, stamp)| packets(picture.bytes(), stamp)).collect();
    let mut frames: Vec<Vec<u8>> = (1..).zip(&units).map(|(number, unit)| frame(number, unit)).collect();
    let mut lines = vec![format!(
        "{} pictures in {} packets, {} rounds; CPU time: median (least–most)",
        pictures.len(),
        units.len(),
        options.rounds
    )];
    lines.extend(routines(&frames, options.rounds));
    for (decodes, each, per) in
        [(false, units.len(), "ns a packet, copied"), (true, pictures.len(), "ns a picture, decoded")]
    {
        let mut samples = vec![Vec::new(); WAYS.len()];
        for _ in 0..options.rounds {
            for ((checksum, integrated, _), samples) in WAYS.iter().zip(&mut samples) {
                let took = one(&mut frames, coding, decodes, *checksum, *integrated)?;
                samples.push(took.as_nanos() as f64 / each.max(1) as f64);
            }
        }
        for ((_, _, name), samples) in WAYS.iter().zip(samples) {
            lines.push(format!("{name}: {} {per}", spread(samples)));
        }
    }
    let text = lines.join("\n");
    writeln!(stdout(), "{text}").map_err(|error| Trouble::Unwritable("the table".to_owned(), error))
}

/// What the device says of checksums, and whether the rule is applied.
const WAYS: [(Checksum, bool, &str); 4] = [
    (Checksum::Verified, false, "vouched for, without the rule"),
    (Checksum::Verified, true, "vouched for, with the rule"),
    (Checksum::Unknown, false, "to be summed, without the rule"),
    (Checksum::Unknown, true, "to be summed, with the rule"),
];

fn spread(mut samples: Vec<f64>) -> String {
    samples.sort_by(f64::total_cmp);
    match (samples.first(), samples.get(samples.len() / 2), samples.last()) {
        (Some(least), Some(median), Some(most)) => format!("{median:.1} ({least:.1}–{most:.1})"),
        _ => String::new(),
    }
}

/// Something done with a packet, and room for it.
type Routine = fn(&[u8], &mut [u8]);

/// What copying and summing cost on their own, one after the other and in one pass.
fn routines(frames: &[Vec<u8>], rounds: u32) -> Vec<String> {
    let mut room = vec![0; 65_536];
    let ways: [(&str, Routine); 4] = [
        ("copying", |from, to| to.copy_from_slice(from)),
        ("summing", |from, _| _ = black_box(Sum::ZERO.bytes(from))),
        ("summing, then copying", |from, to| {
            black_box(Sum::ZERO.bytes(from));
            to.copy_from_slice(from);
        }),
        ("in one pass", |from, to| _ = black_box(copy_and_sum(from, to))),
    ];
    let mut samples = vec![Vec::new(); ways.len()];
    for _ in 0..rounds {
        for ((_, way), samples) in ways.iter().zip(&mut samples) {
            let before = thread_cpu();
            for frame in frames {
                way(black_box(frame), black_box(&mut room[..frame.len()]));
            }
            let took = thread_cpu().saturating_sub(before);
            samples.push(took.as_nanos() as f64 / frames.len().max(1) as f64);
        }
    }
    let line = |((name, _), samples)| format!("{name}: {} ns a packet", spread(samples));
    ways.into_iter().zip(samples).map(line).collect()
}

/// The CPU time of a whole clip on a path of its own.
fn one(
    frames: &mut [Vec<u8>],
    coding: Coding,
    decodes: bool,
    checksum: Checksum,
    integrated: bool,
) -> Result<Duration, Trouble> {
    let mut outside = Outside;
    let (mut paths, path) = paths(coding, decodes, integrated, &mut outside)?;
    let (meta, sent) = (Meta { checksum, ..Meta::default() }, frames.len() as u64);
    let before = thread_cpu();
    for frame in frames {
        let end = frame.len();
        let mut message = Message::new(frame, 0, end, meta);
        // Drops are counted.
        let _ = paths.up(path, Instant::ZERO, &mut outside, &mut message);
    }
    let took = thread_cpu().saturating_sub(before);
    // Nobody says where advertisements go, so of those some are dropped.
    let decoded = paths.path(path).and_then(|path| path.stage::<MpegStage>()).map(MpegStage::decoded);
    let lost = sent - decoded.unwrap_or_default().packets;
    if lost > 0 {
        return Err(Trouble::Program(format!("{lost} packets were dropped on the way")));
    }
    Ok(took)
}

fn paths(
    coding: Coding,
    decodes: bool,
    integrated: bool,
    outside: &mut Outside,
) -> Result<(Paths, PathId), Trouble> {
    let tables = Tables::with_room(64, silk_appliance::random());
    let owned = Owned { arp: true, icmp: true, fragments: true };
    let configured = tables.configure(owned, Domains::default(), &[], &[OURS]);
    configured.map_err(|_| Trouble::Program("the classifier has no room for one address".into()))?;
    let setup = Setup {
        standing: Standing::of(&[(OURS.into(), 24)], None),
        devices: vec![Device::default()],
        neighbours_told: true,
        ..Setup::new(tables)
    };
    let kinds = silk_media::catalogue(silk_modules::catalogue(setup), Plain { decodes });
    let graph = Graph::build(&graph(), &kinds)
        .map_err(|faults| Trouble::Program(format!("the graph is at fault: {faults:?}")))?;
    let mut paths = Paths::new(graph, rules(integrated));
    let top = paths.graph().modules().find("display");
    let top = top.ok_or_else(|| Trouble::Program("the graph has no display".into()))?;
    let wish = Wish { playing: Playing::Free, coding, ..Wish::default() };
    let attrs = Attrs::new().with(Attr::Local(Endpoint::v4(OURS, mflow::PORT)));
    let path = paths.create(top, wish.add_to(attrs), None, Instant::ZERO, outside);
    Ok((paths, path.map_err(|error| Trouble::Program(error.to_string()))?))
}

fn graph() -> GraphSpec {
    ["vnet", "eth", "ip", "udp", "mflow", "mpeg", "display"]
        .windows(2)
        .fold(GraphSpec::default().module("vnet", "vnet", &[]), |graph, pair| {
            graph.module(pair[1], pair[1], &[]).link(&format!("{}.down", pair[1]), &format!("{}.up", pair[0]))
        })
        .module("arp", "arp", &[("told", Value::Flag(true))])
        .link("arp.down", "eth.up")
        .link("ip.res", "arp.res")
}

/// A packet of video as it comes from the device.
fn frame(number: u32, unit: &Unit<'_>) -> Vec<u8> {
    let data = mflow::Data {
        sequence: number,
        picture: unit.stamp,
        first: unit.first,
        last: unit.last,
        ..mflow::Data::default()
    };
    let length = udp::HEADER + mflow::HEADER + unit.bytes.len();
    let mut frame = vec![0; BELOW + udp::HEADER + mflow::HEADER];
    frame.extend(unit.bytes);
    frame[..eth::HEADER].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame[14..18]
        .copy_from_slice(&[&[0x45, 0][..], &((length + ipv4::HEADER) as u16).to_be_bytes()].concat());
    frame[20..24].copy_from_slice(&[0x40, 0, 64, ipv4::UDP]);
    frame[26..30].copy_from_slice(&THEIRS.octets());
    frame[30..34].copy_from_slice(&OURS.octets());
    let sum = Sum::ZERO.bytes(&frame[eth::HEADER..BELOW]).checksum();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    data.emit(&mut frame[BELOW + udp::HEADER..]);
    udp::emit(6000, mflow::PORT, (length - udp::HEADER) as u16, 0, &mut frame[BELOW..]);
    let sum = udp::seal(pseudo(THEIRS, OURS, ipv4::UDP, length as u16).bytes(&frame[BELOW..]));
    let at = BELOW + udp::CHECKSUM;
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// A world in which nothing happens.
struct Outside;

impl Port for Outside {
    fn transmit(&mut self, _: PathId, _: &Message<'_>) -> Result<(), DropReason> {
        Ok(())
    }

    fn deliver(&mut self, _: PathId, _: &Message<'_>) -> Result<(), DropReason> {
        Err(DropReason::NoReceiver)
    }

    fn arm(&mut self, _: PathId, _: Instant) {}

    fn event(&mut self, _: PathId, _: Event) {}

    fn request(&mut self, _: Request) {}

    fn random(&mut self) -> u64 {
        0
    }

    fn clock(&mut self) -> Option<Instant> {
        None
    }
}

/// What decodes: libavcodec, or nothing. Nothing is shown.
struct Plain {
    decodes: bool,
}

impl Library for Plain {
    fn decoders(&self) -> Box<dyn Decoders> {
        Box::new(Self { decodes: self.decodes })
    }

    fn screens(&self) -> Box<dyn Screens> {
        Box::new(Dark)
    }
}

impl Decoders for Plain {
    fn open(&mut self, coding: Coding) -> Result<Box<dyn Decoder>, DecodeError> {
        Ok(if self.decodes {
            Box::new(AvDecoder::new(coding, Limits::default())?)
        } else {
            Box::new(Collector::default())
        })
    }
}

/// Collects the bytes of each picture, as a decoder does, and throws them away.
#[derive(Default)]
struct Collector {
    collected: Vec<u8>,
    filled: usize,
}

impl Collector {
    fn next(&mut self, bytes: usize) -> &mut [u8] {
        let end = self.filled + bytes;
        if self.collected.len() < end {
            self.collected.resize(end, 0);
        }
        &mut self.collected[self.filled..end]
    }

    fn took(&mut self, unit: &Unit<'_>) {
        self.filled = if unit.last { 0 } else { self.filled + unit.bytes.len() };
        black_box(&mut self.collected);
    }
}

impl Decoder for Collector {
    fn decode(&mut self, unit: Unit<'_>, _: &mut dyn FnMut(Box<dyn Picture>)) -> Result<(), DecodeError> {
        self.next(unit.bytes.len()).copy_from_slice(unit.bytes);
        self.took(&unit);
        Ok(())
    }

    fn room(&mut self, unit: &Unit<'_>) -> Option<&mut [u8]> {
        Some(self.next(unit.bytes.len()))
    }

    fn decode_copied(
        &mut self,
        unit: Unit<'_>,
        _: &mut dyn FnMut(Box<dyn Picture>),
    ) -> Result<(), DecodeError> {
        self.took(&unit);
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn FnMut(Box<dyn Picture>)) {}

    fn memory(&self) -> u64 {
        0
    }
}
