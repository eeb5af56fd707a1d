//! What has arrived and is not handed out yet, in order. A packet that is several datagrams (`UDP_SEGMENT`, UDP GRO) stays
//! as it came until there are buffers for all of them: it must never lose any for want of buffers that will be free again.

use std::collections::VecDeque;

use super::tag::tagged;
use crate::pool::Pool;
use crate::{Checksum, Frame, HEADROOM, Offload, Received, segment};

/// Frames and packets that wait. Empty but after a call that stopped at its limit, whose caller comes again, or for want of
/// buffers: then whoever holds those comes again when it has released some.
#[derive(Default)]
pub(super) struct Arrived {
    /// The datagrams of the packet that was cut last.
    datagrams: VecDeque<Frame>,
    packets: VecDeque<Packet>,
    /// Room to cut in.
    room: Vec<u8>,
}

enum Packet {
    One(Frame),
    Several(Several),
}

/// A packet that is several datagrams.
pub(super) struct Several {
    /// Its buffer, which is out of the pool.
    pub index: u32,
    pub buffer: Box<[u8]>,
    /// Its bytes behind the headroom.
    pub len: usize,
    pub offload: Offload,
    pub path: u32,
}

impl Arrived {
    pub fn push(&mut self, frame: Frame) {
        self.packets.push_back(Packet::One(frame));
    }

    pub fn push_several(&mut self, several: Several) {
        self.packets.push_back(Packet::Several(several));
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty() && self.packets.is_empty()
    }

    /// Hands out at most `limit` frames, of this VLAN, 0: of none.
    pub fn hand_out(
        &mut self,
        frames: &mut Vec<Frame>,
        limit: usize,
        (pool, vlan): (&mut Pool, u16),
        received: &mut Received,
    ) {
        let end = frames.len() + limit;
        while frames.len() < end {
            if let Some(frame) = self.datagrams.pop_front() {
                frames.push(received.count(frame));
                continue;
            }
            match self.packets.pop_front() {
                None => return,
                Some(Packet::One(frame)) => frames.push(received.count(frame)),
                Some(Packet::Several(several)) if self.has_room(&several, pool) => {
                    self.cut(several, (pool, vlan), received);
                }
                Some(several) => return self.packets.push_front(several),
            }
        }
    }

    /// Whether there is a buffer for each datagram of a packet that was taken out, or there will never be more than now.
    fn has_room(&self, several: &Several, pool: &Pool) -> bool {
        let waiting = 1 + self.packets.len();
        pool.left() >= several.count() || pool.left() + waiting >= pool.size()
    }

    fn cut(&mut self, several: Several, (pool, vlan): (&mut Pool, u16), received: &mut Received) {
        let Several { index, buffer, len, offload, path } = several;
        let message = buffer.get(HEADROOM..HEADROOM + len).unwrap_or_default();
        let Self { datagrams, room, .. } = self;
        let cut = segment::cut(message, offload, room, |datagram| match copied(pool, datagram, vlan) {
            Some(frame) => datagrams.push_back(Frame { path, ..frame }),
            None => received.no_buffer += 1,
        });
        received.malformed += u64::from(cut.is_err());
        pool.put(index, buffer);
    }
}

impl Several {
    /// How many datagrams it is.
    fn count(&self) -> usize {
        let payload = self.len.saturating_sub(self.offload.header_len.into());
        payload.div_ceil(usize::from(self.offload.segment.size()).max(1)).max(1)
    }
}

/// The ticket of a buffer with a copy of `packet`, where there is one: a part of a frame is no longer than
/// the frame.
fn copied(pool: &mut Pool, packet: &[u8], vlan: u16) -> Option<Frame> {
    let index = pool.hold_copy(packet)?;
    let frame =
        Frame { index, device: 0, offset: 0, len: 0, path: 0, segment: 0, checksum: Checksum::Unknown };
    let (offset, len) = tagged(pool.bytes(frame), packet.len(), vlan);
    Some(Frame { offset, len, ..frame })
}
