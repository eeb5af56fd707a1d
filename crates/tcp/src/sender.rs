//! The send sequence variables (RFC 9293 §3.3.1) and the little state that decides when text
//! leaves. SYN and FIN occupy sequence numbers but no octets of the send buffer; here is the one
//! place that knows the difference.

use silk_instant::Instant;

use crate::seq::SeqNumber;

/// What holds small segments back besides Nagle's algorithm, for 200 ms at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cork {
    /// Nothing.
    Out,
    /// More is to follow (`MSG_MORE`): until everything that is outstanding has been acknowledged.
    Loose,
    /// `TCP_CORK`.
    Tight,
}

/// Whether the stream we send has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fin {
    /// The program may write more.
    Open,
    /// A FIN follows the text in the buffer.
    Wanted,
    /// The FIN was sent: it is the octet before SND.NXT.
    Sent,
}

/// What we send.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// SND.UNA: the oldest unacknowledged sequence number.
    pub(crate) una: SeqNumber,
    /// SND.NXT: the next to be sent for the first time. Never moves back; what is sent again is
    /// `recovery`'s business. `una <= nxt`.
    pub(crate) nxt: SeqNumber,
    /// SND.WL1 and SND.WL2: SEG.SEQ and SEG.ACK of the last window update.
    pub(crate) wl1: SeqNumber,
    pub(crate) wl2: SeqNumber,
    /// The end of the last segment sent that was not full (Minshall's refinement of Nagle).
    pub(crate) small_end: SeqNumber,
    /// The round trip is measured once its acknowledgement comes: one sample in each (RFC 6298 §3).
    pub(crate) timed_end: SeqNumber,
    /// SND.WND in octets.
    pub(crate) wnd: u32,
    /// MAX.SND.WND (RFC 5961 §5.2, RFC 9293 §3.8.6.2.1).
    pub(crate) max_wnd: u32,
    /// The largest segment to send, options included: the smaller of `peer_mss` and the path's.
    pub(crate) mss: u16,
    /// The largest that the path takes.
    pub(crate) path_mss: u16,
    /// What the peer's SYN allowed.
    pub(crate) peer_mss: u16,
    /// Snd.Wind.Shift (RFC 7323 §2.3).
    pub(crate) shift: u8,
    pub(crate) fin: Fin,
    /// TCP_NODELAY: no Nagle.
    pub(crate) nodelay: bool,
    /// Whether only full segments leave.
    pub(crate) cork: Cork,
    /// The congestion window held text back when we last had some to send.
    pub(crate) cwnd_limited: bool,
    /// Probes of a closed window since it closed: the back-off of the persist timer.
    pub(crate) probes: u8,
    /// Consecutive time-outs without progress.
    pub(crate) timeouts: u8,
    /// Probes since the peer was last heard.
    pub(crate) unanswered: u8,
    /// When text, or the SYN, was last sent.
    pub(crate) last_sent: Instant,
    /// When the first time-out of this stall happened; `FAR` without one.
    pub(crate) stalled_since: Instant,
}

impl Sender {
    /// A sender whose SYN counts as sent.
    pub(crate) fn new(iss: SeqNumber, mss: u16, nodelay: bool, now: Instant) -> Self {
        Self {
            una: iss,
            nxt: iss + 1,
            wl1: iss,
            wl2: iss,
            small_end: iss,
            timed_end: iss + 1,
            wnd: 0,
            max_wnd: 0,
            mss,
            path_mss: mss,
            peer_mss: mss,
            shift: 0,
            fin: Fin::Open,
            nodelay,
            cork: Cork::Out,
            cwnd_limited: false,
            probes: 0,
            timeouts: 0,
            unanswered: 0,
            last_sent: now,
            stalled_since: Instant::FAR,
        }
    }

    /// Whether nothing is outstanding.
    pub(crate) fn is_idle(&self) -> bool {
        self.una == self.nxt
    }

    /// The sequence number after the last octet of text that was sent.
    pub(crate) fn text_end(&self) -> SeqNumber {
        if self.fin == Fin::Sent { self.nxt - 1 } else { self.nxt }
    }

    /// Octets of the buffer that were never sent, if it holds `len`.
    pub(crate) fn unsent(&self, len: usize) -> u32 {
        let sent = self.text_end().since(self.una);
        u32::try_from(len).unwrap_or(u32::MAX).saturating_sub(sent)
    }

    /// How far beyond SND.NXT the peer's window reaches.
    // RFC 9293 MUST-34, SHLD-15.
    pub(crate) fn usable_window(&self) -> u32 {
        (self.una + self.wnd).since(self.nxt)
    }

    /// Window updates only from newer segments (RFC 9293 §3.10.7.4, fifth). What acknowledges more is newer also where
    /// its text was sent before, and is sent again: to keep the window of an earlier acknowledgement with it would
    /// reach beyond what the peer ever offered.
    pub(crate) fn update_window(&mut self, seq: SeqNumber, ack: SeqNumber, window: u32) {
        if self.wl2.before(ack) || (self.wl2 == ack && self.wl1.at_or_before(seq)) {
            self.set_window(seq, ack, window);
        }
    }

    // RFC 9293 MUST-1.
    pub(crate) fn set_window(&mut self, seq: SeqNumber, ack: SeqNumber, window: u32) {
        self.wl1 = seq;
        self.wl2 = ack;
        self.wnd = window;
        self.max_wnd = self.max_wnd.max(window);
        if window > 0 {
            self.probes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender() -> Sender {
        Sender::new(SeqNumber::new(100), 1460, false, Instant::ZERO)
    }

    #[test]
    fn a_fin_is_no_octet_of_the_buffer() {
        let mut sender = Sender { una: SeqNumber::new(101), ..sender() };
        sender.nxt = SeqNumber::new(111);
        assert_eq!(sender.unsent(15), 5);
        (sender.nxt, sender.fin) = (SeqNumber::new(117), Fin::Sent);
        assert_eq!((sender.unsent(15), sender.text_end().raw()), (0, 116));
    }

    #[test]
    fn an_older_segment_does_not_change_the_window() {
        let mut sender = sender();
        sender.set_window(SeqNumber::new(500), SeqNumber::new(100), 9_000);
        sender.update_window(SeqNumber::new(499), SeqNumber::new(100), 10);
        assert_eq!(sender.wnd, 9_000);
        sender.update_window(SeqNumber::new(500), SeqNumber::new(100), 10);
        assert_eq!((sender.wnd, sender.max_wnd), (10, 9_000));
        // It was sent before the one that acknowledged more, whatever its text is.
        sender.update_window(SeqNumber::new(501), SeqNumber::new(99), 20);
        assert_eq!(sender.wnd, 10);
    }

    #[test]
    fn text_that_is_sent_again_with_a_newer_acknowledgement_brings_its_window() {
        let mut sender = Sender { una: SeqNumber::new(100), ..sender() };
        sender.set_window(SeqNumber::new(500), SeqNumber::new(100), 9_000);
        sender.una = SeqNumber::new(5_100);
        sender.update_window(SeqNumber::new(400), SeqNumber::new(5_100), 4_000);
        assert_eq!((sender.una + sender.wnd).raw(), 9_100);
    }

    #[test]
    fn a_window_that_shrank_behind_what_was_sent_is_not_usable() {
        let mut sender = Sender { una: SeqNumber::new(101), ..sender() };
        (sender.nxt, sender.wnd) = (SeqNumber::new(1_101), 400);
        assert_eq!(sender.usable_window(), 0);
    }
}
