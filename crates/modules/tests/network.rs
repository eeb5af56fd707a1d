//! ARP, IP and ICMP between two hosts in memory: neighbours, echo, fragments both ways, and
//! what nobody may be made to believe.

mod rig;

use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use rig::{Host, Options, exchange, ip, mac};
use silk_modules::arp::Arp;
use silk_modules::eth::Eth;
use silk_modules::icmp::REFUSAL;
use silk_modules::ip::{Ip, Routes};
use silk_modules::{HeaderTemplate, Leads, Setup, Standing, Way};
use silk_path::transform::Rule;
use silk_path::{Attr, Attrs, Checksum, DropReason, Endpoint, Event, Message, Meta, Outcome, PathId, Value};
use silk_wire::icmp::Unreachable;
use silk_wire::{MacAddr, arp, checksum, eth, icmp, ipv4};

fn at(n: u8, port: u16) -> Endpoint {
    Endpoint::v4(ip(n), port)
}

fn frame(to: u8, from: u8, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; eth::HEADER];
    eth::Header::new(MacAddr(mac(to)), MacAddr(mac(from)), kind).emit(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

fn arp_frame(packet: arp::Packet) -> Vec<u8> {
    let mut bytes = [0; arp::PACKET];
    packet.emit(&mut bytes);
    let mut frame = frame(1, 9, eth::ARP, &bytes);
    frame[..6].fill(0xff);
    frame
}

fn announcement(n: u8, link: [u8; 6]) -> arp::Packet {
    let link = MacAddr(link);
    arp::Packet {
        operation: arp::Operation::Request,
        sender_mac: link,
        sender: ip(n),
        target_mac: link,
        target: ip(n),
    }
}

fn path_of(host: &Host, top: &str) -> PathId {
    let top = host.module(top);
    host.paths.iter().find(|path| path.state.top == top).expect("made with the host").id()
}

fn packet(protocol: u8, source: Ipv4Addr, destination: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ipv4::HEADER];
    let payload_len = payload.len() as u16;
    ipv4::Emit { protocol, source, destination, payload_len, ..Default::default() }.emit(&mut bytes);
    bytes.extend_from_slice(payload);
    frame(1, 9, eth::IPV4, &bytes)
}

fn ping(data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; icmp::HEADER];
    bytes.extend_from_slice(data);
    icmp::emit_echo_request(77, 1, &mut bytes);
    bytes
}

#[test]
fn a_question_for_our_address_is_answered() {
    let mut host = Host::new(1);
    let question = arp::Packet { target: ip(1), target_mac: MacAddr::ZERO, ..announcement(9, mac(9)) };
    host.arrive(&arp_frame(question));
    let reply = host.sent().remove(0);
    assert_eq!(eth::parse(&reply).unwrap().0.destination, MacAddr(mac(9)));
    let reply = arp::parse(&reply[eth::HEADER..]).unwrap();
    assert_eq!(
        (reply.operation, reply.sender, reply.sender_mac),
        (arp::Operation::Reply, ip(1), MacAddr(mac(1)))
    );
}

#[test]
fn a_probe_is_answered_and_teaches_nothing() {
    let mut host = Host::new(1);
    let probe = arp::Packet { sender: Ipv4Addr::UNSPECIFIED, target: ip(1), ..announcement(9, mac(9)) };
    host.arrive(&arp_frame(probe));
    assert_eq!(host.sent().len(), 1);
    assert_eq!(host.paths.module_mut::<Arp>().unwrap().entries(), 0);
}

#[test]
fn an_announcement_only_updates_what_is_in_use() {
    let mut host = Host::new(1);
    host.arrive(&arp_frame(announcement(9, mac(9))));
    assert_eq!(host.paths.module_mut::<Arp>().unwrap().entries(), 0);
    let socket = host.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))));
    host.send(socket, at(9, 9), b"who is 9?");
    host.sent();
    host.arrive(&arp_frame(announcement(9, mac(9))));
    assert_eq!(eth::parse(&host.sent()[0]).unwrap().0.destination, MacAddr(mac(9)));
    host.arrive(&arp_frame(announcement(9, mac(77))));
    host.send(socket, at(9, 9), b"moved");
    assert_eq!(eth::parse(&host.sent()[0]).unwrap().0.destination, MacAddr(mac(77)));
}

/// What ARP asked for or announced, of itself.
fn said(frames: &[Vec<u8>]) -> Vec<arp::Packet> {
    let packet = |frame: &Vec<u8>| {
        assert_eq!(eth::parse(frame).unwrap().0.destination, MacAddr::BROADCAST);
        arp::parse(&frame[eth::HEADER..]).unwrap()
    };
    frames.iter().map(packet).collect()
}

/// Host `n` asks whether it is alone with its address, which is 1's.
fn probe(n: u8) -> arp::Packet {
    let nobody = arp::Packet { sender: Ipv4Addr::UNSPECIFIED, target: ip(1), ..announcement(n, mac(n)) };
    arp::Packet { target_mac: MacAddr::ZERO, ..nobody }
}

// RFC 5227 §2.1.1, §2.3.
#[test]
fn our_address_is_asked_for_and_announced_at_the_start_unless_it_is_linuxs() {
    let host = Host::new(1);
    let ours = arp::Packet { target_mac: MacAddr::ZERO, ..announcement(1, mac(1)) };
    assert_eq!(said(&host.announced), [probe(1), probe(1), probe(1), ours, ours]);
    let shared = Options { setup: |setup| setup.neighbours_told = true, ..Options::default() };
    assert!(Host::with(1, shared).announced.is_empty());
}

// RFC 5227 §2.1.1.
#[test]
fn an_address_that_somebody_has_or_wants_at_the_same_moment_is_given_up_at_first() {
    let claims = [
        announcement(1, mac(9)),
        arp::Packet {
            operation: arp::Operation::Reply,
            target: Ipv4Addr::UNSPECIFIED,
            ..announcement(1, mac(9))
        },
        probe(9),
    ];
    for claim in claims {
        let mut host = Host::with(1, Options { settled: false, ..Options::default() });
        // Our own question, which comes back, says nothing.
        host.arrive(&arp_frame(probe(1)));
        assert_eq!(host.world.duplicates, []);
        let lost = Some(Outcome::Dropped(DropReason::ArpConflict));
        assert_eq!(host.arrive(&arp_frame(claim)), lost);
        assert_eq!(host.world.duplicates, [(ip(1).into(), mac(9))], "whoever runs it is told");
        // It neither answers for it nor says anything of it.
        host.sent();
        host.arrive(&arp_frame(arp::Packet { target: ip(1), ..announcement(8, mac(8)) }));
        host.advance(Duration::from_secs(9));
        assert_eq!(host.sent(), [[0; 0]; 0]);
        // Nor is anything sent from it, by whoever has it still.
        let socket = host.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))));
        let mut standing = Standing::of(&[(ip(1).into(), 24)], [ip(254).into()]);
        standing.give_up(&[ip(1).into()]);
        host.paths.module_mut::<Ip>().unwrap().follow(Routes::of(&standing));
        host.send(socket, at(9, 9), b"from whom?");
        assert_eq!((host.sent().len(), host.drops(socket, DropReason::IpConflict)), (0, 1));
    }
}

#[test]
fn from_an_address_that_is_not_settled_nobody_is_asked_and_who_asks_for_it_is_answered() {
    let mut host = Host::with(1, Options { settled: false, ..Options::default() });
    let socket = host.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))));
    host.send(socket, at(9, 9), b"who is 9?");
    host.arrive(&arp_frame(arp::Packet { target: ip(1), ..announcement(8, mac(8)) }));
    let reply = arp::parse(&host.sent()[0][eth::HEADER..]).unwrap();
    assert_eq!(
        (reply.operation, reply.sender, reply.target_mac),
        (arp::Operation::Reply, ip(1), MacAddr(mac(8)))
    );
    host.advance(Duration::from_millis(999));
    assert_eq!(said(&host.sent()), [probe(1), probe(1)], "it only asks whether it is alone");
    host.advance(Duration::from_millis(1));
    let ours = arp::Packet { target_mac: MacAddr::ZERO, ..announcement(1, mac(1)) };
    assert_eq!(said(&host.sent()), [ours, arp::Packet { target: ip(9), ..ours }]);
    host.arrive(&arp_frame(arp::Packet {
        operation: arp::Operation::Reply,
        target: ip(1),
        ..announcement(9, mac(9))
    }));
    assert_eq!(eth::parse(&host.sent()[0]).unwrap().0.destination, MacAddr(mac(9)), "what waited goes");
}

// RFC 5227 §1.1: who asks from no address asks whether the other's is free.
#[test]
fn two_hosts_that_start_at_once_and_speak_to_each_other_keep_their_addresses() {
    let fresh = |n| Host::with(n, Options { settled: false, ..Options::default() });
    let (mut a, mut b) = (fresh(1), fresh(2));
    let [from_a, from_b] = [(&mut a, 1), (&mut b, 2)]
        .map(|(host, n)| host.create("socket", Attrs::new().with(Attr::Local(at(n, 5000)))));
    a.send(from_a, at(2, 5000), b"to b");
    b.send(from_b, at(1, 5000), b"to a");
    for _ in 0..20 {
        exchange(&mut a, &mut b);
        a.advance(Duration::from_millis(100));
        b.advance(Duration::from_millis(100));
    }
    assert_eq!((&a.world.duplicates[..], &b.world.duplicates[..]), (&[][..], &[][..]));
    assert_eq!(a.world.delivered, [(from_a, at(2, 5000), b"to a".to_vec())]);
    assert_eq!(b.world.delivered, [(from_b, at(1, 5000), b"to b".to_vec())]);
}

// RFC 5227 §2.4.
#[test]
fn nobody_else_is_believed_to_be_us_and_all_are_told_so_now_and_then() {
    let mut host = Host::new(1);
    let claimed = |host: &mut Host| {
        let outcome = host.arrive(&arp_frame(announcement(1, mac(66))));
        assert_eq!(outcome, Some(Outcome::Dropped(DropReason::ArpConflict)));
        host.sent().len()
    };
    assert_eq!([claimed(&mut host), claimed(&mut host)], [1, 0]);
    host.advance(Duration::from_secs(10));
    assert_eq!([claimed(&mut host), claimed(&mut host)], [1, 0]);
    assert_eq!(host.world.claimed, [(ip(1).into(), mac(66)); 2]);
    // Our own frames that come back are no claim.
    host.arrive(&arp_frame(announcement(1, mac(1))));
    assert!(host.sent().is_empty());
    let group = [0xff; 6];
    assert_eq!(
        host.arrive(&arp_frame(announcement(9, group))),
        Some(Outcome::Dropped(DropReason::ArpIgnored))
    );
    assert!(host.sent().is_empty());
}

#[test]
fn neighbours_may_be_told_instead_of_asked_for() {
    let mut host =
        Host::with(1, Options { setup: |setup| setup.neighbours_told = true, ..Options::default() });
    let socket = host.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))));
    host.send(socket, at(9, 9), b"waits");
    assert_eq!((host.sent().len(), &host.world.asked[..]), (0, &[ip(9).into()][..]));
    let now = host.world.now;
    let arp = host.paths.module_mut::<Arp>().unwrap();
    arp.learn(now, (0, ip(9)), Some(MacAddr(mac(9))), &mut host.world);
    host.settle();
    assert_eq!(host.sent().len(), 1);
}

/// A host whose neighbours are told, with a socket that has sent this to 9, and what the socket's account had before.
fn waiting_to_be_told(data: &[u8]) -> (Host, PathId, u64) {
    let mut host =
        Host::with(1, Options { setup: |setup| setup.neighbours_told = true, ..Options::default() });
    let socket = host.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))));
    let before = host.paths.path(socket).unwrap().state.account.memory();
    host.send(socket, at(9, 9), data);
    (host, socket, before)
}

#[test]
fn who_is_not_told_asks_again_once_a_second_and_gives_up() {
    let (mut host, socket, before) = waiting_to_be_told(b"waits");
    let held = |host: &Host| host.paths.path(socket).unwrap().state.account.memory() - before;
    for second in 1..4 {
        assert_eq!(host.world.asked, vec![IpAddr::from(ip(9)); second]);
        assert_ne!(held(&host), 0);
        host.advance(Duration::from_millis(500));
        host.send(socket, at(9, 9), b"asks no oftener");
        host.advance(Duration::from_millis(500));
    }
    assert_eq!((host.world.asked.len(), held(&host)), (3, 0), "all that waited is dropped");
    assert_eq!(host.drops(socket, DropReason::ArpFailed), 4);
    let lost = Outcome::Dropped(DropReason::ArpFailed);
    assert_eq!(host.send(socket, at(9, 9), b"hears it at once"), lost);
    host.advance(Duration::from_secs(1));
    host.send(socket, at(9, 9), b"after a while, again");
    assert_eq!((host.world.asked.len(), host.sent().len()), (4, 0));
}

#[test]
fn who_is_told_late_waits_no_longer() {
    let (mut host, _, _) = waiting_to_be_told(b"waits");
    host.advance(Duration::from_millis(2500));
    let now = host.world.now;
    let arp = host.paths.module_mut::<Arp>().unwrap();
    arp.learn(now, (0, ip(9)), Some(MacAddr(mac(9))), &mut host.world);
    host.settle();
    assert_eq!((host.world.asked.len(), host.sent().len()), (3, 1));
}

#[test]
fn what_was_told_once_is_not_used_for_ever_where_nobody_says_more() {
    let (mut host, socket, _) = waiting_to_be_told(b"waits");
    let now = host.world.now;
    let arp = host.paths.module_mut::<Arp>().unwrap();
    arp.learn(now, (0, ip(9)), Some(MacAddr(mac(9))), &mut host.world);
    host.advance(Duration::from_secs(60));
    for requests in 2..5 {
        assert_eq!(host.send(socket, at(9, 9), b"there still?"), Outcome::Done);
        assert_eq!(host.world.asked.len(), requests);
        host.advance(Duration::from_secs(1));
    }
    let lost = Outcome::Dropped(DropReason::ArpFailed);
    assert_eq!(host.send(socket, at(9, 9), b"no"), lost);
}

#[test]
fn beyond_the_link_packets_go_to_the_router() {
    let mut host = Host::new(1);
    let socket = host.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))));
    host.send(socket, Endpoint::v4(Ipv4Addr::new(8, 8, 8, 8), 53), b"far");
    let question = arp::parse(&host.sent()[0][eth::HEADER..]).unwrap();
    assert_eq!(question.target, ip(254));
}

#[test]
fn a_ping_comes_back() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    a.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))).with(Attr::Remote(at(2, 9))));
    exchange(&mut a, &mut b);
    let mut request = packet(ipv4::ICMP, ip(1), ip(2), &ping(b"are you there?"));
    request[..12].copy_from_slice(&[mac(2), mac(1)].concat());
    assert_eq!(b.arrive(&request), Some(Outcome::Done));
    exchange_arp(&mut b, &mut a);
    let reply = b.sent().remove(0);
    let reply = ipv4::parse(&reply[eth::HEADER..]).unwrap().payload.to_vec();
    let expected = icmp::Message::EchoReply { identifier: 77, sequence: 1, data: b"are you there?" };
    assert_eq!(icmp::parse(&reply), Ok(expected));
}

/// Lets `a` find `b`, whose answer may free a message that waited.
fn exchange_arp(a: &mut Host, b: &mut Host) {
    if a.world.sent.front().is_some_and(|frame| frame[12..14] == [8, 6]) {
        a.sent().iter().for_each(|frame| _ = b.arrive(frame));
        b.sent().iter().for_each(|frame| _ = a.arrive(frame));
    }
}

// RFC 9293 MUST-63.
#[test]
fn a_land_attack_and_impossible_sources_are_dropped() {
    let mut host = Host::new(1);
    host.create("echo", Attrs::new());
    let whole_network = ip(255);
    for source in [
        ip(1),
        whole_network,
        Ipv4Addr::new(0, 0, 0, 7),
        Ipv4Addr::LOCALHOST,
        Ipv4Addr::BROADCAST,
        Ipv4Addr::new(224, 0, 0, 1),
        Ipv4Addr::UNSPECIFIED,
    ] {
        let outcome = host.arrive(&packet(ipv4::ICMP, source, ip(1), &ping(b"")));
        assert_eq!(outcome, Some(Outcome::Dropped(DropReason::IpBadSource)), "{source}");
    }
    assert!(host.sent().is_empty());
}

/// A datagram without data, and without a checksum.
const DATAGRAM: [u8; 8] = [0, 9, 0, 9, 0, 8, 0, 0];

// RFC 1122 §4.1.3.4.
#[test]
fn of_a_broken_datagram_nobody_is_told_that_its_port_is_nobodys() {
    let mut host = Host::new(1);
    let mut told = |change: fn(&mut [u8])| {
        let mut datagram = [&[0, 9, 0, 9, 0, 12, 0, 0][..], b"data"].concat();
        let sum = checksum::pseudo(ip(9), ip(1), ipv4::UDP, 12).bytes(&datagram).checksum();
        datagram[6..8].copy_from_slice(&sum.to_be_bytes());
        change(&mut datagram);
        host.refuse(&packet(ipv4::UDP, ip(9), ip(1), &datagram), Unreachable::Port)
    };
    assert!(told(|_| {}) && told(|datagram| datagram[6..8].fill(0)), "right, or without a checksum");
    assert!(!told(|datagram| datagram[11] ^= 1), "with another's");
    assert!(!told(|datagram| datagram[5] = 13), "cut short");
    assert!(!told(|datagram| datagram[4..8].fill(0)), "shorter than its header");
}

#[test]
fn an_error_is_never_answered_with_an_error() {
    let mut host = Host::new(1);
    let mut about_error = vec![0; icmp::HEADER];
    about_error.extend_from_slice(&packet(ipv4::UDP, ip(1), ip(9), &[0; 8])[eth::HEADER..]);
    icmp::emit_unreachable(Unreachable::Port, &mut about_error);
    assert!(!host.refuse(&packet(ipv4::ICMP, ip(9), ip(1), &about_error), Unreachable::Protocol));
    let mut group = packet(ipv4::UDP, ip(9), ip(1), &DATAGRAM);
    group[0] = 0xff;
    assert!(!host.refuse(&group, Unreachable::Port));
    assert!(host.refuse(&packet(ipv4::UDP, ip(9), ip(1), &DATAGRAM), Unreachable::Port));
    assert!(host.refuse(&packet(ipv4::UDP, ip(9), ip(1), &[]), Unreachable::Host), "quotes what there is");
    let allowed =
        (0..2000).filter(|_| host.refuse(&packet(ipv4::UDP, ip(9), ip(1), &DATAGRAM), Unreachable::Port));
    assert!(allowed.count() < 60, "a limit");
    const { assert!(REFUSAL > 100) };
}

// RFC 1191 §6.3.
#[test]
fn what_a_router_says_of_a_path_counts_for_a_while_on_the_path_that_is_there_too() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let socket = a.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))).with(Attr::Remote(at(2, 9))));
    exchange(&mut a, &mut b);
    let mtu = |host: &Host| host.paths.path(socket).unwrap().state.attrs.path_mtu();
    let pieces = |host: &mut Host| {
        host.send(socket, at(2, 9), &[7; 1400]);
        let sent = host.sent().into_iter();
        sent.filter(|frame| frame[12..14] == eth::IPV4.to_be_bytes()).collect::<Vec<_>>()
    };
    let whole = pieces(&mut a);
    assert!(whole.len() == 1 && b.refuse(&whole[0], Unreachable::TooBig(1000)));
    exchange(&mut a, &mut b);
    assert_eq!((mtu(&a), pieces(&mut a).len()), (Some(1000), 2));
    // Also for who sends nothing, since a program is told that it would be too much.
    a.world.events.clear();
    a.advance(Duration::from_secs(600));
    assert_eq!((mtu(&a), &a.world.events[..]), (Some(1500), &[(socket, Event::PathMtu(1500))][..]));
    assert_eq!(pieces(&mut a).len(), 1);
}

// RFC 1191 §3: what goes on in packets of a size that is enough for others must let itself be cut up.
#[test]
fn on_a_path_that_is_narrower_than_any_is_taken_to_be_packets_may_be_cut_up_for_a_while() {
    for template in [false, true] {
        let rules: Vec<Box<dyn Rule>> = if template { vec![Box::new(HeaderTemplate)] } else { Vec::new() };
        let (mut a, mut b) = (Host::with(1, Options { rules, ..Options::default() }), Host::new(2));
        let ends = |port| Attrs::new().with(Attr::Local(at(1, port))).with(Attr::Remote(at(2, 9)));
        let socket = a.create("socket", ends(5000));
        exchange(&mut a, &mut b);
        let packets = |host: &mut Host, path: PathId| {
            host.send(path, at(2, 9), &[7; 900]);
            let sent = host.sent().into_iter().filter(|frame| frame[12..14] == eth::IPV4.to_be_bytes());
            let seen = |frame: Vec<u8>| {
                let header = *ipv4::parse(&frame[eth::HEADER..]).unwrap().header;
                (header.total_len(), header.dont_fragment())
            };
            sent.map(seen).collect::<Vec<_>>()
        };
        a.send(socket, at(2, 9), &[7; 400]);
        let whole = a.sent().pop().unwrap();
        assert!(b.refuse(&whole, Unreachable::TooBig(296)));
        exchange(&mut a, &mut b);
        assert_eq!(packets(&mut a, socket), [(548, false), (400, false)]);
        a.send(socket, at(2, 9), &[7; 400]);
        let small = a.sent().pop().unwrap();
        assert!(!ipv4::parse(&small[eth::HEADER..]).unwrap().header.dont_fragment());
        let other = a.create("socket", ends(5001));
        a.send(other, at(2, 9), b"x");
        let small = a.sent().pop().unwrap();
        assert!(!ipv4::parse(&small[eth::HEADER..]).unwrap().header.dont_fragment(), "another path");
        a.advance(Duration::from_secs(600));
        // Where its peer is must be found again.
        exchange(&mut a, &mut b);
        a.send(socket, at(2, 9), b"where are you?");
        exchange(&mut a, &mut b);
        assert_eq!([socket, other].map(|path| packets(&mut a, path)), [[(928, true)], [(928, true)]]);
    }
}

// What a route says is no router's word that anybody could have forged.
#[test]
fn a_route_may_say_that_a_path_is_as_narrow_as_any_link() {
    let mut standing = Standing::of(&[(ip(1).into(), 24)], None);
    let leads = Leads::Over { link: 0, gateway: Some(ip(9).into()), source: None, mtu: Some(300) };
    standing.ways.push(Way { network: Ipv4Addr::new(192, 0, 2, 0).into(), prefix: 24, leads });
    let mut host = beside_9();
    host.paths.module_mut::<Ip>().unwrap().follow(Routes::of(&standing));
    let there = Endpoint::v4(Ipv4Addr::new(192, 0, 2, 1), 9);
    let socket = host.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))).with(Attr::Remote(there)));
    assert_eq!(host.paths.path(socket).unwrap().state.attrs.path_mtu(), Some(300));
    host.send(socket, there, &[7; 500]);
    assert_eq!(host.sent().len(), 2);
}

// No route leads there: it is on the link.
#[test]
fn what_is_for_a_group_or_for_everyone_is_no_longer_than_its_link_takes() {
    let mut standing = Standing::of(&[(ip(1).into(), 24)], None);
    standing.narrow(0, 1300);
    let mut host = Host::new(1);
    host.paths.module_mut::<Ip>().unwrap().follow(Routes::of(&standing));
    let socket = host.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))));
    for to in [Ipv4Addr::new(239, 1, 2, 3), Ipv4Addr::BROADCAST, ip(255)] {
        host.send(socket, Endpoint::v4(to, 9), &[7; 1400]);
        assert_eq!(host.sent().len(), 2, "{to}");
    }
}

#[test]
fn a_long_datagram_is_cut_up_and_put_together() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    b.create("echo", Attrs::new());
    let socket = a.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))));
    a.send(socket, at(2, 7), b"first, to find each other");
    exchange(&mut a, &mut b);
    a.world.delivered.clear();
    let data: Vec<u8> = (0..9000u32).map(|n| (n % 251) as u8).collect();
    a.send(socket, at(2, 7), &data);
    let mut frames = a.sent();
    assert_eq!(frames.len(), 7);
    frames.reverse();
    frames.iter().for_each(|frame| _ = b.arrive(frame));
    exchange(&mut a, &mut b);
    assert_eq!(a.world.delivered, [(socket, at(2, 7), data)]);
    let memory: u64 = b.paths.path(path_of(&b, "ip")).unwrap().state.account.memory();
    assert_eq!(memory, Host::new(2).paths.path(path_of(&b, "ip")).unwrap().state.account.memory());
}

#[test]
fn fragments_that_never_finish_are_given_up_and_told() {
    let mut host = Host::new(1);
    let fragments = path_of(&host, "ip");
    let before = host.paths.path(fragments).unwrap().state.account.memory();
    let mut bytes = vec![0; ipv4::HEADER];
    let first = ipv4::Emit {
        protocol: ipv4::UDP,
        source: ip(9),
        destination: ip(1),
        payload_len: 800,
        dont_fragment: false,
        more_fragments: true,
        ..Default::default()
    };
    first.emit(&mut bytes);
    bytes.extend_from_slice(&[5; 800]);
    assert_eq!(host.arrive(&frame(1, 9, eth::IPV4, &bytes)), Some(Outcome::Done));
    assert!(host.paths.path(fragments).unwrap().state.account.memory() >= before + 800);
    host.advance(Duration::from_secs(31));
    assert_eq!(host.drops(fragments, DropReason::IpFragmentTimeout), 1);
    host.arrive(&arp_frame(arp::Packet { target: ip(1), ..announcement(9, mac(9)) }));
    host.destroy(fragments);
    let memory: u64 = host.paths.iter().map(|path| path.state.account.memory()).sum();
    assert_eq!(host.paths.classes.of(0).memory(), memory);
}

/// A fragment for host 1 from host 9 with these service bits, of a datagram to its port 7.
fn fragment(identification: u16, tos: u8, offset: usize, more: bool, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ipv4::HEADER];
    let piece = ipv4::Emit {
        tos,
        identification,
        protocol: ipv4::UDP,
        source: ip(9),
        destination: ip(1),
        payload_len: payload.len() as u16,
        offset: offset as u16,
        dont_fragment: false,
        more_fragments: more,
        ..Default::default()
    };
    piece.emit(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// Host 1, which knows where host 9 is.
fn beside_9() -> Host {
    let mut host = Host::new(1);
    let now = host.world.now;
    let arp = host.paths.module_mut::<Arp>().unwrap();
    arp.learn(now, (0, ip(9)), Some(MacAddr(mac(9))), &mut host.world);
    host
}

// RFC 792: the header of the datagram and its first eight bytes, as they came.
#[test]
fn what_was_given_up_is_quoted_as_it_came() {
    let mut host = beside_9();
    let mut bytes = fragment(77, 0xb8, 0, true, &[5; 800]);
    // With an option, that nobody need understand.
    bytes.splice(ipv4::HEADER..ipv4::HEADER, [1, 1, 1, 0]);
    bytes[0] = 0x46;
    bytes[2..4].copy_from_slice(&824u16.to_be_bytes());
    bytes[10..12].fill(0);
    let sum = checksum::Sum::ZERO.bytes(&bytes[..24]).checksum();
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(host.arrive(&frame(1, 9, eth::IPV4, &bytes)), Some(Outcome::Done));
    host.sent();
    host.advance(Duration::from_secs(31));
    let told = host.sent();
    let error = told.iter().filter_map(|frame| ipv4::parse(&frame[eth::HEADER..]).ok()).next().unwrap();
    assert_eq!((error.payload[0], error.payload[1]), (11, 1));
    assert_eq!(checksum::Sum::ZERO.bytes(error.payload).folded(), 0xffff);
    assert_eq!(&error.payload[8..], &bytes[..24 + 8]);
}

#[test]
fn that_datagrams_were_given_up_is_told_no_oftener_than_icmp_may_send_errors() {
    for (errors, expected) in [(0, 0), (1000, 50)] {
        let mut spec = rig::graph();
        let icmp_module = spec.modules.iter_mut().find(|module| module.kind == "icmp").unwrap();
        icmp_module.parameters.push(("errors".into(), Value::Number(errors)));
        let mut host = Host::with(1, Options { graph: spec, ..Options::default() });
        let now = host.world.now;
        let arp = host.paths.module_mut::<Arp>().unwrap();
        arp.learn(now, (0, ip(9)), Some(MacAddr(mac(9))), &mut host.world);
        for id in 0..60 {
            host.arrive(&frame(1, 9, eth::IPV4, &fragment(id, 0, 0, true, &[5; 64])));
        }
        host.sent();
        host.advance(Duration::from_secs(30));
        let told = host.sent().into_iter().filter(|frame| frame[12..14] == eth::IPV4.to_be_bytes());
        let told = told.count() as u32;
        let fragments = path_of(&host, "ip");
        let [given_up, beyond] =
            [DropReason::IpFragmentTimeout, DropReason::IcmpRate].map(|reason| host.drops(fragments, reason));
        assert_eq!((told, given_up, beyond), (expected, 60, 60 - expected));
        let refused = host.refuse(&packet(ipv4::UDP, ip(9), ip(1), &DATAGRAM), Unreachable::Port);
        assert!(!refused, "all errors together");
    }
}

// RFC 3168 §5.3.
#[test]
fn a_mark_on_any_fragment_is_one_on_the_datagram_and_a_contradiction_spoils_it() {
    const CE: u8 = 3;
    let mut host = beside_9();
    host.create("echo", Attrs::new().with(Attr::Local(Endpoint::v4(Ipv4Addr::UNSPECIFIED, 7))));
    let fragments = path_of(&host, "ip");
    let before = host.paths.path(fragments).unwrap().state.account.memory();
    let datagram = [&[0x13, 0x88, 0, 7, 0, 24, 0, 0][..], &[5; 16]].concat();
    // What comes back has the service bits of what came.
    let whole = |host: &mut Host, id: u16, [first, second, third]: [u8; 3]| {
        host.sent();
        for (at, tos) in [(16, third), (0, first), (8, second)] {
            host.arrive(&frame(1, 9, eth::IPV4, &fragment(id, tos, at, at < 16, &datagram[at..at + 8])));
        }
        let sent = host.sent();
        sent.first().map(|frame| ipv4::parse(&frame[eth::HEADER..]).unwrap().header.tos)
    };
    assert_eq!(whole(&mut host, 1, [0xb8; 3]), Some(0xb8));
    assert_eq!(whole(&mut host, 2, [2, 2, CE]), Some(CE));
    assert_eq!(whole(&mut host, 3, [0xb9, 0xba, 0xbb]), Some(0xb8 | CE));
    assert_eq!(whole(&mut host, 4, [1, 2, 2]), Some(1), "the first one's");
    assert_eq!(whole(&mut host, 5, [CE; 3]), Some(CE));
    assert_eq!(whole(&mut host, 6, [0, 0, CE]), None);
    assert_eq!(whole(&mut host, 7, [2, 0, 2]), None);
    assert_eq!(host.paths.path(fragments).unwrap().state.account.memory(), before);
}

#[test]
fn of_a_datagram_in_pieces_a_device_has_verified_all_or_nothing() {
    let mut host = beside_9();
    let echo = host.create("echo", Attrs::new().with(Attr::Local(Endpoint::v4(Ipv4Addr::UNSPECIFIED, 7))));
    let wrong = [&[0x13, 0x88, 0, 7, 0, 24, 1, 2][..], &[5; 16]].concat();
    let mut heard = |id: u16, all: [Checksum; 3]| {
        for (at, checksum) in [0, 8, 16].into_iter().zip(all) {
            let piece = fragment(id, 0, at, at < 16, &wrong[at..at + 8]);
            host.arrive_with(&frame(1, 9, eth::IPV4, &piece), checksum);
        }
        (host.sent().len(), host.drops(echo, DropReason::UdpChecksum))
    };
    let (verified, unknown) = (Checksum::Verified, Checksum::Unknown);
    assert_eq!(heard(1, [verified; 3]), (1, 0));
    assert_eq!(heard(2, [unknown, verified, verified]), (0, 1));
    assert_eq!(heard(3, [verified, unknown, verified]), (0, 2));
    assert_eq!(heard(4, [verified, verified, unknown]), (0, 3));
}

#[test]
fn a_flood_of_fragments_is_bounded() {
    let mut host =
        Host::with(1, Options { setup: |setup| setup.reassembly.memory = 32 * 1024, ..Options::default() });
    let fragments = path_of(&host, "ip");
    let before = host.paths.path(fragments).unwrap().state.account.memory();
    for identification in 0..2000 {
        let mut bytes = vec![0; ipv4::HEADER];
        let piece = ipv4::Emit {
            identification,
            protocol: ipv4::UDP,
            source: ip((identification % 200) as u8 + 2),
            destination: ip(1),
            payload_len: 1024,
            dont_fragment: false,
            more_fragments: true,
            ..Default::default()
        };
        piece.emit(&mut bytes);
        bytes.extend_from_slice(&[5; 1024]);
        host.arrive(&frame(1, 9, eth::IPV4, &bytes));
        let held = host.paths.path(fragments).unwrap().state.account.memory() - before;
        assert!(held <= 32 * 1024, "{held} bytes");
    }
    // Whatever became of them is counted.
    host.advance(Duration::from_secs(31));
    let [crowded_out, late] = [DropReason::IpFragmentLimit, DropReason::IpFragmentTimeout]
        .map(|reason| host.drops(fragments, reason));
    assert!(late > 0 && crowded_out + late == 2000, "{crowded_out} and {late}");
}

// What a path may have can be less than reassembly keeps.
#[test]
fn fragments_that_never_finish_make_room_for_others_when_their_path_may_have_no_more() {
    let mut host = beside_9();
    host.create("echo", Attrs::new().with(Attr::Local(Endpoint::v4(Ipv4Addr::UNSPECIFIED, 7))));
    let fragments = path_of(&host, "ip");
    let account = &mut host.paths.path_mut(fragments).unwrap().state.account;
    account.set_memory_limit(account.memory() + 8 * 1024);
    for (size, ids) in [(1024, 0..20), (8, 20..40)] {
        for id in ids {
            host.arrive(&frame(1, 9, eth::IPV4, &fragment(id, 0, 0, true, &[5; 1024][..size])));
        }
    }
    host.sent();
    let datagram = [&[0x13, 0x88, 0, 7, 0, 24, 0, 0][..], &[5; 16]].concat();
    for at in [0, 8, 16] {
        host.arrive(&frame(1, 9, eth::IPV4, &fragment(99, 0, at, at < 16, &datagram[at..at + 8])));
    }
    assert_eq!(host.sent().len(), 1, "it is whole, and answered");
    // What takes more than there is by itself makes room for nobody.
    for at in 0..9 {
        host.arrive(&frame(1, 9, eth::IPV4, &fragment(100, 0, 1024 * at, true, &[5; 1024])));
    }
    // The forty that never finish, and two pieces for which there was nobody left to give up.
    assert_eq!(host.drops(fragments, DropReason::IpFragmentLimit), 42);
}

#[test]
fn what_waits_for_a_neighbour_whose_place_another_has_got_is_not_forgotten() {
    let setup = |setup: &mut Setup| setup.neighbours.entries = 2;
    let mut host = Host::with(1, Options { setup, ..Options::default() });
    let sockets = [7, 8, 9].map(|n| {
        let ends = Attrs::new().with(Attr::Local(at(1, 5000 + u16::from(n)))).with(Attr::Remote(at(n, 9)));
        (n, host.create("socket", ends))
    });
    for (n, socket) in sockets {
        host.send(socket, at(n, 9), b"where are you?");
    }
    host.sent();
    let mut reached = Vec::new();
    for _ in 0..3 {
        // Whoever is asked for answers.
        let asked = said(&host.sent()).into_iter().map(|question| question.target);
        for there in asked.chain([ip(9), ip(8)]).collect::<Vec<_>>() {
            let [.., n] = there.octets();
            let answer =
                arp::Packet { operation: arp::Operation::Reply, target: ip(1), ..announcement(n, mac(n)) };
            host.arrive(&arp_frame(answer));
        }
        let sent = host.sent().into_iter().filter(|frame| frame[12..14] == eth::IPV4.to_be_bytes());
        reached.extend(sent.map(|frame| frame[5]));
        host.advance(Duration::from_secs(1));
    }
    reached.sort();
    assert_eq!(reached, [7, 8, 9]);
}

// RFC 9293 MUST-49.
#[test]
fn time_to_live_is_the_configurations() {
    let mut spec = rig::graph();
    let ip_module = spec.modules.iter_mut().find(|module| module.kind == "ip").unwrap();
    ip_module.parameters.push(("ttl".into(), Value::Number(9)));
    let mut host = Host::with(1, Options { graph: spec, ..Options::default() });
    let now = host.world.now;
    let arp = host.paths.module_mut::<Arp>().unwrap();
    arp.learn(now, (0, ip(2)), Some(MacAddr(mac(2))), &mut host.world);
    let socket = host.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))).with(Attr::Tos(0xb8)));
    host.send(socket, at(2, 7), b"x");
    let frame = host.sent().remove(0);
    let header = *ipv4::parse(&frame[eth::HEADER..]).unwrap().header;
    assert_eq!((header.ttl, header.tos, header.dont_fragment()), (9, 0xb8, false));
}

#[test]
fn only_a_path_that_hears_of_its_mtu_forbids_fragments() {
    let mut host = Host::new(1);
    let now = host.world.now;
    let arp = host.paths.module_mut::<Arp>().unwrap();
    arp.learn(now, (0, ip(2)), Some(MacAddr(mac(2))), &mut host.world);
    let open = host.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))));
    let connected =
        host.create("socket", Attrs::new().with(Attr::Local(at(1, 5001))).with(Attr::Remote(at(2, 9))));
    for (path, expected) in [(open, false), (connected, true), (open, false)] {
        host.send(path, at(2, 9), b"x");
        let frame = host.sent().remove(0);
        assert_eq!(ipv4::parse(&frame[eth::HEADER..]).unwrap().header.dont_fragment(), expected);
    }
}

// RFC 6864 §4.3.
#[test]
fn packets_that_a_device_makes_of_one_message_have_identifications_of_their_own() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let socket = a.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))));
    a.send(socket, at(2, 9), b"to find each other");
    exchange(&mut a, &mut b);
    let mut send = |gso_size| {
        let (mut headroom, now) = ([0; rig::HEADROOM], a.world.now);
        let meta = Meta { remote: at(2, 9), gso_size, ..Meta::default() };
        let mut message = Message::outgoing(&mut headroom, [&[7; 1000], &[]], meta);
        assert_eq!(a.paths.down(socket, now, &mut a.world, &mut message), Outcome::Done);
        ipv4::parse(&a.sent()[0][eth::HEADER..]).unwrap().header.identification()
    };
    let (first, second, third) = (send(100), send(0), send(0));
    assert!(second.wrapping_sub(first) >= 10, "the message becomes ten packets");
    assert_eq!(third.wrapping_sub(second), 1);
}

#[test]
fn another_ethernet_address_is_that_of_paths_that_exist_too() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    server.create("echo", Attrs::new());
    let socket = client.create("socket", Attrs::new().with(Attr::Local(at(1, 5000))));
    client.send(socket, at(2, 7), b"one");
    exchange(&mut client, &mut server);
    server.paths.module_mut::<Eth>().unwrap().become_station(0, mac(9));
    client.send(socket, at(2, 7), b"two");
    let mut datagram = client.sent().remove(0);
    assert_eq!(server.arrive(&datagram), Some(Outcome::Dropped(DropReason::EthNotForUs)));
    datagram[..6].copy_from_slice(&mac(9));
    server.arrive(&datagram);
    let echoes: Vec<_> = server.sent().iter().map(|frame| frame[6..12].to_vec()).collect();
    assert_eq!(echoes, [mac(9)]);
    // What comes in pieces is put together for that address, too.
    server.paths.module_mut::<Ip>().unwrap().become_station(0, mac(9));
    client.send(socket, at(2, 7), &[7; 3000]);
    let mut pieces = client.sent();
    for piece in &mut pieces {
        piece[..6].copy_from_slice(&mac(9));
        server.arrive(piece);
    }
    assert_eq!((pieces.len(), server.sent().len()), (3, 3));
}
