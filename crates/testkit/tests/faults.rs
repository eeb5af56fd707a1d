//! Devices with faults from outside: what arrives is what the emulator says, who sleeps is woken, and
//! no ticket is lost, neither the device's nor the wrapper's.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use silk_device::{End, Frame, HEADROOM, Offload, Receive, Received, link, readable, several};
use silk_instant::Instant;
use silk_testkit::emulator::{Conditions, Counts, Link, Loss};
use silk_testkit::faults::{Faulty, Line};

/// Longer than any test takes; nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which tickets of a device are out.
type Out = Arc<Mutex<BTreeSet<u32>>>;

/// A device that insists that each ticket is given back once.
struct Ledger(Box<dyn Receive>, Out);

impl Receive for Ledger {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }

    fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let count = self.0.receive(frames, limit);
        let given = &frames[frames.len() - count..];
        assert!(given.iter().all(|frame| self.1.lock().unwrap().insert(frame.index)));
        count
    }

    fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        self.0.bytes(frame)
    }

    fn release(&mut self, frame: Frame) {
        assert!(self.1.lock().unwrap().remove(&frame.index), "{frame:?} is not out");
        self.0.release(frame);
    }

    fn received(&mut self) -> Received {
        self.0.received()
    }
}

/// A sender, and a receiver on a bad line.
struct Rig {
    sender: End,
    receiver: Box<dyn Receive>,
    line: Line,
    out: Out,
}

impl Rig {
    fn new(conditions: &Conditions, seed: u64) -> Self {
        Self::with(conditions, seed, |faulty| faulty)
    }

    fn with(conditions: &Conditions, seed: u64, change: impl FnOnce(Faulty) -> Faulty) -> Self {
        let (sender, End { receive, .. }) =
            link::pair(&link::Options { queue: 8192, ..link::Options::default() }).unwrap();
        let out = Out::default();
        let faulty = Faulty::new(Box::new(Ledger(receive, out.clone())), conditions, seed).unwrap();
        let line = faulty.line();
        Self { sender, receiver: change(faulty).boxed(), line, out }
    }

    fn send(&mut self, packet: &[u8]) {
        self.sender.transmit.send(packet, [&[], &[]], Offload::NONE);
        self.sender.transmit.flush();
    }

    /// What the receiver is given now, a few frames at a time; it keeps them for as long.
    fn arrivals(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while self.receiver.receive(&mut frames, 3) > 0 {}
        let taken = frames.iter().map(|frame| {
            assert!(frame.offset as usize >= HEADROOM);
            self.receiver.bytes(*frame)[frame.range()].to_vec()
        });
        let taken = taken.collect();
        for frame in frames {
            self.receiver.release(frame);
            assert!(self.receiver.bytes(frame).is_empty());
        }
        taken
    }

    fn assert_that_nothing_is_left(&self) {
        assert!(self.out.lock().unwrap().is_empty(), "the device's buffers are its own again");
        assert_eq!((self.line.under_way(), self.line.next_event()), (0, None));
        assert!(!readable(self.receiver.fd(), Duration::ZERO).unwrap());
    }
}

/// Packets, each so long after the one before, in microseconds, and with so many bytes.
type Packets = Vec<(u64, usize)>;

/// What arrived, when, and what became of all.
type Outcome = (Vec<(Instant, Vec<u8>)>, Counts);

/// A packet of `len` bytes that says which it is.
fn packet(number: usize, len: usize) -> Vec<u8> {
    let mut packet = vec![number as u8; len];
    packet[..2].copy_from_slice(&(number as u16).to_be_bytes());
    packet
}

/// The packets over a device with faults, in virtual time.
fn over_a_device(conditions: &Conditions, seed: u64, packets: &Packets) -> Outcome {
    let clock = Arc::new(AtomicU64::new(0));
    let time = clock.clone();
    let now = move || Instant::from_nanos(time.load(Ordering::Relaxed));
    let mut rig = Rig::with(conditions, seed, |faulty| faulty.by_clock(now));
    let (mut arrived, mut sent) = (Vec::new(), Instant::ZERO);
    let run_until = |rig: &mut Rig, arrived: &mut Vec<_>, end: Instant| {
        while let Some(event) = rig.line.next_event().filter(|event| *event <= end) {
            clock.store(event.nanos(), Ordering::Relaxed);
            arrived.extend(rig.arrivals().into_iter().map(|packet| (event, packet)));
        }
    };
    for (number, (gap, len)) in packets.iter().enumerate() {
        sent += Duration::from_micros(*gap);
        run_until(&mut rig, &mut arrived, sent);
        clock.store(sent.nanos(), Ordering::Relaxed);
        rig.send(&packet(number, *len));
        assert!(readable(rig.receiver.fd(), Duration::ZERO).unwrap());
        arrived.extend(rig.arrivals().into_iter().map(|packet| (sent, packet)));
        run_until(&mut rig, &mut arrived, sent);
    }
    run_until(&mut rig, &mut arrived, Instant::FAR);
    rig.assert_that_nothing_is_left();
    let counts = rig.line.counts();
    let received = rig.receiver.received();
    let bytes = arrived.iter().map(|(_, packet)| packet.len() as u64).sum();
    assert_eq!(received, Received { frames: counts.arrived, bytes, ..Received::default() });
    (arrived, counts)
}

/// The same packets through the emulator alone.
fn through_the_emulator(conditions: &Conditions, seed: u64, packets: &Packets) -> Outcome {
    let mut link = Link::new(conditions, seed);
    let (mut arrived, mut sent) = (Vec::new(), Instant::ZERO);
    let mut run_until = |link: &mut Link, end: Instant| {
        while let Some(event) = link.next_event().filter(|event| *event <= end) {
            arrived.extend(std::iter::from_fn(|| link.arrive(event)).map(|packet| (event, packet)));
        }
    };
    for (number, (gap, len)) in packets.iter().enumerate() {
        sent += Duration::from_micros(*gap);
        run_until(&mut link, sent);
        link.send(sent, packet(number, *len));
        run_until(&mut link, sent);
    }
    run_until(&mut link, Instant::FAR);
    (arrived, link.counts())
}

fn chance() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..1.0]
}

prop_compose! {
    fn conditions()(
        (duplicate, corrupt, reorder, loss) in (chance(), chance(), chance(), chance()),
        (rate, queue, longest) in (0u64..20_000_000, 0usize..100, 0u64..3_000),
        (delay, jitter, reorder_by) in (0u64..50, 0u64..20, 0u64..20),
    ) -> Conditions {
        Conditions {
            longest: NonZeroU64::new(longest),
            duplicate,
            queue,
            rate: NonZeroU64::new(rate),
            loss: Loss::random(loss),
            corrupt,
            delay: Duration::from_millis(delay),
            jitter: Duration::from_millis(jitter),
            reorder,
            reorder_by: Duration::from_millis(reorder_by),
            ..Conditions::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Each frame, each bit of it, and the moment at which it comes: all as the emulator says. And every
    /// ticket comes back, and nothing is left.
    #[test]
    fn what_arrives_is_exactly_what_the_emulator_says(
        conditions in conditions(), seed: u64, packets in prop::collection::vec((0u64..3_000, 2usize..1_500), 0..200),
    ) {
        prop_assert_eq!(
            over_a_device(&conditions, seed, &packets),
            through_the_emulator(&conditions, seed, &packets)
        );
    }
}

/// Frames that come one after another, some of them late, twice, or never.
fn rough() -> Conditions {
    Conditions {
        loss: Loss::random(0.3),
        duplicate: 0.2,
        delay: Duration::from_millis(2),
        jitter: Duration::from_millis(2),
        reorder: 0.3,
        reorder_by: Duration::from_millis(5),
        ..Conditions::default()
    }
}

#[test]
fn who_sleeps_is_woken_for_each_frame_whose_way_is_over() {
    let mut rig = Rig::new(&rough(), 7);
    let mut arrived = 0;
    (0..100).for_each(|number| rig.send(&packet(number, 60)));
    loop {
        arrived += rig.arrivals().len() as u64;
        if rig.line.under_way() == 0 {
            break;
        }
        assert!(readable(rig.receiver.fd(), PATIENCE).unwrap(), "it slept on");
    }
    let counts = rig.line.counts();
    assert_eq!((counts.sent, counts.arrived), (100, arrived));
    assert!(counts.lost > 0 && counts.duplicated > 0 && counts.held_back > 0, "{counts}");
    rig.assert_that_nothing_is_left();
}

#[test]
fn who_sleeps_on_several_devices_is_woken_too() {
    let Rig { mut sender, receiver, line, .. } = Rig::new(&rough(), 7);
    let (_quiet, other) = link::pair(&link::Options::default()).unwrap();
    let mut both = several(vec![other.receive, receiver]).unwrap();
    (0..100).for_each(|number| sender.transmit.send(&packet(number, 60), [&[], &[]], Offload::NONE));
    sender.transmit.flush();
    let mut frames = Vec::new();
    while line.counts().sent == 0 || line.under_way() > 0 {
        assert!(readable(both.fd(), PATIENCE).unwrap(), "it slept on");
        both.receive(&mut frames, 64);
    }
    assert_eq!(frames.len() as u64, line.counts().arrived);
    assert!(frames.iter().all(|frame| frame.device == 1 && both.bytes(*frame)[frame.range()].len() == 60));
}

/// As the daemon does, who reads on until there was less than it had asked for.
#[test]
fn who_watches_for_edges_misses_nothing() {
    // Where all are lost nothing is ever due: what has come to the device is all there is to wake by.
    for conditions in [rough(), Conditions { loss: Loss::random(1.0), ..rough() }] {
        read_by_edges(&conditions);
    }
}

fn read_by_edges(conditions: &Conditions) {
    let mut rig = Rig::new(conditions, 7);
    let edges = epoll::create(CreateFlags::CLOEXEC).unwrap();
    for fd in rig.receiver.fds() {
        epoll::add(&edges, fd, EventData::new_u64(0), EventFlags::IN | EventFlags::ET).unwrap();
    }
    (0..5_000).for_each(|number| rig.send(&packet(number, 60)));
    let (mut frames, mut arrived) = (Vec::new(), 0);
    while rig.line.counts().sent < 5_000 || rig.line.under_way() > 0 {
        assert_ne!(wait(&edges), 0, "it slept on");
        while rig.receiver.receive(&mut frames, 64) == 64 {
            arrived += give_back(&mut rig, &mut frames);
        }
        arrived += give_back(&mut rig, &mut frames);
    }
    assert_eq!(rig.line.counts().arrived, arrived);
    rig.assert_that_nothing_is_left();
}

/// How many descriptors have news.
fn wait(edges: impl std::os::fd::AsFd) -> usize {
    let mut ready = [const { std::mem::MaybeUninit::uninit() }; 4];
    let patience = PATIENCE.try_into().unwrap();
    epoll::wait(edges, &mut ready, Some(&patience)).unwrap().0.len()
}

fn give_back(rig: &mut Rig, frames: &mut Vec<Frame>) -> u64 {
    let count = frames.len() as u64;
    frames.drain(..).for_each(|frame| rig.receiver.release(frame));
    count
}

#[test]
fn what_there_was_no_time_for_keeps_it_readable() {
    let mut rig = Rig::new(&Conditions { duplicate: 1.0, ..Conditions::default() }, 1);
    rig.send(&packet(1, 60));
    let mut frames = Vec::new();
    assert_eq!(rig.receiver.receive(&mut frames, 1), 1);
    assert!(readable(rig.receiver.fd(), PATIENCE).unwrap(), "the copy is there");
    assert_eq!(rig.receiver.receive(&mut frames, 0), 0);
    assert!(readable(rig.receiver.fd(), PATIENCE).unwrap(), "it still is");
    assert_eq!((rig.receiver.receive(&mut frames, 2), frames.len()), (1, 2));
    give_back(&mut rig, &mut frames);
    rig.assert_that_nothing_is_left();
}

#[test]
fn a_frame_that_is_held_is_not_changed_by_those_that_come() {
    let mut rig = Rig::new(&Conditions::default(), 1);
    let mut frames = Vec::new();
    for number in 0..2_000 {
        rig.send(&packet(number, 60));
        rig.receiver.receive(&mut frames, 8);
    }
    // More than there are buffers for.
    let received = rig.receiver.received();
    assert_eq!((received.frames + received.no_buffer, frames.len()), (2_000, 1_024));
    for (number, frame) in frames.iter().enumerate() {
        assert_eq!(rig.receiver.bytes(*frame)[frame.range()], packet(number, 60));
    }
    give_back(&mut rig, &mut frames);
    rig.assert_that_nothing_is_left();
}
