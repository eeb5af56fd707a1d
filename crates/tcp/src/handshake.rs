//! The handshake of an active open, simultaneous open included: what arrives in SYN-SENT (RFC 9293
//! §3.10.7.3). A passive open's is in `listen`. Text on a SYN is left for the peer to send again;
//! it is allowed to be queued (RFC 9293 §3.10.7.3, fourth) but nobody is owed that.

use silk_instant::Instant;

use crate::agree::Agreed;
use crate::connection::{Connection, Owed};
use crate::options::{Options, SackBlocks};
use crate::progress::{DropReason, Progress};
use crate::segment::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::state::State;
use crate::timers::Timer;

impl Connection {
    /// A segment in SYN-SENT.
    pub(crate) fn on_syn_sent(&mut self, now: Instant, seg: &Segment) -> Result<Progress, DropReason> {
        let acks_our_syn = seg.flags.ack() && seg.ack == self.snd.nxt;
        // First: an acknowledgement of something we never sent is reset, unless it is a reset.
        if seg.flags.ack() && !acks_our_syn {
            if !seg.flags.rst() {
                self.answer_stray(seg.ack);
            }
            return Err(DropReason::BadHandshake);
        }
        // Second: a reset counts only with an acknowledgement of our SYN (RFC 5961 §3.2).
        if seg.flags.rst() {
            if !acks_our_syn {
                return Err(DropReason::ResetOutOfWindow);
            }
            return Ok(self.finish(Progress::REFUSED));
        }
        // Fourth and fifth.
        if !seg.flags.syn() {
            return Err(DropReason::BadHandshake);
        }
        self.take_syn(now, seg);
        Ok(if acks_our_syn { self.our_syn_acked(now, seg) } else { self.simultaneous_open(seg) })
    }

    /// The peer still has an older connection of these ports, half-open or in TIME-WAIT, and takes our SYN
    /// for a part of it. The reset ends that. So that nobody has to wait a second for the next SYN, it
    /// follows at once, the first time.
    fn answer_stray(&mut self, ack: SeqNumber) {
        self.owe_stray(ack);
        if self.snd.timeouts == 0 {
            self.snd.timeouts = 1;
            self.owed.add(Owed::SYN);
        }
    }

    /// Owes a reset of a segment with this acknowledgement number.
    pub(crate) fn owe_stray(&mut self, ack: SeqNumber) {
        self.stray = ack;
        self.owed.add(Owed::STRAY);
    }

    /// The options of our SYN: before the peer's came what we offer, afterwards what is agreed.
    pub(crate) fn offer(&self, now: Instant) -> Options {
        Options {
            mss: Some(self.snd.mss),
            window_scale: self.rcv.scaling.then_some(self.rcv.shift),
            sack_permitted: self.recovery.sack(),
            timestamp: self.stamps.option(now),
            sack: SackBlocks::default(),
            user_timeout: self.user_timeout.offer(),
        }
    }

    fn take_syn(&mut self, now: Instant, seg: &Segment) {
        let wanted = self.ecn.wanted;
        let ecn = if seg.flags.ack() {
            wanted.agrees_to_syn_ack(seg.flags)
        } else {
            // Both SYNs must have asked.
            wanted.syn(self.syn_lost) != Flags::NONE && wanted.agrees_to_syn(seg.flags)
        };
        let agreed = Agreed::new(&self.offer(now), &seg.options, ecn);
        self.rcv.open(seg.seq);
        self.agree(&agreed, self.snd.mss);
        if let Some((value, _)) = seg.options.timestamp {
            self.stamps.set(now, value);
        }
        self.user_timeout.advise(seg.options.user_timeout);
    }

    fn our_syn_acked(&mut self, now: Instant, seg: &Segment) -> Progress {
        self.measure_syn(now, seg);
        self.snd.una = seg.ack;
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        self.snd.set_window(seg.seq, seg.ack, u32::from(seg.window));
        self.timers.cancel(Timer::Retransmit);
        self.owed.settle(Owed::SYN);
        self.owed.add(Owed::ACK);
        self.establish(now);
        Progress::ESTABLISHED
    }

    /// RFC 9293 §3.5, figure 7: both SYNs crossed; ours goes out again with an acknowledgement.
    // RFC 9293 MUST-10.
    fn simultaneous_open(&mut self, seg: &Segment) -> Progress {
        self.state = State::SynReceived;
        self.snd.set_window(seg.seq, self.snd.una, u32::from(seg.window));
        self.owed.add(Owed::SYN);
        Progress::NONE
    }
}
