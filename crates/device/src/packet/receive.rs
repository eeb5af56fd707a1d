//! The receive half: frames by `recvmmsg`, each with its virtio-net header, and its tag put back.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use silk_wire::eth;

use super::{Options, PACKET_VNET_HDR, accept};
use crate::pool::Pool;
use crate::sys::{self, Filter, ReceiveBatch};
use crate::{Checksum, Frame, HEADROOM, OpenError, Receive, Received, segment, vnet};

const PACKET_IGNORE_OUTGOING: i32 = 23;
const ETH_P_ALL: u16 = 3;

/// Receives through a packet socket.
pub(super) struct PacketReceive {
    pub fd: OwnedFd,
    batch: ReceiveBatch<{ vnet::LEN }>,
    pool: Pool,
    /// Buffers of the pool that are offered to the kernel: empty between calls.
    offered: Vec<(u32, Box<[u8]>)>,
    /// Frames to be handed out: more than the kernel gave where one was several datagrams. Empty but
    /// after a call that stopped at its limit, whose caller comes again.
    arrived: VecDeque<Frame>,
    /// Room to cut those in.
    packet: Vec<u8>,
    /// The VLAN of every frame, 0: of none.
    vlan: u16,
    received: Received,
}

impl PacketReceive {
    /// With the filter that the options ask for.
    pub fn open(interface: &str, options: &Options) -> Result<Self, OpenError> {
        Self::with_filter(interface, options, &accept(options))
    }

    /// With another filter for now.
    pub fn with_filter(interface: &str, options: &Options, filter: &[Filter]) -> Result<Self, OpenError> {
        let what = "receive raw frames";
        let of = |error| OpenError::of(interface, what, error);
        let index = sys::interface_index(interface).map_err(of)?;
        let fd = sys::packet_socket().map_err(of)?;
        sys::set_packet_option(fd.as_fd(), PACKET_VNET_HDR, 1).map_err(of)?;
        sys::set_packet_option(fd.as_fd(), PACKET_IGNORE_OUTGOING, 1).map_err(of)?;
        sys::receive_buffer(fd.as_fd(), options.waiting).map_err(of)?;
        // Before it is bound: afterwards frames would already have passed.
        sys::filter(fd.as_fd(), filter).map_err(of)?;
        sys::bind_packet(fd.as_fd(), index, ETH_P_ALL).map_err(of)?;
        Ok(Self {
            fd,
            batch: ReceiveBatch::new(16),
            pool: Pool::new(options.buffers, options.longest),
            offered: Vec::new(),
            arrived: VecDeque::new(),
            packet: Vec::new(),
            vlan: options.vlan,
            received: Received::default(),
        })
    }

    /// One system call's worth of frames, how many it gave.
    fn receive_batch(&mut self, limit: usize) -> usize {
        let count = limit.min(self.batch.capacity());
        self.offered.extend(std::iter::from_fn(|| self.pool.take()).take(count));
        if self.offered.is_empty() {
            return 0;
        }
        let buffers = self.offered.iter_mut().map(|(_, buffer)| &mut **buffer);
        let arrived = self.batch.receive(self.fd.as_fd(), buffers, HEADROOM).unwrap_or(0);
        let unused = self.offered.drain(arrived..).rev();
        unused.for_each(|(index, buffer)| self.pool.put(index, buffer));
        for (at, (index, buffer)) in self.offered.drain(..).enumerate() {
            let arrival = self.batch.arrival(at);
            let Some(len) = arrival.len else {
                self.received.malformed += 1;
                self.pool.put(index, buffer);
                continue;
            };
            if let Some(offload) = vnet::datagrams(arrival.header) {
                let message = buffer.get(HEADROOM..HEADROOM + len).unwrap_or_default();
                let Self { pool, arrived, received, packet, vlan, .. } = self;
                let cut =
                    segment::cut(message, offload, packet, |packet| match copied(pool, packet, *vlan) {
                        Some(frame) => arrived.push_back(received.count(frame)),
                        None => received.no_buffer += 1,
                    });
                received.malformed += u64::from(cut.is_err());
                self.pool.put(index, buffer);
                continue;
            }
            let (checksum, segment) = vnet::decode(arrival.header);
            let (mut buffer, vlan) = (buffer, self.vlan);
            let (offset, len) = tagged(&mut buffer, len, vlan);
            self.pool.hold(index, buffer);
            let frame = Frame { index, device: 0, offset, len, path: 0, segment, checksum };
            self.arrived.push_back(self.received.count(frame));
        }
        arrived
    }
}

/// Puts the tag back that Linux has taken out of the frame of `len` bytes behind the headroom: addresses
/// move into the headroom. Where the frame begins now, and its length.
fn tagged(buffer: &mut [u8], len: usize, vlan: u16) -> (u32, u32) {
    const ADDRESSES: usize = 12;
    if vlan == 0 || len < eth::HEADER {
        return (HEADROOM as u32, len as u32);
    }
    let start = HEADROOM - eth::TAG;
    buffer.copy_within(HEADROOM..HEADROOM + ADDRESSES, start);
    let tag = &mut buffer[start + ADDRESSES..HEADROOM + ADDRESSES];
    tag[..2].copy_from_slice(&eth::TAGGED.to_be_bytes());
    tag[2..].copy_from_slice(&vlan.to_be_bytes());
    (start as u32, (len + eth::TAG) as u32)
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

impl Receive for PacketReceive {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let before = frames.len();
        let mut more = true;
        loop {
            let room = limit - (frames.len() - before);
            frames.extend(self.arrived.drain(..room.min(self.arrived.len())));
            let wanted = limit - (frames.len() - before);
            if !more || wanted == 0 {
                return frames.len() - before;
            }
            more = self.receive_batch(wanted) == self.batch.capacity();
        }
    }

    fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        self.pool.bytes(frame)
    }

    fn release(&mut self, frame: Frame) {
        self.pool.release(frame);
    }

    fn received(&mut self) -> Received {
        self.received.ring_full += u64::from(sys::packet_drops(self.fd.as_fd()).unwrap_or(0));
        self.received
    }
}
