//! Waiting that a person can end: what was made for an experiment is removed by its guards then, as at the end.

use crate::peers::Process;
use crate::trouble::Trouble;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a wait looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// Lets time pass until `when`, or `stop` is set: whether it was not.
pub fn sleep_until(when: Instant, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = when.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        sleep(left.min(GLANCE));
    }
    false
}

/// Set when somebody wants the program to end, or its terminal has gone. Who started it by nohup does not want that one.
///
/// # Errors
/// Signals cannot be caught.
pub fn interrupted() -> Result<Arc<AtomicBool>, Trouble> {
    let flag = Arc::new(AtomicBool::new(false));
    let hangup = Some(SIGHUP).filter(|signal| !is_ignored(*signal));
    for signal in hangup.into_iter().chain([SIGINT, SIGTERM]) {
        signal_hook::flag::register(signal, flag.clone())
            .map_err(|error| Trouble::Program(format!("signals cannot be caught: {error}")))?;
    }
    Ok(flag)
}

/// Whether this program ignores a signal.
fn is_ignored(signal: i32) -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, signal))
}

/// Reads the mask of the signals that a process ignores (proc(5)). Its lowest bit is signal 1.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Knows whether the program was told to end.
#[derive(Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// One that hears this process's signals: SIGINT, SIGTERM and SIGHUP.
    ///
    /// # Errors
    /// They cannot be caught.
    pub fn on_signals() -> Result<Self, Trouble> {
        interrupted().map(Self)
    }

    /// Fails once the program was told to end.
    ///
    /// # Errors
    /// It was.
    pub fn check(&self) -> Result<(), Trouble> {
        let told = self.0.load(Ordering::Relaxed);
        if told { Err(Trouble::Program("interrupted".into())) } else { Ok(()) }
    }

    /// Lets time pass until `when`.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn wait_until(&self, when: Instant) -> Result<(), Trouble> {
        sleep_until(when, &self.0);
        self.check()
    }

    /// Lets so much time pass.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn pause(&self, time: Duration) -> Result<(), Trouble> {
        self.wait_until(Instant::now() + time)
    }

    /// Waits for the end of a process, at most so long; whether it has ended.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn ends(&self, process: &mut Process, patience: Duration) -> Result<bool, Trouble> {
        let last = Instant::now() + patience;
        loop {
            self.check()?;
            let left = last.saturating_duration_since(Instant::now());
            if process.ends(left.min(GLANCE)) {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_a_process_ignores_is_in_its_mask() {
        let status =
            |mask: &str| format!("Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t{mask}\nSigCgt:\t0\n");
        assert!(ignores(&status("0000000000001001"), SIGHUP));
        assert!(!ignores(&status("0000000000001002"), SIGHUP));
        assert!(ignores(&status("0000000000001002"), SIGINT));
        assert!(!ignores(&status("x"), SIGHUP) && !ignores("", SIGHUP));
    }

    #[test]
    fn a_wait_goes_to_its_end_or_to_the_interruption() {
        let stop = Stop::default();
        let begun = Instant::now();
        stop.pause(Duration::from_millis(20)).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(20));
        let mut process = Process::start(Command::new("sleep").arg("1000")).unwrap();
        assert!(!stop.ends(&mut process, Duration::from_millis(1)).unwrap());
        stop.0.store(true, Ordering::Relaxed);
        assert!(stop.pause(Duration::from_secs(1000)).is_err());
        assert!(stop.ends(&mut process, Duration::from_secs(1000)).is_err());
    }
}
