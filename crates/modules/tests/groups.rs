//! A host tells the link which groups it hears: when it joins and leaves, and when a router asks.

mod rig;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use rig::{Host, Options, graph6, ip, ip6, mac};
use silk_modules::filter::Filter;
use silk_modules::igmp::Igmp;
use silk_modules::mld::Mld;
use silk_path::{Attr, Attrs, Bell, DropReason, Endpoint, PathId, Wishes};
use silk_wire::{checksum, eth, icmpv6, igmp, ipv4, ipv6, mld};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const GROUP6: Ipv6Addr = Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 0x99);
const ROUTER6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9);

/// A host that owns its interface, and its paths of IGMP and MLD.
fn host() -> (Host, PathId, PathId) {
    let graph = graph6()
        .module("igmp", "igmp", &[])
        .module("mld", "mld", &[])
        .link("igmp.down", "eth.up")
        .link("mld.down", "eth.up");
    let setup = |setup: &mut silk_modules::Setup| {
        setup.standing.add(0, (ipv6::link_local(mac(1)).into(), 64));
    };
    let mut host = Host::with(1, Options { graph, setup, ..Options::six() });
    let paths = (host.create("igmp", Attrs::new()), host.create("mld", Attrs::new()));
    host.advance(Duration::from_secs(5));
    host.sent();
    (host, paths.0, paths.1)
}

/// The host joins a group or leaves it.
fn change(host: &mut Host, group: IpAddr, joined: bool) {
    choose(host, group, &if joined { Filter::everybody() } else { Filter::nobody() });
}

/// The host hears these sources of a group.
fn choose(host: &mut Host, group: IpAddr, filter: &Filter<IpAddr>) {
    let now = host.world.now;
    match group {
        IpAddr::V4(group) => {
            let module = host.paths.module_mut::<Igmp>().unwrap();
            let filter =
                filter.of(|source| if let IpAddr::V4(source) = source { Some(*source) } else { None });
            module.change(now, group, filter, &mut host.world);
        }
        IpAddr::V6(group) => {
            let module = host.paths.module_mut::<Mld>().unwrap();
            let filter =
                filter.of(|source| if let IpAddr::V6(source) = source { Some(*source) } else { None });
            module.change(now, group, filter, &mut host.world);
        }
    }
    host.settle();
}

/// What a frame says of one group: its Ethernet destination, the message's first byte, and the first
/// record's sort and group.
fn said(frame: &[u8]) -> ([u8; 6], u8, u8, IpAddr) {
    let link = frame[..6].try_into().unwrap();
    if frame[12..14] == eth::IPV4.to_be_bytes() {
        let packet = ipv4::parse(&frame[eth::HEADER..]).unwrap();
        assert_eq!((packet.header.protocol, packet.header.ttl, packet.options), (2, 1, &[148, 4, 0, 0][..]));
        assert_eq!(checksum::Sum::ZERO.bytes(packet.payload).folded(), 0xffff);
        let group: [u8; 4] = packet.payload[12..16].try_into().unwrap();
        return (link, packet.payload[0], packet.payload[8], Ipv4Addr::from(group).into());
    }
    let packet = ipv6::parse(&frame[eth::HEADER..]).unwrap();
    assert_eq!((packet.protocol, packet.header.hop_limit, packet.headers_len), (ipv6::ICMP, 1, 48));
    let (source, destination) = (packet.header.source(), packet.header.destination());
    assert_eq!(source, ipv6::link_local(mac(1)));
    let pseudo = checksum::pseudo6(source, destination, ipv6::ICMP, packet.payload.len() as u16);
    assert!(icmpv6::parse(packet.payload, silk_wire::Accept::Full, pseudo).is_ok());
    let group: [u8; 16] = packet.payload[12..28].try_into().unwrap();
    (link, packet.payload[0], packet.payload[8], Ipv6Addr::from(group).into())
}

/// A router's question for all groups, of version 3, in an Ethernet frame.
fn query(ttl: u8) -> Vec<u8> {
    query_to([1, 0, 0x5e, 0, 0, 1], igmp::ALL_SYSTEMS, ttl)
}

/// The same to this station.
fn query_to(link: [u8; 6], destination: Ipv4Addr, ttl: u8) -> Vec<u8> {
    let mut message = vec![0x11, 10, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0];
    let sum = checksum::Sum::ZERO.bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = vec![0; eth::HEADER + ipv4::HEADER + 4];
    frame[..6].copy_from_slice(&link);
    frame[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 8, 0]);
    let header = ipv4::Emit {
        ttl,
        protocol: igmp::PROTOCOL,
        source: Ipv4Addr::new(10, 0, 0, 9),
        destination,
        payload_len: message.len() as u16,
        ..ipv4::Emit::default()
    };
    header.emit_alert(&mut frame[eth::HEADER..]);
    frame.extend(message);
    frame
}

/// The same over IPv6, from this address.
fn query6(source: Ipv6Addr) -> Vec<u8> {
    query6_to([0x33, 0x33, 0, 0, 0, 1], mld::ALL_NODES, source)
}

/// The same to this station.
fn query6_to(link: [u8; 6], destination: Ipv6Addr, source: Ipv6Addr) -> Vec<u8> {
    let mut message = vec![130, 0, 0, 0, 3, 0xe8, 0, 0];
    message.extend([0; 16]);
    message.extend([2, 125, 0, 0]);
    mld_frame(link, destination, source, message)
}

/// A frame with this message, whose checksum is still to be made, behind a router alert.
fn mld_frame(link: [u8; 6], destination: Ipv6Addr, source: Ipv6Addr, mut message: Vec<u8>) -> Vec<u8> {
    let len = message.len() as u16;
    icmpv6::seal(checksum::pseudo6(source, destination, ipv6::ICMP, len), &mut message);
    let mut frame = vec![0; eth::HEADER + ipv6::HEADER];
    frame[..6].copy_from_slice(&link);
    frame[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 0x86, 0xdd]);
    let header = ipv6::Emit {
        next_header: 0,
        hop_limit: 1,
        source,
        destination,
        payload_len: mld::ALERT.len() as u16 + len,
        ..ipv6::Emit::default()
    };
    header.emit(&mut frame[eth::HEADER..]);
    frame.extend(mld::ALERT);
    frame.extend(message);
    frame
}

#[test]
fn joining_and_leaving_are_told_twice() {
    let (mut host, ..) = host();
    for (group, link, kind) in [
        (IpAddr::from(GROUP), [1, 0, 0x5e, 0, 0, 22], 0x22),
        (GROUP6.into(), [0x33, 0x33, 0, 0, 0, 0x16], 143),
    ] {
        for (joined, sort) in [(true, 4), (false, 3)] {
            change(&mut host, group, joined);
            host.advance(Duration::from_secs(2));
            let all: Vec<_> = host.sent().iter().map(|frame| said(frame)).collect();
            assert_eq!(all, [(link, kind, sort, group); 2]);
        }
    }
}

#[test]
fn sources_that_are_chosen_are_told_in_as_many_reports_as_it_takes() {
    let (mut host, ..) = host();
    let source = |n: u8| IpAddr::from([192, 0, 2, n]);
    let source6 = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n]);
    let (mut four, mut six) = (Filter::nobody(), Filter::nobody());
    (1..=60).for_each(|n| assert!(four.list(source(n)) && six.list(source6(n.into()))));
    let groups = |n: u8| [IpAddr::from([239, 1, 2, n]), IpAddr::from([0xff15, 0, 0, 0, 0, 0, 0, n.into()])];
    for n in 1..4 {
        let [group, group6] = groups(n);
        choose(&mut host, group, &four);
        choose(&mut host, group6, &six);
    }
    let frames = host.sent();
    let all: Vec<_> = frames.iter().map(|frame| said(frame)).map(|said| (said.2, said.3)).collect();
    let expected: Vec<_> = (1..4).flat_map(groups).map(|group| (5, group)).collect();
    assert_eq!(all, expected, "sources that are allowed");
    assert!(frames.iter().all(|frame| frame.len() < 1280));
    let packet = ipv4::parse(&frames[0][eth::HEADER..]).unwrap();
    assert_eq!((&packet.payload[10..12], &packet.payload[16..20]), (&[0, 60][..], &[192, 0, 2, 1][..]));
}

#[test]
fn sources_that_change_faster_than_they_are_told_are_told_of_all_the_same() {
    let (mut host, ..) = host();
    let excluded = |group: IpAddr, from: u16| {
        let mut filter = Filter::everybody();
        (from..from + 60).for_each(|n| {
            let four = IpAddr::from([192, 0, 2, n as u8]);
            filter.list(if group.is_ipv6() { [0x2001, 0xdb8, 0, 0, 0, 0, 0, n].into() } else { four });
        });
        filter
    };
    for group in [IpAddr::from(GROUP), GROUP6.into()] {
        choose(&mut host, group, &excluded(group, 1));
        host.advance(Duration::from_secs(2));
        choose(&mut host, group, &excluded(group, 61));
        host.sent();
        choose(&mut host, group, &excluded(group, 121));
        let told = host.sent();
        let told = told.iter().map(|frame| {
            let message = if group.is_ipv6() { 48 } else { 24 };
            (said(frame).2, frame[eth::HEADER + message + 11])
        });
        // ALLOW_NEW_SOURCES and BLOCK_OLD_SOURCES.
        assert_eq!(told.collect::<Vec<_>>(), [(5, 60), (5, 60), (6, 60)]);
    }
}

#[test]
fn a_router_that_asks_is_answered_within_its_time() {
    let (mut host, ..) = host();
    change(&mut host, GROUP.into(), true);
    change(&mut host, GROUP6.into(), true);
    host.advance(Duration::from_secs(2));
    host.sent();
    host.arrive(&query(1));
    host.arrive(&query6(ROUTER6));
    assert_eq!(host.sent(), Vec::<Vec<u8>>::new());
    host.advance(Duration::from_secs(1));
    let mut all: Vec<_> = host.sent().iter().map(|frame| said(frame)).map(|said| (said.2, said.3)).collect();
    all.sort_unstable();
    assert_eq!(all, [(2, IpAddr::from(GROUP)), (2, GROUP6.into())]);
}

// RFC 3376 §4.1.12, RFC 3810 §5.1.15.
#[test]
fn who_asks_us_alone_is_answered_too_and_who_asks_others_is_not() {
    let (mut host, igmp, mld) = host();
    change(&mut host, GROUP.into(), true);
    change(&mut host, GROUP6.into(), true);
    host.advance(Duration::from_secs(2));
    host.sent();
    let mut answered = |four: Ipv4Addr, six: Ipv6Addr| {
        host.arrive(&query_to(mac(1), four, 1));
        host.arrive(&query6_to(mac(1), six, ROUTER6));
        host.advance(Duration::from_secs(2));
        let mut all: Vec<_> = host.sent().iter().map(|frame| said(frame).3).collect();
        all.sort_unstable();
        all
    };
    let both = [IpAddr::from(GROUP), GROUP6.into()];
    assert_eq!(answered(ip(1), ip6(1)), both);
    assert_eq!(answered(ip(1), ipv6::link_local(mac(1))), both);
    // A group that we hear is an address of ours.
    assert_eq!(answered(GROUP, GROUP6), both);
    assert_eq!(answered(ip(2), ip6(2)), Vec::<IpAddr>::new());
    assert_eq!([igmp, mld].map(|path| host.drops(path, DropReason::GroupIgnored)), [1, 1]);
}

#[test]
fn questions_from_beyond_the_link_are_ignored() {
    let (mut host, igmp, mld) = host();
    change(&mut host, GROUP.into(), true);
    host.advance(Duration::from_secs(2));
    host.sent();
    host.arrive(&query(2));
    host.arrive(&query6("fd00::9".parse().unwrap()));
    host.advance(Duration::from_secs(2));
    assert_eq!(host.sent(), Vec::<Vec<u8>>::new());
    assert_eq!([igmp, mld].map(|path| host.drops(path, DropReason::GroupIgnored)), [1, 1]);
}

#[test]
fn reports_come_from_the_address_that_is_ours_now() {
    let (mut host, ..) = host();
    for (ours, source) in [(vec![ip(7)], ip(7)), (vec![], Ipv4Addr::UNSPECIFIED)] {
        host.paths.module_mut::<Igmp>().unwrap().become_these(&ours);
        change(&mut host, GROUP.into(), source == ip(7));
        let sent = host.sent();
        assert_eq!(ipv4::parse(&sent[0][eth::HEADER..]).unwrap().header.source(), source);
    }
}

// RFC 1112 §6.1, RFC 4291 §2.7.
#[test]
fn what_is_for_this_machine_alone_does_not_leave_it() {
    let (mut host, ..) = host();
    let attrs = |local: IpAddr| Attrs::new().with(Attr::Local(Endpoint::new(local, 5000)));
    let (four, six) = (host.create("echo", attrs(ip(1).into())), host.create("echo", attrs(ip6(1).into())));
    let mut leaves = |group: IpAddr, hops| {
        let path = if group.is_ipv4() { four } else { six };
        host.bell(path, Bell::Wishes(Wishes { group_ttl: hops, group_hops: hops, ..Wishes::default() }));
        host.send(path, Endpoint::new(group, 7), b"hello");
        let sent = host.sent();
        (sent.len(), host.drops(path, DropReason::IpStaysHere))
    };
    let interface_local: Ipv6Addr = "ff01::99".parse().unwrap();
    assert_eq!([leaves(GROUP.into(), None), leaves(GROUP.into(), Some(0))], [(1, 0), (0, 1)]);
    assert_eq!([leaves(GROUP6.into(), None), leaves(GROUP6.into(), Some(0))], [(1, 0), (0, 1)]);
    assert_eq!([leaves(interface_local.into(), None), leaves(GROUP.into(), Some(9))], [(0, 2), (1, 1)]);
}

/// A router's question of IGMP's second version.
fn old_query() -> Vec<u8> {
    let mut message = vec![0x11, 10, 0, 0, 0, 0, 0, 0];
    let sum = checksum::Sum::ZERO.bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = query(1)[..eth::HEADER].to_vec();
    frame.resize(eth::HEADER + ipv4::HEADER + 4, 0);
    let header = ipv4::Emit {
        ttl: 1,
        protocol: igmp::PROTOCOL,
        source: ip(9),
        destination: igmp::ALL_SYSTEMS,
        payload_len: message.len() as u16,
        ..ipv4::Emit::default()
    };
    header.emit_alert(&mut frame[eth::HEADER..]);
    frame.extend(message);
    frame
}

/// The same of MLD's first.
fn old_query6() -> Vec<u8> {
    let mut message = vec![130, 0, 0, 0, 3, 0xe8, 0, 0];
    message.extend([0; 16]);
    mld_frame([0x33, 0x33, 0, 0, 0, 1], mld::ALL_NODES, ROUTER6, message)
}

// RFC 3376 §7.2.1, RFC 3810 §8.2.1.
#[test]
fn an_older_router_is_told_at_the_group_that_it_is_heard_and_at_all_routers_that_it_is_left() {
    let (mut host, ..) = host();
    host.arrive(&old_query());
    host.arrive(&old_query6());
    host.advance(Duration::from_secs(2));
    host.sent();
    let mut told = |group: IpAddr, filter: &Filter<IpAddr>| {
        choose(&mut host, group, filter);
        host.advance(Duration::from_secs(2));
        let read = |frame: &Vec<u8>| -> (IpAddr, u8) {
            if frame[12..14] == eth::IPV4.to_be_bytes() {
                let packet = ipv4::parse(&frame[eth::HEADER..]).unwrap();
                (packet.header.destination().into(), packet.payload[0])
            } else {
                let packet = ipv6::parse(&frame[eth::HEADER..]).unwrap();
                (packet.header.destination().into(), packet.payload[0])
            }
        };
        host.sent().iter().map(read).collect::<Vec<_>>()
    };
    for (group, routers, source, [heard, left]) in [
        (IpAddr::from(GROUP), IpAddr::from(igmp::ALL_ROUTERS), IpAddr::from(ip(9)), [0x16, 0x17]),
        (GROUP6.into(), mld::ALL_ROUTERS.into(), ROUTER6.into(), [131, 132]),
    ] {
        assert_eq!(told(group, &Filter::everybody()), [(group, heard); 2]);
        let mut but_one = Filter::everybody();
        but_one.list(source);
        assert_eq!(told(group, &but_one), [], "of single sources it knows nothing");
        assert_eq!(told(group, &Filter::nobody()), [(routers, left); 2]);
    }
}
