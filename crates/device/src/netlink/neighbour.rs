//! Neighbours: the hardware address behind an IP address on the link (RFC 826, RFC 4861, kept by
//! Linux).

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use silk_wire::MacAddr;

use super::interface::mac;
use super::{Netlink, NetlinkError};

/// A neighbour as Linux knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The interface it is reached by.
    pub interface: u32,
    /// Its IP address.
    pub address: IpAddr,
    /// What Linux knows about its hardware address.
    pub reach: Reach,
}

/// What Linux knows about a neighbour's hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is there, confirmed not long ago or for good.
    At(MacAddr),
    /// It was there; use it, and [`probe`](Netlink::probe) to have it confirmed.
    Stale(MacAddr),
    /// Linux is asking.
    Pending,
    /// It did not answer.
    Unreachable,
}

impl Netlink {
    /// What Linux knows of the neighbour `address`; `None`: nothing, [`probe`](Self::probe).
    pub fn neighbour(&mut self, interface: u32, address: IpAddr) -> Result<Option<Neighbour>, NetlinkError> {
        match self.ask(0, RouteNetlinkMessage::GetNeighbour(about(interface, address))) {
            Ok(answers) => Ok(answers.iter().find_map(|answer| match answer {
                RouteNetlinkMessage::NewNeighbour(neighbour) => Neighbour::of(neighbour),
                _ => None,
            })),
            Err(NetlinkError::Refused(error)) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Every neighbour on the interface.
    pub fn neighbours(&mut self, interface: u32) -> Result<Vec<Neighbour>, NetlinkError> {
        let answers = self.dump(RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()))?;
        let all = answers.iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewNeighbour(neighbour) => Neighbour::of(neighbour),
            _ => None,
        });
        Ok(all.filter(|neighbour| neighbour.interface == interface).collect())
    }

    /// Has Linux resolve or confirm a neighbour. It does not wait for the answer: that comes
    /// to a [`Watch`](super::Watch).
    pub fn probe(&mut self, interface: u32, address: IpAddr) -> Result<(), NetlinkError> {
        let mut message = about(interface, address);
        message.header.flags = NeighbourFlags::Use;
        message.header.state = NeighbourState::None;
        self.ask(NLM_F_CREATE | NLM_F_REPLACE, RouteNetlinkMessage::NewNeighbour(message)).map(drop)
    }
}

fn about(interface: u32, address: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    let (family, destination) = match address {
        IpAddr::V4(address) => (AddressFamily::Inet, NeighbourAddress::Inet(address)),
        IpAddr::V6(address) => (AddressFamily::Inet6, NeighbourAddress::Inet6(address)),
    };
    message.header.family = family;
    message.header.ifindex = interface;
    message.attributes.push(NeighbourAttribute::Destination(destination));
    message
}

impl Neighbour {
    /// `None` when it is not one of IP, or not one that could be sent to.
    pub(super) fn of(message: &NeighbourMessage) -> Option<Self> {
        let (mut address, mut hardware) = (None, MacAddr::ZERO);
        for attribute in &message.attributes {
            match attribute {
                NeighbourAttribute::Destination(NeighbourAddress::Inet(to)) => address = Some((*to).into()),
                NeighbourAttribute::Destination(NeighbourAddress::Inet6(to)) => address = Some((*to).into()),
                NeighbourAttribute::LinkLayerAddress(bytes) => hardware = mac(bytes),
                _ => {}
            }
        }
        let reach = match message.header.state {
            NeighbourState::Reachable | NeighbourState::Permanent => Reach::At(hardware),
            NeighbourState::Stale | NeighbourState::Delay | NeighbourState::Probe => Reach::Stale(hardware),
            NeighbourState::Incomplete | NeighbourState::None => Reach::Pending,
            NeighbourState::Failed => Reach::Unreachable,
            // What nobody is asked about, since it is known (`ip neighbour … nud noarp`). The kernel has it so, too, where
            // a link has no addresses to send to.
            NeighbourState::Noarp if hardware != MacAddr::ZERO => Reach::At(hardware),
            _ => return None,
        };
        Some(Self { interface: message.header.ifindex, address: address?, reach })
    }
}
