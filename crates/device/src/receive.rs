//! The receive half of a device: one domain's frames, used by one thread. It must never
//! wait, and never keep a thread of a higher domain waiting for one of a lower.

use std::os::fd::BorrowedFd;

use crate::{Frame, Queues};

/// One domain's arriving frames. Tickets name buffers of this device alone; each ticket is
/// released exactly once, in any order.
pub trait Receive: Send {
    /// Readable (level-triggered) when [`receive`](Self::receive) would find something. Once
    /// the interface is gone it never is, so that nobody spins: a
    /// [`Watch`](crate::netlink::Watch) tells of that.
    fn fd(&self) -> BorrowedFd<'_>;

    /// The same as the descriptors that it is made of, where there are several: to watch each costs less for each
    /// packet.
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.fd()]
    }

    /// Appends at most `limit` tickets to `frames` and says how many; never waits. Also the
    /// moment at which released buffers go back to the kernel, so an executor that released
    /// frames calls it once more before it sleeps (it does, to look once more).
    fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize;

    /// The whole buffer of a frame, with its headroom; the frame is at
    /// [`Frame::range`]. Empty for a ticket that this end does not hold.
    fn bytes(&mut self, frame: Frame) -> &mut [u8];

    /// Gives the buffer back. A ticket that this end does not hold is ignored.
    fn release(&mut self, frame: Frame);

    /// The hardware queues that have brought frames since this was last asked, with the device as the first. Where it does not know
    /// that, all of them, whether there were frames or not.
    fn brought(&mut self) -> Queues {
        Queues::ALL
    }

    /// What happened so far. It may ask the kernel, so not for every packet.
    fn received(&mut self) -> Received;
}

/// Counts of a receive half, all since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Frames handed out.
    pub frames: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Frames that were dropped because this domain's ring was full. For a tap, Linux counts
    /// them instead, as the interface's `tx_dropped`.
    pub ring_full: u64,
    /// Frames that found no buffer because this side held them all.
    pub no_buffer: u64,
    /// Frames that did not fit a buffer or that the device could not make sense of.
    pub malformed: u64,
}

impl Received {
    /// Counts a frame that is handed out.
    pub(crate) fn count(&mut self, frame: Frame) -> Frame {
        self.frames += 1;
        self.bytes += u64::from(frame.len);
        frame
    }
}
