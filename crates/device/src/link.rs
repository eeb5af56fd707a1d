//! The memory link: two hosts in one process, a wire between them. It carries frames in
//! virtual time as well as in real time, because it adds none: delay, loss and the rest are the
//! business of the link emulator in `testkit`. It must never hold more than its queue allows.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use silk_wire::eth;

use crate::pool::Pool;
use crate::sys::Event;
use crate::{
    Checksum, End, Frame, HEADROOM, Offload, Receive, Received, Refusal, Segment, Transmit, Transmitted,
    segment,
};

/// How the link behaves, both ways alike.
#[derive(Clone, Debug)]
pub struct Options {
    /// The longest frame without its Ethernet header and tag, in bytes.
    pub mtu: usize,
    /// How many frames may be on their way in each direction; one more is a counted drop.
    pub queue: usize,
    /// How many received frames each end may hold.
    pub buffers: u32,
    /// Large messages arrive cut into packets, as over a wire; otherwise whole, with partial
    /// checksums, as between a veth pair.
    pub cut: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { mtu: 1500, queue: 1024, buffers: 1024, cut: true }
    }
}

/// The two ends of a new link.
pub fn pair(options: &Options) -> io::Result<(End, End)> {
    let (there, back) = (Arc::new(Wire::new(options)?), Arc::new(Wire::new(options)?));
    Ok((end(options, &back, &there), end(options, &there, &back)))
}

/// A link with one end: what is sent there comes back.
pub fn back(options: &Options) -> io::Result<End> {
    let wire = Arc::new(Wire::new(options)?);
    Ok(end(options, &wire, &wire))
}

/// A link that leads nowhere: nothing arrives, and what is sent is gone.
pub fn alone(options: &Options) -> io::Result<End> {
    let (nothing, nowhere) = (Wire::new(options)?, Wire { is_heard: false, ..Wire::new(options)? });
    Ok(end(options, &Arc::new(nothing), &Arc::new(nowhere)))
}

fn end(options: &Options, arrives: &Arc<Wire>, departs: &Arc<Wire>) -> End {
    let largest = if options.cut { options.mtu + ETHERNET + TAG } else { LARGEST };
    End {
        receive: Box::new(LinkReceive {
            wire: arrives.clone(),
            pool: Pool::new(options.buffers, largest),
            received: Received::default(),
        }),
        transmit: Box::new(LinkTransmit {
            wire: departs.clone(),
            options: options.clone(),
            waiting: Vec::new(),
            message: Vec::new(),
            packet: Vec::new(),
            transmitted: Transmitted::default(),
        }),
    }
}

const ETHERNET: usize = eth::HEADER;
const TAG: usize = eth::TAG;
/// An Ethernet header with a tag, and the longest IP packet.
const LARGEST: usize = ETHERNET + TAG + 65_535;

/// One direction.
struct Wire {
    carried: Mutex<VecDeque<Carried>>,
    room: usize,
    /// Whether anybody is at its end.
    is_heard: bool,
    /// Raised while `carried` is not empty.
    event: Event,
}

struct Carried {
    bytes: Vec<u8>,
    /// Bytes of the message it is the first packet of, 0 for the others.
    begins: usize,
    segment: u16,
    checksum: Checksum,
}

impl Wire {
    fn new(options: &Options) -> io::Result<Self> {
        Ok(Self { carried: Mutex::default(), room: options.queue, is_heard: true, event: Event::new()? })
    }

    /// What is on its way. A thread that panicked while holding it left it whole: nothing
    /// between two of its operations can fail.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Carried>> {
        self.carried.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct LinkReceive {
    wire: Arc<Wire>,
    pool: Pool,
    received: Received,
}

impl LinkReceive {
    fn hold(&mut self, carried: &Carried) -> Option<Frame> {
        let Some((index, mut buffer)) = self.pool.take() else {
            self.received.no_buffer += 1;
            return None;
        };
        let len = carried.bytes.len();
        let Some(room) = buffer.get_mut(HEADROOM..HEADROOM + len) else {
            self.received.malformed += 1;
            self.pool.put(index, buffer);
            return None;
        };
        room.copy_from_slice(&carried.bytes);
        self.pool.hold(index, buffer);
        self.received.frames += 1;
        self.received.bytes += len as u64;
        let (segment, checksum) = (carried.segment, carried.checksum);
        Some(Frame { index, device: 0, offset: HEADROOM as u32, len: len as u32, path: 0, segment, checksum })
    }
}

impl Receive for LinkReceive {
    fn fd(&self) -> BorrowedFd<'_> {
        self.wire.event.as_fd()
    }

    fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let wire = self.wire.clone();
        let mut carried = wire.lock();
        let before = frames.len();
        while frames.len() - before < limit
            && let Some(next) = carried.pop_front()
        {
            frames.extend(self.hold(&next));
            if carried.is_empty() {
                wire.event.clear();
            }
        }
        frames.len() - before
    }

    fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        self.pool.bytes(frame)
    }

    fn release(&mut self, frame: Frame) {
        self.pool.release(frame);
    }

    fn received(&mut self) -> Received {
        self.received
    }
}

struct LinkTransmit {
    wire: Arc<Wire>,
    options: Options,
    waiting: Vec<Carried>,
    /// Room for the message being sent and for one packet of it.
    message: Vec<u8>,
    packet: Vec<u8>,
    transmitted: Transmitted,
}

impl LinkTransmit {
    fn carry(&mut self, offload: Offload) -> Result<(), Refusal> {
        let tagged = eth::frame(&self.message).is_ok_and(|frame| frame.header.kind() == eth::TAGGED);
        let longest = self.options.mtu + ETHERNET + if tagged { TAG } else { 0 };
        let whole = offload.segment == Segment::Whole;
        if self.message.len() > if whole { longest } else { LARGEST } {
            return Err(Refusal::TooLong);
        }
        if !whole && usize::from(offload.header_len) + usize::from(offload.segment.size()) > longest {
            return Err(Refusal::TooLong);
        }
        let waiting = &mut self.waiting;
        // What came as several datagrams is not one.
        if self.options.cut || matches!(offload.segment, Segment::Udp(_)) {
            let mut begins = self.message.len();
            segment::cut(&self.message, offload, &mut self.packet, |packet| {
                let bytes = packet.to_vec();
                waiting.push(Carried { bytes, begins, segment: 0, checksum: Checksum::Unknown });
                begins = 0;
            })
        } else {
            // Cut to nowhere, so that a malformed offload is refused here too.
            segment::cut(&self.message, offload, &mut self.packet, |_| {})?;
            let checksum = if offload.checksum_start == 0 { Checksum::Unknown } else { Checksum::Partial };
            let segment = offload.segment.size();
            let bytes = self.message.clone();
            waiting.push(Carried { begins: bytes.len(), bytes, segment, checksum });
            Ok(())
        }
    }
}

impl Transmit for LinkTransmit {
    fn send(&mut self, head: &[u8], payload: [&[u8]; 2], offload: Offload) {
        self.message.clear();
        [head, payload[0], payload[1]].iter().for_each(|part| self.message.extend_from_slice(part));
        if let Err(why) = self.carry(offload) {
            self.transmitted.refused(why);
        }
    }

    fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        if !self.wire.is_heard {
            let whole = self.waiting.drain(..).filter(|frame| frame.begins > 0);
            whole.for_each(|frame| self.transmitted.took(frame.begins));
            return;
        }
        let mut carried = self.wire.lock();
        for frame in self.waiting.drain(..) {
            if carried.len() >= self.wire.room {
                self.transmitted.refused(Refusal::Full);
                continue;
            }
            if frame.begins > 0 {
                self.transmitted.took(frame.begins);
            }
            carried.push_back(frame);
        }
        self.wire.event.raise();
    }

    fn transmitted(&self) -> Transmitted {
        self.transmitted
    }
}
