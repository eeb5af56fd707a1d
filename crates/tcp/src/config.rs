//! What is chosen before a connection exists. A configuration is a plain value with good defaults;
//! what a connection needs of it while it runs is copied in compact form, so that a thousand
//! connections do not share or carry this struct.

use core::time::Duration;

use crate::congestion::Algorithm;
use crate::ecn::Ecn;
use crate::search::MtuProbing;

/// Parameters of connections and listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Largest segment our end of the path takes, in octets of text and options: the MTU less 40
    /// for IPv4. Offered in the SYN (RFC 9293 §3.7.1).
    pub mss: u16,
    /// When to find out by probing what the path takes (RFC 4821, RFC 8899).
    pub mtu_probing: MtuProbing,
    /// Octets of window offered at first. The receive buffer must have room for them: a SYN
    /// promises them before there is a buffer.
    pub receive_window: u32,
    /// Octets of window offered at most, when the program reads fast enough to need them.
    pub receive_window_max: u32,
    /// Whether to offer window scaling (RFC 7323 §2).
    pub window_scaling: bool,
    /// Whether to offer timestamps (RFC 7323 §3).
    pub timestamps: bool,
    /// Whether to offer selective acknowledgement (RFC 2018).
    pub sack: bool,
    /// When to use explicit congestion notification (RFC 3168).
    pub ecn: Ecn,
    /// Whether small segments are sent at once (TCP_NODELAY), without Nagle's algorithm.
    pub nodelay: bool,
    /// The congestion control algorithm.
    pub congestion: Algorithm,
    /// The initial congestion window in segments (RFC 6928: 10).
    pub initial_window: u16,
    /// Retransmission time-out before the first measurement (RFC 6298 §2.1: 1 s).
    pub initial_rto: Duration,
    /// The least that is waited for an acknowledgement beyond the smoothed round trip. RFC 6298 §2.4 asks for 1 s in all; 200 ms is what
    /// is deployed.
    pub min_rto: Duration,
    /// Largest retransmission time-out (RFC 6298 §2.5: at least 60 s).
    pub max_rto: Duration,
    /// How long an acknowledgement may wait for company (RFC 9293 §3.8.6.3: below 500 ms).
    pub delayed_ack: Duration,
    /// SYNs sent again before an open fails.
    pub syn_retries: u8,
    /// SYN-ACKs sent again before a half-open connection is forgotten.
    pub syn_ack_retries: u8,
    /// For listeners: whether SYNs that find the table of half-open connections full are answered
    /// with cookies (RFC 4987 §3.6) instead of being dropped.
    pub syn_cookies: bool,
    /// Retransmissions of one segment before the connection fails (R2 of RFC 9293 §3.8.3).
    pub retries: u8,
    /// The same once the program has closed and only the kernel of the matter is left.
    pub orphan_retries: u8,
    /// Time without any acknowledgement of sent text before the connection fails, however often it is
    /// sent again (RFC 5482).
    pub user_timeout: Option<Duration>,
    /// U_LIMIT of RFC 5482 §3.1: the longest time-out that a peer's User Timeout Option may lead to, in
    /// seconds up to 18 hours; `None`: that option is neither sent nor heard.
    pub user_timeout_option: Option<Duration>,
    /// Probing of idle connections (RFC 9293 §3.8.4: off unless asked for).
    pub keepalive: Option<KeepaliveConfig>,
    /// How long a closed connection waits in FIN-WAIT-2 for the peer's FIN.
    pub fin_wait_2: Duration,
    /// Length of TIME-WAIT, twice the maximum segment lifetime (RFC 9293 §3.4.2).
    pub time_wait: Duration,
    /// For listeners: how long a connection waits for its first text before it is handed over
    /// without (TCP_DEFER_ACCEPT).
    pub defer_accept: Option<Duration>,
}

/// When and how often an idle connection is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// RFC 9293 MUST-27.
pub struct KeepaliveConfig {
    /// Silence before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes before the connection fails.
    pub probes: u8,
}

impl Default for KeepaliveConfig {
    // RFC 9293 MUST-28.
    fn default() -> Self {
        Self { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

impl Default for Config {
    // RFC 9293 MUST-25, SHLD-11.
    fn default() -> Self {
        Self {
            mss: 1460,
            mtu_probing: MtuProbing::BlackHoles,
            receive_window: 64 << 10,
            receive_window_max: 4 << 20,
            window_scaling: true,
            timestamps: true,
            sack: true,
            ecn: Ecn::Accept,
            nodelay: false,
            congestion: Algorithm::Cubic,
            initial_window: 10,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(120),
            delayed_ack: Duration::from_millis(40),
            syn_retries: 6,
            syn_ack_retries: 5,
            syn_cookies: true,
            retries: 15,
            orphan_retries: 8,
            user_timeout: None,
            user_timeout_option: None,
            keepalive: None,
            fin_wait_2: Duration::from_secs(60),
            time_wait: Duration::from_secs(60),
            defer_accept: None,
        }
    }
}

impl Config {
    /// The shift with which the largest window fits the window field, at most 14 (RFC 7323 §2.3).
    pub fn window_shift(&self) -> u8 {
        let fits = |shift: &u8| self.receive_window_max >> shift <= u32::from(u16::MAX);
        (0..14).find(fits).unwrap_or(14)
    }
}

/// What a running connection keeps of its configuration, in milliseconds where it is a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) initial_window: u8,
    pub(crate) syn_retries: u8,
    pub(crate) retries: u8,
    pub(crate) orphan_retries: u8,
    pub(crate) mtu_probing: MtuProbing,
    delayed_ack_ms: u16,
    fin_wait_2_ms: u32,
    time_wait_ms: u32,
    /// In thousands of octets per second; zero for none.
    max_pacing_rate: u32,
}

impl Limits {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            initial_window: config.initial_window.clamp(1, 100) as u8,
            syn_retries: config.syn_retries,
            retries: config.retries,
            orphan_retries: config.orphan_retries,
            mtu_probing: config.mtu_probing,
            delayed_ack_ms: u16::try_from(config.delayed_ack.as_millis()).unwrap_or(u16::MAX),
            fin_wait_2_ms: millis(config.fin_wait_2),
            time_wait_ms: millis(config.time_wait),
            max_pacing_rate: 0,
        }
    }

    pub(crate) const fn delayed_ack(&self) -> Duration {
        Duration::from_millis(self.delayed_ack_ms as u64)
    }

    pub(crate) const fn fin_wait_2(&self) -> Duration {
        Duration::from_millis(self.fin_wait_2_ms as u64)
    }

    pub(crate) fn set_fin_wait_2(&mut self, time: Duration) {
        self.fin_wait_2_ms = millis(time);
    }

    pub(crate) const fn time_wait(&self) -> Duration {
        Duration::from_millis(self.time_wait_ms as u64)
    }

    /// Octets per second.
    pub(crate) fn max_pacing_rate(&self) -> Option<u64> {
        (self.max_pacing_rate > 0).then(|| u64::from(self.max_pacing_rate) * 1_000)
    }

    pub(crate) fn set_max_pacing_rate(&mut self, rate: Option<u64>) {
        let thousands = |rate: u64| u32::try_from(rate.div_ceil(1_000)).unwrap_or(u32::MAX).max(1);
        self.max_pacing_rate = rate.map_or(0, thousands);
    }
}

pub(crate) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shift_is_the_smallest_that_fits() {
        let shift = |receive_window_max| Config { receive_window_max, ..Config::default() }.window_shift();
        assert_eq!([shift(65_535), shift(65_536), shift(4 << 20), shift(u32::MAX)], [0, 1, 7, 14]);
    }
}
