//! Which CPU the benchmarks run on: one and the same, where Linux lets them choose.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs this thread may run on.
fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// The CPUs this process might run on when nothing had been chosen yet.
static AT_FIRST: std::sync::OnceLock<Vec<usize>> = std::sync::OnceLock::new();

/// Keeps this thread to the last CPU it may run on, the first being the one that devices like to
/// interrupt; `None` where it may not choose.
pub fn pin() -> Option<usize> {
    let last = *AT_FIRST.get_or_init(allowed).last()?;
    keep_to(last).then_some(last)
}

/// Lets this thread run where it might at first.
pub fn release() {
    keep_to_any(AT_FIRST.get_or_init(allowed));
}

/// A CPU for another thread beside this one; `None` where there is one CPU for both.
pub fn other() -> Option<usize> {
    let [first, .., _] = AT_FIRST.get_or_init(allowed)[..] else { return None };
    Some(first)
}

/// The CPUs that the benchmarks use: that which they keep to and that of the other thread, or any that they might.
pub fn used(pinned: Option<usize>) -> Vec<usize> {
    match pinned {
        Some(cpu) => other().into_iter().chain([cpu]).collect(),
        None => AT_FIRST.get_or_init(allowed).clone(),
    }
}

/// Keeps this thread to a CPU; answers whether that was allowed.
pub fn keep_to(cpu: usize) -> bool {
    keep_to_any(&[cpu])
}

fn keep_to_any(cpus: &[usize]) -> bool {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    sched_setaffinity(None, &set).is_ok()
}
