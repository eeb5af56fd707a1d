//! The sockets of the device, a row of them for each hardware queue. The very first brings
//! the frames; the first of every row brings the row's fill ring; all the others share.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::fill;
use super::receive::Queue;
use crate::sys::{self, Arena, Binding, Ring, Which};

/// What the sockets are to be like.
pub(super) struct Plan {
    pub interface: u32,
    /// The hardware queues to serve.
    pub queues: Vec<u32>,
    pub domains: u32,
    /// Entries of each receive ring.
    pub ring: u32,
    pub frames_per_queue: u32,
    /// Bytes of a frame, a power of two.
    pub frame: u64,
}

impl Plan {
    /// Opens them all, their frames with the kernel: by queue, then by domain.
    pub fn open(&self, arena: &Arena) -> io::Result<Vec<Vec<Queue>>> {
        let mut rows: Vec<Vec<Queue>> = Vec::new();
        for (place, &queue) in (0..).zip(&self.queues) {
            let origin = rows.first().map(|row| row[0].fd.as_fd());
            let mut row = vec![self.open_first(arena, place, queue, origin)?];
            for _ in 1..self.domains {
                row.push(self.open_next(queue, &row[0])?);
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// The first socket of `queue`, which is the one at `place` of those that are served.
    fn open_first(
        &self,
        arena: &Arena,
        place: u32,
        queue: u32,
        origin: Option<BorrowedFd<'_>>,
    ) -> io::Result<Queue> {
        // Room for every frame of the queue: it is never full.
        let size = self.frames_per_queue.next_power_of_two();
        let fd = sys::open_xsk()?;
        if origin.is_none() {
            sys::register(fd.as_fd(), arena, self.frame as u32)?;
        }
        sys::make_ring(fd.as_fd(), Which::Fill, size)?;
        // Nothing is sent through these sockets, but the kernel wants the ring.
        sys::make_ring(fd.as_fd(), Which::Completion, 64)?;
        sys::make_ring(fd.as_fd(), Which::Receive, self.ring)?;
        let fill = Ring::map(fd.as_fd(), Which::Fill, size)?;
        for frame in place * self.frames_per_queue..(place + 1) * self.frames_per_queue {
            fill::give(fill.producer(), fill.entries(), self.frame, u64::from(frame) * self.frame);
        }
        let receive = Ring::map(fd.as_fd(), Which::Receive, self.ring)?;
        let binding = origin.map_or(Binding::First, Binding::Sharing);
        sys::bind_xsk(fd.as_fd(), self.interface, queue, binding)?;
        Ok(Queue { number: queue, fd, receive, fill: Arc::new(fill) })
    }

    fn open_next(&self, queue: u32, first: &Queue) -> io::Result<Queue> {
        let fd = sys::open_xsk()?;
        sys::make_ring(fd.as_fd(), Which::Receive, self.ring)?;
        let receive = Ring::map(fd.as_fd(), Which::Receive, self.ring)?;
        sys::bind_xsk(fd.as_fd(), self.interface, queue, Binding::Sharing(first.fd.as_fd()))?;
        Ok(Queue { number: queue, fd, receive, fill: first.fill.clone() })
    }
}
