//! Where this thread runs, and how urgently.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::sync::OnceLock;
use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// The CPUs that the program had before it kept to one.
static BEFORE: OnceLock<CpuSet> = OnceLock::new();

/// Keeps the calling thread to a CPU.
///
/// # Errors
/// There is no such CPU, or it may not be used.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let before = sched_getaffinity(None)?;
    BEFORE.get_or_init(|| before);
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

/// Takes from the calling thread what it has inherited from one that was given a CPU and a priority: it is an
/// ordinary thread again, and may run wherever the program might.
///
/// # Errors
/// The system refuses.
pub fn be_ordinary() -> io::Result<()> {
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Os(Default::default()), policy)
        .map_err(|error| io::Error::other(error.to_string()))?;
    Ok(BEFORE.get().map_or(Ok(()), |before| sched_setaffinity(None, before))?)
}
