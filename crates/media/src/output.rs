//! The output queue (Scout §4.2) of a video path, and what became of each picture: shown when it
//! was due, missed its deadline, or never came. A late picture is counted and never shown.

use crate::picture::Picture;
use crate::retrace::Retrace;
use crate::timeline::Timeline;
use crate::timing::{FIRST, Rate, Slots, Stamps, Timing};
use crate::trace::{Missed, Misses, Trace};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;
use silk_instant::Instant;

/// How pictures are paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// By the display's clock, at the stream's own rate: this, until it tells another.
    Own(Rate),
    /// By the display's clock, at this rate.
    Clock(Rate),
    /// Each as soon as it is decoded: to find the highest rate there is.
    Free,
}

/// How the output queue of a path is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputOptions {
    /// The most pictures that wait. At least 1.
    pub length: usize,
    /// How many periods after the first picture the display begins.
    pub ahead: u32,
    /// How pictures are paced.
    pub pace: Pace,
    /// Only each n-th is shown. At least 1.
    pub every: u32,
    /// No B pictures are shown. What does not come is taken for one, not for lost.
    pub without_b: bool,
    /// How the stream counts.
    pub stamps: Stamps,
}

/// What became of a path's pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// On the screen when they were due.
    pub shown: u64,
    /// Not ready when they were due, or replaced by the next before the display could show them:
    /// missed deadlines.
    pub missed: u64,
    /// Never came: lost on the way or in decoding.
    pub lost: u64,
    /// Left out by wish (each n-th only).
    pub skipped: u64,
    /// Decoded twice or in disorder.
    pub repeated: u64,
    /// Found the queue full.
    pub overflowed: u64,
    /// Of those shown, the ones with something made up in them.
    pub concealed: u64,
    /// Times the display's clock began anew: for a second all that came was late, or stamps jumped after a pause.
    pub restarts: u64,
    /// The most nanoseconds that the display ran behind its clock when it showed a picture.
    pub behind_most: u64,
}

struct Waiting {
    slot: u64,
    stamp: u32,
    trace: Trace,
    picture: Box<dyn Picture>,
}

/// The output queue of one path.
pub struct Output {
    options: OutputOptions,
    slots: Slots,
    // Ascending by slot.
    waiting: VecDeque<Waiting>,
    timing: Option<Timing>,
    // Those of the screen, where it tells them.
    retrace: Option<Retrace>,
    // The first and the last slot that a picture came for.
    first: Option<u64>,
    last: Option<u64>,
    // Stamps begin anew with the next picture.
    anew: bool,
    // Since when all pictures were late, and for how much of that time their packets were missing.
    late: Option<(Instant, Duration)>,
    ended: bool,
    // When it last stopped being full; zero: it never was.
    freed: Instant,
    counts: Shown,
    misses: Misses,
    timeline: Timeline,
}

impl Pace {
    /// The rate of the display's clock, where there is one.
    fn rate(self) -> Option<Rate> {
        match self {
            Self::Own(rate) | Self::Clock(rate) => Some(rate),
            Self::Free => None,
        }
    }
}

impl Output {
    /// An empty queue.
    pub fn new(options: OutputOptions) -> Self {
        let options = OutputOptions { length: options.length.max(1), every: options.every.max(1), ..options };
        Self {
            slots: Slots::new(options.stamps),
            options,
            waiting: VecDeque::new(),
            timing: None,
            retrace: None,
            first: None,
            last: None,
            anew: false,
            late: None,
            ended: false,
            freed: Instant::ZERO,
            counts: Shown::default(),
            misses: Misses::default(),
            timeline: Timeline::default(),
        }
    }

    /// How it is set up.
    pub fn options(&self) -> OutputOptions {
        self.options
    }

    /// Shows only each `every`-th picture from now on.
    pub fn set_every(&mut self, every: u32) {
        self.options.every = every.max(1);
    }

    /// Shows no B pictures from now on, or shows them again. They do not come here: whoever decodes
    /// leaves them out.
    pub fn set_without_b(&mut self, without: bool) {
        self.options.without_b = without;
    }

    /// The rate of the display's clock; `None` where nothing paces it.
    pub fn rate(&self) -> Option<Rate> {
        self.options.pace.rate()
    }

    /// How far the stream has come: periods of its pictures from the first to the last that came.
    pub fn span(&self) -> u64 {
        self.last.zip(self.first).map_or(0, |(last, first)| last - first)
    }

    /// The stream tells its own rate.
    pub fn set_own(&mut self, rate: Rate, now: Instant) {
        self.slots.set_own(rate);
        if matches!(self.options.pace, Pace::Own(known) if known != rate) {
            self.set_rate(rate, now);
            self.options.pace = Pace::Own(rate);
        }
    }

    /// Plays at another rate from now on: what waits is shown at it too.
    pub fn set_rate(&mut self, rate: Rate, now: Instant) {
        self.options.pace = Pace::Clock(rate);
        if let Some(timing) = self.timing {
            let next = self.waiting.front().map_or_else(|| self.coming(), |front| front.slot);
            self.timing = Some(Timing { epoch: timing.due(next).max(now), origin: next, rate });
        }
    }

    /// The screen has its retraces at these times: pictures are shown at them. The first time that they are told, the
    /// display's clock is moved on to be half-way between them.
    pub fn set_retrace(&mut self, retrace: Option<Retrace>) {
        if let (None, Some(new), Some(timing)) = (self.retrace, retrace, &mut self.timing) {
            timing.epoch = new.between(timing.epoch);
        }
        self.retrace = retrace;
    }

    /// When the picture of `slot` is shown: at the retrace after its time.
    fn shown_at(&self, timing: Timing, slot: u64) -> Instant {
        let due = timing.due(slot);
        self.retrace.map_or(due, |retrace| retrace.at_or_after(due))
    }

    /// The slot of the next picture that is to be decoded.
    fn coming(&self) -> u64 {
        self.last.map_or(FIRST, |last| self.aligned(last + 1))
    }

    /// What became of the pictures so far.
    pub fn counts(&self) -> Shown {
        self.counts
    }

    /// The last pictures that were not ready when they were due.
    pub fn misses(&self) -> &Misses {
        &self.misses
    }

    /// What became of the pictures over time.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// When it last stopped being full; zero: it never was.
    pub fn freed(&self) -> Instant {
        self.freed
    }

    /// Pictures that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// None waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// As many wait as may: there is little point in decoding another (Scout §4.1).
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.options.length
    }

    /// The stream has ended: what waits is the rest.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// The stream has ended and all of it has been shown.
    pub fn is_over(&self) -> bool {
        self.ended && self.waiting.is_empty()
    }

    /// Whether a picture is shown at all when it is decoded: it is one of each n-th.
    pub fn wants(&self, stamp: u32) -> bool {
        self.is_wanted(self.slots.look(stamp))
    }

    /// The stamp of the first picture that can still be shown in time at `now`; `None` before the
    /// display has begun, or where nothing paces it.
    pub fn earliest(&self, now: Instant) -> Option<u32> {
        let timing = self.timing?;
        let mut slot = timing.slot_at(now);
        // Its time may have passed, and the retrace at which it is shown not.
        while slot > timing.origin && self.shown_at(timing, slot - 1) >= now {
            slot -= 1;
        }
        self.slots.stamp_of(slot)
    }

    /// Whether the pictures that are shown are those whose numbers [`OutputOptions::every`] divides: where a stream was renumbered they
    /// may be others.
    pub fn counts_by_number(&self) -> bool {
        let every = self.options.every;
        self.slots.last_stamp().is_none_or(|stamp| self.wants(stamp - stamp % every))
    }

    /// Whether a picture's time has passed at `now`.
    pub fn is_past(&self, stamp: u32, now: Instant) -> bool {
        let slot = self.slots.look(stamp);
        self.timing.is_some_and(|timing| self.shown_at(timing, slot) < now)
    }

    fn is_wanted(&self, slot: u64) -> bool {
        self.aligned(slot) == slot
    }

    /// The next wanted slot, `slot` included: one of each n-th, counted from the stream's first.
    fn aligned(&self, slot: u64) -> u64 {
        let every = u64::from(self.options.every);
        // Both counted from a multiple of `every` far below.
        let shift = every - FIRST % every;
        (slot + shift).next_multiple_of(every) - shift
    }

    /// Stamps begin anew with the picture that is pushed next: it follows the one before it.
    pub fn begin_anew(&mut self) {
        self.anew = true;
    }

    /// The slot of a picture that was decoded at `now`. Where stamps jump it follows the one before it.
    fn place(&mut self, stamp: u32, now: Instant) -> u64 {
        let slot = self.slots.look(stamp);
        let jumps = core::mem::take(&mut self.anew) || self.is_too_far(slot, now);
        if let Some(last) = self.last.filter(|_| jumps) {
            // Of those of which each n-th is shown it is the same one.
            let every = i64::from(self.options.every);
            let among = (slot.wrapping_sub(last + 1) as i64).rem_euclid(every) as u64;
            self.slots.jump(stamp, last + 1 + among);
            // There may have been a pause: it is not missed for that.
            self.late = Some((Instant::ZERO, now.since(Instant::ZERO)));
        }
        self.slots.of(stamp)
    }

    /// A picture would be shown later than any for which there is room: its stamp cannot be right.
    fn is_too_far(&self, slot: u64, now: Instant) -> bool {
        let OutputOptions { length, ahead, every, .. } = self.options;
        self.timing.is_some_and(|timing| {
            let most = (length + REORDERED) as u64 * u64::from(every) + u64::from(ahead);
            timing.due(slot) > now + timing.rate.time_of(most) + GIVE_UP
        })
    }

    /// A picture was decoded, to be shown by `stamp`; `trace` says when it was ready. The one to show at once, where
    /// nothing paces them, or `None`.
    pub fn push(&mut self, picture: Box<dyn Picture>, stamp: u32, trace: Trace) -> Option<Box<dyn Picture>> {
        let slot = self.place(stamp, trace.ready);
        if !self.is_wanted(slot) {
            self.counts.skipped += 1;
            return None;
        }
        if !self.follows(slot, trace.ready) {
            return None;
        }
        let Some(rate) = self.options.pace.rate() else {
            self.note_shown(&*picture, trace.ready);
            return Some(picture);
        };
        self.queue(Waiting { slot, stamp, trace, picture }, rate);
        None
    }

    /// Notes that a picture came for `slot`, and what is missing before it. Whether it comes after
    /// all others.
    fn follows(&mut self, slot: u64, now: Instant) -> bool {
        let every = u64::from(self.options.every);
        match self.last {
            Some(last) if slot <= last => {
                self.counts.repeated += 1;
                return false;
            }
            Some(last) => self.note_missing((slot - last) / every - u64::from((slot - last) >= every), now),
            None => self.first = Some(slot),
        }
        self.last = Some(slot);
        true
    }

    /// So many pictures that would be shown did not come.
    fn note_missing(&mut self, missing: u64, now: Instant) {
        if self.options.without_b {
            self.counts.skipped += missing;
        } else {
            self.counts.lost += missing;
            self.timeline.at(now).lost += missing;
        }
    }

    fn queue(&mut self, waiting: Waiting, rate: Rate) {
        let ready = waiting.trace.ready;
        let timing = *self.timing.get_or_insert_with(|| begin(&self.options, waiting.slot, rate, ready));
        let due = self.shown_at(timing, waiting.slot);
        if due < ready && !self.gives_up(&waiting.trace) {
            return self.note_missed(&waiting, due, Duration::ZERO, ready);
        }
        if due < ready {
            self.counts.restarts += 1;
            self.timing = Some(begin(&self.options, waiting.slot, rate, ready));
        }
        self.late = None;
        if self.waiting.len() > self.options.length + REORDERED {
            self.counts.overflowed += 1;
        } else {
            self.waiting.push_back(waiting);
        }
    }

    /// A picture is late. Whether the display's clock is to begin anew, because for long all that
    /// came was late, and it was the source that did not send it: it has paused. What is late for
    /// want of the processor stays late, for it is missed deadlines that tell of that.
    fn gives_up(&mut self, trace: &Trace) -> bool {
        let (since, network) = self.late.get_or_insert((trace.ready, Duration::ZERO));
        let late = trace.ready.since(*since);
        let first = late.is_zero();
        *network += if first { Duration::ZERO } else { trace.network };
        late >= GIVE_UP && *network > late / 2
    }

    /// Remembers how a picture came to be that was not shown when it was due, which is known at `now`.
    fn note_missed(&mut self, waiting: &Waiting, due: Instant, display: Duration, now: Instant) {
        self.counts.missed += 1;
        self.timeline.at(now).missed += 1;
        let stamp = waiting.stamp;
        self.misses.add(Missed { stamp, due, trace: waiting.trace, display });
    }

    fn note_shown(&mut self, picture: &dyn Picture, now: Instant) {
        self.counts.shown += 1;
        self.timeline.at(now).shown += 1;
        self.counts.concealed += u64::from(picture.is_concealed());
    }

    /// When the display is to look again; `None` while nothing waits.
    pub fn due(&self) -> Option<Instant> {
        Some(self.shown_at(self.timing?, self.waiting.front()?.slot))
    }

    /// When the next picture that is decoded will be shown: the deadline of the work on it
    /// (Scout §4.3).
    pub fn deadline(&self, now: Instant) -> Instant {
        let Some(rate) = self.options.pace.rate() else { return now };
        match self.timing {
            None => now + rate.time_of(self.options.ahead.into()),
            Some(timing) => self.shown_at(timing, self.coming()),
        }
    }

    /// The display's clock stands at `now`: takes off the queue what is due, and answers the
    /// picture to show, the latest of them. `freed` is called for the memory of each that goes.
    pub fn tick(&mut self, now: Instant, mut freed: impl FnMut(u64)) -> Option<Box<dyn Picture>> {
        let was_full = self.is_full();
        let mut showing: Option<Waiting> = None;
        while self.due().is_some_and(|due| due <= now) {
            let Some(next) = self.waiting.pop_front() else { break };
            freed(next.picture.memory());
            // Nobody has seen the one before it.
            if let Some(overtaken) = showing.replace(next) {
                let due = self.timing.map_or(now, |timing| self.shown_at(timing, overtaken.slot));
                self.note_missed(&overtaken, due, now.since(due), now);
            }
        }
        if was_full && !self.is_full() {
            self.freed = now;
        }
        let showing = showing?;
        let due = self.timing.map_or(now, |timing| self.shown_at(timing, showing.slot));
        self.counts.behind_most = self.counts.behind_most.max(now.since(due).as_nanos() as u64);
        self.note_shown(&*showing.picture, now);
        Some(showing.picture)
    }

    /// Takes every picture off, with its memory.
    pub fn clear(&mut self, mut freed: impl FnMut(u64)) {
        self.waiting.drain(..).for_each(|waiting| freed(waiting.picture.memory()));
    }
}

/// Pictures that a decoder may give at once although the queue has just become full.
const REORDERED: usize = 4;
/// How long all that comes is late before the display's clock begins anew: a stream that was held up
/// catches up in less, and its delay is what it was.
const GIVE_UP: Duration = Duration::from_secs(1);

/// The display's clock, begun with the picture of `slot`.
fn begin(options: &OutputOptions, slot: u64, rate: Rate, ready: Instant) -> Timing {
    Timing { epoch: ready + rate.time_of(options.ahead.into()), origin: slot, rate }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
