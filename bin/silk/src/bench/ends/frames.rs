//! Frames that are made by hand, for floods: SYNs from addresses nobody has, and small datagrams.

use silk_wire::checksum::pseudo;
use silk_wire::{MacAddr, eth, ipv4, tcp, udp};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Bytes of a datagram's data.
const DATA: usize = 64 - udp::HEADER - ipv4::HEADER;
/// Where IP's header begins.
const IP: usize = eth::HEADER;
/// Where the header behind IP's begins.
const BEHIND: usize = IP + ipv4::HEADER;
/// A SYN's only option: a maximum segment size of 1 460 bytes.
const MSS: [u8; 4] = [2, 4, 5, 180];

/// A SYN with its checksum, from `from`.
pub fn syn(macs: [MacAddr; 2], from: SocketAddrV4, to: SocketAddrV4, seq: u32) -> [u8; BEHIND + 24] {
    let mut frame = [0; BEHIND + 24];
    headers(&mut frame, macs, (*from.ip(), *to.ip()), ipv4::TCP);
    let segment = &mut frame[BEHIND..];
    segment[tcp::HEADER..].copy_from_slice(&MSS);
    let header = tcp::Emit {
        source: from.port(),
        destination: to.port(),
        seq,
        flags: tcp::flag::SYN,
        window: 64_240,
        ..Default::default()
    };
    header.emit(MSS.len(), segment);
    let length = segment.len() as u16;
    let checksum = pseudo(*from.ip(), *to.ip(), ipv4::TCP, length).bytes(segment).checksum();
    segment[tcp::CHECKSUM..tcp::CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// A datagram that is an IP packet of 64 bytes.
pub fn datagram(macs: [MacAddr; 2], from: SocketAddrV4, to: SocketAddrV4) -> [u8; BEHIND + 44] {
    let mut frame = [0; BEHIND + udp::HEADER + DATA];
    headers(&mut frame, macs, (*from.ip(), *to.ip()), ipv4::UDP);
    let datagram = &mut frame[BEHIND..];
    udp::emit(from.port(), to.port(), DATA as u16, 0, datagram);
    let whole = pseudo(*from.ip(), *to.ip(), ipv4::UDP, datagram.len() as u16).bytes(datagram);
    datagram[udp::CHECKSUM..udp::CHECKSUM + 2].copy_from_slice(&udp::seal(whole).to_be_bytes());
    frame
}

/// The headers of Ethernet, from the first station to the second, and IP.
fn headers(frame: &mut [u8], [from, to]: [MacAddr; 2], ips: (Ipv4Addr, Ipv4Addr), protocol: u8) {
    let payload_len = (frame.len() - BEHIND) as u16;
    eth::Header::new(to, from, eth::IPV4).emit(frame);
    let (source, destination) = ips;
    let ip = ipv4::Emit { protocol, source, destination, payload_len, ..Default::default() };
    ip.emit(&mut frame[IP..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1])];
    const FROM: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 18, 3, 4), 40_000);
    const TO: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 99, 0, 1), 7000);

    #[test]
    fn a_syn_is_one_to_whoever_checks_it() {
        let frame = syn(MACS, FROM, TO, 17);
        let ip = ipv4::parse(&frame[IP..]).unwrap();
        assert_eq!((ip.header.source(), ip.header.destination()), (*FROM.ip(), *TO.ip()));
        assert_eq!(pseudo(*FROM.ip(), *TO.ip(), ipv4::TCP, 24).bytes(&frame[BEHIND..]).folded(), 0xffff);
        assert_eq!(frame[BEHIND + 13], tcp::flag::SYN);
    }

    #[test]
    fn a_datagram_is_a_packet_of_64_bytes() {
        let frame = datagram(MACS, FROM, TO);
        assert_eq!(ipv4::parse(&frame[IP..]).unwrap().header.total_len(), 64);
        assert_eq!(pseudo(*FROM.ip(), *TO.ip(), ipv4::UDP, 44).bytes(&frame[BEHIND..]).folded(), 0xffff);
    }
}
