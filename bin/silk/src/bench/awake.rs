//! CPUs that do not halt. On a virtual machine an interrupt for a CPU that has halted goes through the
//! host: it costs 40 to 120 µs, and now and then several milliseconds, whatever system is measured. An
//! experiment that crosses between two CPUs for each packet would measure little else.

use std::fs::File;
use std::io::Write;

/// The kernel keeps every CPU polling while it is asked for wake-ups without latency here (PM QoS).
const LATENCY: &str = "/dev/cpu_dma_latency";

/// While this lives, idle CPUs poll. The kernel ends it with the process, however that ends.
#[derive(Debug)]
pub struct Awake {
    _request: File,
}

impl Awake {
    /// Asks for it; `None` where this machine does not let us, as without root.
    pub fn hold() -> Option<Self> {
        let mut request = File::options().write(true).open(LATENCY).ok()?;
        request.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(Self { _request: request })
    }
}
