//! The specification for IPv6, steps 7 to 10 of [`layout`](super::layout): the same questions as
//! for IPv4, asked behind extension headers. Looks at bytes alone; no input panics.

use super::fields::{be16, ipv6};
use super::flow::{Between, Protocol};
use super::layout::{EXTENSION_BYTES, EXTENSIONS};
use super::{Belongs, Tables};
use crate::Endpoint;
use crate::module::Parcel;
use core::net::{IpAddr, Ipv6Addr};

const IPV6: usize = 40;
const ICMP: u8 = 58;
const FRAGMENT: u8 = 44;
/// An echo request (RFC 4443 §4.1).
const ECHO_REQUEST: u8 = 128;
/// Everybody on the link (RFC 4291 §2.7.1).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// An IPv6 packet as far as it matters here.
struct Packet<'p> {
    protocol: u8,
    fragment: bool,
    dscp: u8,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    // Behind the extension headers, up to the packet's own end.
    payload: &'p [u8],
}

/// Steps 7 to 9 of the specification up to whose the packet is.
fn packet(bytes: &[u8]) -> Option<Packet<'_>> {
    let length = usize::from(be16(bytes, 4)?);
    let rest = bytes.get(IPV6..)?.get(..length)?;
    if bytes[0] >> 4 != 6 {
        return None;
    }
    let (protocol, fragment, payload) = skip_extensions(bytes[6], rest)?;
    Some(Packet {
        protocol,
        fragment,
        dscp: (be16(bytes, 0)? >> 6 & 0x3f) as u8,
        source: ipv6(bytes, 8)?,
        destination: ipv6(bytes, 24)?,
        payload,
    })
}

/// What is behind the extension headers in `bytes`, the first of which is of kind `first`, whether
/// it is a fragment, and its bytes: step 7. `None`: there are too many of them, or they are cut short.
pub fn skip_extensions(first: u8, bytes: &[u8]) -> Option<(u8, bool, &[u8])> {
    let (mut kind, mut at) = (first, 0);
    for nth in 0..=EXTENSIONS {
        let rest = bytes.get(at..).filter(|_| at <= EXTENSION_BYTES)?;
        let length = match (kind, rest) {
            (0 | 43 | 44 | 60, _) if nth == EXTENSIONS => return None,
            (0 | 43 | 60, [_, length, ..]) => (usize::from(*length) + 1) * 8,
            (44, [next, _, high, low, ..]) if (high, low & 0xf9) != (&0, 0) => {
                let bytes = rest.get(8..).filter(|_| at + 8 <= EXTENSION_BYTES)?;
                return Some((*next, true, bytes));
            }
            (44, _) => 8,
            (0 | 43 | 60, _) => return None,
            _ => return Some((kind, false, rest)),
        };
        kind = *rest.first()?;
        at += length;
    }
    None
}

/// Which module is to be asked whose a packet is that has no exact entry.
pub(super) fn parcel(bytes: &[u8]) -> Option<Parcel> {
    let packet = packet(bytes)?;
    if packet.fragment {
        return Some(Parcel::Fragment6);
    }
    match (packet.protocol, *packet.payload.first()?) {
        (ICMP, 130..=132) => Some(Parcel::Groups6),
        (ICMP, 133..=137) => Some(Parcel::Discovery),
        (ICMP, _) => Some(Parcel::Icmp6),
        (number, _) => {
            let local = Endpoint::v6(packet.destination, be16(packet.payload, 2)?);
            let remote = Endpoint::v6(packet.source, be16(packet.payload, 0)?);
            Some(Parcel::Listen(Between { protocol: Protocol::numbered(number)?, local, remote }))
        }
    }
}

impl Tables {
    /// Where an IPv6 packet belongs; `group`: it was sent to a group of stations. A call of its
    /// own, so that what IPv4's packets run through stays as short as it was.
    #[inline(never)]
    pub(super) fn classify_ip6(&self, bytes: &[u8], group: bool) -> Option<Belongs> {
        let packet = packet(bytes)?;
        if packet.fragment {
            let ours = !group && self.owned().fragments && self.is_local(packet.destination);
            return ours.then(|| Belongs::Fragment { domain: self.domains().fragment });
        }
        if packet.protocol == ICMP {
            return self.whose_icmp6(packet.destination, packet.payload, group);
        }
        if group {
            let local = Endpoint::v6(packet.destination, be16(packet.payload, 2)?);
            let datagram = packet.protocol == 17 && packet.payload.len() >= 8;
            return datagram.then(|| self.group_listener(local, packet.source.into(), packet.dscp)).flatten();
        }
        let protocol = Protocol::numbered(packet.protocol)?;
        let least = if protocol == Protocol::Tcp { 20 } else { 8 };
        if packet.payload.len() < least {
            return None;
        }
        let remote = Endpoint::v6(packet.source, be16(packet.payload, 0)?);
        let local = Endpoint::v6(packet.destination, be16(packet.payload, 2)?);
        self.whose(&Between { protocol, local, remote }, packet.dscp, packet.payload)
    }

    /// Where an ICMPv6 message to `local` belongs: for an error, the domain of the flow it is
    /// about. `group`: it was sent to a group of stations.
    pub fn whose_icmp6(&self, local: Ipv6Addr, message: &[u8], group: bool) -> Option<Belongs> {
        if message.len() < 8 {
            return None;
        }
        if matches!(message[0], 130..=137) {
            return self.owned().arp.then(|| self.control());
        }
        if group {
            let pings_all = message[0] == ECHO_REQUEST && local == ALL_NODES;
            return (pings_all && self.owned().icmp).then(|| self.control());
        }
        if !self.is_local(IpAddr::V6(local)) {
            return None;
        }
        let quoted = quoted_flow(message);
        match quoted.and_then(|flow| self.flows.lookup(&flow)) {
            Some(found) => Some(Belongs::Control { domain: found.domain }),
            None => self.quoted_port(quoted),
        }
    }
}

/// The flow that an ICMPv6 error is about, as our own table has it.
fn quoted_flow(message: &[u8]) -> Option<Between> {
    if !matches!(message[0], 1..=4) {
        return None;
    }
    let quote = message.get(8..).filter(|quote| quote.len() >= IPV6 + 8 && quote[0] >> 4 == 6)?;
    let (kind, ends) = match quote[IPV6..] {
        // Of a datagram that we have cut up the first piece has the ports.
        [next, _, 0, low, _, _, _, _, ref rest @ ..] if quote[6] == FRAGMENT && low & !7 == 0 => (next, rest),
        ref rest => (quote[6], rest),
    };
    let ends = ends.get(..8)?;
    Some(Between {
        protocol: Protocol::numbered(kind)?,
        local: Endpoint::v6(ipv6(quote, 8)?, be16(ends, 0)?),
        remote: Endpoint::v6(ipv6(quote, 24)?, be16(ends, 2)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{ClassRule, Domains, Found, Owned};
    extern crate std;
    use proptest::prelude::*;
    use std::vec::Vec;

    const HERE: Endpoint = Endpoint::v6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), 80);
    const THERE: Endpoint = Endpoint::v6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9), 4000);

    fn tables() -> Tables {
        let tables = Tables::with_room(64, 7);
        let domains = Domains { default: 1, fragment: 2, control: 3 };
        let source = Some((THERE.ip(), 128));
        let rule = ClassRule { source, dscp: Some(46), local_port: None, domain: 6 };
        let owned = Owned { arp: true, icmp: true, fragments: true };
        tables.configure(owned, domains, &[rule], &[HERE.ip()]).unwrap();
        tables
    }

    /// A packet of `next`, whose transport begins with the ports and has `payload` bytes.
    fn ip(next: u8, extensions: &[u8], source: Endpoint, destination: Endpoint, payload: usize) -> Vec<u8> {
        let mut bytes = std::vec![0x60, 0, 0, 0, 0, 0, next, 64];
        bytes.extend(source.ipv6().unwrap().octets());
        bytes.extend(destination.ipv6().unwrap().octets());
        bytes.extend(extensions);
        bytes.extend(source.port().to_be_bytes());
        bytes.extend(destination.port().to_be_bytes());
        bytes.resize(IPV6 + extensions.len() + payload, 0);
        with_length(bytes)
    }

    fn with_length(mut bytes: Vec<u8>) -> Vec<u8> {
        let length = (bytes.len() - IPV6) as u16;
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    fn frame(ip: &[u8]) -> Vec<u8> {
        let mut bytes = std::vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
        bytes.extend(ip);
        bytes
    }

    fn flow() -> Between {
        Between { protocol: Protocol::Tcp, local: HERE, remote: THERE }
    }

    #[test]
    fn an_exact_entry_comes_first_then_the_port_then_linux() {
        let tables = tables();
        let packet = frame(&ip(6, &[], THERE, HERE, 20));
        assert_eq!(tables.classify(&packet), Belongs::Pass);
        tables.own_port(Protocol::Tcp, Some(HERE.ip()), 80);
        assert_eq!(tables.classify(&packet), Belongs::Listen { domain: 1 });
        let mut hurried = packet.clone();
        hurried[14..16].copy_from_slice(&[0x6b, 0x80]);
        assert_eq!(tables.classify(&hurried), Belongs::Listen { domain: 6 });
        tables.flows.insert(&flow(), Found { domain: 4, index: 9 }).unwrap();
        assert_eq!(tables.classify(&packet), Belongs::Path { domain: 4, index: 9 });
    }

    #[test]
    fn extension_headers_are_skipped_as_far_as_they_are_reasonable() {
        let tables = tables();
        tables.own_port(Protocol::Tcp, None, 80);
        let listen = Belongs::Listen { domain: 1 };
        let behind =
            |next: u8, extensions: &[u8]| tables.classify(&frame(&ip(next, extensions, THERE, HERE, 20)));
        let option = |next: u8, units: u8| {
            let mut bytes = std::vec![0; 8 * usize::from(units)];
            (bytes[0], bytes[1]) = (next, units - 1);
            bytes
        };
        assert_eq!(behind(60, &option(6, 16)), listen);
        assert_eq!(behind(60, &option(6, 17)), Belongs::Pass, "too many bytes");
        let chain = |kinds: &[u8]| kinds.iter().flat_map(|next| option(*next, 1)).collect::<Vec<u8>>();
        assert_eq!(behind(0, &chain(&[43, 60, 44, 6])), listen, "with an atomic fragment");
        assert_eq!(behind(0, &chain(&[43, 60, 44, 60, 6])), Belongs::Pass, "too many");
        let mut piece = chain(&[43, 60, 60, 44, 6]);
        piece[35] = 1;
        assert_eq!(behind(0, &piece), Belongs::Pass, "a fragment header counts");
        assert_eq!(behind(51, &option(6, 1)), Belongs::Pass, "what we do not know is Linux's");
    }

    #[test]
    fn fragments_discovery_and_icmp_have_their_domains() {
        let tables = tables();
        let fragment = [17, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(
            tables.classify(&frame(&ip(44, &fragment, THERE, HERE, 8))),
            Belongs::Fragment { domain: 2 }
        );
        let control = Belongs::Control { domain: 3 };
        let to_group = |group: &str, kind| {
            let mut message = ip(ICMP, &[], THERE, Endpoint::v6(group.parse().unwrap(), 0), 24);
            message[IPV6] = kind;
            let mut message = frame(&message);
            message[0] = 0x33;
            message
        };
        let classify = |group: &str, kind| tables.classify(&to_group(group, kind));
        assert_eq!(classify("ff02::1:ff00:1", 135), control);
        assert_eq!(classify("ff02::1:ff00:1", 128), Belongs::Pass, "a ping to a group");
        assert_eq!(classify("ff02::1", 128), control, "a ping to everybody");
        assert_eq!(classify("ff02::1", 129), Belongs::Pass, "an answer to everybody");
        let shared = self::tables();
        shared.configure(Owned::default(), Domains::default(), &[], &[HERE.ip()]).unwrap();
        assert_eq!(shared.classify(&to_group("ff02::1", 128)), Belongs::Pass, "Linux answers");
        let mut ping = ip(ICMP, &[], THERE, HERE, 8);
        ping[IPV6] = 128;
        assert_eq!(tables.classify(&frame(&ping)), control);
    }

    #[test]
    fn an_error_goes_to_the_domain_of_the_flow_it_quotes() {
        let tables = tables();
        tables.flows.insert(&flow(), Found { domain: 4, index: 9 }).unwrap();
        let mut error = ip(ICMP, &[], Endpoint::v6(Ipv6Addr::LOCALHOST, 0), HERE, 8);
        error[IPV6] = 2;
        error.extend(ip(6, &[], HERE, THERE, 8));
        assert_eq!(tables.classify(&frame(&with_length(error))), Belongs::Control { domain: 4 });
    }

    #[test]
    fn so_does_one_that_quotes_the_first_fragment_of_a_datagram() {
        let tables = tables();
        tables.configure(Owned::default(), Domains::default(), &[], &[HERE.ip()]).unwrap();
        let datagrams = Between { protocol: Protocol::Udp, ..flow() };
        tables.flows.insert(&datagrams, Found { domain: 4, index: 9 }).unwrap();
        let quoting = |offset: u16, length: usize| {
            let mut error = ip(ICMP, &[], Endpoint::v6(Ipv6Addr::LOCALHOST, 0), HERE, 8);
            error[IPV6] = 2;
            let header = [&[17, 0][..], &offset.to_be_bytes(), &[0, 0, 0, 7]].concat();
            error.extend(ip(44, &header, HERE, THERE, length));
            tables.classify(&frame(&with_length(error)))
        };
        let flows = Belongs::Control { domain: 4 };
        assert_eq!([quoting(1, 8), quoting(0, 8)], [flows; 2], "one of several, or the only one");
        assert_eq!([quoting(9, 8), quoting(1, 7)], [Belongs::Pass; 2], "a later one, or too little of it");
    }

    #[test]
    fn what_is_cut_short_or_for_others_is_linuxs() {
        let tables = tables();
        tables.own_port(Protocol::Tcp, None, 80);
        let whole = frame(&ip(6, &[], THERE, HERE, 20));
        for length in 0..whole.len() {
            assert_eq!(tables.classify(&whole[..length]), Belongs::Pass, "{length} bytes");
        }
        let elsewhere = Endpoint::v6(Ipv6Addr::LOCALHOST, 80);
        assert_eq!(tables.classify(&frame(&ip(6, &[], THERE, elsewhere, 20))), Belongs::Pass);
        let mut group = whole;
        group[0] = 0x33;
        assert_eq!(tables.classify(&group), Belongs::Pass);
    }

    proptest! {
        #[test]
        fn any_bytes_are_classified(mut bytes in proptest::collection::vec(any::<u8>(), 0..160), next in 0usize..6) {
            let tables = tables();
            if bytes.len() > 54 {
                bytes[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
                bytes[20] = [6, 17, 58, 0, 44, 60][next];
                let length = (bytes.len() - 54) as u16;
                bytes[18..20].copy_from_slice(&length.to_be_bytes());
            }
            let before = tables.flows.count();
            let first = tables.classify(&bytes);
            prop_assert_eq!((tables.classify(&bytes), tables.flows.count()), (first, before));
        }
    }
}
