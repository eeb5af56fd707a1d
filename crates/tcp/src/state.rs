//! The states of a connection (RFC 9293 §3.3.2). LISTEN is missing because a listener is not a
//! connection: half-open connections live in [`crate::listen::SynTable`].

/// A connection's state. The discriminants are those of Linux's `TCP_INFO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// Both directions open.
    Established = 1,
    /// SYN sent, waiting for one.
    SynSent = 2,
    /// SYN sent and received, waiting for its acknowledgement (simultaneous open).
    SynReceived = 3,
    /// Our FIN is sent, not acknowledged; the peer may still send.
    FinWait1 = 4,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2 = 5,
    /// Both FINs are acknowledged; old duplicates are waited out.
    TimeWait = 6,
    /// There is no connection any more.
    Closed = 7,
    /// The peer's FIN came; we may still send.
    CloseWait = 8,
    /// The peer's FIN came and ours is sent.
    LastAck = 9,
    /// Both FINs crossed; ours is not acknowledged.
    Closing = 11,
}

impl State {
    /// Whether sequence numbers are agreed (RFC 9293 §3.5.2, group 3).
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// Whether the peer may still send text (RFC 9293 §3.10.7.4, seventh).
    pub const fn receives_text(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Whether we may have text or a FIN outstanding or to send.
    pub const fn may_transmit(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }

    /// RFC 9293's name of the state.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Established => "ESTABLISHED",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::TimeWait => "TIME-WAIT",
            Self::Closed => "CLOSED",
            Self::CloseWait => "CLOSE-WAIT",
            Self::LastAck => "LAST-ACK",
            Self::Closing => "CLOSING",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_open_receiving_sides_take_text() {
        assert!(State::FinWait2.receives_text());
        assert!(!State::CloseWait.receives_text() && !State::SynReceived.receives_text());
    }

    #[test]
    fn the_numbers_are_those_of_tcp_info() {
        assert_eq!((State::Established as u8, State::Closed as u8, State::Closing as u8), (1, 7, 11));
    }
}
