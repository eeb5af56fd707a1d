//! A thread's number as the daemon has it. A process in a PID namespace of its own, as that of a container, knows its
//! threads by other numbers, and tells those.

use crate::sys;
use std::fs::{self, File};
use std::os::fd::AsFd;

/// Threads that are asked one by one for their numbers, at most: all other programs wait meanwhile.
const ASKED: usize = 1024;

/// That of the calling thread.
pub fn own() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The number, in the daemon's namespace, of the thread that process `pid`, a number of the daemon's, knows as `own`;
/// `None`: it has no such thread.
pub fn find(pid: u32, own: u32) -> Option<u32> {
    let numbers = numbers_of(pid, pid)?;
    if numbers.len() == 1 {
        // In the daemon's own namespace. There are no others, or the kernel does not tell.
        return is_of(pid, own).then_some(own);
    }
    let Ok(namespace) = File::open(format!("/proc/{pid}/ns/pid")) else {
        // It may have more rights than the daemon (ptrace(2), `PTRACE_MODE_READ`).
        return search(pid, own);
    };
    match sys::number_from(namespace.as_fd(), own) {
        // It may be another process's.
        Ok(found) => is_of(pid, found).then_some(found),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
        // A kernel before 6.11.
        Err(_) => search(pid, own),
    }
}

/// The same, where the kernel does not say: of the threads that it has begun last.
fn search(pid: u32, own: u32) -> Option<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut threads: Vec<u32> =
        tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect();
    // It asks for those it has just begun.
    threads.sort_unstable();
    let mut latest = threads.into_iter().rev().take(ASKED);
    latest.find(|thread| numbers_of(pid, *thread).is_some_and(|n| n.last() == Some(&own)))
}

/// Whether a process has this thread; both are numbers of the daemon's.
pub fn is_of(pid: u32, thread: u32) -> bool {
    fs::exists(format!("/proc/{pid}/task/{thread}")).unwrap_or(false)
}

/// A thread's numbers, from the daemon's namespace to its own (`NSpid`, proc_pid_status(5)).
fn numbers_of(pid: u32, thread: u32) -> Option<Vec<u32>> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    Some(line.map_or(vec![thread], |line| line.split_whitespace().filter_map(|n| n.parse().ok()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn in_the_daemons_own_namespace_it_is_the_same() {
        let (pid, tid) = (std::process::id(), own());
        assert_ne!(pid, tid, "tests have threads of their own");
        assert_eq!(find(pid, pid), Some(pid));
        assert_eq!(find(pid, tid), Some(tid));
        assert_eq!(find(pid, 1), None, "another's");
        assert_eq!(find(0, 1), None, "a process that is not to be seen from here");
    }

    #[test]
    fn in_another_it_is_found_by_its_own_number() {
        const TWO: &str = "import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print(*(thread.native_id for thread in threading.enumerate()), flush=True)
time.sleep(60)
";
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "python3", "-c", TWO]);
        let mut inside = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(inside.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", inside.id())).unwrap();
        let pid: u32 = children.trim().parse().unwrap_or(0);
        let own = said.split_whitespace().map(|number| number.parse().unwrap());
        let both = own.chain([4_000_000]).map(|own| (find(pid, own), search(pid, own)));
        let (found, searched): (Vec<_>, Vec<_>) = both.unzip();
        inside.kill().unwrap();
        inside.wait().unwrap();
        if said.is_empty() {
            let _ = writeln!(std::io::stderr(), "SKIPPED, tests nothing: no PID namespace can be made here");
            return;
        }
        assert_eq!(found, searched);
        let [first, second, none] = found[..] else { panic!("{said}") };
        assert_eq!((first, none), (Some(pid), None));
        assert!(second.is_some_and(|second| second != pid), "{second:?}");
    }
}
