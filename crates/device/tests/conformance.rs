//! What every device must do, asked of each of them: the frames that go in at one end come
//! out at the other, nothing waits, nothing leaks, and what is lost is counted.

mod rig;

use std::time::Duration;

use rig::{PAYLOAD, TRANSPORT};
use silk_device::xdp::{self, Mode};
use silk_device::{Checksum, End, HEADROOM, Offload, Segment, link, packet, readable, tap};
use silk_testkit::emulator::Conditions;
use silk_testkit::faults::Faulty;

/// Two connected ends, the sender first, and what must live as long as they.
type Pair = (End, End, Option<xdp::Device>);

/// A property in words, and its test.
type Property = (&'static str, fn(Pair));

const SUITE: [Property; 8] = [
    ("frames arrive whole and in order", whole_and_in_order),
    ("there is headroom before a frame", headroom),
    ("a large message carries its payload in order", large_message),
    ("a checksum left out is completed or flagged", checksum_left_out),
    ("the descriptor is readable while something is there", readiness),
    ("no more frames than asked for", limit),
    ("frames held back do not leak", held_back),
    ("a flood never blocks", flood),
];

fn conforms(device: &str, pair: impl Fn() -> Pair) {
    carries(device, &pair);
    eprintln!("{device}: nonsense is refused and the next frame passes");
    nonsense(pair());
}

fn carries(device: &str, pair: impl Fn() -> Pair) {
    for (property, test) in SUITE {
        eprintln!("{device}: {property}");
        test(pair());
    }
}

#[test]
fn link() {
    conforms("link", || link_pair(&link::Options::default()));
    loss_is_counted(link_pair(&link::Options::default()));
}

#[test]
fn link_that_does_not_cut() {
    let options = link::Options { cut: false, ..link::Options::default() };
    conforms("uncut link", || link_pair(&options));
}

#[test]
fn what_is_sent_back_to_oneself_comes_whole_but_for_datagrams() {
    let options = link::Options { cut: false, mtu: 65_535, ..link::Options::default() };
    let mut end = link::back(&options).unwrap();
    let long = rig::datagram(&[7; 9000]);
    let (packet, mut offload) = rig::unsummed_datagram(&[8; 2500]);
    offload.segment = Segment::Udp(1000);
    offload.header_len = PAYLOAD as u16;
    end.transmit.send(&long, [&[], &[]], Offload::NONE);
    end.transmit.send(&packet, [&[], &[]], offload);
    end.transmit.flush();
    let lengths: Vec<_> = rig::arrivals(&mut end, 4).iter().map(|(_, bytes)| bytes.len() - PAYLOAD).collect();
    assert_eq!(lengths, [9000, 1000, 1000, 500]);
}

/// The wrapper that tests bring faults over a device with keeps what every device promises.
#[test]
fn link_with_faults_that_never_happen() {
    let options = link::Options { cut: false, ..link::Options::default() };
    conforms("link, faultless", || faultless(link_pair(&link::Options::default())));
    conforms("uncut link, faultless", || faultless(link_pair(&options)));
    loss_is_counted(faultless(link_pair(&link::Options::default())));
}

#[test]
fn packet_with_faults_that_never_happen() {
    rig::with_veth(|| {
        let open = |name| packet::open(name, &packet::Options::default()).unwrap();
        conforms("packet, faultless", || faultless((open("left"), open("right"), None)));
        loss_is_counted(faultless((open("left"), open("right"), None)));
    });
}

fn faultless((a, b, device): Pair) -> Pair {
    let around = |receive| Faulty::new(receive, &Conditions::default(), 1).unwrap().boxed();
    let [a, b] = [a, b].map(|end| End { receive: around(end.receive), ..end });
    (a, b, device)
}

fn link_pair(options: &link::Options) -> Pair {
    let (a, b) = link::pair(options).unwrap();
    (a, b, None)
}

#[test]
fn packet() {
    rig::with_veth(|| {
        let options = packet::Options::default();
        let open = |name| packet::open(name, &options).unwrap();
        conforms("packet", || (open("left"), open("right"), None));
        loss_is_counted((open("left"), open("right"), None));
        datagrams_apart((open("left"), open("right"), None));
        many_datagrams_apart((open("left"), open("right"), None));
    });
}

#[test]
fn tap() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_namespace(|| {
        conforms("tap, from Linux", tap_pair);
        conforms("tap, to Linux", || {
            let (linux, ours, _) = tap_pair();
            (ours, linux, None)
        });
    });
}

/// Linux's side of a tap, seen by a packet socket, and ours.
fn tap_pair() -> Pair {
    let ours = tap::open("tap0", &tap::Options::default()).unwrap();
    rig::ip("link set tap0 up");
    (packet::open("tap0", &packet::Options::default()).unwrap(), ours, None)
}

#[test]
fn xdp() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        for mode in [Mode::Native, Mode::Generic, Mode::Ingress] {
            let xdp_pair = |domains| xdp_pair(domains, mode);
            conforms("xdp, receiving", || xdp_pair(1));
            conforms("xdp, receiving for the last of three domains", || xdp_pair(3));
            conforms("xdp, sending", || {
                let (linux, ours, device) = xdp_pair(1);
                (ours, linux, device)
            });
            loss_is_counted(xdp_pair(1));
            if mode == Mode::Ingress {
                many_datagrams_apart(xdp_pair(1));
            }
        }
    });
}

/// A packet socket, and the last domain of an XDP device that owns the port of the packets.
fn xdp_pair(domains: u32, mode: Mode) -> Pair {
    let options = xdp::Options { domains, mode, ..xdp::Options::default() };
    let mut device = xdp::open("right", &options).unwrap();
    rig::own_port(&device.tables, domains - 1);
    let last = device.ends.pop().unwrap();
    (packet::open("left", &packet::Options::default()).unwrap(), last, Some(device))
}

fn whole_and_in_order((mut a, mut b, _device): Pair) {
    let packets: Vec<_> = (0..200u8).map(|at| rig::datagram(&vec![at; 18 + 7 * usize::from(at)])).collect();
    for batch in packets.chunks(20) {
        batch.iter().for_each(|packet| a.transmit.send(packet, [&[], &[]], Offload::NONE));
        a.transmit.flush();
        let arrived: Vec<_> = rig::arrivals(&mut b, 20).into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(arrived, batch);
    }
    let bytes = packets.iter().map(Vec::len).sum::<usize>() as u64;
    let (sent, got) = (a.transmit.transmitted(), b.receive.received());
    assert_eq!((sent.frames, sent.bytes, sent.dropped()), (200, bytes, 0));
    assert_eq!((got.frames, got.bytes), (200, bytes));
}

fn headroom((mut a, mut b, _device): Pair) {
    rig::send(&mut a, &rig::datagram(b"turn me around"));
    let mut frames = Vec::new();
    assert!(readable(b.receive.fd(), Duration::from_secs(2)).unwrap());
    b.receive.receive(&mut frames, 1);
    let frame = frames[0];
    assert!(frame.offset as usize >= HEADROOM);
    assert!(b.receive.bytes(frame).len() >= frame.range().end);
    b.receive.bytes(frame)[..frame.range().start].fill(0xff);
    let sum = rig::datagram(b"turn me around");
    assert_eq!(b.receive.bytes(frame)[frame.range()], sum);
    b.receive.release(frame);
    assert!(b.receive.bytes(frame).is_empty(), "the bytes of a released frame are out of reach");
}

fn large_message((mut a, mut b, _device): Pair) {
    let payload: Vec<u8> = (0..40_000u32).map(|at| (at % 251) as u8).collect();
    let (headers, offload) = rig::tcp_headers(payload.len(), 1400);
    // Order is kept between what is batched and what leaves at once.
    a.transmit.send(&rig::datagram(b"before"), [&[], &[]], Offload::NONE);
    a.transmit.send(&headers, [&payload[..13_000], &payload[13_000..]], offload);
    a.transmit.send(&rig::datagram(b"after"), [&[], &[]], Offload::NONE);
    a.transmit.flush();

    let mut arrived = rig::arrivals(&mut b, 3);
    while arrived.last().is_some_and(|(_, bytes)| bytes[PAYLOAD..] != *b"after") {
        let more = rig::arrivals(&mut b, 1);
        assert!(!more.is_empty(), "the last frame never came");
        arrived.extend(more);
    }
    assert_eq!(arrived.remove(0).1[PAYLOAD..], *b"before");
    arrived.pop();
    let mut carried = Vec::new();
    for (frame, bytes) in arrived {
        assert_eq!(carried.len() as u32, u32::from_be_bytes(bytes[38..42].try_into().unwrap()) - 1);
        assert!(bytes.len() <= 54 + 1400 || [0, 1400].contains(&frame.segment), "a wrong segment size");
        assert!(checksum_holds(frame.checksum, &bytes, 16));
        carried.extend_from_slice(&bytes[54..]);
    }
    assert_eq!(carried, payload);
}

/// Whether a checksum is complete, or partial where the device says that it may be.
fn checksum_holds(said: Checksum, packet: &[u8], at: usize) -> bool {
    let field = [packet[TRANSPORT + at], packet[TRANSPORT + at + 1]];
    let complete = rig::pseudo(packet).bytes(&packet[TRANSPORT..]).folded() == 0xffff;
    let partial = u16::from_be_bytes(field) == rig::pseudo(packet).folded();
    match said {
        Checksum::Unknown => complete,
        Checksum::MaybePartial => complete || partial,
        Checksum::Partial => partial,
        Checksum::Verified => true,
    }
}

fn checksum_left_out((mut a, mut b, _device): Pair) {
    let (packet, offload) = rig::unsummed_datagram(b"somebody else's work");
    a.transmit.send(&packet, [&[], &[]], offload);
    a.transmit.flush();
    let (frame, bytes) = rig::arrivals(&mut b, 1).pop().expect("a frame");
    assert!(checksum_holds(frame.checksum, &bytes, 6), "{:?}", frame.checksum);
    assert_eq!(bytes[PAYLOAD..], packet[PAYLOAD..]);
}

fn readiness((mut a, mut b, _device): Pair) {
    let is_readable = |b: &End| readable(b.receive.fd(), Duration::ZERO).unwrap();
    assert!(!is_readable(&b));
    rig::send(&mut a, &rig::datagram(b"one"));
    rig::send(&mut a, &rig::datagram(b"two"));
    assert!(readable(b.receive.fd(), Duration::from_secs(2)).unwrap());
    assert_eq!(rig::arrivals(&mut b, 2).len(), 2);
    assert!(!is_readable(&b));
}

fn limit((mut a, mut b, _device): Pair) {
    (0..5).for_each(|_| rig::send(&mut a, &rig::datagram(b"many")));
    assert!(readable(b.receive.fd(), Duration::from_secs(2)).unwrap());
    let mut frames = Vec::new();
    assert_eq!((b.receive.receive(&mut frames, 2), frames.len()), (2, 2));
    assert_eq!(b.receive.receive(&mut frames, 0), 0);
    frames.drain(..).for_each(|frame| b.receive.release(frame));
    assert_eq!(rig::arrivals(&mut b, 3).len(), 3);
}

fn held_back((mut a, mut b, device): Pair) {
    let packet = rig::datagram(&[1; 100]);
    for _ in 0..3 {
        let mut frames = Vec::new();
        // More than any device's buffers: the rest waits or is dropped.
        for _ in 0..6_000 {
            rig::send(&mut a, &packet);
            b.receive.receive(&mut frames, 64);
        }
        assert!(frames.len() >= 200, "{} held", frames.len());
        for frame in frames.drain(..) {
            assert_eq!(b.receive.bytes(frame)[frame.range()], packet);
            b.receive.release(frame);
            b.receive.release(frame);
        }
        while b.receive.receive(&mut frames, 64) > 0 {
            frames.drain(..).for_each(|frame| b.receive.release(frame));
        }
    }
    whole_again((a, b, device));
}

fn whole_again((mut a, mut b, _device): Pair) {
    rig::send(&mut a, &rig::datagram(b"still there"));
    assert_eq!(rig::arrivals(&mut b, 1).pop().expect("a frame").1, rig::datagram(b"still there"));
}

fn flood((mut a, mut b, device): Pair) {
    let packet = rig::datagram(&[2; 18]);
    for _ in 0..200 {
        (0..100).for_each(|_| a.transmit.send(&packet, [&[], &[]], Offload::NONE));
        a.transmit.flush();
    }
    let mut frames = Vec::new();
    while b.receive.receive(&mut frames, 64) > 0 {
        frames.drain(..).for_each(|frame| b.receive.release(frame));
    }
    let (sent, got) = (a.transmit.transmitted(), b.receive.received());
    assert_eq!(sent.frames + sent.dropped(), 20_000);
    assert!(got.frames >= 200);
    assert!(got.frames <= sent.frames);
    whole_again((a, b, device));
}

/// What was sent in one call is several datagrams to whoever receives it.
fn datagrams_apart((mut a, mut b, device): Pair) {
    let payload: Vec<u8> = (0..250u8).cycle().take(2500).collect();
    let (packet, mut offload) = rig::unsummed_datagram(&payload);
    offload.segment = Segment::Udp(1000);
    offload.header_len = PAYLOAD as u16;
    rig::send(&mut a, &rig::datagram(b"before"));
    a.transmit.send(&packet, [&[], &[]], offload);
    rig::send(&mut a, &rig::datagram(b"after"));
    let arrived: Vec<_> =
        rig::arrivals(&mut b, 5).into_iter().map(|(_, bytes)| bytes[PAYLOAD..].to_vec()).collect();
    let expected: [&[u8]; 5] =
        [b"before", &payload[..1000], &payload[1000..2000], &payload[2000..], b"after"];
    assert_eq!(arrived, expected);
    // They are handed out one at a time to whoever asks for that.
    a.transmit.send(&packet, [&[], &[]], offload);
    assert!(readable(b.receive.fd(), Duration::from_secs(2)).unwrap());
    let mut frames = Vec::new();
    assert_eq!([(); 4].map(|()| b.receive.receive(&mut frames, 1)), [1, 1, 1, 0]);
    for frame in frames.drain(..) {
        assert!(checksum_holds(frame.checksum, &b.receive.bytes(frame)[frame.range()], 6));
        b.receive.release(frame);
    }
    whole_again((a, b, device));
}

/// More datagrams than there are buffers for come at once, each packet as many as can be: all arrive, in order, while the
/// receiver has all buffers for a while, too.
fn many_datagrams_apart((mut a, mut b, device): Pair) {
    const PACKETS: usize = 40;
    const EACH: usize = 60;
    let payload = |packet: usize| -> Vec<u8> {
        (0..EACH).flat_map(|at| [[packet as u8, at as u8]; 500].concat()).collect()
    };
    for number in 0..PACKETS {
        let (packet, mut offload) = rig::unsummed_datagram(&payload(number));
        offload.segment = Segment::Udp(1000);
        offload.header_len = PAYLOAD as u16;
        a.transmit.send(&packet, [&[], &[]], offload);
        rig::send(&mut a, &rig::datagram(&[number as u8; 2]));
    }
    let (mut frames, mut arrived) = (Vec::new(), Vec::new());
    assert!(readable(b.receive.fd(), Duration::from_secs(2)).unwrap());
    // Who holds frames comes again when it has released them, and only then more can have come.
    while b.receive.receive(&mut frames, 64) > 0 {
        while b.receive.receive(&mut frames, 64) > 0 {}
        for frame in frames.drain(..) {
            arrived.push(b.receive.bytes(frame)[frame.range()][PAYLOAD..].to_vec());
            b.receive.release(frame);
        }
    }
    let expected = (0..PACKETS).flat_map(|number| {
        let datagrams = payload(number).chunks(1000).map(<[u8]>::to_vec).collect::<Vec<_>>();
        datagrams.into_iter().chain([vec![number as u8; 2]])
    });
    assert_eq!(arrived.len(), PACKETS * (EACH + 1), "{:?}", b.receive.received());
    assert!(arrived.into_iter().eq(expected), "in order");
    assert_eq!(b.receive.received().no_buffer, 0);
    whole_again((a, b, device));
}

/// Of the devices that can know: a tap's losses are counted by Linux.
fn loss_is_counted((mut a, mut b, _device): Pair) {
    let packet = rig::datagram(&[3; 1000]);
    for _ in 0..20_000 {
        rig::send(&mut a, &packet);
    }
    let arrived = rig::arrivals(&mut b, usize::MAX).len() as u64;
    let (sent, got) = (a.transmit.transmitted(), b.receive.received());
    assert!(arrived < 20_000, "the flood was meant to be too much");
    assert_eq!(arrived + sent.dropped() + got.ring_full + got.no_buffer, 20_000, "{sent:?} {got:?}");
}

fn nonsense((mut a, b, device): Pair) {
    let offload = Offload { segment: Segment::Tcp4(1400), header_len: 9_000, ..Offload::checksum(8_000, 16) };
    a.transmit.send(&rig::datagram(b"a lie"), [&[], &[]], offload);
    a.transmit.send(&vec![0; 70_000], [&[], &[]], Offload::NONE);
    a.transmit.flush();
    let sent = a.transmit.transmitted();
    assert_eq!((sent.frames, sent.dropped()), (0, 2), "{sent:?}");
    whole_again((a, b, device));
}

#[test]
fn a_tap_whose_interface_is_gone_does_not_keep_anybody_awake() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_namespace(|| {
        let (_, mut ours, _) = tap_pair();
        rig::ip("link del tap0");
        let mut frames = Vec::new();
        assert_eq!(ours.receive.receive(&mut frames, 64), 0);
        assert!(!readable(ours.receive.fd(), Duration::ZERO).unwrap());
        assert_eq!(ours.receive.receive(&mut frames, 64), 0);
        ours.transmit.send(&rig::datagram(b"to nobody"), [&[], &[]], Offload::NONE);
        let transmitted = ours.transmit.transmitted();
        assert_eq!((transmitted.down, transmitted.dropped()), (1, 1));
    });
}

#[test]
fn what_a_tap_that_is_down_does_not_take_is_counted_so() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_namespace(|| {
        let (_, mut ours, _) = tap_pair();
        rig::ip("link set tap0 down");
        ours.transmit.send(&rig::datagram(b"to nobody"), [&[], &[]], Offload::NONE);
        let transmitted = ours.transmit.transmitted();
        assert_eq!((transmitted.down, transmitted.dropped()), (1, 1));
    });
}
