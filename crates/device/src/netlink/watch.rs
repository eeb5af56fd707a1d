//! Changes of Linux's network as they happen, so that silk's routes and neighbours never
//! stay behind Linux's.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use netlink_packet_core::NetlinkPayload;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use super::{Interface, Neighbour, NetlinkError, messages};

/// The multicast groups (rtnetlink.h): links, neighbours, addresses, routes and rules of IPv4 and of IPv6; and the next hops that
/// routes name, whose messages are not understood: a route goes with its next hop without a word.
const GROUPS: u32 = 1 << 0 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 18 | 1 << 31;

/// A subscription to changes.
pub struct Watch {
    socket: Socket,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An interface is new or different.
    Interface(Interface),
    /// The interface with this index is gone.
    Gone(u32),
    /// An address was added or removed: ask again what is remembered of addresses.
    Addresses,
    /// A route, or a rule that leads to it, was added or removed: ask again what is remembered of routes.
    Routes,
    /// A neighbour's state.
    Neighbour(Neighbour),
    /// Changes were missed because they came too fast, or were not understood: ask everything again.
    Missed,
}

impl Watch {
    /// Listens from now on, in the network namespace of the calling thread.
    pub fn open() -> Result<Self, NetlinkError> {
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(NetlinkError::Socket)?;
        socket.bind(&SocketAddr::new(0, GROUPS)).map_err(NetlinkError::Socket)?;
        socket.set_non_blocking(true).map_err(NetlinkError::Socket)?;
        Ok(Self { socket })
    }

    /// Readable when there are changes.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What changed since the last time; never waits.
    pub fn changes(&mut self) -> Result<Vec<Change>, NetlinkError> {
        let mut changes = Vec::new();
        loop {
            match self.socket.recv_from_full() {
                Ok((bytes, _)) => {
                    for message in messages(&bytes) {
                        match message.map(|message| message.payload) {
                            Ok(NetlinkPayload::InnerMessage(message)) => changes.extend(Change::of(message)),
                            Ok(NetlinkPayload::Overrun(_)) | Err(_) => changes.push(Change::Missed),
                            Ok(_) => {}
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(changes),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => changes.push(Change::Missed),
                Err(error) => return Err(NetlinkError::Socket(error)),
            }
        }
    }
}

impl AsRawFd for Watch {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.socket.as_raw_fd()
    }
}

impl Change {
    fn of(message: RouteNetlinkMessage) -> Option<Self> {
        match message {
            RouteNetlinkMessage::NewLink(link) => Some(Self::Interface(Interface::of(link))),
            // What goes from a bridge is told of as that, and is there still.
            RouteNetlinkMessage::DelLink(LinkMessage { header, .. }) => {
                (header.interface_family == AddressFamily::Unspec).then_some(Self::Gone(header.index))
            }
            RouteNetlinkMessage::NewAddress(_) | RouteNetlinkMessage::DelAddress(_) => Some(Self::Addresses),
            RouteNetlinkMessage::NewRoute(_)
            | RouteNetlinkMessage::DelRoute(_)
            | RouteNetlinkMessage::NewRule(_)
            | RouteNetlinkMessage::DelRule(_) => Some(Self::Routes),
            RouteNetlinkMessage::NewNeighbour(neighbour) => Neighbour::of(&neighbour).map(Self::Neighbour),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Write, stderr};

    impl Watch {
        /// Has it miss something; whether that can be done, else the test is over.
        pub(in super::super) fn misses(&self) -> bool {
            let mut own = SocketAddr::new(0, 0);
            self.socket.get_address(&mut own).unwrap();
            let sent = Socket::new(NETLINK_ROUTE).unwrap().send_to(&[7; 16], &own, 0).is_ok();
            if !sent {
                let _ = writeln!(stderr(), "SKIPPED, nothing tested: to send to others needs root");
            }
            sent
        }
    }

    #[test]
    fn what_is_not_understood_is_missed_and_hides_nothing_else() {
        let mut watch = Watch::open().unwrap();
        if !watch.misses() {
            return;
        }
        let changes = watch.changes().unwrap();
        assert!(changes.contains(&Change::Missed), "{changes:?}");
    }
}
