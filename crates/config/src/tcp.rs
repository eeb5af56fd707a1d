//! `[tcp]`: what connections begin with. The names and defaults are those of the TCP core;
//! programs change some of them for themselves with `setsockopt`.

use crate::read::{Section, words};
use std::time::Duration;

words! {
    /// The congestion control algorithm.
    pub enum Congestion {
        /// RFC 9438.
        Cubic = "cubic",
        /// RFC 5681 with NewReno (RFC 6582).
        Reno = "reno",
        /// draft-ietf-ccwg-bbr.
        Bbr = "bbr",
    }
}

words! {
    /// When connections use explicit congestion notification (RFC 3168).
    pub enum Ecn {
        /// Never.
        Off = "off",
        /// When the peer asks for it.
        Accept = "accept",
        /// silk asks for it, too.
        Ask = "ask",
    }
}

words! {
    /// When the path MTU is searched by probing (RFC 4821, RFC 8899).
    pub enum MtuProbing {
        /// Never.
        Off = "off",
        /// When large segments vanish.
        BlackHoles = "black-holes",
        /// On every connection, from small segments on.
        Always = "always",
    }
}

/// `[tcp]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// The congestion control algorithm.
    pub congestion: Congestion,
    /// Offer window scaling (RFC 7323 §2).
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323 §3).
    pub timestamps: bool,
    /// Offer selective acknowledgement (RFC 2018).
    pub sack: bool,
    /// When to use explicit congestion notification (RFC 3168).
    pub ecn: Ecn,
    /// When the path MTU is searched by probing (RFC 4821, RFC 8899).
    pub mtu_probing: MtuProbing,
    /// The initial congestion window in segments (RFC 6928).
    pub initial_window: u16,
    /// Connections to one peer share what they find out of the way there (RFC 9040).
    pub share_windows: bool,
    /// The least that is waited for an acknowledgement beyond the smoothed round trip (RFC 6298 §2.4).
    pub min_rto: Duration,
    /// How long an acknowledgement may wait for company (RFC 9293 §3.8.6.3).
    pub delayed_ack: Duration,
    /// SYNs sent again before `connect` fails.
    pub syn_retries: u8,
    /// SYN-ACKs sent again before a half-open connection is forgotten.
    pub syn_ack_retries: u8,
    /// Answer SYNs with cookies when a listener's table is full (RFC 4987 §3.6).
    pub syn_cookies: bool,
    /// Retransmissions of one segment before a connection fails (RFC 9293 §3.8.3).
    pub retries: u8,
    /// The longest time-out that a peer's User Timeout Option may lead to (RFC 5482); zero: that option
    /// is neither sent nor heard.
    pub user_timeout_option: Duration,
    /// How long a connection that this side closed waits for the peer to close too.
    pub fin_wait: Duration,
    /// The length of TIME-WAIT (RFC 9293 §3.4.2).
    pub time_wait: Duration,
    /// The most connections in TIME-WAIT; beyond it the oldest are forgotten.
    pub time_wait_max: u32,
    /// Keep-alive for programs that ask for it with `SO_KEEPALIVE`.
    pub keepalive: Keepalive,
}

/// `[tcp.keepalive]` (RFC 9293 §3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes before the connection fails.
    pub probes: u8,
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Tcp {
    pub(crate) fn read(mut section: Section<'_, '_>) -> Self {
        let tcp = Self {
            congestion: section.or("congestion", Congestion::Cubic),
            window_scaling: section.or("window_scaling", true),
            timestamps: section.or("timestamps", true),
            sack: section.or("sack", true),
            ecn: section.or("ecn", Ecn::Accept),
            mtu_probing: section.or("mtu_probing", MtuProbing::BlackHoles),
            initial_window: section.within("initial_window", 10, 1..=100),
            share_windows: section.or("share_windows", true),
            min_rto: section.within("min_rto", millis(200), millis(1)..=seconds(1)),
            delayed_ack: section.within("delayed_ack", millis(40), millis(0)..=millis(500)),
            syn_retries: section.within("syn_retries", 6, 0..=20),
            syn_ack_retries: section.within("syn_ack_retries", 5, 0..=20),
            syn_cookies: section.or("syn_cookies", true),
            retries: section.within("retries", 15, 1..=30),
            user_timeout_option: section.within(
                "user_timeout_option",
                seconds(0),
                seconds(0)..=seconds(18 * 3600),
            ),
            fin_wait: section.within("fin_wait", seconds(60), seconds(1)..=seconds(3600)),
            time_wait: section.within("time_wait", seconds(60), millis(1)..=seconds(240)),
            time_wait_max: section.within("time_wait_max", 32768, 0..=1 << 20),
            keepalive: Keepalive::read(section.table("keepalive", "[tcp.keepalive]")),
        };
        section.finish();
        tcp
    }
}

impl Keepalive {
    fn read(mut section: Section<'_, '_>) -> Self {
        let keepalive = Self {
            idle: section.within("idle", seconds(7200), seconds(1)..=seconds(86400 * 7)),
            interval: section.within("interval", seconds(75), seconds(1)..=seconds(3600)),
            probes: section.within("probes", 9, 1..=127),
        };
        section.finish();
        keepalive
    }
}
