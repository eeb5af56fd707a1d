//! A host on two links, the second of them a virtual LAN: paths without a peer answer over the one that asked,
//! paths with one go by the device of their route, and follow it.

mod rig;

use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use rig::{Host, Options, ip, mac, stream};
use silk_modules::arp::Arp;
use silk_modules::ip::{Ip, Routes};
use silk_modules::{Device, HeaderTemplate, Leads, Setup, Standing, Way};
use silk_path::classify::{Domains, Owned};
use silk_path::{Attr, Attrs, CreateError, DropReason, Endpoint, PathId};
use silk_wire::{MacAddr, eth};

/// The VLAN of the second link.
const VLAN: u16 = 7;
/// What the last number of our Ethernet address at the second device is.
const SECOND: u8 = 12;

/// An address on the second link.
fn beyond(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, n)
}

/// 10.0.0.2 on the first link, 10.0.1.2 on the second; whoever runs it tells it of neighbours.
fn host() -> Host {
    let setup = |setup: &mut Setup| {
        setup.devices.push(Device { address: mac(SECOND), ..Device::default() });
        setup.standing = Standing::of(&[(ip(2).into(), 24)], None).and(&[(beyond(2).into(), 24)], None);
        setup.neighbours_told = true;
        setup.tables = setup.tables.clone().on_vlans([0, VLAN, 0, 0]);
    };
    let rules: Vec<Box<dyn silk_path::transform::Rule>> = vec![Box::new(HeaderTemplate)];
    let mut host = Host::with(2, Options { setup, rules, ..Options::default() });
    host.tables = host.tables.clone().on_vlans([0, VLAN, 0, 0]);
    own(&host, &[ip(2), beyond(2)]);
    host
}

/// A station of the second link.
fn peer() -> Host {
    let setup = |setup: &mut Setup| {
        setup.standing = Standing::of(&[(beyond(9).into(), 24)], None);
    };
    let host = Host::with(9, Options { setup, vlan: VLAN, ..Options::default() });
    own(&host, &[beyond(9)]);
    host
}

fn own(host: &Host, addresses: &[Ipv4Addr]) {
    let addresses: Vec<IpAddr> = addresses.iter().copied().map(IpAddr::V4).collect();
    let owned = Owned { arp: true, icmp: true, fragments: true };
    host.tables.configure(owned, Domains::default(), &[], &addresses).unwrap();
}

fn knows(host: &mut Host, device: u8, address: Ipv4Addr, station: u8) {
    let now = host.world.now;
    let arp = host.paths.module_mut::<Arp>().unwrap();
    arp.learn(now, (device, address), Some(MacAddr(mac(station))), &mut host.world);
    host.settle();
}

/// The frames that it has sent: over which device, from which station to which, on which VLAN.
fn left(host: &mut Host) -> Vec<(u8, u8, u8, u16)> {
    let over: Vec<u8> = host.world.over.iter().copied().collect();
    let frames = host.sent().into_iter().zip(over);
    let told = frames.map(|(frame, over)| {
        let read = eth::frame(&frame).unwrap();
        (over, read.header.source.0[5], read.header.destination.0[5], read.vid)
    });
    told.collect()
}

/// Carries frames between the host's second device and its peer there until both are silent.
fn exchange(host: &mut Host, peer: &mut Host) {
    for _ in 0..100 {
        let over: Vec<u8> = host.world.over.iter().copied().collect();
        assert!(over.iter().all(|device| *device == 1), "{over:?}");
        let (out, back) = (host.sent(), peer.sent());
        if out.is_empty() && back.is_empty() {
            return;
        }
        out.iter().for_each(|frame| _ = peer.arrive(frame));
        host.over = 1;
        back.iter().for_each(|frame| _ = host.arrive(frame));
    }
    panic!("the hosts never fall silent");
}

fn socket(host: &mut Host, at: Ipv4Addr, peer: Option<Endpoint>) -> PathId {
    let attrs = Attrs::new().with(Attr::Local(Endpoint::v4(at, 5000)));
    host.create("socket", peer.map_or(attrs, |peer| attrs.with(Attr::Remote(peer))))
}

/// The peer says something to the host's echo from one of its addresses, over the second device.
fn asks(host: &mut Host, peer: &mut Host, from: Ipv4Addr) {
    let asking = socket(peer, from, None);
    peer.send(asking, Endpoint::v4(beyond(2), 7), b"hello");
    host.over = 1;
    for frame in peer.sent() {
        host.arrive(&frame);
    }
}

#[test]
fn a_path_without_a_peer_answers_over_the_device_that_asked() {
    let (mut host, mut peer) = (host(), peer());
    let echo = host.create("echo", Attrs::new());
    assert_eq!(host.paths.path(echo).unwrap().state.attrs.device(), None);
    knows(&mut peer, 0, beyond(2), SECOND);
    asks(&mut host, &mut peer, beyond(9));
    assert_eq!(left(&mut host), [(1, SECOND, 9, VLAN)]);
}

#[test]
fn what_comes_in_pieces_over_the_second_device_is_put_together_for_its_station() {
    let (mut host, mut peer) = (host(), peer());
    host.create("echo", Attrs::new());
    knows(&mut peer, 0, beyond(2), SECOND);
    let asking = socket(&mut peer, beyond(9), None);
    peer.send(asking, Endpoint::v4(beyond(2), 7), &[7; 3000]);
    host.over = 1;
    peer.sent().iter().for_each(|piece| _ = host.arrive(piece));
    assert_eq!(left(&mut host), [(1, SECOND, 9, VLAN); 3]);
}

#[test]
fn a_frame_for_the_one_device_that_came_over_the_other_is_nobodys() {
    let (mut host, mut peer) = (host(), peer());
    host.create("echo", Attrs::new());
    let asking = socket(&mut peer, beyond(9), None);
    knows(&mut peer, 0, beyond(2), SECOND);
    peer.send(asking, Endpoint::v4(beyond(2), 7), b"hello");
    for frame in peer.sent() {
        assert_eq!(host.arrive(&frame), None, "of another VLAN");
    }
    assert_eq!((host.passed, left(&mut host)), (1, vec![]));
}

#[test]
fn a_path_to_anywhere_sends_each_datagram_by_the_device_of_its_route() {
    let mut host = host();
    let path = socket(&mut host, Ipv4Addr::UNSPECIFIED, None);
    knows(&mut host, 0, ip(1), 1);
    knows(&mut host, 1, beyond(9), 9);
    for to in [ip(1), beyond(9), ip(1)] {
        host.send(path, Endpoint::v4(to, 9), b"hello");
    }
    assert_eq!(left(&mut host), [(0, 2, 1, 0), (1, SECOND, 9, VLAN), (0, 2, 1, 0)]);
    host.send(path, Endpoint::v4(Ipv4Addr::new(10, 0, 1, 255), 9), b"everyone");
    assert_eq!(left(&mut host), [(1, SECOND, 0xff, VLAN)]);
}

#[test]
fn a_neighbour_of_one_device_is_none_of_the_other() {
    let mut host = host();
    let path = socket(&mut host, Ipv4Addr::UNSPECIFIED, None);
    knows(&mut host, 0, beyond(9), 9);
    host.send(path, Endpoint::v4(beyond(9), 9), b"hello");
    assert_eq!((left(&mut host), host.world.asked.clone()), (vec![], vec![IpAddr::V4(beyond(9))]));
    knows(&mut host, 1, beyond(9), 8);
    assert_eq!(left(&mut host), [(1, SECOND, 8, VLAN)]);
}

/// The peer connects to a listening socket of the host's. Both ends last as long as what is answered.
fn connects(host: &mut Host, peer: &mut Host) -> impl Sized + use<> {
    host.streams = || Some(stream(100_000, 4096));
    let local = Endpoint::v4(Ipv4Addr::UNSPECIFIED, 80);
    host.create(
        "socket",
        Attrs::new().with(Attr::Listen(true)).with(Attr::Local(local)).with(Attr::Owner(7)),
    );
    let (buffers, handle) = stream(100_000, 4096);
    let attrs = Attrs::new()
        .with(Attr::ProtId(6))
        .with(Attr::Local(Endpoint::v4(Ipv4Addr::UNSPECIFIED, 5000)))
        .with(Attr::Remote(Endpoint::v4(beyond(2), 80)));
    peer.try_create("socket", attrs, Some(buffers)).unwrap();
    exchange(host, peer);
    handle
}

#[test]
fn a_connection_is_made_over_the_second_device_and_stays_there() {
    let (mut host, mut peer) = (host(), peer());
    knows(&mut peer, 0, beyond(2), SECOND);
    let _handle = connects(&mut host, &mut peer);
    for _ in 0..10 {
        peer.advance(Duration::from_millis(100));
        host.advance(Duration::from_millis(100));
        exchange(&mut host, &mut peer);
    }
    let made = *host.created.last().expect("accepted");
    assert_eq!(host.paths.path(made).unwrap().state.attrs.device(), Some(1));
}

#[test]
fn a_path_follows_its_route_to_another_device_with_its_template() {
    let mut host = host();
    let path = socket(&mut host, ip(2), Some(Endpoint::v4(ip(1), 9)));
    knows(&mut host, 0, ip(1), 1);
    let nobody = Endpoint::v4(Ipv4Addr::UNSPECIFIED, 0);
    for _ in 0..3 {
        host.send(path, nobody, b"hello");
    }
    assert_eq!(left(&mut host), [(0, 2, 1, 0); 3]);
    let moved = Standing::of(&[], None).and(&[(ip(2).into(), 24), (beyond(2).into(), 24)], None);
    host.paths.module_mut::<Ip>().unwrap().routes.become_these(Routes::of(&moved));
    knows(&mut host, 1, ip(1), 3);
    host.advance(Duration::from_secs(2));
    for _ in 0..3 {
        host.send(path, nobody, b"hello");
    }
    assert_eq!(left(&mut host), [(1, SECOND, 3, VLAN); 3]);
    assert_eq!(host.paths.path(path).unwrap().state.attrs.device(), Some(1));
}

/// A host on two links whose routes also say where our device does not lead.
fn host_with(leads: Leads) -> Host {
    let mut host = host();
    let mut standing =
        Standing::of(&[(ip(2).into(), 24)], [ip(254).into()]).and(&[(beyond(2).into(), 24)], None);
    standing.ways.push(Way { network: FAR.into(), prefix: 24, leads });
    host.paths.module_mut::<Ip>().unwrap().routes.become_these(Routes::of(&standing));
    host
}

const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

/// A station of the second link that speaks from far away.
fn stranger() -> Host {
    let setup = |setup: &mut Setup| {
        setup.standing = Standing::of(&[(FAR.into(), 24)], None);
        setup.standing.ways.push(Way::beside(0, beyond(0).into(), 24));
    };
    let mut host = Host::with(9, Options { setup, vlan: VLAN, ..Options::default() });
    own(&host, &[FAR]);
    knows(&mut host, 0, beyond(2), SECOND);
    host
}

#[test]
fn who_is_beyond_another_interface_is_answered_where_it_came_from() {
    let (mut host, mut peer) = (host_with(Leads::Elsewhere), stranger());
    host.create("echo", Attrs::new());
    asks(&mut host, &mut peer, FAR);
    assert_eq!(left(&mut host), [(1, SECOND, 9, VLAN)]);
}

#[test]
fn a_connection_from_beyond_another_interface_is_held_with_where_it_came_from() {
    let (mut host, mut peer) = (host_with(Leads::Elsewhere), stranger());
    let _handle = connects(&mut host, &mut peer);
    let made = *host.created.last().expect("accepted");
    let remote = host.paths.path(made).unwrap().state.attrs.remote();
    assert_eq!(remote, Some(Endpoint::v4(FAR, 5000)));
    // Nobody is connected to who is there.
    let there = Attrs::new().with(Attr::Local(Endpoint::v4(beyond(2), 5001)));
    let there = there.with(Attr::Remote(Endpoint::v4(FAR, 9)));
    assert_eq!(host.try_create("socket", there, None).err(), Some(CreateError::NoRoute(FAR.into())));
}

#[test]
fn who_is_beyond_another_interface_is_answered_again_where_it_came_from() {
    let (mut host, mut peer) = (host_with(Leads::Elsewhere), stranger());
    let local = Endpoint::v4(Ipv4Addr::UNSPECIFIED, 80);
    host.create("socket", Attrs::new().with(Attr::Listen(true)).with(Attr::Local(local)));
    let (buffers, _handle) = stream(100_000, 4096);
    let attrs = Attrs::new()
        .with(Attr::ProtId(6))
        .with(Attr::Local(Endpoint::v4(Ipv4Addr::UNSPECIFIED, 5000)))
        .with(Attr::Remote(Endpoint::v4(beyond(2), 80)));
    peer.try_create("socket", attrs, Some(buffers)).unwrap();
    host.over = 1;
    for frame in peer.sent() {
        host.arrive(&frame);
    }
    assert_eq!(left(&mut host), [(1, SECOND, 9, VLAN)]);
    host.advance(Duration::from_millis(1100));
    assert_eq!(left(&mut host), [(1, SECOND, 9, VLAN)]);
}

#[test]
fn a_network_that_nobody_is_to_send_to_is_not_answered() {
    let (mut host, mut peer) = (host_with(Leads::Nowhere), stranger());
    let echo = host.create("echo", Attrs::new());
    asks(&mut host, &mut peer, FAR);
    assert_eq!((left(&mut host), host.drops(echo, DropReason::IpNoRoute)), (vec![], 1));
}
