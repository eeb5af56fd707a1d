//! What a call made true, and why a segment was dropped. Progress is a small set that the caller
//! turns into wake-ups; a drop is a counted reason and not an error.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// The set of things that became true during one call.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress(u16);

impl Progress {
    /// Nothing the program would notice.
    pub const NONE: Self = Self(0);
    /// The handshake is complete.
    pub const ESTABLISHED: Self = Self(1);
    /// Octets in order were written to the receive buffer.
    pub const READABLE: Self = Self(1 << 1);
    /// Octets were acknowledged and consumed from the send buffer.
    pub const WRITABLE: Self = Self(1 << 2);
    /// The peer's FIN arrived in order: after what was written, the stream ends.
    pub const PEER_FIN: Self = Self(1 << 3);
    /// The peer reset the connection.
    pub const RESET: Self = Self(1 << 4);
    /// The peer refused the connection: a reset answered our SYN.
    pub const REFUSED: Self = Self(1 << 5);
    /// The peer did not answer for too long.
    pub const TIMED_OUT: Self = Self(1 << 6);
    /// TIME-WAIT began: poll what is to be sent, take [`crate::Connection::time_wait`], and the
    /// connection may be destroyed.
    pub const TIME_WAIT: Self = Self(1 << 7);
    /// The connection is gone: poll what is to be sent, then destroy it.
    pub const CLOSED: Self = Self(1 << 8);
    /// Our FIN and all before it are acknowledged.
    pub const FIN_ACKED: Self = Self(1 << 9);

    /// Text arrived after the program had closed, or shut both ways down: the connection was reset (RFC 2525 §2.17).
    pub const LATE_TEXT: Self = Self(1 << 10);
    /// The peer has urgent data, or more of it: [`crate::RecvBuffer::mark_urgent`] was told where it ends.
    pub const URGENT: Self = Self(1 << 11);

    const NAMES: [&'static str; 12] = [
        "established",
        "readable",
        "writable",
        "peer-fin",
        "reset",
        "refused",
        "timed-out",
        "time-wait",
        "closed",
        "fin-acked",
        "late-text",
        "urgent",
    ];

    /// Whether everything in `other` became true.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether anything in `other` became true.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether nothing became true.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Progress {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Progress {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = Self::NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        f.debug_set().entries(set.map(|(_, name)| name)).finish()
    }
}

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why a segment was not taken. Its discriminant indexes a block of counters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DropReason { $($(#[$doc])* $name,)* }

        impl DropReason {
            /// Every reason, in the order of the discriminants.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The reason's name in counters.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

drop_reasons! {
    /// The connection is closed.
    Closed = "tcp-closed",
    /// No sequence number of it lies in the receive window; it was answered with an acknowledgement
    /// (RFC 9293 §3.10.7.4, first).
    OutOfWindow = "tcp-out-of-window",
    /// All of it had been received before.
    Duplicate = "tcp-duplicate",
    /// Its timestamp is older than the last one (PAWS, RFC 7323 §5).
    OldTimestamp = "tcp-old-timestamp",
    /// Timestamps were agreed and it carries none (RFC 7323 §3.2).
    MissingTimestamp = "tcp-missing-timestamp",
    /// It carries no acknowledgement where one is needed.
    NoAck = "tcp-no-ack",
    /// It acknowledges what was never sent (RFC 9293 §3.10.7.4, fifth).
    AckOfUnsent = "tcp-ack-of-unsent",
    /// It acknowledges what is too far in the past (RFC 5961 §5.2).
    AckTooOld = "tcp-ack-too-old",
    /// A reset outside the receive window (RFC 5961 §3.2).
    ResetOutOfWindow = "tcp-reset-out-of-window",
    /// A reset in the window but not at its edge: challenged (RFC 5961 §3.2).
    BlindReset = "tcp-blind-reset",
    /// A SYN on a synchronized connection: challenged (RFC 5961 §4.2).
    UnexpectedSyn = "tcp-unexpected-syn",
    /// A handshake segment that acknowledges something other than our SYN.
    BadHandshake = "tcp-bad-handshake",
    /// A reset that ended a half-open connection.
    HandshakeReset = "tcp-handshake-reset",
    /// Out of order, and the reassembly buffer is full.
    ReassemblyFull = "tcp-reassembly-full",
    /// The receive buffer took none of it.
    NoRoom = "tcp-no-room",
    /// The listener holds as many half-open connections as it may. A SYN that is answered with a
    /// cookie counts here, too.
    BacklogFull = "tcp-backlog-full",
    /// The listener's program has too many connections waiting to be accepted.
    AcceptQueueFull = "tcp-accept-queue-full",
    /// A SYN together with a FIN or a reset.
    SynWithFin = "tcp-syn-with-fin",
    /// A segment without a SYN, a reset or an acknowledgement, for a listener.
    NotForListener = "tcp-not-for-listener",
    /// A handshake's bare last acknowledgement while the listener waits for text.
    Deferred = "tcp-deferred",
    /// A reset for a connection in TIME-WAIT (RFC 1337 §3).
    ResetInTimeWait = "tcp-reset-in-time-wait",
    /// A segment for a connection in TIME-WAIT that needs no answer.
    InTimeWait = "tcp-in-time-wait",
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::format;

    #[test]
    fn progress_is_a_set() {
        let both = Progress::READABLE | Progress::PEER_FIN;
        assert!(both.contains(Progress::READABLE) && both.intersects(Progress::PEER_FIN));
        assert!(!both.contains(Progress::READABLE | Progress::CLOSED));
        assert_eq!(format!("{both:?}"), r#"{"readable", "peer-fin"}"#);
    }

    #[test]
    fn reasons_have_distinct_names_and_count_from_zero() {
        let names: BTreeSet<_> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), DropReason::ALL.len());
        assert!(DropReason::ALL.iter().enumerate().all(|(index, reason)| *reason as usize == index));
    }
}
