//! One domain's receive half: its sockets, one on each hardware queue, and the frames it
//! holds. It must never hold so many that another domain's packets find none: what is over
//! its share stays in its ring until it has released some.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::fill;
use super::long::Long;
use super::merged::{Merged, is_datagram};
use crate::sys::{Holder, Readiness, Ring, losses, wake};
use crate::{Checksum, Frame, HEADROOM, Queues, Receive, Received};

/// The two words that the XDP program may write before a packet, in bytes: how long each packet is where it is
/// several, and the path's word.
const METADATA: usize = 8;
/// An entry whose packet goes on in the next (`XDP_PKT_CONTD` of linux/if_xdp.h).
const CONTINUES: u64 = 1;
/// Long packets that are put together before they are delivered: what stays in a CPU's caches.
const AT_ONCE: u32 = 8;

/// A queue's part in a receive half.
pub(super) struct Queue {
    /// Which one, from 0.
    pub number: u32,
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
    /// Bytes of a frame, with its headroom.
    pub frame: u64,
    /// The longest frame that can have been on the wire, with a VLAN tag, as the MTU was when this was opened.
    pub longest: u32,
    /// Packets that are several may come, and none says so.
    pub blind: bool,
    /// What is known of the checksums of frames from this interface.
    pub checksum: Checksum,
}

pub(super) struct XdpReceive {
    parts: Parts,
    held: usize,
    /// Packets that were put together of several frames.
    long: Long,
    /// How many of them this call has put together.
    long_now: u32,
    /// Datagrams of packets that were several; nothing before the first.
    merged: Option<Merged>,
    /// Which queue is looked at first: in turn, so that none is starved.
    first: usize,
    /// Which queues have brought something since that was last asked.
    brought: Queues,
    received: Received,
}

/// What the kernel says of one frame in a receive ring.
struct Entry {
    address: u64,
    len: u32,
    /// The packet goes on in the next frame.
    continues: bool,
}

impl XdpReceive {
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            held: 0,
            long: Long::new(),
            long_now: 0,
            merged: None,
            first: 0,
            brought: Queues::default(),
            received: Received::default(),
        }
    }

    /// Takes at most `limit` packets of one queue.
    fn receive_from(&mut self, queue: usize, frames: &mut Vec<Frame>, limit: usize) {
        let ring = &self.parts.queues[queue].receive;
        let mut at = ring.consumer().load(Ordering::Relaxed);
        let end = ring.producer().load(Ordering::Acquire);
        let before = frames.len();
        if at != end {
            self.brought |= Queues::one(0, self.parts.queues[queue].number);
        }
        while at != end && frames.len() - before < limit && self.merged.as_ref().is_none_or(Merged::has_room)
        {
            let first = self.entry(queue, at);
            let taken = if first.continues {
                self.put_together(queue, at, end)
            } else {
                Some((self.hold(&first), 1))
            };
            let Some((frame, entries)) = taken else { break };
            at = at.wrapping_add(entries);
            let Some(frame) = frame else {
                self.received.malformed += 1;
                continue;
            };
            if self.is_several(frame) {
                let is_apart = self.tell_apart(frame);
                if first.continues && !is_apart {
                    // Nothing is delivered of it: what lies behind it must not wait for it.
                    self.long_now -= 1;
                }
                self.take_merged(frames, limit - (frames.len() - before));
                continue;
            }
            self.received.frames += 1;
            self.received.bytes += u64::from(frame.len);
            frames.push(frame);
        }
        self.parts.queues[queue].receive.consumer().store(at, Ordering::Release);
    }

    fn entry(&self, queue: usize, at: u32) -> Entry {
        let entries = self.parts.queues[queue].receive.entries();
        let place = at as usize & (entries.len() / 2 - 1);
        let rest = entries[place * 2 + 1].load(Ordering::Relaxed);
        let address = entries[place * 2].load(Ordering::Relaxed);
        Entry { address, len: rest as u32, continues: rest >> 32 & CONTINUES != 0 }
    }

    /// The ticket of a packet in one frame; `None` when it was not the kernel's to give.
    fn hold(&mut self, entry: &Entry) -> Option<Frame> {
        let (index, offset) = self.place(entry.address)?;
        let Parts { holder, checksum, .. } = &mut self.parts;
        if !holder.claim(index) {
            return None;
        }
        self.held += 1;
        let (path, segment) = metadata(holder.bytes(index), offset);
        Some(Frame {
            index,
            device: 0,
            offset: offset as u32,
            len: entry.len,
            path,
            segment,
            checksum: *checksum,
        })
    }

    fn place(&self, address: u64) -> Option<(u32, usize)> {
        let index = u32::try_from(address / self.parts.frame).ok()?;
        Some((index, (address % self.parts.frame) as usize))
    }

    /// Puts a packet together of the frames from `start` on: its ticket, `None` when it makes no
    /// sense, and how many entries it was. `None` when it is not all there, or there is no room now.
    fn put_together(&mut self, queue: usize, start: u32, end: u32) -> Option<(Option<Frame>, u32)> {
        let there = end.wrapping_sub(start);
        let count = (0..there).find(|&at| !self.entry(queue, start.wrapping_add(at)).continues)? + 1;
        if self.long_now == AT_ONCE {
            return None;
        }
        let mut draft = self.long.begin()?;
        self.long_now += 1;
        let mut before = None;
        for at in 0..count {
            let entry = self.entry(queue, start.wrapping_add(at));
            let Some((index, offset)) =
                self.place(entry.address).filter(|(index, _)| self.parts.holder.claim(*index))
            else {
                draft.append(None);
                continue;
            };
            let bytes = self.parts.holder.bytes(index);
            before = before.or_else(|| Some(metadata(bytes, offset)));
            draft.append(bytes.get(offset..offset + entry.len as usize));
            self.give_back(index);
        }
        let ((path, segment), checksum) = (before.unwrap_or((0, 0)), self.parts.checksum);
        let frame = self.long.finish(draft).map(|(index, len)| Frame {
            index,
            device: 0,
            offset: HEADROOM as u32,
            len,
            path,
            segment,
            checksum,
        });
        Some((frame, count))
    }

    /// Whether a packet is several datagrams: it says so, or, where none does, it is longer than any can have been on the wire.
    fn is_several(&mut self, frame: Frame) -> bool {
        (frame.segment > 0 || self.parts.blind && frame.len > self.parts.longest)
            && is_datagram(self.bytes(frame).get(frame.range()).unwrap_or_default())
    }

    /// Makes a packet that is several datagrams those that it was, as far as it says how long they are; whether it does.
    fn tell_apart(&mut self, frame: Frame) -> bool {
        let longest = self.parts.longest;
        let mut merged = self.merged.take().unwrap_or_else(|| Merged::new(longest));
        let packet = self.bytes(frame).get(frame.range()).unwrap_or_default();
        let cut = merged.cut(packet, frame.segment, frame.path);
        match &cut {
            Ok(lost) => self.received.no_buffer += lost,
            Err(_) => self.received.malformed += 1,
        }
        self.merged = Some(merged);
        self.release(frame);
        cut.is_ok()
    }

    /// Hands up datagrams of packets that were several.
    fn take_merged(&mut self, frames: &mut Vec<Frame>, limit: usize) {
        let Some(merged) = &mut self.merged else { return };
        let before = frames.len();
        merged.take(frames, limit);
        for frame in &frames[before..] {
            self.received.frames += 1;
            self.received.bytes += u64::from(frame.len);
        }
    }

    /// Gives a frame of ours back to the kernel.
    fn give_back(&mut self, index: u32) -> bool {
        // Where the word of the next packet will be read: a driver that writes none must not
        // leave an old one there.
        if let Some(words) = self.parts.holder.bytes(index).get_mut(HEADROOM - METADATA..HEADROOM) {
            words.fill(0);
        }
        if !self.parts.holder.release(index) {
            return false;
        }
        let queue = (index / self.parts.frames_per_queue) as usize;
        let ring = &self.parts.queues[queue].fill;
        let frame = self.parts.frame;
        fill::give(ring.producer(), ring.entries(), frame, u64::from(index) * frame);
        true
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

/// What the XDP program wrote in front of a packet, each 0 where it wrote nothing: the path's word, and the
/// payload bytes of each packet where it is several.
fn metadata(bytes: &[u8], offset: usize) -> (u32, u16) {
    let before = bytes.get(..offset).and_then(|before| before.last_chunk::<METADATA>());
    let Some(&[a, b, c, d, path @ ..]) = before else { return (0, 0) };
    let segment = u32::from_ne_bytes([a, b, c, d]);
    (u32::from_ne_bytes(path), u16::try_from(segment).unwrap_or(0))
}

impl Receive for XdpReceive {
    fn fd(&self) -> BorrowedFd<'_> {
        match &self.parts.any {
            Some(any) => any.as_fd(),
            None => self.parts.queues[0].fd.as_fd(),
        }
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.parts.queues.iter().map(|queue| queue.fd.as_fd()).collect()
    }

    fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let before = frames.len();
        self.long_now = 0;
        // What the last call had no more place for: the rings may be empty since.
        self.take_merged(frames, limit);
        let limit = limit.min(frames.len() - before + self.parts.share.saturating_sub(self.held));
        let queues = self.parts.queues.len();
        for turn in 0..queues {
            let left = limit - (frames.len() - before);
            self.receive_from((self.first + turn) % queues, frames, left);
        }
        self.first = (self.first + 1) % queues;
        self.wake_drivers();
        frames.len() - before
    }

    fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        match &mut self.merged {
            Some(merged) if Merged::has(frame) => merged.bytes(frame),
            _ if Long::has(frame) => self.long.bytes(frame),
            _ => self.parts.holder.bytes(frame.index),
        }
    }

    fn release(&mut self, frame: Frame) {
        if Merged::has(frame) {
            self.merged.iter_mut().for_each(|merged| merged.release(frame));
        } else if Long::has(frame) {
            self.long.release(frame);
        } else if self.give_back(frame.index) {
            self.held -= 1;
        }
    }

    fn brought(&mut self) -> Queues {
        std::mem::take(&mut self.brought)
    }

    fn received(&mut self) -> Received {
        let counts = self.parts.queues.iter().filter_map(|queue| losses(queue.fd.as_fd()).ok());
        let (mut full, mut dropped) = (0, 0);
        counts.for_each(|count| {
            full += count.ring_full;
            dropped += count.dropped;
        });
        Received { ring_full: full, no_buffer: dropped + self.received.no_buffer, ..self.received }
    }
}
