//! The receive half: frames by `recvmmsg`, each with its virtio-net header.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Options, PACKET_VNET_HDR, accept};
use crate::pool::Pool;
use crate::sys::{self, Filter, ReceiveBatch};
use crate::{Frame, HEADROOM, OpenError, Receive, Received, vnet};

const PACKET_IGNORE_OUTGOING: i32 = 23;
const ETH_P_ALL: u16 = 3;

/// Receives through a packet socket.
pub(super) struct PacketReceive {
    pub fd: OwnedFd,
    batch: ReceiveBatch<{ vnet::LEN }>,
    pool: Pool,
    /// Buffers of the pool that are offered to the kernel: empty between calls.
    offered: Vec<(u32, Box<[u8]>)>,
    received: Received,
}

impl PacketReceive {
    /// With the filter that the options ask for.
    pub fn open(interface: &str, options: &Options) -> Result<Self, OpenError> {
        Self::with_filter(interface, options, &accept(&options.addresses))
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
            received: Received::default(),
        })
    }

    /// One system call's worth of frames.
    fn receive_batch(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
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
            let (checksum, segment) = vnet::decode(arrival.header);
            self.pool.hold(index, buffer);
            self.received.frames += 1;
            self.received.bytes += len as u64;
            let (offset, len) = (HEADROOM as u32, len as u32);
            frames.push(Frame { index, offset, len, path: 0, segment, checksum });
        }
        arrived
    }
}

impl Receive for PacketReceive {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let before = frames.len();
        loop {
            let wanted = limit - (frames.len() - before);
            let arrived = self.receive_batch(frames, wanted);
            if arrived < self.batch.capacity() {
                return frames.len() - before;
            }
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
