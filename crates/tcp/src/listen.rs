//! Listening: half-open connections as entries of a bounded table (RFC 9293 §3.10.7.2 for LISTEN,
//! §3.10.7.4 for SYN-RECEIVED). An entry has no buffers, no path and no congestion state; those
//! come with the connection, once the peer has shown that it receives what is sent to it. A SYN
//! costs at most one entry, and when the entries are used up, further SYNs are answered with a
//! cookie (`cookie`) or dropped (RFC 4987 §3).

use core::hash::Hash;
use core::time::Duration;

use silk_instant::Instant;

use crate::agree::{Agreed, syn_options};
use crate::challenge::Challenges;
use crate::config::Config;
use crate::isn::{IsnSecret, timestamp_offset};
use crate::options::{Options, SackBlocks};
use crate::progress::DropReason;
use crate::segment::{Flags, Header, Segment, reset_for};
use crate::seq::SeqNumber;
use crate::stamps::Timestamps;
use crate::table::Table;
use crate::user_timeout::UserTimeout;

/// The back-off grows this often at most.
const BACK_OFFS: u8 = 16;
/// One for each delay, however often a SYN-ACK may be sent again: that may change while the table stands.
const LANES: usize = BACK_OFFS as usize + 1;

/// What the listener's owner knows when a segment comes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Admission {
    /// As many connections wait to be accepted as the program's backlog allows: neither SYNs nor
    /// last acknowledgements are taken, and the peer will try again.
    pub accept_queue_full: bool,
    /// The table may not have the memory that one entry more takes ([`SynTable::growth`]): as if it were full.
    pub no_room: bool,
    /// The least ISN, when the SYN reuses the addresses and ports of a connection in TIME-WAIT
    /// ([`crate::time_wait::TimeWaitAction::Reuse`]).
    pub iss_floor: Option<SeqNumber>,
}

/// What a segment for the listener leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ListenAction {
    /// Send this SYN-ACK.
    Reply(Header),
    /// The table is full: send this SYN-ACK, of which nothing is remembered (RFC 4987 §3.6).
    Cookie(Header),
    /// The handshake is complete: make a connection of it, then hand it the same segment.
    Established(Established),
    /// Nothing is to be done.
    Drop(DropReason),
    /// Not taken, but answered: send this acknowledgement (RFC 5961).
    Challenge(DropReason, Header),
    /// Send this reset.
    Reset(Header),
}

/// A completed handshake, from which [`crate::Connection::from_handshake`] makes a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Established {
    pub(crate) iss: SeqNumber,
    pub(crate) irs: SeqNumber,
    pub(crate) agreed: Agreed,
    /// The peer's window in octets.
    pub(crate) window: u32,
    pub(crate) stamp_offset: u32,
    pub(crate) stamp_recent: u32,
    /// The round trip of the SYN-ACK, if that is known.
    pub(crate) round_trip: Option<Duration>,
    /// That which the peer's echo of our timestamp tells, where it is not known.
    pub(crate) echoed: Option<Duration>,
    /// The SYN-ACK was sent more than once before it was acknowledged.
    pub(crate) answered_again: bool,
}

/// A half-open connection.
#[derive(Clone, Copy, Debug)]
struct Half {
    iss: SeqNumber,
    irs: SeqNumber,
    agreed: Agreed,
    stamps: Timestamps,
    answered_at: Instant,
    /// Times the SYN-ACK was overdue.
    overdue: u8,
    /// The SYN-ACK was sent more than once before it was acknowledged, so that its round trip cannot be measured.
    answered_again: bool,
    /// The handshake is complete but for the text that the listener waits for.
    deferred: bool,
    /// How long its acknowledgement took, if that is known, and what its echo tells otherwise.
    round_trip: Option<Duration>,
    echoed: Option<Duration>,
    /// Challenge acknowledgements to who may be no part of it.
    challenges: Challenges,
}

/// The half-open connections of one listener. `K` names a connection: its addresses and ports.
#[derive(Debug)]
pub struct SynTable<K> {
    halves: Table<K, Half>,
    pub(crate) secret: IsnSecret,
    pub(crate) config: Config,
    /// When the last cookie was given out.
    pub(crate) baked_at: Option<Instant>,
}

impl<K: Hash + Eq + Copy> SynTable<K> {
    /// A listener with room for `backlog` half-open connections.
    pub fn new(config: Config, secret: IsnSecret, backlog: usize) -> Self {
        Self { halves: Table::new(secret, backlog, LANES), secret, config, baked_at: None }
    }

    /// The configuration of connections from now on; those half-open keep what was agreed.
    pub fn set_config(&mut self, config: Config) {
        self.config = config;
    }

    /// The configuration, for [`crate::Connection::from_handshake`].
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How many connections are half-open.
    pub fn len(&self) -> usize {
        self.halves.len()
    }

    /// Whether no connection is half-open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this connection is half-open.
    pub fn contains(&self, key: &K) -> bool {
        self.halves.find(key).is_some()
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.halves.memory()
    }

    /// Bytes that one half-open connection more takes; 0 where it has a place, or there is none.
    pub fn growth(&self) -> usize {
        self.halves.growth()
    }

    /// Takes a segment for the listener: one that belongs to no connection and none in TIME-WAIT.
    pub fn on_segment(&mut self, now: Instant, key: K, seg: &Segment, admission: Admission) -> ListenAction {
        match self.halves.find(&key).and_then(|at| Some((at, self.halves.get(at)?.1))) {
            Some((at, half)) => match self.on_half_open(now, &half, seg, admission) {
                Fate::Act(action) => action,
                Fate::Keep(action, half) => {
                    if let Some(place) = self.halves.get_mut(at) {
                        *place = half;
                    }
                    action
                }
                Fate::Remove(action) => {
                    self.halves.remove(at);
                    action
                }
            },
            None => self.on_listen(now, key, seg, admission),
        }
    }

    /// RFC 9293 §3.10.7.2.
    // RFC 9293 MUST-42.
    fn on_listen(&mut self, now: Instant, key: K, seg: &Segment, admission: Admission) -> ListenAction {
        if seg.flags.rst() {
            return ListenAction::Drop(DropReason::NotForListener);
        }
        if seg.flags.ack() {
            if let Some(established) = self.redeem(now, &key, seg) {
                let full = admission.accept_queue_full;
                return if full { DROP_FULL } else { ListenAction::Established(established) };
            }
            return reset_for(seg)
                .map_or(ListenAction::Drop(DropReason::NotForListener), ListenAction::Reset);
        }
        if !seg.flags.syn() {
            return ListenAction::Drop(DropReason::NotForListener);
        }
        if seg.flags.fin() {
            return ListenAction::Drop(DropReason::SynWithFin);
        }
        if admission.accept_queue_full {
            return DROP_FULL;
        }
        self.recycle(admission.no_room);
        if self.halves.is_full() || (admission.no_room && self.halves.growth() > 0) {
            // A cookie cannot respect a floor.
            let may = self.config.syn_cookies && admission.iss_floor.is_none();
            let cookie = may.then(|| self.bake(now, &key, seg)).flatten();
            return cookie.map_or(ListenAction::Drop(DropReason::BacklogFull), ListenAction::Cookie);
        }
        let half = self.half_open(now, &key, seg, admission.iss_floor);
        self.halves.insert(key, half, 0, now + self.config.initial_rto);
        ListenAction::Reply(self.syn_ack(now, &half))
    }

    /// When the table is full, or may not grow, a half-open connection whose peer has let its first time-out pass
    /// makes room for one that may be honest (RFC 4987 §3.4). Lane 0 holds those still in time.
    fn recycle(&mut self, no_room: bool) {
        if (self.halves.is_full() || no_room)
            && let Some(overdue) = self.halves.first_from_lane(1)
        {
            self.halves.remove(overdue);
        }
    }

    fn half_open(&self, now: Instant, key: &K, seg: &Segment, floor: Option<SeqNumber>) -> Half {
        let iss = self.secret.iss(now, key);
        let ecn = self.config.ecn.agrees_to_syn(seg.flags);
        let agreed = Agreed::new(&syn_options(&self.config), &seg.options, ecn);
        let mut stamps = Timestamps::new(agreed.timestamps, timestamp_offset(iss, now));
        stamps.set(now, seg.options.timestamp.map_or(0, |(value, _)| value));
        let iss = floor.map_or(iss, |floor| iss.max(floor));
        Half {
            iss,
            irs: seg.seq,
            agreed,
            stamps,
            answered_at: now,
            overdue: 0,
            answered_again: false,
            deferred: false,
            round_trip: None,
            echoed: None,
            challenges: Challenges::new(),
        }
    }

    fn syn_ack(&self, now: Instant, half: &Half) -> Header {
        let options = Options { timestamp: half.stamps.option(now), ..self.answer(&half.agreed) };
        let ecn = if half.agreed.ecn { Flags::ECE } else { Flags::NONE };
        let (seq, ack, flags) = (half.iss, half.irs + 1, Flags::SYN | Flags::ACK | ecn);
        Header { seq, ack, flags, window: self.syn_window(), urgent: 0, options }
    }

    /// The options of a SYN-ACK, but for the timestamp.
    pub(crate) fn answer(&self, agreed: &Agreed) -> Options {
        Options {
            mss: Some(self.config.mss),
            window_scale: agreed.shifts.map(|(_, ours)| ours),
            sack_permitted: agreed.sack,
            timestamp: None,
            sack: SackBlocks::default(),
            user_timeout: UserTimeout::new(&self.config).offer(),
        }
    }

    pub(crate) fn syn_window(&self) -> u16 {
        let window = self.config.receive_window.min(self.config.receive_window_max);
        u16::try_from(window).unwrap_or(u16::MAX)
    }

    /// Within the limit: two listeners that are made to answer each other would go on for as long as they wait.
    // RFC 5961 §7.
    fn challenge(&self, now: Instant, half: &Half, why: DropReason) -> Fate {
        let mut after = *half;
        if !after.challenges.allow(now) {
            return dropped(why);
        }
        let shift = half.agreed.shifts.map_or(0, |(_, ours)| ours);
        let options = Options { timestamp: half.stamps.option(now), ..Options::default() };
        let (seq, ack, window) = (half.iss + 1, half.irs + 1, self.syn_window() >> shift);
        let header = Header { seq, ack, flags: Flags::ACK, window, urgent: 0, options };
        Fate::Keep(ListenAction::Challenge(why, header), after)
    }

    /// RFC 9293 §3.10.7.4 for SYN-RECEIVED.
    // RFC 9293 MUST-11.
    fn on_half_open(&self, now: Instant, half: &Half, seg: &Segment, admission: Admission) -> Fate {
        if seg.flags.syn() && !seg.flags.ack() && !seg.flags.rst() && seg.seq == half.irs {
            // The same SYN again: our answer was lost.
            let mut half = half.answer_again();
            // Who no longer asks for ECN is not answered as if he did (RFC 3168 §6.1.1).
            half.agreed.ecn &= self.config.ecn.agrees_to_syn(seg.flags);
            if let Some((value, _)) = seg.options.timestamp {
                half.stamps.update(now, value, seg.seq, half.irs);
            }
            return Fate::Keep(ListenAction::Reply(self.syn_ack(now, &half)), half);
        }
        if let Some(refused) = self.refuse(now, half, seg) {
            return refused;
        }
        if seg.ack != half.iss + 1 {
            let reset = reset_for(seg);
            return Fate::Act(
                reset.map_or(ListenAction::Drop(DropReason::BadHandshake), ListenAction::Reset),
            );
        }
        if admission.accept_queue_full {
            return Fate::Act(DROP_FULL);
        }
        if self.defers(now, half, seg) {
            let (round_trip, echoed) = half.measured(now, seg);
            let half = Half { deferred: true, round_trip, echoed, ..*half };
            return Fate::Keep(ListenAction::Drop(DropReason::Deferred), half);
        }
        Fate::Remove(ListenAction::Established(half.established(now, seg)))
    }

    /// The checks before the acknowledgement, in the order of `arrive`.
    fn refuse(&self, now: Instant, half: &Half, seg: &Segment) -> Option<Fate> {
        let nxt = half.irs + 1;
        let edge = nxt + u32::from(self.syn_window());
        if seg.flags.rst() {
            return Some(self.on_reset(now, half, seg, edge));
        }
        match seg.options.timestamp {
            // A SYN without is one of who has started anew, and challenged.
            None if half.stamps.on && !seg.flags.syn() => {
                return Some(dropped(DropReason::MissingTimestamp));
            }
            Some((value, _)) if half.stamps.on && half.stamps.is_old(value, now) => {
                return Some(self.challenge(now, half, DropReason::OldTimestamp));
            }
            _ => {}
        }
        if seg.flags.syn() {
            // RFC 5961 §4.2.
            return Some(self.challenge(now, half, DropReason::UnexpectedSyn));
        }
        if seg.seq.before(nxt) || seg.seq.after(edge) {
            return Some(self.challenge(now, half, DropReason::OutOfWindow));
        }
        (!seg.flags.ack()).then(|| dropped(DropReason::NoAck))
    }

    /// RFC 5961 §3.2: only a reset at the very edge ends the half-open connection.
    fn on_reset(&self, now: Instant, half: &Half, seg: &Segment, edge: SeqNumber) -> Fate {
        let nxt = half.irs + 1;
        if seg.seq == nxt {
            return Fate::Remove(ListenAction::Drop(DropReason::HandshakeReset));
        }
        if seg.seq.before(nxt) || seg.seq.after(edge) {
            return dropped(DropReason::ResetOutOfWindow);
        }
        self.challenge(now, half, DropReason::BlindReset)
    }

    /// TCP_DEFER_ACCEPT: a bare acknowledgement does not wake the program yet.
    fn defers(&self, now: Instant, half: &Half, seg: &Segment) -> bool {
        self.waits_for_text(now, half) && seg.payload.is_empty() && !seg.flags.fin()
    }

    fn waits_for_text(&self, now: Instant, half: &Half) -> bool {
        self.config.defer_accept.is_some_and(|wait| now - half.answered_at < wait)
    }

    /// When [`SynTable::on_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.halves.first().map(|first| first.1)
    }

    /// A SYN-ACK to be sent again, with back-off (RFC 6298 §5.5); call it until it answers `None`.
    /// What was not acknowledged after the configured number of times is forgotten.
    pub fn on_timeout(&mut self, now: Instant) -> Option<(K, Header)> {
        while let Some(at) = self.halves.due(now) {
            let &(key, mut half) = self.halves.get(at)?;
            if half.deferred && self.waits_for_text(now, &half) {
                self.halves.reschedule(at, half.overdue, now + self.backed_off(half.overdue));
                continue;
            }
            if half.overdue >= self.config.syn_ack_retries {
                self.halves.remove(at);
                continue;
            }
            half = half.answer_again();
            half.overdue += 1;
            self.halves.reschedule(at, half.overdue, now + self.backed_off(half.overdue));
            *self.halves.get_mut(at)? = half;
            return Some((key, self.syn_ack(now, &half)));
        }
        None
    }

    fn backed_off(&self, times: u8) -> Duration {
        self.config.initial_rto.saturating_mul(1 << times.min(BACK_OFFS)).min(self.config.max_rto)
    }

    /// The listener closes: forgets a half-open connection and answers its name and the reset to
    /// send to it; call it until it answers `None`.
    pub fn drain(&mut self) -> Option<(K, Header)> {
        let (at, _) = self.halves.first()?;
        let (key, half) = self.halves.remove(at)?;
        let (seq, ack, options) = (half.iss + 1, half.irs + 1, Options::default());
        Some((key, Header { seq, ack, flags: Flags::RST | Flags::ACK, window: 0, urgent: 0, options }))
    }
}

/// No room with the program: the peer will try again.
const DROP_FULL: ListenAction = ListenAction::Drop(DropReason::AcceptQueueFull);

/// What becomes of the table's entry.
enum Fate {
    Act(ListenAction),
    Keep(ListenAction, Half),
    Remove(ListenAction),
}

fn dropped(why: DropReason) -> Fate {
    Fate::Act(ListenAction::Drop(why))
}

impl Half {
    /// The SYN-ACK is sent once more. One that has been acknowledged was not lost: it only asks who is silent to speak.
    fn answer_again(&self) -> Self {
        Self { answered_again: self.answered_again || !self.deferred, ..*self }
    }

    fn established(&self, now: Instant, seg: &Segment) -> Established {
        let shift = self.agreed.shifts.map_or(0, |(peer, _)| peer);
        let (round_trip, echoed) = self.measured(now, seg);
        Established {
            iss: self.iss,
            irs: self.irs,
            agreed: self.agreed,
            window: u32::from(seg.window) << shift,
            stamp_offset: self.stamps.offset,
            stamp_recent: self.stamps.recent,
            round_trip,
            echoed,
            answered_again: self.answered_again,
        }
    }

    /// How long its acknowledgement took that comes now, or came before the text that was waited for: exactly, or where
    /// the SYN-ACK was sent again, by the echo of its timestamp.
    // RFC 6298 §3; RFC 7323 §4.1.
    fn measured(&self, now: Instant, seg: &Segment) -> (Option<Duration>, Option<Duration>) {
        if self.deferred {
            (self.round_trip, self.echoed)
        } else if self.answered_again {
            (None, seg.options.timestamp.and_then(|(_, echo)| self.stamps.round_trip(now, echo)))
        } else {
            (Some(now - self.answered_at), None)
        }
    }
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
