//! What only the `xdp` device promises: the path's word comes with the packet, domains do not
//! disturb each other, and what no path owns is Linux's, before, during and after.

mod fetching;
mod long;
mod queues;
#[path = "../rig/mod.rs"]
mod rig;

use std::io::{BufRead, BufReader};
use std::net::{SocketAddrV4, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rig::{LEFT, PAYLOAD, PORT, RIGHT};
use silk_device::xdp::{self, Device, Limit, Mode, Options, Strangers, Tried};
use silk_device::{Checksum, End, Offload, OpenError, Queues, napi, packet, readable, tap};
use silk_path::classify::{
    Belongs, ClassRule, Domains, Filter, Flow, Found, Framed, Owned, Protocol, Tables,
};

/// The port of the second domain's packets.
const OTHER: u16 = 8;

fn open(options: Options) -> (End, Device, Tables) {
    let device = xdp::open("right", &options).unwrap();
    with_tables(device, options.domains)
}

/// The left end, an opened device of so many domains, and its tables, configured.
fn with_tables(device: Device, domains: u32) -> (End, Device, Tables) {
    let tables = rig::classifier(&device.tables);
    let rule = ClassRule { source: None, dscp: None, local_port: Some(OTHER), domain: (domains - 1) as u8 };
    tables.configure(Owned::default(), Domains::default(), &[rule], &[RIGHT]).unwrap();
    (packet::open("left", &packet::Options::default()).unwrap(), device, tables)
}

fn two_domains() -> Options {
    Options { domains: 2, ring: 256, buckets: 64, ..Options::default() }
}

fn datagram_to(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = rig::datagram(payload);
    packet[36..38].copy_from_slice(&port.to_be_bytes());
    packet
}

fn send_many(end: &mut End, packet: &[u8], count: usize) {
    for at in 1..=count {
        end.transmit.send(packet, [&[], &[]], Offload::NONE);
        if at % 32 == 0 || at == count {
            end.transmit.flush();
        }
    }
}

#[test]
fn a_packet_of_a_path_brings_the_paths_word() {
    if !rig::root_of_the_machine() {
        return;
    }
    for mode in [Mode::Native, Mode::Generic, Mode::Ingress] {
        rig::with_veth(move || {
            let (mut left, mut device, tables) = open(Options { mode, ..two_domains() });
            let flow = Flow {
                protocol: Protocol::Udp,
                local: SocketAddrV4::new(RIGHT, PORT),
                remote: SocketAddrV4::new(LEFT, 0x3039),
            };
            tables.flows.insert(&flow, Found { domain: 1, index: 4711 }).unwrap();
            rig::send(&mut left, &rig::datagram(b"for a path"));
            let (frame, bytes) = rig::arrivals(&mut device.ends[1], 1).pop().expect("a frame");
            assert_eq!(Belongs::from_hint(frame.path), Some(Belongs::Path { domain: 1, index: 4711 }));
            assert_eq!(bytes, rig::datagram(b"for a path"));
            let counts = device.counts(1);
            assert_eq!((counts.path, counts.no_ring, counts.no_hint), (1, 0, 0));

            tables.flows.remove(&flow);
            tables.own_port(Protocol::Udp, None, PORT);
            rig::send(&mut left, &rig::datagram(b"for the listener"));
            let (frame, _) = rig::arrivals(&mut device.ends[0], 1).pop().expect("a frame");
            assert_eq!(Belongs::from_hint(frame.path), Some(Belongs::Listen { domain: 0 }));
        });
    }
}

#[test]
fn a_flood_of_one_domain_takes_no_frame_of_another() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let (mut left, mut device, tables) = open(two_domains());
        tables.own_port(Protocol::Udp, None, PORT);
        tables.own_port(Protocol::Udp, None, OTHER);
        let [flooded, quiet] = &mut device.ends[..] else { panic!("two domains") };
        let flood = datagram_to(PORT, &[1; 18]);
        let mut held = Vec::new();
        for round in 0..20u8 {
            // It fills its ring, takes all it may hold, and fills its ring again.
            send_many(&mut left, &flood, 1000);
            flooded.receive.receive(&mut held, usize::MAX);
            send_many(&mut left, &flood, 1000);

            // The interrupt may lag behind on a busy machine; its own queue is not under test.
            std::thread::sleep(Duration::from_millis(2));
            let wanted = datagram_to(OTHER, &[round; 100]);
            send_many(&mut left, &wanted, 100);
            let arrived = rig::arrivals(quiet, 100);
            assert!(arrived.len() == 100 && arrived.iter().all(|(_, bytes)| *bytes == wanted));
        }
        assert_eq!(held.len(), 256, "its share and no more");
        assert!(flooded.receive.received().ring_full > 30_000);
        assert_eq!(quiet.receive.received().ring_full, 0);
        for frame in held {
            assert_eq!(flooded.receive.bytes(frame)[frame.range()], flood);
            flooded.receive.release(frame);
        }
        rig::drain(flooded);
        rig::send(&mut left, &datagram_to(PORT, b"again"));
        assert_eq!(rig::arrivals(flooded, 1).len(), 1);
    });
}

/// A socket of Linux on the interface's own address, reached as any program is.
fn linux_socket() -> UdpSocket {
    rig::ip("addr add 10.0.0.2/24 dev right");
    rig::ip("link set right address 02:00:00:00:00:02");
    let socket = UdpSocket::bind((RIGHT, PORT)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    socket
}

fn linux_hears(socket: &UdpSocket, payload: &[u8]) -> bool {
    let mut room = [0; 100];
    socket.recv(&mut room).is_ok_and(|len| room[..len] == *payload)
}

#[test]
fn what_a_path_does_not_want_never_reaches_its_ring() {
    if !rig::root_of_the_machine() {
        return;
    }
    for mode in [Mode::Native, Mode::Generic, Mode::Ingress] {
        rig::with_veth(move || {
            let (mut left, mut device, tables) = open(Options { mode, ..two_domains() });
            let (local, remote) = (SocketAddrV4::new(RIGHT, PORT), SocketAddrV4::new(LEFT, 0x3039));
            let path = Found { domain: 1, index: 4711 };
            tables.flows.insert(&Flow { protocol: Protocol::Udp, local, remote }, path).unwrap();
            let no_b_pictures = Filter { types: 1 << 3, ..Filter::none(Framed::Mflow) };
            tables.discard(path, &no_b_pictures).unwrap();
            let picture = |kind, number| {
                let mut bytes = [0; 40];
                (bytes[0], bytes[2], bytes[11]) = (0x10, kind, number);
                rig::datagram(&bytes)
            };
            for (kind, number) in [(3, 1), (3, 2), (2, 3)] {
                rig::send(&mut left, &picture(kind, number));
            }
            let arrived = rig::arrivals(&mut device.ends[1], 1).into_iter().map(|(_, bytes)| bytes);
            assert_eq!(arrived.collect::<Vec<_>>(), [picture(2, 3)]);
            let counts = device.counts(1);
            assert_eq!((counts.path, counts.discarded, tables.discarded(path)), (1, 2, 2));
            tables.discard_nothing(path);
            rig::send(&mut left, &picture(3, 4));
            assert_eq!(
                rig::arrivals(&mut device.ends[1], 1).pop().map(|(_, bytes)| bytes),
                Some(picture(3, 4))
            );
        });
    }
}

#[test]
fn an_ingress_that_another_daemon_or_a_bridge_has_is_refused() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let open_in = |mode| xdp::open("right", &Options { mode, ..two_domains() });
        let alone = open_in(Mode::Ingress).unwrap();
        assert_eq!(alone.mode, Mode::Ingress);
        assert!(matches!(open_in(Mode::Ingress).err(), Some(OpenError::Taken { .. })));
        drop(alone);
        rig::ip("link add bridge type bridge");
        rig::ip("link set right master bridge");
        let error = open_in(Mode::Ingress).err().expect("the bridge has the packets");
        assert!(matches!(error, OpenError::Unsupported { .. }), "{error}");
        assert_eq!(open_in(Mode::Generic).unwrap().mode, Mode::Generic);
    });
}

#[test]
fn what_no_path_owns_is_linuxs_before_during_and_after() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let socket = linux_socket();
        let (mut left, mut device, tables) = open(two_domains());
        rig::send(&mut left, &rig::datagram(b"before"));
        assert!(linux_hears(&socket, b"before"));
        assert!(device.passed() >= 1);

        tables.own_port(Protocol::Udp, None, PORT);
        rig::send(&mut left, &rig::datagram(b"silk's"));
        assert_eq!(rig::arrivals(&mut device.ends[0], 1)[0].1[PAYLOAD..], *b"silk's");
        tables.disown_port(Protocol::Udp, None, PORT);
        rig::send(&mut left, &rig::datagram(b"given back"));
        assert!(linux_hears(&socket, b"given back"));

        tables.own_port(Protocol::Udp, None, PORT);
        drop(device);
        rig::send(&mut left, &rig::datagram(b"after"));
        assert!(linux_hears(&socket, b"after"));
    });
}

#[test]
fn a_domain_lets_in_so_many_segments_of_no_connection_and_no_datagram_less() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let (_left, mut device, tables) = open(two_domains());
        tables.own_port(Protocol::Tcp, None, PORT);
        tables.own_port(Protocol::Udp, None, PORT);
        let (opening, _) = rig::tcp_headers(0, 0);
        let is_let_in = |device: &Device, frame: &[u8]| device.try_frame(frame).unwrap() != Tried::Discarded;
        assert!((0..50).all(|_| is_let_in(&device, &opening)), "without a limit");
        // What the clock adds while this runs is next to nothing.
        device.limit(Strangers::Domain(0), Some(Limit { rate: 1, burst: 20 })).unwrap();
        let let_in = (0..50).filter(|_| is_let_in(&device, &opening)).count();
        assert!((20..25).contains(&let_in), "{let_in}");
        assert_eq!(device.not_let_in(Strangers::Domain(0)), 50 - let_in as u64);
        assert!(is_let_in(&device, &rig::datagram(b"to a socket")), "datagrams are no openings");
        assert_eq!(device.try_frame(&datagram_to(OTHER, b"nobody's")).unwrap(), Tried::Pass);
        device.limit(Strangers::Domain(0), None).unwrap();
        assert!(is_let_in(&device, &opening));
    });
}

#[test]
fn linux_is_left_so_many_packets_and_neighbours_as_many_of_their_own() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let (_left, mut device, _) = open(two_domains());
        let theirs = rig::datagram(b"nobody's");
        let mut question = vec![0xff; 42];
        question[12..14].copy_from_slice(&[8, 6]);
        let passed = |device: &Device, frame: &[u8]| {
            (0..30).filter(|_| device.try_frame(frame).unwrap() == Tried::Pass).count()
        };
        assert_eq!(passed(&device, &theirs), 30, "without a limit");
        for strangers in [Strangers::Linux(0), Strangers::Neighbours(0)] {
            device.limit(strangers, Some(Limit { rate: 1, burst: 10 })).unwrap();
        }
        assert!((10..15).contains(&passed(&device, &theirs)));
        assert!((10..15).contains(&passed(&device, &question)), "a flood takes nothing from neighbours");
        assert!(
            device.not_let_in(Strangers::Linux(0)) >= 15 && device.not_let_in(Strangers::Neighbours(0)) >= 15
        );
    });
}

#[test]
fn an_interface_that_goes_down_keeps_nobody_awake_and_serves_again_when_it_is_up() {
    if !rig::root_of_the_machine() {
        return;
    }
    for mode in [Mode::Native, Mode::Generic, Mode::Ingress] {
        rig::with_veth(move || {
            let (mut left, mut device, tables) = open(Options { mode, ..two_domains() });
            tables.own_port(Protocol::Udp, None, PORT);
            let ours = &mut device.ends[0];
            rig::send(&mut left, &rig::datagram(b"before"));
            assert_eq!(rig::arrivals(ours, 1).len(), 1, "{mode:?}");
            rig::ip("link set right down");
            let mut frames = Vec::new();
            (0..100).for_each(|_| assert_eq!(ours.receive.receive(&mut frames, 64), 0));
            assert!(!readable(ours.receive.fd(), Duration::ZERO).unwrap(), "{mode:?}");
            rig::up();
            rig::send(&mut left, &rig::datagram(b"after"));
            assert_eq!(rig::arrivals(ours, 1)[0].1, rig::datagram(b"after"), "{mode:?}");
        });
    }
}

#[test]
fn an_interface_that_is_let_go_is_linuxs_and_the_others_stay_silks() {
    if !rig::root_of_the_machine() {
        return;
    }
    for mode in [Mode::Native, Mode::Generic, Mode::Ingress] {
        rig::with_veth(move || {
            let ours = linux_socket();
            let options = Options { mode, ..two_domains() };
            let device = xdp::open_all(&[("left", options.clone()), ("right", options)]).unwrap();
            let (mut far, mut device, tables) = with_tables(device, 2);
            tables.own_port(Protocol::Udp, None, PORT);
            device.let_go(0);
            rig::send(&mut far, &rig::datagram(b"to a path"));
            assert_eq!(rig::arrivals(&mut device.further[0].ends[0], 1).len(), 1, "{mode:?}");
            device.let_go(1);
            rig::send(&mut far, &rig::datagram(b"to Linux"));
            assert!(linux_hears(&ours, b"to Linux"), "{mode:?}");
            device.let_go(2);
        });
    }
}

#[test]
fn every_hardware_queue_is_served() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_namespace(|| {
        with_queues();
        let (mut left, mut device, tables) = open(two_domains());
        assert_eq!(napi::receive_queues(&device.interface), Some(4));
        tables.own_port(Protocol::Udp, None, PORT);
        let mut wanted = spread(&mut left);
        let arrived = rig::arrivals(&mut device.ends[0], 200);
        let frames_per_queue = 2 * 2 * 256 + 512;
        let mut queues: Vec<_> = arrived.iter().map(|(frame, _)| frame.index / frames_per_queue).collect();
        queues.sort_unstable();
        queues.dedup();
        assert!(queues.len() > 1, "packets came over queues {queues:?}");
        let brought = queues.iter().map(|queue| Queues::one(0, *queue)).fold(Queues::default(), |a, b| a | b);
        assert_eq!(device.ends[0].receive.brought(), brought);
        let mut arrived: Vec<_> = arrived.into_iter().map(|(_, bytes)| bytes).collect();
        arrived.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(arrived, wanted);
        assert!(!readable(device.ends[0].receive.fd(), Duration::ZERO).unwrap());
    });
}

#[test]
fn a_checksum_that_a_virtual_machine_leaves_out_is_flagged() {
    if !rig::root_of_the_machine() {
        return;
    }
    for mode in [Mode::Native, Mode::Generic] {
        rig::with_namespace(move || {
            // What a virtual machine's network card is to the machine that it runs on.
            let mut guest = tap::open("right", &tap::Options::default()).unwrap();
            rig::ip("link set right up");
            let mut device = xdp::open("right", &Options { mode, ..two_domains() }).unwrap();
            rig::own_port(&device.tables, 0);
            let (packet, offload) = rig::unsummed_datagram(&[7; 100]);
            guest.transmit.send(&packet, [&[], &[]], offload);
            guest.transmit.flush();
            let (frame, bytes) = rig::arrivals(&mut device.ends[0], 1).pop().expect("a frame");
            assert_eq!((frame.checksum, bytes), (Checksum::MaybePartial, packet), "{mode:?}");
        });
    }
}

#[test]
fn no_checksum_is_left_out_by_a_program_that_could_not_say_so() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_namespace(|| {
        let wire = tap::Options { offload: false, ..tap::Options::default() };
        let mut guest = tap::open("right", &wire).unwrap();
        rig::ip("link set right up");
        let mut device = xdp::open("right", &Options { mode: Mode::Native, ..two_domains() }).unwrap();
        rig::own_port(&device.tables, 0);
        let (packet, offload) = rig::unsummed_datagram(&[7; 100]);
        guest.transmit.send(&packet, [&[], &[]], offload);
        assert_eq!(guest.transmit.transmitted().malformed, 1, "it has no header to say it in");
        guest.transmit.send(&packet, [&[], &[]], Offload::NONE);
        let (frame, bytes) = rig::arrivals(&mut device.ends[0], 1).pop().expect("a frame");
        assert_eq!((frame.checksum, bytes), (Checksum::Unknown, packet));
    });
}

#[test]
fn a_queue_that_is_not_served_loses_what_paths_own() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_namespace(|| {
        with_queues();
        let options = Options { only: Some(vec![3, 1, 3]), ..two_domains() };
        let (mut left, mut device, tables) = open(options);
        tables.own_port(Protocol::Udp, None, PORT);
        spread(&mut left);
        let arrived = rig::arrivals(&mut device.ends[0], 200).len() as u64;
        let counts = device.counts(0);
        assert_eq!((counts.listen, counts.no_ring), (200, 200 - arrived));
        assert!(arrived > 0 && arrived < 200, "{arrived} of 200 came over the two queues");
        // Frames find their way home to the queue they came by.
        for _ in 0..20 {
            spread(&mut left);
            rig::drain(&mut device.ends[0]);
        }
        assert_eq!(device.ends[0].receive.received().frames, 21 * arrived);
    });
}

#[test]
fn of_several_interfaces_a_queue_that_is_not_served_loses_what_paths_own_and_counts_it() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_namespace(|| {
        with_queues();
        rig::ip("link add near type veth peer name far");
        let first = Options { only: Some(vec![0]), ..two_domains() };
        let device = xdp::open_all(&[("right", first), ("far", two_domains())]).unwrap();
        let (mut left, mut device, tables) = with_tables(device, 2);
        tables.own_port(Protocol::Udp, None, PORT);
        spread(&mut left);
        let arrived = rig::arrivals(&mut device.ends[0], 200).len() as u64;
        let counts = device.counts(0);
        assert!(arrived > 0 && arrived < 200, "{arrived} of 200 came over the queue");
        assert_eq!((counts.listen, counts.no_ring), (200, 200 - arrived));
    });
}

fn with_queues() {
    let queues = "numtxqueues 4 numrxqueues 4";
    rig::ip(&format!("link add left {queues} type veth peer name right {queues}"));
    rig::up();
}

/// Sends packets of flows enough for every queue; Linux spreads them by hash.
fn spread(left: &mut End) -> Vec<Vec<u8>> {
    let mut packets: Vec<_> = (0..200u8).map(|at| rig::datagram(&[at; 20])).collect();
    for (at, packet) in (0..).zip(&mut packets) {
        packet[34..36].copy_from_slice(&(10_000u16 + at * 7).to_be_bytes());
        rig::send(left, packet);
    }
    packets
}

#[test]
fn a_domain_without_a_ring_loses_its_packets_and_says_so() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let (mut left, mut device, tables) = open(two_domains());
        let domains = Domains { default: 2, ..Domains::default() };
        tables.configure(Owned::default(), domains, &[], &[RIGHT]).unwrap();
        tables.own_port(Protocol::Udp, None, PORT);
        rig::send(&mut left, &rig::datagram(b"for nobody"));
        assert!(rig::arrivals(&mut device.ends[0], 1).is_empty());
        let counts = device.counts(2);
        assert_eq!((counts.listen, counts.no_ring), (1, 1));
    });
}

#[test]
fn a_refusal_says_whose_fault_it_is() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let held = xdp::open("right", &two_domains()).unwrap();
        let said = |name, options: &Options| match xdp::open(name, options) {
            Ok(_) => panic!("it was opened"),
            Err(error) => error,
        };
        let error = said("right", &two_domains());
        assert!(matches!(error, OpenError::Taken { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            "cannot receive by AF_XDP on `right`: another program has it; stop that one first"
        );
        let error = said("rihgt", &two_domains());
        assert!(matches!(error, OpenError::NoInterface { .. }), "{error}");
        let error = said("lo", &two_domains());
        assert!(matches!(error, OpenError::NoEthernet { .. }), "{error}");
        for options in [
            Options { domains: 0, ..two_domains() },
            Options { domains: 65, ..two_domains() },
            Options { ring: 100, ..two_domains() },
            Options { buckets: 3, ..two_domains() },
            Options { queues: Some(0), ..two_domains() },
            Options { only: Some(vec![]), ..two_domains() },
            Options { only: Some(vec![1 << 20]), ..two_domains() },
        ] {
            let error = said("left", &options);
            assert!(matches!(error, OpenError::Options(_)), "{error}");
        }
        drop(held);
        let error = said("left", &Options { only: Some(vec![0, 7]), ..two_domains() });
        assert!(matches!(error, OpenError::NoQueue { queue: 7, queues: 1, .. }), "{error}");
        assert!(xdp::open("right", &two_domains()).is_ok(), "nothing was left behind");
    });
}

#[test]
fn two_domains_at_full_speed_lose_no_frame_for_good() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let (mut left, mut device, tables) = open(two_domains());
        tables.own_port(Protocol::Udp, None, PORT);
        tables.own_port(Protocol::Udp, None, OTHER);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for end in &mut device.ends {
                let done = &done;
                // Each holds some back for a while, so that frames return out of order.
                scope.spawn(move || {
                    let (mut frames, mut held) = (Vec::new(), Vec::new());
                    while !done.load(Ordering::Relaxed) {
                        end.receive.receive(&mut frames, 64);
                        held.append(&mut frames);
                        for frame in held.drain(..held.len() / 2) {
                            end.receive.release(frame);
                        }
                    }
                    held.drain(..).for_each(|frame| end.receive.release(frame));
                });
            }
            for _ in 0..500 {
                send_many(&mut left, &datagram_to(PORT, &[1; 18]), 50);
                send_many(&mut left, &datagram_to(OTHER, &[2; 18]), 50);
            }
            done.store(true, Ordering::Relaxed);
        });
        // Every ring can still be filled to the brim, and every share held.
        device.ends.iter_mut().for_each(rig::drain);
        for (domain, port) in [PORT, OTHER].into_iter().enumerate() {
            let packet = datagram_to(port, &[3; 18]);
            let end = &mut device.ends[domain];
            let mut held = Vec::new();
            send_many(&mut left, &packet, 256);
            while held.len() < 256 && readable(end.receive.fd(), Duration::from_secs(2)).unwrap() {
                end.receive.receive(&mut held, 1000);
            }
            send_many(&mut left, &packet, 256);
            assert_eq!(held.len(), 256);
            held.drain(..).for_each(|frame| end.receive.release(frame));
            assert_eq!(rig::arrivals(end, 256).len(), 256);
        }
    });
}

/// Set for the child of the next test.
const CHILD: &str = "SILK_DEVICE_TEST_HOLDS_THE_DEVICE";

#[test]
fn what_a_killed_daemon_owned_is_linuxs_at_once() {
    if std::env::var_os(CHILD).is_some() {
        let (_left, _device, tables) = open(two_domains());
        tables.own_port(Protocol::Udp, None, PORT);
        println!("ready");
        std::thread::sleep(Duration::from_secs(60));
        panic!("nobody killed it");
    }
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let socket = linux_socket();
        let mut left = packet::open("left", &packet::Options::default()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "what_a_killed_daemon_owned_is_linuxs_at_once", "--nocapture"])
            .env(CHILD, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(said.map_while(Result::ok).any(|line| line.ends_with("ready")), "the child holds the device");
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        rig::send(&mut left, &rig::datagram(b"the child's"));
        let heard = linux_hears(&socket, b"the child's");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!heard, "while it lived it had its packets");
        rig::send(&mut left, &rig::datagram(b"Linux's"));
        assert!(linux_hears(&socket, b"Linux's"));
    });
}
