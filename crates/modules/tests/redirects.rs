//! Routers that know a better first hop: who is told of one gives it the packets, while it answers, and where redirects are
//! not to be heeded nothing changes.

mod rig;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use rig::{Host, Options, ip, ip6, mac};
use silk_modules::arp::Arp;
use silk_modules::nd::Nd;
use silk_modules::{Setup, Standing};
use silk_path::{Attr, Attrs, DropReason, Endpoint, Outcome, PathId};
use silk_wire::{MacAddr, checksum, eth, icmp, icmpv6, ipv4, ipv6, ndp};

const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const FAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);

/// A router's address on the link.
fn local(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, n)
}

/// A host whose routers are station 254 of either IP; whoever runs it tells it of neighbours.
fn host(heeds: bool) -> Host {
    let setup = |setup: &mut Setup| {
        let ours = [(ip(1).into(), 24), (ip6(1).into(), 64), (local(1).into(), 64)];
        setup.standing = Standing::of(&ours, [IpAddr::from(ip(254)), local(254).into()]);
        setup.neighbours_told = true;
    };
    let heeding = |setup: &mut Setup| {
        let ours = [(ip(1).into(), 24), (ip6(1).into(), 64), (local(1).into(), 64)];
        setup.standing = Standing::of(&ours, [IpAddr::from(ip(254)), local(254).into()]);
        (setup.neighbours_told, setup.heeds_redirects) = (true, true);
    };
    let mut host = Host::with(1, Options { setup: if heeds { heeding } else { setup }, ..Options::six() });
    for n in [253, 254] {
        knows(&mut host, ip(n).into(), Some(n));
        knows(&mut host, local(n.into()).into(), Some(n));
    }
    host
}

/// Tells it at which station a neighbour is, or that it does not answer.
fn knows(host: &mut Host, neighbour: IpAddr, station: Option<u8>) {
    let (now, at) = (host.world.now, station.map(|n| MacAddr(mac(n))));
    match neighbour {
        IpAddr::V4(neighbour) => {
            host.paths.module_mut::<Arp>().unwrap().learn(now, (0, neighbour), at, &mut host.world);
        }
        IpAddr::V6(neighbour) => {
            host.paths.module_mut::<Nd>().unwrap().learn(now, (0, neighbour), at, &mut host.world);
        }
    }
    host.settle();
}

/// A frame from station `from` to host 1.
fn framed(kind: u16, from: u8, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; eth::HEADER];
    eth::Header::new(MacAddr(mac(1)), MacAddr(mac(from)), kind).emit(&mut frame);
    [&frame, packet].concat()
}

fn packet(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ipv4::HEADER];
    let payload_len = payload.len() as u16;
    ipv4::Emit { protocol, source, destination, payload_len, ..Default::default() }.emit(&mut bytes);
    [&bytes, payload].concat()
}

/// Router `n` says that packets of `ours` to the far are better given to `hop`.
fn redirect(n: u8, ours: Ipv4Addr, hop: Ipv4Addr) -> Vec<u8> {
    let mut message = [&[5, 1, 0, 0], &hop.octets()[..], &packet(ours, FAR, ipv4::UDP, &[0; 8])].concat();
    let sum = checksum::Sum::ZERO.bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    assert!(matches!(icmp::parse(&message), Ok(icmp::Message::Redirect { .. })));
    framed(eth::IPV4, n, &packet(ip(n), ip(1), ipv4::ICMP, &message))
}

/// The same over IPv6; `at` says where the hop is.
fn redirect6(n: u8, hop: Ipv6Addr, at: Option<u8>) -> Vec<u8> {
    let mut message = [&[ndp::REDIRECT, 0, 0, 0, 0, 0, 0, 0], &hop.octets()[..], &FAR6.octets()].concat();
    if let Some(at) = at {
        message.extend([2, 1]);
        message.extend(mac(at));
    }
    let (source, destination) = (local(n.into()), local(1));
    let length = message.len() as u16;
    icmpv6::seal(checksum::pseudo6(source, destination, ipv6::ICMP, length), &mut message);
    let mut bytes = vec![0; ipv6::HEADER];
    let header = ipv6::Emit {
        next_header: ipv6::ICMP,
        hop_limit: ipv6::NEVER_FORWARDED,
        source,
        destination,
        payload_len: length,
        ..Default::default()
    };
    header.emit(&mut bytes);
    framed(eth::IPV6, n, &[bytes, message].concat())
}

fn socket(host: &mut Host, far: IpAddr, port: u16) -> PathId {
    let ours: IpAddr = if far.is_ipv6() { ip6(1).into() } else { ip(1).into() };
    let ends = Attrs::new().with(Attr::Local(Endpoint::new(ours, port)));
    host.create("socket", ends.with(Attr::Remote(Endpoint::new(far, 9))))
}

/// The station that the last frame went to.
fn station(host: &mut Host) -> Option<u8> {
    let frame = host.sent().pop()?;
    Some(eth::parse(&frame).unwrap().0.destination.0[5])
}

/// The station that a datagram to the far goes to now.
fn goes_to(host: &mut Host, path: PathId) -> Option<u8> {
    host.advance(Duration::from_secs(2));
    host.sent();
    host.send(path, Endpoint::v4(Ipv4Addr::UNSPECIFIED, 0), b"far");
    station(host)
}

#[test]
fn who_is_told_of_a_better_hop_gives_it_the_packets_as_long_as_it_answers() {
    let mut host = host(true);
    let path = socket(&mut host, FAR.into(), 5000);
    assert_eq!(goes_to(&mut host, path), Some(254));
    assert_eq!(host.arrive(&redirect(254, ip(1), ip(253))), Some(Outcome::Done));
    assert_eq!(goes_to(&mut host, path), Some(253));
    let other = socket(&mut host, FAR.into(), 5001);
    assert_eq!(goes_to(&mut host, other), Some(253), "whoever goes there");
    // This one is not there.
    assert_eq!(host.arrive(&redirect(253, ip(1), ip(252))), Some(Outcome::Done));
    assert_eq!(goes_to(&mut host, path), None, "it is asked for");
    knows(&mut host, ip(252).into(), None);
    assert_eq!((station(&mut host), goes_to(&mut host, path)), (Some(254), Some(254)));
}

#[test]
fn over_ipv6_it_is_so_too_and_the_router_says_where_the_hop_is() {
    let mut host = host(true);
    let path = socket(&mut host, FAR6.into(), 5000);
    assert_eq!(goes_to(&mut host, path), Some(254));
    assert_eq!(host.arrive(&redirect6(254, local(253), Some(77))), Some(Outcome::Done));
    assert_eq!(goes_to(&mut host, path), Some(77));
    assert_eq!(host.arrive(&redirect6(253, local(252), None)), Some(Outcome::Done));
    assert_eq!(goes_to(&mut host, path), None, "it is asked for");
    knows(&mut host, local(252).into(), None);
    assert_eq!((station(&mut host), goes_to(&mut host, path)), (Some(254), Some(254)));
}

#[test]
fn nobody_is_believed_who_is_not_the_router_or_quotes_what_we_have_not_sent() {
    let mut host = host(true);
    let (path, path6) = (socket(&mut host, FAR.into(), 5000), socket(&mut host, FAR6.into(), 5000));
    host.arrive(&redirect(253, ip(1), ip(252)));
    host.arrive(&redirect6(253, local(252), None));
    // Nor where a hop is: this one is the router.
    host.arrive(&redirect6(253, local(254), Some(77)));
    let outcome = host.arrive(&redirect(254, ip(9), ip(253)));
    assert_eq!(outcome, Some(Outcome::Dropped(DropReason::IcmpQuote)));
    assert_eq!([path, path6].map(|path| goes_to(&mut host, path)), [Some(254); 2]);
}

#[test]
fn where_redirects_are_not_to_be_heeded_they_are_not() {
    let mut host = host(false);
    let (path, path6) = (socket(&mut host, FAR.into(), 5000), socket(&mut host, FAR6.into(), 5000));
    let told = [redirect(254, ip(1), ip(253)), redirect6(254, local(253), None)];
    let outcomes = told.map(|frame| host.arrive(&frame));
    let dropped = |reason| Some(Outcome::Dropped(reason));
    assert_eq!(outcomes, [dropped(DropReason::IcmpIgnored), dropped(DropReason::NdIgnored)]);
    assert_eq!([path, path6].map(|path| goes_to(&mut host, path)), [Some(254); 2]);
}
