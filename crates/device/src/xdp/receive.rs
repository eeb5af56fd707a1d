//! One domain's receive half: its sockets, one on each hardware queue, and the frames it
//! holds. It must never hold so many that another domain's packets find none: what is over
//! its share stays in its ring until it has released some.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::FRAME;
use super::fill;
use crate::sys::{Holder, Readiness, Ring, losses, wake};
use crate::{Checksum, Frame, HEADROOM, Receive, Received};

/// The metadata word that the XDP program writes, in bytes.
const HINT: usize = 4;

/// A queue's part in a receive half.
pub(super) struct Queue {
    pub fd: OwnedFd,
    pub receive: Ring,
    /// The ring all sockets of the queue give frames back through.
    pub fill: Arc<Ring>,
}

/// What [`XdpReceive::new`] puts together.
pub(super) struct Parts {
    pub queues: Vec<Queue>,
    /// Readable when any of the queues is; `None` when there is one queue.
    pub any: Option<Readiness>,
    pub holder: Holder,
    /// How many frames it may hold at once.
    pub share: usize,
    /// How many frames each queue has.
    pub frames_per_queue: u32,
    /// What is known of the checksums of frames from this interface.
    pub checksum: Checksum,
}

pub(super) struct XdpReceive {
    parts: Parts,
    held: usize,
    /// Which queue is looked at first: in turn, so that none is starved.
    first: usize,
    received: Received,
}

impl XdpReceive {
    pub fn new(parts: Parts) -> Self {
        Self { parts, held: 0, first: 0, received: Received::default() }
    }

    /// Takes at most `limit` frames of one queue.
    fn receive_from(&mut self, queue: usize, frames: &mut Vec<Frame>, limit: usize) {
        let Parts { queues, holder, checksum, .. } = &mut self.parts;
        let ring = &queues[queue].receive;
        let entries = ring.entries();
        let mask = entries.len() / 2 - 1;
        let start = ring.consumer().load(Ordering::Relaxed);
        let there = ring.producer().load(Ordering::Acquire).wrapping_sub(start);
        let count = (there as usize).min(limit) as u32;
        for at in 0..count {
            let entry = start.wrapping_add(at) as usize & mask;
            let address = entries[entry * 2].load(Ordering::Relaxed);
            let len = entries[entry * 2 + 1].load(Ordering::Relaxed) as u32;
            let Some(frame) = hold(holder, address, len, *checksum) else {
                self.received.malformed += 1;
                continue;
            };
            self.received.frames += 1;
            self.received.bytes += u64::from(len);
            frames.push(frame);
        }
        ring.consumer().store(start.wrapping_add(count), Ordering::Release);
    }

    /// Wakes the drivers that ask for it (only those that write to the frames themselves do).
    fn wake_drivers(&self) {
        const NEED_WAKEUP: u32 = libc::XDP_RING_NEED_WAKEUP;
        for queue in &self.parts.queues {
            if queue.fill.flags().load(Ordering::Relaxed) & NEED_WAKEUP != 0 {
                wake(queue.fd.as_fd());
            }
        }
    }
}

/// The ticket of a frame that just arrived; `None` when it was not the kernel's to give.
fn hold(holder: &mut Holder, address: u64, len: u32, checksum: Checksum) -> Option<Frame> {
    let index = u32::try_from(address / FRAME).ok()?;
    let offset = (address % FRAME) as usize;
    if !holder.claim(index) {
        return None;
    }
    let path = match holder.bytes(index).get(..offset).and_then(|before| before.last_chunk::<HINT>()) {
        Some(hint) => u32::from_ne_bytes(*hint),
        None => 0,
    };
    Some(Frame { index, offset: offset as u32, len, path, segment: 0, checksum })
}

impl Receive for XdpReceive {
    fn fd(&self) -> BorrowedFd<'_> {
        match &self.parts.any {
            Some(any) => any.as_fd(),
            None => self.parts.queues[0].fd.as_fd(),
        }
    }

    fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let before = frames.len();
        let limit = limit.min(self.parts.share.saturating_sub(self.held));
        let queues = self.parts.queues.len();
        for turn in 0..queues {
            let left = limit - (frames.len() - before);
            self.receive_from((self.first + turn) % queues, frames, left);
        }
        self.first = (self.first + 1) % queues;
        self.wake_drivers();
        let count = frames.len() - before;
        self.held += count;
        count
    }

    fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        self.parts.holder.bytes(frame.index)
    }

    fn release(&mut self, frame: Frame) {
        // Where the word of the next packet will be read: a driver that writes none must not
        // leave an old one there.
        if let Some(hint) = self.parts.holder.bytes(frame.index).get_mut(HEADROOM - HINT..HEADROOM) {
            hint.fill(0);
        }
        if !self.parts.holder.release(frame.index) {
            return;
        }
        self.held -= 1;
        let queue = (frame.index / self.parts.frames_per_queue) as usize;
        let ring = &self.parts.queues[queue].fill;
        fill::give(ring.producer(), ring.entries(), FRAME, u64::from(frame.index) * FRAME);
    }

    fn received(&mut self) -> Received {
        let counts = self.parts.queues.iter().filter_map(|queue| losses(queue.fd.as_fd()).ok());
        let (mut full, mut dropped) = (0, 0);
        counts.for_each(|count| {
            full += count.ring_full;
            dropped += count.dropped;
        });
        Received { ring_full: full, no_buffer: dropped, ..self.received }
    }
}
