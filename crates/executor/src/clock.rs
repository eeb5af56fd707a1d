//! The machine's clock: CLOCK_MONOTONIC, read through the vDSO (19 ns).

use rustix::time::{ClockId, clock_gettime};
use silk_instant::Instant;

/// What time it is. Two readings never run backwards.
pub fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
