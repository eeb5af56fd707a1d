//! Interfaces and their addresses.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::Nla;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoTun, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
    VlanProtocol,
};
use silk_wire::MacAddr;

use super::{Netlink, NetlinkError};
use crate::OpenError;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number in its network namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its hardware address, zero for one without.
    pub mac: MacAddr,
    /// The longest IP packet it takes, in bytes.
    pub mtu: u32,
    /// Its frames are Ethernet's, with a station at either end: not those of a tunnel of IP (tun, WireGuard, PPP), nor loopback.
    pub ethernet: bool,
    /// It is set up and has a carrier.
    pub running: bool,
    /// It is one end of a veth pair.
    pub veth: bool,
    /// What arrives may carry partial checksums: its other end is that of a veth pair, or a program, a virtual machine's for
    /// the most part, that can say so (`IFF_VNET_HDR`).
    pub partial: bool,
    /// How many receive queues it has at most.
    pub receive_queues: u32,
    /// The interface beneath it, or at a veth's other end, in the same network namespace.
    pub below: Option<u32>,
    /// It is part of a bridge, a bond or the like, which has what arrives.
    pub enslaved: bool,
    /// Which virtual LAN of the one beneath it is (IEEE 802.1Q); 0: it is none.
    pub vlan: u16,
}

/// An address that Linux has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// The interface it is on.
    pub interface: u32,
    /// The address.
    pub address: IpAddr,
    /// How many bits of it name the network.
    pub prefix: u8,
    /// Nothing new is to be begun from it, where there is another.
    pub deprecated: bool,
}

impl Netlink {
    /// The interface of this name.
    pub fn interface(&mut self, name: &str) -> Result<Interface, NetlinkError> {
        let mut question = LinkMessage::default();
        question.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.one(question)
    }

    /// The interface with this index.
    pub fn interface_at(&mut self, index: u32) -> Result<Interface, NetlinkError> {
        let mut question = LinkMessage::default();
        question.header.index = index;
        self.one(question)
    }

    /// Linux's interface for the virtual LAN `vid` of the interface with this index.
    pub fn vlan(&mut self, of: u32, vid: u16) -> Result<Option<Interface>, NetlinkError> {
        let answers = self.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
        let mut all = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(link) => Some(Interface::of(link)),
            _ => None,
        });
        Ok(all.find(|interface| interface.below == Some(of) && interface.vlan == vid))
    }

    fn one(&mut self, question: LinkMessage) -> Result<Interface, NetlinkError> {
        self.ask(0, RouteNetlinkMessage::GetLink(question))?
            .into_iter()
            .find_map(|answer| match answer {
                RouteNetlinkMessage::NewLink(link) => Some(Interface::of(link)),
                _ => None,
            })
            .ok_or_else(|| NetlinkError::Refused(io::Error::from_raw_os_error(libc::ENODEV)))
    }

    /// The addresses of the interface with this index.
    pub fn addresses(&mut self, interface: u32) -> Result<Vec<LocalAddress>, NetlinkError> {
        let mut all = self.all_addresses()?;
        all.retain(|address| address.interface == interface);
        Ok(all)
    }

    /// Those of all interfaces.
    pub fn all_addresses(&mut self) -> Result<Vec<LocalAddress>, NetlinkError> {
        let answers = self.dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()))?;
        let all = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewAddress(address) => LocalAddress::of(&address),
            _ => None,
        });
        Ok(all.collect())
    }
}

impl Interface {
    /// The one of this name, for a device on it: one of Ethernet.
    ///
    /// # Errors
    /// That there is none, or none such.
    pub fn to_serve(name: &str) -> Result<Self, OpenError> {
        let found = Netlink::open().and_then(|mut netlink| netlink.interface(name));
        let interface = found.map_err(|error| not_described(name, error))?;
        if interface.ethernet { Ok(interface) } else { Err(OpenError::NoEthernet { name: interface.name }) }
    }

    /// Whether there is one of this name, whatever its kind.
    pub(crate) fn is_there(name: &str) -> bool {
        Netlink::open().and_then(|mut netlink| netlink.interface(name)).is_ok()
    }

    pub(super) fn of(link: LinkMessage) -> Self {
        let mut interface = Self {
            index: link.header.index,
            name: String::new(),
            mac: MacAddr::ZERO,
            mtu: 0,
            ethernet: link.header.link_layer_type == LinkLayerType::Ether,
            running: link.header.flags.contains(LinkFlags::Up | LinkFlags::LowerUp),
            veth: false,
            partial: false,
            receive_queues: 1,
            below: None,
            enslaved: false,
            vlan: 0,
        };
        let mut elsewhere = false;
        for attribute in link.attributes {
            match attribute {
                LinkAttribute::IfName(name) => interface.name = name,
                LinkAttribute::Address(bytes) => interface.mac = mac(&bytes),
                LinkAttribute::Mtu(mtu) => interface.mtu = mtu,
                LinkAttribute::NumRxQueues(queues) => interface.receive_queues = queues.max(1),
                LinkAttribute::LinkInfo(info) => {
                    interface.veth = info.contains(&LinkInfo::Kind(InfoKind::Veth));
                    let tun = info.contains(&LinkInfo::Kind(InfoKind::Tun));
                    interface.partial = interface.veth || tun && !info.iter().any(program_leaves_nothing_out);
                    interface.vlan = info.iter().find_map(vid).unwrap_or(0);
                }
                LinkAttribute::Link(index) => interface.below = Some(index),
                LinkAttribute::Controller(index) => interface.enslaved = index != 0,
                LinkAttribute::LinkNetNsId(_) => elsewhere = true,
                _ => {}
            }
        }
        interface.below = interface.below.filter(|_| !elsewhere);
        interface
    }
}

/// What is said of a tap whose program puts no virtio-net header before a frame.
fn program_leaves_nothing_out(info: &LinkInfo) -> bool {
    /// `IFLA_TUN_VNET_HDR` (linux/if_link.h): an octet, not 0 where there is such a header.
    const VNET_HDR: u16 = 5;
    let LinkInfo::Data(InfoData::Tun(all)) = info else { return false };
    let is_no = |info: &InfoTun| {
        let mut value = [0];
        info.value_len() == value.len() && {
            info.emit_value(&mut value);
            value == [0]
        }
    };
    all.iter().any(|info| info.kind() == VNET_HDR && is_no(info))
}

fn not_described(name: &str, error: NetlinkError) -> OpenError {
    match error {
        NetlinkError::Refused(error) | NetlinkError::Socket(error) => {
            OpenError::of(name, "look at the interface", error)
        }
        NetlinkError::Garbled(_) => {
            OpenError::Unsupported { name: name.to_owned(), what: "be described by this kernel" }
        }
    }
}

/// The VID of an interface for a virtual LAN of IEEE 802.1Q, not of another protocol's.
fn vid(info: &LinkInfo) -> Option<u16> {
    let LinkInfo::Data(InfoData::Vlan(all)) = info else { return None };
    let customer = all.contains(&InfoVlan::Protocol(VlanProtocol::Ieee8021Q));
    let id = all.iter().find_map(|one| if let InfoVlan::Id(id) = one { Some(*id) } else { None });
    id.filter(|_| customer)
}

/// A hardware address, zero unless it is one of Ethernet.
pub(super) fn mac(bytes: &[u8]) -> MacAddr {
    bytes.try_into().map_or(MacAddr::ZERO, MacAddr)
}

impl LocalAddress {
    pub(super) fn of(message: &AddressMessage) -> Option<Self> {
        // On a point-to-point link ADDRESS is the other side's and LOCAL is ours; an IPv6 address
        // mostly has no LOCAL. One that somebody else has (RFC 4862 §5.4.5) is nobody's.
        let (mut local, mut address, mut known) = (None, None, AddressFlags::empty());
        for attribute in &message.attributes {
            match attribute {
                AddressAttribute::Local(ip) => local = Some(*ip),
                AddressAttribute::Address(ip) if ip.is_ipv6() => address = Some(*ip),
                AddressAttribute::Flags(flags) => known = *flags,
                _ => {}
            }
        }
        let address = local.or(address).filter(|_| !known.contains(AddressFlags::Dadfailed))?;
        // Of one that is still being asked about somebody may say that it is theirs (RFC 4862 §5.4).
        let deprecated = known.intersects(AddressFlags::Deprecated | AddressFlags::Tentative);
        let (interface, prefix) = (message.header.index, message.header.prefix_len);
        Some(Self { interface, address, prefix, deprecated })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_for_a_vlan_says_which_and_of_which_and_a_providers_is_none() {
        let link = |protocol| {
            let mut link = LinkMessage::default();
            let data = InfoData::Vlan(vec![InfoVlan::Protocol(protocol), InfoVlan::Id(100)]);
            let info = vec![LinkInfo::Kind(InfoKind::Vlan), LinkInfo::Data(data)];
            link.attributes = vec![LinkAttribute::Link(7), LinkAttribute::LinkInfo(info)];
            let interface = Interface::of(link);
            (interface.vlan, interface.below)
        };
        assert_eq!(link(VlanProtocol::Ieee8021Q), (100, Some(7)));
        assert_eq!(link(VlanProtocol::Ieee8021Ad), (0, Some(7)));
    }

    #[test]
    fn what_is_in_another_namespace_is_not_beneath() {
        let mut link = LinkMessage::default();
        link.attributes = vec![LinkAttribute::LinkNetNsId(1), LinkAttribute::Link(7)];
        assert_eq!(Interface::of(link).below, None);
    }
}
