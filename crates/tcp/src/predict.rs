//! Header prediction (Jacobson 1990; RFC 1323 §4.2.1 of old): on an established connection without
//! losses nearly every segment is the next text in order, or an acknowledgement of new text, or
//! both. Those need none of the checks of `arrive` one by one. Whatever is not certainly such a
//! segment is left to it: this file may answer "not mine" to anything, and must never accept what
//! `arrive` would not.

use silk_instant::Instant;

use crate::buffer::{RecvBuffer, SendBuffer};
use crate::connection::{Connection, Owed, Reader};
use crate::progress::Progress;
use crate::segment::{Flags, Segment};
use crate::state::State;
use crate::timers::Timer;

impl Connection {
    /// Takes the segment if it is a predicted one.
    pub(crate) fn predicted<S: SendBuffer + ?Sized, R: RecvBuffer + ?Sized>(
        &mut self,
        now: Instant,
        seg: &Segment,
        tx: &mut S,
        rx: &mut R,
    ) -> Option<Progress> {
        if !self.is_predicted(seg) {
            return None;
        }
        if let Some((value, _)) = seg.options.timestamp.filter(|_| self.stamps.on) {
            // In order and so at or before Last.ACK.sent, or after it and not to be echoed.
            self.stamps.update(now, value, seg.seq, self.rcv.last_ack_sent);
        }
        let mut progress = Progress::NONE;
        if seg.ack.after(self.snd.una) {
            progress |= self.advance(now, seg, tx);
        }
        self.take_window(seg);
        if !seg.payload.is_empty() {
            progress |= self.predicted_text(now, seg.payload, rx);
        }
        self.heard(now);
        Some(progress)
    }

    fn is_predicted(&self, seg: &Segment) -> bool {
        let new_ack = seg.ack.after(self.snd.una) && seg.ack.at_or_before(self.snd.nxt);
        let text = !seg.payload.is_empty();
        self.state == State::Established
            && self.recovery.is_calm()
            && seg.flags.without(Flags::PSH) == Flags::ACK
            && seg.seq == self.rcv.nxt
            && (new_ack || (text && seg.ack == self.snd.una))
            && seg.options.sack.is_empty()
            && self.timestamp_is_new(seg)
            && (!text || self.takes_in_order(seg.payload.len()))
    }

    fn timestamp_is_new(&self, seg: &Segment) -> bool {
        match seg.options.timestamp {
            Some((value, _)) if self.stamps.on => !crate::stamps::stamp_before(value, self.stamps.recent),
            Some(_) => true,
            None => !self.stamps.on,
        }
    }

    fn takes_in_order(&self, octets: usize) -> bool {
        let plain = self.rcv.reassembly.is_none() && self.rcv.fin_at.is_none();
        plain && self.reader == Reader::Reading && octets as u64 <= u64::from(self.rcv.window())
    }

    fn predicted_text<R: RecvBuffer + ?Sized>(&mut self, now: Instant, text: &[u8], rx: &mut R) -> Progress {
        let taken = rx.write(text).min(text.len());
        self.rcv.nxt += taken as u32;
        self.counters.octets_received += taken as u64;
        if taken < text.len() {
            self.owed.add(Owed::ACK);
        } else {
            self.delay_ack(now, taken);
        }
        if taken > 0 { Progress::READABLE } else { Progress::NONE }
    }

    /// Text in order came: every second full segment is acknowledged at once, the first waits (RFC
    /// 9293 §3.8.6.3, RFC 5681 §4.2). What came as one may have been several on the wire.
    pub(crate) fn delay_ack(&mut self, now: Instant, octets: usize) {
        let segments = (octets / usize::from(self.snd.mss)).clamp(1, 2) as u8;
        self.rcv.unacked = self.rcv.unacked.saturating_add(segments);
        if self.rcv.unacked >= 2 {
            self.owed.add(Owed::ACK);
        } else if !self.timers.is_armed(Timer::DelayedAck) {
            self.timers.arm(Timer::DelayedAck, now + self.limits.delayed_ack());
        }
    }
}
