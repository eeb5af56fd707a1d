//! Congestion control behind one trait (RFC 5681 §3). A controller owns the congestion window and
//! the slow-start threshold and nothing else: which segments were lost, and what is sent when, is
//! decided by `recovery` and `transmit`.

use core::time::Duration;

use silk_instant::Instant;

use crate::seq::SeqNumber;

/// Which algorithm a connection uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// Reno (RFC 5681).
    Reno,
    /// BBR (draft-ietf-ccwg-bbr), paced.
    Bbr,
}

impl Algorithm {
    /// All of them; the place in this list is an algorithm's number.
    pub const ALL: [Self; 3] = [Self::Cubic, Self::Reno, Self::Bbr];

    /// Its name as programs know it (`TCP_CONGESTION`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::Bbr => "bbr",
        }
    }

    /// The algorithm of that number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// An acknowledgement of new data outside of loss recovery, as a controller sees it.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When it came.
    pub now: Instant,
    /// Octets newly acknowledged.
    pub bytes: u32,
    /// Octets in a full segment.
    pub mss: u32,
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// The round-trip time of the last octet acknowledged, if that was sent once.
    pub rtt: Option<Duration>,
    /// SND.UNA after it.
    pub una: SeqNumber,
    /// SND.NXT.
    pub nxt: SeqNumber,
    /// Whether the window, and not the program or the peer, limited the sender (RFC 9438 §5.8, RFC
    /// 7661).
    pub limited: bool,
}

/// What an acknowledgement says of the path, in recovery or not.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// When it came.
    pub now: Instant,
    /// Octets that have arrived, in order or not.
    pub delivered: u32,
    /// Octets that are seen to be lost.
    pub lost: u32,
    /// When the youngest text that has arrived was sent, and its round-trip time.
    pub sent_at: Instant,
    /// That round-trip time.
    pub rtt: Duration,
    /// Octets in the network after it.
    pub pipe: u32,
    /// Octets in a full segment.
    pub mss: u32,
    /// A number that differs between connections.
    pub seed: u32,
}

/// What an algorithm with a model of the path believes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Octets per second; 0 before the first measurement.
    pub bandwidth: u64,
    /// The round-trip time without queues; zero before the first measurement.
    pub min_rtt: Duration,
    /// At how many hundredths of the bandwidth it sends now.
    pub pacing_gain: u16,
    /// How many hundredths of what the path holds may be in the network.
    pub window_gain: u16,
}

/// The algorithm that sets the congestion window, in octets.
pub trait Congestion {
    /// The congestion window (cwnd).
    fn window(&self) -> u32;
    /// The slow-start threshold (ssthresh).
    fn ssthresh(&self) -> u32;
    /// New data was acknowledged.
    fn on_ack(&mut self, acked: &Acked);
    /// Fast retransmit starts: `flight` octets were outstanding. Called once per loss episode.
    fn on_loss(&mut self, flight: u32, mss: u32);
    /// A mark was echoed (RFC 3168 §6.1.2), with `flight` octets outstanding. Once in a round trip.
    fn on_mark(&mut self, flight: u32, mss: u32) {
        self.on_loss(flight, mss);
    }
    /// The retransmission timer went off. `first` when the segment had not timed out before (RFC
    /// 5681 §3.1: ssthresh is held during back-off).
    fn on_timeout(&mut self, flight: u32, mss: u32, first: bool);
    /// Sending starts again after an idle time longer than the time-out: the window falls to the
    /// initial one (RFC 5681 §4.1).
    fn on_idle(&mut self, initial: u32);

    /// Whether the algorithm has a model of the path, and so a mind of its own about losses: it is
    /// told of every delivery, and its window alone says what is sent during recovery.
    fn models_the_path(&self) -> bool {
        false
    }
    /// What it believes of the path.
    fn model(&self) -> Option<Model> {
        None
    }
    /// Octets per second at which to send; `None` for as fast as the window allows.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
    /// `octets` are sent, again or for the first time, with `pipe` others in the network.
    fn on_sent(&mut self, _now: Instant, _pipe: u32, _octets: u32) {}
    /// Neither window holds anything back, but there is nothing to send.
    fn on_app_limited(&mut self, _pipe: u32) {}
    /// An acknowledgement delivered something or showed that it was lost.
    fn on_delivery(&mut self, _delivery: &Delivery) {}

    /// A timer, and no acknowledgement, showed that so many octets are lost.
    fn on_lost_by_timer(&mut self, _octets: u32) {}

    /// What was lost with a time-out is repaired.
    fn on_recovered(&mut self) {}
    /// The time-out, or what was taken for a loss, was a mistake.
    fn on_spurious(&mut self) {}

    /// Whether the window is in slow start.
    fn in_slow_start(&self) -> bool {
        self.window() < self.ssthresh()
    }
}

/// No window grows beyond what sequence arithmetic can hold.
pub(crate) const MAX_WINDOW: u32 = 1 << 30;

/// An acknowledgement for tests, at time zero and without a measured round trip.
#[cfg(test)]
pub(crate) fn acked(bytes: u32, mss: u32) -> Acked {
    let (now, srtt, nothing) = (Instant::ZERO, Duration::ZERO, SeqNumber::new(0));
    Acked { now, bytes, mss, srtt, rtt: None, una: nothing, nxt: nothing, limited: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_is_found_by_its_number() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_number(algorithm.number()), Some(algorithm));
        }
        assert_eq!(Algorithm::from_number(3), None);
        assert_eq!(Algorithm::ALL.map(Algorithm::name), ["cubic", "reno", "bbr"]);
    }
}
