//! How much CPU time a program's thread has used. `clock_gettime` tells that only of our own
//! threads and of whole processes, so it is read from the thread's `schedstat` file, which
//! stays open: 1 µs a reading.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// The CPU time of one thread of any process.
#[derive(Debug)]
pub struct CpuTime {
    tid: u32,
    /// Opened at the first reading: most threads never have a priority.
    file: OnceLock<Option<File>>,
}

impl CpuTime {
    /// That of thread `tid`.
    pub fn of(tid: u32) -> Self {
        Self { tid, file: OnceLock::new() }
    }

    /// Whose it is.
    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// What it has used since it began, ns; `None` when it has ended, or where this kernel
    /// keeps no such account (without `CONFIG_SCHED_INFO`). While the thread runs on another
    /// CPU this may be one tick late.
    pub fn used(&self) -> Option<u64> {
        self.account(0).filter(|nanos| *nanos > 0)
    }

    /// How long it has waited for a CPU since it began, ns; `None` as above.
    pub fn waited(&self) -> Option<u64> {
        self.account(1)
    }

    /// This field of the account.
    fn account(&self, field: usize) -> Option<u64> {
        let open = || File::open(format!("/proc/{}/schedstat", self.tid)).ok();
        let file = self.file.get_or_init(open).as_ref()?;
        let mut text = [0; 64];
        let read = file.read_at(&mut text, 0).ok()?;
        let field = text.get(..read)?.split(|byte| *byte == b' ').nth(field)?;
        std::str::from_utf8(field).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn that_of_another_process_moves_when_it_works_and_ends_with_it() {
        let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let time = CpuTime::of(busy.id());
        let before = loop {
            if let Some(used) = time.used() {
                break used;
            }
        };
        while time.used().unwrap() == before {}
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert_eq!(time.used(), None);
    }

    #[test]
    fn who_sleeps_uses_nothing() {
        let mut asleep = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let time = CpuTime::of(asleep.id());
        let state = format!("/proc/{}/stat", asleep.id());
        while !std::fs::read_to_string(&state).unwrap().contains(") S ") {}
        let before = time.used();
        assert!(before.is_some());
        assert_eq!(time.used(), before);
        drop(asleep.stdin.take());
        asleep.wait().unwrap();
    }

    #[test]
    fn nobody_has_none() {
        assert_eq!(CpuTime::of(u32::MAX >> 2).used(), None);
    }
}
