//! Connections, whose segments fit the way, and the errors that are about them.

use super::*;

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

// RFC 8201 §4, §5.4.
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
        client.advance(Duration::ZERO);
        let longest = packets(&mut client).iter().map(|(_, packet)| packet.len()).max();
        assert_eq!(longest, expected, "{said}");
        settle(&mut client, &mut server);
    }
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
