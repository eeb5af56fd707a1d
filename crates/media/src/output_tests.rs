//! Tests of the output queue.

use super::*;
use crate::Blank;
use alloc::vec::Vec;
use proptest::prelude::*;

fn blank(stamp: u32) -> Blank {
    Blank { stamp, size: (16, 16) }
}

fn output(every: u32, length: usize) -> Output {
    let rate = Rate::from_millis(100_000).unwrap();
    let (pace, stamps) = (Pace::Clock(rate), Stamps::Numbers);
    Output::new(OutputOptions { length, ahead: 1, pace, every, without_b: false, stamps })
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn ready(millis: u64) -> Trace {
    Trace { ready: at(millis), ..Trace::default() }
}

fn tick(output: &mut Output, millis: u64) -> Option<u32> {
    output.tick(at(millis), |_| {}).map(|picture| picture.stamp())
}

#[test]
fn pictures_are_shown_when_they_are_due() {
    let mut output = output(1, 8);
    (0..3).for_each(|n| assert!(output.push(Box::new(blank(n)), n, ready(0)).is_none()));
    assert_eq!(output.due(), Some(at(10)));
    assert_eq!(tick(&mut output, 9), None);
    assert_eq!((tick(&mut output, 10), tick(&mut output, 20)), (Some(0), Some(1)));
    assert_eq!((output.counts().shown, output.len()), (2, 1));
}

#[test]
fn pictures_are_shown_at_the_retraces_of_the_screen() {
    let mut output = output(1, 8);
    (0..3).for_each(|n| assert!(output.push(Box::new(blank(n)), n, ready(0)).is_none()));
    // At 3, 8, 13 ms and so on: the clock's first picture, due at 10 ms, is moved on to 10.5.
    output.set_retrace(Some(Retrace { at: at(103), period: Duration::from_millis(5) }));
    assert_eq!((output.due(), tick(&mut output, 12), tick(&mut output, 13)), (Some(at(13)), None, Some(0)));
    assert_eq!((output.due(), output.deadline(at(13))), (Some(at(23)), at(43)));
    // The screen's clock runs a little slower than ours: the same retrace, later.
    output.set_retrace(Some(Retrace { at: at(104), period: Duration::from_millis(5) }));
    assert_eq!((tick(&mut output, 23), tick(&mut output, 24)), (None, Some(1)));
    assert_eq!(output.counts().behind_most, 0);
    // One that is ready by its retrace is in time.
    output.push(Box::new(blank(3)), 3, ready(44));
    assert_eq!((tick(&mut output, 44), output.counts().missed), (Some(3), 1));
}

#[test]
fn the_earliest_picture_is_the_first_whose_retrace_is_still_to_come() {
    for period in [5, 17, 35] {
        let mut output = output(1, 8);
        assert!(output.push(Box::new(blank(0)), 0, ready(0)).is_none());
        output.set_retrace(Some(Retrace { at: at(103), period: Duration::from_millis(period) }));
        for millis in 0..100 {
            let now = at(millis);
            let earliest = output.earliest(now).unwrap();
            let past = |stamp| output.is_past(stamp, now);
            assert!(!past(earliest) && (earliest == 0 || past(earliest - 1)), "{period} and {millis}");
        }
    }
}

#[test]
fn a_stream_that_is_numbered_anew_shows_others_than_those_that_its_numbers_say() {
    let mut output = output(1, 8);
    (0..2).for_each(|n| assert!(output.push(Box::new(blank(n)), n, ready(0)).is_none()));
    output.begin_anew();
    output.push(Box::new(blank(0)), 0, ready(0));
    assert!(output.counts_by_number(), "all are shown");
    output.set_every(3);
    assert_eq!(
        ([0, 1, 2].map(|n| output.wants(n)), output.counts_by_number()),
        ([false, true, false], false)
    );
    output.set_every(2);
    assert!(output.counts_by_number());
}

#[test]
fn a_late_picture_is_counted_and_never_shown() {
    let mut output = output(1, 8);
    output.push(Box::new(blank(0)), 0, ready(0));
    assert_eq!(tick(&mut output, 10), Some(0));
    assert_eq!((tick(&mut output, 20), output.due()), (None, None));
    output.push(Box::new(blank(1)), 1, ready(21));
    output.push(Box::new(blank(2)), 2, ready(30));
    assert_eq!((output.counts().missed, output.len()), (1, 1));
    assert_eq!(tick(&mut output, 32), Some(2));
    let missed: Vec<_> = output.misses().iter().map(|missed| (missed.stamp, missed.due)).collect();
    assert_eq!(missed, [(1, at(20))]);
}

#[test]
fn of_several_that_are_due_the_latest_is_shown() {
    let mut output = output(1, 8);
    (0..3).for_each(|n| assert!(output.push(Box::new(blank(n)), n, ready(0)).is_none()));
    assert_eq!(tick(&mut output, 31), Some(2));
    assert_eq!((output.counts().shown, output.counts().missed), (1, 2));
    assert_eq!(output.counts().behind_most, 1_000_000);
}

#[test]
fn without_b_pictures_what_does_not_come_is_skipped_and_none_is_lost() {
    let mut output = output(1, 8);
    output.set_without_b(true);
    for n in [0, 3, 6] {
        output.push(Box::new(blank(n)), n, ready(0));
    }
    assert_eq!((output.counts().skipped, output.counts().lost, output.span()), (4, 0, 6));
}

#[test]
fn a_lost_picture_leaves_its_place_empty() {
    let mut output = output(1, 8);
    [0, 2].into_iter().for_each(|n| assert!(output.push(Box::new(blank(n)), n, ready(0)).is_none()));
    assert_eq!([10, 20, 30].map(|millis| tick(&mut output, millis)), [Some(0), None, Some(2)]);
    assert_eq!((output.counts().lost, output.counts().missed), (1, 0));
    output.push(Box::new(blank(1)), 1, ready(30));
    assert_eq!(output.counts().repeated, 1, "too late to be shown before the one after it");
}

#[test]
fn each_third_has_the_time_of_three() {
    let mut output = output(3, 8);
    (6..13).for_each(|n| assert!(output.push(Box::new(blank(n)), n, ready(0)).is_none()));
    assert_eq!((output.len(), output.counts().skipped, output.counts().lost), (3, 4, 0));
    assert_eq!([10, 20, 40, 70].map(|millis| tick(&mut output, millis)), [Some(6), None, Some(9), Some(12)]);
    assert!(output.wants(15) && !output.wants(16));
}

#[test]
fn a_stream_that_was_held_up_catches_up_with_its_clock() {
    let mut output = output(1, 8);
    output.push(Box::new(blank(0)), 0, ready(0));
    assert_eq!(tick(&mut output, 10), Some(0));
    // Nothing for half a second; then all of it at once.
    (1..51).for_each(|n| assert!(output.push(Box::new(blank(n)), n, ready(501)).is_none()));
    assert_eq!((output.counts().missed, output.len(), output.due()), (49, 1, Some(at(510))));
}

#[test]
fn the_clock_begins_anew_when_all_is_late_for_a_second() {
    let mut output = output(1, 8);
    output.push(Box::new(blank(0)), 0, ready(0));
    assert_eq!(tick(&mut output, 10), Some(0));
    let trace = |n: u32| Trace { network: Duration::from_millis(7), ..ready(5000 + 10 * u64::from(n)) };
    (0..=100).for_each(|n| assert!(output.push(Box::new(blank(1 + n)), 1 + n, trace(n)).is_none()));
    assert_eq!((output.counts().missed, output.counts().restarts), (100, 1));
    assert_eq!(output.due(), Some(at(6010)));
}

#[test]
fn what_is_late_for_want_of_the_processor_stays_late() {
    let mut output = output(1, 8);
    output.push(Box::new(blank(0)), 0, ready(0));
    assert_eq!(tick(&mut output, 10), Some(0));
    let trace = |n: u32| Trace { processor: Duration::from_millis(9), ..ready(5000 + 10 * u64::from(n)) };
    (0..=300).for_each(|n| assert!(output.push(Box::new(blank(1 + n)), 1 + n, trace(n)).is_none()));
    assert_eq!((output.counts().missed, output.counts().restarts), (301, 0));
}

#[test]
fn another_rate_counts_from_the_next_picture() {
    let mut output = output(1, 8);
    (0..4).for_each(|n| assert!(output.push(Box::new(blank(n)), n, ready(0)).is_none()));
    assert_eq!(tick(&mut output, 10), Some(0));
    output.set_rate(Rate::from_millis(10_000).unwrap(), at(12));
    assert_eq!([20, 119, 120].map(|millis| tick(&mut output, millis)), [Some(1), None, Some(2)]);
}

#[test]
fn the_deadline_is_when_the_next_picture_is_shown() {
    let mut output = output(1, 8);
    assert_eq!(output.deadline(at(3)), at(13));
    output.push(Box::new(blank(0)), 0, ready(0));
    assert_eq!(output.deadline(at(3)), at(20));
    tick(&mut output, 10);
    assert_eq!(output.deadline(at(12)), at(20));
}

/// A queue of pictures with ticks, at the stream's own rate of 25 in a second.
fn ticking() -> Output {
    let rate = Rate::from_millis(25_000).unwrap();
    let (pace, stamps) = (Pace::Own(rate), Stamps::Ticks(rate));
    Output::new(OutputOptions { length: 8, ahead: 1, pace, every: 1, without_b: false, stamps })
}

#[test]
fn a_stamp_that_jumps_far_ahead_does_not_stop_the_display() {
    for jump in [90_000 * 3600, 1 << 30] {
        let mut output = ticking();
        let stamp = |n: u32| n * 3600 + if n < 3 { 0 } else { jump };
        for n in 0..6 {
            output.push(Box::new(blank(n)), stamp(n), ready(40 * u64::from(n)));
        }
        let shown: Vec<_> = (1..=6).map(|n| tick(&mut output, 40 * n)).collect();
        assert_eq!(shown, [0, 1, 2, 3, 4, 5].map(Some));
        assert_eq!((output.counts().lost, output.counts().missed), (0, 0));
    }
}

#[test]
fn a_source_that_begins_anew_after_a_pause_is_shown_at_once() {
    let mut output = output(3, 8);
    (0..4).for_each(|n| assert!(output.push(Box::new(blank(n)), n, ready(0)).is_none()));
    assert_eq!([10, 40].map(|millis| tick(&mut output, millis)), [Some(0), Some(3)]);
    output.begin_anew();
    (0..4).for_each(|n| assert!(output.push(Box::new(blank(n)), n, ready(9000)).is_none()));
    assert_eq!([9010, 9040].map(|millis| tick(&mut output, millis)), [Some(0), Some(3)]);
    let Shown { shown, skipped, missed, lost, repeated, restarts, .. } = output.counts();
    assert_eq!((shown, skipped, missed, lost, repeated, restarts), (4, 4, 0, 0, 0, 1));
    // The other of each three would have been wanted after another picture.
    assert!(output.wants(6) && !output.wants(7));
}

#[test]
fn a_stream_whose_rate_changes_goes_on_at_the_other() {
    let mut output = ticking();
    (0..3).for_each(|n| assert!(output.push(Box::new(blank(n)), n * 3600, ready(0)).is_none()));
    output.set_own(Rate::from_millis(50_000).unwrap(), at(0));
    (1..4).for_each(|n| assert!(output.push(Box::new(blank(n)), 7200 + n * 1800, ready(0)).is_none()));
    output.set_own(Rate::from_millis(25_000).unwrap(), at(0));
    (1..3).for_each(|n| assert!(output.push(Box::new(blank(n)), 12_600 + n * 3600, ready(0)).is_none()));
    assert_eq!((output.counts().lost, output.counts().repeated, output.len()), (0, 0, 8));
}

proptest! {
    /// Whatever comes when: every picture that was pushed is shown, thrown away for one reason, or
    /// still waits; memory is freed for each that was queued; at most `length` wait, and a few.
    #[test]
    fn every_picture_is_accounted_for(
        pushes in prop::collection::vec((0u32..80, 0u64..40), 1..200),
        every in 1u32..4,
        length in 1usize..9,
    ) {
        let mut output = output(every, length);
        let (mut now, mut freed, mut queued, mut shown) = (0, 0u64, 0u64, Vec::new());
        for (stamp, wait) in &pushes {
            now += wait;
            shown.extend(output.tick(at(now), |memory| freed += memory).map(|picture| picture.stamp()));
            let before = output.len();
            // Some are decoded late.
            output.push(Box::new(blank(*stamp)), *stamp, ready(now + u64::from(stamp % 7)));
            queued += (output.len() - before) as u64;
            prop_assert!(output.len() <= length + REORDERED + 1);
        }
        let counts = output.counts();
        prop_assert!(shown.windows(2).all(|pair| pair[0] < pair[1]), "out of order: {shown:?}");
        prop_assert_eq!(counts.shown, shown.len() as u64);
        let thrown = counts.missed + counts.skipped + counts.repeated + counts.overflowed;
        prop_assert_eq!(counts.shown + thrown + output.len() as u64, pushes.len() as u64);
        output.clear(|memory| freed += memory);
        prop_assert_eq!(freed, queued * 384);
    }
}
