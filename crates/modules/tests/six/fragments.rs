//! Datagrams in fragments: what is put together, what spoils it, and who is told.

use super::*;

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

// RFC 8200 §3: its length does not count the header of IPv6, as that of IPv4 does.
#[test]
fn the_longest_datagram_arrives_and_a_longer_one_is_not_sent() {
    let (mut a, mut b) = pair();
    b.create("echo", Attrs::new().with(Attr::Local(any(7))));
    let data: Vec<u8> = (0..65_527u32).map(|n| (n % 251) as u8).collect();
    let with_peer = local(1, 5001).with(Attr::Remote(at(2, 7)));
    for attrs in [local(1, 5000), Attrs::new().with(Attr::Local(any(5002))), with_peer] {
        let socket = a.create("socket", attrs);
        assert_eq!(a.send(socket, at(2, 7), &data), Outcome::Done);
        exchange(&mut a, &mut b);
        assert_eq!(a.world.delivered.pop(), Some((socket, at(2, 7), data.clone())));
        let longer = [&data[..], &[1]].concat();
        assert_eq!(a.send(socket, at(2, 7), &longer), Outcome::Dropped(DropReason::TooBig));
    }
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

// RFC 6980 §5: once it is put together nobody would know.
#[test]
fn neighbour_discovery_in_fragments_is_refused_before_it_is_put_together() {
    let (mut host, _) = pair();
    let mut first = |kind: u8| {
        let mut bytes = vec![0; extension::FRAGMENT_HEADER];
        Fragment { identification: kind.into(), offset: 0, more: true }.emit(ipv6::ICMP, &mut bytes);
        bytes.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
        host.arrive(&frame(mac(1), 2, &packet(extension::FRAGMENT, ip6(2), 255, &bytes)))
    };
    assert_eq!(first(128), Some(Outcome::Done));
    for kind in ndp::ROUTER_SOLICITATION..=ndp::REDIRECT {
        assert_eq!(first(kind), Some(Outcome::Dropped(DropReason::IpFragment)), "{kind}");
    }
}

// RFC 7112 §5, RFC 8200 §4.5.
#[test]
fn whose_first_fragment_lacks_headers_is_told_so_within_a_limit() {
    let (mut host, _) = pair();
    let first = |next_header, payload: &[u8]| {
        let mut bytes = vec![0; extension::FRAGMENT_HEADER];
        Fragment { identification: 1, offset: 0, more: true }.emit(next_header, &mut bytes);
        bytes.extend_from_slice(payload);
        frame(mac(1), 2, &packet(extension::FRAGMENT, ip6(2), 64, &bytes))
    };
    let mut told = |next_header, payload: &[u8]| {
        let frame = first(next_header, payload);
        assert_eq!(host.arrive(&frame), Some(Outcome::Dropped(DropReason::IpFragment)));
        packets(&mut host).pop().map(|(to, error)| {
            let read = ipv6::parse(&error).unwrap();
            assert_eq!((to, read.header.destination()), (mac(2), ip6(2)));
            assert_eq!(&read.payload[8..], &frame[eth::HEADER..], "the whole packet is quoted");
            (read.payload[0], read.payload[1], read.payload[4..8].to_vec())
        })
    };
    let lacking = Some((4, 3, vec![0; 4]));
    let options = |next_header| [next_header, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(told(extension::DESTINATION, &options(17)), lacking, "what is carried");
    assert_eq!(told(extension::DESTINATION, &[17, 2, 1, 20, 0, 0, 0, 0]), lacking, "the rest of the options");
    assert_eq!(told(ipv4::TCP, &[1; 16]), lacking, "the end of the segment's header");
    let mut again = [0; extension::FRAGMENT_HEADER];
    Fragment { identification: 9, offset: 8, more: false }.emit(17, &mut again);
    assert_eq!(told(extension::FRAGMENT, &again), None, "a fragment of a fragment");
    let nested = [options(extension::FRAGMENT), again].concat();
    assert_eq!(told(extension::DESTINATION, &nested), None, "behind options, too");
    assert_eq!(told(extension::DESTINATION, &options(59)), None, "nothing is carried");
    let many = [options(extension::DESTINATION); 5].concat();
    assert_eq!(told(extension::DESTINATION, &many), None, "more than anybody looks at");
    let all = (0..2000).filter(|_| told(ipv4::TCP, &[1; 16]).is_some()).count();
    assert!((1..60).contains(&all), "{all}");
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

// What a path may have can be less than reassembly keeps.
#[test]
fn fragments_that_never_finish_make_room_for_others_when_their_path_may_have_no_more() {
    let (mut host, _) = pair();
    let echo = host.create("echo", Attrs::new().with(Attr::Local(any(7))));
    let fragments = path_of(&host, "ip6");
    let account = &mut host.paths.path_mut(fragments).unwrap().state.account;
    account.set_memory_limit(account.memory() + 8 * 1024);
    for (size, ids) in [(1024, 0..20), (8, 20..40)] {
        ids.for_each(|id| _ = host.arrive(&fragment(id, 0, true, &[5; 1024][..size])));
    }
    let mut datagram = [&[0x13, 0x88, 0, 7, 0, 16, 0, 0][..], &[5; 8]].concat();
    let sum = checksum::pseudo6(ip6(2), ip6(1), 17, 16).bytes(&datagram).checksum();
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    for at in [0, 8] {
        host.arrive(&fragment(99, at, at == 0, &datagram[at..at + 8]));
    }
    assert_eq!(host.paths.path(echo).unwrap().state.account.packets_in, 1, "it is whole");
}
