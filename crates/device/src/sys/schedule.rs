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

/// Schedules thread `pid` by `policy` at `priority` (0 but for real-time policies), with the
/// `nice` value that ordinary policies look at.
pub(crate) fn schedule(pid: u32, policy: i32, priority: i32, nice: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a sched_param that lives through the call.
    check(unsafe { libc::sched_setscheduler(pid as i32, policy, &raw const parameters) })?;
    // SAFETY: takes and gives nothing but numbers.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, pid, nice) })?;
    Ok(())
}
