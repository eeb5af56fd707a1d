//! MFLOW's part of a path. A packet is carried up by this stage itself, so that when the run
//! returns the packet has been processed, and the advertisement that follows is true.

use super::Mflow;
use super::order::{Order, Turn};
use super::window::{Bounds, Window};
use crate::faults::reason;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::classify::{Between, Found, Protocol};
use silk_path::{Cx, DropReason, Endpoint, Event, Framing, Message, Meta, Stage, Verdict};
use silk_wire::mflow::{self, ADVERTISEMENT, Advertisement, Data, HEADER, Packet};

/// Room for the headers below.
const HEADROOM: usize = 128;
/// An advertisement that nothing follows was perhaps lost, and is repeated after this long at
/// least, then after twice as long, and so on.
const REPEAT_LEAST: Duration = Duration::from_millis(20);
/// The longest time from one to the next.
const REPEAT_MOST: Duration = Duration::from_secs(1);
/// A source that nobody named may be replaced by another after it was silent for so long.
const SILENCE: Duration = Duration::from_secs(5);
/// Times it is repeated; a source that lives asks itself.
const REPEATS: u32 = 8;

/// What has become of a path's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Packets taken, in order.
    pub received: u64,
    /// Packets that never came.
    pub lost: u64,
    /// Packets that were discarded where they are classified (Scout §4.4).
    pub discarded: u64,
    /// Packets of pictures that are not wanted, taken for their headers.
    pub unwanted: u64,
    /// Packets that were repeated or out of order, and dropped.
    pub old: u64,
    /// Packets beyond what was advertised, and dropped.
    pub beyond: u64,
    /// Times the source began anew.
    pub begun_anew: u64,
    /// Advertisements sent.
    pub advertised: u64,
    /// The round trip as the source has told it last, µs; 0: not yet.
    pub round_trip: u32,
    /// Packets in a super-packet (n of Scout §4.2).
    pub super_packet: u16,
    /// The source has ended the stream.
    pub ended: bool,
}

/// What an advertisement says of the last packet.
#[derive(Clone, Copy)]
struct Last {
    clock: u32,
    arrival: Instant,
}

/// MFLOW's part of a path.
pub struct MflowStage {
    found: Found,
    // The path hears one source alone, which is the first to send where no attribute names it.
    adopts: bool,
    // Its flow, which this stage has entered into the classifier.
    entered: Option<Between>,
    // Where advertisements go, and from where.
    ends: Option<(Endpoint, Endpoint)>,
    order: Order,
    window: Window,
    last: Option<Last>,
    // Of what was discarded early, what is known to be no gap.
    explained: u64,
    // Something is missing before the next packet that goes up.
    gap: bool,
    // Advertisements repeated since the last packet.
    repeats: u32,
    // A packet came since the timer was set.
    heard: bool,
    figures: Figures,
}

impl MflowStage {
    pub(super) fn new(found: Found, bounds: Bounds, queue: u16, adopts: bool) -> Self {
        Self {
            found,
            adopts,
            entered: None,
            ends: None,
            order: Order::default(),
            window: Window::new(bounds, queue),
            last: None,
            explained: 0,
            gap: false,
            repeats: 0,
            heard: false,
            figures: Figures::default(),
        }
    }

    /// What has become of the path's packets so far.
    pub fn figures(&self) -> Figures {
        Figures { super_packet: self.window.super_packet(), ..self.figures }
    }

    /// Whether the packet comes from the path's source: the one that its attributes name, or else
    /// the first that sends, until it has been silent for long.
    fn is_ours(&mut self, cx: &mut Cx<'_, '_>, meta: &Meta) -> bool {
        let heard = self.last.map(|last| last.arrival);
        match self.ends {
            Some((remote, _)) if !self.adopts || remote == meta.remote => return true,
            Some(_) if heard.is_some_and(|heard| cx.now().since(heard) < SILENCE) => return false,
            Some(_) => self.forget(cx),
            None => {}
        }
        self.ends = Some((meta.remote, meta.local));
        if self.adopts {
            self.enter(cx, Between { protocol: Protocol::Udp, local: meta.local, remote: meta.remote });
        }
        true
    }

    /// The source is given up for another.
    fn forget(&mut self, cx: &mut Cx<'_, '_>) {
        self.leave(cx);
        (self.order, self.last) = (Order::default(), None);
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        self.window.reset();
        self.figures.begun_anew += 1;
        self.figures.ended = false;
        self.gap = true;
    }

    /// The source is known now: the classifier takes its packets straight to this path, and
    /// discards what is not wanted. Where it cannot, they come as the first one did.
    fn enter(&mut self, cx: &mut Cx<'_, '_>, flow: Between) {
        let tables = &cx.module::<Mflow>().tables;
        self.entered = tables.flows.insert(&flow, self.found).is_ok().then_some(flow);
    }

    fn leave(&mut self, cx: &mut Cx<'_, '_>) {
        if let Some(flow) = self.entered.take() {
            let tables = &cx.module::<Mflow>().tables;
            tables.flows.remove(&flow);
        }
    }

    /// Takes the packet in its turn; the reason why not, else. What goes up has its place in
    /// `framing`.
    fn take(&mut self, cx: &mut Cx<'_, '_>, data: &Data) -> Result<Framing, DropReason> {
        let highest = self.window.highest().unwrap_or(data.sequence);
        match self.order.take(data.sequence, highest) {
            Turn::Next(missing) => self.miss(cx, missing.into()),
            Turn::Anew => self.begin_anew(),
            Turn::Old => {
                self.figures.old += 1;
                return Err(DropReason::MflowOld);
            }
            Turn::Beyond => {
                self.figures.beyond += 1;
                return Err(DropReason::MflowBeyond);
            }
        }
        self.figures.received += 1;
        Ok(Framing {
            stamp: data.picture,
            kind: data.kind,
            first: data.first,
            last: data.last,
            gap: self.gap,
        })
    }

    /// So many packets have not come: those that were discarded early left no gap.
    fn miss(&mut self, cx: &mut Cx<'_, '_>, missing: u64) {
        if missing == 0 {
            return;
        }
        let discarded = cx.module::<Mflow>().tables.discarded(self.found);
        // A filter that was cleared and set again counts from the beginning.
        self.explained = self.explained.min(discarded);
        let explained = missing.min(discarded - self.explained);
        self.explained += explained;
        self.figures.discarded += explained;
        self.figures.lost += missing - explained;
        self.gap |= missing > explained;
    }

    /// Carries what is wanted up to the end of the path.
    fn carry(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>, framing: Framing) {
        if msg.is_empty() {
            return;
        }
        let filter = cx.module::<Mflow>().tables.filter(self.found);
        if filter.is_some_and(|filter| filter.unwanted(framing.kind, framing.stamp)) {
            self.figures.unwanted += 1;
            cx.count_drop(DropReason::MflowUnwanted);
            return;
        }
        self.gap = false;
        msg.meta.framing = framing;
        // A drop above has been counted there.
        let _ = cx.up(msg);
    }

    /// The queue follows what was measured.
    fn fit(&mut self, cx: &mut Cx<'_, '_>, round_trip: u32) {
        if round_trip == 0 {
            return;
        }
        self.figures.round_trip = round_trip;
        let round_trip = u64::from(round_trip) * 1000;
        cx.note_round_trip(round_trip);
        if let Some(process) = cx.process_time() {
            let discarding = cx.module::<Mflow>().tables.filter(self.found).is_some();
            self.window.fit(process, round_trip, discarding);
        }
    }

    /// Tells the source how far it may send, where there is a source.
    fn advertise(&mut self, cx: &mut Cx<'_, '_>, stop: bool) {
        let (Some(processed), Some(last), Some((remote, local))) = (self.order.last(), self.last, self.ends)
        else {
            return;
        };
        let (highest, queue) = self.window.advance(processed);
        cx.set_input_limit(queue);
        let now = cx.now();
        let now = cx.port().clock().unwrap_or(now);
        let advertisement = Advertisement {
            stop,
            super_packet: self.window.super_packet(),
            processed,
            highest,
            clock: last.clock,
            held: u32::try_from(now.since(last.arrival).as_micros()).unwrap_or(u32::MAX),
        };
        let mut buffer = [0; HEADROOM + ADVERTISEMENT];
        advertisement.emit(&mut buffer[HEADROOM..]);
        let meta = Meta { remote, local, ..Meta::default() };
        self.figures.advertised += 1;
        // Lost like any other; a drop has been counted.
        let _ = cx.down(&mut Message::new(&mut buffer, HEADROOM, HEADROOM + ADVERTISEMENT, meta));
    }

    /// After this long without a packet the last advertisement is repeated.
    fn patience(&self) -> Duration {
        let round_trips = Duration::from_micros(self.figures.round_trip.into()) * 4;
        (round_trips.max(REPEAT_LEAST) * (1 << self.repeats.min(16))).min(REPEAT_MOST)
    }
}

impl Stage for MflowStage {
    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let data = match mflow::parse(msg.bytes()) {
            Ok(Packet::Data(data, _)) => data,
            Ok(Packet::Advertisement(_)) => return Verdict::Drop(DropReason::Unexpected),
            Err(fault) => return reason(fault).into(),
        };
        if !self.is_ours(cx, &msg.meta) {
            return Verdict::Drop(DropReason::NotForPath);
        }
        let asked = data.ends_super || data.ends_stream;
        let taken = self.take(cx, &data);
        if let Ok(framing) = taken {
            self.last = Some(Last { clock: data.clock, arrival: msg.meta.arrival });
            self.heard = true;
            msg.pop(HEADER);
            self.carry(cx, msg, framing);
            self.fit(cx, data.round_trip);
            if data.ends_stream && !core::mem::replace(&mut self.figures.ended, true) {
                cx.raise(Event::PeerFinished);
            }
        }
        // Who repeats what is processed has not heard that it is.
        let answers = taken.is_ok() || (taken == Err(DropReason::MflowOld) && asked);
        if answers && self.order.last().is_some_and(|processed| self.window.is_due(processed, asked)) {
            self.repeats = 0;
            self.advertise(cx, false);
            let at = cx.now() + self.patience();
            cx.arm(at);
        }
        taken.map_or_else(Verdict::Drop, |_| Verdict::Consumed)
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    /// The last advertisement may have been lost, and the source waits.
    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        if core::mem::take(&mut self.heard) {
            self.repeats = 0;
        } else if self.figures.ended || self.repeats >= REPEATS {
            return;
        } else {
            self.repeats += 1;
            self.advertise(cx, false);
        }
        let at = cx.now() + self.patience();
        cx.arm(at);
    }

    /// The source is told to stop.
    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        if !self.figures.ended {
            self.advertise(cx, true);
        }
        self.leave(cx);
    }

    fn state(&self) -> &'static str {
        if self.figures.ended { "ENDED" } else { "" }
    }
}
