//! The ways in which Linux schedules a thread that carries packets (sched(7)).

use std::io;

use crate::sys;

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// As any ordinary thread.
    Other,
    /// As an ordinary thread that never interrupts another: `SCHED_BATCH`.
    Fair,
    /// As the ordinary thread that interrupts all others: the lowest nice value and the
    /// shortest slice.
    First,
    /// As the ordinary thread that is chosen next whenever another sleeps, and that never
    /// interrupts one: `SCHED_BATCH` with the lowest nice value.
    Batch,
    /// As the thread that runs only while no ordinary one does: `SCHED_IDLE`.
    Last,
    /// First in, first out, at this real-time priority, 1 to 99.
    Fifo(u8),
}

/// The shortest slice that Linux gives, ns.
const SHORTEST: u64 = 100_000;

impl Schedule {
    /// Schedules the thread with this number (zero: the calling one) so.
    ///
    /// # Errors
    /// The kernel's: `EPERM` without the right to, `ESRCH` when the thread has ended.
    pub fn set(self, thread: u32) -> io::Result<()> {
        let (policy, priority, nice, slice) = match self {
            Self::Other => (libc::SCHED_OTHER, 0, 0, 0),
            Self::First => (libc::SCHED_OTHER, 0, -20, SHORTEST),
            Self::Fair => (libc::SCHED_BATCH, 0, 0, 0),
            Self::Batch => (libc::SCHED_BATCH, 0, -20, 0),
            Self::Last => (libc::SCHED_IDLE, 0, 0, 0),
            Self::Fifo(priority) => (libc::SCHED_FIFO, priority.into(), 0, 0),
        };
        sys::schedule(thread, policy, priority, nice, slice)
    }
}
