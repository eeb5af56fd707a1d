//! The path MTU while a connection runs. What the link takes is known from the beginning; what the
//! path takes is told by routers (RFC 1191, RFC 8201), who may be silent or lie. So large segments
//! that time out again and again make a black hole suspected (RFC 4821 §7.7, RFC 8899 §4.3): smaller
//! ones are sent, and probes with real text then find out what the path really takes. A probe that is
//! lost alone is no sign of congestion (RFC 4821 §7.6). PROBE_TIMER is what finds every other loss:
//! `rack`, the tail's probe and the retransmission time-out.

use alloc::boxed::Box;

use silk_instant::Instant;

use crate::choose::Text;
use crate::congestion::Congestion;
use crate::connection::Connection;
use crate::flight::Outstanding;
use crate::recovery::{Hole, Phase};
use crate::search::{BASE, LEAST, MtuProbing, Probe, Search};

/// What may be sent now, for a probe to fit in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) out: Outstanding,
    /// Octets of text in a full segment.
    pub(crate) mss: u32,
    /// Octets never sent.
    pub(crate) unsent: u32,
    /// Octets that both windows have left.
    pub(crate) now: u32,
}

/// What comes of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attempt {
    /// No probe now.
    Nothing,
    /// A probe as soon as there is room: nothing else before.
    Wait,
    Send(Text),
}

/// Consecutive time-outs that make a black hole suspected; two more, and even less is tried.
const SUSPICIOUS: u8 = 2;
/// So many full segments must be there to follow a probe: what arrives after it shows that it is lost.
const FOLLOWERS: u32 = 3;

impl Connection {
    /// The link takes segments of `mss` octets: its MTU less the headers of IP and TCP.
    pub fn set_link_mtu(&mut self, now: Instant, mss: u16) {
        self.path_search = None;
        self.use_segments_of(mss.max(48));
        if self.state.is_synchronized() {
            self.begin_probing(now);
        }
    }

    /// A router says that the path takes segments of no more than `mss` octets (RFC 1191 §3). What
    /// was sent in larger ones is sent again at once and without blaming congestion (§6.5). Before
    /// believing an ICMP message, ask [`Connection::is_outstanding`].
    // RFC 9293 MUST-16, MUST-54; RFC 8201 §5.4.
    pub fn on_packet_too_big(&mut self, now: Instant, mss: u16) {
        let (before, mss) = (self.snd.mss, mss.max(48));
        // Before the handshake is complete nobody knows what the peer takes, and so what to probe for.
        if self.limits.mtu_probing != MtuProbing::Off && self.state.is_synchronized() {
            let most = self.most_to_probe();
            let new = || Box::new(Search::new(now, before, before, most));
            self.path_search.get_or_insert_with(new).limit(now, mss);
        }
        if mss >= self.snd.path_mss {
            return;
        }
        self.use_segments_of(mss);
        if self.snd.mss < before && self.state.may_transmit() && !self.snd.is_idle() {
            self.forget_probe();
            self.recovery.start_anew(now, self.outstanding());
        }
    }

    /// The handshake is complete: where it is so configured, the search begins from the base.
    pub(crate) fn begin_probing(&mut self, now: Instant) {
        let most = self.most_to_probe();
        if self.limits.mtu_probing == MtuProbing::Always && most > BASE {
            self.search_from(now, BASE, most);
        }
    }

    /// The same segment has timed out again (RFC 4821 §7.7, RFC 8899 §4.3). If segments that may be too large are
    /// outstanding, smaller ones are tried.
    pub(crate) fn suspect_black_hole(&mut self, now: Instant) {
        let tried = match self.snd.timeouts {
            SUSPICIOUS => BASE,
            n if n == 2 * SUSPICIOUS => LEAST,
            _ => return,
        };
        let large = self.snd.mss > tried && self.outstanding().octets() > u32::from(tried);
        if large && self.limits.mtu_probing != MtuProbing::Off {
            let high = self.path_search.as_ref().map_or(0, |search| search.low()).max(self.snd.mss);
            self.search_from(now, tried, high);
        }
    }

    fn search_from(&mut self, now: Instant, low: u16, high: u16) {
        let search = Search::new(now, low, high, self.most_to_probe());
        self.path_search = Some(Box::new(search));
        self.use_segments_of(low);
    }

    /// What the link and the peer take.
    fn most_to_probe(&self) -> u16 {
        let most = self.path_search.as_ref().map_or(self.snd.path_mss, |search| search.most());
        most.min(self.snd.peer_mss)
    }

    fn use_segments_of(&mut self, mss: u16) {
        self.snd.path_mss = mss;
        self.snd.mss = self.snd.peer_mss.min(mss);
    }

    /// A probe, when one is wanted and both windows take it and what must follow it (RFC 4821 §7.4).
    /// Acknowledgements open the windows by less than a probe at a time, so text is held back until
    /// there is room for one; so much is outstanding then that more of them come.
    pub(crate) fn path_probe(&mut self, now: Instant, room: Room) -> Attempt {
        let Some(size) = self.path_search.as_mut().and_then(|search| search.wanted(now)) else {
            return Attempt::Nothing;
        };
        let Room { out, mss, unsent, now: free } = room;
        let len = u32::from(size).saturating_sub(u32::from(self.snd.mss).saturating_sub(mss));
        let whole = len.saturating_add(FOLLOWERS * mss);
        let most = unsent.min(self.snd.wnd).min(self.congestion.window());
        if len <= mss || !self.recovery.is_calm() || most < whole {
            return Attempt::Nothing;
        }
        if free < len {
            return Attempt::Wait;
        }
        if let Some(search) = &mut self.path_search {
            search.probe = Some(Probe { start: out.nxt, end: out.nxt + len, size });
        }
        Attempt::Send(Text { seq: out.nxt, len, fin: false, mss: len, again: None })
    }

    /// Text was acknowledged, perhaps a probe: then its size is the path's.
    pub(crate) fn weigh_probe(&mut self, now: Instant) {
        let Some(search) = &mut self.path_search else { return };
        if search.probe.is_some_and(|probe| self.snd.una.at_or_after(probe.end)) {
            search.succeed(now);
            let low = search.low();
            self.use_segments_of(low);
        }
    }

    /// A loss is to be repaired. If it is a probe and nothing else, it is sent again in pieces that
    /// get through, and the window stays (RFC 4821 §7.6.2, RFC 8899 §3). Answers whether it was.
    pub(crate) fn repair_probe(&mut self, now: Instant, out: Outstanding) -> bool {
        let Some(search) = &mut self.path_search else { return false };
        let Some(probe) = search.probe.filter(|probe| probe.start == out.una) else { return false };
        if self.recovery.sack()
            && self.recovery.first_lost(out) != Some(Hole { start: probe.start, end: probe.end })
        {
            return false;
        }
        search.fail(now);
        search.repaired = Some(probe.end);
        self.recovery.start_probe_repair(now, out, probe.end);
        self.restart_timer(now);
        true
    }

    /// Whether more is lost than the probe that is being sent again.
    pub(crate) fn lost_more_than_probe(&self, out: Outstanding) -> bool {
        let repaired = self.path_search.as_ref().and_then(|search| search.repaired);
        let beyond = |end| self.recovery.first_lost(out).is_some_and(|hole| hole.start.at_or_after(end));
        self.recovery.phase() == Phase::Loss && repaired.is_some_and(beyond)
    }

    /// The time-out found the probe lost, which this time is congestion, too (RFC 4821 §7.6.3).
    pub(crate) fn on_probe_timed_out(&mut self, now: Instant) {
        let Some(search) = &mut self.path_search else { return };
        search.repaired = None;
        if search.probe.is_some_and(|probe| probe.start == self.snd.una) {
            search.fail(now);
        }
    }

    /// What is sent again may be part of a probe: then its acknowledgement says nothing of the path
    /// (RFC 4821 §7.6.4, inconclusive).
    pub(crate) fn probe_sent_again(&mut self, hole: Hole) {
        let touched = |probe: Probe| hole.start.before(probe.end) && probe.start.before(hole.end);
        if self.path_search.as_ref().and_then(|search| search.probe).is_some_and(touched) {
            self.forget_probe();
        }
    }

    fn forget_probe(&mut self) {
        if let Some(search) = &mut self.path_search {
            (search.probe, search.repaired) = (None, None);
        }
    }
}
