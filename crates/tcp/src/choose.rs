//! Which text is sent next: a tail loss probe (RFC 8985 §7.3), then what is lost (RFC 6675 §5), then
//! new text as far as both windows, Nagle's algorithm and silly-window avoidance let it go (RFC 9293
//! §3.8.6.2.1, RFC 896). Nothing is chosen beyond the peer's window, except that the first
//! outstanding octet may always be sent again (RFC 9293 §3.8.6: a window that shrank).

use core::time::Duration;

use silk_instant::Instant;

use crate::agree::initial_window;
use crate::buffer::SendBuffer;
use crate::congestion::Congestion;
use crate::connection::{Connection, Owed};
use crate::flight::Outstanding;
use crate::options::{Options, SackBlocks};
use crate::path_mtu::{Attempt, Room};
use crate::recovery::{Hole, Phase};
use crate::sender::{Cork, Fin};
use crate::seq::SeqNumber;
use crate::state::State;
use crate::timers::Timer;

/// How long a cork, or silly-window avoidance with nothing outstanding, may hold text back (RFC
/// 9293 §3.8.6.2.1: an override time-out of 0.1 to 1 s).
const OVERRIDE: Duration = Duration::from_millis(200);

/// A round-trip time below which it pays to wait for a larger part of the window.
const NEAR: Duration = Duration::from_millis(1);

/// A stretch of the stream to send as one transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub(crate) seq: SeqNumber,
    pub(crate) len: u32,
    /// The FIN follows the text.
    pub(crate) fin: bool,
    /// Octets of text in a full segment with the options it will have.
    pub(crate) mss: u32,
    /// The hole it belongs to, when it was sent before.
    pub(crate) again: Option<Hole>,
}

/// How much new text the windows let go.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    /// Octets never sent.
    unsent: u32,
    /// Octets that the peer's window has left.
    window: u32,
    /// Octets that the congestion window has left.
    congestion: u32,
    /// The most octets in one transmission: whole segments.
    most: u32,
    mss: u32,
}

impl Connection {
    /// The text to send now, if any.
    pub(crate) fn next_text<S: SendBuffer + ?Sized>(
        &mut self,
        now: Instant,
        tx: &S,
        max: usize,
    ) -> Option<Text> {
        if !self.state.may_transmit() {
            return None;
        }
        if self.has_nothing_to_send(now, tx) {
            return None;
        }
        let out = self.outstanding();
        let mss = self.text_mss(out);
        // What is said on one segment, a device that cuts might say on each.
        let once = self.ecn.owes_cwr() || self.is_urgent() || self.owed.contains(Owed::USER_TIMEOUT);
        let max = if once { 0 } else { max };
        let most = (u32::try_from(max).unwrap_or(u32::MAX) / mss).max(1) * mss;
        if self.owed.settle(Owed::TAIL) && !self.snd.is_idle() {
            return self.probe(out, tx, mss);
        }
        let portion = self.portion_at_once(now, mss);
        // What a time-out sends again does not wait: its time runs already (RFC 6298 §5.4, §5.6).
        if portion.is_none() && !(self.recovery.phase() == Phase::Loss && self.recovery.forced()) {
            return None;
        }
        let most = most.min(portion.unwrap_or(mss));
        if portion.is_some() && self.is_trying_new_text() {
            let fresh = self.fresh(now, out, tx, mss, most);
            if let Some(tried) = self.tries_new_text(fresh) {
                return tried;
            }
        }
        if !self.recovery.is_calm()
            && let Some(hole) = self.recovery.next_lost(out)
            && let Some(text) = self.again(hole, out, mss, most)
        {
            return Some(text);
        }
        portion?;
        self.fresh(now, out, tx, mss, most)
    }

    /// Whether all was sent and nothing of it must be sent again: nearly every call ends here, so it
    /// comes before anything is computed.
    fn has_nothing_to_send<S: SendBuffer + ?Sized>(&mut self, now: Instant, tx: &S) -> bool {
        let asked = self.snd.fin == Fin::Wanted || self.owed.contains(Owed::TAIL);
        let nothing = self.recovery.is_calm() && !asked && self.snd.unsent(tx.len()) == 0;
        if nothing {
            self.note_all_sent(now, tx);
            if self.congestion.models_the_path() {
                self.note_app_limited();
            }
        }
        nothing
    }

    /// TLP_send_probe() (RFC 8985 §7.3): a segment of new text, which congestion control does not
    /// hold back, or else the last segment again.
    fn probe<S: SendBuffer + ?Sized>(&mut self, out: Outstanding, tx: &S, mss: u32) -> Option<Text> {
        let open = matches!(self.state, State::Established | State::CloseWait);
        let len = self.snd.unsent(tx.len()).min(self.snd.usable_window()).min(mss);
        let text = if open && len > 0 {
            Text { seq: out.nxt, len, fin: false, mss, again: None }
        } else {
            let start = (out.nxt - mss).max(out.una);
            self.part(Hole { start, end: out.nxt }, out, mss, mss)?
        };
        let end = text.seq + text.len + u32::from(text.fin);
        self.recovery.tail.sent(end.max(out.nxt), text.again.is_some());
        Some(text)
    }

    /// Octets of text in a full segment, given that SACK blocks or a user time-out may ride on it.
    fn text_mss(&self, out: Outstanding) -> u32 {
        let sack = self.sack_blocks();
        if sack == SackBlocks::default() {
            let owed = self.owed.contains(Owed::USER_TIMEOUT);
            let bytes = if owed { Options::USER_TIMEOUT_BYTES as u32 } else { 0 };
            return out.mss.saturating_sub(bytes).max(8);
        }
        let options = Options { sack, timestamp: self.stamps.option(Instant::ZERO), ..Options::default() };
        let bytes = options.encoded_len().min(Options::MAX_BYTES) as u32;
        u32::from(self.snd.mss).saturating_sub(bytes).max(8)
    }

    /// As much of a hole as may be sent again now.
    // RFC 9293 SHLD-16; RFC 8985 §9.3; RFC 6675 §5.
    fn again(&self, hole: Hole, out: Outstanding, mss: u32, most: u32) -> Option<Text> {
        let left = self.congestion_budget(out);
        let forced = self.recovery.forced();
        if left < mss && !forced {
            return None;
        }
        let whole = (left / mss).max(1) * mss;
        self.part(hole, out, mss, whole.min(most))
    }

    /// At most `most` octets of a hole, as far as the peer's window reaches, with the FIN if that
    /// was sent.
    fn part(&self, hole: Hole, out: Outstanding, mss: u32, most: u32) -> Option<Text> {
        // Under a closed window one octet is sent again: the probe of RFC 9293 §3.8.6.1.
        let window_end = (out.una + self.snd.wnd.max(1)).max(hole.start);
        let end = hole.end.min(hole.start + most).min(window_end);
        let text_end = self.snd.text_end();
        let len = end.min(text_end).since(hole.start);
        let fin = self.snd.fin == Fin::Sent && hole.start + len == text_end && hole.end.after(text_end);
        (len > 0 || fin).then_some(Text { seq: hole.start, len, fin, mss, again: Some(hole) })
    }

    /// New text, and the FIN.
    fn fresh<S: SendBuffer + ?Sized>(
        &mut self,
        now: Instant,
        out: Outstanding,
        tx: &S,
        mss: u32,
        most: u32,
    ) -> Option<Text> {
        if !matches!(self.state, State::Established | State::CloseWait) {
            return None;
        }
        let unsent = self.snd.unsent(tx.len());
        let fin = self.snd.fin == Fin::Wanted;
        if unsent == 0 && !fin {
            return None;
        }
        self.restart_after_idle(now, out);
        let window = self.snd.usable_window();
        let congestion = self.congestion_budget(out);
        self.snd.cwnd_limited = congestion < window.min(unsent);
        if self.path_search.is_some() {
            let room = Room { out, mss, unsent, now: window.min(congestion) };
            match self.path_probe(now, room) {
                Attempt::Nothing => {}
                Attempt::Wait => return None,
                Attempt::Send(probe) => return Some(probe),
            }
        }
        let len = self.portion(Allowance { unsent, window, congestion, most, mss });
        // The FIN needs its place in the window like any octet.
        let fin = fin && len == unsent && len < window;
        if len == 0 && !fin {
            self.note_held(now, window, congestion);
            self.hold(now, window);
            return None;
        }
        Some(Text { seq: out.nxt, len, fin, mss, again: None })
    }

    /// How many octets of new text to send. All of a full segment may go; a smaller one only at the
    /// end of the text, when Nagle lets it, or when the window will never take more (RFC 9293
    /// §3.8.6.2.1).
    // RFC 9293 MUST-38, SHLD-28.
    fn portion(&self, allowance: Allowance) -> u32 {
        let Allowance { unsent, window, congestion, most, mss } = allowance;
        let sendable = unsent.min(window).min(congestion).min(most);
        let whole = sendable - sendable % mss;
        if sendable == unsent && (whole == sendable || self.lets_small_go()) {
            return sendable;
        }
        if whole > 0 {
            return if sendable < unsent.min(most) && self.gathers(whole, mss) { 0 } else { whole };
        }
        let window_limited = sendable < unsent && window <= congestion;
        // (3) of §3.8.6.2.1: half of the largest window the peer ever offered is worth sending.
        let worthwhile = sendable >= self.snd.max_wnd / 2 || self.owed.contains(Owed::PUSH);
        if window_limited && worthwhile { sendable } else { 0 }
    }

    /// Whether a small part of the window waits until acknowledgements have opened more of it: for
    /// segmentation offload one large transmission costs what a small one does. Only near peers,
    /// where the wait is nothing: far away the window would stand open for a good part of a
    /// round trip. Enough must be outstanding that the peer acknowledges it at once (RFC 5681
    /// §4.2: every second segment).
    fn gathers(&self, whole: u32, mss: u32) -> bool {
        let outstanding = self.snd.nxt.since(self.snd.una);
        let window = self.congestion.window().min(self.snd.wnd);
        let near = (Duration::from_nanos(1)..NEAR).contains(&self.rto.srtt());
        near && self.recovery.is_calm() && outstanding >= 2 * mss && whole < window / 3
    }

    /// Nagle's algorithm as refined by Minshall: a small segment waits only while another small one
    /// is outstanding. A FIN is reason enough to send the rest, and so is urgent data.
    // RFC 9293 SHLD-7.
    fn lets_small_go(&self) -> bool {
        let pushed = self.owed.contains(Owed::PUSH) || self.snd.fin == Fin::Wanted || self.is_urgent();
        let nagle = self.snd.nodelay || self.snd.small_end.at_or_before(self.snd.una);
        pushed || (self.snd.cork == Cork::Out && nagle)
    }

    /// Text is held back. While something is outstanding its acknowledgement will bring us here
    /// again; otherwise only the persist timer will (RFC 9293 §3.8.6.1 and §3.8.6.2.1).
    // RFC 9293 MUST-60, SHLD-29, SHLD-30.
    fn hold(&mut self, now: Instant, window: u32) {
        if self.snd.is_idle() && !self.timers.is_armed(Timer::Persist) {
            let until = now + if window == 0 { self.rto.doubled(self.snd.probes) } else { OVERRIDE };
            self.timers.arm(Timer::Persist, self.not_overslept(until));
        }
    }

    /// Nothing is outstanding, and nothing was sent for longer than the time-out.
    pub(crate) fn has_rested(&self, now: Instant) -> bool {
        self.snd.is_idle() && now - self.snd.last_sent > self.rto.current()
    }

    /// RFC 5681 §4.1: after an idle time longer than the time-out the window says nothing any more.
    fn restart_after_idle(&mut self, now: Instant, out: Outstanding) {
        if self.has_rested(now) {
            let initial = initial_window(self.limits.initial_window.into(), self.snd.mss).max(out.mss);
            self.congestion.on_idle(initial);
        }
    }
}
