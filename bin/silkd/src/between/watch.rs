//! What wakes an executor beside its ring and its orders: the doorbells of families, and sockets of Linux's.

use rustix::event::epoll::{self, EventData, EventFlags};
use silk_stream::wake;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Programs have rung: the place of each family's eventfd. Which, nobody asks.
pub const RUNG: u64 = u64::MAX;

/// Watches sockets of Linux's for an executor, and listens for programs.
#[derive(Clone)]
pub struct Watch {
    sockets: Arc<OwnedFd>,
    /// What families ring: in the set that the executor sleeps on, and together in one that it sleeps on otherwise.
    programs: [Arc<OwnedFd>; 2],
}

/// What the programs of one family write to wake an executor: an eventfd of their own, since who has it may drain it, fill it, or
/// let its writers wait. It is listened to as long as it lives.
pub struct Doorbell {
    event: OwnedFd,
    watch: Watch,
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        // Programs have copies of it. One that was never added is as good.
        self.watch.programs.iter().for_each(|set| _ = epoll::delete(set, &self.event));
    }
}

impl Watch {
    /// Sockets are watched by the first set; what families ring is in both others: that which the executor sleeps on, and the one that it
    /// sleeps on otherwise.
    pub fn new(sockets: Arc<OwnedFd>, programs: [Arc<OwnedFd>; 2]) -> Self {
        Self { sockets, programs }
    }

    /// From now on the executor wakes when this is written to.
    ///
    /// # Errors
    /// The kernel's, such as too many open files.
    pub fn doorbell(&self) -> io::Result<Doorbell> {
        let doorbell = Doorbell { event: wake::event()?, watch: self.clone() };
        for set in &self.programs {
            epoll::add(set, &doorbell.event, EventData::new_u64(RUNG), EventFlags::IN | EventFlags::ET)?;
        }
        Ok(doorbell)
    }

    /// From now on the executor is told when something changes at `socket`, which the path of
    /// this index has. It ends with the socket.
    ///
    /// # Errors
    /// The kernel's, such as too many watched.
    pub fn add(&self, socket: impl AsFd, path: u32) -> io::Result<()> {
        self.add_for(socket, path, EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP)
    }

    /// The same, of what arrives there alone.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add_readable(&self, socket: impl AsFd, path: u32) -> io::Result<()> {
        self.add_for(socket, path, EventFlags::IN)
    }

    fn add_for(&self, socket: impl AsFd, path: u32, changes: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.sockets, socket, EventData::new_u64(path.into()), changes | EventFlags::ET)?)
    }

    /// The executor is told no more.
    pub fn remove(&self, socket: impl AsFd) {
        // One that is not there is as good.
        let _ = epoll::delete(&self.sockets, socket);
    }
}
