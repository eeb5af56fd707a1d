//! The whole specification in one function, as [`layout`](super::layout) writes it down and as
//! the XDP program computes it: for devices without XDP, for frames without a hint, and as
//! the reference of the property tests. Looks at bytes alone; no input panics.

use super::fields::{be16, ipv4};
use super::flow::{Between, Flow, Protocol};
use super::spec6;
use super::{Belongs, Tables};
use crate::Endpoint;
use crate::module::Parcel;
use core::net::{Ipv4Addr, SocketAddrV4};

const ETH: usize = 14;
const TAGGED: u16 = 0x8100;
const TAG: usize = 4;
const VID: u16 = 0xfff;
const IPV4: usize = 20;
const UDP: usize = 8;
const IGMP: u8 = 2;

/// An IPv4 packet as far as it matters here.
struct Packet<'p> {
    protocol: u8,
    fragment: bool,
    dscp: u8,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    // Behind the header, up to the packet's own end.
    payload: &'p [u8],
}

/// A frame as far as Ethernet and a tag say what it is.
struct Framed<'p> {
    vid: u16,
    kind: u16,
    payload: &'p [u8],
}

/// Step 1 of the specification.
#[inline]
fn framed(frame: &[u8]) -> Option<Framed<'_>> {
    let kind = be16(frame, 12)?;
    if kind != TAGGED {
        return Some(Framed { vid: 0, kind, payload: frame.get(ETH..)? });
    }
    let (vid, kind) = (be16(frame, ETH)? & VID, be16(frame, ETH + 2)?);
    Some(Framed { vid, kind, payload: frame.get(ETH + TAG..)? })
}

/// Which module is to be asked whose a frame is that has no exact entry.
pub(crate) fn parcel(frame: &[u8]) -> Option<Parcel> {
    let Framed { kind, payload, .. } = framed(frame)?;
    match kind {
        0x0806 => return Some(Parcel::Arp),
        0x86dd => return spec6::parcel(payload),
        _ => {}
    }
    let packet = packet(payload, false)?;
    if packet.fragment {
        return Some(Parcel::Fragment);
    }
    match packet.protocol {
        1 => Some(Parcel::Icmp),
        IGMP => Some(Parcel::Groups),
        number => {
            let local = Endpoint::v4(packet.destination, be16(packet.payload, 2)?);
            let remote = Endpoint::v4(packet.source, be16(packet.payload, 0)?);
            Some(Parcel::Listen(Between { protocol: Protocol::numbered(number)?, local, remote }))
        }
    }
}

/// Step 2 of the specification; with `quoted`, the packet may be cut short behind its header.
fn packet(bytes: &[u8], quoted: bool) -> Option<Packet<'_>> {
    let first = *bytes.first()?;
    let header = usize::from(first & 15) * 4;
    let total = usize::from(be16(bytes, 2)?);
    if bytes.len() < IPV4 || first >> 4 != 4 || header < IPV4 {
        return None;
    }
    let end = if quoted { bytes.len() } else { total };
    Some(Packet {
        protocol: bytes[9],
        fragment: be16(bytes, 6)? & if quoted { 0x1fff } else { 0x3fff } != 0,
        dscp: bytes[1] >> 2,
        source: ipv4(bytes, 12)?,
        destination: ipv4(bytes, 16)?,
        payload: bytes.get(header..end)?,
    })
}

impl Tables {
    /// Where an Ethernet frame belongs that came over the first device, which may be the only one.
    pub fn classify(&self, frame: &[u8]) -> Belongs {
        self.classify_over(frame, 0)
    }

    /// Where an Ethernet frame belongs that came over this device.
    pub fn classify_over(&self, frame: &[u8], device: u8) -> Belongs {
        self.try_classify(frame, device).unwrap_or(Belongs::Pass)
    }

    fn try_classify(&self, frame: &[u8], device: u8) -> Option<Belongs> {
        let Framed { vid, kind, payload } = framed(frame)?;
        match kind {
            _ if vid != self.vlan(device) => None,
            0x0806 => self.owned().arp.then(|| self.control()),
            0x0800 => self.classify_ip(payload, frame[0] & 1 != 0),
            0x86dd => self.classify_ip6(payload, frame[0] & 1 != 0),
            _ => None,
        }
    }

    /// Where an IPv4 packet belongs; `group`: it was sent to a group of stations.
    fn classify_ip(&self, bytes: &[u8], group: bool) -> Option<Belongs> {
        let packet = packet(bytes, false)?;
        if packet.protocol == IGMP && !packet.fragment && packet.payload.len() >= 8 {
            return self.owned().arp.then(|| self.control());
        }
        if group {
            let local = SocketAddrV4::new(packet.destination, be16(packet.payload, 2)?);
            let datagram = packet.protocol == 17 && !packet.fragment && packet.payload.len() >= UDP;
            return datagram
                .then(|| self.group_listener(local.into(), packet.source.into(), packet.dscp))
                .flatten();
        }
        if packet.fragment {
            let ours = self.owned().fragments && self.is_local(packet.destination);
            return ours.then(|| Belongs::Fragment { domain: self.domains().fragment });
        }
        match packet.protocol {
            1 => self.whose_icmp(packet.destination, packet.payload),
            number => self.classify_flow(&packet, Protocol::numbered(number)?),
        }
    }

    fn classify_flow(&self, packet: &Packet<'_>, protocol: Protocol) -> Option<Belongs> {
        let least = if protocol == Protocol::Tcp { 20 } else { 8 };
        if packet.payload.len() < least {
            return None;
        }
        let remote = SocketAddrV4::new(packet.source, be16(packet.payload, 0)?);
        let local = SocketAddrV4::new(packet.destination, be16(packet.payload, 2)?);
        if let Some(found) = self.flows.lookup(&Flow { protocol, local, remote }) {
            return Some(self.of_flow(protocol, found, packet.payload));
        }
        self.listener(protocol, local.into(), packet.source.into(), packet.dscp)
    }

    /// Where an ICMP message to `local` belongs: for an error, the domain of the flow it is
    /// about.
    pub fn whose_icmp(&self, local: Ipv4Addr, message: &[u8]) -> Option<Belongs> {
        if message.len() < 8 || !self.is_local(local) {
            return None;
        }
        let quoted = self.quoted_flow(message);
        match quoted.and_then(|flow| self.flows.lookup(&flow)) {
            Some(found) => Some(Belongs::Control { domain: found.domain }),
            None => self.quoted_port(quoted.map(|flow| Between {
                protocol: flow.protocol,
                local: flow.local.into(),
                remote: flow.remote.into(),
            })),
        }
    }

    /// The flow that an ICMP error is about, as our own table has it.
    fn quoted_flow(&self, icmp: &[u8]) -> Option<Flow> {
        if !matches!(icmp.first()?, 3 | 11 | 12) {
            return None;
        }
        let packet = packet(icmp.get(8..)?, true)?;
        if packet.fragment || packet.payload.len() < 8 {
            return None;
        }
        Some(Flow {
            protocol: Protocol::numbered(packet.protocol)?,
            local: SocketAddrV4::new(packet.source, be16(packet.payload, 0)?),
            remote: SocketAddrV4::new(packet.destination, be16(packet.payload, 2)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{ClassRule, Domains, Found, Owned};
    extern crate std;
    use proptest::prelude::*;
    use std::vec::Vec;

    const HERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 80);
    const THERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 4000);

    fn tables() -> Tables {
        let tables = Tables::with_room(64, 7);
        let domains = Domains { default: 1, fragment: 2, control: 3 };
        let rule = ClassRule {
            source: Some(((*THERE.ip()).into(), 32)),
            dscp: None,
            local_port: Some(81),
            domain: 6,
        };
        let owned = Owned { arp: true, icmp: true, fragments: true };
        tables.configure(owned, domains, &[rule], &[*HERE.ip()]).unwrap();
        tables
    }

    fn ip(protocol: u8, source: SocketAddrV4, destination: SocketAddrV4, payload: usize) -> Vec<u8> {
        let mut bytes = std::vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
        bytes.extend(source.ip().octets());
        bytes.extend(destination.ip().octets());
        bytes.extend(source.port().to_be_bytes());
        bytes.extend(destination.port().to_be_bytes());
        bytes.resize(20 + payload, 0);
        let total = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&total.to_be_bytes());
        bytes
    }

    fn frame(ip: &[u8]) -> Vec<u8> {
        let mut bytes = std::vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        bytes.extend(ip);
        bytes
    }

    fn flow() -> Flow {
        Flow { protocol: Protocol::Tcp, local: HERE, remote: THERE }
    }

    #[test]
    fn an_exact_entry_comes_first_then_the_port_then_linux() {
        let tables = tables();
        let packet = frame(&ip(6, THERE, HERE, 20));
        assert_eq!(tables.classify(&packet), Belongs::Pass);
        tables.own_port(Protocol::Tcp, None, 80);
        assert_eq!(tables.classify(&packet), Belongs::Listen { domain: 1 });
        tables.flows.insert(&flow(), Found { domain: 4, index: 9 }).unwrap();
        assert_eq!(tables.classify(&packet), Belongs::Path { domain: 4, index: 9 });
    }

    #[test]
    fn frames_of_its_virtual_lan_alone_are_looked_at() {
        let packet = frame(&ip(6, THERE, HERE, 20));
        let on = |vid: u16| {
            let mut tagged = packet.clone();
            tagged.splice(12..12, [[0x81, 0], (vid | 0xe000).to_be_bytes()].concat());
            tagged
        };
        for (vlan, ours, others) in [(0, on(0), on(100)), (100, on(100), packet.clone())] {
            let tables = tables().on_vlan(vlan);
            tables.own_port(Protocol::Tcp, None, 80);
            assert_eq!(tables.classify(&ours), Belongs::Listen { domain: 1 });
            assert_eq!(tables.classify(&others), Belongs::Pass);
            assert_eq!(tables.classify(&on(101)), Belongs::Pass);
            assert!(
                matches!(parcel(&ours), Some(Parcel::Listen(Between { local, .. })) if local == Endpoint::from(HERE))
            );
            assert_eq!(tables.classify(&ours[..17]), Belongs::Pass);
        }
    }

    #[test]
    fn a_rule_chooses_the_listen_path() {
        let tables = tables();
        tables.own_port(Protocol::Tcp, None, 81);
        let to = SocketAddrV4::new(*HERE.ip(), 81);
        assert_eq!(tables.classify(&frame(&ip(6, THERE, to, 20))), Belongs::Listen { domain: 6 });
    }

    #[test]
    fn fragments_arp_and_icmp_have_their_domains() {
        let tables = tables();
        let mut fragment = ip(17, THERE, HERE, 8);
        fragment[6] = 0x20;
        assert_eq!(tables.classify(&frame(&fragment)), Belongs::Fragment { domain: 2 });
        let mut arp = frame(&[0; 28]);
        arp[13] = 6;
        assert_eq!(tables.classify(&arp), Belongs::Control { domain: 3 });
        assert_eq!(tables.classify(&frame(&ip(1, THERE, HERE, 8))), Belongs::Control { domain: 3 });
    }

    #[test]
    fn an_icmp_error_goes_to_the_domain_of_the_flow_it_quotes() {
        let tables = tables();
        tables.flows.insert(&flow(), Found { domain: 4, index: 9 }).unwrap();
        let mut error = ip(1, SocketAddrV4::new(Ipv4Addr::new(1, 2, 3, 4), 0x0304), HERE, 8);
        error[20] = 3;
        error.extend(ip(6, HERE, THERE, 8));
        let total = error.len() as u16;
        error[2..4].copy_from_slice(&total.to_be_bytes());
        assert_eq!(tables.classify(&frame(&error)), Belongs::Control { domain: 4 });
    }

    #[test]
    fn what_is_cut_short_or_for_others_is_linuxs() {
        let tables = tables();
        tables.own_port(Protocol::Tcp, None, 80);
        let whole = frame(&ip(6, THERE, HERE, 20));
        for length in 0..whole.len() {
            assert_eq!(tables.classify(&whole[..length]), Belongs::Pass, "{length} bytes");
        }
        let elsewhere = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 80);
        assert_eq!(tables.classify(&frame(&ip(6, THERE, elsewhere, 20))), Belongs::Pass);
        let mut group = whole;
        group[0] = 1;
        assert_eq!(tables.classify(&group), Belongs::Pass);
    }

    proptest! {
        #[test]
        fn any_bytes_are_classified(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 0u8..3) {
            let tables = tables();
            if bytes.len() > 34 && kind > 0 {
                bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
                bytes[23] = if kind == 1 { 6 } else { 1 };
            }
            let before = tables.flows.count();
            let first = tables.classify(&bytes);
            prop_assert_eq!((tables.classify(&bytes), tables.flows.count()), (first, before));
        }
    }
}
