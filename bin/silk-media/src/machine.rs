//! What an experiment ran on, in a few words.

use silk_testkit::netns::output;
use std::process::Command;
use std::{fs, thread};

/// Processors, kernel, decoder library, and the time. What cannot be found out is left out.
pub fn described() -> Vec<String> {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let cpu = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let count = thread::available_parallelism().map_or(1, usize::from);
    let date = output(Command::new("date").arg("+%Y-%m-%d %H:%M")).unwrap_or_default();
    vec![
        format!("{count} × {}", cpu.map_or("a processor", |(_, name)| name)),
        format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
        format!("libavcodec {}", crate::avcodec::version()),
        date.trim().to_owned(),
    ]
}
