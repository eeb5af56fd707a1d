//! What a connection tells about itself: for `TCP_INFO`, for `silk paths`, and for tests. Reading
//! it changes nothing.

use alloc::boxed::Box;
use core::time::Duration;

use silk_instant::Instant;

use crate::account::{Stopwatch, Waits};
use crate::congestion::{Algorithm, Congestion, Model};
use crate::connection::Connection;
use crate::options::Options;
use crate::recovery::Phase;
use crate::state::State;

/// Running totals of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) octets_acked: u64,
    pub(crate) octets_received: u64,
    pub(crate) segments_in: u32,
    pub(crate) segments_out: u32,
    pub(crate) text_in: u32,
    pub(crate) text_out: u32,
    /// Of what has gone wrong; none yet.
    mishaps: Option<Box<Mishaps>>,
}

/// Totals of what goes wrong on the way, or holds text back. Most connections end without any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mishaps {
    pub(crate) octets_again: u64,
    pub(crate) segments_again: u32,
    pub(crate) out_of_order: u32,
    pub(crate) received_twice: u32,
    pub(crate) fast_recoveries: u32,
    pub(crate) timeouts: u32,
    pub(crate) undone: u32,
    /// Octets delivered, by acknowledgements that echoed a mark of congestion.
    pub(crate) octets_marked: u64,
    /// Series of time-outs of the retransmission timer without progress in between.
    pub(crate) timeout_series: u32,
    /// Whether what the last of them lost is still being repaired.
    pub(crate) timed_out: bool,
    /// Runs while it is.
    pub(crate) repaired_timeouts: Stopwatch,
    /// Runs while the peer's window holds text back.
    pub(crate) waited_for_peer: Stopwatch,
    /// Runs while a program waits for room in the send buffer, and nothing else is waited for.
    pub(crate) waited_for_room: Stopwatch,
}

impl Counters {
    /// What has gone wrong, to count more.
    pub(crate) fn mishaps(&mut self) -> &mut Mishaps {
        self.mishaps.get_or_insert_default()
    }

    /// How long text was held back by the peer, and by the send buffer.
    pub(crate) fn held_back(&self) -> [Stopwatch; 2] {
        let known = self.mishaps.as_ref();
        known.map(|known| [known.waited_for_peer, known.waited_for_room]).unwrap_or_default()
    }

    /// The retransmission timer went off; `first` when there was progress since it last did.
    pub(crate) fn note_timeout(&mut self, now: Instant, first: bool) {
        let mishaps = self.mishaps();
        mishaps.timeouts = mishaps.timeouts.wrapping_add(1);
        mishaps.timeout_series = mishaps.timeout_series.wrapping_add(first.into());
        if !core::mem::replace(&mut mishaps.timed_out, true) {
            mishaps.repaired_timeouts.press(now);
        }
    }

    /// Nothing that was lost with a time-out is still to be repaired.
    pub(crate) fn note_repaired(&mut self, now: Instant) {
        if let Some(mishaps) = self.mishaps.as_mut().filter(|mishaps| mishaps.timed_out) {
            mishaps.timed_out = false;
            mishaps.repaired_timeouts.press(now);
        }
    }

    /// Bytes of memory held outside of the connection itself.
    pub(crate) fn memory(&self) -> usize {
        self.mishaps.as_ref().map_or(0, |_| size_of::<Mishaps>())
    }
}

/// What is done about losses at one moment; the numbers are those of Linux's `TCP_INFO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Nothing is out of the ordinary.
    Open = 0,
    /// Something arrived out of order, which need not be a loss.
    Disorder = 1,
    /// Fast recovery.
    Recovery = 3,
    /// The retransmission timer has gone off.
    Loss = 4,
}

/// A connection at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Its state.
    pub state: State,
    /// What is done about losses.
    pub repair: Repair,
    /// Smoothed round-trip time; zero before the first measurement.
    pub srtt: Duration,
    /// Its variation.
    pub rttvar: Duration,
    /// The least round-trip time of the last minutes; zero before the first measurement.
    pub min_rtt: Duration,
    /// The retransmission time-out now, back-off included.
    pub rto: Duration,
    /// Doublings of the time-out.
    pub doublings: u8,
    /// Consecutive time-outs without progress.
    pub backoff: u8,
    /// Probes, of a closed window or of an idle peer, since the peer was last heard.
    pub probes: u8,
    /// How long an acknowledgement may wait.
    pub delayed_ack: Duration,
    /// Which algorithm sets the congestion window.
    pub algorithm: Algorithm,
    /// What that believes of the path, if it has a model of it.
    pub model: Option<Model>,
    /// Congestion window in octets.
    pub cwnd: u32,
    /// Slow-start threshold in octets; `u32::MAX` before the first loss.
    pub ssthresh: u32,
    /// Octets of text in a full segment.
    pub mss: u16,
    /// The same of the segments the peer may send.
    pub our_mss: u16,
    /// Octets of text in the peer's largest segment so far.
    pub largest_received: u16,
    /// The largest segment that the path takes, options included.
    pub path_mss: u16,
    /// The peer's window in octets.
    pub snd_wnd: u32,
    /// Our window as last advertised, in octets.
    pub rcv_wnd: u32,
    /// The most window to be advertised now, in octets.
    pub window_limit: u32,
    /// Octets outstanding.
    pub in_flight: u32,
    /// Octets of those that the peer holds out of order.
    pub sacked: u32,
    /// Octets of those that are lost and not yet sent again.
    pub lost: u32,
    /// Octets of those that were sent again and are on their way.
    pub again: u32,
    /// Octets of text that were sent once at least.
    pub octets_sent: u64,
    /// Octets of text sent again.
    pub octets_again: u64,
    /// Octets of text acknowledged by the peer.
    pub octets_acked: u64,
    /// Octets of text received in order.
    pub octets_received: u64,
    /// Segments received.
    pub segments_in: u32,
    /// Segments sent, each segment of a large one counted.
    pub segments_out: u32,
    /// Segments sent again.
    pub segments_again: u32,
    /// Segments with text received.
    pub text_in: u32,
    /// Segments with text sent.
    pub text_out: u32,
    /// Segments that arrived ahead of their turn.
    pub out_of_order: u32,
    /// Segments of ours that the peer had received before (D-SACK, RFC 2883).
    pub received_twice: u32,
    /// Times that the network was seen to reorder (RFC 8985 §6.2, step 3).
    pub reordered: u32,
    /// Times fast retransmit began.
    pub fast_recoveries: u32,
    /// Times the retransmission timer went off, for a SYN or for text.
    pub timeouts: u32,
    /// Series of those without progress in between.
    pub timeout_series: u32,
    /// Time from the first of each series until what was lost then had been repaired; what is under way is not counted
    /// before that is over.
    pub timeout_time: Duration,
    /// Octets delivered, by acknowledgements that echoed a mark of congestion (RFC 3168).
    pub octets_marked: u64,
    /// Recoveries that were not needed and were undone (RFC 3522).
    pub undone: u32,
    /// Octets per second at which text leaves; `None` for as fast as the windows allow.
    pub pacing_rate: Option<u64>,
    /// SO_MAX_PACING_RATE.
    pub max_pacing_rate: Option<u64>,
    /// Octets per second that the path delivered when that was last measured.
    pub delivery_rate: Option<u64>,
    /// Whether it was the program that sent no faster.
    pub app_limited: bool,
    /// What sending has waited for, and how long.
    pub waits: Waits,
    /// When text, or the SYN, was last sent.
    pub last_sent: Instant,
    /// When text last arrived; `None` for never.
    pub last_text: Option<Instant>,
    /// When an acceptable segment last arrived.
    pub last_heard: Instant,
    /// Whether timestamps are in use.
    pub timestamps: bool,
    /// Whether selective acknowledgement is in use.
    pub sack: bool,
    /// Whether explicit congestion notification is in use.
    pub ecn: bool,
    /// Window scale shifts: the peer's and ours.
    pub window_shifts: (u8, u8),
}

impl Connection {
    /// What there is to know about the connection now.
    pub fn info(&self) -> Info {
        let out = self.outstanding();
        let options = if self.stamps.on { Options::TIMESTAMP_BYTES as u16 } else { 0 };
        let text_out = self.snd.text_end().since(self.snd.una);
        let (delivery_rate, app_limited) = self.account.delivery_rate();
        // Destructured so that a new counter cannot be forgotten here.
        let Counters {
            octets_acked,
            octets_received,
            segments_in,
            segments_out,
            text_in,
            text_out: text_segments_out,
            ref mishaps,
        } = self.counters;
        let Mishaps {
            octets_again,
            segments_again,
            out_of_order,
            received_twice,
            fast_recoveries,
            timeouts,
            undone,
            octets_marked,
            timeout_series,
            timed_out,
            repaired_timeouts,
            waited_for_peer: _,
            waited_for_room: _,
        } = mishaps.as_deref().copied().unwrap_or_default();
        Info {
            state: self.state,
            repair: self.repair(),
            srtt: self.rto.srtt(),
            rttvar: self.rto.rttvar(),
            min_rtt: self.recovery.rack.min_rtt(),
            rto: self.rto.current(),
            doublings: self.rto.doublings(),
            backoff: self.snd.timeouts,
            probes: self.snd.unanswered.max(self.keepalive.sent),
            delayed_ack: self.limits.delayed_ack(),
            algorithm: self.congestion.algorithm(),
            model: self.congestion.model(),
            cwnd: self.congestion.window(),
            ssthresh: self.congestion.ssthresh(),
            mss: u16::try_from(out.mss).unwrap_or(u16::MAX),
            our_mss: self.rcv.offered_mss.saturating_sub(options),
            largest_received: self.rcv.largest,
            path_mss: self.snd.path_mss,
            snd_wnd: self.snd.wnd,
            rcv_wnd: self.rcv.window(),
            window_limit: self.rcv.tuning.limit(),
            in_flight: out.octets(),
            sacked: self.recovery.held(out),
            lost: self.recovery.flight.lost(),
            again: self.recovery.flight.again(out.una),
            octets_sent: octets_acked + u64::from(text_out),
            octets_again,
            octets_acked,
            octets_received,
            segments_in,
            segments_out,
            segments_again,
            text_in,
            text_out: text_segments_out,
            out_of_order,
            received_twice,
            reordered: self.recovery.rack.reordered(),
            fast_recoveries,
            timeouts,
            timeout_series,
            timeout_time: if timed_out {
                Duration::ZERO
            } else {
                repaired_timeouts.time(Instant::ZERO, false)
            },
            octets_marked,
            undone,
            pacing_rate: self.pacing_rate(),
            max_pacing_rate: self.limits.max_pacing_rate(),
            delivery_rate,
            app_limited,
            waits: self.waits(),
            last_sent: self.snd.last_sent,
            last_text: Some(self.rcv.last_text).filter(|at| *at != Instant::FAR),
            last_heard: self.last_heard,
            timestamps: self.stamps.on,
            sack: self.recovery.sack(),
            ecn: self.ecn.is_on(),
            window_shifts: (self.snd.shift, self.rcv.shift),
        }
    }

    fn repair(&self) -> Repair {
        match self.recovery.phase() {
            Phase::Fast => Repair::Recovery,
            Phase::Loss => Repair::Loss,
            Phase::Open if self.recovery.held(self.outstanding()) > 0 => Repair::Disorder,
            Phase::Open => Repair::Open,
        }
    }
}
