//! A peer's process, looked at from outside: whether it has opened its port, whether it has ended, and
//! its CPU time, which can still be read of one that has ended as long as nobody has waited for it.

use crate::trouble::Trouble;
use silk_testkit::netns::{Running, signal};
use std::fs;
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A process; killed when this is dropped.
#[derive(Debug)]
pub struct Process(Running);

impl Process {
    /// Starts the command. It must become the program itself, without anything in between.
    pub fn start(command: &mut Command) -> Result<Self, Trouble> {
        Running::start(command).map(Self).map_err(|error| Trouble::Program(error.to_string()))
    }

    /// Waits until it has a UDP socket on `port`, at most so long. Not if it ends before.
    pub fn opens(&mut self, port: u16, patience: Duration) -> bool {
        let files = ["udp", "udp6"].map(|name| format!("/proc/{}/net/{name}", self.0.id()));
        let open = |file: &String| fs::read_to_string(file).is_ok_and(|text| has_port(&text, port));
        until(patience, || self.has_ended() || files.iter().any(open)) && !self.has_ended()
    }

    /// Waits for its end, at most so long.
    pub fn ends(&mut self, patience: Duration) -> bool {
        until(patience, || self.has_ended())
    }

    /// How it ended, or `None` while it runs. Who asks that can no longer ask for its CPU time.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.ended()
    }

    /// Asks it to end as a person would.
    pub fn interrupt(&self) {
        signal(&[self.0.id()], "INT");
    }

    /// CPU time of all its threads so far.
    pub fn cpu(&self) -> Option<Duration> {
        self.stat().map(|stat| stat.cpu)
    }

    fn has_ended(&self) -> bool {
        self.stat().is_none_or(|stat| stat.ended)
    }

    fn stat(&self) -> Option<Stat> {
        parse(&fs::read_to_string(format!("/proc/{}/stat", self.0.id())).ok()?)
    }
}

pub fn until(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > patience {
            return false;
        }
        sleep(Duration::from_millis(5));
    }
    true
}

/// What is read of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    ended: bool,
    cpu: Duration,
}

/// Reads `/proc/PID/stat` (proc(5)): behind the name in parentheses the state is the first field, time
/// in user and in system mode the twelfth and thirteenth, in ticks.
fn parse(text: &str) -> Option<Stat> {
    let (_, behind) = text.rsplit_once(')')?;
    let fields: Vec<&str> = behind.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let used = ticks(11)?.checked_add(ticks(12)?)?;
    let cpu = Duration::from_secs_f64(used as f64 / rustix::param::clock_ticks_per_second() as f64);
    Some(Stat { ended: matches!(fields[0], "Z" | "X"), cpu })
}

/// Whether a table like `/proc/net/udp` has a socket on `port`.
fn has_port(table: &str, port: u16) -> bool {
    let ends = format!(":{port:04X}");
    table
        .lines()
        .skip(1)
        .any(|line| line.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&ends)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_can_still_be_asked_for_its_time() {
        let mut process = Process::start(Command::new("sh").args(["-c", "exit 3"])).unwrap();
        assert!(process.ends(Duration::from_secs(60)));
        assert!(process.cpu().is_some());
    }

    #[test]
    fn a_process_is_read_behind_its_name_whatever_that_is() {
        let line = "41 (a) b) (c) Z 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1";
        assert_eq!(parse(line), Some(Stat { ended: true, cpu: Duration::from_secs(2) }));
        assert_eq!(parse("41 (sh"), None);
        assert_eq!(parse("41 (sh) R 1"), None);
    }

    #[test]
    fn a_port_is_found_in_the_kernels_table() {
        let table = "  sl  local_address rem_address\n 22: 00000000:138C 00000000:0000 07\n";
        assert!(has_port(table, 5004));
        assert!(!has_port(table, 5005));
    }
}
