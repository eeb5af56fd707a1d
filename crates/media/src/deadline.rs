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
    Some(Ends { shown, filled: interval.map(|interval| fills(now, room, PIPE, interval)) })
}

/// Packets that are on their way at any time, where no protocol says otherwise.
const PIPE: u32 = 1;

fn hold(path: &Path) -> bool {
    path.stage::<DisplayStage>().is_some_and(|display| display.output.is_full())
}

fn urgency(path: &Path, deadline: Option<Instant>) -> Urgency {
    Urgency { priority: path.state.attrs.priority(), deadline, hold: hold(path) }
}

/// The deadline of the output queue, always: Scout's implemented decoder.
pub fn by_output(path: &Path, now: Instant) -> Urgency {
    urgency(path, ends(path, now).map(|ends| ends.shown))
}

/// The earlier of both queues' deadlines: the effective deadline of Scout §4.3.
pub fn by_both(path: &Path, now: Instant) -> Urgency {
    urgency(path, ends(path, now).map(|ends| ends.filled.map_or(ends.shown, |filled| filled.min(ends.shown))))
}
