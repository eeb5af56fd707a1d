//! What routers of IPv6 tell a host that has its link for itself: who leads beyond the link, and its
//! addresses there.

mod rig;

use core::net::Ipv6Addr;
use core::time::Duration;
use rig::{Host, Options, ip6, mac};
use silk_modules::Standing;
use silk_modules::ip::Routes;
use silk_modules::ip6::Ip6;
use silk_modules::nd::Nd;
use silk_path::{Advertised, Attr, Attrs, DropReason, Endpoint, Outcome};
use silk_wire::{MacAddr, checksum, eth, icmpv6, ipv6, ndp};

const OURS: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A host with a link-local address.
fn host(heeds: bool) -> Host {
    let setup = |setup: &mut silk_modules::Setup| setup.standing.add(0, (OURS.into(), 64));
    let heeding = |setup: &mut silk_modules::Setup| {
        setup.standing.add(0, (OURS.into(), 64));
        setup.heeds_routers = true;
    };
    Host::with(1, Options { setup: if heeds { heeding } else { setup }, ..Options::six() })
}

/// The address that host 1 makes of a prefix: its link address is 2:0:0:0:0:1.
fn made(prefix: u16) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac(1);
    let of = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0x2001, 0xdb8, prefix, 0, of(a ^ 2, b), of(c, 0xff), of(0xfe, d), of(e, f))
}

/// A router's advertisement from `source` with one prefix, that holds for `valid` seconds.
fn advertisement(source: Ipv6Addr, hop_limit: u8, lifetime: u16, (prefix, valid): (u16, u32)) -> Vec<u8> {
    let mut message = vec![0; 48];
    message[6..8].copy_from_slice(&lifetime.to_be_bytes());
    message[16..20].copy_from_slice(&[3, 4, 64, 0xc0]);
    message[20..24].copy_from_slice(&valid.to_be_bytes());
    message[24..28].copy_from_slice(&valid.to_be_bytes());
    message[32..38].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8, (prefix >> 8) as u8, prefix as u8]);
    framed(source, hop_limit, message)
}

/// One that says how far and how wide.
fn link_advertisement(hops: u8, mtu: u32) -> Vec<u8> {
    let mut message = vec![0; 24];
    message[4] = hops;
    message[16..18].copy_from_slice(&[5, 1]);
    message[20..24].copy_from_slice(&mtu.to_be_bytes());
    framed(ROUTER, 255, message)
}

/// An advertisement in an Ethernet frame.
fn framed(source: Ipv6Addr, hop_limit: u8, mut message: Vec<u8>) -> Vec<u8> {
    message[0] = ndp::ROUTER_ADVERTISEMENT;
    framed_as(source, ALL_NODES, hop_limit, message)
}

/// A message of neighbour discovery in an Ethernet frame.
fn framed_as(source: Ipv6Addr, destination: Ipv6Addr, hop_limit: u8, mut message: Vec<u8>) -> Vec<u8> {
    let length = message.len() as u16;
    icmpv6::seal(checksum::pseudo6(source, destination, ipv6::ICMP, length), &mut message);
    let mut frame = vec![0; eth::HEADER + ipv6::HEADER];
    let to = if destination.is_multicast() { ipv6::group(destination) } else { mac(1) };
    eth::Header::new(MacAddr(to), MacAddr(mac(9)), eth::IPV6).emit(&mut frame);
    ipv6::Emit {
        next_header: ipv6::ICMP,
        source,
        destination,
        hop_limit,
        payload_len: length,
        ..Default::default()
    }
    .emit(&mut frame[eth::HEADER..]);
    frame.extend(message);
    frame
}

/// The messages of neighbour discovery that a host has sent, with whom they are for.
fn said(host: &mut Host) -> Vec<(Ipv6Addr, ndp::Message)> {
    let sent = host.sent().into_iter();
    sent.filter_map(|frame| {
        let packet =
            ipv6::parse(&frame[eth::HEADER..]).ok().filter(|packet| packet.protocol == ipv6::ICMP)?;
        let message = ndp::parse(packet.header.hop_limit, packet.payload).ok()?;
        Some((packet.header.destination(), message))
    })
    .collect()
}

fn questions(host: &mut Host) -> usize {
    said(host).iter().filter(|(_, message)| *message == ndp::Message::RouterSolicitation).count()
}

#[test]
fn a_router_and_its_prefix_are_told_once_and_until_they_end() {
    let mut host = host(true);
    host.settle();
    let told = advertisement(ROUTER, 255, 1800, (7, 86_400));
    assert_eq!(host.arrive(&told), Some(Outcome::Done));
    assert_eq!(host.arrive(&told), Some(Outcome::Done));
    host.settle();
    let told = |addresses, router| Advertised { addresses, router, ..Advertised::default() };
    assert_eq!(host.world.routed, [told(vec![(made(7), 64)], Some(ROUTER))]);
    host.advance(Duration::from_secs(1801));
    assert_eq!(host.world.routed.last(), Some(&told(vec![(made(7), 64)], None)));
    host.advance(Duration::from_secs(86_400));
    assert_eq!(host.world.routed.last(), Some(&told(vec![], None)));
}

#[test]
fn a_router_says_how_far_and_how_wide_for_paths_that_begin_then() {
    let mut host = host(true);
    host.settle();
    assert_eq!(host.arrive(&link_advertisement(9, 1400)), Some(Outcome::Done));
    assert_eq!(host.arrive(&link_advertisement(9, 1400)), Some(Outcome::Done));
    host.settle();
    let told = Advertised { hops: Some(9), mtu: Some(1400), ..Advertised::default() };
    assert_eq!(host.world.routed, [told]);
    host.paths.module_mut::<Ip6>().unwrap().heed(Some(9), Some(1400));
    let to = Endpoint::v6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2), 9);
    let path =
        host.create("socket", Attrs::new().with(Attr::Remote(to)).with(Attr::Local(Endpoint::v6(OURS, 9))));
    assert_eq!(host.paths.path(path).unwrap().state.attrs.path_mtu(), Some(1400));
}

#[test]
fn what_stands_behind_an_advertisement_in_its_frame_is_none_of_it() {
    let mut host = host(true);
    host.settle();
    let with_prefix = advertisement(ROUTER, 255, 1800, (7, 86_400));
    let mut frame = link_advertisement(9, 1400);
    frame.extend_from_slice(&with_prefix[with_prefix.len() - 32..]);
    assert_eq!(host.arrive(&frame), Some(Outcome::Done));
    host.settle();
    assert_eq!(host.world.routed, [Advertised { hops: Some(9), mtu: Some(1400), ..Advertised::default() }]);
}

#[test]
fn an_address_that_is_made_is_asked_for_before_anybody_answers_for_it() {
    let mut host = host(true);
    host.settle();
    said(&mut host);
    let nd = host.paths.module_mut::<Nd>().unwrap();
    nd.become_these(&[OURS, made(7)], &mut host.world);
    host.settle();
    let probe = ndp::Message::Solicitation { target: made(7), link: None };
    assert_eq!(said(&mut host), [(ipv6::solicited_node(made(7)), probe)], "of ours it was asked before");
    let nd = host.paths.module_mut::<Nd>().unwrap();
    assert!(nd.addresses().eq([OURS, made(7)]));
}

#[test]
fn routers_are_asked_for_until_one_answers() {
    let mut host = host(true);
    host.settle();
    assert_eq!(questions(&mut host), 1);
    host.advance(Duration::from_secs(5));
    assert_eq!(questions(&mut host), 1);
    host.arrive(&advertisement(ROUTER, 255, 9, (7, 0)));
    host.advance(Duration::from_secs(60));
    assert_eq!(questions(&mut host), 0);
}

// RFC 4861 §6.3.7.
#[test]
fn who_leads_nowhere_does_not_end_the_search_for_a_router() {
    let mut host = host(true);
    questions(&mut host);
    host.arrive(&advertisement(ROUTER, 255, 0, (7, 600)));
    host.advance(Duration::from_secs(5));
    assert_eq!(questions(&mut host), 1);
}

// RFC 4861 §6.3.6, §7.3.
#[test]
fn a_router_that_is_dead_leads_no_longer_where_there_is_another() {
    let mut host = host(true);
    host.advance(Duration::from_secs(10));
    let second = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 8);
    for router in [ROUTER, second] {
        host.arrive(&advertisement(router, 255, 9000, (7, 86_400)));
    }
    let leads = |host: &Host| host.world.routed.last().unwrap().router;
    assert_eq!(leads(&host), Some(ROUTER));
    // What is far goes by it, and it does not answer.
    let ours = [(OURS.into(), 64), (ip6(1).into(), 64)];
    host.paths.module_mut::<Ip6>().unwrap().follow(Routes::of(&Standing::of(&ours, [ROUTER.into()])));
    let path = host.create("socket", Attrs::new().with(Attr::Local(Endpoint::v6(ip6(1), 5000))));
    host.send(path, Endpoint::v6(Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 9), 9), b"far");
    host.advance(Duration::from_millis(2500));
    assert_eq!(leads(&host), Some(second), "it has been asked for three times");
    // What has waited for it goes by the other, and nobody is told that there is no way.
    host.paths.module_mut::<Ip6>().unwrap().follow(Routes::of(&Standing::of(&ours, [second.into()])));
    said(&mut host);
    host.advance(Duration::from_secs(1));
    let question = ndp::Message::Solicitation { target: second, link: Some(MacAddr(mac(1))) };
    assert!(said(&mut host).contains(&(ipv6::solicited_node(second), question)));
    host.arrive(&answer(second, true));
    host.settle();
    let sent = host.sent();
    assert!(sent.iter().any(|frame| frame.ends_with(b"far")), "{sent:?}");
    // A minute later it is asked whether it is back, and it is.
    said(&mut host);
    host.advance(Duration::from_secs(60));
    let question = ndp::Message::Solicitation { target: ROUTER, link: Some(MacAddr(mac(1))) };
    assert!(said(&mut host).contains(&(ipv6::solicited_node(ROUTER), question)));
    host.arrive(&answer(ROUTER, true));
    assert_eq!(leads(&host), Some(ROUTER));
}

// RFC 4861 §6.3.6, §7.3.3. What routers tell comes to one domain, and packets by the router may be another's alone.
#[test]
fn a_router_that_is_dead_for_another_domain_alone_leads_no_longer() {
    let (mut hears, mut sends) = (host(true), host(true));
    let second = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 8);
    for router in [ROUTER, second] {
        hears.arrive(&advertisement(router, 255, 9000, (7, 86_400)));
    }
    let leads = |host: &Host| host.world.routed.last().unwrap().router;
    assert_eq!(leads(&hears), Some(ROUTER));
    let ours = [(OURS.into(), 64), (ip6(1).into(), 64)];
    sends.paths.module_mut::<Ip6>().unwrap().follow(Routes::of(&Standing::of(&ours, [ROUTER.into()])));
    let path = sends.create("socket", Attrs::new().with(Attr::Local(Endpoint::v6(ip6(1), 5000))));
    let beside = Endpoint::v6(ip6(77), 9);
    for to in [Endpoint::v6(Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 9), 9), beside] {
        sends.send(path, to, b"by nobody who answers");
    }
    sends.advance(Duration::from_millis(2500));
    assert_eq!(sends.world.lost, [ROUTER], "{:?} is no router's address", beside.ip());
    assert!(sends.paths.module_mut::<Ip6>().unwrap().routes.leads_by(ROUTER));
    assert!(!sends.paths.module_mut::<Ip6>().unwrap().routes.leads_by(second));
    let now = hears.world.now;
    for lost in [ROUTER, Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7)] {
        hears.paths.module_mut::<Nd>().unwrap().doubt_router(now, lost, &mut hears.world);
        hears.settle();
        assert_eq!(leads(&hears), Some(second));
    }
}

/// What that station answers who asks where it is, and whether it is a router.
fn answer(station: Ipv6Addr, is_router: bool) -> Vec<u8> {
    let mut message = vec![0; ndp::MESSAGE];
    ndp::emit_advertisement(station, MacAddr(mac(9)), (true, true), &mut message);
    message[4] |= if is_router { 0x80 } else { 0 };
    framed_as(station, OURS, 255, message)
}

// RFC 4861 §7.2.5.
#[test]
fn who_says_that_it_is_no_router_any_more_leads_nowhere() {
    let mut host = host(true);
    host.settle();
    host.arrive(&advertisement(ROUTER, 255, 9000, (7, 86_400)));
    let told = |host: &Host| host.world.routed.last().cloned().unwrap();
    for says in [answer(ROUTER, true), answer(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 8), false)] {
        host.arrive(&says);
        assert_eq!(told(&host).router, Some(ROUTER));
    }
    host.arrive(&answer(ROUTER, false));
    assert_eq!((told(&host).router, told(&host).addresses), (None, vec![(made(7), 64)]));
    host.arrive(&advertisement(ROUTER, 255, 9000, (7, 86_400)));
    assert_eq!(told(&host).router, Some(ROUTER));
}

#[test]
fn what_no_router_of_this_link_can_have_said_is_dropped() {
    let mut host = host(true);
    host.settle();
    let wide = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
    for (source, hop_limit, why) in
        [(ROUTER, 254, DropReason::NdForwarded), (wide, 255, DropReason::NdMalformed)]
    {
        let outcome = host.arrive(&advertisement(source, hop_limit, 1800, (7, 9)));
        assert_eq!(outcome, Some(Outcome::Dropped(why)));
    }
    assert!(host.world.routed.is_empty());
}

#[test]
fn who_is_configured_asks_for_no_routers_and_heeds_none() {
    let mut host = host(false);
    host.settle();
    assert_eq!(questions(&mut host), 0);
    let outcome = host.arrive(&advertisement(ROUTER, 255, 1800, (7, 9)));
    assert_eq!(outcome, Some(Outcome::Dropped(DropReason::NdIgnored)));
    assert!(host.world.routed.is_empty());
}

// RFC 4429 §3.2: nobody is asked from an optimistic address.
#[test]
fn a_router_that_another_domain_has_lost_is_asked_once_there_is_an_address_to_ask_from() {
    let setup = |setup: &mut silk_modules::Setup| {
        setup.standing.add(0, (OURS.into(), 64));
        setup.heeds_routers = true;
    };
    let mut host = Host::with(1, Options { setup, settled: false, ..Options::six() });
    host.arrive(&advertisement(ROUTER, 255, 1800, (7, 0)));
    let now = host.world.now;
    host.paths.module_mut::<Nd>().unwrap().doubt_router(now, ROUTER, &mut host.world);
    host.settle();
    assert!(host.next_timer().is_none_or(|(_, at)| at > now), "it would run for ever");
    let asked = |host: &mut Host| {
        let all = said(host).into_iter();
        all.filter(|(_, what)| matches!(what, ndp::Message::Solicitation { target: ROUTER, .. })).count()
    };
    assert_eq!(asked(&mut host), 0);
    host.advance(Duration::from_secs(1));
    assert_eq!(asked(&mut host), 1);
}
