//! The kernel's thread that polls a queue: where it is to run, and whether it is there still. That of a veth ends when its
//! interface goes down. Its number may then be anybody's, so nothing is done to it any more; once the interface is up again
//! another is made to take its place.

use crate::threads::cpu_time::CpuTime;
use silk_device::Schedule;
use silk_device::napi::{self, NapiError, Thread};
use silk_device::netlink::Interface;
use std::time::Duration;

/// How often it is looked who has taken the place of a thread that has ended, and how often one is scheduled anew as it was left.
const AGAIN: Duration = Duration::from_millis(500);

/// Where receive threads are.
#[derive(Clone, Debug)]
pub struct Place {
    /// The number of their device.
    pub number: u32,
    /// The interface.
    pub interface: Interface,
    /// The CPU that they are to run on; none: on any.
    pub cpu: Option<usize>,
}

impl Place {
    /// Moves the interface's receive work to threads of its own, where they are to run.
    ///
    /// # Errors
    /// There is none, or the kernel refuses.
    pub fn threads(&self) -> Result<Vec<Thread>, NapiError> {
        let threads = napi::make_threaded(&self.interface)?;
        self.cpu.map_or(Ok(()), |cpu| threads.iter().try_for_each(|thread| thread.pin(&[cpu])))?;
        Ok(threads)
    }
}

/// The thread that polls a queue at present, or did so last.
pub struct Current {
    thread: Thread,
    time: CpuTime,
    /// The kernel tells of it, as long as it is there.
    told: bool,
    /// How long it has been known that it is not there; none: it was, at the last look.
    missing: Option<Duration>,
    /// How long nobody has looked whether it is still scheduled as it was left.
    unseen: Duration,
}

impl Current {
    /// This one, which is there.
    pub fn new(thread: Thread) -> Self {
        let time = CpuTime::of(thread.pid);
        let told = time.waited().is_some();
        Self { thread, time, told, missing: None, unseen: Duration::ZERO }
    }

    /// Its numbers.
    pub fn thread(&self) -> Thread {
        self.thread
    }

    /// What it has used of the CPU, ns.
    pub fn used(&self) -> Option<u64> {
        self.time.used()
    }

    /// Has it scheduled so, unless it has ended. (The first time that was allowed.) Executors ask for it in the middle of their
    /// work, so the kernel is not asked here whether it is there.
    pub fn schedule(&self, schedule: Schedule) {
        if self.missing.is_none() {
            let _ = self.thread.schedule(schedule);
        }
    }

    /// Whether it is to be scheduled anew as it was left, in case another process has scheduled it otherwise; `passed` since the
    /// question was last asked.
    pub fn is_to_be_scheduled_again(&mut self, passed: Duration) -> bool {
        self.unseen += passed;
        let is_time = self.unseen >= AGAIN;
        if is_time {
            self.unseen = Duration::ZERO;
        }
        is_time
    }

    /// Looks whether it is there; `passed` since the last look. Whether it is to be found now who has taken its place.
    pub fn is_to_be_replaced(&mut self, passed: Duration) -> bool {
        if !self.told || self.time.waited().is_some() {
            return false;
        }
        let missing = self.missing.map_or(Duration::ZERO, |missing| missing + passed);
        let is_time = missing >= AGAIN;
        self.missing = Some(if is_time { Duration::ZERO } else { missing });
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_thread_that_has_ended_is_looked_at_now_and_then() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let mut current = Current::new(Thread { napi: 1, pid: child.id(), queue: Some(0) });
        assert!(!current.is_to_be_replaced(AGAIN));
        assert_eq!(current.missing, None);
        child.kill().unwrap();
        child.wait().unwrap();
        let looks = [AGAIN; 4].map(|passed| current.is_to_be_replaced(passed));
        assert_eq!(looks, [false, true, true, true], "it may have ended just before the first");
        assert!(!current.is_to_be_replaced(AGAIN / 2));
    }
}
