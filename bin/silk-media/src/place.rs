//! Where this thread runs, and how urgently.

use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Keeps the calling thread to a CPU.
///
/// # Errors
/// There is no such CPU, or it may not be used.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    Ok(sched_setaffinity(None, &cpus)?)
}

/// Lets the calling thread run before all ordinary ones (`SCHED_FIFO`).
///
/// # Errors
/// Without the right to: root, or `CAP_SYS_NICE`, outside of CPU cgroups without real-time time.
pub fn be_real_time(priority: u8) -> io::Result<()> {
    let priority = ThreadPriority::try_from(priority).map_err(io::Error::other)?;
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), priority, policy)
        .map_err(|error| io::Error::other(error.to_string()))
}
