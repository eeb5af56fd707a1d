//! Neighbours: who is asked, who is answered, and what nobody may be made to believe.

use super::*;

fn question(target: Ipv6Addr) -> Vec<u8> {
    let mut message = [0; ndp::MESSAGE];
    ndp::emit_solicitation(target, Some(MacAddr(mac(9))), &mut message);
    message.to_vec()
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
