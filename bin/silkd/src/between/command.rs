//! What the control thread tells the executors. The two never share data that either changes: an order carries everything that
//! is needed.

use crate::between::answer::Answer;
use crate::between::listener_hold::{Arrived, ListenerHold};
use crate::between::names::{FamilyIndex, SocketName};
use crate::between::obeyed::Obeyed;
use crate::between::reported::Reported;
use crate::between::reserved::PortHold;
use crate::between::sockets::{Rings, Spare};
use crate::between::thread_end::ThreadEnd;
use crate::between::watch::{Doorbell, Watch};
use crate::classes::Classes;
use crate::recipes::Recipe;
use silk_control::SlotNumber;
use silk_modules::Standing;
use silk_modules::filter::Filter;
use silk_path::classify::Refused;
use silk_path::{Checksum, Endpoint, Sharing};
use silk_stream::mail::{Receiver, Sender, Undelivered, mail};
use silk_stream::{Arena, Leased, wake};
use std::cell::Cell;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// An order to an executor.
pub enum Command {
    /// A family was founded.
    Family {
        /// Its place.
        family: FamilyIndex,
        /// What it shares with us.
        arena: Arc<Arena>,
        /// The priority each of its threads has now, plus one; zero: its own. Executors
        /// change it with the thread's scheduling.
        priorities: Arc<[AtomicU32]>,
    },
    /// A family is gone with all its processes: reset and free everything of it.
    FamilyGone {
        /// Its place.
        family: FamilyIndex,
    },
    /// An event set.
    Bell {
        /// The family.
        family: FamilyIndex,
        /// The event set.
        bell: u32,
        /// What to write when it rings.
        event: Arc<OwnedFd>,
        /// Waits until it is obeyed: the program marks sockets with it from then on.
        answer: Arc<Answer>,
    },
    /// An event set is gone.
    BellGone {
        /// The family.
        family: FamilyIndex,
        /// The event set.
        bell: u32,
        /// Its number is free when that is obeyed; unless it is only not to be rung any more.
        obeyed: Option<Arc<Obeyed>>,
    },
    /// A thread that may be woken and whose priority may be changed.
    Thread {
        /// The family.
        family: FamilyIndex,
        /// Its record.
        thread: u32,
        /// Itself.
        end: ThreadEnd,
        /// Waits until it is obeyed: the thread waits for connections from then on.
        answer: Arc<Answer>,
    },
    /// A thread has ended. What it was handed and has not taken is another's.
    ThreadGone {
        /// The family.
        family: FamilyIndex,
        /// Its record.
        thread: u32,
        /// The record is free when that is obeyed.
        obeyed: Arc<Obeyed>,
    },
    /// Listen.
    Listen {
        /// The socket.
        hold: Arc<ListenerHold>,
        /// Seconds a connection without data may be kept back (`TCP_DEFER_ACCEPT`).
        defer_accept: u32,
        /// Waits until it is obeyed.
        answer: Arc<Answer>,
    },
    /// A file that programs may refer to is at this place from now on, or no file any more: what
    /// refers to that is copied first.
    File {
        /// The family.
        family: FamilyIndex,
        /// The place among the family's files.
        place: u32,
        /// The file, and which use of the place it is.
        file: Option<(u32, Arc<Leased>)>,
        /// Waits until it is obeyed.
        obeyed: Arc<Obeyed>,
    },
    /// A socket that listens goes on under other terms.
    ListenOn {
        /// The socket.
        socket: SocketName,
        /// The most connections that may wait to be accepted, in each class.
        backlog: u32,
        /// As in [`Command::Listen`].
        defer_accept: u32,
        /// Waits until it is obeyed.
        answer: Arc<Answer>,
    },
    /// Listen no longer: connections not yet accepted are reset.
    Unlisten(SocketName),
    /// Make a path of a connection over Linux's own TCP, which another domain has accepted.
    Host(Arrived),
    /// Open a connection.
    Connect {
        /// The socket, with `CONNECTING` set in its slot.
        socket: SocketName,
        /// Its rings.
        rings: Rings,
        /// The local end.
        local: Endpoint,
        /// The remote end.
        peer: Endpoint,
        /// The path's priority, where it is not that of its class.
        priority: Option<u8>,
    },
    /// A process may come to connect with this socket.
    Spare {
        /// The socket.
        socket: SocketName,
        /// What its connection will have.
        spare: Spare,
    },
    /// Open a datagram socket, or change whom it hears.
    Datagram {
        /// The socket.
        socket: SocketName,
        /// Its rings.
        rings: Rings,
        /// The local ends: one, or the same port of both families.
        locals: Vec<Endpoint>,
        /// Whom it hears; everybody if nobody is named.
        peer: Option<Endpoint>,
        /// The domain that serves it.
        domain: usize,
        /// It is opened, and not one that is open already. Who has closed that meanwhile has no use for it.
        opened: bool,
        /// How it has its port.
        hold: PortHold,
        /// Waits until it is obeyed.
        answer: Arc<Answer>,
    },
    /// A datagram socket that another domain serves has a lane in this one.
    Lane {
        /// The lane.
        socket: SocketName,
        /// The socket's slot.
        of: SlotNumber,
        /// The lane's rings.
        rings: Rings,
        /// The socket's local ends.
        locals: Vec<Endpoint>,
        /// How it shares its port.
        sharing: Option<Sharing>,
        /// It is new; else it hears again, if its program has not ended it.
        opened: bool,
    },
    /// A lane hears nothing any more.
    Deafen(SocketName),
    /// A path of the graph hears everybody who sends to this end, in this domain: others pass on what comes for it.
    Home {
        /// The end.
        local: Endpoint,
        /// The domain.
        domain: usize,
    },
    /// No datagram socket is bound to this port any more.
    Deserted {
        /// The port.
        port: u16,
        /// At this address; `None`: at any at all.
        at: Option<IpAddr>,
    },
    /// Build a path of the graph for a socket of `PF_SCOUT`.
    Scout {
        /// The socket.
        socket: SocketName,
        /// Its rings.
        rings: Rings,
        /// The path.
        recipe: Box<Recipe>,
        /// Waits until it is obeyed.
        answer: Arc<Answer>,
    },
    /// A frame that another domain's ring received for a socket of this one.
    Frame {
        /// The Ethernet frame.
        bytes: Box<[u8]>,
        /// The device that it came over.
        device: u8,
        /// What is known of its transport checksum.
        checksum: Checksum,
    },
    /// What the network said of a datagram of a socket of this domain, heard in another.
    Reported(Box<Reported>),
    /// Routers have told these hops and this MTU of IPv6: for paths that begin from now on.
    Advertised {
        /// The hop limit.
        hops: Option<u8>,
        /// The MTU, bytes.
        mtu: Option<u16>,
    },
    /// Tell the link of which sources packets to a group are heard here from now on.
    Group {
        /// The group.
        group: IpAddr,
        /// Of which.
        filter: Filter<IpAddr>,
    },
    /// A datagram socket hears these sources of a group from now on.
    Sources {
        /// The socket.
        socket: SocketName,
        /// The group.
        group: IpAddr,
        /// Which.
        filter: Filter<IpAddr>,
    },
    /// The last holder let go of the socket.
    Close {
        /// The socket.
        socket: SocketName,
        /// Which use of its slot.
        generation: u32,
        /// The holder has died: the connection is reset, unless it had asked for an orderly end.
        died: bool,
    },
    /// Reset the socket's connection and let go of the socket, which stays the program's.
    Disconnect(SocketName),
    /// A process is gone, and so is what it alone held.
    ProcessGone {
        /// The family.
        family: FamilyIndex,
        /// The process.
        process: u32,
        /// It did not execute another program: its connections are reset.
        died: bool,
    },
    /// Linux has found a neighbour's Ethernet address, or not.
    Neighbour {
        /// The device that it is beside.
        device: u8,
        /// The neighbour.
        address: IpAddr,
        /// Its address on the link.
        link: Option<[u8; 6]>,
    },
    /// A router on a link of silk's own does not answer one of the domains: another is preferred, until it does.
    RouterLost(Ipv6Addr),
    /// A router has said that packets to a destination are better given to another first hop.
    Redirected {
        /// The router.
        router: IpAddr,
        /// Where the packets go.
        destination: IpAddr,
        /// The first hop.
        hop: IpAddr,
    },
    /// The links stand like this now.
    Standing(Arc<Standing>),
    /// Our Ethernet address at a device is this now.
    Station {
        /// Which.
        device: u8,
        /// The address.
        address: [u8; 6],
    },
    /// Give a socket's path another priority (SILK §5.3).
    Priority {
        /// Whom to answer: a lifeline of the control thread's.
        peer: u64,
        /// The socket.
        socket: SocketName,
        /// The priority asked for.
        priority: u32,
    },
    /// New classes and limits, from a reload.
    Classes(Arc<Classes>),
    /// These are refused from now on, and nobody else.
    Refused(Arc<Refused>),
    /// Memory for rings has become short, or is so no longer.
    Shortage(bool),
    /// Say what you are doing (`Told::Report`). Who was asked before, and has not said so yet, need not any more.
    Report {
        /// Which report it is for.
        round: u64,
    },
    /// Let go of this when all that was ordered before is done, and what those who are gone by now have left is
    /// closed.
    Mark(Arc<Obeyed>),
    /// The daemon ends: reset everything, then return.
    Stop,
}

/// The control thread's way to an executor.
pub struct Orders {
    queue: Sender<Command>,
    event: Arc<OwnedFd>,
    watch: Watch,
    /// How many the control thread has given.
    given: Cell<u64>,
}

impl Orders {
    /// A way to give orders, and the executor's end of it. `event` is what the executor
    /// sleeps on, and `watch` what families are added to.
    pub fn new(event: Arc<OwnedFd>, watch: Watch) -> (Self, Receiver<Command>) {
        let (queue, orders) = mail();
        (Self { queue, event, watch, given: Cell::new(0) }, orders)
    }

    /// Gives an order and wakes the executor.
    ///
    /// # Errors
    /// The executor has ended.
    pub fn give(&self, command: Command) -> Result<(), Undelivered<Command>> {
        self.leave(command)?;
        wake::notify(self.event.as_fd());
        Ok(())
    }

    /// Leaves an order until the executor next wakes: nothing can come of it before.
    ///
    /// # Errors
    /// The executor has ended.
    pub fn leave(&self, command: Command) -> Result<(), Undelivered<Command>> {
        self.queue.send(command)?;
        self.given.set(self.given.get() + 1);
        Ok(())
    }

    /// How many orders were given by this way.
    pub fn given(&self) -> u64 {
        self.given.get()
    }

    /// Its queue, for other executors.
    pub fn queue(&self) -> &Sender<Command> {
        &self.queue
    }

    /// The descriptor that wakes the executor.
    pub fn event(&self) -> &Arc<OwnedFd> {
        &self.event
    }

    /// What wakes the executor for a family.
    ///
    /// # Errors
    /// The kernel's, such as too many open files.
    pub fn doorbell(&self) -> io::Result<Doorbell> {
        self.watch.doorbell()
    }
}
