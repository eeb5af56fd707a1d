//! Sequence arithmetic, proven (RFC 9293 §3.4). Two steps: what an operation answers depends on the difference of its
//! numbers alone, so that one of them may be any; and with that, every one of the 2³² differences is compared with plain
//! arithmetic that does not wrap.

use super::*;
use core::ops::Range;
use proptest::prelude::*;
use std::hint::black_box;
use std::thread;

const CIRCLE: u64 = 1 << 32;
/// Half of the circle: the one distance at which two numbers have no order.
const HALF: u64 = 1 << 31;
/// The largest window that there is (RFC 7323 §2.3).
const WINDOW: u32 = 65_535 << 14;

const fn seq(raw: u64) -> SeqNumber {
    SeqNumber::new(raw as u32)
}

/// How far `a` lies behind `b`, by the definition of the remainder.
const fn distance(a: u64, b: u64) -> u64 {
    (a + CIRCLE - b) % CIRCLE
}

/// The same with a sign: -2³¹ to 2³¹ - 1.
const fn signed(distance: u64) -> i64 {
    if distance < HALF { distance as i64 } else { distance as i64 - CIRCLE as i64 }
}

fn in_window(number: SeqNumber, nxt: SeqNumber, window: u32) -> bool {
    number.at_or_after(nxt) && number.before(nxt + window)
}

/// Whether every operation answers for numbers that are `distance` apart what the model does.
fn holds(a: SeqNumber, b: SeqNumber, distance: u64) -> bool {
    let model = signed(distance);
    // Both come before the other where they are half of the circle apart.
    let (before, after) = (model < 0, model > 0 || distance == HALF);
    let (max, min) = if before { (b, a) } else { (a, b) };
    [a.before(b), a.after(b), a.at_or_before(b), a.at_or_after(b)] == [before, after, !after, !before]
        && (a.max(b), a.min(b)) == (max, min)
        && i64::from(a.since(b)) == model.max(0)
        && u64::from(a - b) == distance
        && in_window(a, b, WINDOW) == (distance < u64::from(WINDOW))
}

/// The same for each of these differences, in a form that takes about a nanosecond: what is to be answered does not
/// change among them, and the loop has neither a branch nor a call. The compiler knows neither number.
fn all_hold<const BEFORE: bool, const AFTER: bool, const WITHIN: bool>(differences: Range<u64>) {
    let b = black_box(seq(0x9abc_def0));
    let (mut a, mut difference) = (black_box(b + differences.start as u32), differences.start);
    let mut right = true;
    while difference < differences.end {
        let (max, min) = if BEFORE { (b, a) } else { (a, b) };
        right &= (a.before(b) == BEFORE)
            & (a.after(b) == AFTER)
            & (a.at_or_before(b) != AFTER)
            & (a.at_or_after(b) != BEFORE)
            & (a.max(b).raw() == max.raw())
            & (a.min(b).raw() == min.raw())
            & (a.since(b) == if BEFORE { 0 } else { difference as u32 })
            & (a - b == difference as u32)
            & ((a.at_or_after(b) & a.before(b + WINDOW)) == WITHIN);
        (a, difference) = (a + 1, difference + 1);
    }
    assert!(right, "one of {differences:?}");
}

/// All 2³² of them, on two threads: at no distance, after it within a window, after it beyond, half of the circle apart,
/// and before it.
#[test]
#[cfg_attr(miri, ignore = "thousands of millions of steps")]
fn every_difference_is_ordered_as_plain_numbers_are() {
    const EDGE: u64 = WINDOW as u64;
    thread::scope(|scope| {
        scope.spawn(|| {
            all_hold::<false, false, true>(0..1);
            all_hold::<false, true, true>(1..EDGE);
            all_hold::<false, true, false>(EDGE..HALF);
        });
        all_hold::<true, true, false>(HALF..HALF + 1);
        all_hold::<true, false, false>(HALF + 1..CIRCLE);
    });
}

/// What is expected of the stretches is what the model says at their ends, between which it does not change.
#[test]
fn the_stretches_are_those_of_the_model() {
    for edge in [0, u64::from(WINDOW), HALF, CIRCLE - 3] {
        for difference in edge.saturating_sub(2)..edge + 3 {
            assert!(holds(seq(7 + difference), seq(7), difference), "{difference}");
        }
    }
}

/// Then each is before the other and after it, and neither is at the other: whoever asks in one way gets the same
/// answer whichever he asks about.
#[test]
fn half_of_the_circle_apart_each_comes_before_the_other() {
    for a in [0, 1, HALF - 1, HALF, HALF + 1, CIRCLE - 1].map(seq) {
        let b = a + HALF as u32;
        for (a, b) in [(a, b), (b, a)] {
            assert!(a.before(b) && a.after(b) && !a.at_or_before(b) && !a.at_or_after(b));
            assert_eq!((a.max(b), a.min(b), a.since(b)), (b, a, 0));
        }
    }
}

/// What the operations answer, with numbers in place of places on the circle.
fn answers(a: SeqNumber, b: SeqNumber, window: u32) -> ([bool; 7], [u32; 2]) {
    let order = [a.before(b), a.after(b), a.at_or_before(b), a.at_or_after(b)];
    let [before, after, at_or_before, at_or_after] = order;
    let chosen = [a.max(b) == a, a.min(b) == a, in_window(a, b, window)];
    let [max, min, within] = chosen;
    ([before, after, at_or_before, at_or_after, max, min, within], [a.since(b), a - b])
}

proptest! {
    /// Turning the circle changes no answer: `(a + k) - (b + k)` is `a - b` in arithmetic modulo 2³², and the operations
    /// look at nothing else.
    #[test]
    fn only_the_difference_counts(a: u32, b: u32, k: u32, window in 0..=WINDOW) {
        let (a, b) = (SeqNumber::new(a), SeqNumber::new(b));
        prop_assert_eq!(answers(a + k, b + k, window), answers(a, b, window));
        prop_assert_eq!(answers(a - k, b - k, window), answers(a, b, window));
        prop_assert_eq!((a + k).max(b + k), a.max(b) + k);
        prop_assert_eq!((a + k).min(b + k), a.min(b) + k);
    }

    /// The same without turning: the model knows where both lie, and its remainder is no wrapping one.
    #[test]
    fn any_two_numbers_are_as_the_model_has_them(a: u32, b: u32, window in 0..=WINDOW) {
        let apart = distance(a.into(), b.into());
        prop_assert!(holds(SeqNumber::new(a), SeqNumber::new(b), apart));
        let within = in_window(SeqNumber::new(a), SeqNumber::new(b), window);
        prop_assert_eq!(within, apart < u64::from(window));
        prop_assert_eq!(u64::from((SeqNumber::new(a) + b).raw()), (u64::from(a) + u64::from(b)) % CIRCLE);
        prop_assert_eq!(u64::from((SeqNumber::new(a) - b).raw()), apart);
    }
}
