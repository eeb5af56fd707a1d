//! CPUs that do not halt. On a virtual machine an interrupt for a CPU that has halted goes through the
//! host: it costs 40 to 120 µs, and now and then several milliseconds, whatever system is measured. An
//! experiment that crosses between two CPUs for each packet would measure little else.

use super::output::say;
use std::fs::{self, File};
use std::io::Write;

/// The kernel keeps every CPU polling while it is asked for wake-ups without latency here (PM QoS).
const LATENCY: &str = "/dev/cpu_dma_latency";

/// Who decides how a CPU idles, and knows of such wishes; `none` where the kernel knows no way but to halt, whatever is asked.
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

/// While this lives, idle CPUs poll. The kernel ends it with the process, however that ends.
#[derive(Debug)]
pub struct Awake {
    _request: File,
}

impl Awake {
    /// Asks for it; `None` where this machine does not let us, as without root, or does not heed it.
    pub fn hold() -> Option<Self> {
        if fs::read_to_string(DRIVER).is_ok_and(|driver| driver.trim() == "none") {
            say(
                &"note: CPUs halt when they are idle, and this kernel has no driver to keep them from it: waking them is part of all figures",
            );
            return None;
        }
        let mut request = File::options().write(true).open(LATENCY).ok()?;
        request.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(Self { _request: request })
    }
}
