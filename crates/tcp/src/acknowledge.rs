//! The acknowledgement field (RFC 9293 §3.10.7.4, fifth): what it confirms, what it says about
//! losses and time, and the window that comes with it. An acknowledgement of what was never sent,
//! or of the far past, changes nothing (RFC 5961 §5.2).

use core::time::Duration;

use silk_instant::Instant;

use crate::buffer::SendBuffer;
use crate::congestion::{Acked, Congestion};
use crate::connection::{Connection, Owed};
use crate::flight::{Outstanding, Sending};
use crate::progress::{DropReason, Progress};
use crate::receiver::Reader;
use crate::recovery::Phase;
use crate::segment::Segment;
use crate::sender::{Cork, Fin};
use crate::state::State;
use crate::timers::Timer;

impl Connection {
    /// The acknowledgement of an acceptable segment.
    pub(crate) fn on_acknowledgement<S: SendBuffer + ?Sized>(
        &mut self,
        now: Instant,
        seg: &Segment,
        tx: &mut S,
    ) -> Result<Progress, DropReason> {
        if seg.ack.after(self.snd.nxt) {
            self.challenge(now);
            return Err(DropReason::AckOfUnsent);
        }
        if seg.ack.before(self.snd.una - self.snd.max_wnd) {
            self.challenge(now);
            return Err(DropReason::AckTooOld);
        }
        let (before, calm) = (self.outstanding(), self.recovery.is_calm());
        self.recovery.original = false;
        let (held, lost) = (self.recovery.held(before), self.recovery.lost_ever());
        let is_repairing = self.recovery.phase() == Phase::Fast;
        let mut arrived = None;
        if self.recovery.sack() {
            let dsack = seg.options.sack.duplicate(seg.ack);
            if dsack.is_some() {
                let received_twice = &mut self.counters.mishaps().received_twice;
                *received_twice = received_twice.wrapping_add(1);
            }
            arrived = self.recovery.on_sack(now, &seg.options.sack, dsack.is_some(), before);
        }
        let mut progress = Progress::NONE;
        if seg.ack.after(self.snd.una) {
            progress |= self.advance(now, seg, tx);
        } else if self.is_duplicate(seg) {
            self.on_duplicate(now);
        }
        if let Some(sending) = arrived {
            self.measure_held(now, sending);
        }
        if self.undo.is_some() {
            if let Some(twice) = seg.options.sack.duplicate(seg.ack).filter(|_| self.recovery.sack()) {
                self.note_received_twice(twice);
            }
            self.weigh_frto(before);
        }
        if self.recovery.sack() {
            self.on_sack_acknowledgement(now, seg, before, calm);
        }
        self.on_echo(seg, before);
        let paced = self.pace_repair(seg.ack.since(before.una), held);
        if is_repairing && !paced {
            self.make_room_for_lost(lost);
        }
        let delivered = self.tell_delivery(now, seg.ack.since(before.una), held, lost);
        if self.ecn.says_mark(seg.flags) {
            self.counters.mishaps().octets_marked += u64::from(delivered);
        }
        if self.recovery.phase() != Phase::Loss {
            self.counters.note_repaired(now);
        }
        self.take_window(seg);
        Ok(progress)
    }

    /// Takes the window of a segment. One that opens makes the wait for the next probe pointless.
    pub(crate) fn take_window(&mut self, seg: &Segment) {
        let closed = self.snd.wnd == 0;
        self.snd.update_window(seg.seq, seg.ack, u32::from(seg.window) << self.snd.shift);
        if closed && self.snd.wnd > 0 {
            self.timers.cancel(Timer::Persist);
            if self.snd.is_idle() {
                self.snd.stalled_since = Instant::FAR;
            }
            self.recovery.on_window_opened(self.snd.una);
        }
    }

    /// SYN-RECEIVED: our SYN must be what is acknowledged (RFC 9293 §3.10.7.4, fifth). The window that comes with it is
    /// scaled by `shift`.
    // RFC 7323 §2.2.
    pub(crate) fn on_handshake_ack(
        &mut self,
        now: Instant,
        seg: &Segment,
        shift: u8,
    ) -> Result<Progress, DropReason> {
        if seg.ack != self.snd.nxt {
            self.owe_stray(seg.ack);
            return Err(DropReason::BadHandshake);
        }
        self.measure_syn(now, seg);
        self.snd.una = seg.ack;
        self.snd.set_window(seg.seq, seg.ack, u32::from(seg.window) << shift);
        self.timers.cancel(Timer::Retransmit);
        self.owed.settle(Owed::SYN);
        self.establish(now);
        Ok(Progress::ESTABLISHED)
    }

    /// RFC 5681 §2: outstanding text, an acknowledgement of nothing new, no text, no SYN or FIN, the
    /// window unchanged. With SACK duplicates mean nothing; what the peer holds does.
    fn is_duplicate(&self, seg: &Segment) -> bool {
        if self.recovery.sack() || self.snd.is_idle() || seg.ack != self.snd.una {
            return false;
        }
        let window = u32::from(seg.window) << self.snd.shift;
        seg.sequence_len() == 0 && window == self.snd.wnd
    }

    /// SND.UNA < SEG.ACK =< SND.NXT.
    pub(crate) fn advance<S: SendBuffer + ?Sized>(
        &mut self,
        now: Instant,
        seg: &Segment,
        tx: &mut S,
    ) -> Progress {
        let (octets, flight) = (seg.ack - self.snd.una, self.outstanding().octets());
        let fin_acked = self.snd.fin == Fin::Sent && seg.ack == self.snd.nxt;
        self.snd.una = seg.ack;
        // Kept near, so that it never comes to lie half the circle away.
        self.snd.small_end = self.snd.small_end.max(seg.ack);
        self.ecn.advance(seg.ack);
        self.forget_urgent_sent();
        self.snd.stalled_since = Instant::FAR;
        self.snd.timeouts = 0;
        if self.path_search.is_some() {
            self.weigh_probe(now);
        }
        let impatient = self.recovery.is_impatient();
        self.grow_window(now, seg, octets, flight);
        if !impatient || self.snd.is_idle() || self.recovery.phase() == Phase::Open {
            self.restart_timer(now);
        }
        let mut progress = self.let_go(octets - u32::from(fin_acked), tx);
        if self.snd.is_idle() {
            if tx.is_empty() {
                self.note_idle(now);
            } else if self.snd.cork == Cork::Loose {
                // What is to follow has not come in a round trip.
                self.owed.add(Owed::PUSH);
            }
        }
        if fin_acked {
            progress |= Progress::FIN_ACKED | self.on_fin_acked(now);
        }
        progress
    }

    // RFC 6675 §4.
    fn let_go<S: SendBuffer + ?Sized>(&mut self, octets: u32, tx: &mut S) -> Progress {
        if octets == 0 {
            return Progress::NONE;
        }
        tx.consume((octets as usize).min(tx.len()));
        self.counters.octets_acked += u64::from(octets);
        Progress::WRITABLE
    }

    /// The window grows outside of fast recovery (RFC 5681 §3.1, and §3.2 for what does not count).
    fn grow_window(&mut self, now: Instant, seg: &Segment, octets: u32, flight: u32) {
        let phase = self.recovery.phase();
        let out = self.outstanding();
        let echo = self.stamps.echo(seg.options.timestamp);
        let arrived = self.recovery.on_ack(now, echo, octets, out);
        if phase == Phase::Loss && self.recovery.phase() == Phase::Open {
            self.congestion.on_recovered();
        }
        if let Some(sending) = arrived {
            self.measure(now, sending, seg);
            if self.undo.is_some() {
                self.weigh_for_undo(seg, sending, phase);
                self.forget_undo();
            }
        }
        if phase == Phase::Fast || self.ecn.says_mark(seg.flags) {
            return;
        }
        let window = self.congestion.window();
        // RFC 9438 §5.8: in slow start half a window in use is use enough.
        let used = self.congestion.in_slow_start() && flight > window / 2;
        let limited = self.snd.cwnd_limited || used || phase == Phase::Loss;
        // After a time-out, one segment for each acknowledgement (RFC 3465 §2.3).
        let bytes = if phase == Phase::Loss { octets.min(out.mss) } else { octets };
        let Outstanding { una, nxt, mss } = out;
        let rtt = arrived.filter(|sending| !sending.again).map(|sending| now - sending.at);
        self.congestion.on_ack(&Acked { now, bytes, mss, srtt: self.rto.srtt(), rtt, una, nxt, limited });
    }

    /// Takes a round-trip sample: of what was sent once, exactly, and of what was sent again by the
    /// timestamp (RFC 7323 §4, RFC 6298 §3). An echo from before the last retransmission is not
    /// taken: its acknowledgement may have been lost on the way, and the time until the next one is
    /// no round trip.
    fn measure(&mut self, now: Instant, sending: Sending, seg: &Segment) {
        if !sending.again {
            if seg.ack.at_or_after(self.snd.timed_end) {
                self.sample(now - sending.at);
                self.snd.timed_end = self.snd.nxt;
            }
        } else if let Some((_, echo)) = seg.options.timestamp
            && !self.stamps.echo(seg.options.timestamp).is_before(sending.at)
            && let Some(rtt) = self.stamps.round_trip(now, echo)
        {
            self.sample(rtt);
        }
    }

    /// The same of text that the peer holds and that was sent once: while SND.UNA stands still for a round trip and
    /// more there would be no sample otherwise, just when a queue has run over.
    // RFC 6298 §3.
    fn measure_held(&mut self, now: Instant, sending: Sending) {
        if sending.end.at_or_after(self.snd.timed_end) {
            self.sample(now - sending.at);
            self.snd.timed_end = self.snd.nxt;
        }
    }

    pub(crate) fn sample(&mut self, round_trip: Duration) {
        self.rto.sample(round_trip);
        self.recovery.tail.measured();
    }

    /// The first round trip, that of our SYN. One that was sent again, for whatever reason, is not measured (Karn, RFC 6298
    /// §3), but by its timestamp.
    // RFC 9293 MUST-18.
    pub(crate) fn measure_syn(&mut self, now: Instant, seg: &Segment) {
        let once = self.snd.timeouts == 0 && self.state == State::SynSent;
        if once {
            self.first_round_trip(now, now - self.snd.last_sent);
        } else if let Some((_, echo)) = seg.options.timestamp
            && let Some(rtt) = self.stamps.round_trip(now, echo)
        {
            self.sample(rtt);
        }
    }

    pub(crate) fn first_round_trip(&mut self, now: Instant, round_trip: Duration) {
        self.sample(round_trip);
        self.recovery.rack.on_handshake(now, round_trip);
    }

    /// Our FIN is acknowledged.
    fn on_fin_acked(&mut self, now: Instant) -> Progress {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.rcv.reader == Reader::Gone {
                    self.timers.arm(Timer::Linger, now + self.limits.fin_wait_2());
                }
                Progress::NONE
            }
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.finish(Progress::NONE),
            _ => Progress::NONE,
        }
    }
}
