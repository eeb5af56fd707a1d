//! The link emulator from outside: what holds under any conditions, and each condition alone.

use std::num::NonZeroU64;
use std::time::Duration;

use proptest::prelude::*;
use silk_instant::Instant;
use silk_testkit::emulator::{Conditions, Counts, Discipline, Link, Loss};

const MILLI: Duration = Duration::from_millis(1);

/// A packet of `len` bytes that says which it is.
fn packet(number: u16, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len.max(2)];
    packet[..2].copy_from_slice(&number.to_be_bytes());
    packet
}

fn number(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[0], packet[1]])
}

/// Sends packets of these sizes, each so many microseconds after the one before, and gives what
/// arrived, when, and what the link says became of them. It looks at the link only when the link
/// says so.
fn run(conditions: &Conditions, seed: u64, packets: &[(u64, usize)]) -> (Vec<(Instant, Vec<u8>)>, Counts) {
    let mut link = Link::new(conditions, seed);
    let mut arrived = Vec::new();
    let mut now = Instant::ZERO;
    let mut receive_until = |link: &mut Link, end: Instant| {
        while let Some(event) = link.next_event().filter(|event| *event <= end) {
            while let Some(packet) = link.arrive(event) {
                arrived.push((event, packet));
            }
        }
    };
    for (index, (gap, len)) in packets.iter().enumerate() {
        now += Duration::from_micros(*gap);
        receive_until(&mut link, now);
        link.send(now, packet(index as u16, *len));
        let c = link.counts();
        let gone = c.arrived + c.too_long + c.overflowed + c.managed + c.lost;
        assert_eq!(c.sent + c.duplicated, gone + link.under_way() as u64);
    }
    receive_until(&mut link, Instant::FAR);
    assert_eq!((link.next_event(), link.under_way()), (None, 0), "nothing is left under way");
    (arrived, link.counts())
}

/// The numbers of what arrived, one packet of 100 bytes having been sent each millisecond.
fn numbers(conditions: &Conditions, count: usize) -> (Vec<u16>, Counts) {
    let (arrived, counts) = run(conditions, 1, &vec![(1_000, 100); count]);
    (arrived.iter().map(|(_, packet)| number(packet)).collect(), counts)
}

fn rate(bits: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(bits)
}

#[test]
fn without_conditions_nothing_happens() {
    let (arrived, counts) = run(&Conditions::default(), 1, &[(1_000, 100); 20]);
    let expected = (0..20).map(|n| (Instant::from_millis(u64::from(n) + 1), packet(n, 100)));
    assert_eq!(arrived, expected.collect::<Vec<_>>());
    assert_eq!(counts, Counts { sent: 20, arrived: 20, ..Counts::default() });
}

#[test]
fn what_is_too_long_vanishes_for_as_long_as_the_way_is_narrow() {
    let mut link = Link::new(&Conditions { longest: NonZeroU64::new(100), ..Conditions::default() }, 1);
    for len in [100, 101] {
        link.send(Instant::ZERO, packet(1, len));
    }
    assert_eq!((link.arrive(Instant::ZERO).map(|packet| packet.len()), link.under_way()), (Some(100), 0));
    link.set_longest(None);
    link.send(Instant::ZERO, packet(2, 101));
    assert_eq!(link.arrive(Instant::ZERO).map(|packet| packet.len()), Some(101));
    assert_eq!(link.counts(), Counts { sent: 3, arrived: 2, too_long: 1, ..Counts::default() });
}

#[test]
fn a_rate_spaces_packets_and_a_full_queue_loses_them() {
    // 100 bytes at 400 kb/s take two milliseconds; four come at once, and two may wait.
    let conditions = Conditions { rate: rate(400_000), queue: 2, ..Conditions::default() };
    let (arrived, counts) = run(&conditions, 1, &[(0, 100); 4]);
    let expected = [2, 4, 6].map(Instant::from_millis).into_iter().zip((0..3).map(|n| packet(n, 100)));
    assert_eq!(arrived, expected.collect::<Vec<_>>());
    assert_eq!(counts, Counts { sent: 4, arrived: 3, overflowed: 1, ..Counts::default() });
}

#[test]
fn codel_shortens_a_queue_that_stands() {
    // Twice as much comes as can leave, for two seconds.
    let conditions = |discipline| Conditions { rate: rate(400_000), discipline, ..Conditions::default() };
    let packets = [(1_000, 100); 2_000];
    let (_, tail) = run(&conditions(Discipline::DropTail), 1, &packets);
    let (_, managed) = run(&conditions(Discipline::CoDel), 1, &packets);
    assert_eq!((tail.overflowed, tail.managed), (0, 0));
    assert_eq!((managed.overflowed, managed.managed), (0, 296));
}

#[test]
fn a_delay_is_kept_and_jitter_never_reorders() {
    let conditions = Conditions { delay: 10 * MILLI, jitter: 5 * MILLI, ..Conditions::default() };
    let (arrived, _) = run(&conditions, 1, &[(1_000, 100); 50]);
    let delays = arrived.iter().map(|(at, packet)| *at - Instant::from_millis(u64::from(number(packet)) + 1));
    let delays: Vec<Duration> = delays.collect();
    assert!(delays.iter().all(|delay| (10 * MILLI..=15 * MILLI).contains(delay)), "{delays:?}");
    assert!(delays.iter().max() > Some(&(13 * MILLI)), "{delays:?}");
    assert!(arrived.is_sorted_by_key(|(_, packet)| number(packet)));
}

#[test]
fn what_is_held_back_is_overtaken() {
    let conditions = Conditions { reorder: 0.2, reorder_by: 3 * MILLI, ..Conditions::default() };
    let (mut arrived, counts) = numbers(&conditions, 50);
    assert!(!arrived.is_sorted());
    assert!((5..=15).contains(&counts.held_back), "{counts}");
    arrived.sort_unstable();
    assert_eq!(arrived, (0..50).collect::<Vec<_>>());
}

#[test]
fn copies_come_beside_their_originals() {
    let (arrived, counts) = numbers(&Conditions { duplicate: 1.0, ..Conditions::default() }, 3);
    assert_eq!(arrived, [0, 0, 1, 1, 2, 2]);
    assert_eq!(counts, Counts { sent: 3, duplicated: 3, arrived: 6, ..Counts::default() });
}

#[test]
fn corruption_turns_one_bit() {
    let mut link = Link::new(&Conditions { corrupt: 1.0, ..Conditions::default() }, 1);
    link.send(Instant::ZERO, vec![0; 100]);
    link.send(Instant::ZERO, vec![]);
    let ones = |packet: Vec<u8>| packet.iter().map(|byte| byte.count_ones()).sum::<u32>();
    assert_eq!(link.arrive(Instant::ZERO).map(ones), Some(1));
    assert_eq!(link.arrive(Instant::ZERO), Some(vec![]));
    assert_eq!(link.counts().corrupted, 1);
}

#[test]
fn a_line_is_not_endless() {
    let mut link = Link::new(&Conditions { delay: Duration::from_secs(1), ..Conditions::default() }, 1);
    (0..100_010).for_each(|_| link.send(Instant::ZERO, vec![]));
    assert_eq!((link.under_way(), link.counts().overflowed), (100_000, 10));
}

fn chance() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..1.0]
}

prop_compose! {
    fn conditions()(
        (duplicate, corrupt, reorder) in (chance(), chance(), chance()),
        (share, length, bursts) in (chance(), 1.0..20.0, any::<bool>()),
        (rate, queue, codel) in (0u64..20_000_000, 0usize..100, any::<bool>()),
        (delay, jitter, reorder_by) in (0u64..50, 0u64..20, 0u64..20),
        longest in 0u64..3_000,
    ) -> Conditions {
        Conditions {
            longest: NonZeroU64::new(longest),
            duplicate,
            queue,
            discipline: if codel { Discipline::CoDel } else { Discipline::DropTail },
            rate: NonZeroU64::new(rate),
            loss: if bursts { Loss::bursts(share, length) } else { Loss::random(share) },
            corrupt,
            delay: Duration::from_millis(delay),
            jitter: Duration::from_millis(jitter),
            reorder,
            reorder_by: Duration::from_millis(reorder_by),
        }
    }
}

fn packets() -> impl Strategy<Value = Vec<(u64, usize)>> {
    prop::collection::vec((0u64..3_000, 2usize..1_500), 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every packet arrives or its fate is counted; nothing stays for ever. That holds at every
    /// moment (`run` looks after every packet), and at the end.
    #[test]
    fn packets_are_conserved(conditions in conditions(), seed: u64, packets in packets()) {
        let (arrived, c) = run(&conditions, seed, &packets);
        prop_assert_eq!(c.arrived, arrived.len() as u64);
        prop_assert_eq!(c.sent, packets.len() as u64);
        prop_assert_eq!(c.sent + c.duplicated, c.arrived + c.too_long + c.overflowed + c.managed + c.lost);
    }

    /// The same seed gives the same outcome.
    #[test]
    fn a_seed_repeats(conditions in conditions(), seed: u64, packets in packets()) {
        prop_assert_eq!(run(&conditions, seed, &packets), run(&conditions, seed, &packets));
    }

    /// Without reordering, packets arrive in the order in which they were sent, whatever else
    /// happens to them.
    #[test]
    fn order_is_kept(conditions in conditions(), seed: u64, packets in packets()) {
        let conditions = Conditions { reorder: 0.0, corrupt: 0.0, ..conditions };
        let (arrived, _) = run(&conditions, seed, &packets);
        prop_assert!(arrived.is_sorted_by_key(|(_, packet)| number(packet)));
    }

    /// Between any two arrivals not more arrives than the rate allows. (Jitter and reordering lie
    /// behind the transmitter and may bunch what it spaced.)
    #[test]
    fn the_rate_is_never_exceeded(
        conditions in conditions(), bits in 10_000u64..20_000_000, seed: u64, packets in packets(),
    ) {
        let (reorder, jitter) = (0.0, Duration::ZERO);
        let conditions = Conditions { reorder, jitter, rate: rate(bits), ..conditions };
        let (arrived, _) = run(&conditions, seed, &packets);
        for from in 0..arrived.len().min(20) {
            let mut sent = 0;
            for (at, packet) in &arrived[from + 1..] {
                sent += packet.len() as u128 * 8;
                prop_assert!(sent * 1_000_000_000 <= u128::from(bits) * (*at - arrived[from].0).as_nanos());
            }
        }
    }

    /// No packet is under way for less than the delay.
    #[test]
    fn nothing_arrives_early(conditions in conditions(), seed: u64, packets in packets()) {
        let conditions = Conditions { corrupt: 0.0, ..conditions };
        let mut sent = Instant::ZERO;
        let times: Vec<Instant> = packets.iter().map(|(gap, _)| {
            sent += Duration::from_micros(*gap);
            sent
        }).collect();
        for (at, packet) in run(&conditions, seed, &packets).0 {
            prop_assert!(at - times[usize::from(number(&packet))] >= conditions.delay);
        }
    }

    /// What waits never exceeds the queue, one more being in the transmitter's hands.
    #[test]
    fn the_queue_is_bounded(conditions in conditions(), seed: u64, count in 1usize..300) {
        let conditions = Conditions { rate: rate(1_000), duplicate: 0.0, ..conditions };
        let mut link = Link::new(&conditions, seed);
        for _ in 0..count {
            link.send(Instant::ZERO, vec![0; 1_000]);
            prop_assert!(link.under_way() <= conditions.queue.max(1) + 1);
        }
    }
}
