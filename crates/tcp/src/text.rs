//! The text of a segment and its FIN (RFC 9293 §3.10.7.4, seventh and eighth). Octets outside the
//! window are cut off, octets ahead of their turn wait in `reassembly`, and nothing is acknowledged
//! that the receive buffer did not take.

use alloc::boxed::Box;

use silk_instant::Instant;

use crate::buffer::RecvBuffer;
use crate::connection::{Connection, Owed};
use crate::progress::{DropReason, Progress};
use crate::reassembly::Reassembly;
use crate::receiver::Reader;
use crate::segment::Segment;
use crate::sender::Fin;
use crate::seq::SeqNumber;
use crate::state::State;
use crate::timers::Timer;

/// Memory for text out of order, as a multiple of the window: small pieces cost more than their
/// octets.
const OVERHEAD: usize = 2;

impl Connection {
    /// The text and FIN of an acceptable segment.
    // RFC 9293 SHLD-3.
    pub(crate) fn on_text<R: RecvBuffer + ?Sized>(
        &mut self,
        now: Instant,
        seg: &Segment,
        rx: &mut R,
    ) -> Result<Progress, DropReason> {
        if seg.payload.is_empty() && !seg.flags.fin() {
            return Ok(Progress::NONE);
        }
        if !self.state.receives_text() {
            // The peer's FIN came before; whatever this is, it is not new.
            self.owed.add(Owed::ACK);
            return Ok(Progress::NONE);
        }
        self.ecn.on_text(seg.flags, seg.ecn);
        self.note_fin(seg);
        let (seq, text) = self.fresh_text(seg);
        if !text.is_empty()
            && let Some(told) = self.told_of_late_text()
        {
            self.abort();
            return Ok(told | Progress::LATE_TEXT | Progress::CLOSED);
        }
        let mut progress = Progress::NONE;
        if !text.is_empty() {
            progress |= self.take_text(now, seq, text, rx)?;
        } else if !seg.flags.fin() {
            // All of it lies beyond a closed window: a probe (§3.8.6.1).
            self.owed.add(Owed::ACK);
        }
        Ok(progress | self.take_fin(now))
    }

    /// What the program is told of if text comes that nobody will ever read; `None`: it may be read, or the program still writes.
    fn told_of_late_text(&self) -> Option<Progress> {
        match self.rcv.reader {
            Reader::Gone => Some(Progress::NONE),
            Reader::Shut if self.snd.fin != Fin::Open => Some(Progress::RESET),
            Reader::Shut | Reader::Reading => None,
        }
    }

    /// Remembers where the stream ends; the first word on it counts. The FIN itself needs no room,
    /// so it may lie at the window's very edge.
    fn note_fin(&mut self, seg: &Segment) {
        let at = seg.seq + seg.payload.len() as u32;
        let in_window = at.at_or_after(self.rcv.nxt) && at.at_or_before(self.rcv.edge.max(self.rcv.nxt));
        if seg.flags.fin() && in_window && self.rcv.fin_at.is_none() {
            self.rcv.fin_at = Some(at);
            if at != self.rcv.nxt && seg.payload.is_empty() {
                self.owed.add(Owed::ACK);
            }
        }
    }

    /// What of the segment's text lies in the window and before the FIN.
    fn fresh_text<'a>(&mut self, seg: &Segment<'a>) -> (SeqNumber, &'a [u8]) {
        let old = (self.rcv.nxt.since(seg.seq) as usize).min(seg.payload.len());
        if old > 0 {
            self.note_duplicate(seg);
        }
        let seq = seg.seq + old as u32;
        let room = self.stream_end().since(seq) as usize;
        let text = &seg.payload[old..];
        if text.len() > room {
            // The peer should learn at once what was not taken.
            self.owed.add(Owed::ACK);
        }
        (seq, &text[..text.len().min(room)])
    }

    /// A D-SACK for the part of the segment that had been received before (RFC 2883 §4).
    pub(crate) fn note_duplicate(&mut self, seg: &Segment) {
        let end = (seg.seq + seg.payload.len() as u32).min(self.rcv.nxt);
        if self.recovery.sack() && seg.seq.before(end) {
            self.rcv.note_duplicate((seg.seq, end));
            self.owed.add(Owed::ACK);
        }
    }

    fn take_text<R: RecvBuffer + ?Sized>(
        &mut self,
        now: Instant,
        seq: SeqNumber,
        text: &[u8],
        rx: &mut R,
    ) -> Result<Progress, DropReason> {
        if seq.after(self.rcv.nxt) {
            return self.keep(seq, text);
        }
        let before = self.rcv.nxt;
        let gap = self.rcv.has_gap();
        let whole = self.deliver(text, rx) == text.len();
        self.tune_window(now, rx);
        if gap && whole {
            self.deliver_kept(rx);
        }
        if gap || !whole {
            // RFC 5681 §4.2: a segment that fills a gap is acknowledged at once.
            self.owed.add(Owed::ACK);
        } else {
            self.delay_ack(now, text.len());
        }
        if self.rcv.nxt == before { Err(DropReason::NoRoom) } else { Ok(Progress::READABLE) }
    }

    /// Looks how much the program has read.
    pub(crate) fn tune_window<R: RecvBuffer + ?Sized>(&mut self, now: Instant, rx: &R) {
        let delivered = self.rcv.nxt - self.rcv.irs;
        self.rcv.tuning.on_read(now, self.rto.srtt(), delivered.wrapping_sub(rx.unread() as u32));
    }

    /// Hands octets in order to the program and answers how many it took.
    fn deliver<R: RecvBuffer + ?Sized>(&mut self, text: &[u8], rx: &mut R) -> usize {
        let taken = rx.write(text).min(text.len());
        self.rcv.nxt += taken as u32;
        self.counters.octets_received += taken as u64;
        taken
    }

    fn deliver_kept<R: RecvBuffer + ?Sized>(&mut self, rx: &mut R) {
        let before = self.rcv.nxt;
        if let Some(reassembly) = &mut self.rcv.reassembly {
            self.rcv.nxt = reassembly.take(before, |text| rx.write(text).min(text.len()));
        }
        self.counters.octets_received += u64::from(self.rcv.nxt - before);
        self.rcv.release();
    }

    /// Text ahead of its turn: keeps it, and tells the peer at once (RFC 5681 §4.2). A peer without
    /// SACK counts these acknowledgements, so each is owed on its own.
    // RFC 9293 SHLD-31; RFC 5681 §3.2; RFC 6582 §5.
    fn keep(&mut self, seq: SeqNumber, text: &[u8]) -> Result<Progress, DropReason> {
        if self.recovery.sack() {
            self.owed.add(Owed::ACK);
        } else {
            // An acknowledgement of text in order that is still owed is no duplicate.
            let first = u8::from(self.owed.settle(Owed::ACK));
            self.rcv.duplicate_acks = self.rcv.duplicate_acks.saturating_add(1 + first);
        }
        let limit = OVERHEAD * self.rcv.tuning.limit() as usize + 4096;
        let reassembly = self.rcv.reassembly.get_or_insert_with(|| Box::new(Reassembly::default()));
        let twice = reassembly.insert(seq, text, limit).map_err(|_| DropReason::ReassemblyFull)?;
        if let Some(twice) = twice.filter(|_| self.recovery.sack()) {
            self.rcv.note_duplicate(twice);
        }
        let out_of_order = &mut self.counters.mishaps().out_of_order;
        *out_of_order = out_of_order.wrapping_add(1);
        Ok(Progress::NONE)
    }

    /// Eighth: processes the peer's FIN once all before it has been received.
    fn take_fin(&mut self, now: Instant) -> Progress {
        if self.rcv.fin_at != Some(self.rcv.nxt) {
            return Progress::NONE;
        }
        self.rcv.nxt += 1;
        self.rcv.reassembly = None;
        self.timers.cancel(Timer::DelayedAck);
        self.owed.add(Owed::ACK);
        Progress::PEER_FIN
            | match self.state {
                State::Established => self.go(State::CloseWait),
                // Had our FIN been acknowledged by this segment, this would be FIN-WAIT-2.
                State::FinWait1 => self.go(State::Closing),
                State::FinWait2 => self.enter_time_wait(now),
                _ => Progress::NONE,
            }
    }

    fn go(&mut self, state: State) -> Progress {
        self.state = state;
        Progress::NONE
    }
}
