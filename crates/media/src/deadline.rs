//! How urgent a video path is (Scout §4.3): the path's wake-up callback gives its work a deadline
//! from the queue that is the bottleneck, before it runs. Where path execution is, the output queue
//! should be as full as possible: the deadline is when the next picture put there will be shown.
//! Where the network is, the input queue should be as empty as lets n packets be on their way: the
//! deadline is when it will have filled so far that fewer than n places are free.

use crate::display::DisplayStage;
use crate::mpeg::MpegStage;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{Path, Urgency};

/// Which queue a path's deadline comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// The output queue: decoding takes longer than asking for more.
    Execution,
    /// The input queue: the network is slower than decoding.
    Network,
}

/// What is known of a path's ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// When the next picture that is decoded will be shown.
    pub shown: Instant,
    /// When fewer than n places of the input queue will be free, where it is known.
    pub filled: Option<Instant>,
}

/// When fewer than `pipe` of `room` free places will be left, if one is taken each `interval`.
pub fn fills(now: Instant, room: u32, pipe: u32, interval: Duration) -> Instant {
    now + interval.saturating_mul(room.saturating_sub(pipe))
}

/// Both deadlines of a video path at `now`.
pub fn ends(path: &Path, now: Instant) -> Option<Ends> {
    let shown = path.stage::<DisplayStage>()?.output.deadline(now);
    let interval = path.stage::<MpegStage>().and_then(|mpeg| mpeg.arrivals.interval());
    let room = path.input.limit().saturating_sub(path.input.len()) as u32;
    let pipe = measured(path).map_or(1, |(process, round_trip)| pipe(process, round_trip));
    Some(Ends { shown, filled: interval.map(|interval| fills(now, room, pipe, interval)) })
}

/// Packets that are on their way at any time (n of Scout §4.2): as many as are processed in a round
/// trip.
pub fn pipe(process: Duration, round_trip: Duration) -> u32 {
    let packets = round_trip.as_nanos().checked_div(process.as_nanos()).unwrap_or(1);
    u32::try_from(packets).unwrap_or(u32::MAX).max(1)
}

/// Where a path is held up, by what was measured: the time a packet takes, and the round trip. It
/// is the network only where that is clearly slower; `None` where nothing was measured.
pub fn bottleneck(path: &Path) -> Option<Bottleneck> {
    let (process, round_trip) = measured(path)?;
    let arrives = path.stage::<MpegStage>()?.arrivals.interval()?;
    // Packets that come more slowly than they are processed leave the input queue empty.
    let slow = arrives > process.saturating_mul(2) && round_trip > process;
    Some(if slow { Bottleneck::Network } else { Bottleneck::Execution })
}

fn measured(path: &Path) -> Option<(Duration, Duration)> {
    let process = path.state.measure.map(|average| average.ns()).filter(|ns| *ns > 0)?;
    Some((Duration::from_nanos(process), Duration::from_nanos(path.state.round_trip.ns())))
}

/// There is little point in decoding: the output queue is full, or what waits in it must go first, for the
/// path has no memory for another picture.
fn hold(path: &Path) -> bool {
    let Some(display) = path.stage::<DisplayStage>() else { return false };
    let picture = path.stage::<MpegStage>().map_or(0, MpegStage::picture_memory);
    let account = &path.state.account;
    let no_room = account.memory().saturating_add(picture) > account.memory_limit();
    display.output.is_full() || (no_room && !display.output.is_empty())
}

fn urgency(path: &Path, deadline: Option<Instant>) -> Urgency {
    Urgency { deadline, hold: hold(path) }
}

/// The deadline of the output queue, always: Scout's implemented decoder.
pub fn by_output(path: &Path, now: Instant) -> Urgency {
    urgency(path, ends(path, now).map(|ends| ends.shown))
}

/// The earlier of both queues' deadlines: the effective deadline.
pub fn by_both(path: &Path, now: Instant) -> Urgency {
    urgency(path, ends(path, now).map(|ends| ends.filled.map_or(ends.shown, |filled| filled.min(ends.shown))))
}

/// The deadline of the bottleneck queue alone: cheaper, where it is clear which that is.
pub fn by_bottleneck(path: &Path, now: Instant) -> Urgency {
    let deadline = ends(path, now).map(|ends| match (bottleneck(path), ends.filled) {
        (Some(Bottleneck::Network), Some(filled)) => filled,
        _ => ends.shown,
    });
    urgency(path, deadline)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_queue_is_due_when_fewer_places_are_free_than_packets_under_way() {
        let (now, interval) = (Instant::from_millis(7), Duration::from_millis(2));
        assert_eq!(fills(now, 10, 4, interval), Instant::from_millis(19));
        assert_eq!(fills(now, 3, 4, interval), now);
    }

    #[test]
    fn as_many_packets_are_under_way_as_are_processed_in_a_round_trip() {
        let micros = Duration::from_micros;
        assert_eq!(pipe(micros(500), micros(10_000)), 20);
        assert_eq!((pipe(micros(500), micros(20)), pipe(Duration::ZERO, micros(1))), (1, 1));
    }
}
