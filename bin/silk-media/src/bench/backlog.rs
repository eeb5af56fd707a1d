//! The queue of packets that Linux steers to another CPU, as a host beside floods wants it: long, and no flow may fill
//! it. Both are the machine's settings, which no network namespace has of its own.

use silk_device::settings::Settings;
use std::io;
use std::path::Path;

/// 20 000 packets, and the limit on CPU 0, by which all packets come.
const SETTINGS: [(&str, &str); 2] =
    [("/proc/sys/net/core/netdev_max_backlog", "20000"), ("/proc/sys/net/core/flow_limit_cpu_bitmap", "1")];

/// Sets them, as long as what it gives lives.
///
/// # Errors
/// This machine does not let us; nothing is changed then.
pub fn long() -> io::Result<Settings> {
    let mut settings = Settings::default();
    SETTINGS.iter().try_for_each(|(file, value)| settings.set(Path::new(file), value))?;
    Ok(settings)
}
