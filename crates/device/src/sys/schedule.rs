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

/// What `sched_setattr(2)` takes, in its first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// For ordinary policies the slice, ns (Linux 6.12; earlier ones ignore it): who has a
    /// short one interrupts whoever has a longer one.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Schedules thread `pid` by `policy` at `priority` (0 but for real-time policies), with the
/// `nice` value and the `slice` (ns, 0: the usual one) that ordinary policies look at.
pub(crate) fn schedule(pid: u32, policy: i32, priority: u32, nice: i32, slice: u64) -> io::Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: policy as u32,
        flags: 0,
        nice,
        priority,
        runtime: slice,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the pointer is to attributes of the size they say, which live through the call.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &raw const attributes, 0) as i32 })?;
    Ok(())
}
