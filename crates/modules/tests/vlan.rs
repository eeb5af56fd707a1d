//! Hosts on a virtual LAN (IEEE 802.1Q-2018 §9.6): everything that they say carries its tag, and nothing
//! that does not is for them.

mod rig;

use rig::{Host, Options, exchange, ip, ip6, mac};
use silk_path::{Attr, Attrs, DropReason, Endpoint, Message, Meta, Outcome};
use silk_wire::eth;

const VLAN: u16 = 0x164;

fn host(n: u8, vlan: u16) -> Host {
    Host::with(n, Options { vlan, ..Options::six() })
}

fn socket(host: &mut Host, local: Endpoint) -> silk_path::PathId {
    host.create("socket", Attrs::new().with(Attr::Local(local)))
}

/// Carries frames between two hosts, each of which must have the tag; how many there were.
fn exchange_tagged(a: &mut Host, b: &mut Host) -> usize {
    let mut count = 0;
    loop {
        let (from_a, from_b) = (a.sent(), b.sent());
        if from_a.is_empty() && from_b.is_empty() {
            return count;
        }
        for frame in from_a.iter().chain(&from_b) {
            assert_eq!(eth::frame(frame).unwrap().vid, VLAN, "{frame:x?}");
            count += 1;
        }
        from_a.iter().for_each(|frame| _ = b.arrive(frame));
        from_b.iter().for_each(|frame| _ = a.arrive(frame));
    }
}

#[test]
fn datagrams_neighbours_and_fragments_of_either_ip_carry_the_tag() {
    for (from, to) in [
        (Endpoint::v4(ip(1), 5000), Endpoint::v4(ip(2), 7)),
        (Endpoint::v6(ip6(1), 5000), Endpoint::v6(ip6(2), 7)),
    ] {
        let (mut client, mut server) = (host(1, VLAN), host(2, VLAN));
        server.create("echo", Attrs::new());
        if to.is_v6() {
            server.create("echo", Attrs::new().with(Attr::Local(Endpoint::v6(ip6(2), 7))));
        }
        let socket = socket(&mut client, from);
        client.send(socket, to, b"who are you?");
        // At least a question for the neighbour and its answer, a datagram and its echo.
        assert!(exchange_tagged(&mut client, &mut server) >= 4, "{to}");
        let long: Vec<u8> = (0..4000u32).map(|n| (n / 3) as u8).collect();
        client.send(socket, to, &long);
        assert!(exchange_tagged(&mut client, &mut server) >= 6, "three pieces each way");
        let delivered: Vec<_> = client.world.delivered.iter().map(|(.., data)| data.as_slice()).collect();
        assert_eq!(delivered, [b"who are you?".as_slice(), &long]);
    }
}

#[test]
fn a_frame_is_as_long_as_the_mtu_allows_and_its_tag() {
    let (mut client, mut server) = (host(1, VLAN), host(2, VLAN));
    let socket = socket(&mut client, Endpoint::v4(ip(1), 5000));
    client.send(socket, Endpoint::v4(ip(2), 9), b"a neighbour");
    exchange(&mut client, &mut server);
    client.send(socket, Endpoint::v4(ip(2), 9), &[0; 1472]);
    let lengths: Vec<usize> = client.sent().iter().map(Vec::len).collect();
    assert_eq!(lengths, [eth::HEADER + eth::TAG + 1500]);
}

/// What the host says to a datagram for its socket in a frame that `change` has changed, where the
/// classifier has not looked.
fn heard(vlan: u16, change: impl Fn(&mut Vec<u8>)) -> Outcome {
    let mut host = host(1, vlan);
    let path = socket(&mut host, Endpoint::v4(ip(1), 5000));
    let mut peer = self::host(2, vlan);
    let other = socket(&mut peer, Endpoint::v4(ip(2), 6000));
    peer.send(other, Endpoint::v4(ip(1), 5000), b"who?");
    exchange(&mut host, &mut peer);
    peer.send(other, Endpoint::v4(ip(1), 5000), b"hello");
    let mut frame = peer.sent().remove(0);
    assert_eq!(frame[..6], mac(1));
    change(&mut frame);
    let end = frame.len();
    let mut message = Message::new(&mut frame, 0, end, Meta::default());
    let now = host.world.now;
    host.paths.up(path, now, &mut host.world, &mut message)
}

#[test]
fn frames_of_other_vlans_and_of_none_have_a_reason_of_their_own() {
    let other = Outcome::Dropped(DropReason::EthVlan);
    assert_eq!(heard(VLAN, |_| {}), Outcome::Done);
    assert_eq!(heard(VLAN, |frame| frame[15] ^= 1), other);
    assert_eq!(heard(VLAN, |frame| drop(frame.drain(12..16))), other, "untagged");
    assert_eq!(heard(VLAN, |frame| frame[14..16].fill(0)), other, "a priority alone");
    assert_eq!(heard(VLAN, |frame| frame[14] |= 0xf0), Outcome::Done, "with a priority");
    let tag = |vid: u8| move |frame: &mut Vec<u8>| drop(frame.splice(12..12, [0x81, 0, 0xe0, vid]));
    assert_eq!(heard(0, tag(1)), other);
    assert_eq!(heard(0, tag(0)), Outcome::Done, "a priority alone");
    assert_eq!(heard(0, |frame| frame[12..14].fill(9)), Outcome::Dropped(DropReason::EthKind));
    assert_eq!(heard(VLAN, |frame| frame.truncate(17)), Outcome::Dropped(DropReason::EthTruncated));
}

#[test]
fn hosts_of_different_vlans_do_not_meet() {
    let (mut client, mut server) = (host(1, VLAN), host(2, 7));
    server.create("echo", Attrs::new());
    let socket = socket(&mut client, Endpoint::v4(ip(1), 5000));
    client.send(socket, Endpoint::v4(ip(2), 7), b"anyone?");
    exchange(&mut client, &mut server);
    assert!(server.passed > 0 && client.world.delivered.is_empty());
}
