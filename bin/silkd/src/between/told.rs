//! What executors tell the control thread.

use crate::between::names::{FamilyIndex, Holder, SocketName};
use silk_control::{Refusal, Reply, Report, SlotNumber};
use silk_path::{Advertised, Endpoint};
use std::net::{IpAddr, Ipv6Addr};

/// What an executor tells the control thread.
#[derive(Debug)]
pub enum Told {
    /// No executor uses the listening socket any more.
    ListenerFree {
        /// The socket.
        name: SocketName,
        /// Its record.
        listener: u32,
    },
    /// No executor knows a thread any more that has ended.
    ThreadFree {
        /// The family.
        family: FamilyIndex,
        /// Its record.
        thread: u32,
    },
    /// No executor knows an event set any more that is gone.
    BellFree {
        /// The family.
        family: FamilyIndex,
        /// Its number.
        bell: u32,
    },
    /// A connected or datagram socket is gone; its slot has been returned.
    SocketGone {
        /// The socket.
        name: SocketName,
    },
    /// The executor has ended what it had of a family that is gone.
    FamilyEnded {
        /// The family.
        family: FamilyIndex,
        /// Its connections that go on, for they were closed in order: each is told of once more when it is gone.
        going_on: Vec<SlotNumber>,
    },
    /// The executor has let go of a socket that the program keeps (`Command::Disconnect`).
    Disconnected {
        /// The socket.
        name: SocketName,
    },
    /// What became of `Command::Priority`.
    Prioritised {
        /// Whom to answer.
        peer: u64,
        /// The answer.
        outcome: Result<(), Refusal>,
    },
    /// What a domain is doing, for `Command::Report`.
    Report {
        /// Which report it is for.
        round: u64,
        /// The domain's part of it.
        part: Box<Report>,
        /// Of each of its paths the family and the process that hold it, zero for none.
        holders: Vec<Holder>,
    },
    /// Every executor has obeyed a `Command::File`.
    FileKnown(FileKnown),
    /// Every executor has obeyed what a lifeline waits for.
    Answered {
        /// The lifeline.
        peer: u64,
        /// What it is told.
        reply: Reply,
    },
    /// This domain passes datagrams to the less important domain of the sockets that hear them.
    Lane {
        /// Where they were sent to.
        local: Endpoint,
        /// How many there were.
        passed: u32,
        /// The domain of those sockets.
        home: usize,
        /// This one.
        domain: usize,
    },
    /// There is no path for a lane of a datagram socket at this port, or only for one of its IPs.
    NoLane {
        /// The port.
        port: u16,
    },
    /// A path needs the Ethernet address of a neighbour: Linux is to find it.
    Resolve {
        /// The device that it is beside.
        device: u8,
        /// The neighbour.
        address: IpAddr,
    },
    /// What routers of a link of silk's own advertise is this from now on.
    Routers(Advertised),
    /// Another station on a link of silk's own has this address.
    Duplicate {
        /// The address.
        address: IpAddr,
        /// The station's Ethernet address.
        station: [u8; 6],
    },
    /// Another station on a link of silk's own claims this address, which silk keeps.
    Claimed {
        /// The address.
        address: IpAddr,
        /// The station's Ethernet address.
        station: [u8; 6],
    },
    /// A program let the executor wait that rang one of its event sets (`ringing.rs`).
    KeptWaiting {
        /// The program's family.
        family: FamilyIndex,
    },
    /// Every executor has obeyed what it was ordered for a family before a mark (`Command::Mark`).
    CaughtUp {
        /// The family.
        family: FamilyIndex,
    },
    /// A router on a link of silk's own does not answer one of the domains.
    RouterLost(Ipv6Addr),
    /// A router said, and it is believed, that packets to a destination are better given to another first hop.
    Redirected {
        /// The router.
        router: IpAddr,
        /// Where the packets go.
        destination: IpAddr,
        /// The first hop.
        hop: IpAddr,
    },
}

/// What every executor knows of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKnown {
    /// The family.
    pub family: FamilyIndex,
    /// The place among its files.
    pub place: u32,
    /// Which use of the place is meant.
    pub generation: u32,
    /// That its file is there; else that it is there no more.
    pub is_there: bool,
}
