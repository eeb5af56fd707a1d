//! Tests of the record of what is outstanding.

use super::*;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

const MSS: u32 = 1_000;

const fn seq(raw: u32) -> SeqNumber {
    SeqNumber::new(raw)
}

const fn out(una: u32, nxt: u32) -> Outstanding {
    Outstanding { una: seq(una), nxt: seq(nxt), mss: MSS }
}

const fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Segments of 1000 octets from 0, the n-th sent at n ms.
fn flight(segments: u32) -> Flight {
    let mut flight = Flight::new(seq(0));
    (0..segments).for_each(|n| flight.sent(at(n.into()), seq(MSS * (n + 1))));
    flight
}

/// Takes a block and answers what arrived by it, as (end, milliseconds).
fn hold(flight: &mut Flight, start: u32, end: u32, out: Outstanding) -> Vec<(u32, u64)> {
    let mut arrived = vec![];
    let news = flight.hold((seq(start), seq(end)), out, |sending| {
        arrived.push((sending.end.raw(), sending.at.millis()));
    });
    assert_eq!(news, !arrived.is_empty());
    arrived
}

fn first_lost(flight: &Flight, una: u32) -> Option<(u32, u32)> {
    flight.first_lost(seq(una)).map(|(start, end)| (start.raw(), end.raw()))
}

#[test]
fn what_leaves_together_is_one_stretch() {
    let mut flight = flight(3);
    flight.sent(at(2), seq(7_000));
    assert_eq!(flight.stretches.len(), 3);
    flight.advance(seq(0), seq(7_000), |_| {});
    assert_eq!(flight.stretches.len(), 0);
}

#[test]
fn an_acknowledgement_tells_what_arrived_and_when_it_was_sent() {
    let mut flight = flight(4);
    let mut arrived = vec![];
    flight.advance(seq(0), seq(2_500), |sending| arrived.push((sending.end.raw(), sending.at.millis())));
    assert_eq!(arrived, [(1_000, 0), (2_000, 1), (2_500, 2)]);
    assert_eq!(flight.oldest(), Some(at(2)));
}

#[test]
fn a_block_is_news_once_and_joins_its_neighbours() {
    let (mut flight, out) = (flight(6), out(0, 6_000));
    assert_eq!(hold(&mut flight, 1_000, 2_000, out), [(2_000, 1)]);
    assert_eq!(hold(&mut flight, 1_000, 2_000, out), []);
    assert_eq!(hold(&mut flight, 3_500, 4_000, out), [(4_000, 3)]);
    assert_eq!(hold(&mut flight, 1_500, 4_000, out), [(3_000, 2), (3_500, 3)]);
    assert_eq!((flight.held(), flight.stretches.len()), (3_000, 4));
}

#[test]
fn only_outstanding_octets_are_believed() {
    let (mut flight, out) = (flight(10), out(0, 10_000));
    for (start, end) in [(0, 5), (500, 400), (7, 7), (9_000, 10_001), (20_000, 30_000), (u32::MAX, 3)] {
        assert_eq!(hold(&mut flight, start, end, out), []);
    }
    let nothing = Outstanding { una: seq(1_001), nxt: seq(1_001), mss: MSS };
    let mut empty = Flight::new(seq(1_001));
    assert!(!empty.hold((seq(208_284_740), seq(2_147_484_650)), nothing, |_| {}));
}

#[test]
fn an_acknowledgement_at_the_start_of_what_is_held_is_reneging() {
    let (mut flight, out) = (flight(6), out(0, 6_000));
    hold(&mut flight, 1_000, 2_000, out);
    hold(&mut flight, 3_000, 4_000, out);
    flight.advance(seq(0), seq(2_000), |_| {});
    assert_eq!(flight.held(), 1_000);
    flight.advance(seq(2_000), seq(3_000), |_| {});
    assert_eq!(flight.held(), 0);
}

#[test]
fn what_is_lost_is_found_from_the_first_and_sent_again_in_parts() {
    let (mut flight, out) = (flight(6), out(0, 6_000));
    hold(&mut flight, 2_000, 3_000, out);
    flight.judge(seq(0), |sending| if sending.end == seq(6_000) { Judgement::Stop } else { Judgement::Lose });
    assert_eq!((flight.lost(), first_lost(&flight, 0)), (4_000, Some((0, 2_000))));
    flight.sent_again(at(10), seq(0), seq(1_500), seq(0));
    assert_eq!((flight.lost(), first_lost(&flight, 0)), (2_500, Some((1_500, 2_000))));
    flight.sent_again(at(10), seq(1_500), seq(2_000), seq(0));
    assert_eq!((flight.lost(), first_lost(&flight, 0)), (2_000, Some((3_000, 5_000))));
    // Both parts left together: the repair, what is held, two lost, one under way.
    assert_eq!(flight.stretches.len(), 5);
    flight.advance(seq(0), seq(4_000), |_| {});
    assert_eq!((flight.lost(), first_lost(&flight, 4_000)), (1_000, Some((4_000, 5_000))));
}

#[test]
fn the_first_segment_can_be_lost_alone() {
    let mut flight = Flight::new(seq(0));
    flight.sent(at(0), seq(5_000));
    flight.lose_first(out(0, 5_000));
    assert_eq!((flight.lost(), first_lost(&flight, 0)), (1_000, Some((0, 1_000))));
}

#[test]
fn three_ranges_or_more_than_two_segments_are_enough() {
    let enough = |blocks: &[(u32, u32)]| {
        let mut flight = flight(10);
        for (start, end) in blocks {
            hold(&mut flight, *start, *end, out(0, 10_000));
        }
        flight.holds_dup_thresh(MSS)
    };
    assert!(!enough(&[(100, 200), (300, 400)]) && enough(&[(100, 200), (300, 400), (500, 600)]));
    assert!(!enough(&[(1_000, 3_000)]) && enough(&[(1_000, 3_001)]));
}

#[test]
fn the_number_of_stretches_is_bounded_whatever_is_sent_and_said() {
    let mut flight = flight(10_000);
    assert!((MOST_SENT / 4..=MOST_SENT).contains(&flight.stretches.len()));
    let out = out(0, 10_000_000);
    for n in 1..10_000 {
        flight.hold((seq(n * 900), seq(n * 900 + 1)), out, |_| {});
    }
    assert_eq!(flight.stretches.len(), MOST);
    flight.judge(seq(0), |_| Judgement::Lose);
    let mut time = 20_000;
    while let Some((start, end)) = flight.first_lost(seq(0)) {
        time += 1;
        flight.sent_again(at(time), start, (start + MSS).min(end), seq(0));
        assert!(flight.stretches.len() <= 2 * MOST);
    }
    flight.advance(seq(0), seq(10_000_000), |_| {});
    assert_eq!((flight.held(), flight.lost(), flight.memory()), (0, 0, 0));
}

#[test]
fn nothing_of_a_large_flight_counts_as_sent_later_than_it_was_or_much_earlier() {
    let segments = 20_000;
    let mut flight = flight(segments);
    let out = out(0, segments * MSS);
    for n in (1..segments).step_by(77) {
        let arrived = hold(&mut flight, n * MSS, (n + 1) * MSS, out);
        let [(end, sent)] = arrived[..] else { panic!("{arrived:?}") };
        assert_eq!(end, (n + 1) * MSS);
        assert!(sent <= n.into() && u64::from(n) - sent < 64, "segment {n} counts as sent at {sent}");
    }
}

#[test]
fn a_large_flight_of_which_every_second_segment_is_lost_is_known_segment_by_segment() {
    let (mut flight, out) = (flight(3_000), out(0, 3_000_000));
    for n in (1..3_000).step_by(2) {
        flight.hold((seq(n * MSS), seq((n + 1) * MSS)), out, |_| {});
    }
    assert_eq!(flight.held(), 1_500_000);
}

proptest! {
    /// Against an array of octets: the same counts and the same holes, whatever happens.
    #[test]
    fn it_agrees_with_an_array(
        steps in prop::collection::vec((0u8..6, 0u32..400, 0u32..60), 0..80),
    ) {
        let base = seq(u32::MAX - 100);
        let mut flight = Flight::new(base);
        let mut fates: Vec<Fate> = vec![];
        let mut una = 0;
        for (time, (step, from, len)) in steps.into_iter().enumerate() {
            let nxt = fates.len() as u32;
            let out = Outstanding { una: base + una, nxt: base + nxt, mss: 40 };
            let now = at(time as u64 / 2);
            let whole = (from.max(una), (from + len).min(nxt));
            match step {
                0 | 1 if len > 0 && nxt < 2_000 => {
                    fates.resize((nxt + len) as usize, Fate::Sent);
                    flight.sent(now, base + nxt + len);
                }
                2 => {
                    let news = flight.hold((base + from, base + from + len), out, |_| {});
                    let valid = from > una && len > 0 && from + len <= nxt;
                    let place = if valid { from as usize..(from + len) as usize } else { 0..0 };
                    prop_assert_eq!(news, fates[place.clone()].iter().any(|fate| *fate != Fate::Held));
                    fates[place].fill(Fate::Held);
                }
                3 if from > una && from <= nxt => {
                    flight.advance(base + una, base + from, |_| {});
                    una = from;
                    if fates.get(una as usize) == Some(&Fate::Held) {
                        let held = fates.iter_mut().filter(|fate| **fate == Fate::Held);
                        held.for_each(|fate| *fate = Fate::Sent);
                    }
                }
                4 => {
                    let limit = base + from;
                    let mut reached = una;
                    flight.judge(base + una, |sending| {
                        if sending.end.after(limit) {
                            return Judgement::Stop;
                        }
                        reached = sending.end - base;
                        Judgement::Lose
                    });
                    let place = &mut fates[una as usize..reached as usize];
                    let sent = place.iter_mut().filter(|fate| **fate == Fate::Sent);
                    sent.for_each(|fate| *fate = Fate::Lost);
                }
                5 if whole.0 < whole.1 => {
                    flight.sent_again(now, base + whole.0, base + whole.1, base + una);
                    fates[whole.0 as usize..whole.1 as usize].fill(Fate::Sent);
                }
                _ => {}
            }
            let rest = &fates[una as usize..];
            let count = |fate| rest.iter().filter(|one| **one == fate).count() as u32;
            prop_assert_eq!((flight.held(), flight.lost()), (count(Fate::Held), count(Fate::Lost)));
            let first = rest.iter().position(|fate| *fate == Fate::Lost).map(|at| at as u32 + una);
            let found = flight.first_lost(base + una).map(|hole| hole.0 - base);
            prop_assert_eq!(found, first);
            prop_assert_eq!(flight.stretches.back().map_or(base + una, |last| last.end), base + fates.len() as u32);
        }
    }
}
