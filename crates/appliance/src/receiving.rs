//! Who does the receive work of an appliance's interface: whatever CPU the packets come by, or threads of
//! the kernel on the appliance's own CPUs (threaded NAPI), which then pays for all it receives.
//! They are the interrupt of the appliance and come before it: what they only drop must not wait behind
//! what they are to deliver.

use rustix::thread::sched_getaffinity;
use silk_device::napi::{self, NapiError, Schedule, Thread};
use silk_device::netlink::Interface;

/// Threads that do the receive work while this lives; ordinary ones again when it goes.
#[derive(Debug)]
pub struct Receiving(Vec<Thread>);

impl Receiving {
    /// Has the interface's receive work done by threads on the CPUs that this one may run on, scheduled
    /// like this.
    ///
    /// # Errors
    /// The interface has no threads, or the kernel refuses.
    pub fn start(interface: &Interface, schedule: Schedule) -> Result<Self, NapiError> {
        let threads = Self(napi::make_threaded(interface)?);
        let cpus = own_cpus();
        for thread in &threads.0 {
            if !cpus.is_empty() {
                thread.pin(&cpus)?;
            }
            thread.schedule(schedule)?;
        }
        Ok(threads)
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        for thread in &self.0 {
            // One that is gone went with the interface.
            let _ = thread.schedule(Schedule::Other);
        }
    }
}

/// The CPUs that this thread may run on; none where the kernel does not say.
fn own_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}
