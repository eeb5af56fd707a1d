//! The walking skeleton: a UDP echo path ETH/IP/UDP/ECHO, in memory.

mod rig;

use core::time::Duration;
use rig::{Host, exchange, ip, ip6};
use silk_modules::ip::Ip;
use silk_modules::ip6::Ip6;
use silk_path::{Attr, Attrs, CreateError, Discovery, DropReason, Endpoint, Event, Message, Meta, Outcome};
use silk_wire::icmp::Unreachable;
use silk_wire::{eth, ipv4};

fn at(n: u8, port: u16) -> Endpoint {
    Endpoint::v4(ip(n), port)
}

fn local(n: u8, port: u16) -> Attrs {
    Attrs::new().with(Attr::Local(at(n, port)))
}

#[test]
fn a_datagram_comes_back_from_the_echo_path() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    let echo = server.create("echo", Attrs::new());
    let socket = client.create("socket", local(1, 5000));
    assert_eq!(client.send(socket, at(2, 7), b"hello, paths"), Outcome::Done);
    exchange(&mut client, &mut server);
    assert_eq!(client.world.delivered, [(socket, at(2, 7), b"hello, paths".to_vec())]);
    let account = server.paths.path(echo).unwrap().state.account;
    assert_eq!((account.packets_in, account.packets_out), (1, 1));
    assert_eq!((account.bytes_in, account.bytes_out), (14 + 20 + 8 + 12, 14 + 20 + 8 + 12));
}

#[test]
fn a_connected_path_hears_its_peer_alone_and_its_errors() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    let connected = client.create("socket", local(1, 5000).with(Attr::Remote(at(2, 9))));
    let other = server.create("socket", local(2, 8));
    assert_eq!(client.send(connected, at(0, 0), b"anyone?"), Outcome::Done);
    exchange(&mut client, &mut server);
    assert_eq!((server.passed, client.world.delivered.len()), (1, 0));
    server.send(other, at(1, 5000), b"not your peer");
    exchange(&mut client, &mut server);
    assert_eq!((client.passed, client.world.delivered.len()), (1, 0));
}

#[test]
fn a_refused_datagram_is_told_to_the_path_that_sent_it() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    let connected = client.create("socket", local(1, 5000).with(Attr::Remote(at(2, 9))));
    exchange(&mut client, &mut server);
    client.send(connected, at(0, 0), b"anyone?");
    let frame = client.sent().remove(0);
    assert_eq!((server.arrive(&frame), server.passed), (None, 1));
    assert!(server.refuse(&frame, Unreachable::Port));
    exchange(&mut client, &mut server);
    assert_eq!(client.world.events, [(connected, Event::Unreachable(111))]);
}

#[test]
fn a_wrong_checksum_is_dropped_with_its_reason() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    let echo = server.create("echo", Attrs::new());
    let socket = client.create("socket", local(1, 5000));
    client.send(socket, at(2, 7), b"first");
    exchange(&mut client, &mut server);
    client.send(socket, at(2, 7), b"second");
    let mut frame = client.sent().remove(0);
    *frame.last_mut().unwrap() ^= 1;
    assert_eq!(server.arrive(&frame), Some(Outcome::Dropped(DropReason::UdpChecksum)));
    assert_eq!(server.drops(echo, DropReason::UdpChecksum), 1);
    assert!(server.sent().is_empty());
}

#[test]
fn two_paths_may_not_have_overlapping_addresses() {
    let mut host = Host::new(1);
    host.create("socket", local(1, 5000).with(Attr::Remote(at(2, 9))));
    let again = host.try_create("socket", local(1, 5000).with(Attr::Remote(at(2, 9))), None);
    assert_eq!(again, Err(CreateError::Overlap { local: at(1, 5000), remote: at(2, 9) }));
    let before = host.paths.len();
    host.create("socket", local(1, 6000));
    assert!(matches!(host.try_create("socket", local(1, 6000), None), Err(CreateError::Overlap { .. })));
    assert_eq!(host.paths.len(), before + 1);
}

#[test]
fn destroying_every_path_leaves_nothing() {
    let mut host = Host::new(1);
    host.create("socket", local(1, 5000).with(Attr::Remote(at(2, 9))));
    // Its next hop is asked for and a message waits: charged memory that must come back.
    let waiting = host.create("socket", local(1, 5001));
    host.send(waiting, at(3, 9), b"waits for an address");
    assert!(host.paths.classes.of(0).memory() > 0);
    for path in host.paths.iter().map(|path| path.id()).collect::<Vec<_>>() {
        host.destroy(path);
    }
    let class = host.paths.classes.of(0);
    assert_eq!((host.paths.len(), class.paths(), class.memory()), (0, 0, 0));
    assert_eq!((host.tables.flows.count(), host.world.timers.len()), (0, 0));
}

#[test]
fn a_neighbour_that_never_answers_costs_the_message_and_no_more() {
    let mut host = Host::new(1);
    let socket = host.create("socket", local(1, 5000));
    assert_eq!(host.send(socket, at(9, 9), b"first waits"), Outcome::Done);
    assert_eq!(host.send(socket, at(9, 9), b"second too"), Outcome::Done);
    host.advance(Duration::from_secs(5));
    assert_eq!(host.sent().len(), 3, "three requests");
    assert_eq!(host.drops(socket, DropReason::ArpFailed), 2);
}

// RFC 1122 §2.3.2.2.
#[test]
fn what_waits_for_a_neighbour_leaves_in_order_and_of_too_much_the_latest() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    let (socket, listener) = (client.create("socket", local(1, 5000)), server.create("socket", local(2, 9)));
    let datagram = |n: u8| [n; 1400];
    for n in 0..100 {
        assert_eq!(client.send(socket, at(2, 9), &datagram(n)), Outcome::Done);
    }
    let lost = client.drops(socket, DropReason::ArpPending);
    assert!((10..20).contains(&lost), "128 KB wait, with what it takes to keep them; not the first {lost}");
    exchange(&mut client, &mut server);
    let came: Vec<_> =
        server.world.delivered.iter().map(|(path, _, bytes)| (*path, bytes.as_slice())).collect();
    let sent: Vec<_> = (lost as u8..100).map(datagram).collect();
    assert_eq!(came, sent.iter().map(|bytes| (listener, bytes.as_slice())).collect::<Vec<_>>());
}

#[test]
fn what_waits_for_a_neighbour_as_its_path_ends_is_sent() {
    for (name, there) in [("ip", at(2, 9)), ("ip6", Endpoint::v6(ip6(2), 9))] {
        let (mut client, mut server) = (Host::six(1), Host::six(2));
        let memory = client.paths.classes.of(0).memory();
        let ours = if there.is_v6() { Endpoint::v6(ip6(1), 5000) } else { at(1, 5000) };
        let listener = server.create("socket", Attrs::new().with(Attr::Local(there)));
        for peer in [None, Some(there)] {
            let bound = Attrs::new().with(Attr::Local(ours));
            let socket = client.create("socket", peer.map_or(bound, |peer| bound.with(Attr::Remote(peer))));
            for words in [b"first", b"words"] {
                assert_eq!(client.send(socket, there, words), Outcome::Done);
            }
            client.destroy(socket);
        }
        exchange(&mut client, &mut server);
        let words: Vec<_> =
            ["first", "words"].repeat(2).into_iter().map(|one| (listener, ours, one.into())).collect();
        assert_eq!(server.world.delivered, words, "{name}");
        assert_eq!(client.paths.classes.of(0).memory(), memory, "{name}");
    }
}

/// What a message to station 2 wishes, on IP's own path.
fn on_own_path(client: &mut Host, six: bool, (tos, hops, discovery): (u8, u8, Discovery)) {
    let there = if six { Endpoint::v6(ip6(2), 9) } else { at(2, 9) };
    let meta = Meta { remote: there, protocol: ipv4::UDP, tos, hops, discovery, ..Meta::default() };
    let paths = &mut client.paths;
    let own = if six {
        paths.module_mut::<Ip6>().unwrap().own_path()
    } else {
        paths.module_mut::<Ip>().unwrap().own_path()
    };
    let mut headroom = [0; rig::HEADROOM];
    let mut message = Message::outgoing(&mut headroom, [&[0; 8], b""], meta);
    let outcome = paths.down(own.unwrap(), client.world.now, &mut client.world, &mut message);
    assert_eq!(outcome, Outcome::Done);
}

#[test]
fn each_message_on_ips_own_path_leaves_as_it_wishes_though_it_has_waited() {
    const WISHES: [(u8, u8, Discovery); 4] = [
        (0x48, 7, Discovery::Do),
        (0, 0, Discovery::Want),
        (0x20, 9, Discovery::Probe),
        (0, 255, Discovery::Dont),
    ];
    for six in [false, true] {
        let (mut client, mut server) = (Host::six(1), Host::six(2));
        WISHES.into_iter().for_each(|wishes| on_own_path(&mut client, six, wishes));
        let mut left = Vec::new();
        for _ in 0..8 {
            server.sent().iter().for_each(|frame| _ = client.arrive(frame));
            for frame in client.sent() {
                let packet = &frame[eth::HEADER..];
                let four = (packet[1], packet[8], packet[6] & 0x40 != 0);
                let told = if six { (packet[0] << 4 | packet[1] >> 4, packet[7], false) } else { four };
                left.extend((packet[if six { 6 } else { 9 }] == ipv4::UDP).then_some(told));
                server.arrive(&frame);
            }
        }
        let wished = WISHES.map(|(tos, hops, discovery)| {
            let whole = !six && matches!(discovery, Discovery::Do | Discovery::Probe);
            (tos, if hops == 0 { 64 } else { hops }, whole)
        });
        assert_eq!(left, wished, "six: {six}");
    }
}

#[test]
fn what_an_ended_path_left_for_nobody_is_given_up_and_paths_that_leave_something_are_bounded() {
    let mut host = Host::new(1);
    let before = host.paths.classes.of(0).memory();
    for port in 0..100 {
        let socket = host.create("socket", local(1, 5000 + port));
        assert_eq!(host.send(socket, at(9, 9), b"last words"), Outcome::Done);
        host.destroy(socket);
    }
    let one = (host.paths.classes.of(0).memory() - before) / 64;
    assert!((64..512).contains(&one), "{one} bytes for each of 64");
    host.advance(Duration::from_secs(5));
    assert_eq!(host.paths.classes.of(0).memory(), before);
}

#[test]
fn an_echo_never_answers_an_echo() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    let echo = server.create("echo", Attrs::new());
    let socket = client.create("socket", local(1, 7));
    client.send(socket, at(2, 7), b"ping");
    exchange(&mut client, &mut server);
    assert_eq!(server.drops(echo, DropReason::Unexpected), 1);
}

#[test]
fn a_filter_ends_with_its_path_whether_that_has_a_peer_or_not() {
    use silk_path::classify::{Filter, Found, Framed};
    let mut host = Host::new(1);
    for attrs in [local(1, 5000), local(1, 5000).with(Attr::Remote(at(2, 9)))] {
        let path = host.create("socket", attrs);
        let found = Found { domain: 0, index: path.index };
        assert_eq!(host.tables.discard(found, &Filter::none(Framed::Mflow)), Ok(()));
        host.destroy(path);
        assert_eq!(host.tables.filter(found), None);
    }
}
