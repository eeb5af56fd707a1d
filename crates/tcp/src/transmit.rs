//! A segment leaves. [`Connection::poll_transmit`] is asked until it has nothing more: first what
//! is owed whatever else happens, then text, which carries every acknowledgement it can, and at
//! last acknowledgements and probes on their own. Which text is next is decided in `choose`; here
//! it gets its header, and its sending is remembered.

use silk_instant::Instant;

use crate::buffer::{RecvBuffer, SendBuffer};
use crate::choose::Text;
use crate::codepoint::Codepoint;
use crate::congestion::Congestion;
use crate::connection::{Connection, Owed};
use crate::options::{Options, SackBlocks};
use crate::segment::{Flags, Header, Transmit};
use crate::sender::Fin;
use crate::seq::SeqNumber;
use crate::state::State;
use crate::timers::Timer;

impl Connection {
    /// The next segment to send, if there is one. Its text may be as long as `max_segment_bytes`
    /// when it is to be cut by segmentation offload; 0 asks for single segments. Everything
    /// answered counts as sent.
    // RFC 9293 MUST-58, MUST-59.
    pub fn poll_transmit<S: SendBuffer + ?Sized, R: RecvBuffer + ?Sized>(
        &mut self,
        now: Instant,
        tx: &S,
        rx: &R,
        max_segment_bytes: usize,
    ) -> Option<Transmit> {
        if self.owed.settle(Owed::STRAY) {
            // RFC 9293 §3.10.7.3, first: <SEQ=SEG.ACK><CTL=RST>.
            return Some(self.bare(Header { seq: self.stray, ..reset() }));
        }
        match self.state {
            State::Closed => return self.poll_reset(),
            State::SynSent | State::SynReceived if self.owed.settle(Owed::SYN) => return Some(self.syn(now)),
            _ => {}
        }
        if self.rcv.duplicate_acks > 0 {
            // Each on its own and without text, or the peer would not count it (RFC 5681 §2).
            self.rcv.duplicate_acks -= 1;
            return Some(self.acknowledge(now, rx, self.snd.nxt));
        }
        if let Some(text) = self.next_text(now, tx, max_segment_bytes) {
            return Some(self.send_text(now, tx, rx, text));
        }
        if self.owed.settle(Owed::PROBE) {
            // One below SND.UNA and empty: unacceptable, so the peer must answer (§3.10.7.4,
            // first).
            return Some(self.acknowledge(now, rx, self.snd.una - 1));
        }
        let alone = self.goes_alone(now, tx, rx);
        if (alone || self.owed.contains(Owed::ACK)) && self.state != State::SynSent {
            return Some(self.acknowledge(now, rx, self.snd.nxt));
        }
        None
    }

    /// RFC 9293 §3.10.5: <SEQ=SND.NXT><CTL=RST>.
    fn poll_reset(&mut self) -> Option<Transmit> {
        if !self.owed.settle(Owed::RST) {
            return None;
        }
        let flags = Flags::RST | Flags::ACK;
        Some(self.bare(Header { seq: self.snd.nxt, ack: self.rcv.nxt, flags, ..reset() }))
    }

    /// Our SYN, or SYN-ACK in SYN-RECEIVED; its window is not scaled (RFC 7323 §2.2).
    fn syn(&mut self, now: Instant) -> Transmit {
        if self.snd.stalled_since == Instant::FAR {
            self.snd.stalled_since = now;
        }
        self.snd.last_sent = now;
        self.timers.arm(Timer::Retransmit, self.not_overslept(now + self.rto.current()));
        let answer = self.state == State::SynReceived;
        if answer {
            self.rcv.acknowledged(&SackBlocks::default());
        }
        let (ack, flag) = if answer {
            (self.rcv.nxt, if self.ecn.is_on() { Flags::ACK | Flags::ECE } else { Flags::ACK })
        } else {
            (SeqNumber::default(), self.ecn.wanted.syn(self.syn_lost))
        };
        let (options, window) = (self.offer(now), self.rcv.syn_window());
        self.bare(Header { seq: self.snd.una, ack, flags: Flags::SYN | flag, window, urgent: 0, options })
    }

    /// An empty segment with the present acknowledgement and window.
    fn acknowledge<R: RecvBuffer + ?Sized>(&mut self, now: Instant, rx: &R, seq: SeqNumber) -> Transmit {
        let header = self.header(now, rx, seq, Flags::ACK);
        self.bare(header)
    }

    // RFC 9293 SHLD-12; RFC 3168 §6.1.1, §6.1.4, §6.1.6.
    fn bare(&mut self, header: Header) -> Transmit {
        self.counters.segments_out = self.counters.segments_out.wrapping_add(1);
        Transmit { header, offset: 0, len: 0, gso_size: 0, ecn: Codepoint::NotEct }
    }

    /// A header with all that every segment of a synchronized connection says.
    // RFC 9293 MUST-65; RFC 7323 §3.2.
    fn header<R: RecvBuffer + ?Sized>(
        &mut self,
        now: Instant,
        rx: &R,
        seq: SeqNumber,
        flags: Flags,
    ) -> Header {
        let window = self.rcv.advertise(rx.room(), rx.capacity(), self.snd.mss);
        let timestamp = self.stamps.option(now);
        let sack = self.sack_blocks();
        self.rcv.acknowledged(&sack);
        self.owed.settle(Owed::ACK);
        if self.recovery.sack() && self.rcv.has_news() {
            // More than one of them holds came together.
            self.owed.add(Owed::ACK);
        }
        self.timers.cancel(Timer::DelayedAck);
        // It waits for a segment without a report.
        let says = sack.is_empty() && self.owed.settle(Owed::USER_TIMEOUT);
        let user_timeout = if says { self.user_timeout.offer() } else { None };
        let options = Options { timestamp, sack, user_timeout, ..Options::default() };
        let urgent = self.urgent_pointer(seq);
        let urg = if urgent > 0 { Flags::URG } else { Flags::NONE };
        let flags = flags | Flags::ACK | self.ecn.flags() | urg;
        Header { seq, ack: self.rcv.nxt, flags, window, urgent, options }
    }

    /// What the peer is to be told of that came ahead of its turn, or twice: 40 bytes of options hold four blocks, or three beside a
    /// timestamp (RFC 2018 §3). Nothing, if it has not permitted them.
    // RFC 2018 §4.
    pub(crate) fn sack_blocks(&self) -> SackBlocks {
        let stamped = self.stamps.option(Instant::ZERO).is_some();
        let room = if stamped { 3 } else { 4 };
        if self.recovery.sack() { self.rcv.sack_blocks(room) } else { SackBlocks::default() }
    }

    // RFC 9293 MUST-61, SHLD-27.
    fn send_text<S: SendBuffer + ?Sized, R: RecvBuffer + ?Sized>(
        &mut self,
        now: Instant,
        tx: &S,
        rx: &R,
        text: Text,
    ) -> Transmit {
        let offset = text.seq.since(self.snd.una) as usize;
        let len = text.len as usize;
        let last = len > 0 && offset + len >= tx.len();
        let mut flags = if last { Flags::PSH } else { Flags::NONE };
        if text.fin {
            flags |= Flags::FIN;
        }
        let fresh = len > 0 && text.again.is_none();
        if fresh {
            flags |= self.ecn.take_cwr();
        }
        self.note_company(now);
        let header = self.header(now, rx, text.seq, flags);
        self.note_sent(now, text);
        let gso_size = if text.len > text.mss { text.mss as u16 } else { 0 };
        let ecn = self.ecn.codepoint(fresh && self.heeds_marks());
        Transmit { header, offset, len, gso_size, ecn }
    }

    /// Whether congestion control answers a mark as it answers a loss. One with a model of the path goes by how much of a
    /// round is lost, which a mark does not tell: from it a full queue has to drop.
    // RFC 3168 §6.1.2.
    fn heeds_marks(&self) -> bool {
        !self.congestion.models_the_path()
    }

    fn note_sent(&mut self, now: Instant, text: Text) {
        let end = text.seq + text.len + u32::from(text.fin);
        let segments = text.len.div_ceil(text.mss).max(1);
        self.counters.segments_out = self.counters.segments_out.wrapping_add(segments);
        if text.len > 0 {
            self.counters.text_out = self.counters.text_out.wrapping_add(segments);
        }
        self.snd.last_sent = now;
        let out = self.outstanding();
        self.pace(now, out, text.len);
        self.timers.cancel(Timer::Persist);
        if let Some(hole) = text.again {
            let mishaps = self.counters.mishaps();
            mishaps.segments_again = mishaps.segments_again.wrapping_add(segments);
            mishaps.octets_again += u64::from(text.len);
            self.recovery.sent_again(now, hole, end, self.snd.una);
            self.probe_sent_again(hole);
            self.note_for_undo(now, text.len);
            self.rearm_for_repair(now, hole);
        } else {
            self.note_first_sent(now, text, end);
        }
        // RFC 6298 §5.1.
        if !self.timers.is_armed(Timer::Retransmit) {
            self.restart_timer(now);
        }
    }

    fn note_first_sent(&mut self, now: Instant, text: Text, end: SeqNumber) {
        self.note_busy(now);
        self.owed.settle(Owed::PUSH);
        self.recovery.sent_new(now, end, text.len);
        self.snd.nxt = end;
        if !text.len.is_multiple_of(text.mss) {
            self.snd.small_end = end;
        }
        if text.fin {
            self.snd.fin = Fin::Sent;
            // RFC 9293 §3.10.4: a FIN moves the state when it is sent.
            self.state = if self.state == State::CloseWait { State::LastAck } else { State::FinWait1 };
        }
    }
}

fn reset() -> Header {
    Header {
        seq: SeqNumber::default(),
        ack: SeqNumber::default(),
        flags: Flags::RST,
        window: 0,
        urgent: 0,
        options: Options::default(),
    }
}
