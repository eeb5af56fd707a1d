//! What a connection tells about itself: for `TCP_INFO`, for `silk paths`, and for tests. Reading
//! it changes nothing.

use core::time::Duration;

use crate::congestion::Congestion;
use crate::connection::Connection;
use crate::state::State;

/// Running totals of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) octets_acked: u64,
    pub(crate) octets_received: u64,
    pub(crate) segments_in: u32,
    pub(crate) segments_out: u32,
    pub(crate) segments_again: u32,
    pub(crate) fast_recoveries: u32,
    pub(crate) timeouts: u32,
}

/// A connection at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Its state.
    pub state: State,
    /// Smoothed round-trip time; zero before the first measurement.
    pub srtt: Duration,
    /// Its variation.
    pub rttvar: Duration,
    /// The retransmission time-out now, back-off included.
    pub rto: Duration,
    /// Consecutive time-outs without progress.
    pub backoff: u8,
    /// Congestion window in octets.
    pub cwnd: u32,
    /// Slow-start threshold in octets; `u32::MAX` before the first loss.
    pub ssthresh: u32,
    /// Octets of text in a full segment.
    pub mss: u16,
    /// The peer's window in octets.
    pub snd_wnd: u32,
    /// Our window as last advertised, in octets.
    pub rcv_wnd: u32,
    /// Octets outstanding.
    pub in_flight: u32,
    /// Octets of those that the peer holds out of order.
    pub sacked: u32,
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
    /// Times fast retransmit began.
    pub fast_recoveries: u32,
    /// Times the retransmission timer went off.
    pub timeouts: u32,
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
        // Destructured so that a new counter cannot be forgotten here.
        let Counters {
            octets_acked,
            octets_received,
            segments_in,
            segments_out,
            segments_again,
            fast_recoveries,
            timeouts,
        } = self.counters;
        Info {
            state: self.state,
            srtt: self.rto.srtt(),
            rttvar: self.rto.rttvar(),
            rto: self.rto.current(),
            backoff: self.snd.timeouts,
            cwnd: self.congestion.window(),
            ssthresh: self.congestion.ssthresh(),
            mss: u16::try_from(out.mss).unwrap_or(u16::MAX),
            snd_wnd: self.snd.wnd,
            rcv_wnd: self.rcv.window(),
            in_flight: out.octets(),
            sacked: self.recovery.held(out),
            octets_acked,
            octets_received,
            segments_in,
            segments_out,
            segments_again,
            fast_recoveries,
            timeouts,
            timestamps: self.stamps.on,
            sack: self.sack,
            ecn: self.ecn.on,
            window_shifts: (self.snd.shift, self.rcv.shift),
        }
    }
}
