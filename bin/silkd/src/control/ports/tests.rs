//! Who may have a port beside whom, and when it is free again.

use super::connecting::{FORGOTTEN, REST, RESTING};
use super::*;
use crate::between::reserved::reserve;
use crate::binding::{Place, Share, Sides};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use silk_path::Sharing;
use std::net::SocketAddr;
use std::time::Instant;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const PEER: Endpoint = Endpoint::v4(Ipv4Addr::new(192, 0, 2, 9), 80);
const ANY_SIX: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// What a socket wants: nothing, `SO_REUSEPORT`, `SO_REUSEADDR`, both.
const WISHES: [Share; 4] = [
    Share { port: false, address: false, user: None },
    Share { port: true, address: false, user: None },
    Share { port: false, address: true, user: None },
    Share { port: true, address: true, user: None },
];

/// Takes a port at one address of Linux's.
fn take(
    ports: &mut Ports,
    kind: Kind,
    address: IpAddr,
    port: u16,
    share: impl Into<Share>,
) -> Result<Held, Refusal> {
    ports.take(kind, (Endpoint::new(address, port), Sides::of(address)), &[address.into()], share)
}

/// The error of a port that is in use.
fn is_in_use(taken: Result<Held, Refusal>) -> bool {
    taken.is_err_and(|refusal| refusal.errno == libc::EADDRINUSE)
}

#[test]
fn a_port_of_ours_is_refused_to_linux_and_the_other_way_round() {
    let mut ports = Ports::default();
    let held = take(&mut ports, Kind::Datagram, HERE, 0, false).unwrap();
    assert!(std::net::UdpSocket::bind((HERE, held.port)).is_err());
    let linux = std::net::UdpSocket::bind((HERE, 0)).unwrap();
    let taken = linux.local_addr().unwrap().port();
    assert!(is_in_use(take(&mut ports, Kind::Datagram, HERE, taken, false)));
}

/// Else a user could take a part of the connections of another's server (Linux, `inet_csk_bind_conflict`).
#[test]
fn a_port_is_shared_by_programs_of_one_user() {
    let of = |user| Share { port: true, address: false, user: Some(user) };
    for kind in [Kind::Stream, Kind::Datagram] {
        let mut ports = Ports::default();
        let held = take(&mut ports, kind, HERE, 0, of(7)).unwrap();
        assert!(is_in_use(take(&mut ports, kind, HERE, held.port, of(8))));
        assert_eq!(take(&mut ports, kind, HERE, held.port, of(7)), Ok(held));
        assert!(is_in_use(take(&mut ports, kind, HERE, held.port, of(8))));
    }
    // Bound beside each other by SO_REUSEADDR, and only one may listen.
    let of = |user| Share { port: true, address: true, user: Some(user) };
    let mut ports = Ports::default();
    let held = take(&mut ports, Kind::Stream, HERE, 0, of(7)).unwrap();
    assert_eq!(take(&mut ports, Kind::Stream, HERE, held.port, of(8)), Ok(held));
    assert!(ports.listen(&held).is_ok());
    assert!(ports.listen(&held).is_err_and(|refusal| refusal.errno == libc::EADDRINUSE));
}

/// A server at both IPs and one at IPv4 alone, which share those who come.
#[test]
fn a_port_at_both_ips_is_held_until_nobody_has_it_at_either() {
    for kind in [Kind::Stream, Kind::Datagram] {
        let mut ports = Ports::default();
        let place = Place { address: ANY_SIX, sides: Sides::BOTH };
        let both = ports.take(kind, (Endpoint::new(ANY_SIX, 0), Sides::BOTH), &[place], true).unwrap();
        let four = take(&mut ports, kind, ANY, both.port, true).unwrap();
        let linux = Arc::downgrade(ports.hold(&four).linux.as_ref().unwrap());
        ports.give_back(&both);
        let held = linux.upgrade().unwrap();
        assert!(kind == Kind::Datagram || held.listen(1).is_ok(), "it can still be used");
        drop(held);
        ports.give_back(&four);
        assert!(linux.upgrade().is_none());
    }
}

/// At addresses that are not Linux's, so that it reserves nothing.
#[test]
fn any_port_at_both_ips_is_one_that_is_free_at_both() {
    let (four, six) = (IpAddr::from([192, 0, 2, 1]), "2001:db8::1".parse::<IpAddr>().unwrap());
    let mut ports = Ports::default();
    for port in 49152..61440 {
        take(&mut ports, Kind::Stream, six, port, false).unwrap();
    }
    for _ in 0..20 {
        let wanted = (Endpoint::new(ANY_SIX, 0), Sides::BOTH);
        let held = ports.take(Kind::Stream, wanted, &[four.into(), six.into()], false).unwrap();
        assert!(held.port >= 61440 && held.sides == Sides::BOTH);
        ports.give_back(&held);
    }
    assert_eq!(ports.taken.len(), 12288, "nothing is left of what was tried");
}

#[test]
fn an_address_is_deserted_with_its_last_datagram_socket_and_a_port_with_that_of_all() {
    let mut ports = Ports::default();
    let held = take(&mut ports, Kind::Datagram, HERE, 0, true).unwrap();
    let there = take(&mut ports, Kind::Datagram, THERE, held.port, true).unwrap();
    assert_eq!(take(&mut ports, Kind::Datagram, THERE, held.port, true), Ok(there));
    ports.give_back(&there);
    assert_eq!(ports.deserted(&there), []);
    ports.give_back(&there);
    assert_eq!(ports.deserted(&there), [Some(THERE)]);
    ports.give_back(&held);
    assert_eq!(ports.deserted(&held), [None]);
}

#[test]
fn sharing_needs_everybodys_consent_and_the_last_one_frees() {
    let mut ports = Ports::default();
    let held = take(&mut ports, Kind::Stream, HERE, 0, true).unwrap();
    assert!(is_in_use(take(&mut ports, Kind::Stream, HERE, held.port, false)));
    assert_eq!(take(&mut ports, Kind::Stream, HERE, held.port, true), Ok(held));
    assert_eq!(ports.hold(&held).sharing, Some(Sharing::Peers));
    let nobodys = Held { kind: Kind::Datagram, ..held };
    assert_eq!(ports.hold(&nobodys).sharing, None, "that port is nobody's");
    ports.give_back(&held);
    assert!(ports.hold(&held).linux.is_some());
    ports.give_back(&held);
    assert!(ports.hold(&held).linux.is_none());
}

#[test]
fn datagram_sockets_share_a_port_if_all_want_it_in_the_same_way() {
    let [plain, by_port, by_address, both] = WISHES;
    let may = |first: Share, then: &[Share]| {
        let mut ports = Ports::default();
        let held = take(&mut ports, Kind::Datagram, HERE, 0, first).unwrap();
        let mut is_taken = |share: &Share| take(&mut ports, Kind::Datagram, HERE, held.port, *share).is_ok();
        let all: Vec<bool> = then.iter().map(&mut is_taken).collect();
        (all, ports.hold(&held).sharing)
    };
    let latest = Some(Sharing::Latest);
    assert_eq!(may(by_address, &[by_address, plain, by_port]), (vec![true, false, false], latest));
    assert_eq!(may(both, &[both, by_address, by_port]), (vec![true, true, false], latest));
    assert_eq!(may(both, &[by_port, by_address]), (vec![true, false], Some(Sharing::Peers)));
    assert_eq!(may(plain, &[by_address, both]), (vec![false, false], None));
}

/// As Linux's `inet_csk_bind_conflict` has it.
#[test]
fn streams_share_a_port_by_their_addresses_until_one_listens() {
    let [plain, by_port, by_address, both] = WISHES;
    let mut ports = Ports::default();
    let held = take(&mut ports, Kind::Stream, HERE, 0, by_address).unwrap();
    let mut again = |share| take(&mut ports, Kind::Stream, HERE, held.port, share).is_ok();
    assert_eq!([plain, by_port, by_address, both].map(&mut again), [false, false, true, true]);
    assert_eq!(ports.listen(&held), Ok(()));
    assert_eq!(ports.listen(&held).unwrap_err().errno, libc::EADDRINUSE, "one listens");
    assert!(is_in_use(take(&mut ports, Kind::Stream, HERE, held.port, by_address)));
    assert!(is_in_use(take(&mut ports, Kind::Stream, ANY, held.port, both)));
    ports.end_listening(&held);
    assert_eq!(ports.listen(&held), Ok(()), "another does");

    // With SO_REUSEPORT all of them do.
    let held = take(&mut ports, Kind::Stream, HERE, 0, by_port).unwrap();
    assert_eq!(ports.listen(&held), Ok(()));
    assert_eq!(take(&mut ports, Kind::Stream, HERE, held.port, both), Ok(held));
    assert_eq!(ports.listen(&held), Ok(()));
}

#[test]
fn a_port_is_anothers_at_another_address() {
    for kind in [Kind::Stream, Kind::Datagram] {
        let mut ports = Ports::default();
        let here = take(&mut ports, kind, HERE, 0, false).unwrap();
        let there = take(&mut ports, kind, THERE, here.port, false).unwrap();
        assert!(is_in_use(take(&mut ports, kind, ANY, here.port, false)), "it is at any of them, too");
        assert!(ports.hold(&here).linux.is_some());
        ports.give_back(&here);
        assert!(ports.hold(&here).linux.is_none() && ports.hold(&there).linux.is_some());
        assert!(is_in_use(take(&mut ports, kind, ANY, there.port, false)));
        ports.give_back(&there);
        let any = take(&mut ports, kind, ANY, here.port, false).unwrap();
        assert!(is_in_use(take(&mut ports, kind, THERE, any.port, false)));
        assert!(any.overlaps(&here) && any.overlaps(&there) && !here.overlaps(&there));
    }
}

#[test]
fn an_address_and_any_are_two_sockets_of_linuxs_where_both_share() {
    for (kind, share) in [(Kind::Stream, WISHES[1]), (Kind::Datagram, WISHES[1]), (Kind::Datagram, WISHES[2])]
    {
        let mut ports = Ports::default();
        let here = take(&mut ports, kind, HERE, 0, share).unwrap();
        let any = take(&mut ports, kind, ANY, here.port, share).unwrap();
        let [one, other] = [here, any].map(|held| ports.hold(&held).linux.unwrap());
        assert!(!Arc::ptr_eq(&one, &other));
        if kind == Kind::Stream {
            for (held, linux) in [(here, one), (any, other)] {
                ports.listen(&held).unwrap();
                linux.listen(8).unwrap();
            }
        }
    }
}

/// Whether Linux has nobody at a stream port.
fn is_free(port: u16) -> bool {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
    bind(&socket, &SocketAddr::new(HERE, port)).is_ok()
}

#[test]
fn a_connections_port_rests_before_the_next_has_it() {
    let mut ports = Ports::default();
    let connect = |ports: &mut Ports| ports.take_to_connect(Kind::Stream, HERE, PEER).unwrap();
    let first = connect(&mut ports);
    ports.give_back(&first);
    let now = Instant::now();
    assert!(ports.rested(HERE, now).is_none());
    // Linux cannot choose it meanwhile, but who names it has it.
    assert!(!is_free(first.port));
    let named = take(&mut ports, Kind::Stream, HERE, first.port, false).unwrap();
    ports.give_back(&named);
    assert!(is_free(first.port));

    let second = connect(&mut ports);
    ports.give_back(&second);
    let later = Instant::now() + REST;
    assert_eq!(ports.rested(HERE, later).map(|resting| resting.port), Some(second.port));

    let third = connect(&mut ports);
    ports.give_back(&third);
    ports.tidy(Instant::now());
    assert!(!is_free(third.port));
    ports.tidy(Instant::now() + FORGOTTEN);
    assert!(is_free(third.port));
}

#[test]
fn ports_take_turns_where_many_connections_come() {
    let mut ports = Ports::default();
    let mut seen = BTreeMap::new();
    for n in 0..3 * RESTING {
        let held = ports.take_to_connect(Kind::Stream, HERE, PEER).unwrap();
        if let Some(before) = seen.insert(held.port, n) {
            assert!(n - before >= RESTING, "{} again after {}", held.port, n - before);
        }
        ports.give_back(&held);
    }
    assert_eq!(seen.len(), RESTING);
}

#[test]
fn a_port_that_rests_and_has_been_taken_for_any_address_meanwhile_is_not_given_twice() {
    let mut ports = Ports::default();
    let held = ports.take_to_connect(Kind::Stream, HERE, PEER).unwrap();
    // One of another address rests, and is free all the same; this one's is not.
    for (address, is_free) in [(THERE, true), (HERE, false)] {
        let (socket, _) =
            reserve((Kind::Stream, address.into(), held.port), Share::default(), false).unwrap();
        let linux = Arc::new(Reserved::new(socket));
        let resting = Resting { since: Instant::now(), port: held.port, linux };
        ports.resting.entry(address).or_default().push_back(resting);
        let rested = ports.rested(address, Instant::now() + REST);
        assert_eq!(rested.map(|resting| resting.port), is_free.then_some(held.port));
    }
    ports.give_back(&held);
    assert!(ports.rested(HERE, Instant::now() + REST).is_some());

    let asked = std::cell::Cell::new(0);
    let is_taken = |_| asked.replace(asked.get() + 1) < 5;
    let wanted = (Kind::Stream, THERE.into(), 0);
    assert!(reserve_another(wanted, Share::default(), false, is_taken).is_ok());
    assert_eq!(asked.get(), 6);
    let never = reserve_another(wanted, Share::default(), false, |_| true);
    assert_eq!(never.map(|_| ()), Err(Errno::ADDRINUSE));
}

#[test]
fn a_port_that_was_listened_at_and_those_of_datagrams_take_no_turns() {
    let mut ports = Ports::default();
    let held = ports.take_to_connect(Kind::Stream, HERE, PEER).unwrap();
    let linux = ports.hold(&held).linux.unwrap();
    linux.listen(1).unwrap();
    linux.end_listening();
    drop(linux);
    ports.give_back(&held);
    let held = ports.take_to_connect(Kind::Datagram, HERE, PEER).unwrap();
    ports.give_back(&held);
    assert!(ports.resting.is_empty());
}

#[test]
fn a_port_that_is_given_back_is_free_even_while_an_executor_holds_its_socket() {
    let mut ports = Ports::default();
    let ours = take(&mut ports, Kind::Stream, HERE, 0, false).unwrap();
    let held = ports.hold(&ours).linux.unwrap();
    let connects = || std::net::TcpStream::connect((HERE, ours.port)).is_ok();
    held.listen(8).unwrap();
    assert!(connects());
    held.end_listening();
    assert!(!connects());
    held.listen(8).unwrap();
    assert!(connects());
    ports.give_back(&ours);
    assert!(!connects());
    assert_eq!(held.listen(8), Err(Errno::INVAL));
    assert_eq!(take(&mut ports, Kind::Stream, HERE, ours.port, false), Ok(ours));
    ports.hold(&ours).linux.unwrap().listen(8).unwrap();
}

#[test]
fn a_port_of_both_ips_is_one_socket_of_linuxs_and_taken_at_both() {
    let mut ports = Ports::default();
    let both = Place { address: ANY_SIX, sides: Sides::BOTH };
    let mut take_at = |port, sides: Sides, places: &[Place]| {
        ports.take(Kind::Datagram, (Endpoint::new(ANY_SIX, port), sides), places, false)
    };
    let held = take_at(0, Sides::BOTH, &[both]).unwrap();
    assert!(is_in_use(take_at(held.port, Sides::BOTH, &[both])));
    assert!(is_in_use(take_at(held.port, Sides::of(ANY_SIX), &[ANY_SIX.into()])));
    assert!(is_in_use(take(&mut ports, Kind::Datagram, HERE, held.port, false)));
    assert!(std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, held.port)).is_err());
    ports.give_back(&held);

    // Where the address is silk's alone, one of each is reserved instead of any.
    let each = [IpAddr::V6(Ipv6Addr::LOCALHOST), HERE].map(Place::from);
    let whole = (Endpoint::new(ANY_SIX, held.port), Sides::BOTH);
    assert_eq!(ports.take(Kind::Datagram, whole, &each, false), Ok(held));
    assert!(is_in_use(take(&mut ports, Kind::Datagram, THERE, held.port, false)), "it is bound to any");
    ports.give_back(&Held::at(Kind::Datagram, ANY_SIX, held.port));
    assert!(is_in_use(ports.take(Kind::Datagram, whole, &[both], false)));
    assert!(take(&mut ports, Kind::Datagram, ANY_SIX, held.port, false).is_ok());
}

#[test]
fn an_address_that_linux_does_not_have_needs_no_reservation() {
    let mut ports = Ports::default();
    let elsewhere = IpAddr::from([192, 0, 2, 77]);
    assert_eq!(take(&mut ports, Kind::Stream, elsewhere, 80, false).map(|held| held.port), Ok(80));
    assert!(take(&mut ports, Kind::Stream, elsewhere, 0, false).unwrap().port >= 49152);
}

#[test]
fn a_port_leads_to_the_peer_that_its_socket_connected_to_last() {
    let (mut ports, other) = (Ports::default(), Endpoint::v4(Ipv4Addr::new(192, 0, 2, 9), 81));
    let mut held = ports.take_to_connect(Kind::Stream, HERE, PEER).unwrap();
    ports.leads_now(&mut held, other).unwrap();
    assert_eq!(ports.leads_elsewhere(HERE, other), None);
    assert_eq!(ports.leads_elsewhere(HERE, PEER), Some(held.port));
    ports.change(&held, |taken| taken.peers.push(PEER));
    assert_eq!(ports.leads_now(&mut held, PEER).unwrap_err().errno, libc::EADDRNOTAVAIL);
    assert_eq!(held.peer, Some(other));
}

#[test]
fn where_no_port_is_left_one_that_leads_elsewhere_is_taken() {
    let (mut ports, other) = (Ports::default(), Endpoint::v4(Ipv4Addr::new(192, 0, 2, 9), 81));
    let first = ports.take_to_connect(Kind::Stream, HERE, PEER).unwrap();
    let second = ports.take_to_connect(Kind::Stream, HERE, PEER).unwrap();
    let low = first.port.min(second.port);
    assert_eq!(ports.leads_elsewhere(HERE, PEER), None);
    assert_eq!(ports.leads_elsewhere(HERE, Endpoint::new(PEER.ip(), 0)), None, "whatever its port");
    assert_eq!(ports.leads_elsewhere(THERE, other), None);
    // In turn.
    assert_eq!(ports.leads_elsewhere(HERE, other), Some(low));
    assert_ne!(ports.leads_elsewhere(HERE, other), Some(low));
    assert_eq!(ports.leads_elsewhere(HERE, other), Some(low));
    // A port that was named leads nowhere that is known.
    let named = take(&mut ports, Kind::Stream, HERE, 0, false).unwrap();
    assert!((0..9).all(|_| ports.leads_elsewhere(HERE, other) != Some(named.port)));

    let third = Held { port: low, peer: Some(other), ..first };
    ports.change(&third, |taken| {
        taken.users += 1;
        taken.peers.push(other);
    });
    ports.give_back(&Held { port: low, ..first });
    assert_eq!(ports.leads_elsewhere(HERE, PEER), Some(low), "its last connection there is over");
    assert!(ports.hold(&third).linux.is_some());
    ports.give_back(&third);
    assert!(ports.hold(&third).linux.is_none());
}

#[test]
fn who_names_a_port_at_any_address_has_it_though_it_rests_at_one() {
    let mut ports = Ports::default();
    let held = ports.take_to_connect(Kind::Stream, HERE, PEER).unwrap();
    ports.give_back(&held);
    assert!(!is_free(held.port), "it rests");
    assert_eq!(take(&mut ports, Kind::Stream, ANY, held.port, false).map(|any| any.port), Ok(held.port));
    assert!(ports.rested(HERE, Instant::now() + REST).is_none());
}

#[test]
fn a_port_that_may_lead_to_any_port_of_a_peer_leads_to_each() {
    let mut ports = Ports::default();
    let spare = ports.take_to_connect(Kind::Stream, HERE, Endpoint::new(PEER.ip(), 0)).unwrap();
    assert_eq!(ports.leads_elsewhere(HERE, PEER), None);
    let other = Endpoint::v4(Ipv4Addr::new(192, 0, 2, 10), 80);
    assert_eq!(ports.leads_elsewhere(HERE, other), Some(spare.port));
}

/// The one address is not Linux's, so that only silk's books decide.
#[test]
fn who_listens_at_any_address_keeps_others_from_it_at_one_and_the_other_way_round() {
    let mut ports = Ports::default();
    let any = take(&mut ports, Kind::Stream, ANY, 0, WISHES[2]).unwrap();
    let elsewhere = IpAddr::from([192, 0, 2, 77]);
    let one = take(&mut ports, Kind::Stream, elsewhere, any.port, WISHES[2]).unwrap();
    for (first, second) in [(any, one), (one, any)] {
        assert_eq!(ports.listen(&first), Ok(()));
        assert_eq!(ports.listen(&second).unwrap_err().errno, libc::EADDRINUSE);
        ports.end_listening(&first);
    }
}
