//! Cutting a large message into packets and completing checksums in software: what a
//! network card does with an [`Offload`] (TSO, USO), for devices that have none. It believes
//! nothing about the bytes: an offload that does not fit them is refused.

use silk_wire::checksum::Sum;
use silk_wire::{eth, extension, ipv4, ipv6};

use crate::{Offload, Refusal, Segment};

const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// Calls `each` with every packet that `message` becomes, in order, checksums complete.
/// `packet` is room to build them in, kept by the caller between calls.
pub(crate) fn cut(
    message: &[u8],
    offload: Offload,
    packet: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]),
) -> Result<(), Refusal> {
    let layout = Layout::of(message, offload)?;
    let size = usize::from(offload.segment.size());
    if size == 0 {
        packet.clear();
        packet.extend_from_slice(message);
        if layout.transport != 0 {
            layout.complete_checksum(packet);
        }
        each(packet);
        return Ok(());
    }
    let (headers, payload) = message.split_at(layout.headers);
    let count = payload.len().div_ceil(size).max(1);
    for at in 0..count {
        let from = (at * size).min(payload.len());
        let to = (from + size).min(payload.len());
        packet.clear();
        packet.extend_from_slice(headers);
        packet.extend_from_slice(&payload[from..to]);
        layout.patch(packet, Place { at, offset: from, last: at + 1 == count });
        each(packet);
    }
    Ok(())
}

/// How the Ethernet frame `packet` is to be cut that is several datagrams of `size` payload bytes; `None` where it is not
/// UDP over IPv4, or over IPv6 behind any extension headers but a fragment's.
pub(crate) fn datagrams(packet: &[u8], size: u16) -> Option<Offload> {
    const UDP: u16 = 8;
    let eth::Frame { kind, payload, .. } = eth::frame(packet).ok()?;
    let ip = match kind {
        eth::IPV4 if payload.get(9) == Some(&ipv4::UDP) => usize::from(payload[0] & 0xf) * 4,
        eth::IPV6 => {
            let chain = extension::walk(*payload.get(6)?, payload.get(ipv6::HEADER..)?).ok()?;
            if chain.protocol != ipv4::UDP || chain.fragment.is_some() {
                return None;
            }
            ipv6::HEADER + chain.length
        }
        _ => return None,
    };
    let transport = u16::try_from(packet.len() - payload.len() + ip).ok()?;
    Some(Offload {
        segment: Segment::Udp(size),
        header_len: transport + UDP,
        ..Offload::checksum(transport, 6)
    })
}

/// Where the headers of a message lie. Invariants, of a message to be cut:
/// `network + 20 <= transport`, `transport + 8 (UDP) or 20 (TCP) <= headers <= message.len()`;
/// of any with a checksum to complete: `checksum + 2 <= message.len()`.
struct Layout {
    segment: Segment,
    /// Where IP's header begins: behind Ethernet's, and a tag if there is one.
    network: usize,
    /// What Ethernet says follows.
    kind: u16,
    transport: usize,
    headers: usize,
    /// Where the checksum field is, in bytes from the start of the frame.
    checksum: usize,
}

/// Which of the packets one is.
struct Place {
    at: usize,
    /// Payload bytes before it.
    offset: usize,
    last: bool,
}

impl Layout {
    fn of(message: &[u8], offload: Offload) -> Result<Self, Refusal> {
        let transport = usize::from(offload.checksum_start);
        let (network, kind) = eth::frame(message)
            .map_or((message.len(), 0), |frame| (message.len() - frame.payload.len(), frame.kind));
        let layout = Self {
            segment: offload.segment,
            network,
            kind,
            transport,
            headers: usize::from(offload.header_len),
            checksum: transport + usize::from(offload.checksum_offset),
        };
        let shortest = match offload.segment {
            Segment::Whole => 0,
            Segment::Tcp4(_) | Segment::Tcp6(_) => 20,
            Segment::Udp(_) => 8,
        };
        let checksum_fits = transport == 0 || layout.checksum + 2 <= message.len();
        let headers_fit = offload.segment == Segment::Whole
            || offload.segment.size() > 0
                && layout.network_fits()
                && transport + shortest <= layout.headers
                && layout.headers <= message.len();
        if checksum_fits && headers_fit { Ok(layout) } else { Err(Refusal::Malformed) }
    }

    fn network_fits(&self) -> bool {
        let shortest = if self.is_ipv6() { 40 } else { 20 };
        self.transport >= self.network + shortest
    }

    fn is_ipv6(&self) -> bool {
        match self.segment {
            Segment::Tcp6(_) => true,
            Segment::Udp(_) => self.kind == eth::IPV6,
            Segment::Whole | Segment::Tcp4(_) => false,
        }
    }

    /// Turns a copy of the headers and one packet's payload into that packet.
    fn patch(&self, packet: &mut [u8], place: Place) {
        if self.is_ipv6() {
            let len = packet.len() - self.network - 40;
            put16(packet, self.network + 4, len as u16);
        } else {
            self.patch_ipv4(packet, place.at);
        }
        if let Segment::Udp(_) = self.segment {
            put16(packet, self.transport + 4, (packet.len() - self.transport) as u16);
        } else {
            self.patch_tcp(packet, &place);
        }
        self.pseudo_header(packet);
        self.complete_checksum(packet);
    }

    fn patch_ipv4(&self, packet: &mut [u8], at: usize) {
        let network = self.network;
        let len = packet.len() - network;
        let identification = take16(packet, network + 4).wrapping_add(at as u16);
        put16(packet, network + 2, len as u16);
        put16(packet, network + 4, identification);
        put16(packet, network + 10, 0);
        let sum = Sum::ZERO.bytes(&packet[network..self.transport]);
        put16(packet, network + 10, sum.checksum());
    }

    fn patch_tcp(&self, packet: &mut [u8], place: &Place) {
        let at = self.transport + 4;
        let sequence = u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
        let sequence = sequence.wrapping_add(place.offset as u32);
        packet[at..at + 4].copy_from_slice(&sequence.to_be_bytes());
        let flags = &mut packet[self.transport + 13];
        if !place.last {
            *flags &= !FIN_PSH;
        }
        if place.at > 0 {
            *flags &= !CWR;
        }
    }

    /// Writes the pseudo-header's sum, with this packet's length, into the checksum field.
    fn pseudo_header(&self, packet: &mut [u8]) {
        let network = self.network;
        let addresses = if self.is_ipv6() { network + 8..network + 40 } else { network + 12..network + 20 };
        // Not what IP's header says comes next: in IPv6 extension headers may (RFC 8200 section 8.1).
        let protocol = if let Segment::Udp(_) = self.segment { ipv4::UDP } else { ipv4::TCP };
        let len = packet.len() - self.transport;
        let sum = Sum::ZERO.bytes(&packet[addresses]).word(protocol.into()).word(len as u16);
        put16(packet, self.checksum, sum.folded());
    }

    /// Turns the pseudo-header's sum in the checksum field into the checksum.
    fn complete_checksum(&self, packet: &mut [u8]) {
        let sum = Sum::ZERO.bytes(&packet[self.transport..]).checksum();
        // RFC 768: a computed zero is sent as all ones; for TCP the two mean the same.
        put16(packet, self.checksum, if sum == 0 { 0xffff } else { sum });
    }
}

fn take16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use silk_wire::checksum;
    use std::net::Ipv4Addr;

    const ETHERNET: usize = eth::HEADER;
    const TCP: usize = ETHERNET + 20;
    const HEADERS: usize = TCP + 32;

    /// A TCP message over IPv4 with twelve bytes of options, FIN, PSH, ACK and CWR set.
    fn tcp(payload: &[u8]) -> Vec<u8> {
        let mut message = vec![0; HEADERS];
        message[12..14].copy_from_slice(&[8, 0]);
        message[ETHERNET] = 0x45;
        message[ETHERNET + 9] = 6;
        message[ETHERNET + 12..TCP].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        message[TCP + 4..TCP + 8].copy_from_slice(&0xffff_fff0u32.to_be_bytes());
        message[TCP + 12] = 8 << 4;
        message[TCP + 13] = 0x99;
        message.extend_from_slice(payload);
        message
    }

    fn packets(message: &[u8], offload: Offload) -> Result<Vec<Vec<u8>>, Refusal> {
        let mut all = Vec::new();
        cut(message, offload, &mut Vec::new(), |packet| all.push(packet.to_vec()))?;
        Ok(all)
    }

    fn is_right(packet: &[u8]) -> bool {
        let len = usize::from(take16(packet, ETHERNET + 2));
        let address =
            |at: usize| Ipv4Addr::from_bits(u32::from_be_bytes(packet[at..at + 4].try_into().unwrap()));
        let pseudo = checksum::pseudo(
            address(ETHERNET + 12),
            address(ETHERNET + 16),
            packet[ETHERNET + 9],
            (packet.len() - TCP) as u16,
        );
        len + ETHERNET == packet.len()
            && Sum::ZERO.bytes(&packet[ETHERNET..TCP]).folded() == 0xffff
            && pseudo.bytes(&packet[TCP..]).folded() == 0xffff
    }

    #[test]
    fn a_message_becomes_packets_that_carry_it_in_order() {
        let payload: Vec<u8> = (0..2500u16).map(|byte| byte as u8).collect();
        let all = packets(&tcp(&payload), Offload::tcp4(1000, TCP as u16, HEADERS as u16)).unwrap();
        assert!(all.iter().all(|packet| is_right(packet)));
        assert_eq!(all.iter().flat_map(|packet| &packet[HEADERS..]).copied().collect::<Vec<_>>(), payload);
        let of = |at: usize| (take16(&all[at], ETHERNET + 4), take16(&all[at], TCP + 6), all[at][TCP + 13]);
        assert_eq!([of(0), of(1), of(2)], [(0, 0xfff0, 0x90), (1, 0x3d8, 0x10), (2, 0x7c0, 0x19)]);
    }

    #[test]
    fn datagrams_behind_options_of_ipv6_have_the_sum_of_udp() {
        const UDP: usize = ETHERNET + ipv6::HEADER + 8;
        let mut message = vec![0; UDP + 8];
        message[12..14].copy_from_slice(&[0x86, 0xdd]);
        message[ETHERNET] = 0x60;
        message[ETHERNET + 6] = 60;
        message[ETHERNET + 8..ETHERNET + 40].copy_from_slice(&[0xfd; 32]);
        message[ETHERNET + 40] = 17;
        message.extend([7; 250]);
        let offload = Offload {
            segment: Segment::Udp(100),
            header_len: (UDP + 8) as u16,
            ..Offload::checksum(UDP as u16, 6)
        };
        let all = packets(&message, offload).unwrap();
        assert_eq!(all.len(), 3);
        for packet in all {
            let len = (packet.len() - UDP) as u16;
            let pseudo = Sum::ZERO.bytes(&packet[ETHERNET + 8..ETHERNET + 40]).word(17).word(len);
            assert_eq!(pseudo.bytes(&packet[UDP..]).folded(), 0xffff);
            assert_eq!((take16(&packet, ETHERNET + 4), take16(&packet, UDP + 4)), (len + 8, len));
        }
    }

    #[test]
    fn a_datagram_batch_becomes_datagrams() {
        let mut message = tcp(&[]);
        message.truncate(TCP + 8);
        message[ETHERNET + 9] = 17;
        message.extend([7; 250]);
        let offload = Offload {
            segment: Segment::Udp(100),
            header_len: (TCP + 8) as u16,
            ..Offload::checksum(TCP as u16, 6)
        };
        let all = packets(&message, offload).unwrap();
        assert!(all.iter().all(|packet| is_right(packet)));
        assert_eq!(all.iter().map(|packet| take16(packet, TCP + 4)).collect::<Vec<_>>(), [108, 108, 58]);
    }

    proptest! {
        #[test]
        fn no_offload_makes_it_panic(
            message in proptest::collection::vec(any::<u8>(), 0..200),
            kind in 0..4usize, size: u16, header_len in 0..220u16,
            checksum_start in 0..220u16, checksum_offset in prop_oneof![0..20u16, any::<u16>()],
        ) {
            let segment = [Segment::Whole, Segment::Tcp4(size), Segment::Tcp6(size), Segment::Udp(size)][kind];
            let offload = Offload { segment, header_len, checksum_start, checksum_offset };
            let carried: usize = match packets(&message, offload) {
                Ok(all) => all.iter().map(|packet| packet.len()).sum(),
                Err(why) => { prop_assert_eq!(why, Refusal::Malformed); message.len() }
            };
            prop_assert!(carried >= message.len());
        }
    }
}
