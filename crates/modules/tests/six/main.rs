//! IPv6 between two hosts in memory: echo, datagrams, and errors; neighbours, fragments and connections in files of their own.

mod connections;
mod fragments;
mod neighbours;
#[path = "../rig/mod.rs"]
mod rig;

use core::net::Ipv6Addr;
use core::time::Duration;
use rig::{Handle, Host, Options, exchange, ip6, mac, stream};
use silk_modules::Standing;
use silk_modules::ip::Routes;
use silk_modules::ip6::Ip6;
use silk_modules::nd::Nd;
use silk_path::{Attr, Attrs, Checksum, DropReason, Endpoint, Event, Outcome, Parcel, PathId};
use silk_wire::extension::{self, Fragment};
use silk_wire::{MacAddr, checksum, eth, icmpv6, ipv4, ipv6, ndp, tcp};

fn at(n: u8, port: u16) -> Endpoint {
    Endpoint::v6(ip6(n), port)
}

fn any(port: u16) -> Endpoint {
    Endpoint::v6(Ipv6Addr::UNSPECIFIED, port)
}

fn local(n: u8, port: u16) -> Attrs {
    Attrs::new().with(Attr::Local(at(n, port)))
}

/// Two hosts that have asked whether their addresses are free, and know each other.
fn pair() -> (Host, Host) {
    let (mut a, mut b) = (Host::six(1), Host::six(2));
    exchange(&mut a, &mut b);
    for (host, n) in [(&mut a, 2), (&mut b, 1)] {
        let now = host.world.now;
        let nd = host.paths.module_mut::<Nd>().unwrap();
        nd.learn(now, (0, ip6(n)), Some(MacAddr(mac(n))), &mut host.world);
        host.advance(Duration::from_secs(2));
    }
    (a, b)
}

fn path_of(host: &Host, top: &str) -> PathId {
    let top = host.module(top);
    host.paths.iter().find(|path| path.state.top == top).expect("made with the host").id()
}

fn frame(to: [u8; 6], from: u8, packet: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; eth::HEADER];
    eth::Header::new(MacAddr(to), MacAddr(mac(from)), eth::IPV6).emit(&mut bytes);
    bytes.extend_from_slice(packet);
    bytes
}

/// A packet for host 1 from host 9 of these bytes behind its fixed header.
fn packet(next_header: u8, source: Ipv6Addr, hop_limit: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ipv6::HEADER];
    let payload_len = payload.len() as u16;
    let destination = ip6(1);
    ipv6::Emit { next_header, source, destination, hop_limit, payload_len, ..Default::default() }
        .emit(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// An ICMPv6 message for host 1 from host 9.
fn icmp(source: Ipv6Addr, hop_limit: u8, message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    icmpv6::seal(checksum::pseudo6(source, ip6(1), ipv6::ICMP, message.len() as u16), &mut message);
    frame(mac(1), 9, &packet(ipv6::ICMP, source, hop_limit, &message))
}

fn answer(target: Ipv6Addr, link: [u8; 6]) -> Vec<u8> {
    let mut message = [0; ndp::MESSAGE];
    ndp::emit_advertisement(target, MacAddr(link), (true, true), &mut message);
    message.to_vec()
}

/// What a host has sent, as packets with where they go.
fn packets(host: &mut Host) -> Vec<([u8; 6], Vec<u8>)> {
    let sent = host.sent().into_iter();
    sent.map(|frame| (eth::parse(&frame).unwrap().0.destination.0, frame[eth::HEADER..].to_vec())).collect()
}

#[test]
fn a_ping_comes_back() {
    let (mut host, _) = pair();
    let mut ping = vec![0; icmpv6::HEADER];
    ping.extend_from_slice(b"are you there?");
    icmpv6::emit_echo_request(77, &mut ping);
    assert_eq!(host.arrive(&icmp(ip6(2), 64, &ping)), Some(Outcome::Done));
    let (_, reply) = packets(&mut host).remove(0);
    let read = ipv6::parse(&reply).unwrap();
    let pseudo = checksum::pseudo6(ip6(1), ip6(2), ipv6::ICMP, read.payload.len() as u16);
    let expected = icmpv6::Message::EchoReply { ticket: 77, data: b"are you there?" };
    assert_eq!(icmpv6::parse(read.payload, silk_wire::Accept::Full, pseudo), Ok(expected));
}

// RFC 4443 §4.2.
#[test]
fn a_ping_to_all_nodes_is_answered_from_our_address() {
    let (mut host, _) = pair();
    let all: Ipv6Addr = "ff02::1".parse().unwrap();
    let mut ping = |kind: u8, destination: Ipv6Addr| {
        let mut message = vec![0; icmpv6::HEADER + 8];
        icmpv6::emit_echo_request(77, &mut message);
        message[0] = kind;
        icmpv6::seal(checksum::pseudo6(ip6(2), destination, ipv6::ICMP, 16), &mut message);
        let mut packet = packet(ipv6::ICMP, ip6(2), 1, &message);
        packet[24..40].copy_from_slice(&destination.octets());
        host.arrive(&frame(ipv6::group(destination), 2, &packet));
        packets(&mut host).pop().map(|(to, reply)| {
            let read = ipv6::parse(&reply).unwrap();
            let pseudo = checksum::pseudo6(ip6(1), ip6(2), ipv6::ICMP, 16);
            let reply = icmpv6::parse(read.payload, silk_wire::Accept::Full, pseudo);
            assert_eq!(reply, Ok(icmpv6::Message::EchoReply { ticket: 77, data: &[0; 8] }));
            (to, read.header.source())
        })
    };
    assert_eq!(ping(128, all), Some((mac(2), ip6(1))));
    assert_eq!(ping(129, all), None, "an answer");
    assert_eq!(ping(128, "ff02::2".parse().unwrap()), None, "all routers");
}

// RFC 4443 §3.1 and §3.4, RFC 8200 §4 and §4.7.
#[test]
fn of_what_nobody_takes_the_sender_is_told() {
    let (mut host, _) = pair();
    let mut told = |next_header: u8, payload: &[u8], why| {
        let frame = frame(mac(1), 2, &packet(next_header, ip6(2), 64, payload));
        assert_eq!(host.arrive_for_nobody(&frame, &Parcel::Nobodys6), Outcome::Dropped(why));
        packets(&mut host).pop().map(|(to, error)| {
            assert_eq!(to, mac(2));
            let read = ipv6::parse(&error).unwrap();
            (
                read.payload[..2].to_vec(),
                read.payload[4..8].to_vec(),
                read.payload[8..] == frame[eth::HEADER..],
            )
        })
    };
    let (port, unknown) =
        (Some((vec![1, 4], vec![0; 4], true)), |at| Some((vec![4, 1], vec![0, 0, 0, at], true)));
    let mut datagram = [0, 9, 0, 9, 0, 8, 0, 0];
    assert_eq!(told(ipv4::UDP, &datagram, DropReason::UdpChecksum), None, "without a checksum");
    let pseudo = checksum::pseudo6(ip6(2), ip6(1), ipv4::UDP, 8);
    let right = pseudo.bytes(&datagram).checksum().to_be_bytes();
    datagram[6..].copy_from_slice(&right);
    assert_eq!(told(ipv4::UDP, &datagram, DropReason::UdpNoPort), port);
    datagram[7] ^= 1;
    assert_eq!(told(ipv4::UDP, &datagram, DropReason::UdpChecksum), None, "with another's");
    assert_eq!(told(253, b"whatever", DropReason::IpProtocol), unknown(6));
    // Behind options that mean nothing.
    assert_eq!(told(60, b"\xfd\0\x01\x04\0\0\0\0whatever", DropReason::IpProtocol), unknown(40));
    assert_eq!(told(59, b"", DropReason::IpProtocol), None, "nothing follows");
    assert_eq!(told(ipv4::TCP, &[0; 20], DropReason::TcpNoPort), None, "TCP resets");
}

// RFC 4443 §2.4 e.3.
#[test]
fn of_what_was_sent_to_a_group_and_nobody_takes_nobody_is_told() {
    let (mut host, _) = pair();
    let group: Ipv6Addr = "ff15::fb".parse().unwrap();
    assert!(host.tables.hear(group.into()));
    let mut bytes = packet(253, ip6(2), 64, b"whatever");
    bytes[24..40].copy_from_slice(&group.octets());
    let outcome = host.arrive_for_nobody(&frame(mac(1), 2, &bytes), &Parcel::Nobodys6);
    assert_eq!((outcome, host.sent().len()), (Outcome::Dropped(DropReason::IpProtocol), 0));
}

#[test]
fn an_error_quotes_the_packet_and_not_what_a_link_has_put_behind_it() {
    let (mut host, _) = pair();
    let bytes = packet(253, ip6(2), 64, b"abc");
    let padded = [&frame(mac(1), 2, &bytes)[..], &[0; 3]].concat();
    host.arrive_for_nobody(&padded, &Parcel::Nobodys6);
    let (_, told) = packets(&mut host).remove(0);
    assert_eq!(ipv6::parse(&told).unwrap().payload[8..], bytes);
}

#[test]
fn a_datagram_comes_back_from_the_echo_path() {
    let (mut client, mut server) = (Host::six(1), Host::six(2));
    server.create("echo", Attrs::new().with(Attr::Local(any(7))));
    let socket = client.create("socket", local(1, 5000));
    assert_eq!(client.send(socket, at(2, 7), b"hello, paths"), Outcome::Done);
    exchange(&mut client, &mut server);
    assert_eq!(client.world.delivered, [(socket, at(2, 7), b"hello, paths".to_vec())]);
}

// RFC 8200 §8.1.
#[test]
fn a_datagram_without_a_checksum_is_dropped() {
    let (mut host, _) = pair();
    let echo = host.create("echo", Attrs::new().with(Attr::Local(any(7))));
    let datagram = [0x13, 0x88, 0, 7, 0, 9, 0, 0, b'x'];
    let outcome = host.arrive(&frame(mac(1), 9, &packet(17, ip6(9), 64, &datagram)));
    assert_eq!(outcome, Some(Outcome::Dropped(DropReason::UdpChecksum)));
    assert_eq!(host.drops(echo, DropReason::UdpChecksum), 1);
}

// RFC 9293 MUST-63.
#[test]
fn impossible_sources_are_dropped() {
    let (mut host, _) = pair();
    host.create("echo", Attrs::new().with(Attr::Local(any(7))));
    for source in ["fd00::1", "::1", "ff02::1", "::", "::ffff:10.0.0.9"] {
        let source: Ipv6Addr = source.parse().unwrap();
        let outcome =
            host.arrive(&frame(mac(1), 9, &packet(17, source, 64, &[0x13, 0x88, 0, 7, 0, 8, 1, 1])));
        assert_eq!(outcome, Some(Outcome::Dropped(DropReason::IpBadSource)), "{source}");
    }
    assert!(host.sent().is_empty());
}

// RFC 5095, RFC 8200 §4.2 and §4.4.
#[test]
fn a_header_that_must_be_refused_is_and_its_sender_told_within_a_limit() {
    let (mut host, _) = pair();
    host.create("echo", Attrs::new().with(Attr::Local(any(7))));
    let routed = |left| {
        let bytes = [[17, 0, 0, left, 0, 0, 0, 0], [0x13, 0x88, 0, 7, 0, 8, 1, 1]].concat();
        frame(mac(1), 2, &packet(extension::ROUTING, ip6(2), 64, &bytes))
    };
    // RFC 8200 §4.4: with nobody left to visit it is as if it were not there.
    assert_eq!(host.arrive(&routed(0)), Some(Outcome::Dropped(DropReason::UdpChecksum)));
    let routed = routed(1);
    assert_eq!(host.arrive(&routed), Some(Outcome::Dropped(DropReason::IpRouting)));
    let (_, told) = packets(&mut host).remove(0);
    let read = ipv6::parse(&told).unwrap();
    assert_eq!((read.payload[..2].to_vec(), &read.payload[4..8]), (vec![4, 0], &[0, 0, 0, 42][..]));
    assert_eq!(&read.payload[8..], &routed[eth::HEADER..], "the whole packet is quoted");
    let told = (0..2000).filter(|_| {
        host.arrive(&routed);
        !host.sent().is_empty()
    });
    assert!(told.count() < 60, "a limit");
}

// RFC 4443 §2.4 e.
#[test]
fn groups_and_errors_are_no_reason_for_another_error_unless_it_is_asked_for() {
    let (mut host, _) = pair();
    let group: Ipv6Addr = "ff02::fb".parse().unwrap();
    assert!(host.tables.hear(group.into()));
    host.create("echo", Attrs::new().with(Attr::Local(any(7))));
    let mut refused = |option: u8, destination: Ipv6Addr, behind: (u8, &[u8])| {
        let mut bytes = packet(extension::DESTINATION, ip6(2), 64, &[behind.0, 0, option, 4, 0, 0, 0, 0]);
        bytes.extend_from_slice(behind.1);
        let length = (bytes.len() - ipv6::HEADER) as u16;
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        bytes[24..40].copy_from_slice(&destination.octets());
        let to = if destination.is_multicast() { ipv6::group(destination) } else { mac(1) };
        host.arrive(&frame(to, 2, &bytes));
        host.sent().len()
    };
    let datagram: (u8, &[u8]) = (17, &[0x13, 0x88, 0, 7, 0, 8, 1, 1]);
    assert_eq!([refused(0xc1, ip6(1), datagram), refused(0x81, ip6(1), datagram)], [1, 1]);
    assert_eq!([refused(0xc1, group, datagram), refused(0x81, group, datagram)], [0, 1]);
    let error: (u8, &[u8]) = (ipv6::ICMP, &[1, 4, 0, 0, 0, 0, 0, 0]);
    let question: (u8, &[u8]) = (ipv6::ICMP, &[128, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!([refused(0x81, ip6(1), error), refused(0x81, ip6(1), question)], [0, 1]);
}

// RFC 8201 §4, §5.2, §5.3.
#[test]
fn what_a_router_says_of_a_path_counts_for_a_while_on_the_path_that_is_there_too() {
    let (mut host, _) = pair();
    let socket = host.create("socket", local(1, 5000).with(Attr::Remote(at(2, 9))));
    let mtu = |host: &Host| host.paths.path(socket).unwrap().state.attrs.path_mtu();
    let pieces = |host: &mut Host| {
        host.send(socket, at(2, 9), &[7; 1400]);
        let sent = packets(host).into_iter().map(|(_, packet)| packet);
        sent.filter(|packet| packet[6] != ipv6::ICMP).collect::<Vec<_>>()
    };
    let whole = pieces(&mut host);
    let mut error = vec![0; icmpv6::HEADER];
    error.extend_from_slice(&whole[0][..1000]);
    icmpv6::Error::TooBig(1300).emit(&mut error);
    host.arrive(&icmp(ip6(9), 64, &error));
    assert_eq!((whole.len(), mtu(&host), pieces(&mut host).len()), (1, Some(1300), 2));
    // Also for who sends nothing, since a program is told that it would be too much.
    host.world.events.clear();
    host.advance(Duration::from_secs(600));
    assert_eq!((mtu(&host), &host.world.events[..]), (Some(1500), &[(socket, Event::PathMtu(1500))][..]));
    assert_eq!(pieces(&mut host).len(), 1);
}

// RFC 8201 §4.
#[test]
fn an_echo_reply_that_is_too_large_for_a_link_is_cut_up_the_next_time() {
    let (mut host, _) = pair();
    let mut ping = vec![7; icmpv6::HEADER + 1400];
    icmpv6::emit_echo_request(77, &mut ping);
    let pieces = |host: &mut Host| {
        host.arrive(&icmp(ip6(2), 64, &ping));
        packets(host).into_iter().map(|(_, packet)| packet).collect::<Vec<_>>()
    };
    let whole = pieces(&mut host).remove(0);
    let mut told = |mtu, source: Ipv6Addr, kind| {
        let mut error = vec![0; icmpv6::HEADER];
        error.extend_from_slice(&whole[..1000]);
        error[icmpv6::HEADER + 8..][..16].copy_from_slice(&source.octets());
        error[icmpv6::HEADER + ipv6::HEADER] = kind;
        icmpv6::Error::TooBig(mtu).emit(&mut error);
        let outcome = host.arrive(&icmp(ip6(9), 64, &error)).unwrap();
        (outcome, pieces(&mut host).iter().map(Vec::len).max().unwrap())
    };
    let (ours, size, reply) = (ip6(1), whole.len(), 129);
    assert_eq!(told(1400, ip6(3), reply), (Outcome::Dropped(DropReason::IcmpQuote), size), "none of ours");
    assert_eq!(told(1400, ours, 128), (Outcome::Dropped(DropReason::IcmpQuote), size), "we ask nobody");
    assert_eq!(
        told(1279, ours, reply),
        (Outcome::Dropped(DropReason::IcmpIgnored), size),
        "no link of IPv6's"
    );
    assert_eq!(told(1400, ours, reply), (Outcome::Done, 1400));
    host.advance(Duration::from_secs(601));
    assert_eq!(pieces(&mut host).iter().map(Vec::len).max(), Some(size), "for a while");
}

// RFC 6724 §5, rule 2.
#[test]
fn what_goes_to_a_group_comes_from_an_address_that_reaches_so_far() {
    let (near, far): (Ipv6Addr, Ipv6Addr) = ("fe80::1".parse().unwrap(), ip6(1));
    for (router, ours) in [(None, [near, far]), (None, [far, near]), (Some(ip6(254).into()), [near, far])] {
        let mut host = Host::six(1);
        let standing = Standing::of(&ours.map(|own| (own.into(), 64)), router);
        host.paths.module_mut::<Ip6>().unwrap().follow(Routes::of(&standing));
        let socket = host.create("socket", Attrs::new().with(Attr::Local(any(5000))));
        let mut from = |group: &str| {
            host.send(socket, Endpoint::v6(group.parse().unwrap(), 9), b"to all");
            let (_, packet) = packets(&mut host).pop().expect("sent");
            ipv6::parse(&packet).unwrap().header.source()
        };
        assert_eq!([from("ff05::5"), from("ff0e::5"), from("ff02::5")], [far, far, near], "{router:?}");
    }
    // Rather than from none.
    let mut host = Host::six(1);
    let standing = Standing::of(&[(near.into(), 64)], None);
    host.paths.module_mut::<Ip6>().unwrap().follow(Routes::of(&standing));
    let socket = host.create("socket", Attrs::new().with(Attr::Local(any(5000))));
    host.send(socket, Endpoint::v6("ff05::5".parse().unwrap(), 9), b"to all");
    let datagrams = packets(&mut host).into_iter().filter(|(_, packet)| packet[6] == ipv4::UDP);
    assert_eq!(datagrams.count(), 1);
}

#[test]
fn a_device_that_completes_checksums_is_left_to_it() {
    let mut options = Options::six();
    options.device.checksum_offload = true;
    let mut host = Host::with(1, options);
    host.sent();
    let now = host.world.now;
    let nd = host.paths.module_mut::<Nd>().unwrap();
    nd.learn(now, (0, ip6(2)), Some(MacAddr(mac(2))), &mut host.world);
    let socket = host.create("socket", local(1, 5000));
    host.send(socket, at(2, 7), b"partial");
    let (_, packet) = packets(&mut host).remove(0);
    let read = ipv6::parse(&packet).unwrap();
    let sum = checksum::pseudo6(ip6(1), ip6(2), 17, read.payload.len() as u16).folded();
    assert_eq!(read.payload[6..8], sum.to_be_bytes());
    assert_eq!(host.arrive_with(&frame(mac(1), 2, &packet), Checksum::MaybePartial), None);
}
