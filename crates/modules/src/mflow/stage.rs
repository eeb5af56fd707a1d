//! MFLOW's part of a path. A packet is carried up by this stage itself, so that when the run
//! returns the packet has been processed, and the advertisement that follows is true. Nothing of the
//! stage changes before that: where checksums are verified above (the rule *integrated layers*), it
//! is not known before whether the packet has arrived as it was sent.

use super::Mflow;
use super::order::{Order, Turn};
use super::window::{Bounds, Window};
use crate::faults::reason;
use crate::unsummed::{refused, verify};
use core::time::Duration;
use silk_instant::Instant;
use silk_path::classify::{Between, Found, Protocol};
use silk_path::{Coded, Cx, DropReason, Endpoint, Event, Framing, Message, Meta, Stage, Verdict};
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
/// Places in the input queue beside those for what was advertised: for the questions of a source that waits, which
/// must not take the place of its data. It asks every 20 to 40 ms while it hears a word for each picture, and where
/// there is too little of the processor for all, half a second of that waits (with 8 places up to five pictures of
/// 1345 were lost).
const QUESTIONS: u16 = 24;
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

/// Whose a packet is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The path's source: the one that its attributes name, or else the first that sends.
    Source,
    /// One that the path can have: it has no source, or its own has been silent for long.
    Newcomer,
    /// Another's.
    Other,
}

/// What would become of a packet that has arrived as it was sent.
struct Look {
    turn: Turn,
    // The order with it.
    order: Order,
    // Packets missing before it that were lost, and that were discarded early.
    lost: u64,
    explained: u64,
    // The latter in all.
    explained_in_all: u64,
    // Something is missing before it.
    gap: bool,
}

impl Look {
    fn is_taken(&self) -> bool {
        matches!(self.turn, Turn::Next(_) | Turn::Anew)
    }

    fn framing(&self, data: &Data) -> Framing {
        let Data { picture, kind, first, last, coding, .. } = *data;
        let coded = match coding {
            mflow::Coding::Mpeg => Coded::Mpeg,
            mflow::Coding::H264 => Coded::H264,
        };
        Framing { stamp: picture, kind, first, last, gap: self.gap, coded }
    }
}

/// What is to be done with a packet's data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// They go up the path.
    Wanted,
    /// Nobody wants to see their picture.
    Unwanted,
    /// There are none.
    Empty,
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

    /// Whose a packet with this is.
    fn owner(&self, now: Instant, meta: &Meta) -> Owner {
        let heard = self.last.map(|last| last.arrival);
        match self.ends {
            Some((remote, _)) if !self.adopts || remote == meta.remote => Owner::Source,
            Some(_) if heard.is_some_and(|heard| now.since(heard) < SILENCE) => Owner::Other,
            _ => Owner::Newcomer,
        }
    }

    /// The path belongs to the sender of a packet with this from now on.
    fn adopt(&mut self, cx: &mut Cx<'_, '_>, meta: &Meta) {
        if self.ends.is_some() {
            self.forget(cx);
        }
        self.ends = Some((meta.remote, meta.local));
        if self.adopts {
            self.enter(cx, Between { protocol: Protocol::Udp, local: meta.local, remote: meta.remote });
        }
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

    /// What would become of the packet; nothing does yet.
    fn look(&self, cx: &mut Cx<'_, '_>, data: &Data, asks: bool) -> Look {
        let highest = self.window.highest().unwrap_or(data.sequence);
        let mut order = self.order;
        let turn = order.take(data.sequence, highest, asks);
        let missing = if let Turn::Next(missing) = turn { u64::from(missing) } else { 0 };
        let discarded = if missing > 0 { cx.module::<Mflow>().tables.discarded(self.found) } else { 0 };
        // Those that were discarded early left no gap. A filter that was cleared and set again counts
        // from the beginning.
        let before = if missing > 0 { self.explained.min(discarded) } else { self.explained };
        let explained = missing.min(discarded.saturating_sub(before));
        let gap = self.gap || turn == Turn::Anew || missing > explained;
        Look { order, turn, lost: missing - explained, explained, explained_in_all: before + explained, gap }
    }

    /// It becomes of the packet. The reason why it is not taken, where it is not.
    fn take(&mut self, look: &Look) -> Result<(), DropReason> {
        self.order = look.order;
        match look.turn {
            Turn::Next(_) => {}
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
        self.explained = look.explained_in_all;
        self.figures.discarded += look.explained;
        self.figures.lost += look.lost;
        self.figures.received += 1;
        Ok(())
    }

    /// What is to be done with the data of the packet, where it is taken.
    fn use_of(&self, cx: &mut Cx<'_, '_>, data: &Data, msg: &Message<'_>) -> Use {
        let filter = cx.module::<Mflow>().tables.filter(self.found);
        match filter {
            _ if msg.len() <= HEADER => Use::Empty,
            Some(filter) if filter.unwanted(data.kind, data.picture) => Use::Unwanted,
            _ => Use::Wanted,
        }
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
        cx.set_input_limit(queue.saturating_add(QUESTIONS));
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

    /// The packet has arrived as it was sent, and what is above has done with it: now it becomes of it.
    fn processed(
        &mut self,
        cx: &mut Cx<'_, '_>,
        data: &Data,
        look: &Look,
        purpose: Use,
        arrival: Instant,
    ) -> Verdict {
        let asked = data.ends_super || data.ends_stream;
        let taken = self.take(look);
        if taken.is_ok() {
            self.gap = look.gap && purpose != Use::Wanted;
            self.last = Some(Last { clock: data.clock, arrival });
            self.heard = true;
            if purpose == Use::Unwanted {
                self.figures.unwanted += 1;
                cx.count_drop(DropReason::MflowUnwanted);
            }
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
        taken.map_or_else(Verdict::Drop, |()| Verdict::Consumed)
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
            Ok(Packet::Advertisement(_)) => return refused(msg, DropReason::Unexpected).into(),
            Err(fault) => return refused(msg, reason(fault)).into(),
        };
        let owner = self.owner(cx.now(), &msg.meta);
        if owner == Owner::Other {
            return refused(msg, DropReason::NotForPath).into();
        }
        if owner == Owner::Newcomer {
            if let Err(reason) = verify(msg) {
                return reason.into();
            }
            self.adopt(cx, &msg.meta);
        }
        // A question of the source has the number of what it sent last.
        let asks = msg.len() <= HEADER && !data.ends_stream;
        let mut look = self.look(cx, &data, asks);
        if look.is_taken() && asks {
            // The data of that will not come any more.
            look.lost += 1;
            look.gap = true;
        }
        let purpose = if look.is_taken() { self.use_of(cx, &data, msg) } else { Use::Empty };
        if purpose == Use::Wanted {
            msg.pop(HEADER);
            msg.meta.framing = look.framing(&data);
            if cx.up(msg) == Err(DropReason::UdpChecksum) {
                // Nothing has come of it, and the drop has been counted there; so have others.
                return Verdict::Consumed;
            }
        } else if let Err(reason) = verify(msg) {
            return reason.into();
        }
        self.processed(cx, &data, &look, purpose, msg.meta.arrival)
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    /// The last advertisement may have been lost, and the source waits.
    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        if core::mem::take(&mut self.heard) {
            self.repeats = 0;
        } else if self.figures.ended || self.repeats >= REPEATS && cx.input().is_empty() {
            return;
        } else {
            // What waits in the queue of a path that is held back is a source that is still there, and is to hear that the player is, too.
            self.repeats = self.repeats.saturating_add(1);
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
