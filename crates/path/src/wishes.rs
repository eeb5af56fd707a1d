//! What a program wishes of one path beyond the usual, as it goes down in one bell: every stage
//! takes what concerns it. Each is what `setsockopt` was given, or nothing: then the path does as
//! it was configured.

/// A packet that is larger than the path takes (`IP_MTU_DISCOVER`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discovery {
    /// The path's MTU is found out and packets are as large as it takes, or cut up where the
    /// protocol above cannot help it.
    #[default]
    Want,
    /// Packets may be cut up by whoever must.
    Dont,
    /// Nothing is cut up, by nobody: what is too large is refused.
    Do,
    /// As [`Discovery::Do`], but what is known of the path's MTU is disregarded.
    Probe,
}

/// The wishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Congestion control, by its number in the transport module (`TCP_CONGESTION`).
    pub congestion: Option<u8>,
    /// Milliseconds for which sent text may stay unacknowledged (`TCP_USER_TIMEOUT`).
    pub user_timeout: Option<u32>,
    /// Times a SYN is sent again (`TCP_SYNCNT`).
    pub syn_retries: Option<u8>,
    /// Seconds to wait, after the program has closed, for the peer's end (`TCP_LINGER2`).
    pub linger: Option<u32>,
    /// The largest segment, bytes, options included (`TCP_MAXSEG`).
    pub max_segment: Option<u16>,
    /// Bytes per second, at most (`SO_MAX_PACING_RATE`).
    pub pacing_rate: Option<u64>,
    /// Acknowledge at once (`TCP_QUICKACK`).
    pub quick_ack: bool,
    /// The time to live of the packets (`IP_TTL`).
    pub ttl: Option<u8>,
    /// What becomes of packets that are too large (`IP_MTU_DISCOVER`).
    pub discovery: Discovery,
    /// The hop limit of the packets over IPv6 (`IPV6_UNICAST_HOPS`).
    pub hops: Option<u8>,
    /// As `discovery`, over IPv6 (`IPV6_MTU_DISCOVER`).
    pub discovery6: Discovery,
    /// The time to live of packets to groups (`IP_MULTICAST_TTL`): one hop where nothing is wished.
    pub group_ttl: Option<u8>,
    /// The hop limit of packets to groups over IPv6 (`IPV6_MULTICAST_HOPS`).
    pub group_hops: Option<u8>,
    /// What is sent to groups is not heard on the machine itself (`IP_MULTICAST_LOOP` off).
    pub no_loop: bool,
    /// The same over IPv6 (`IPV6_MULTICAST_LOOP`).
    pub no_loop6: bool,
    /// Linux's number of the interface that what is sent to groups leaves by (`IP_MULTICAST_IF`, `IPV6_MULTICAST_IF`).
    pub group_link: Option<u16>,
}
