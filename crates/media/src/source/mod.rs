//! The sender of a stream over MFLOW (Scout §4.1), as a state machine without input or output: it
//! says which packet may be sent now and with which header, or when to ask again. It obeys the
//! player: it never has more packets on their way than were advertised. It never sends one
//! twice: delivery is ordered, not reliable.
//!
//! Call [`Source::next`] with the packet that is to be sent, and do what it says;
//! [`Source::hear`] with every datagram that comes back, then `next` again.
//!
//! An advertisement is believed when it echoes the clock that the packet it speaks of was sent
//! with, which only somebody can do who has seen that packet. An older one than was heard before
//! changes nothing.

mod schedule;

use alloc::collections::VecDeque;
use core::time::Duration;
use silk_instant::Instant;
use silk_wire::mflow::{self, Advertisement, Data, Packet, after};

use crate::timing::Rate;
use schedule::Schedule;

/// The most packets on their way, whatever is advertised: what bounds the memory.
const MOST: u32 = 8192;
/// Packets that may be sent before anything was heard (Scout §4.2: a queue has two places at
/// least).
const FIRST: u32 = 2;
/// The shortest time after which a source that may send nothing asks whether it may. A lost packet that was
/// to be answered stops the stream for so long, and a lost question for twice that: a player who is eight
/// pictures ahead must not miss one for it.
const ASK_LEAST: Duration = Duration::from_millis(20);
/// The same while no round trip is known.
const ASK_FIRST: Duration = Duration::from_millis(100);
/// The longest.
const ASK_MOST: Duration = Duration::from_secs(1);
/// Times the end of the stream is told, where nobody answers.
const FAREWELLS: u32 = 8;

/// How fast a source sends where the player lets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// As many pictures in a second, each spread over its time.
    At(Rate),
    /// As fast as possible.
    Free,
}

/// How a source is set up.
#[derive(Clone, Copy, Debug)]
pub struct SourceOptions {
    /// How fast.
    pub sending: Sending,
    /// How much earlier than that packets may leave, so that the player can keep pictures ahead.
    pub ahead: Duration,
    /// After so long without a word from the player it is given up.
    pub patience: Duration,
    /// How the stream is coded.
    pub coding: mflow::Coding,
    /// The first sequence number; a random one keeps a player from taking a new source for the
    /// old.
    pub sequence: u32,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            sending: Sending::At(Rate::USUAL),
            ahead: Duration::ZERO,
            patience: Duration::from_secs(5),
            coding: mflow::Coding::Mpeg,
            sequence: 0,
        }
    }
}

/// A packet that is to be sent: what its header says of the picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The picture's number in the order of showing, counted from the beginning of the clip.
    pub picture: u32,
    /// The picture's type.
    pub kind: u8,
    /// The picture begins with this packet.
    pub first: bool,
    /// The picture ends with this packet.
    pub last: bool,
}

impl From<&crate::alf::Packet<'_>> for Piece {
    fn from(packet: &crate::alf::Packet<'_>) -> Self {
        Self { picture: packet.picture, kind: packet.kind, first: packet.first, last: packet.last }
    }
}

/// What a source is to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Send the packet behind this header; it is done, go on with the next.
    Send(Data),
    /// Send this header alone, and come again: the player is asked for a word, or told that the
    /// stream is over.
    Ask(Data),
    /// Come again at this time, or when something was heard.
    Wait(Instant),
    /// It is over.
    Over(Over),
}

/// Why it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Everything was sent, and the player knows that.
    Ended,
    /// Everything was sent; the player did not say that it knows.
    Unanswered,
    /// The player wants no more.
    Stopped,
    /// The player has not said a word for too long.
    Silent,
}

/// What has become of a source's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceFigures {
    /// Packets sent.
    pub sent: u64,
    /// Headers sent alone.
    pub asked: u64,
    /// Advertisements believed.
    pub heard: u64,
    /// What was no advertisement, was forged, or came too late.
    pub ignored: u64,
    /// The round trip, smoothed; zero before the first.
    pub round_trip: Duration,
    /// Packets in a super-packet, as the player wishes.
    pub super_packet: u16,
    /// Packets on their way or waiting at the player.
    pub outstanding: u32,
}

/// A source.
pub struct Source {
    options: SourceOptions,
    started: Instant,
    schedule: Schedule,
    // The number of the next packet.
    next: u32,
    // The last that the player has processed; before the first, the one before the first.
    processed: u32,
    // The highest that may be sent.
    highest: u32,
    // The clocks of the packets after `processed`, and of that itself where something was heard.
    clocks: VecDeque<u32>,
    heard: bool,
    super_packet: u16,
    // Packets since the last that ended a super-packet.
    run: u16,
    // When the player spoke last, or had reason to.
    word: Instant,
    // When it is asked next, and how often it was since it spoke.
    ask_at: Option<Instant>,
    asks: u32,
    // The number of the packet that ends the stream, once it is on its way.
    end: Option<u32>,
    over: Option<Over>,
    // What was added to the numbers of pictures, and the highest so far.
    base: u32,
    top: u32,
    // Of the round trip, in ns (RFC 6298 §2.3's smoothing).
    smoothed: u64,
    figures: SourceFigures,
}

impl Source {
    /// A source that begins at `now`.
    pub fn new(options: SourceOptions, now: Instant) -> Self {
        let before = options.sequence.wrapping_sub(1);
        Self {
            options,
            started: now,
            schedule: Schedule::new(options.sending, options.ahead, now),
            next: options.sequence,
            processed: before,
            highest: before.wrapping_add(FIRST),
            clocks: VecDeque::new(),
            heard: false,
            super_packet: 1,
            run: 0,
            word: now,
            ask_at: None,
            asks: 0,
            end: None,
            over: None,
            base: 0,
            top: 0,
            smoothed: 0,
            figures: SourceFigures::default(),
        }
    }

    /// What has become of its packets.
    pub fn figures(&self) -> SourceFigures {
        SourceFigures {
            round_trip: Duration::from_nanos(self.smoothed),
            super_packet: self.super_packet,
            outstanding: self.outstanding(),
            ..self.figures
        }
    }

    /// The clip begins again: its pictures are numbered on.
    pub fn begin_again(&mut self) {
        self.base = self.top.wrapping_add(1);
    }

    /// What is to be done at `now`, where `piece` is the next packet; none: the stream has ended.
    pub fn next(&mut self, now: Instant, piece: Option<&Piece>) -> Act {
        if let Some(over) = self.over {
            return Act::Over(over);
        }
        match piece {
            None if self.end.is_none() => self.farewell(now),
            Some(piece) if self.may_send() => {
                let due = self.schedule.due(piece);
                if due > now { Act::Wait(due) } else { Act::Send(self.send(now, piece)) }
            }
            _ => self.blocked(now),
        }
    }

    fn may_send(&self) -> bool {
        self.end.is_none() && !after(self.next, self.highest) && self.outstanding() < MOST
    }

    fn outstanding(&self) -> u32 {
        self.next.wrapping_sub(self.processed).wrapping_sub(1)
    }

    fn send(&mut self, now: Instant, piece: &Piece) -> Data {
        self.schedule.sent(piece, now);
        let picture = self.base.wrapping_add(piece.picture);
        if after(picture, self.top) {
            self.top = picture;
        }
        self.run = self.run.saturating_add(1);
        let closes = self.next == self.highest || self.run >= self.super_packet;
        let data = Data {
            first: piece.first,
            last: piece.last,
            ends_super: closes,
            kind: piece.kind,
            picture,
            ..self.header(now)
        };
        self.leave(now, data.clock);
        self.run = if closes { 0 } else { self.run };
        self.figures.sent += 1;
        data
    }

    /// The header of the next packet.
    fn header(&self, now: Instant) -> Data {
        Data {
            coding: self.options.coding,
            sequence: self.next,
            clock: self.clock(now),
            round_trip: u32::try_from(self.smoothed.div_ceil(1000)).unwrap_or(u32::MAX),
            ..Data::default()
        }
    }

    fn clock(&self, now: Instant) -> u32 {
        (now.since(self.started).as_micros() as u32).wrapping_add(self.options.sequence)
    }

    /// A packet is on its way.
    fn leave(&mut self, now: Instant, clock: u32) {
        if self.outstanding() == 0 {
            // Until now the player had no reason to speak.
            self.word = now;
        }
        self.clocks.push_back(clock);
        self.next = self.next.wrapping_add(1);
        self.ask_at = Some(now + self.interval());
    }

    /// How long to wait for a word before the player is asked for one.
    fn interval(&self) -> Duration {
        let least = match self.smoothed {
            0 => ASK_FIRST,
            known => (Duration::from_nanos(known) * 3).max(ASK_LEAST),
        };
        (least * (1 << self.asks.min(8))).min(ASK_MOST)
    }

    /// Nothing may be sent until the player has spoken.
    fn blocked(&mut self, now: Instant) -> Act {
        let given_up = self.word + self.options.patience;
        if now >= given_up || (self.end.is_some() && self.asks >= FAREWELLS) {
            let over = if self.end.is_some() { Over::Unanswered } else { Over::Silent };
            self.over = Some(over);
            return Act::Over(over);
        }
        let ask_at = self.ask_at.unwrap_or(now);
        if ask_at > now {
            return Act::Wait(ask_at.min(given_up));
        }
        self.asks += 1;
        self.ask_at = Some(now + self.interval());
        self.figures.asked += 1;
        // It is the last packet's header once more: with its clock, so that the answer is
        // believed, whichever of both the player has.
        let sequence = self.next.wrapping_sub(1);
        let clock = self.clocks.back().copied().unwrap_or_default();
        let ends_stream = self.end.is_some();
        let picture = self.top;
        Act::Ask(Data { ends_super: true, ends_stream, sequence, clock, picture, ..self.header(now) })
    }

    /// Tells that the stream is over, by a packet of its own.
    fn farewell(&mut self, now: Instant) -> Act {
        if !self.may_send() {
            return self.blocked(now);
        }
        let data = Data { ends_super: true, ends_stream: true, picture: self.top, ..self.header(now) };
        self.leave(now, data.clock);
        self.end = Some(data.sequence);
        self.figures.asked += 1;
        Act::Ask(data)
    }

    /// A datagram has come from the player. Answers whether it was an advertisement to believe.
    pub fn hear(&mut self, now: Instant, bytes: &[u8]) -> bool {
        let believed = match mflow::parse(bytes) {
            Ok(Packet::Advertisement(advertisement)) => self.believe(now, &advertisement),
            _ => None,
        };
        match believed {
            Some(()) => self.figures.heard += 1,
            None => self.figures.ignored += 1,
        }
        believed.is_some()
    }

    fn believe(&mut self, now: Instant, said: &Advertisement) -> Option<()> {
        // Where the packet it speaks of is among those whose clocks are kept.
        let first = if self.heard { self.processed } else { self.processed.wrapping_add(1) };
        let at = said.processed.wrapping_sub(first) as usize;
        let clock = *self.clocks.get(at)?;
        if clock != said.clock {
            return None;
        }
        self.measure(now, said, clock);
        self.clocks.drain(..at);
        (self.processed, self.heard) = (said.processed, true);
        let reach = said.highest.wrapping_sub(said.processed).min(MOST);
        let highest = said.processed.wrapping_add(reach);
        if after(highest, self.highest) {
            self.highest = highest;
        }
        self.super_packet = said.super_packet.max(1);
        (self.word, self.asks) = (now, 0);
        self.ask_at = Some(now + self.interval());
        if said.stop {
            self.over = Some(Over::Stopped);
        } else if self.end == Some(said.processed) {
            self.over = Some(Over::Ended);
        }
        Some(())
    }

    /// The round trip, by the clock that came back. Not where the packet was sent a second time,
    /// as a question: it is not known which of both was answered (RFC 6298 §3).
    fn measure(&mut self, now: Instant, said: &Advertisement, clock: u32) {
        let asked = self.asks > 0 && said.processed == self.next.wrapping_sub(1);
        let gone = self.clock(now).wrapping_sub(clock);
        let Some(round_trip) = gone.checked_sub(said.held).filter(|_| !asked) else { return };
        let sample = u64::from(round_trip).max(1) * 1000;
        self.smoothed =
            if self.smoothed == 0 { sample } else { self.smoothed - self.smoothed / 8 + sample / 8 };
    }
}

#[cfg(test)]
mod tests;
