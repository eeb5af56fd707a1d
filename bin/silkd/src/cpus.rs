//! Which CPUs this machine has: a configuration may name others, of which the kernel says no more than "invalid argument".

/// What to tell beside what the kernel said of a CPU that was asked for.
pub fn those_there_are() -> String {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    format!("the CPUs here are {}", if online.is_empty() { "not known" } else { online.trim_end() })
}
