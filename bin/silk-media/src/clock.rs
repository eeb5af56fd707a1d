//! The clocks that the player reads: CPU time of this thread and of others' processes.

use rustix::time::{ClockId, clock_gettime};
use silk_appliance::{Clock, Monotonic};
use silk_instant::Instant;
use std::time::Duration;

/// What time it is.
pub fn now() -> Instant {
    Monotonic.now()
}

/// CPU time that this thread has used.
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec as u32)
}
