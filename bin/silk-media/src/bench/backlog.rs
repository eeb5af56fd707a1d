//! The queue of packets that Linux steers to another CPU, as a host beside floods wants it: long, and no flow may fill
//! it. Both are the machine's settings, which no network namespace has of its own; they are put back
//! afterwards.

use std::fs;

/// The settings, and what they are set to: 20 000 packets, and the limit on CPU 0, by which all packets come.
const SETTINGS: [(&str, &str); 2] =
    [("/proc/sys/net/core/netdev_max_backlog", "20000"), ("/proc/sys/net/core/flow_limit_cpu_bitmap", "1")];

/// The settings are in force while this lives.
pub struct Backlog {
    before: Vec<(&'static str, String)>,
}

impl Backlog {
    /// Sets them. `None` where this machine does not let us, with nothing changed.
    pub fn long() -> Option<Self> {
        let mut backlog = Self { before: Vec::new() };
        for (file, value) in SETTINGS {
            let was = fs::read_to_string(file).ok()?;
            fs::write(file, value).ok()?;
            backlog.before.push((file, was));
        }
        Some(backlog)
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        for (file, was) in &self.before {
            let _ = fs::write(file, was);
        }
    }
}
