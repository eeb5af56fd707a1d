//! Urgent data (RFC 9293 §3.8.5): which octet of the stream is the last urgent one. It stays in its place in the
//! stream both ways, whatever a program's interface makes of it, and the pointer of a segment points behind it
//! (RFC 6093 §3.1). Hardly any connection ever has some.

use alloc::boxed::Box;

use crate::buffer::RecvBuffer;
use crate::connection::{Connection, Owed};
use crate::progress::Progress;
use crate::receiver::Reader;
use crate::segment::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::state::State;

/// Where urgent data ends, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Urgent {
    /// SND.UP: behind the last urgent octet that the program wrote, until it is acknowledged.
    sent: Option<SeqNumber>,
    /// RCV.UP: the peer's last urgent octet, until it was handed to the program.
    received: Option<SeqNumber>,
}

impl Connection {
    /// The program wrote urgent data: it ends behind the first `octets` of the send buffer. What was said before
    /// of later octets is forgotten, of earlier ones superseded.
    // RFC 9293 MUST-30, MUST-31.
    pub fn mark_urgent(&mut self, octets: usize) {
        let open = matches!(self.state, State::Established | State::CloseWait);
        let Some(octets) = u32::try_from(octets).ok().filter(|octets| open && *octets > 0) else { return };
        let end = self.snd.una + octets;
        self.urgent.get_or_insert_default().sent = Some(end);
        if end.after(self.snd.una + self.snd.wnd) {
            // The peer does not have to open its window to learn of it.
            self.owed.add(Owed::ACK);
        }
    }

    /// Whether urgent data is not acknowledged yet. Segments then leave one by one, since a device that cuts would
    /// leave the pointer as it is, and none waits for company.
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgent.as_ref().is_some_and(|urgent| urgent.sent.is_some())
    }

    /// The urgent pointer of a segment at `seq`; zero: it has none, as the urgent data lies before it or too far
    /// ahead for 16 bits.
    // RFC 9293 MUST-62.
    pub(crate) fn urgent_pointer(&self, seq: SeqNumber) -> u16 {
        let end = self.urgent.as_ref().and_then(|urgent| urgent.sent);
        end.and_then(|end| u16::try_from(end.since(seq)).ok()).unwrap_or(0)
    }

    /// Everything before SND.UNA is acknowledged.
    pub(crate) fn forget_urgent_sent(&mut self) {
        let una = self.snd.una;
        self.keep_urgent(|urgent| urgent.sent = urgent.sent.filter(|end| end.after(una)));
    }

    /// Everything before RCV.NXT was handed to the program.
    pub(crate) fn forget_urgent_received(&mut self) {
        let nxt = self.rcv.nxt;
        self.keep_urgent(|urgent| urgent.received = urgent.received.filter(|last| last.at_or_after(nxt)));
    }

    fn keep_urgent(&mut self, keep: impl FnOnce(&mut Urgent)) {
        if let Some(urgent) = &mut self.urgent {
            keep(urgent);
            if **urgent == Urgent::default() {
                self.urgent = None;
            }
        }
    }

    /// Sixth: the urgent pointer (RFC 9293 §3.10.7.4). The program hears of it before it can read the octet, also
    /// when that is still to come. As with other systems a pointer of zero means the segment's first octet.
    // RFC 9293 MUST-32, MUST-66.
    pub(crate) fn on_urgent<R: RecvBuffer + ?Sized>(&mut self, seg: &Segment, rx: &mut R) -> Progress {
        let heard = self.state.receives_text() && self.rcv.reader != Reader::Gone;
        if !seg.flags.contains(Flags::URG) || !heard {
            return Progress::NONE;
        }
        let last = seg.seq + u32::from(seg.urgent.max(1)) - 1;
        let known = self.urgent.as_ref().and_then(|urgent| urgent.received);
        let is_new = last.at_or_after(self.rcv.nxt) && known.is_none_or(|known| last.after(known));
        if !is_new || self.rcv.fin_at.is_some_and(|end| last.at_or_after(end)) {
            return Progress::NONE;
        }
        self.urgent.get_or_insert_with(Box::default).received = Some(last);
        rx.mark_urgent((last - self.rcv.nxt) as usize);
        Progress::URGENT
    }
}
