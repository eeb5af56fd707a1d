//! One connection: its variables, how it comes to be, and what the program may ask of it (RFC 9293
//! §3.10.1 to §3.10.6). What happens when segments arrive, leave or fail to is in the neighbouring
//! files; all of them work on the one struct below.

use alloc::boxed::Box;
use core::time::Duration;

use silk_instant::Instant;

use crate::account::Account;
use crate::agree::{Agreed, initial_window};
use crate::buffer::RecvBuffer;
use crate::challenge::Challenges;
use crate::config::{Config, KeepaliveConfig, Limits};
use crate::congestion::Algorithm;
use crate::controller::Controller;
use crate::ecn::Notification;
use crate::flight::Outstanding;
use crate::info::Counters;
use crate::isn::timestamp_offset;
use crate::keepalive::Keepalive;
use crate::listen::Established;
use crate::options::Options;
use crate::progress::Progress;
use crate::receiver::{Reader, Receiver};
use crate::recovery::Recovery;
use crate::rto::Rto;
use crate::search::Search;
use crate::segment::Segment;
use crate::sender::{Cork, Fin, Sender};
use crate::seq::SeqNumber;
use crate::stamps::Timestamps;
use crate::state::State;
use crate::time_wait::TimeWait;
use crate::timers::{Timer, Timers};
use crate::undo::Undo;
use crate::urgent::Urgent;
use crate::user_timeout::UserTimeout;

/// What the next calls of `poll_transmit` must send, whatever text there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owed(u16);

impl Owed {
    pub(crate) const NOTHING: Self = Self(0);
    /// Our SYN, or SYN-ACK.
    pub(crate) const SYN: Self = Self(1);
    /// An acknowledgement now.
    pub(crate) const ACK: Self = Self(1 << 1);
    /// A reset; the state is CLOSED already.
    pub(crate) const RST: Self = Self(1 << 2);
    /// An empty segment below SND.UNA, which the peer must answer.
    pub(crate) const PROBE: Self = Self(1 << 3);
    /// Text held back by Nagle, a cork or silly-window avoidance goes out anyway.
    pub(crate) const PUSH: Self = Self(1 << 4);
    /// A tail loss probe (RFC 8985 §7.3).
    pub(crate) const TAIL: Self = Self(1 << 5);
    /// An acknowledgement that has waited for company.
    pub(crate) const LONE_ACK: Self = Self(1 << 6);
    /// A reset of a segment that is not of this connection, at [`Connection::stray`].
    pub(crate) const STRAY: Self = Self(1 << 7);
    /// Our user time-out, beside whatever is sent next and has room for it.
    pub(crate) const USER_TIMEOUT: Self = Self(1 << 8);

    pub(crate) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Removes `other` and answers whether it was owed.
    pub(crate) const fn settle(&mut self, other: Self) -> bool {
        let owed = self.contains(other);
        self.0 &= !other.0;
        owed
    }
}

/// A TCP connection.
///
/// Dropping it frees everything it holds; nothing is sent by that.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct Connection {
    pub(crate) state: State,
    pub(crate) owed: Owed,
    /// Our SYN was lost at least once.
    pub(crate) syn_lost: bool,
    /// Before the handshake is complete: the acknowledgement number of a segment that must be reset (RFC 9293
    /// §3.10.7.3, first), while [`Owed::STRAY`] says so.
    pub(crate) stray: SeqNumber,
    pub(crate) snd: Sender,
    pub(crate) rcv: Receiver,
    pub(crate) stamps: Timestamps,
    pub(crate) rto: Rto,
    pub(crate) recovery: Recovery,
    pub(crate) congestion: Controller,
    /// While a recovery may turn out not to be needed.
    pub(crate) undo: Option<Box<Undo>>,
    /// Since the path was found, or suspected, to take less than the link does.
    pub(crate) path_search: Option<Box<Search>>,
    /// While either end has urgent data under way.
    pub(crate) urgent: Option<Box<Urgent>>,
    pub(crate) timers: Timers,
    pub(crate) limits: Limits,
    pub(crate) user_timeout: UserTimeout,
    pub(crate) keepalive: Keepalive,
    pub(crate) challenges: Challenges,
    pub(crate) ecn: Notification,
    /// When an acceptable segment last arrived.
    pub(crate) last_heard: Instant,
    pub(crate) account: Account,
    pub(crate) counters: Counters,
}

impl Connection {
    /// Active open (RFC 9293 §3.10.1): the SYN leaves through [`Connection::poll_transmit`]. `iss`
    /// comes from [`crate::IsnSecret::iss`] with the same `now`.
    pub fn connect(config: &Config, iss: SeqNumber, now: Instant) -> Self {
        let mut connection = Self::new(config, iss, SeqNumber::default(), now);
        connection.stamps = Timestamps::new(config.timestamps, timestamp_offset(iss, now));
        connection.recovery.agree(config.sack);
        connection.rcv.scaling = config.window_scaling;
        connection.rcv.shift = config.window_shift();
        connection.owed.add(Owed::SYN);
        connection
    }

    /// The same between addresses and ports whose last connection is in TIME-WAIT: the ISN is no less than `floor`
    /// ([`crate::time_wait::TimeWaitTable::reopen`]).
    pub fn connect_again(config: &Config, iss: SeqNumber, floor: SeqNumber, now: Instant) -> Self {
        let mut connection = Self::connect(config, iss.max(floor), now);
        // What it was of the last one, so that timestamps go on growing.
        connection.stamps.offset = timestamp_offset(iss, now);
        connection
    }

    /// Passive open, completed by a [`crate::listen::SynTable`]. The segment that completed it is
    /// to be handed to [`Connection::on_segment`] next: it may carry text.
    pub fn from_handshake(half: Established, config: &Config, now: Instant) -> Self {
        let mut connection = Self::new(config, half.iss, half.irs, now);
        connection.state = State::Established;
        connection.syn_lost = half.answered_again;
        connection.stamps = Timestamps::new(half.agreed.timestamps, half.stamp_offset);
        connection.stamps.set(now, half.stamp_recent);
        connection.snd.una = half.iss + 1;
        connection.snd.set_window(half.irs, half.iss + 1, half.window);
        if let Some(round_trip) = half.round_trip {
            connection.first_round_trip(now, round_trip);
        } else if let Some(round_trip) = half.echoed {
            connection.sample(round_trip);
        }
        connection.agree(&half.agreed, config.mss);
        connection.establish(now);
        connection
    }

    fn new(config: &Config, iss: SeqNumber, irs: SeqNumber, now: Instant) -> Self {
        let initial = initial_window(config.initial_window, config.mss);
        Self {
            state: State::SynSent,
            owed: Owed::NOTHING,
            syn_lost: false,
            stray: SeqNumber::default(),
            snd: Sender::new(iss, config.mss, config.nodelay, now),
            rcv: Receiver::new(config, irs),
            stamps: Timestamps::new(false, 0),
            rto: Rto::new(config),
            recovery: Recovery::new(iss),
            congestion: Controller::new(config.congestion, initial),
            undo: None,
            path_search: None,
            urgent: None,
            timers: Timers::new(),
            limits: Limits::new(config),
            user_timeout: UserTimeout::new(config),
            keepalive: Keepalive::new(config.keepalive),
            challenges: Challenges::new(),
            ecn: Notification::new(config.ecn, iss),
            last_heard: now,
            account: Account::new(),
            counters: Counters::default(),
        }
    }

    /// Takes over what the SYNs agreed on.
    pub(crate) fn agree(&mut self, agreed: &Agreed, path_mss: u16) {
        self.snd.peer_mss = agreed.peer_mss;
        self.snd.mss = agreed.mss(path_mss);
        self.rcv.scaling = agreed.shifts.is_some();
        (self.snd.shift, self.rcv.shift) = agreed.shifts.unwrap_or((0, 0));
        self.rcv.tuning.cap(u32::from(u16::MAX) << self.rcv.shift);
        self.recovery.agree(agreed.sack);
        self.stamps.on = agreed.timestamps;
        self.ecn.agree(agreed.ecn, self.syn_lost && self.state == State::SynSent);
    }

    /// The handshake is complete.
    pub(crate) fn establish(&mut self, now: Instant) {
        self.state = State::Established;
        self.last_heard = now;
        self.begin_probing(now);
        self.owe_user_timeout();
        let segments = if self.syn_lost { 1 } else { self.limits.initial_window.into() };
        self.congestion.start(initial_window(segments, self.snd.mss));
        if self.syn_lost {
            self.rto.after_lost_syn();
        }
        self.snd.timeouts = 0;
        self.snd.stalled_since = Instant::FAR;
        self.counters.note_repaired(now);
        if self.keepalive.on {
            self.timers.arm(Timer::Keepalive, now + self.keepalive.idle());
        }
    }

    /// The program has closed the connection (RFC 9293 §3.10.4): what it wrote is still sent, then
    /// a FIN; it reads no more. If it leaves octets unread, call [`Connection::abort`] instead (RFC
    /// 2525 §2.17). Then poll for transmission; a connection that is still in SYN-SENT is CLOSED at
    /// once.
    pub fn close(&mut self, now: Instant) {
        self.shutdown_write();
        self.rcv.reader = Reader::Gone;
        if self.state == State::FinWait2 {
            self.timers.arm(Timer::Linger, now + self.limits.fin_wait_2());
        }
    }

    /// The program writes no more: a FIN follows the text in the buffer (half-close).
    pub fn shutdown_write(&mut self) {
        if self.state == State::SynSent {
            self.finish(Progress::NONE);
        } else if self.snd.fin == Fin::Open {
            self.snd.fin = Fin::Wanted;
        }
    }

    /// The program reads no more. What still comes is there for who looks once more, as with Linux; once the program writes
    /// no more either, the connection is reset then (RFC 1122 §4.2.2.13), and the program told so.
    pub fn shutdown_read(&mut self) {
        if self.rcv.reader == Reader::Reading {
            self.rcv.reader = Reader::Shut;
        }
    }

    /// Ends the connection now (RFC 9293 §3.10.5). The state is CLOSED; a reset, if the peer needs
    /// one, leaves through [`Connection::poll_transmit`].
    pub fn abort(&mut self) {
        use State::{CloseWait, Established, FinWait1, FinWait2, SynReceived};
        let reset = matches!(self.state, SynReceived | Established | FinWait1 | FinWait2 | CloseWait);
        self.finish(Progress::NONE);
        if reset {
            self.owed.add(Owed::RST);
        }
    }

    /// The connection is over; nothing more is owed or waited for.
    pub(crate) fn finish(&mut self, why: Progress) -> Progress {
        self.state = State::Closed;
        self.owed = Owed::NOTHING;
        self.timers.cancel_all();
        self.rcv.reassembly = None;
        self.rcv.duplicate_acks = 0;
        self.recovery.end(self.snd.nxt);
        self.undo = None;
        self.path_search = None;
        self.urgent = None;
        why | Progress::CLOSED
    }

    /// The program has read from the receive buffer. Answers whether that opened the window so far
    /// that the peer should be told: then poll for transmission.
    pub fn on_read<R: RecvBuffer + ?Sized>(&mut self, now: Instant, rx: &R) -> bool {
        if !self.state.receives_text() {
            return false;
        }
        self.tune_window(now, rx);
        let due = self.rcv.update_is_due(rx.room(), rx.capacity(), self.snd.mss);
        if due {
            self.owed.add(Owed::ACK);
        }
        due
    }

    /// Whether small segments leave at once (TCP_NODELAY). Poll for transmission after.
    // RFC 9293 MUST-17.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.snd.nodelay = nodelay;
    }

    /// Whether only full segments leave. Poll for transmission after.
    pub fn set_cork(&mut self, cork: Cork) {
        self.snd.cork = cork;
    }

    /// Probing of an idle connection (SO_KEEPALIVE and the TCP_KEEP… options). What goes on goes on where it is.
    // RFC 9293 MUST-24.
    pub fn set_keepalive(&mut self, now: Instant, config: Option<KeepaliveConfig>) {
        let before = core::mem::replace(&mut self.keepalive, Keepalive::new(config));
        if !self.keepalive.on || !self.state.is_synchronized() {
            self.timers.cancel(Timer::Keepalive);
        } else if !before.on {
            self.timers.arm(Timer::Keepalive, now + self.keepalive.idle());
        } else {
            self.keepalive.sent = before.sent;
            if self.keepalive.idle() != before.idle() {
                self.timers.arm(Timer::Keepalive, now.max(self.last_heard + self.keepalive.idle()));
            }
        }
    }

    /// TCP_CONGESTION: another algorithm, which goes on with the window that there is.
    pub fn set_congestion(&mut self, algorithm: Algorithm) {
        if self.congestion.algorithm() != algorithm {
            self.congestion.change(algorithm);
            // What it would go back to is the other one.
            self.undo = None;
        }
    }

    /// TCP_SYNCNT: how often our SYN is sent again before the open fails.
    pub fn set_syn_retries(&mut self, retries: u8) {
        self.limits.syn_retries = retries;
    }

    /// TCP_LINGER2: how long this end, once closed, waits in FIN-WAIT-2 for the peer's FIN.
    pub fn set_fin_wait_2(&mut self, time: Duration) {
        self.limits.set_fin_wait_2(time);
    }

    /// TCP_QUICKACK: whether text is acknowledged at once. An acknowledgement that waits goes out.
    /// Poll for transmission after.
    pub fn set_quickack(&mut self, quickack: bool) {
        self.rcv.quickack = quickack;
        if quickack && self.rcv.unacked > 0 {
            self.owed.add(Owed::ACK);
        }
    }

    /// SO_MAX_PACING_RATE: text leaves no faster than this many octets per second, whatever
    /// congestion control allows; `None` for no limit.
    pub fn set_max_pacing_rate(&mut self, rate: Option<u64>) {
        let before = self.limits.max_pacing_rate();
        self.limits.set_max_pacing_rate(rate);
        if self.limits.max_pacing_rate() != before {
            // The pause that is on is as long as the rate before wanted it.
            self.timers.cancel(Timer::Pacing);
        }
    }

    /// Whether `seq`, quoted by an ICMP message, is outstanding; others are forged or too late (RFC
    /// 5927 §4.1).
    pub fn is_outstanding(&self, seq: SeqNumber) -> bool {
        self.snd.una.at_or_before(seq) && seq.before(self.snd.nxt)
    }

    /// Octets of text that were sent and are not acknowledged.
    pub fn octets_outstanding(&self) -> u32 {
        if self.state.is_synchronized() { self.snd.text_end().since(self.snd.una) } else { 0 }
    }

    /// The state (RFC 9293 §3.3.2).
    pub fn state(&self) -> State {
        self.state
    }

    /// The window limit that the program's reading calls for, in octets: a receive buffer smaller
    /// than this slows the peer down.
    pub fn wanted_window(&self) -> u32 {
        self.rcv.tuning.limit()
    }

    /// Bytes of memory the connection holds: itself, text out of order, the scoreboard.
    pub fn memory(&self) -> usize {
        let undo = self.undo.as_ref().map_or(0, |_| size_of::<Undo>());
        let search = self.path_search.as_ref().map_or(0, |_| size_of::<Search>());
        let urgent = self.urgent.as_ref().map_or(0, |_| size_of::<Urgent>());
        size_of::<Self>()
            + undo
            + search
            + urgent
            + self.rcv.memory()
            + self.recovery.memory()
            + self.congestion.memory()
            + self.counters.memory()
    }

    /// Whether text of this segment may have to be kept until what is missing before it has come.
    pub fn may_keep(&self, seg: &Segment) -> bool {
        !seg.payload.is_empty() && seg.seq.after(self.rcv.nxt)
    }

    /// What is left to remember in TIME-WAIT; `None` in other states. Poll for transmission first.
    pub fn time_wait(&self) -> Option<TimeWait> {
        (self.state == State::TimeWait).then(|| TimeWait::new(self))
    }

    /// What is outstanding, and how much text makes a full segment (SMSS): the options of every
    /// segment count against the MSS (RFC 9293 §3.7.1).
    pub(crate) fn outstanding(&self) -> Outstanding {
        let stamp = if self.stamps.on { Options::TIMESTAMP_BYTES as u32 } else { 0 };
        let mss = u32::from(self.snd.mss).saturating_sub(stamp).max(8);
        Outstanding { una: self.snd.una, nxt: self.snd.nxt, mss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Idle connections are many: what few of them ever need has a place of its own.
    #[test]
    fn a_connection_is_small_and_holds_nothing_while_it_is_idle() {
        let idle = Connection::connect(&Config::default(), SeqNumber::default(), Instant::ZERO);
        assert!(size_of::<Connection>() <= 608, "{}", size_of::<Connection>());
        assert_eq!(idle.memory(), size_of::<Connection>());
    }
}
