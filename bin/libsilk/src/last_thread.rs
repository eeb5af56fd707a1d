//! Whether a process ends with the thread that calls `exit(2)`, the system call, which ends that thread alone. Nothing else of the C
//! library's or of ours runs then.

use std::fs;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Flag of a thread that has begun to end (`PF_EXITING`; proc_pid_stat(5)).
const ENDS: u32 = 4;

/// The kernel's number of this process.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// At load, and in a forked child: who this process is.
pub fn begin() {
    PROCESS.store(std::process::id(), Relaxed);
}

/// Whether the calling thread is the last of the process. Where that is not to be seen (no `/proc`) it is taken to go on. Of two that
/// end at once neither is.
pub fn is_here() -> bool {
    // A child that shares its parent's memory, and is to execute something, is another process, and has none of its parent's sockets.
    std::process::id() == PROCESS.load(Relaxed) && has_no_others().unwrap_or(false)
}

fn has_no_others() -> Option<bool> {
    // SAFETY: takes nothing and cannot fail.
    let own = unsafe { libc::gettid() }.to_string();
    for task in fs::read_dir("/proc/self/task").ok()? {
        let name = task.ok()?.file_name();
        // One that is gone since does not go on.
        let goes_on = || fs::read_to_string(format!("/proc/self/task/{}/stat", name.to_str()?)).ok();
        if name != *own && goes_on().is_some_and(|stat| !ends(&stat)) {
            return Some(false);
        }
    }
    Some(true)
}

/// Whether a thread ends, by its `stat`: its flags are seven fields behind its name, which is in brackets.
fn ends(stat: &str) -> bool {
    let flags = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(6)?.parse::<u32>().ok());
    flags.is_some_and(|flags| flags & ENDS != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_says_so_in_its_flags() {
        assert!(!ends("7 (a) b) S 1 7 7 0 -1 4194560 0"));
        assert!(ends("7 (a) b) Z 1 7 7 0 -1 4194564 0"));
    }

    #[test]
    fn who_has_others_beside_it_is_not_the_last() {
        begin();
        let (told, waits) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || waits.recv());
        assert!(!is_here());
        drop(told);
        assert!(other.join().is_ok_and(|heard| heard.is_err()));
    }
}
