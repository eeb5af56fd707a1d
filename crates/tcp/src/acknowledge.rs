//! The acknowledgement field (RFC 9293 §3.10.7.4, fifth): what it confirms, what it says about
//! losses and time, and the window that comes with it. An acknowledgement of what was never sent,
//! or of the far past, changes nothing (RFC 5961 §5.2).

use silk_instant::Instant;

use crate::buffer::SendBuffer;
use crate::congestion::{Acked, Congestion};
use crate::connection::{Connection, Owed, Reader};
use crate::progress::{DropReason, Progress};
use crate::recovery::{Outstanding, Phase};
use crate::segment::Segment;
use crate::sender::Fin;
use crate::stamps::stamp_before;
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
        if self.state == State::SynReceived {
            return self.on_handshake_ack(now, seg);
        }
        if seg.ack.after(self.snd.nxt) {
            self.challenge(now);
            return Err(DropReason::AckOfUnsent);
        }
        if seg.ack.before(self.snd.una - self.snd.max_wnd) {
            self.challenge(now);
            return Err(DropReason::AckTooOld);
        }
        let before = self.outstanding();
        let held = self.recovery.held(before);
        let blocks = &seg.options.sack;
        let news = self.sack && !blocks.is_empty() && self.recovery.on_sack(blocks, before);
        let mut progress = Progress::NONE;
        if seg.ack.after(self.snd.una) {
            progress |= self.advance(now, seg, tx);
        } else if self.is_duplicate(seg, news) {
            self.on_duplicate(now);
        }
        self.repair(seg.ack.since(before.una), held);
        self.take_window(seg);
        Ok(progress)
    }

    /// Takes the window of a segment. One that opens makes the wait for the next probe pointless.
    pub(crate) fn take_window(&mut self, seg: &Segment) {
        let closed = self.snd.wnd == 0;
        self.snd.update_window(seg.seq, seg.ack, u32::from(seg.window) << self.snd.shift);
        if closed && self.snd.wnd > 0 {
            self.timers.cancel(Timer::Persist);
            self.recovery.on_window_opened(self.snd.una);
        }
    }

    /// SYN-RECEIVED: our SYN must be what is acknowledged (RFC 9293 §3.10.7.4, fifth).
    fn on_handshake_ack(&mut self, now: Instant, seg: &Segment) -> Result<Progress, DropReason> {
        if seg.ack != self.snd.nxt {
            self.stray = Some(seg.ack);
            return Err(DropReason::BadHandshake);
        }
        self.measure(now, seg);
        self.snd.una = seg.ack;
        let window = u32::from(seg.window) << self.snd.shift;
        self.snd.set_window(seg.seq, seg.ack, window);
        self.timers.cancel(Timer::Retransmit);
        self.owed.settle(Owed::SYN);
        self.establish(now);
        Ok(Progress::ESTABLISHED)
    }

    /// RFC 5681 §2: outstanding text, an acknowledgement of nothing new, no text, no SYN or FIN,
    /// the window unchanged. With SACK, what counts is that the peer holds something new (RFC 6675
    /// §2).
    fn is_duplicate(&self, seg: &Segment, sack_news: bool) -> bool {
        if self.snd.is_idle() || seg.ack != self.snd.una {
            return false;
        }
        let window = u32::from(seg.window) << self.snd.shift;
        sack_news || (!self.sack && seg.sequence_len() == 0 && window == self.snd.wnd)
    }

    /// During fast recovery: SND.UNA moved by `octets`, and the peer had `held` before.
    fn repair(&mut self, octets: u32, held: u32) {
        if self.recovery.phase() != Phase::Fast {
            return;
        }
        let out = self.outstanding();
        if self.recovery.repair_was_lost(out) {
            self.reduce(out);
        }
        let delivered = (octets + self.recovery.held(out)).saturating_sub(held);
        self.recovery.on_delivered(delivered, self.congestion.ssthresh(), out);
    }

    fn reduce(&mut self, out: Outstanding) {
        // Text that limited transmit added is not part of the flight (RFC 5681 §3.2, step 2).
        let flight = out.octets().min(self.congestion.window());
        self.congestion.on_loss(flight, out.mss);
    }

    fn on_duplicate(&mut self, now: Instant) {
        let out = self.outstanding();
        if self.recovery.on_duplicate(out) {
            self.reduce(out);
            self.recovery.start_fast(out);
            self.counters.fast_recoveries = self.counters.fast_recoveries.wrapping_add(1);
            self.timers.arm(Timer::Retransmit, now + self.rto.current());
        }
    }

    /// SND.UNA < SEG.ACK =< SND.NXT.
    pub(crate) fn advance<S: SendBuffer + ?Sized>(
        &mut self,
        now: Instant,
        seg: &Segment,
        tx: &mut S,
    ) -> Progress {
        self.measure(now, seg);
        let (octets, flight) = (seg.ack - self.snd.una, self.outstanding().octets());
        let fin_acked = self.snd.fin == Fin::Sent && seg.ack == self.snd.nxt;
        self.snd.una = seg.ack;
        // Kept near, so that it never comes to lie half the circle away.
        self.snd.small_end = self.snd.small_end.max(seg.ack);
        self.snd.stalled_since = Instant::FAR;
        self.snd.timeouts = 0;
        let impatient = self.recovery.is_impatient();
        self.grow_window(now, octets, flight);
        if !impatient || self.snd.is_idle() || self.recovery.phase() == Phase::Open {
            self.restart_timer(now);
        }
        let mut progress = self.let_go(octets - u32::from(fin_acked), tx);
        if fin_acked {
            progress |= Progress::FIN_ACKED | self.on_fin_acked(now);
        }
        progress
    }

    fn let_go<S: SendBuffer + ?Sized>(&mut self, octets: u32, tx: &mut S) -> Progress {
        if octets == 0 {
            return Progress::NONE;
        }
        tx.consume((octets as usize).min(tx.len()));
        self.counters.octets_acked += u64::from(octets);
        Progress::WRITABLE
    }

    /// The window grows outside of fast recovery (RFC 5681 §3.1, and §3.2 for what does not count).
    fn grow_window(&mut self, now: Instant, octets: u32, flight: u32) {
        let phase = self.recovery.phase();
        let out = self.outstanding();
        self.recovery.on_ack(octets, out);
        if phase == Phase::Fast {
            return;
        }
        let window = self.congestion.window();
        // RFC 9438 §5.8: in slow start half a window in use is use enough.
        let used = self.congestion.in_slow_start() && flight > window / 2;
        let limited = self.snd.cwnd_limited || used || phase == Phase::Loss;
        // After a time-out, one segment for each acknowledgement (RFC 3465 §2.3).
        let bytes = if phase == Phase::Loss { octets.min(out.mss) } else { octets };
        let acked = Acked { now, bytes, mss: out.mss, srtt: self.rto.srtt(), limited };
        self.congestion.on_ack(&acked);
    }

    /// RFC 6298 §5.2 and §5.3.
    // RFC 6298 §5.2, §5.3.
    fn restart_timer(&mut self, now: Instant) {
        if self.snd.is_idle() {
            self.timers.cancel(Timer::Retransmit);
        } else {
            self.timers.arm(Timer::Retransmit, now + self.rto.current());
        }
    }

    /// Takes a round-trip sample: the timed octet's, or, when none is timed because some were sent
    /// twice, the timestamp's (RFC 7323 §4, RFC 6298 §3). An echo from before the last
    /// retransmission is not taken: its acknowledgement may have been lost on the way, and the time
    /// until the next one is no round trip.
    pub(crate) fn measure(&mut self, now: Instant, seg: &Segment) {
        if self.snd.timed_at != Instant::FAR {
            if seg.ack.at_or_after(self.snd.timed_end) {
                self.rto.sample(now - self.snd.timed_at);
                self.snd.timed_at = Instant::FAR;
            }
        } else if let Some((_, echo)) = seg.options.timestamp
            && !stamp_before(echo, self.stamps.value(self.snd.last_again))
            && let Some(rtt) = self.stamps.round_trip(now, echo)
        {
            self.rto.sample(rtt);
        }
    }

    /// Our FIN is acknowledged.
    fn on_fin_acked(&mut self, now: Instant) -> Progress {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.reader == Reader::Gone {
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
