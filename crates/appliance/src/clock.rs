//! What time it is: the machine's clock, or a test's.

use silk_instant::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Says what time it is. Two readings never run backwards.
pub trait Clock: Send {
    /// Now.
    fn now(&self) -> Instant;
}

/// The machine's clock, CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    fn now(&self) -> Instant {
        silk_executor::clock::now()
    }
}

/// Time that stands still unless somebody moves it on: whoever runs a simulation, and what costs
/// time in it (a decoder with recorded costs). Its clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct Virtual(Arc<AtomicU64>);

impl Virtual {
    /// Moves the clock on by `time`.
    pub fn spend(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Moves the clock on to `at`, unless it is later already.
    pub fn reach(&self, at: Instant) {
        self.0.fetch_max(at.nanos(), Ordering::Relaxed);
    }
}

impl Clock for Virtual {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }
}
