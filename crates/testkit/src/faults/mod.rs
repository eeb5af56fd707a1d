//! Faults for a device, any device: a receive half around a receive half, with the link emulator
//! between them. Frames that arrive are lost, delayed, reordered, duplicated and corrupted as
//! [`Conditions`] and a seed say, and what is beside them sees no more than a device on a bad line.
//! It keeps what [`Receive`] promises; it must never hold a ticket of the device that it is around
//! for longer than a call, nor more frames than the emulator's queue and line and its own buffers.
//!
//! There is no transmit half of this kind: what leaves one end arrives at another, and that can have
//! faults of its own, while what a sender is told (full, too long) is the device's to say.
//!
//! ```
//! use silk_device::{End, Offload, link, readable};
//! use silk_testkit::emulator::Conditions;
//! use silk_testkit::faults::Faulty;
//! use std::time::Duration;
//!
//! let (mut ours, End { receive, .. }) = link::pair(&link::Options::default()).unwrap();
//! let conditions = Conditions { delay: Duration::from_millis(1), ..Conditions::default() };
//! let mut receive = Faulty::new(receive, &conditions, 1).unwrap().boxed();
//! ours.transmit.send(&[7; 60], [&[], &[]], Offload::NONE);
//! ours.transmit.flush();
//!
//! let mut frames = Vec::new();
//! // First when it has come to the device, then when its way is over.
//! while receive.receive(&mut frames, 64) == 0 {
//!     assert!(readable(receive.fd(), Duration::from_secs(10)).unwrap());
//! }
//! assert_eq!(receive.bytes(frames[0])[frames[0].range()], [7; 60]);
//! receive.release(frames[0]);
//! ```

mod alarm;
mod carried;
mod held;
mod line;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::time::{ClockId, clock_gettime};
use silk_device::{Frame, Queues, Receive, Received};
use silk_instant::Instant;

use crate::emulator::Conditions;
use alarm::Alarm;
use carried::Carried;
use held::Held;
pub use line::Line;

/// Frames that are taken from the device in one go.
const BATCH: usize = 64;
/// How often it is asked in one call at most, so that what is due does not wait for a flood's end.
const ROUNDS: usize = 4;
/// Frames that may be held by whoever receives them, as many as an end of the memory link has.
const BUFFERS: usize = 1024;

/// A receive half with faults.
pub struct Faulty {
    inner: Box<dyn Receive>,
    line: Line,
    clock: Box<dyn FnMut() -> Instant + Send>,
    held: Held,
    alarm: Alarm,
    frames: Vec<Frame>,
    /// What was handed out, and what found no buffer here.
    received: Received,
}

impl Faulty {
    /// The frames of `inner` under `conditions`, with chance from `seed`. It reads the machine's clock.
    ///
    /// # Errors
    /// The kernel's, such as too many open files.
    pub fn new(inner: Box<dyn Receive>, conditions: &Conditions, seed: u64) -> io::Result<Self> {
        Ok(Self {
            alarm: Alarm::beside(&inner.fds())?,
            inner,
            line: Line::new(conditions, seed),
            clock: Box::new(monotonic),
            held: Held::new(BUFFERS),
            frames: Vec::with_capacity(BATCH),
            received: Received::default(),
        })
    }

    /// The same by another clock, which never runs backwards. Whoever lets time pass calls
    /// [`receive`](Receive::receive) when [`Line::next_event`] has come: the descriptor waits for that
    /// as if time ran as fast as the machine's.
    #[must_use]
    pub fn by_clock(mut self, clock: impl FnMut() -> Instant + Send + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// The line, to be asked what became of the frames, also when this half is somebody else's.
    pub fn line(&self) -> Line {
        self.line.clone()
    }

    /// As the half of an [`End`](silk_device::End).
    pub fn boxed(self) -> Box<dyn Receive> {
        Box::new(self)
    }

    /// Takes what the device has: it enters the line at `now`. Answers whether there may be more.
    fn take(&mut self, now: Instant) -> bool {
        let mut link = self.line.lock();
        for _ in 0..ROUNDS {
            // Asked once more when all have been released, as a device expects.
            if self.inner.receive(&mut self.frames, BATCH) == 0 {
                return false;
            }
            for frame in self.frames.drain(..) {
                let carried = Carried::copy(frame, self.inner.bytes(frame));
                self.inner.release(frame);
                link.send(now, carried);
            }
        }
        true
    }

    /// Hands out what has arrived by `now`, until there are `most` frames.
    fn give(&mut self, frames: &mut Vec<Frame>, most: usize, now: Instant) {
        let mut link = self.line.lock();
        while frames.len() < most
            && let Some(carried) = link.arrive(now)
        {
            match self.held.hold(carried) {
                Some(frame) => {
                    self.received.frames += 1;
                    self.received.bytes += u64::from(frame.len);
                    frames.push(frame);
                }
                None => self.received.no_buffer += 1,
            }
        }
    }
}

impl Receive for Faulty {
    /// Readable also when the device has something that is then lost, or under way for a while.
    fn fd(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let mut fds = self.inner.fds();
        fds.push(self.alarm.timer());
        fds
    }

    /// What is due goes first: a receiver that is too slow leaves the device what it has, whose ring
    /// becomes full and not the line.
    fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let (before, now) = (frames.len(), (self.clock)());
        let most = before.saturating_add(limit);
        self.give(frames, most, now);
        let mut more = false;
        if frames.len() < most {
            more = self.take(now);
            self.give(frames, most, now);
        }
        let due = if more { Some(now) } else { self.line.next_event() };
        self.alarm.ring_in(due.map(|due| due.since(now)));
        frames.len() - before
    }

    fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        self.held.bytes(frame)
    }

    fn release(&mut self, frame: Frame) {
        self.held.release(frame);
    }

    fn brought(&mut self) -> Queues {
        self.inner.brought()
    }

    /// The device's own losses, and what was handed out here. What the line did, [`Line::counts`] says.
    fn received(&mut self) -> Received {
        let (device, Received { frames, bytes, no_buffer, .. }) = (self.inner.received(), self.received);
        Received { frames, bytes, no_buffer: device.no_buffer + no_buffer, ..device }
    }
}

/// The machine's clock, CLOCK_MONOTONIC.
fn monotonic() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
