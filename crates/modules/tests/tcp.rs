//! Connections through whole paths, SOCKET/TCP/IP/ETH, between two hosts in memory.

mod rig;

use core::net::Ipv4Addr;
use core::time::Duration;
use rig::{Handle, Host, Options, exchange, ip, stream};
use silk_modules::tcp::{ConnectionStage, Tcp};
use silk_modules::{Device, HeaderTemplate, Setup};
use silk_path::transform::Rule;
use silk_path::{
    Attr, Attrs, Bell, Checksum, Discovery, DropReason, Endpoint, Event, Outcome, PathId, Wishes,
};
use silk_tcp::Ecn;
use silk_wire::icmp::Unreachable;

const RTT: Duration = Duration::from_millis(10);

fn at(n: u8, port: u16) -> Endpoint {
    Endpoint::v4(ip(n), port)
}

fn listen(host: &mut Host, port: u16) -> PathId {
    host.streams = || Some(stream(100_000, 4096));
    let local = at(host.n, port);
    host.create("socket", Attrs::new().with(Attr::Listen(true)).with(Attr::Local(local)).with(Attr::Owner(7)))
}

fn connect(host: &mut Host, port: u16, to: Endpoint) -> (PathId, Handle) {
    let (buffers, handle) = stream(100_000, 4096);
    (host.try_create("socket", active(port, to), Some(buffers)).expect("a free port"), handle)
}

/// The attributes of a connection to be opened; IP finds the address.
fn active(port: u16, to: Endpoint) -> Attrs {
    let local = Endpoint::v4(Ipv4Addr::UNSPECIFIED, port);
    Attrs::new().with(Attr::ProtId(6)).with(Attr::Local(local)).with(Attr::Remote(to))
}

/// A client, a server that listens at port 80, and a connection between them.
fn connected() -> (Host, Host, Connection) {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    listen(&mut server, 80);
    let connection = open(&mut client, &mut server);
    (client, server, connection)
}

struct Connection {
    client: PathId,
    server: PathId,
    client_end: Handle,
    server_end: Handle,
}

fn open(client: &mut Host, server: &mut Host) -> Connection {
    let (path, client_end) = connect(client, 5000, at(2, 80));
    settle(client, server);
    let server_path = *server.created.last().expect("accepted");
    let server_end = server.handles.last().expect("accepted").clone();
    assert!(client.world.events.contains(&(path, Event::Connected)));
    Connection { client: path, server: server_path, client_end, server_end }
}

/// Both ends close, the server first, which is in TIME-WAIT then, and let go of their paths.
fn end(client: &mut Host, server: &mut Host, connection: &Connection) {
    server.bell(connection.server, Bell::Close);
    settle(client, server);
    client.bell(connection.client, Bell::Close);
    settle(client, server);
    server.destroy(connection.server);
    client.destroy(connection.client);
}

/// Exchanges frames and lets time pass until both hosts are quiet for a round trip.
fn settle(a: &mut Host, b: &mut Host) {
    for _ in 0..20 {
        exchange(a, b);
        a.advance(RTT);
        b.advance(RTT);
    }
    exchange(a, b);
}

fn state(host: &Host, path: PathId) -> &'static str {
    host.paths.path(path).map_or("none", |path| path.shown_state())
}

// RFC 9293 MUST-44.
#[test]
fn a_request_and_its_answer() {
    let (mut client, mut server, c) = connected();
    assert_eq!((state(&client, c.client), state(&server, c.server)), ("ESTABLISHED", "ESTABLISHED"));
    assert_eq!(server.paths.path(c.server).unwrap().state.attrs.owner(), Some(7), "as its listener");
    c.client_end.write(b"GET /");
    client.bell(c.client, Bell::Sent);
    settle(&mut client, &mut server);
    assert_eq!(c.server_end.read(), b"GET /");
    assert!(server.world.events.contains(&(c.server, Event::Readable)));
    let page: Vec<u8> = (0..20_000u32).map(|n| n as u8).collect();
    c.server_end.write(&page);
    server.bell(c.server, Bell::Sent);
    for _ in 0..10 {
        settle(&mut client, &mut server);
        server.bell(c.server, Bell::Sent);
    }
    assert_eq!(c.client_end.read(), page, "a ring of 4096 bytes wraps many times");
}

#[test]
fn urgent_data_is_told_of_where_it_ends() {
    let (mut client, mut server, c) = connected();
    c.client_end.write(b"abc!def");
    client.bell(c.client, Bell::Urgent(4));
    settle(&mut client, &mut server);
    assert_eq!((c.server_end.read(), c.server_end.marks()), (b"abc!def".to_vec(), vec![3]));
    let told = [(c.server, Event::Urgent), (c.server, Event::Readable)];
    assert!(server.world.events.windows(2).any(|events| events == told), "{:?}", server.world.events);
}

// RFC 9293 MUST-58, MUST-59.
#[test]
fn what_comes_together_is_answered_together() {
    let (mut client, mut server, c) = connected();
    c.client_end.write(&[7; 3 * 1448]);
    client.bell(c.client, Bell::Sent);
    let segments = client.sent();
    assert_eq!(segments.len(), 3);
    server.more = true;
    segments.iter().for_each(|segment| _ = server.arrive(segment));
    assert_eq!(server.sent().len(), 0, "two would be acknowledged at once");
    server.bell(c.server, Bell::Sent);
    assert_eq!(server.sent().len(), 1);
}

#[test]
fn the_end_goes_through_time_wait_and_leaves_nothing() {
    let (mut client, mut server, c) = connected();
    let before = server.paths.classes.of(0).memory();
    server.bell(c.server, Bell::Close);
    settle(&mut client, &mut server);
    assert!(client.world.events.contains(&(c.client, Event::PeerFinished)));
    client.bell(c.client, Bell::Close);
    settle(&mut client, &mut server);
    assert!(client.world.events.contains(&(c.client, Event::Closed)));
    assert!(server.world.events.contains(&(c.server, Event::TimeWait)));
    server.destroy(c.server);
    client.destroy(c.client);
    assert_eq!(
        (server.tables.flows.count(), client.tables.flows.count()),
        (1, 0),
        "TIME-WAIT keeps its flow"
    );
    assert!(server.paths.classes.of(0).memory() < before);
    assert_eq!(server.paths.module_mut::<Tcp>().unwrap().in_time_wait(), 1);
    server.advance(Duration::from_secs(61));
    assert_eq!(server.paths.module_mut::<Tcp>().unwrap().in_time_wait(), 0);
    assert_eq!(server.tables.flows.count(), 0);
}

#[test]
fn a_connection_in_time_wait_may_be_opened_again() {
    let (mut client, mut server, c) = connected();
    end(&mut client, &mut server, &c);
    let again = open(&mut client, &mut server);
    assert_eq!(state(&server, again.server), "ESTABLISHED");
    assert_eq!(server.paths.module_mut::<Tcp>().unwrap().in_time_wait(), 0);
}

/// More was sent than the clock of initial numbers counts in the time.
// RFC 9293 MUST-13.
#[test]
fn who_opens_a_connection_again_begins_above_all_that_it_has_sent() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    listen(&mut server, 80);
    let open = |client: &mut Host| {
        let (buffers, end) = stream(100_000, 4096);
        let attrs = active(5000, at(2, 80)).with(Attr::Local(at(1, 5000)));
        (client.try_create("socket", attrs, Some(buffers)).expect("a free port"), end)
    };
    let number = |frame: &[u8]| u32::from_be_bytes(frame[38..42].try_into().unwrap());
    let (path, end) = open(&mut client);
    exchange(&mut client, &mut server);
    let (accepted, other_end) = (*server.created.last().unwrap(), server.handles.last().unwrap().clone());
    for _ in 0..200 {
        end.write(&[7; 4_000]);
        client.bell(path, Bell::Sent);
        exchange(&mut client, &mut server);
        assert_eq!(other_end.read().len(), 4_000);
        server.bell(accepted, Bell::Read);
    }
    exchange(&mut client, &mut server);
    client.bell(path, Bell::Close);
    let fin = client.sent();
    let last = number(&fin[0]);
    server.arrive(&fin[0]);
    server.bell(accepted, Bell::Close);
    settle(&mut client, &mut server);
    assert_eq!(client.paths.module_mut::<Tcp>().unwrap().in_time_wait(), 1);
    client.destroy(path);
    open(&mut client);
    let ahead = number(&client.sent()[0]).wrapping_sub(last).cast_signed();
    assert!(ahead > 1 << 16, "{ahead}");
}

#[test]
fn a_port_that_was_given_back_may_be_another_programs() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    let listener = listen(&mut server, 80);
    let c = open(&mut client, &mut server);
    end(&mut client, &mut server, &c);
    server.destroy(listener);
    connect(&mut client, 5000, at(2, 80));
    let syn = client.sent();
    assert_eq!((syn.len(), server.tables.flows.count()), (1, 1));
    server.arrive(&syn[0]);
    assert_eq!(server.sent().len(), 0, "no reset: the SYN comes again");
    assert_eq!((server.tables.flows.count(), server.arrive(&syn[0])), (0, None), "and is not ours then");
}

#[test]
fn nobody_listens_and_the_reset_says_so() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    // Silk owns the port, so the packet is not Linux's, but nobody listens in this domain.
    server.tables.own_port(silk_path::classify::Protocol::Tcp, None, 80);
    let (path, _) = connect(&mut client, 5000, at(2, 80));
    settle(&mut client, &mut server);
    assert!(client.world.events.contains(&(path, Event::Refused)));
    assert!(client.world.events.contains(&(path, Event::Closed)));
}

#[test]
fn a_flood_of_segments_of_no_connection_is_not_answered_one_for_one() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    let listener = listen(&mut server, 80);
    let c = open(&mut client, &mut server);
    // The peer does not know that the server has forgotten it.
    server.destroy(c.server);
    c.client_end.write(b"unanswered");
    client.bell(c.client, Bell::Sent);
    let frames = client.sent();
    assert_eq!(frames.len(), 1);
    (0..3000).for_each(|_| _ = server.arrive(&frames[0]));
    assert_eq!(server.sent().len(), 1000);
    assert_eq!(server.drops(listener, DropReason::TcpResetLimit), 2000);
}

#[test]
fn a_syn_flood_is_bounded_and_costs_no_path() {
    let mut server = Host::new(2);
    let local = at(2, 80);
    let listener = server.create(
        "socket",
        Attrs::new().with(Attr::Listen(true)).with(Attr::Local(local)).with(Attr::Backlog(16)),
    );
    flood(&mut server, local);
    assert_eq!(server.paths.len(), 5, "ARP, ICMP, IP, stray and the listener");
    assert!(server.drops(listener, DropReason::TcpBacklog) > 400);
    let memory = server.paths.classes.of(0).memory();
    server.advance(Duration::from_secs(300));
    assert!(server.paths.classes.of(0).memory() <= memory);
    server.destroy(listener);
}

/// Five hundred SYNs, of handshakes that never complete; how many answers there were.
fn flood(server: &mut Host, local: Endpoint) -> usize {
    let mut client = Host::new(1);
    let mut answers = 0;
    for port in 0..500 {
        let (path, _) = connect(&mut client, 1000 + port, local);
        if port == 0 {
            exchange_syn(&mut client, server);
        }
        client.sent().iter().for_each(|frame| _ = server.arrive(frame));
        answers += server.sent().len();
        client.destroy(path);
        client.sent();
    }
    answers
}

#[test]
fn a_syn_flood_takes_no_more_memory_than_its_listener_may_have_and_is_answered_by_cookies() {
    let mut server = Host::new(2);
    let local = at(2, 80);
    let listener = server.create(
        "socket",
        Attrs::new().with(Attr::Listen(true)).with(Attr::Local(local)).with(Attr::Backlog(4096)),
    );
    let account = &mut server.paths.path_mut(listener).unwrap().state.account;
    let before = account.memory();
    account.set_memory_limit(before + 4000);
    assert!(flood(&mut server, local) >= 499);
    let took = server.paths.path(listener).unwrap().state.account.memory() - before;
    assert!((1000..=4000).contains(&took), "{took} bytes");
    // What is not charged is not there either: all others were answered without an entry.
    assert!(server.drops(listener, DropReason::NoMemory) > 450);
    assert_eq!(server.drops(listener, DropReason::TcpBacklog), 0);
}

/// Lets the two hosts find each other's addresses, and nothing more.
fn exchange_syn(client: &mut Host, server: &mut Host) {
    let request = client.sent();
    request.iter().for_each(|frame| _ = server.arrive(frame));
    server.sent().iter().for_each(|frame| _ = client.arrive(frame));
}

#[test]
fn a_dropped_segment_is_counted_by_its_reason_and_answered() {
    let (mut client, mut server, c) = connected();
    c.client_end.write(b"late");
    client.bell(c.client, Bell::Sent);
    let frame = client.sent().remove(0);
    assert_eq!(server.arrive(&frame), Some(Outcome::Done));
    assert_eq!(server.arrive(&frame), Some(Outcome::Dropped(DropReason::TcpDuplicate)));
    assert_eq!(server.drops(c.server, DropReason::TcpDuplicate), 1);
    assert_eq!(c.server_end.read(), b"late");
    let mut wrong = frame;
    *wrong.last_mut().unwrap() ^= 1;
    assert_eq!(server.arrive(&wrong), Some(Outcome::Dropped(DropReason::TcpChecksum)));
}

#[test]
fn a_partial_checksum_is_good_only_from_a_device_that_makes_them() {
    let offload = Device { checksum_offload: true, ..Device::default() };
    let mut client = Host::with(1, Options { device: offload, ..Options::default() });
    let mut server = Host::new(2);
    listen(&mut server, 80);
    connect(&mut client, 5000, at(2, 80));
    let request = client.sent().remove(0);
    server.arrive(&request);
    let reply = server.sent().remove(0);
    client.arrive(&reply);
    let syn = client.sent().remove(0);
    assert_eq!(server.arrive(&syn), Some(Outcome::Dropped(DropReason::TcpChecksum)));
    assert_eq!(server.arrive_with(&syn, Checksum::MaybePartial), Some(Outcome::Done));
}

#[test]
fn large_segments_are_left_to_a_device_that_cuts_them() {
    let gso = Device { checksum_offload: true, gso: 65_000, ..Device::default() };
    let mut client = Host::with(1, Options { device: gso, ..Options::default() });
    let mut server = Host::with(2, Options { device: gso, ..Options::default() });
    listen(&mut server, 80);
    server.streams = || Some(stream(100_000, 65_536));
    let (buffers, handle) = stream(100_000, 65_536);
    let path = client.try_create("socket", active(5000, at(2, 80)), Some(buffers)).unwrap();
    let carry = |from: &mut Host, to: &mut Host| {
        from.sent().iter().for_each(|frame| _ = to.arrive_with(frame, Checksum::Verified));
    };
    for _ in 0..10 {
        carry(&mut client, &mut server);
        carry(&mut server, &mut client);
    }
    handle.write(&[7; 12_000]);
    client.bell(path, Bell::Sent);
    let largest = client.world.sent.iter().map(Vec::len).max().unwrap();
    assert!(largest > 4 * 1448, "one message of {largest} bytes");
    assert_eq!(client.world.gso.iter().max(), Some(&1448));
    carry(&mut client, &mut server);
    assert_eq!(server.handles[0].read().len(), 12_000);
}

// RFC 9293 MUST-54; RFC 1191 §3.
#[test]
fn a_path_mtu_is_believed_only_for_what_is_outstanding() {
    let (mut client, mut server, c) = connected();
    c.client_end.write(&[1; 3000]);
    client.bell(c.client, Bell::Sent);
    let frames = client.sent();
    let big = frames.iter().find(|frame| frame.len() > 1400).unwrap();
    // A router in the middle would say this; here the server's ICMP does.
    assert!(server.refuse(big, Unreachable::TooBig(1000)));
    settle_icmp(&mut server, &mut client);
    client.advance(Duration::ZERO);
    let longest = client.sent().iter().map(Vec::len).max().unwrap();
    assert!(longest <= 1000 + 14, "{longest}");
    let mut forged = big.clone();
    forged[14 + 20 + 4] ^= 0x40;
    assert!(server.refuse(&forged, Unreachable::TooBig(600)));
    settle_icmp(&mut server, &mut client);
    assert_eq!(client.drops(c.client, DropReason::IcmpQuote), 1);
}

// RFC 1191 §6.2; RFC 4821 §5.2.
#[test]
fn what_routers_said_of_a_path_is_known_to_the_next_connection() {
    let (mut client, mut server, c) = connected();
    c.client_end.write(&[1; 3000]);
    client.bell(c.client, Bell::Sent);
    let big = client.sent().into_iter().find(|frame| frame.len() > 1400).unwrap();
    assert!(server.refuse(&big, Unreachable::TooBig(1000)));
    settle_icmp(&mut server, &mut client);
    client.sent();
    let (path, end) = connect(&mut client, 5001, at(2, 80));
    settle(&mut client, &mut server);
    client.world.sent.clear();
    end.write(&[1; 3000]);
    client.bell(path, Bell::Sent);
    let frames = client.sent();
    let longest = frames.iter().map(Vec::len).max().unwrap();
    assert!(longest > 900 && longest <= 1000 + 14, "{longest}");
    frames.iter().for_each(|frame| _ = server.arrive(frame));
    assert_eq!(server.handles.last().unwrap().read().len(), 3000);
}

/// Segments that leave at once for an answer, on each of three connections, one after the other.
fn sent_at_once(setup: fn(&mut Setup)) -> [usize; 3] {
    let (mut client, mut server) = (Host::new(1), Host::with(2, Options { setup, ..Options::default() }));
    listen(&mut server, 80);
    server.streams = || Some(stream(100_000, 1 << 16));
    [5000, 5001, 5002].map(|port| {
        let (_, end) = connect(&mut client, port, at(2, 80));
        settle(&mut client, &mut server);
        let path = *server.created.last().expect("accepted");
        server.handles.last().expect("accepted").write(&[7; ANSWER]);
        server.bell(path, Bell::Sent);
        let segments = server.sent();
        segments.iter().for_each(|segment| _ = client.arrive(segment));
        settle(&mut client, &mut server);
        assert_eq!(end.read().len(), ANSWER);
        segments.len()
    })
}

const ANSWER: usize = 40_000;

// RFC 9040.
#[test]
fn the_next_connection_to_a_peer_begins_with_what_the_last_one_found_room_for() {
    let [first, second, third] = sent_at_once(|_| {});
    assert!(first == 10 && second > first && third == ANSWER.div_ceil(1448), "{first}, {second}, {third}");
}

#[test]
fn connections_that_are_to_share_nothing_begin_with_an_initial_window() {
    assert_eq!(sent_at_once(|setup| setup.tcp.share_windows = false), [10; 3]);
}

// RFC 9293 MUST-47, SHLD-25.
#[test]
fn what_the_network_says_of_outstanding_text_is_told_and_the_connection_goes_on() {
    let (mut client, mut server, c) = connected();
    c.client_end.write(b"hello");
    client.bell(c.client, Bell::Sent);
    let frames = client.sent();
    assert!(server.refuse(&frames[0], Unreachable::Host));
    settle_icmp(&mut server, &mut client);
    assert!(client.world.events.contains(&(c.client, Event::SoftError(113))), "{:?}", client.world.events);
    server.arrive(&frames[0]);
    settle(&mut client, &mut server);
    assert_eq!(c.server_end.read(), b"hello");
    // Of what has arrived nobody can say any more that it did not.
    client.world.events.clear();
    assert!(server.refuse(&frames[0], Unreachable::Host));
    settle_icmp(&mut server, &mut client);
    assert_eq!(client.world.events, []);
}

// RFC 1191 §3: what goes on in packets of a size that is enough for others must let itself be cut up.
#[test]
fn on_a_path_narrower_than_segments_get_what_was_too_long_leaves_at_once_and_may_be_cut_up() {
    let (mut client, mut server, c) = connected();
    c.client_end.write(&[7; 4000]);
    client.bell(c.client, Bell::Sent);
    let lost = client.sent();
    assert!(server.refuse(&lost[0], Unreachable::TooBig(296)));
    settle_icmp(&mut server, &mut client);
    client.advance(Duration::ZERO);
    let again = client.sent();
    let seen: Vec<_> = again.iter().map(|frame| (frame.len() <= 14 + 552, frame[14 + 6] & 0x40)).collect();
    assert!(!seen.is_empty() && seen.iter().all(|seen| *seen == (true, 0)), "{seen:?}");
    again.iter().for_each(|frame| _ = server.arrive(frame));
    settle(&mut client, &mut server);
    assert_eq!(c.server_end.read(), [7; 4000]);
}

// RFC 9293 §3.9.2.2.
#[test]
fn of_a_header_that_a_router_does_not_understand_the_program_hears_and_the_connection_goes_on() {
    let (mut client, mut server, c) = connected();
    c.client_end.write(b"hello");
    client.bell(c.client, Bell::Sent);
    let frames = client.sent();
    assert!(server.refuse(&frames[0], Unreachable::Host));
    let mut told = server.sent().remove(0);
    // As a parameter problem, with its checksum.
    told[14 + 20..14 + 24].copy_from_slice(&[12, 0, 0, 0]);
    let sum = silk_wire::checksum::Sum::ZERO.bytes(&told[14 + 20..]).checksum();
    told[14 + 22..14 + 24].copy_from_slice(&sum.to_be_bytes());
    client.arrive(&told);
    assert!(client.world.events.contains(&(c.client, Event::SoftError(71))), "{:?}", client.world.events);
    assert_eq!(state(&client, c.client), "ESTABLISHED");
}

// RFC 9293 MUST-49.
#[test]
fn a_program_sets_time_to_live_and_largest_segment() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    listen(&mut server, 80);
    let (buffers, end) = stream(100_000, 8192);
    let attrs = active(5000, at(2, 80)).with(Attr::Ttl(7)).with(Attr::MaxSegment(500));
    let path = client.try_create("socket", attrs, Some(buffers)).unwrap();
    server.arrive(&client.sent().remove(0));
    client.arrive(&server.sent().remove(0));
    let syn = client.sent().remove(0);
    // Time to live, and the MSS option behind TCP's header.
    assert_eq!((syn[14 + 8], &syn[14 + 20 + 20..][..4]), (7, &[2, 4, 1, 244][..]));
    server.arrive(&syn);
    settle(&mut client, &mut server);
    let wishes = Wishes { ttl: Some(9), discovery: Discovery::Dont, ..Wishes::default() };
    client.bell(path, Bell::Wishes(wishes));
    end.write(&[1; 2000]);
    client.bell(path, Bell::Sent);
    let frames = client.sent();
    let seen: Vec<_> = frames.iter().map(|frame| (frame[14 + 8], frame[14 + 6] & 0x40)).collect();
    assert!(seen.len() >= 4 && seen.iter().all(|seen| *seen == (9, 0)), "{seen:?}");
    let mut identifications: Vec<_> = frames.iter().map(|frame| [frame[18], frame[19]]).collect();
    identifications.dedup();
    assert_eq!(identifications.len(), frames.len());
}

// RFC 9293 MUST-21.
#[test]
fn a_user_time_out_ends_a_connection_whose_peer_is_silent() {
    let (mut client, _server, c) = connected();
    client.bell(c.client, Bell::Wishes(Wishes { user_timeout: Some(900), ..Wishes::default() }));
    c.client_end.write(b"hello");
    client.bell(c.client, Bell::Sent);
    let began = client.world.now;
    while !client.world.events.contains(&(c.client, Event::TimedOut)) {
        assert!(client.world.now - began < Duration::from_secs(10), "it never ends");
        client.advance(RTT);
    }
    let took = client.world.now - began;
    assert!(took >= Duration::from_millis(900) && took < Duration::from_millis(2500), "{took:?}");
}

fn settle_icmp(from: &mut Host, to: &mut Host) {
    from.sent().iter().for_each(|frame| _ = to.arrive(frame));
}

#[test]
fn who_is_refused_for_good_hears_of_it_at_once() {
    // EHOSTUNREACH, ENOPROTOOPT.
    for (why, errno) in [(Unreachable::Prohibited, 113), (Unreachable::Protocol, 92)] {
        let (mut client, mut server) = (Host::new(1), Host::new(2));
        let (path, _) = connect(&mut client, 5000, at(2, 80));
        let question = client.sent();
        question.iter().for_each(|frame| _ = server.arrive(frame));
        server.sent().iter().for_each(|frame| _ = client.arrive(frame));
        let syn = client.sent().remove(0);
        assert!(server.refuse(&syn, why));
        settle_icmp(&mut server, &mut client);
        let told = client.world.events.contains(&(path, Event::Unreachable(errno)));
        assert!(told, "{why:?}: {:?}", client.world.events);
    }
}

#[test]
fn the_program_dies_and_the_peer_hears_of_it() {
    let (mut client, mut server, c) = connected();
    server.bell(c.server, Bell::Abort);
    assert!(server.world.events.contains(&(c.server, Event::Closed)));
    settle(&mut client, &mut server);
    assert!(client.world.events.contains(&(c.client, Event::Reset)));
    server.destroy(c.server);
    client.destroy(c.client);
    assert_eq!((server.tables.flows.count(), client.tables.flows.count()), (0, 0));
}

#[test]
fn text_out_of_order_is_charged_and_given_back() {
    let (mut client, mut server, c) = connected();
    let before = server.paths.path(c.server).unwrap().state.account.memory();
    c.client_end.write(&[1; 3000]);
    client.bell(c.client, Bell::Sent);
    let frames = client.sent();
    server.arrive(&frames[1]);
    let during = server.paths.path(c.server).unwrap().state.account.memory();
    assert!(during >= before + 1000, "{before} {during}");
    server.arrive(&frames[0]);
    assert!(server.paths.path(c.server).unwrap().state.account.memory() < during);
    server.destroy(c.server);
    assert!(server.paths.path(c.server).is_none());
}

#[test]
fn what_fills_a_gap_is_taken_when_what_was_kept_behind_it_has_used_all_memory() {
    let (mut client, mut server, c) = connected();
    let account = &mut server.paths.path_mut(c.server).unwrap().state.account;
    account.set_memory_limit(account.memory() + 2000);
    c.client_end.write(&[1; 12_000]);
    client.bell(c.client, Bell::Sent);
    let frames = client.sent();
    frames[1..].iter().for_each(|frame| _ = server.arrive(frame));
    let account = &server.paths.path(c.server).unwrap().state.account;
    assert!(server.drops(c.server, DropReason::NoMemory) > 0, "{} of {}", account.memory(), frames.len());
    server.arrive(&frames[0]);
    let taken = c.server_end.read().len();
    assert!(taken > 2000, "{taken}");
}

#[test]
fn a_connection_tells_about_itself() {
    let (client, _, c) = connected();
    let info = client.paths.path(c.client).unwrap().stage::<ConnectionStage>().unwrap().info();
    assert_eq!((info.mss, info.timestamps, info.sack, info.octets_received), (1448, true, true, 0));
}

#[test]
fn a_full_device_is_a_loss_and_no_more() {
    let (mut client, mut server, c) = connected();
    client.world.full = 1;
    c.client_end.write(b"lost at first");
    client.bell(c.client, Bell::Sent);
    assert_eq!(client.drops(c.client, DropReason::DeviceFull), 1);
    for _ in 0..5 {
        settle(&mut client, &mut server);
    }
    assert_eq!(c.server_end.read(), b"lost at first");
}

#[test]
fn answers_go_back_where_the_question_came_from_while_nobody_is_resolved() {
    let (mut client, mut server) = (Host::new(1), Host::new(2));
    let listener = listen(&mut server, 80);
    let (path, handle) = connect(&mut client, 5000, at(2, 80));
    let question = client.sent().remove(0);
    server.arrive(&question);
    server.sent().iter().for_each(|frame| _ = client.arrive(frame));
    // From here on the server's own questions are lost.
    let is_arp = |frame: &[u8]| frame[12..14] == [8, 6];
    handle.write(b"hello");
    for _ in 0..5 {
        client.sent().iter().for_each(|frame| _ = server.arrive(frame));
        client.bell(path, Bell::Sent);
        server.sent().iter().filter(|frame| !is_arp(frame)).for_each(|frame| _ = client.arrive(frame));
    }
    assert_eq!(server.handles[0].read(), b"hello");
    assert_eq!(state(&server, server.created[0]), "ESTABLISHED");
    assert_eq!(server.drops(listener, DropReason::ArpPending), 0);
}

#[test]
fn a_neighbour_that_is_not_there_refuses_a_connection_in_three_seconds() {
    let unreachable = Event::Unreachable(113);
    let mut client = Host::new(1);
    let (path, _) = connect(&mut client, 5000, at(9, 80));
    client.advance(Duration::from_millis(2900));
    assert!(!client.world.events.contains(&(path, unreachable)), "it is still asked for");
    client.advance(Duration::from_millis(200));
    assert!(client.world.events.contains(&(path, unreachable)));
    assert_eq!(state(&client, path), "CLOSED");
    // The next hears of it at once, and a second later the neighbour is asked for again.
    let (path, _) = connect(&mut client, 5001, at(9, 80));
    assert!(client.world.events.contains(&(path, unreachable)));
    client.advance(Duration::from_millis(1000));
    let (path, _) = connect(&mut client, 5002, at(9, 80));
    client.advance(Duration::from_millis(2900));
    assert!(!client.world.events.contains(&(path, unreachable)));
}

/// Marks a frame as having met congestion (RFC 3168 §5), as a router would.
fn mark(frame: &mut [u8]) {
    frame[15] |= 3;
    frame[24..26].fill(0);
    let sum = silk_wire::checksum::Sum::ZERO.bytes(&frame[14..34]).checksum();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn text_is_ecn_capable_where_both_ends_agreed_and_a_mark_is_echoed() {
    for template in [false, true] {
        let host = |n| {
            let rules: Vec<Box<dyn Rule>> =
                if template { vec![Box::new(HeaderTemplate)] } else { Vec::new() };
            let setup = |setup: &mut Setup| setup.tcp.config.ecn = Ecn::Ask;
            Host::with(n, Options { rules, setup, ..Options::default() })
        };
        let (mut client, mut server) = (host(1), host(2));
        listen(&mut server, 80);
        let c = open(&mut client, &mut server);
        // The program's own service bits do not reach into TCP's.
        client.bell(c.client, Bell::Service(0xb8 | 1));
        c.client_end.write(b"GET /");
        client.bell(c.client, Bell::Sent);
        let mut frames = client.sent();
        assert_eq!((frames.len(), frames[0][15]), (1, 0xb8 | 2));
        mark(&mut frames[0]);
        server.arrive(&frames[0]);
        assert_eq!(c.server_end.read(), b"GET /");
        server.advance(Duration::from_millis(40));
        let answer = server.sent();
        let flags = answer[0][14 + 20 + 13];
        assert_eq!((answer[0][15], flags & 0x40), (0, 0x40), "an acknowledgement is not capable");
    }
}
