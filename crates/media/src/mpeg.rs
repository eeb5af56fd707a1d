//! MPEG: decodes a stream packet by packet and puts the pictures into DISPLAY's queue
//! (Scout §4.1). Its source cuts at slices (application-level framing), so it keeps nothing
//! between packets but the decoder's own state. What will not be shown is not decoded: pictures
//! that no other needs (B pictures) and that are skipped by wish or past their time. Where UDP leaves its
//! checksum to whoever reads the data (the rule *integrated layers*), that is this stage; it must
//! let nothing come of a packet before.
//!
//! # Configuration
//! None.
//!
//! # Services
//! `up` (pictures, provider): DISPLAY. `down` (net, needed): what carries the stream, MFLOW or
//! RTP. With several, `PathName` decides.
//!
//! # Attributes
//! Reads the viewer's [`Wish`]: how the stream is coded, until what carries it tells.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "mpeg"
//! kind = "mpeg"
//!
//! [[link]]
//! from = "mpeg.down"
//! to = "mflow.up"
//! ```
//!
//! # See also
//! [`display`](crate::display) above.

use crate::admission::Pictures;
use crate::alf;
use crate::attributes::Wish;
use crate::cadence::Cadence;
use crate::decoder::{B_PICTURE, Coding, DecodeError, Decoder, I_PICTURE, Need, Unit};
use crate::display::{DisplayStage, PICTURES};
use crate::fall::Fall;
use crate::h264_decoder::FromRtp;
use crate::model::Model;
use crate::picture::Picture;
use crate::placing::Placing;
use crate::reorder::Reorder;
use crate::seen::{Seen, Used};
use crate::smallest::Smallest;
use crate::summing;
use crate::timing::Rate;
use crate::trace::{Step, Tracer};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::service::{NET, Service};
use silk_path::{
    self as path, Coded, Create, CreateError, Cx, DropReason, Event, Framing, Message, Module, Next, Stage,
    Verdict,
};

/// Its services.
pub const SERVICES: &[Service] = &[Service::offered("up", PICTURES), Service::needed("down", NET)];
const DOWN: u8 = 1;

/// How far numbers go back at most where a source has not begun anew: farther than a decoder puts pictures
/// in order (ISO 14496-10 §A.3.1).
const BACK: u32 = 32;
/// The same of ticks: longer than the group of a sender that stamps all its reference pictures alike.
const BACK_TICKS: u32 = 10 * 90_000;

/// Makes decoders.
pub trait Decoders: Send {
    /// A decoder for a new path.
    ///
    /// # Errors
    /// When there is none for this coding, or no memory.
    fn open(&mut self, coding: Coding) -> Result<Box<dyn Decoder>, DecodeError>;

    /// A decoder of MPEG video to find out with, now and then, what the smallest picture costs (Scout §4.4). `None`
    /// where decoding takes no time of a processor, as in simulations.
    fn smallest(&mut self) -> Option<Box<dyn Decoder>> {
        None
    }

    /// The most memory that a stream of pictures of this size (luma samples in a row, rows) needs.
    /// What is said here is as much as libraries use: pictures with a margin around them, a
    /// few that others refer to, and a fixed part.
    fn need(&self, coding: Coding, (width, height): (usize, usize)) -> Need {
        let rows = height.next_multiple_of(16) as u64;
        let picture = (width.next_multiple_of(16) as u64 + MARGIN) * rows * 3 / 2;
        let (references, fixed) = match coding {
            Coding::Mpeg => (3, 512 * 1024),
            Coding::H264 => (8, 2048 * 1024),
        };
        // Beside pictures, the code of one that is collected, no longer than itself, and 64 KiB.
        Need { decoder: (references + 1) * picture + fixed + 64 * 1024, picture }
    }
}

/// Samples that libraries may leave on both sides of a row.
const MARGIN: u64 = 128;

/// The module.
pub struct Mpeg {
    decoders: Box<dyn Decoders>,
    // What tells the cost of the smallest picture; `None` where that cannot be decoded.
    smallest: Option<Smallest>,
    /// What pictures cost, learnt from all paths.
    pub model: Model,
}

impl Mpeg {
    /// The module whose paths decode by `decoders`.
    pub fn new(mut decoders: Box<dyn Decoders>) -> Self {
        let smallest = decoders.smallest().and_then(Smallest::new);
        Self { decoders, smallest, model: Model::default() }
    }

    /// The most memory that a stream of pictures of this size needs which comes as the wish says.
    pub fn need(&self, wish: &Wish, size: (usize, usize)) -> Need {
        let Need { decoder, picture } = self.decoders.need(wish.coding, size);
        let is_in_pieces = wish.ticks && wish.coding == Coding::H264;
        Need { decoder: decoder + if is_in_pieces { FromRtp::LARGEST as u64 } else { 0 }, picture }
    }
}

impl Module for Mpeg {
    fn kind(&self) -> &'static str {
        "mpeg"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<path::Step, CreateError> {
        let wish = Wish::of(create.attrs);
        let decoder = self.decoders.open(wish.coding).map_err(|_| CreateError::Missing("a decoder"))?;
        let (decoder, placing, cadence) = suited(decoder, wish.coding, &wish);
        let stage = MpegStage {
            decoder,
            coding: wish.coding,
            wish,
            charged: 0,
            ready: Vec::new(),
            decoded: Decoded::default(),
            missed: false,
            arrivals: Arrivals::default(),
            seen: Seen::default(),
            size: None,
            picture: 0,
            tracer: Tracer::default(),
            placing,
            cadence,
            reorder: if wish.ticks {
                Reorder::new(wish.own.ticks(), BACK_TICKS)
            } else {
                Reorder::new(1, BACK)
            },
            fall: Fall::default(),
        };
        Ok(path::Step { stage: Some(Box::new(stage)), next: Next::Service(DOWN) })
    }
}

/// What decoding has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Packets that were given to the decoder.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Pictures that came out.
    pub pictures: u64,
    /// Time in the decoder, ns.
    pub time: u64,
    /// Packets of pictures that are skipped by wish, not decoded.
    pub skipped: u64,
    /// Packets of pictures whose time had passed, not decoded.
    pub too_late: u64,
    /// Packets the decoder found damaged.
    pub damaged: u64,
    /// Pictures, and packets of such, that the path had no memory for.
    pub no_memory: u64,
}

/// How fast packets arrive: an average of what lies between two of them, an eighth for the newest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    last: Option<Instant>,
    average: u64,
}

impl Arrivals {
    fn add(&mut self, at: Instant) {
        if let Some(last) = self.last.filter(|last| *last <= at) {
            let between = at.since(last).as_nanos() as u64;
            self.average =
                if self.average == 0 { between } else { self.average - self.average / 8 + between / 8 };
        }
        self.last = Some(at);
    }

    /// The mean time from one packet to the next; `None` before the second.
    pub(crate) fn interval(&self) -> Option<Duration> {
        (self.average > 0).then(|| Duration::from_nanos(self.average))
    }
}

/// MPEG's part of a path: a decoder.
pub struct MpegStage {
    decoder: Box<dyn Decoder>,
    coding: Coding,
    wish: Wish,
    // Bytes of the decoder's own that are charged to the path.
    charged: usize,
    // Pictures on their way from the decoder to the display.
    ready: Vec<Box<dyn Picture>>,
    decoded: Decoded,
    // A packet was dropped here, and the next that is decoded does not know it yet.
    missed: bool,
    pub(crate) arrivals: Arrivals,
    seen: Seen,
    // Of the last picture that came out: its size, and its bytes.
    size: Option<(usize, usize)>,
    picture: u64,
    tracer: Tracer,
    // Of MPEG by RTP.
    placing: Option<Placing>,
    // Of H.264 by RTP.
    cadence: Option<Cadence>,
    reorder: Reorder,
    fall: Fall,
}

/// The decoder for a stream that is coded so and comes as the wish says, and what puts its stamps right.
fn suited(
    decoder: Box<dyn Decoder>,
    coding: Coding,
    wish: &Wish,
) -> (Box<dyn Decoder>, Option<Placing>, Option<Cadence>) {
    match coding {
        _ if !wish.ticks => (decoder, None, None),
        Coding::Mpeg => (decoder, Some(Placing::new(wish.own)), None),
        // By RTP, H.264 comes in pieces (RFC 6184).
        Coding::H264 => (Box::new(FromRtp::new(decoder)), None, Some(Cadence::new(wish.own))),
    }
}

/// How the display sees a picture.
#[derive(Clone, Copy)]
struct Sight {
    // It is one of those that are shown.
    wanted: bool,
    // Its time has passed.
    past: bool,
    // One of each so many is shown.
    every: u32,
    // No other picture needs it.
    alone: bool,
}

impl Sight {
    /// Whether it would be in vain to decode it: no other picture needs it, and nobody would see it.
    fn is_in_vain(self) -> bool {
        self.alone && (!self.wanted || self.past)
    }
}

impl MpegStage {
    /// What decoding has come to.
    pub fn decoded(&self) -> Decoded {
        self.decoded
    }

    /// What the stream's pictures are like, as far as they were seen.
    pub fn seen(&self) -> Pictures {
        self.seen.pictures()
    }

    /// Luma samples in a row and rows of the last picture that came out.
    pub fn size(&self) -> Option<(usize, usize)> {
        self.size
    }

    /// Bytes of the last picture that came out; 0 before the first.
    pub fn picture_memory(&self) -> u64 {
        self.picture
    }

    /// How the stream is coded.
    pub fn coding(&self) -> Coding {
        self.coding
    }

    /// Where the pictures that others need fall, if each n-th is shown: what may be discarded before it
    /// comes here.
    pub fn fall(&self) -> Fall {
        self.fall
    }

    /// The stamps by which pictures are shown are those that their sender gave them.
    pub fn stamps_are_senders(&self) -> bool {
        self.placing.is_none_or(|placing| placing.is_senders()) && self.reorder.is_senders()
    }

    /// How the display sees the picture of a packet; `None` without a display.
    fn sight(&self, cx: &mut Cx<'_, '_>, framing: Framing) -> Option<Sight> {
        let now = cx.now();
        let Framing { kind, stamp, .. } = framing;
        let output = &cx.above::<DisplayStage>()?.output;
        let options = output.options();
        let wanted = output.wants(stamp) && !(options.without_b && kind == B_PICTURE);
        let alone = kind == B_PICTURE || (kind == I_PICTURE && self.fall.each_stands_alone());
        // What is shown by another stamp than this is not past by it.
        let past = output.is_past(stamp, now) && self.reorder.is_senders();
        Some(Sight { wanted, past, every: options.every, alone })
    }

    /// Counts a packet that has arrived as it was sent.
    fn note(&mut self, framing: Framing, sight: Sight) {
        if framing.first {
            self.fall.note(framing.kind, sight.wanted, sight.every);
        }
        if sight.alone {
            self.decoded.skipped += u64::from(!sight.wanted);
            self.decoded.too_late += u64::from(sight.wanted && sight.past);
        }
    }

    /// The coding of a picture that begins, where its carrier tells another than this stage's.
    fn told_another(&self, framing: Framing) -> Option<Coding> {
        let told = match framing.coded {
            Coded::Untold => return None,
            Coded::Mpeg => Coding::Mpeg,
            Coded::H264 => Coding::H264,
        };
        (framing.first && told != self.coding).then_some(told)
    }

    /// The stream is coded so, and not as was expected: another decoder takes it.
    fn recode(&mut self, cx: &mut Cx<'_, '_>, coding: Coding) {
        let Ok(decoder) = cx.module::<Mpeg>().decoders.open(coding) else { return };
        (self.decoder, self.placing, self.cadence) = suited(decoder, coding, &self.wish);
        self.coding = coding;
    }

    /// Learns what the last picture has cost the path as a whole, when another begins.
    fn learn(&mut self, cx: &mut Cx<'_, '_>, bytes: usize, framing: Framing) {
        let used = Used { path: cx.account().cpu_path, decoding: self.decoded.time };
        if let Some((sample, Used { path, decoding })) = self.seen.packet(framing, bytes, used) {
            let mpeg = cx.module::<Mpeg>();
            mpeg.model.learn(sample, path as f64);
            if let Some(smallest) = &mut mpeg.smallest {
                smallest.add_beside(path.saturating_sub(decoding) as f64);
            }
        }
    }

    /// Before a picture is decoded: now and then the smallest one in its place, to learn what that costs. Whether
    /// it was.
    fn learn_smallest(&mut self, cx: &mut Cx<'_, '_>) -> bool {
        let Some(start) = cx.port().clock() else { return false };
        let Some(mut smallest) = cx.module::<Mpeg>().smallest.take_if(|smallest| smallest.is_due(start))
        else {
            return false;
        };
        self.seen.disturb();
        if !smallest.again() {
            return true;
        }
        let decoding = time(cx).since(start).as_nanos() as f64;
        let mpeg = cx.module::<Mpeg>();
        mpeg.model.learn_smallest(smallest.whole(decoding));
        mpeg.smallest = Some(smallest);
        true
    }

    /// The path pays for what its decoder keeps, as that grows and shrinks.
    fn pay(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), DropReason> {
        let memory = self.decoder.memory() as usize;
        if memory > self.charged {
            cx.charge(memory - self.charged)?;
        } else {
            cx.release(self.charged - memory);
        }
        self.charged = memory;
        Ok(())
    }

    /// Tells the display the stream's own rate, where a sequence header tells it.
    fn look_at_sequence(&mut self, cx: &mut Cx<'_, '_>, bytes: &[u8]) {
        let rate = match self.coding {
            Coding::Mpeg => alf::sequence(bytes).and_then(|sequence| sequence.rate),
            Coding::H264 => alf::h264_rate(bytes),
        };
        let Some(rate) = rate.and_then(alf::Rate::played) else { return };
        if self.cadence.as_mut().is_none_or(|cadence| cadence.tells(rate)) {
            set_own(cx, rate);
        }
    }

    /// Decodes a packet that has arrived as it was sent; since `start` its bytes may have been copied to
    /// where the decoder wants them.
    fn decode(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>, start: Instant, copied: bool) {
        let (unit, arrival) = (Unit::of(msg), msg.meta.arrival);
        let bytes = unit.bytes;
        let freed = cx.above::<DisplayStage>().map_or(Instant::ZERO, |display| display.output.freed());
        if unit.first {
            self.look_at_sequence(cx, bytes);
        }
        let Self { decoder, ready, .. } = self;
        let shown = &mut |picture| ready.push(picture);
        let done = if copied { decoder.decode_copied(unit, shown) } else { decoder.decode(unit, shown) };
        let end = time(cx);
        self.decoded.packets += 1;
        self.decoded.bytes += bytes.len() as u64;
        self.decoded.time += end.since(start).as_nanos() as u64;
        self.decoded.damaged += u64::from(done.is_err());
        self.tracer.add(Step { arrival, freed, start, end });
        self.hand_over(cx);
    }

    /// Gives the display what has become ready, paid for by the path.
    fn hand_over(&mut self, cx: &mut Cx<'_, '_>) {
        if self.ready.is_empty() {
            return;
        }
        let trace = self.tracer.finish();
        for picture in self.ready.drain(..) {
            self.decoded.pictures += 1;
            (self.size, self.picture) = (Some(picture.size()), picture.memory());
            self.seen.came_out(macroblocks(picture.size()));
            let (stamp, anew) = self.reorder.leaves(picture.stamp());
            if let Some(rate) = self.cadence.as_mut().and_then(|cadence| cadence.note(stamp)) {
                set_own(cx, rate);
            }
            if cx.charge(picture.memory() as usize).is_err() {
                self.decoded.no_memory += 1;
                cx.count_drop(DropReason::NoMemory);
            } else if let Some(display) = cx.above::<DisplayStage>() {
                if anew {
                    display.output.begin_anew();
                }
                display.take(picture, stamp, trace);
            }
        }
        cx.raise(Event::Readable);
    }
}

/// Tells the display the stream's own rate.
fn set_own(cx: &mut Cx<'_, '_>, rate: Rate) {
    let now = cx.now();
    if let Some(display) = cx.above::<DisplayStage>() {
        display.output.set_own(rate, now);
    }
}

/// Squares of 16 by 16 samples, those at the edges whole.
fn macroblocks((width, height): (usize, usize)) -> f64 {
    (width.div_ceil(16) * height.div_ceil(16)) as f64
}

/// What time it is now, where there is a clock; the time of the run else.
fn time(cx: &mut Cx<'_, '_>) -> Instant {
    let now = cx.now();
    cx.port().clock().unwrap_or(now)
}

impl Stage for MpegStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        self.pay(cx).map_err(|_| CreateError::Refused(path::Refused::PathMemory))
    }

    /// Nothing comes of a packet before its checksum is known to be right.
    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        if let Some(coding) = self.told_another(msg.meta.framing) {
            if let Err(reason) = summing::verify(msg) {
                return reason.into();
            }
            self.recode(cx, coding);
        }
        let mut placing = self.placing;
        if let Some(placing) = &mut placing {
            msg.meta.framing.stamp = placing.stamp(&msg.meta.framing, msg.bytes());
        }
        let framing = msg.meta.framing;
        msg.meta.framing.gap |= self.missed;
        let sight = self.sight(cx, framing);
        let wanted = sight.filter(|sight| !sight.is_in_vain()).map(|_| time(cx));
        let taken = match wanted {
            Some(_) => summing::take(&mut *self.decoder, msg),
            None => summing::verify(msg).map(|()| false),
        };
        let copied = match taken {
            Ok(copied) => copied,
            Err(reason) => return reason.into(),
        };
        self.placing = placing;
        self.arrivals.add(msg.meta.arrival);
        if let Some(sight) = sight {
            self.note(framing, sight);
        }
        if let Some(start) = wanted {
            self.learn(cx, msg.len(), framing);
            if let Err(reason) = self.pay(cx) {
                self.decoded.no_memory += 1;
                // Those below have counted it as passed on.
                self.missed = true;
                return Verdict::Drop(reason);
            }
            self.missed = false;
            // Most decoders wait for a picture's last packet, so that one brings the cost.
            let later = framing.last && self.learn_smallest(cx);
            let start = if later { time(cx) } else { start };
            self.decode(cx, msg, start, copied);
        }
        Verdict::Consumed
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    /// The stream has ended: what the decoder still holds is shown too.
    fn event(&mut self, cx: &mut Cx<'_, '_>, event: Event) -> bool {
        if event == Event::PeerFinished {
            let Self { decoder, ready, .. } = self;
            decoder.finish(&mut |picture| ready.push(picture));
            let now = time(cx);
            self.tracer.add(Step { arrival: now, freed: now, start: now, end: now });
            self.hand_over(cx);
        }
        true
    }

    fn sums(&self) -> bool {
        true
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        cx.release(core::mem::take(&mut self.charged));
    }
}
