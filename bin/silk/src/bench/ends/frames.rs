//! Frames that are made by hand, for floods: SYNs from addresses nobody has, and small datagrams.

use silk_device::{Offload, Segment};
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

/// Bytes of a SYN's frame.
pub const SYN: usize = BEHIND + tcp::HEADER + MSS.len();

/// A SYN with its checksum, from `from`.
pub fn syn(macs: [MacAddr; 2], from: SocketAddrV4, to: SocketAddrV4, seq: u32) -> [u8; SYN] {
    let mut frame = [0; SYN];
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

/// `count` datagrams that are IP packets of 64 bytes each, as one message, and how to cut it up.
pub fn datagrams(
    macs: [MacAddr; 2],
    from: SocketAddrV4,
    to: SocketAddrV4,
    count: usize,
) -> (Vec<u8>, Offload) {
    let mut message = vec![0; BEHIND + udp::HEADER + count * DATA];
    headers(&mut message, macs, (*from.ip(), *to.ip()), ipv4::UDP);
    let length = (message.len() - BEHIND) as u16;
    let unfinished = pseudo(*from.ip(), *to.ip(), ipv4::UDP, length).folded();
    udp::emit(from.port(), to.port(), (count * DATA) as u16, unfinished, &mut message[BEHIND..]);
    let offload = Offload {
        segment: Segment::Udp(DATA as u16),
        header_len: (BEHIND + udp::HEADER) as u16,
        checksum_start: BEHIND as u16,
        checksum_offset: 6,
    };
    (message, offload)
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
    use silk_wire::checksum::Sum;

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
    fn datagrams_are_packets_of_64_bytes() {
        let (mut message, offload) = datagrams(MACS, FROM, TO, 3);
        let packet = ipv4::parse(&message[IP..]).unwrap();
        assert_eq!(packet.header.total_len(), ipv4::HEADER + udp::HEADER + 3 * DATA);
        assert_eq!(offload.segment.size() as usize + udp::HEADER + ipv4::HEADER, 64);
        assert_eq!(usize::from(offload.header_len), message.len() - 3 * DATA);
        // As whoever cuts it up completes it.
        let start = usize::from(offload.checksum_start);
        let field = start + usize::from(offload.checksum_offset);
        let checksum = Sum::ZERO.bytes(&message[start..]).checksum();
        message[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        let length = message[start..].len() as u16;
        assert_eq!(pseudo(*FROM.ip(), *TO.ip(), ipv4::UDP, length).bytes(&message[start..]).folded(), 0xffff);
    }
}
