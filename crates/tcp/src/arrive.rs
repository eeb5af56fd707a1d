//! A segment arrives (RFC 9293 §3.10.7), checked in the RFC's order: sequence number, reset, SYN,
//! acknowledgement, urgent pointer, text, FIN; with PAWS first (RFC 7323 §5.3) and the defences of RFC 5961. Every
//! branch that refuses a segment names a reason; none believes a number it has not compared.

use silk_instant::Instant;

use crate::buffer::{RecvBuffer, SendBuffer};
use crate::connection::{Connection, Owed};
use crate::progress::{DropReason, Progress};
use crate::segment::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::state::State;
use crate::timers::Timer;

impl Connection {
    /// Takes a segment that was addressed to this connection. Then poll for transmission, also when
    /// it was dropped: an acknowledgement or a reset may be owed.
    ///
    /// # Errors
    /// The reason for which nothing of the segment was taken; the connection goes on.
    pub fn on_segment<S: SendBuffer + ?Sized, R: RecvBuffer + ?Sized>(
        &mut self,
        now: Instant,
        seg: &Segment,
        tx: &mut S,
        rx: &mut R,
    ) -> Result<Progress, DropReason> {
        self.counters.segments_in = self.counters.segments_in.wrapping_add(1);
        if !seg.payload.is_empty() {
            self.note_arrival(now, seg.payload.len());
        }
        if let Some(progress) = self.predicted(now, seg, tx, rx) {
            return Ok(progress);
        }
        match self.state {
            State::Closed => Err(DropReason::Closed),
            State::SynSent => self.on_syn_sent(now, seg),
            State::TimeWait => self.on_time_wait(now, seg),
            _ => self.on_synchronized(now, seg, tx, rx),
        }
    }

    fn note_arrival(&mut self, now: Instant, octets: usize) {
        self.counters.text_in = self.counters.text_in.wrapping_add(1);
        // What came as one may have been several segments.
        let segment = octets.min(self.offered_text());
        self.rcv.largest = self.rcv.largest.max(u16::try_from(segment).unwrap_or(u16::MAX));
        self.rcv.last_text = now;
    }

    /// RFC 9293 §3.10.7.4.
    pub(crate) fn on_synchronized<S: SendBuffer + ?Sized, R: RecvBuffer + ?Sized>(
        &mut self,
        now: Instant,
        seg: &Segment,
        tx: &mut S,
        rx: &mut R,
    ) -> Result<Progress, DropReason> {
        let crossed;
        let (seg, shift) = match self.crossed_syn(seg) {
            Some(rest) => {
                crossed = rest;
                // The window of a SYN is never scaled (RFC 7323 §2.2).
                (&crossed, 0)
            }
            None => (seg, self.snd.shift),
        };
        self.check_timestamp(now, seg)?;
        self.check_sequence(now, seg)?;
        if seg.flags.rst() {
            return self.on_reset(now, seg);
        }
        self.check_syn(now, seg)?;
        if !seg.flags.ack() {
            return Err(DropReason::NoAck);
        }
        let progress = match self.state {
            State::SynReceived => self.on_handshake_ack(now, seg, shift)?,
            _ => self.on_acknowledgement(now, seg, tx)?,
        };
        self.note_timestamp(now, seg);
        self.heard(now);
        self.user_timeout.advise(seg.options.user_timeout);
        if progress.intersects(Progress::CLOSED | Progress::TIME_WAIT) {
            return Ok(progress);
        }
        let progress = progress | self.on_urgent(seg, rx);
        let text = self.on_text(now, seg, rx);
        self.forget_urgent_received();
        match text {
            Ok(more) => Ok(progress | more),
            // What the acknowledgement achieved must not be lost over text that was not taken.
            Err(reason) if progress.is_empty() => Err(reason),
            Err(_) => Ok(progress),
        }
    }

    /// In a simultaneous open the peer's SYN-ACK repeats the SYN that came before (RFC 9293 §3.5,
    /// figure 7). What counts is the rest of it.
    fn crossed_syn<'a>(&self, seg: &Segment<'a>) -> Option<Segment<'a>> {
        let repeats = self.state == State::SynReceived && seg.flags.syn() && seg.seq == self.rcv.irs;
        let flags = seg.flags.without(Flags::SYN);
        (repeats && seg.flags.ack()).then(|| Segment { seq: seg.seq + 1, flags, ..*seg })
    }

    /// PAWS (RFC 7323 §5.3, R1). Resets are exempt (§5.2).
    fn check_timestamp(&mut self, now: Instant, seg: &Segment) -> Result<(), DropReason> {
        if !self.stamps.on || seg.flags.rst() {
            return Ok(());
        }
        let Some((value, _)) = seg.options.timestamp else {
            // Who has started anew may have none, and needs the challenge (RFC 5961 §4.2).
            self.check_syn(now, seg)?;
            return Err(DropReason::MissingTimestamp);
        };
        if self.stamps.is_old(value, now) {
            self.answer(now, seg);
            return Err(DropReason::OldTimestamp);
        }
        Ok(())
    }

    /// Not before its acknowledgement was found to be one: who guesses the rest of a segment could otherwise set a
    /// timestamp to come, and have all that is true refused for older (RFC 5961 §5.2).
    // RFC 5961 §5.2.
    fn note_timestamp(&mut self, now: Instant, seg: &Segment) {
        if let Some((value, _)) = seg.options.timestamp.filter(|_| self.stamps.on) {
            self.stamps.update(now, value, seg.seq, self.rcv.last_ack_sent);
        }
    }

    /// First: the acceptance test of RFC 9293 §3.4, with one allowance on each side of the window.
    /// A segment that begins just at the right edge is acceptable: a peer that filled our window
    /// sends its acknowledgements from there, and they must count when the window is zero
    /// (§3.10.7.4: "special allowance should be made").
    fn check_sequence(&mut self, now: Instant, seg: &Segment) -> Result<(), DropReason> {
        let len = seg.sequence_len();
        let begins = seg.seq.at_or_before(self.rcv.edge.max(self.rcv.nxt));
        let ends = if len == 0 { seg.seq.at_or_after(self.rcv.nxt) } else { seg.end().after(self.rcv.nxt) };
        if begins && ends {
            return Ok(());
        }
        if seg.flags.rst() {
            return Err(DropReason::ResetOutOfWindow);
        }
        self.answer(now, seg);
        if len > 0 && begins {
            self.note_duplicate(seg);
            return Err(DropReason::Duplicate);
        }
        Err(DropReason::OutOfWindow)
    }

    /// An unacceptable segment is answered with an acknowledgement. Text is always answered, for
    /// our acknowledgement of it may have been lost; empty segments only within the limit, so that
    /// two confused peers do not answer each other for ever, and SYNs, which are challenged by it.
    // RFC 5961 §7.
    fn answer(&mut self, now: Instant, seg: &Segment) {
        let is_limited = seg.sequence_len() == 0 || seg.flags.syn();
        if !is_limited || self.challenges.allow(now) {
            self.owed.add(Owed::ACK);
        }
    }

    /// Owes a challenge acknowledgement (RFC 5961).
    pub(crate) fn challenge(&mut self, now: Instant) {
        if self.challenges.allow(now) {
            self.owed.add(Owed::ACK);
        }
    }

    /// Second: a reset in the window (RFC 5961 §3.2). Only at the very edge it is believed.
    // RFC 9293 MUST-11, MUST-12, MUST-66, SHLD-2.
    fn on_reset(&mut self, now: Instant, seg: &Segment) -> Result<Progress, DropReason> {
        if seg.seq != self.rcv.nxt {
            self.challenge(now);
            return Err(DropReason::BlindReset);
        }
        let why = match self.state {
            // The active side of a simultaneous open is told as one whose SYN was refused.
            State::SynReceived => Progress::REFUSED,
            // Also where both have ended: whether what we said last has arrived nobody knows.
            _ => Progress::RESET,
        };
        Ok(self.finish(why))
    }

    /// Fourth: a SYN on a synchronized connection (RFC 5961 §4.2): the peer, if it has really
    /// started anew, will answer the challenge with a reset that has the right number.
    fn check_syn(&mut self, now: Instant, seg: &Segment) -> Result<(), DropReason> {
        if !seg.flags.syn() {
            return Ok(());
        }
        self.challenge(now);
        Err(DropReason::UnexpectedSyn)
    }

    /// The peer lives.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.last_heard = now;
        self.keepalive.sent = 0;
        self.snd.unanswered = 0;
    }

    /// RFC 9293 §3.10.7.4 for TIME-WAIT, for callers that keep the connection instead of a
    /// [`crate::time_wait::TimeWait`]: a repeated FIN is acknowledged and restarts the wait.
    fn on_time_wait(&mut self, now: Instant, seg: &Segment) -> Result<Progress, DropReason> {
        if seg.flags.rst() {
            // RFC 1337 §3: a reset must not end TIME-WAIT early.
            return Err(DropReason::ResetInTimeWait);
        }
        self.check_timestamp(now, seg)?;
        if seg.flags.fin() && seg.end() == self.rcv.nxt {
            self.timers.arm(Timer::Linger, now + self.limits.time_wait());
        }
        if seg.sequence_len() > 0 || seg.seq != self.rcv.nxt {
            self.answer(now, seg);
        }
        Err(DropReason::InTimeWait)
    }

    /// Both FINs are acknowledged (RFC 9293 §3.10.7.4).
    // RFC 9293 MUST-13.
    pub(crate) fn enter_time_wait(&mut self, now: Instant) -> Progress {
        self.state = State::TimeWait;
        self.timers.cancel_all();
        self.timers.arm(Timer::Linger, now + self.limits.time_wait());
        self.rcv.reassembly = None;
        self.rcv.duplicate_acks = 0;
        Progress::TIME_WAIT
    }

    /// The first number that is not part of an acceptable segment's stream.
    pub(crate) fn stream_end(&self) -> SeqNumber {
        self.rcv.fin_at.unwrap_or(self.rcv.edge.max(self.rcv.nxt))
    }
}
