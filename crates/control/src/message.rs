//! The messages. Adding one is adding a variant at the end; the daemon and the library of
//! one release always match ([`Request::Attach`] carries the version).

use crate::report::Report;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// A slot's number in its family's arena.
pub type SlotNumber = u32;
/// A process's number in its family, never zero.
pub type ProcessNumber = u32;
/// An event set's number in its family.
pub type BellNumber = u32;
/// The words of a slot's wishes (`silk_stream::wish`).
pub type Wishes = [u32; 18];
/// What lets a process join a family: given by the daemon, hard to guess.
pub type FamilyToken = u64;

/// What kind of socket is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// TCP.
    Stream,
    /// UDP.
    Datagram,
}

/// What a program changes of what a socket of its hears of a group (RFC 3678 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Membership {
    /// All sources are heard.
    Join,
    /// None is.
    Leave,
    /// This source is heard, too; at first it alone.
    Add(IpAddr),
    /// It no longer is.
    Drop(IpAddr),
    /// Of all sources, this one is not heard.
    Block(IpAddr),
    /// It is again.
    Unblock(IpAddr),
}

impl Membership {
    /// What takes it back.
    #[must_use]
    pub fn inverse(self) -> Self {
        match self {
            Self::Join => Self::Leave,
            Self::Leave => Self::Join,
            Self::Add(source) => Self::Drop(source),
            Self::Drop(source) => Self::Add(source),
            Self::Block(source) => Self::Unblock(source),
            Self::Unblock(source) => Self::Block(source),
        }
    }

    /// The source that is named.
    pub fn source(self) -> Option<IpAddr> {
        match self {
            Self::Join | Self::Leave => None,
            Self::Add(source) | Self::Drop(source) | Self::Block(source) | Self::Unblock(source) => {
                Some(source)
            }
        }
    }
}

/// What the library or the command asks of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// First message of a process: join the family of the token, or found one. Answered by
    /// [`Reply::Attached`] with the arena and then one eventfd for each domain.
    Attach {
        /// `CARGO_PKG_VERSION` of this crate; must be the daemon's.
        version: String,
        /// The family to join; `None` founds one.
        family: Option<FamilyToken>,
        /// The program's name, for people.
        program: String,
    },
    /// The sender is about to fork. Carries the daemon's end of a new lifeline; the child
    /// holds everything the parent holds. Answered by [`Reply::Forked`].
    Fork,
    /// The sender passes a socket to another process (`SCM_RIGHTS`). Carries the daemon's end of a
    /// lifeline that holds the socket on its way, and whose other end goes in its place. Answered by
    /// [`Reply::Passed`].
    Pass {
        /// The socket.
        slot: SlotNumber,
        /// The use of the slot that is meant.
        generation: u32,
    },
    /// The sender has received a socket: it holds it instead of that lifeline. Answered by
    /// [`Reply::Done`].
    Take {
        /// Which lifeline.
        ticket: u64,
        /// The socket.
        slot: SlotNumber,
        /// The use of the slot that is meant.
        generation: u32,
    },
    /// The sender has executed another program with this lifeline: the threads and event sets of
    /// before are gone, and so is whoever waited for an answer. Answered by [`Reply::Renewed`].
    Renew,
    /// The sender executes a program that does not have this lifeline: once that hangs up, the connections that
    /// it held alone are closed in order, as those of one that exits. Or it could not be executed (no answer).
    Executes {
        /// Whether it is about to.
        now: bool,
    },
    /// A thread will wait in `accept`. Answered by [`Reply::Thread`].
    Thread {
        /// Its kernel id, as the sender has it, to whom it must belong.
        tid: u32,
    },
    /// That thread has ended (no answer).
    ThreadGone {
        /// The number it was given.
        thread: u32,
    },
    /// An event set was made. Carries the eventfd to write when it rings. Answered by
    /// [`Reply::Bell`].
    Bell,
    /// That event set has gone (no answer).
    BellGone {
        /// The number it was given.
        bell: BellNumber,
    },
    /// Make a socket with a local address. Port zero: choose one. Answered by
    /// [`Reply::Socket`], or [`Reply::NotOurs`] when Linux should serve this address.
    Bind {
        /// Stream or datagram.
        kind: Kind,
        /// The address; unspecified for every one of ours.
        local: SocketAddr,
        /// `SO_REUSEADDR`.
        reuse_address: bool,
        /// `SO_REUSEPORT`: several sockets may listen and share the connections.
        reuse_port: bool,
        /// `IPV6_V6ONLY`: `::` stands for IPv6 alone, not for both IPs.
        only_v6: bool,
    },
    /// Listen on a bound socket. Answered by [`Reply::Done`].
    Listen {
        /// The socket.
        slot: SlotNumber,
        /// The use of the slot that is meant.
        generation: u32,
        /// The program's backlog, clamped by the daemon.
        backlog: u32,
        /// `TCP_DEFER_ACCEPT`: seconds a connection without data may be kept back; zero: not
        /// at all.
        defer_accept: u32,
    },
    /// Connect: a new socket, or a bound one. A stream's progress shows in its slot
    /// (`CONNECTING`, then `CONNECTED` or `FAILED`). Answered by [`Reply::Socket`] or
    /// [`Reply::NotOurs`].
    Connect {
        /// Stream or datagram.
        kind: Kind,
        /// A socket that has been bound, if it has, and the use of its slot that is meant.
        bound: Option<(SlotNumber, u32)>,
        /// The peer. For datagrams: whom to hear and where to send; an unspecified address
        /// dissolves the association.
        peer: SocketAddr,
        /// `IP_TOS`.
        service: u32,
        /// What the program wishes, as in the slot: the first packet may have to show it.
        wishes: Wishes,
    },
    /// The sender holds the socket no longer. Used for sockets with several holders; one
    /// holder closes by a request bit in the slot (no answer).
    Release {
        /// The socket.
        slot: SlotNumber,
        /// The use of the slot that is meant; a release of an earlier use is ignored.
        generation: u32,
    },
    /// Set the priority of a socket's path, within what the policy allows the program
    /// (SILK §5.3). Answered by [`Reply::Done`].
    SetPriority {
        /// The socket.
        slot: SlotNumber,
        /// The use of the slot that is meant.
        generation: u32,
        /// The priority asked for.
        priority: u32,
    },
    /// A socket of `PF_SCOUT`: build the path of this name, which the graph must allow
    /// (SILK §3.1). Answered by [`Reply::Socket`].
    Scout {
        /// What the program means to exchange over it.
        kind: Kind,
        /// The path's name in the graph.
        name: String,
    },
    /// A datagram socket changes what it hears of a group. Answered by [`Reply::Done`], or
    /// [`Reply::NotOurs`] when another interface is meant.
    Group {
        /// The socket.
        slot: SlotNumber,
        /// The use of the slot that is meant.
        generation: u32,
        /// The group.
        group: IpAddr,
        /// The interface: an address of it, and its number; neither (`None`, 0): any.
        at: (Option<IpAddr>, u32),
        /// What changes.
        change: Membership,
    },
    /// Something the library had to leave to Linux; counted and logged once (no answer).
    Unserved {
        /// What it was, such as `setsockopt(IPPROTO_IP, 25)`.
        what: String,
    },
    /// `silk run`: found a family for a program to be started. Answered by
    /// [`Reply::Family`]; the family lives while this connection or a process of it does.
    Found,
    /// `silk paths`: answered by [`Reply::Report`]s until one says it is the last.
    Report,
    /// `silk reload`: read the configuration file again. Answered by [`Reply::Reloaded`].
    Reload,
    /// A bound or connected stream socket is to be what it was when it was bound: its connection
    /// is reset, or it listens no longer. Answered by [`Reply::Done`] when nothing of that is left,
    /// and it can connect or listen again.
    Disconnect {
        /// The socket.
        slot: SlotNumber,
        /// The use of the slot that is meant.
        generation: u32,
    },
    /// Bytes of a file are to be sent by reference. Carries a descriptor of the file, open for reading.
    /// Answered by [`Reply::Done`]; the file then shows in the arena, soon.
    File,
    /// Whether any way leads to where a datagram is to be sent, over silk or over Linux. Answered by [`Reply::Done`].
    Way {
        /// Where to.
        to: SocketAddr,
    },
}

/// What the daemon answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// To `Attach`. Carries the arena, then the eventfds of the domains in order.
    Attached {
        /// The family, for the children's environment.
        family: FamilyToken,
        /// The process's number.
        process: ProcessNumber,
        /// How many eventfds follow.
        domains: u32,
    },
    /// To `Fork`.
    Forked {
        /// The child's number.
        process: ProcessNumber,
    },
    /// To `Pass`.
    Passed {
        /// What lets a process take the socket, if it is of the family.
        ticket: u64,
    },
    /// To `Renew`: what comes before it is an answer to the program of before.
    Renewed,
    /// To `Thread`.
    Thread {
        /// Its record in the arena.
        thread: u32,
    },
    /// To `Bell`.
    Bell {
        /// Its record in the arena.
        bell: BellNumber,
    },
    /// To `Bind`, `Connect`, `Scout`.
    Socket {
        /// The slot.
        slot: SlotNumber,
        /// Its use, to notice a stale descriptor.
        generation: u32,
    },
    /// To `Connect` of a new stream, by a process that connects often.
    Sockets {
        /// As in [`Reply::Socket`].
        slot: SlotNumber,
        /// As in [`Reply::Socket`].
        generation: u32,
        /// Further sockets, each with its use, for connections to the same address from the same process: who
        /// claims one (`silk_stream::status::SPARE`) need not ask.
        spares: Vec<(SlotNumber, u32)>,
    },
    /// To `Bind` and `Connect`: the address is Linux's business.
    NotOurs,
    /// It is done.
    Done,
    /// To `Found`.
    Family {
        /// The token.
        family: FamilyToken,
    },
    /// To `Report`: a part of it.
    Report {
        /// The part.
        part: Box<Report>,
        /// Whether more parts follow.
        more: bool,
    },
    /// To `Reload`.
    Reloaded {
        /// What took effect, a line each.
        applied: Vec<String>,
        /// What changed in the file but needs a restart, a line each.
        restart: Vec<String>,
    },
    /// It cannot be done.
    Refused(Refusal),
}

/// Why something was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What the program's system call reports.
    pub errno: i32,
    /// What happened, whose fault it is and what to do, for people.
    pub why: String,
}
