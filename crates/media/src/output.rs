//! The output queue (Scout §4.2) of a video path, and what became of each picture: shown when it
//! was due, missed its deadline, or never came. A late picture is counted and never shown.

use crate::picture::Picture;
use crate::timing::{FIRST, Rate, Slots, Stamps, Timing};
use crate::trace::{Missed, Misses, Trace};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;
use silk_instant::Instant;

/// How pictures are paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
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
    /// How the stream counts.
    pub stamps: Stamps,
}

/// What became of a path's pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// On the screen when they were due.
    pub shown: u64,
    /// Not ready when they were due: missed deadlines.
    pub missed: u64,
    /// Of those that were missed, the ones that came after all, and were thrown away.
    pub late: u64,
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
    /// Times the display stood still because nothing had come for a second, and began anew.
    pub stalls: u64,
    /// The most nanoseconds that the display ran behind its clock when it showed a picture.
    pub behind_most: u64,
}

struct Waiting {
    slot: u64,
    trace: Trace,
    picture: Box<dyn Picture>,
}

/// The output queue of one path.
pub struct Output {
    options: OutputOptions,
    slots: Slots,
    // Ascending by slot, all at or after `next`.
    waiting: VecDeque<Waiting>,
    timing: Option<Timing>,
    // The slot that is shown next; meaningless before the first picture.
    next: u64,
    // Slots that passed with nothing there since a picture was last shown or came: deadlines
    // missed if the stream goes on, nothing if it has ended.
    absent: u64,
    ended: bool,
    // When it last stopped being full; zero: it never was.
    freed: Instant,
    counts: Shown,
    misses: Misses,
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
            next: 0,
            absent: 0,
            ended: false,
            freed: Instant::ZERO,
            counts: Shown::default(),
            misses: Misses::default(),
        }
    }

    /// How it is set up.
    pub fn options(&self) -> OutputOptions {
        self.options
    }

    /// Shows only each `every`-th picture from now on.
    pub fn set_every(&mut self, every: u32) {
        self.options.every = every.max(1);
        self.next = self.aligned(self.next);
    }

    /// Plays at another rate from now on: what waits is shown at it too.
    pub fn set_rate(&mut self, rate: Rate, now: Instant) {
        self.options.pace = Pace::Clock(rate);
        if let Some(timing) = self.timing {
            let due = timing.due(self.next).max(now);
            self.timing = Some(Timing { epoch: due, origin: self.next, rate });
        }
    }

    /// What became of the pictures so far.
    pub fn counts(&self) -> Shown {
        self.counts
    }

    /// The last pictures that were not ready when they were due.
    pub fn misses(&self) -> &Misses {
        &self.misses
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
    pub fn wants(&mut self, stamp: u32) -> bool {
        let slot = self.slots.of(stamp);
        self.is_wanted(slot)
    }

    /// Whether a picture's time has passed at `now`.
    pub fn is_past(&mut self, stamp: u32, now: Instant) -> bool {
        let slot = self.slots.of(stamp);
        self.timing.is_some_and(|timing| slot < self.next || timing.due(slot) < now)
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

    /// A picture was decoded; `trace` says when it was ready. The one to show at once, where nothing paces
    /// them, or `None`.
    pub fn push(&mut self, picture: Box<dyn Picture>, trace: Trace) -> Option<Box<dyn Picture>> {
        let slot = self.slots.of(picture.stamp());
        if !self.is_wanted(slot) {
            self.counts.skipped += 1;
            return None;
        }
        let Pace::Clock(rate) = self.options.pace else {
            self.note_shown(&*picture);
            return Some(picture);
        };
        self.begin(slot, rate, trace.ready);
        self.queue(Waiting { slot, trace, picture });
        None
    }

    /// Starts the display's clock with the first picture, or the first after a standstill.
    fn begin(&mut self, slot: u64, rate: Rate, ready: Instant) {
        if self.timing.is_some() {
            return;
        }
        let epoch = ready + rate.time_of(self.options.ahead.into());
        self.timing = Some(Timing { epoch, origin: slot, rate });
        self.next = slot;
    }

    fn queue(&mut self, waiting: Waiting) {
        self.counts.missed += core::mem::take(&mut self.absent);
        if waiting.slot < self.next {
            self.counts.late += 1;
            self.note_missed(&waiting, Duration::ZERO);
        } else if self.waiting.back().is_some_and(|last| last.slot >= waiting.slot) {
            self.counts.repeated += 1;
        } else if self.waiting.len() > self.options.length + REORDERED {
            self.counts.overflowed += 1;
        } else {
            self.waiting.push_back(waiting);
        }
    }

    /// Remembers how a picture came to be that was not ready when it was due.
    fn note_missed(&mut self, waiting: &Waiting, display: Duration) {
        let due = self.timing.map_or(waiting.trace.ready, |timing| timing.due(waiting.slot));
        let stamp = waiting.picture.stamp();
        self.misses.add(Missed { stamp, due, trace: waiting.trace, display });
    }

    fn note_shown(&mut self, picture: &dyn Picture) {
        self.counts.shown += 1;
        self.counts.concealed += u64::from(picture.is_concealed());
    }

    /// When the display is to look again; `None` while nothing is to be shown.
    pub fn due(&self) -> Option<Instant> {
        let timing = self.timing?;
        (!self.is_over()).then(|| timing.due(self.next))
    }

    /// When the next picture that is decoded will be shown: the deadline of the work on it
    /// (Scout §4.3).
    pub fn deadline(&self, now: Instant) -> Instant {
        let Pace::Clock(rate) = self.options.pace else { return now };
        match (self.timing, self.waiting.back()) {
            (None, _) => now + rate.time_of(self.options.ahead.into()),
            (Some(timing), None) => timing.due(self.next),
            (Some(timing), Some(last)) => timing.due(last.slot + u64::from(self.options.every)),
        }
    }

    /// The display's clock stands at `now`: takes off the queue what is due, and answers the
    /// picture to show, the latest of them. `freed` is called for the memory of each that goes.
    pub fn tick(&mut self, now: Instant, mut freed: impl FnMut(u64)) -> Option<Box<dyn Picture>> {
        let mut showing: Option<Box<dyn Picture>> = None;
        let was_full = self.is_full();
        while let Some(due) = self.due().filter(|due| *due <= now) {
            if let Some(picture) = self.take_due(due, now, &mut freed) {
                if let Some(overtaken) = showing.replace(picture) {
                    self.overtake(&*overtaken);
                }
                self.counts.behind_most =
                    self.counts.behind_most.max(now.since(due).as_nanos().try_into().unwrap_or(u64::MAX));
            }
            self.next += u64::from(self.options.every);
            self.rest();
        }
        if was_full && !self.is_full() {
            self.freed = now;
        }
        showing
    }

    /// The picture of the slot that is due, if it was ready.
    fn take_due(
        &mut self,
        due: Instant,
        now: Instant,
        freed: &mut dyn FnMut(u64),
    ) -> Option<Box<dyn Picture>> {
        let Some(front) = self.waiting.front() else {
            self.absent += u64::from(!self.ended);
            return None;
        };
        if front.slot > self.next {
            self.counts.lost += 1;
            return None;
        }
        let waiting = self.waiting.pop_front()?;
        freed(waiting.picture.memory());
        if waiting.trace.ready > due {
            self.counts.missed += 1;
            self.counts.late += 1;
            self.note_missed(&waiting, now.since(due));
            return None;
        }
        self.note_shown(&*waiting.picture);
        Some(waiting.picture)
    }

    /// A picture that was ready in time and would be replaced before anybody has seen it.
    fn overtake(&mut self, overtaken: &dyn Picture) {
        self.counts.shown -= 1;
        self.counts.concealed -= u64::from(overtaken.is_concealed());
        self.counts.missed += 1;
    }

    /// Stands still when nothing has come for a second: what comes then begins anew.
    fn rest(&mut self) {
        let Pace::Clock(rate) = self.options.pace else { return };
        if self.waiting.is_empty() && rate.time_of(self.absent) >= STANDSTILL {
            self.timing = None;
            self.counts.stalls += 1;
        }
    }

    /// Takes every picture off, with its memory.
    pub fn clear(&mut self, mut freed: impl FnMut(u64)) {
        self.waiting.drain(..).for_each(|waiting| freed(waiting.picture.memory()));
    }
}

/// Pictures that a decoder may give at once although the queue has just become full.
const REORDERED: usize = 4;
/// How long nothing comes before the display stands still.
const STANDSTILL: Duration = Duration::from_secs(1);

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
