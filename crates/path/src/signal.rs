//! What travels a path without being a message: *bells*, from the program's end down, and
//! *events*, from the protocols up. Small, copied, never queued.

use crate::wishes::Wishes;
use crate::{DropReason, Endpoint};
use alloc::vec::Vec;
use core::net::IpAddr;

/// What holds small segments back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cork {
    /// Nothing.
    Out,
    /// More is said to follow (`MSG_MORE`): until what is outstanding has been acknowledged.
    Loose,
    /// The program, until it pulls it (`TCP_CORK`).
    Tight,
}

/// What the program's end asks of the path; goes down until a stage takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bell {
    /// There are new bytes to send.
    Sent,
    /// The program has taken bytes: there is room again.
    Read,
    /// Of the bytes to be sent, the unacknowledged ones included, so many end with urgent data (`MSG_OOB`). It comes
    /// before the [`Bell::Sent`] of the last of them.
    Urgent(u32),
    /// No more bytes will be sent (`shutdown(SHUT_WR)`).
    ShutdownWrite,
    /// No more bytes will be waited for (`shutdown(SHUT_RD)`).
    ShutdownRead,
    /// The program has closed its socket; what is sent is still to be delivered.
    Close,
    /// The program has gone: reset the connection.
    Abort,
    /// Send small segments at once (`TCP_NODELAY`).
    NoDelay(bool),
    /// Hold small segments back, or no longer.
    Cork(Cork),
    /// Probe an idle peer: seconds idle, between probes, and their number; `None`: do not.
    KeepAlive(Option<(u32, u32, u8)>),
    /// All that the program wishes beyond the usual, what it wished before included. It has its
    /// effect with the next [`Bell::Sent`].
    Wishes(Wishes),
    /// The service bits of the path's packets (`IP_TOS`).
    Service(u8),
    /// A listening path: seconds to wait for the first text of a connection
    /// (`TCP_DEFER_ACCEPT`), 0: none.
    DeferAccept(u32),
    /// A listening path: the program can take no connection for this reason, its accept queue or its memory being
    /// full, or can again.
    Full(Option<DropReason>),
}

/// What has become true; goes up, and from the top to whoever runs the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The connection is established.
    Connected,
    /// There are new bytes to read.
    Readable,
    /// The peer has urgent data: [`Incoming::mark_urgent`](crate::Incoming::mark_urgent) was told where it ends.
    Urgent,
    /// Bytes were acknowledged: there is room to send.
    Writable,
    /// The peer sends no more.
    PeerFinished,
    /// The peer reset the connection.
    Reset,
    /// The peer refused the connection.
    Refused,
    /// The peer did not answer in time.
    TimedOut,
    /// The destination cannot be reached: the ICMP error as an errno value.
    Unreachable(i32),
    /// The network says that a packet did not arrive, as an errno value; the path goes on trying.
    SoftError(i32),
    /// The path takes IP packets of so many bytes from now on ([`Attr::PathMtu`](crate::Attr::PathMtu)).
    PathMtu(u16),
    /// The connection has ended in order; the path can be destroyed.
    Closed,
    /// Only TIME-WAIT is left, and its table has it; the path can be destroyed.
    TimeWait,
    /// There is more to do than one run may: the path wants [`Report::Ready`] once more.
    Unfinished,
}

/// An ICMP error about a datagram, as its sender may want to see it (`IP_RECVERR`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// The message's type and code.
    pub kind: (u8, u8),
    /// The word behind its checksum: for a packet that was too big, the MTU.
    pub info: u32,
    /// Who sent it.
    pub offender: IpAddr,
    /// What it quotes behind the headers.
    pub data: Vec<u8>,
}

/// What the network has told about packets that a path sent; goes down from the top, because the
/// stage that sent them can tell a forged report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Report {
    /// The path's MTU is at most this many bytes (RFC 1191). `sequence` is the quoted TCP
    /// sequence number.
    PathMtu {
        /// Bytes of the largest IP packet.
        mtu: u16,
        /// What the error quotes.
        sequence: u32,
        /// Whom the packet was for.
        remote: Endpoint,
    },
    /// The destination cannot be reached.
    Unreachable {
        /// The error as an errno value.
        errno: i32,
        /// A hard error: nobody there speaks the protocol or listens at the port.
        hard: bool,
        /// What the error quotes.
        sequence: u32,
        /// Whom the packet was for.
        remote: Endpoint,
    },
    /// The next hop's address is known now, or will not be.
    Resolved,
    /// Linux's socket at the bottom of the path may have become readable or writable.
    Ready,
}
