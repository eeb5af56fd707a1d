//! The scheduling of threads: executors and the programs' threads that extend paths
//! (SILK §3.3).
//!
//! On the server's CPUs the executor of priority *p* and the threads serving its paths run
//! at the same `SCHED_FIFO` priority `base + 2p`; priority 0 stays ordinary. Only the daemon
//! gives priorities, and only when they differ; a thread may give its own back.

use std::io;

/// How a thread is to be scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// `SCHED_OTHER`: as it was.
    Ordinary,
    /// `SCHED_BATCH`: an executor of priority 0, which does not preempt at a wake-up.
    Batch,
    /// `SCHED_IDLE`: only when nothing else wants to run.
    Idle,
    /// An executor that has stepped down: before all other ordinary threads.
    First,
    /// `SCHED_FIFO` at this priority.
    Fifo(i32),
}

/// The highest that a path has; above are the watchdog and the kernel's own threads.
pub const HIGHEST: i32 = silk_config::HIGHEST_FIFO as i32;

/// The scheduling of what belongs to a path of `priority`; `base` is configured.
pub fn extended(base: i32, priority: u32) -> Scheduling {
    match i32::try_from(priority) {
        Ok(0) => Scheduling::Ordinary,
        Ok(p) => Scheduling::Fifo(p.saturating_mul(2).saturating_add(base).min(HIGHEST)),
        Err(_) => Scheduling::Fifo(HIGHEST),
    }
}

/// Whether thread `tid` is scheduled in real time, as far as Linux tells.
pub fn is_real_time(tid: u32) -> bool {
    crate::sys::scheduler_of(tid)
        .is_ok_and(|policy| matches!(policy & !libc::SCHED_RESET_ON_FORK, libc::SCHED_FIFO | libc::SCHED_RR))
}

/// Schedules thread `tid` (zero: the calling thread) so.
///
/// # Errors
/// `EPERM` without the right to, or in a CPU cgroup without real-time time; `ESRCH` when the
/// thread has ended.
pub fn set(tid: u32, scheduling: Scheduling) -> io::Result<()> {
    let (policy, priority) = match scheduling {
        Scheduling::Ordinary => (libc::SCHED_OTHER, 0),
        Scheduling::First => return silk_device::Schedule::First.set(tid),
        Scheduling::Batch => (libc::SCHED_BATCH, 0),
        Scheduling::Idle => (libc::SCHED_IDLE, 0),
        Scheduling::Fifo(priority) => (libc::SCHED_FIFO, priority),
    };
    crate::sys::set_scheduler(tid, policy, priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_of_paths_become_real_time_ones_and_nought_stays_ordinary() {
        let of = |priority| extended(10, priority);
        assert_eq!([0, 2, 43].map(of), [Scheduling::Ordinary, Scheduling::Fifo(14), Scheduling::Fifo(96)]);
        assert_eq!([44, u32::MAX].map(of), [Scheduling::Fifo(97); 2]);
    }
}
