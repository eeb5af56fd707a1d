//! IPv6 between two hosts in memory: neighbours, echo, datagrams, connections, fragments, and
//! what nobody may be made to believe.

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

fn question(target: Ipv6Addr) -> Vec<u8> {
    let mut message = [0; ndp::MESSAGE];
    ndp::emit_solicitation(target, Some(MacAddr(mac(9))), &mut message);
    message.to_vec()
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

/// The message of neighbour discovery in a packet, its checksum checked.
fn discovery(packet: &[u8]) -> (Ipv6Addr, Ipv6Addr, ndp::Message) {
    let read = ipv6::parse(packet).unwrap();
    let (source, destination) = (read.header.source(), read.header.destination());
    let pseudo = checksum::pseudo6(source, destination, ipv6::ICMP, read.payload.len() as u16);
    icmpv6::parse(read.payload, silk_wire::Accept::Full, pseudo).expect("a right checksum");
    (source, destination, ndp::parse(read.header.hop_limit, read.payload).unwrap())
}

#[test]
fn a_question_for_our_address_is_answered() {
    let (mut host, _) = pair();
    assert_eq!(host.arrive(&icmp(ip6(9), 255, &question(ip6(1)))), Some(Outcome::Done));
    let (to, packet) = packets(&mut host).remove(0);
    let expected = ndp::Message::Advertisement {
        target: ip6(1),
        link: Some(MacAddr(mac(1))),
        router: false,
        solicited: true,
        overrides: true,
    };
    assert_eq!((to, discovery(&packet)), (mac(9), (ip6(1), ip6(9), expected)));
}

#[test]
fn discovery_from_beyond_the_link_is_dropped() {
    let (mut host, _) = pair();
    let outcome = host.arrive(&icmp(ip6(9), 254, &question(ip6(1))));
    assert_eq!(outcome, Some(Outcome::Dropped(DropReason::NdForwarded)));
    assert!(host.sent().is_empty());
}

/// Host 1 that has just asked whether its address is free.
fn new_host() -> Host {
    Host::with(1, Options { settled: false, ..Options::six() })
}

// RFC 4429 §2.2, §3.2.
#[test]
fn an_address_on_probation_replaces_nobodys_and_asks_nobody() {
    let mut host = new_host();
    host.sent();
    let answered = |host: &mut Host| {
        host.arrive(&icmp(ip6(9), 255, &question(ip6(1))));
        match discovery(&packets(host).remove(0).1).2 {
            ndp::Message::Advertisement { solicited: true, overrides, .. } => overrides,
            other => panic!("{other:?}"),
        }
    };
    assert!(!answered(&mut host), "without the override flag");
    let socket = host.create("socket", local(1, 5000));
    host.send(socket, at(9, 9), b"who is 9?");
    host.advance(Duration::from_millis(999));
    assert_eq!(packets(&mut host), []);
    host.advance(Duration::from_millis(1));
    let asked: Vec<_> = packets(&mut host).iter().map(|(_, packet)| discovery(packet)).collect();
    let expected = ndp::Message::Solicitation { target: ip6(9), link: Some(MacAddr(mac(1))) };
    assert_eq!(asked[0], (ip6(1), ipv6::solicited_node(ip6(9)), expected));
    assert!(answered(&mut host));
}

#[test]
fn an_address_that_somebody_has_is_given_up_at_first_and_defended_later() {
    let mut host = new_host();
    let (_, probe) = packets(&mut host).remove(0);
    let expected = ndp::Message::Solicitation { target: ip6(1), link: None };
    let group = ipv6::solicited_node(ip6(1));
    assert_eq!(discovery(&probe), (Ipv6Addr::UNSPECIFIED, group, expected));
    let probe = frame(ipv6::group(group), 9, &probe);
    let mut settled = Host::six(1);
    settled.sent();
    settled.advance(Duration::from_secs(2));
    assert_eq!(settled.arrive(&probe), Some(Outcome::Done));
    let (to, packet) = packets(&mut settled).remove(0);
    assert_eq!((to, discovery(&packet).0), ([0x33, 0x33, 0, 0, 0, 1], ip6(1)));
    // Who says that he has it may think as we do, and answer what we say to that.
    let claim = icmp(ip6(1), 255, &answer(ip6(1), mac(9)));
    let contradicted = |host: &mut Host| {
        host.arrive(&claim);
        host.sent().len()
    };
    assert_eq!([contradicted(&mut settled), contradicted(&mut settled)], [1, 0]);
    settled.advance(Duration::from_secs(10));
    assert_eq!(contradicted(&mut settled), 1);
    assert_eq!(settled.world.claimed, [(ip6(1).into(), mac(9)); 2]);
    let lost = Some(Outcome::Dropped(DropReason::NdConflict));
    assert_eq!(host.arrive(&probe), lost);
    assert_eq!(host.paths.module_mut::<Nd>().unwrap().addresses().count(), 0);
    assert!(host.sent().is_empty());
    assert_eq!(host.world.duplicates, [(ip6(1).into(), mac(9))], "whoever runs it is told");
    // Nor is anything sent from it, by whoever has it still.
    let socket = host.create("socket", local(1, 5000));
    let mut standing = Standing::of(&[(ip6(1).into(), 64)], [ip6(254).into()]);
    standing.give_up(&[ip6(1).into()]);
    host.paths.module_mut::<Ip6>().unwrap().follow(Routes::of(&standing));
    host.send(socket, at(9, 9), b"from whom?");
    host.advance(Duration::from_secs(2));
    assert_eq!((packets(&mut host), host.drops(socket, DropReason::IpConflict)), (vec![], 1));
}

#[test]
fn what_nobody_asked_for_is_not_learnt_and_what_is_in_use_is_updated() {
    let (mut host, _) = pair();
    let known = host.paths.module_mut::<Nd>().unwrap().entries();
    host.arrive(&icmp(ip6(9), 255, &answer(ip6(9), mac(9))));
    assert_eq!(host.paths.module_mut::<Nd>().unwrap().entries(), known);
    let socket = host.create("socket", local(1, 5000));
    host.send(socket, at(9, 9), b"who is 9?");
    let (to, asked) = packets(&mut host).remove(0);
    let expected = ndp::Message::Solicitation { target: ip6(9), link: Some(MacAddr(mac(1))) };
    assert_eq!((to, discovery(&asked).2), ([0x33, 0x33, 0xff, 0, 0, 9], expected));
    host.arrive(&icmp(ip6(9), 255, &answer(ip6(9), mac(77))));
    assert_eq!(packets(&mut host)[0].0, mac(77));
    let mut meek = answer(ip6(9), mac(66));
    meek[4] = 0;
    assert_eq!(
        host.arrive(&icmp(ip6(9), 255, &meek)),
        Some(Outcome::Dropped(DropReason::NdIgnored)),
        "without the override flag"
    );
}

// RFC 4861 §7.2.5: only an answer to a question says that we are heard.
#[test]
fn what_was_not_asked_for_is_looked_into_when_it_is_used() {
    let (mut host, _) = pair();
    let socket = host.create("socket", local(1, 5000));
    let unasked = |target: Ipv6Addr, link: u8, flags: u8| {
        let mut message = answer(target, mac(link));
        message[4] = flags;
        icmp(target, 255, &message)
    };
    let goes = |host: &mut Host| {
        host.sent();
        host.send(socket, at(2, 9), b"x");
        let kind = |(to, packet): ([u8; 6], Vec<u8>)| (to, ipv6::parse(&packet).unwrap().protocol);
        packets(host).into_iter().map(kind).collect::<Vec<_>>()
    };
    assert_eq!(goes(&mut host), [(mac(2), ipv4::UDP)]);
    host.arrive(&unasked(ip6(2), 2, 0x20));
    assert_eq!(goes(&mut host), [(mac(2), ipv4::UDP)], "that is known");
    host.arrive(&unasked(ip6(2), 66, 0x20));
    let mut both = goes(&mut host);
    both.sort_unstable();
    assert_eq!(both, [(mac(66), ipv4::UDP), (mac(66), ipv6::ICMP)]);
    // What says the same again is no answer.
    host.arrive(&unasked(ip6(2), 66, 0x20));
    host.advance(Duration::from_secs(2));
    assert_eq!(packets(&mut host).len(), 2, "it is asked for thrice");
    host.arrive(&unasked(ip6(2), 66, 0x60));
    assert_eq!(goes(&mut host), [(mac(66), ipv4::UDP)]);
    // Another address is not taken from who does not insist, but looked into.
    host.arrive(&unasked(ip6(2), 77, 0));
    assert_eq!(goes(&mut host).len(), 2);
}

#[test]
fn redirects_and_routers_change_nothing() {
    let (mut host, _) = pair();
    for (kind, length) in
        [(ndp::REDIRECT, 40), (ndp::ROUTER_ADVERTISEMENT, 16), (ndp::ROUTER_SOLICITATION, 8)]
    {
        let mut message = vec![0; length];
        message[0] = kind;
        let outcome = host.arrive(&icmp("fe80::9".parse().unwrap(), 255, &message));
        assert_eq!(outcome, Some(Outcome::Dropped(DropReason::NdIgnored)), "type {kind}");
    }
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
    assert_eq!(told(ipv4::UDP, &[0, 9, 0, 9, 0, 8, 0, 0], DropReason::UdpNoPort), port);
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

#[test]
fn a_long_datagram_is_cut_up_and_put_together() {
    let (mut a, mut b) = pair();
    b.create("echo", Attrs::new().with(Attr::Local(any(7))));
    let before = |host: &Host| host.paths.path(path_of(host, "ip6")).unwrap().state.account.memory();
    let empty = before(&b);
    let socket = a.create("socket", local(1, 5000));
    let data: Vec<u8> = (0..9000u32).map(|n| (n % 251) as u8).collect();
    a.send(socket, at(2, 7), &data);
    let mut frames = a.sent();
    assert_eq!(frames.len(), 7);
    frames.reverse();
    frames.iter().for_each(|frame| _ = b.arrive(frame));
    exchange(&mut a, &mut b);
    assert_eq!(a.world.delivered, [(socket, at(2, 7), data)]);
    assert_eq!(before(&b), empty);
}

/// A fragment of a datagram for host 1 from host 2.
fn fragment(identification: u32, offset: usize, more: bool, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; extension::FRAGMENT_HEADER];
    Fragment { identification, offset, more }.emit(17, &mut bytes);
    bytes.extend_from_slice(payload);
    frame(mac(1), 2, &packet(extension::FRAGMENT, ip6(2), 64, &bytes))
}

// RFC 4443 §2.4 e.2.
#[test]
fn of_a_redirect_that_never_finishes_nobody_is_told() {
    let (mut host, _) = pair();
    for (kind, told) in [(ndp::REDIRECT, 0), (128, 1)] {
        let mut bytes = vec![0; extension::FRAGMENT_HEADER];
        Fragment { identification: kind.into(), offset: 0, more: true }.emit(ipv6::ICMP, &mut bytes);
        bytes.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
        host.arrive(&frame(mac(1), 2, &packet(extension::FRAGMENT, ip6(2), 64, &bytes)));
        host.advance(Duration::from_secs(61));
        let errors = packets(&mut host).into_iter().filter(|(_, packet)| packet[6] == 58 && packet[40] == 3);
        assert_eq!(errors.count(), told, "type {kind}");
    }
}

// RFC 5722, RFC 6946.
#[test]
fn overlapping_fragments_spoil_their_datagram_and_atomic_ones_need_no_others() {
    let (mut host, _) = pair();
    assert_eq!(host.arrive(&fragment(1, 0, true, &[1; 40])), Some(Outcome::Done));
    let overlap = Some(Outcome::Dropped(DropReason::IpFragmentOverlap));
    assert_eq!(host.arrive(&fragment(1, 32, false, &[2; 16])), overlap);
    assert_eq!(host.arrive(&fragment(1, 40, false, &[2; 8])), overlap, "the whole of it");
    let echo = host.create("echo", Attrs::new().with(Attr::Local(any(7))));
    let mut datagram = [0x13, 0x88, 0, 7, 0, 8, 0, 0];
    let pseudo = checksum::pseudo6(ip6(2), ip6(1), 17, 8);
    let checksum = pseudo.bytes(&datagram).checksum();
    datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(host.arrive(&fragment(1, 0, false, &datagram)), Some(Outcome::Done));
    assert_eq!(host.paths.path(echo).unwrap().state.account.packets_in, 1);
}

// RFC 7112 §5; RFC 8200 §4.1: there is one fragment header.
#[test]
fn a_first_fragment_has_all_headers_and_no_fragment_is_made_of_fragments() {
    let (mut host, _) = pair();
    let mut first = |identification, next_header, payload: &[u8]| {
        let mut bytes = vec![0; extension::FRAGMENT_HEADER];
        Fragment { identification, offset: 0, more: true }.emit(next_header, &mut bytes);
        bytes.extend_from_slice(payload);
        host.arrive(&frame(mac(1), 2, &packet(extension::FRAGMENT, ip6(2), 64, &bytes)))
    };
    let (taken, refused) = (Some(Outcome::Done), Some(Outcome::Dropped(DropReason::IpFragment)));
    let options = [17, 0, 1, 4, 0, 0, 0, 0];
    let datagram = [0x13, 0x88, 0, 7, 0, 99, 1, 1];
    assert_eq!(first(1, extension::DESTINATION, &[options, datagram].concat()), taken);
    assert_eq!(first(2, extension::DESTINATION, &options), refused, "what is carried is not there");
    assert_eq!(first(3, extension::DESTINATION, &[[17, 2, 1, 20, 0, 0, 0, 0], datagram].concat()), refused);
    let mut again = [0; extension::FRAGMENT_HEADER];
    Fragment { identification: 9, offset: 8, more: false }.emit(17, &mut again);
    assert_eq!(first(4, extension::FRAGMENT, &[again, datagram].concat()), refused);
    let options = [extension::FRAGMENT, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(first(5, extension::DESTINATION, &[options, again, datagram].concat()), refused);
}

#[test]
fn fragments_that_never_finish_are_given_up_and_told() {
    let (mut host, _) = pair();
    let fragments = path_of(&host, "ip6");
    host.arrive(&fragment(5, 0, true, &[5; 800]));
    host.advance(Duration::from_secs(61));
    assert_eq!(host.drops(fragments, DropReason::IpFragmentTimeout), 1);
    let told = packets(&mut host);
    let error = told.iter().map(|(_, packet)| ipv6::parse(packet).unwrap()).find(|read| read.payload[0] == 3);
    assert_eq!(error.map(|read| (read.header.destination(), read.payload[1])), Some((ip6(2), 1)));
    // RFC 4443 §3.3: as much of it as fits, as it came.
    assert_eq!(error.map(|read| &read.payload[8..]), Some(&fragment(5, 0, true, &[5; 800])[eth::HEADER..]));
}

// RFC 3168 §5.3, as RFC 8200 §4.5 does not say otherwise.
#[test]
fn a_mark_on_any_fragment_is_one_on_the_datagram_and_a_contradiction_spoils_it() {
    let (mut host, _) = pair();
    host.create("echo", Attrs::new().with(Attr::Local(any(7))));
    let mut datagram = [&[0x13, 0x88, 0, 7, 0, 16, 0, 0][..], &[5; 8]].concat();
    let sum = checksum::pseudo6(ip6(2), ip6(1), 17, 16).bytes(&datagram).checksum();
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    let mut whole = |identification: u32, classes: [u8; 2]| {
        host.sent();
        for (class, at) in classes.into_iter().zip([0, 8]) {
            let mut bytes = fragment(identification, at, at == 0, &datagram[at..at + 8]);
            bytes[eth::HEADER + 1] |= class << 4;
            host.arrive(&bytes);
        }
        let sent = packets(&mut host);
        sent.first().map(|(_, packet)| ipv6::parse(packet).unwrap().header.traffic_class())
    };
    assert_eq!([whole(1, [2, 3]), whole(2, [1, 2]), whole(3, [0, 0])], [Some(3), Some(1), Some(0)]);
    assert_eq!([whole(4, [0, 3]), whole(5, [3, 0])], [None; 2]);
}

// What is told waits for its neighbour, and is paid for no longer than that.
#[test]
fn who_is_told_so_may_have_to_be_found_first() {
    for found in [true, false] {
        let mut host = Host::six(1);
        host.advance(Duration::from_secs(2));
        let fragments = path_of(&host, "ip6");
        let before = host.paths.path(fragments).unwrap().state.account.memory();
        host.arrive(&fragment(5, 0, true, &[5; 800]));
        host.sent();
        host.advance(Duration::from_secs(60));
        if found {
            let mut message = answer(ip6(2), mac(2));
            icmpv6::seal(checksum::pseudo6(ip6(2), ip6(1), ipv6::ICMP, message.len() as u16), &mut message);
            host.arrive(&frame(mac(1), 2, &packet(ipv6::ICMP, ip6(2), 255, &message)));
            let told = packets(&mut host);
            let errors = told.iter().filter(|(_, packet)| ipv6::parse(packet).unwrap().payload[0] == 3);
            assert_eq!(errors.count(), 1);
        }
        host.advance(Duration::from_secs(30));
        assert_eq!(host.paths.path(fragments).unwrap().state.account.memory(), before, "{found}");
    }
}

#[test]
fn a_flood_of_fragments_is_bounded() {
    let options = Options { setup: |setup| setup.reassembly.memory = 32 * 1024, ..Options::six() };
    let mut host = Host::with(1, options);
    let fragments = path_of(&host, "ip6");
    let before = host.paths.path(fragments).unwrap().state.account.memory();
    for identification in 0..2000 {
        host.arrive(&fragment(identification, 0, true, &[5; 1024]));
        let held = host.paths.path(fragments).unwrap().state.account.memory() - before;
        assert!(held <= 32 * 1024, "{held} bytes");
    }
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

fn connected(host: &mut Host, to: Endpoint) -> (PathId, Handle) {
    let (buffers, handle) = stream(100_000, 4096);
    let attrs = Attrs::new().with(Attr::ProtId(6)).with(Attr::Local(any(5000))).with(Attr::Remote(to));
    (host.try_create("socket", attrs, Some(buffers)).expect("a free port"), handle)
}

fn settle(a: &mut Host, b: &mut Host) {
    for _ in 0..20 {
        exchange(a, b);
        a.advance(Duration::from_millis(10));
        b.advance(Duration::from_millis(10));
    }
    exchange(a, b);
}

/// A client, a server that listens at port 80 of every address, and a connection between them.
fn connection() -> (Host, Host, PathId, Handle) {
    let (mut client, mut server) = pair();
    server.streams = || Some(stream(100_000, 4096));
    let listen = Attrs::new().with(Attr::Listen(true)).with(Attr::Local(any(80)));
    server.create("socket", listen);
    let (path, handle) = connected(&mut client, at(2, 80));
    settle(&mut client, &mut server);
    assert!(client.world.events.contains(&(path, Event::Connected)));
    (client, server, path, handle)
}

#[test]
fn a_neighbour_that_is_not_there_refuses_a_connection() {
    let (mut client, _) = pair();
    let (path, _) = connected(&mut client, at(9, 80));
    client.advance(Duration::from_millis(2900));
    assert!(!client.world.events.contains(&(path, Event::Unreachable(113))), "it is still asked for");
    client.advance(Duration::from_millis(200));
    assert!(client.world.events.contains(&(path, Event::Unreachable(113))));
}

#[test]
fn a_request_and_its_answer_over_tcp() {
    let (mut client, mut server, path, client_end) = connection();
    let server_end = server.handles[0].clone();
    client_end.write(b"GET /");
    client.bell(path, silk_path::Bell::Sent);
    settle(&mut client, &mut server);
    assert_eq!(server_end.read(), b"GET /");
    let data: Vec<u8> = (0..50_000u32).map(|n| (n % 251) as u8).collect();
    server_end.write(&data);
    let accepted = server.created[0];
    server.bell(accepted, silk_path::Bell::Sent);
    let mut received = Vec::new();
    while received.len() < data.len() {
        settle(&mut client, &mut server);
        received.extend(client_end.read());
        client.bell(path, silk_path::Bell::Read);
    }
    assert_eq!(received, data);
    let attrs = server.paths.path(accepted).unwrap().state.attrs;
    assert_eq!((attrs.local(), attrs.remote()), (Some(at(2, 80)), Some(at(1, 5000))));
}

// RFC 6691: 1500 bytes less 60. RFC 1191 §3.1.
#[test]
fn the_segment_size_leaves_room_for_the_longer_header() {
    let (mut client, _) = pair();
    connected(&mut client, at(2, 80));
    let (_, syn) = packets(&mut client).remove(0);
    let read = ipv6::parse(&syn).unwrap();
    let pseudo = |length| checksum::pseudo6(ip6(1), ip6(2), ipv4::TCP, length);
    let segment = tcp::parse(read.payload, silk_wire::Accept::Full, pseudo).unwrap();
    let options = silk_tcp::Options::parse(segment.options).unwrap();
    assert_eq!(options.mss, Some(1440));
    assert_ne!(read.header.flow_label(), 0);
}

// RFC 8201 §4.
#[test]
fn a_router_that_says_too_big_makes_segments_smaller_unless_no_link_is_so_narrow() {
    for (said, expected) in [(1400, Some(1400)), (1280, Some(1280)), (1279, None), (68, None)] {
        let (mut client, mut server, path, client_end) = connection();
        client_end.write(&[7; 3000]);
        client.bell(path, silk_path::Bell::Sent);
        let long = packets(&mut client).into_iter().map(|(_, packet)| packet).next().unwrap();
        let mut error = vec![0; icmpv6::HEADER];
        error.extend_from_slice(&long[..ipv6::HEADER + 20]);
        icmpv6::Error::TooBig(said).emit(&mut error);
        client.arrive(&icmp(ip6(254), 64, &error));
        let longest = packets(&mut client).iter().map(|(_, packet)| packet.len()).max();
        assert_eq!(longest, expected, "{said}");
        settle(&mut client, &mut server);
    }
}

// RFC 8201 §4.
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
    host.advance(Duration::from_secs(600));
    assert_eq!((pieces(&mut host).len(), mtu(&host)), (1, Some(1500)));
}

#[test]
fn an_error_that_quotes_nothing_of_ours_is_dropped() {
    let (mut client, _, path, _) = connection();
    let mut error = vec![0; icmpv6::HEADER];
    let mut quoted = packet(6, ip6(1), 64, &[0x13, 0x88, 0, 80, 9, 9, 9, 9]);
    quoted[24..40].copy_from_slice(&ip6(2).octets());
    error.extend_from_slice(&quoted);
    icmpv6::Error::TooBig(1300).emit(&mut error);
    assert_eq!(client.arrive(&icmp(ip6(254), 64, &error)), Some(Outcome::Done));
    assert_eq!(client.drops(path, DropReason::IcmpQuote), 1, "never sent");
}

#[test]
fn a_segment_for_nobody_is_reset_over_its_own_ip() {
    let (mut client, mut server) = pair();
    server.tables.own_port(silk_path::classify::Protocol::Tcp, Some(ip6(2).into()), 81);
    let (path, _) = connected(&mut client, at(2, 81));
    settle(&mut client, &mut server);
    assert!(client.world.events.contains(&(path, Event::Refused)));
}

#[test]
fn both_families_listen_at_one_port_and_hear_their_own() {
    let (mut client, mut server) = pair();
    server.streams = || Some(stream(1000, 1000));
    let four = Endpoint::v4(core::net::Ipv4Addr::UNSPECIFIED, 80);
    for end in [four, any(80)] {
        server.create("socket", Attrs::new().with(Attr::Listen(true)).with(Attr::Local(end)));
    }
    let again = Attrs::new().with(Attr::Listen(true)).with(Attr::Local(at(2, 80)));
    assert!(server.try_create("socket", again, None).is_err(), "one of each");
    connected(&mut client, at(2, 80));
    settle(&mut client, &mut server);
    assert_eq!(server.created.len(), 1);
}

#[test]
fn destroying_every_path_leaves_nothing() {
    let (mut client, _, _, _) = connection();
    for path in client.paths.iter().map(|path| path.id()).collect::<Vec<_>>() {
        client.destroy(path);
    }
    let class = client.paths.classes.of(0);
    assert_eq!((client.paths.len(), class.paths(), class.memory()), (0, 0, 0));
    assert_eq!(client.tables.flows.count(), 0);
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
