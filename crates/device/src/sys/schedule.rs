//! Where and how a thread runs (sched(7)).

use std::io;
use std::mem::size_of;

use super::check;

/// Lets thread `pid` run on these CPUs only.
pub(crate) fn pin(pid: u32, cpus: &[usize]) -> io::Result<()> {
    // SAFETY: all-zero is a valid cpu_set_t: no CPU.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: `cpu` is inside the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the pointer is to a cpu_set_t of the given size that lives through the call.
    check(unsafe { libc::sched_setaffinity(pid as i32, size_of::<libc::cpu_set_t>(), &raw const set) })?;
    Ok(())
}

/// Runs thread `pid` first in, first out at `priority`; at 0 as an ordinary thread.
pub(crate) fn schedule(pid: u32, priority: i32) -> io::Result<()> {
    let policy = if priority == 0 { libc::SCHED_OTHER } else { libc::SCHED_FIFO };
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a sched_param that lives through the call.
    check(unsafe { libc::sched_setscheduler(pid as i32, policy, &raw const parameters) })?;
    Ok(())
}
