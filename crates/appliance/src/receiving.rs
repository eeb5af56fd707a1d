//! Who does the receive work of an appliance's interface: whatever CPU the packets come by, or the
//! appliance's own CPUs, which then pay for all they receive. Where the driver has threads for it
//! (threaded NAPI), these are the interrupt of the appliance and come before it: what they only drop must not
//! wait behind what they are to deliver. On a veth Linux steers the packets to the CPUs instead, whose queue is as
//! long as the machine says: a veth's own keeps 256 packets, too few for a flood while a hypervisor has the CPU.

use rustix::thread::sched_getaffinity;
use silk_device::Schedule;
use silk_device::napi::{self, NapiError, Thread};
use silk_device::netlink::Interface;
use silk_device::steering::Steering;
use silk_device::xdp::Mode;

/// The receive work on the appliance's own CPUs while this lives; as it was when it goes.
#[derive(Debug)]
pub enum Receiving {
    /// By threads of the kernel's.
    Threads(Threads),
    /// In softirqs, steered there.
    Steered(Steering),
}

/// Threads that do the receive work, ordinary ones again when this goes.
#[derive(Debug)]
pub struct Threads(Vec<Thread>);

impl Receiving {
    /// Where the XDP program has to run for this.
    #[must_use]
    pub fn mode(interface: &Interface) -> Mode {
        if interface.veth { Mode::Generic } else { Mode::Best }
    }

    /// Has the interface's receive work done on the CPUs that this thread may run on, by threads scheduled like
    /// this where it has some.
    ///
    /// # Errors
    /// Why the kernel refuses, and what to do, as a sentence.
    pub fn start(interface: &Interface, schedule: Schedule) -> Result<Self, String> {
        let cpus = own_cpus();
        if interface.veth {
            if cpus.is_empty() {
                return Err(
                    "the kernel does not say on which CPUs this runs, so packets cannot be steered there"
                        .into(),
                );
            }
            let steering = Steering::start(interface, &cpus);
            return steering.map(Self::Steered).map_err(|error| error.to_string());
        }
        Threads::start(interface, schedule, &cpus).map(Self::Threads).map_err(|error| error.to_string())
    }
}

impl Threads {
    fn start(interface: &Interface, schedule: Schedule, cpus: &[usize]) -> Result<Self, NapiError> {
        let threads = Self(napi::make_threaded(interface)?);
        for thread in &threads.0 {
            if !cpus.is_empty() {
                thread.pin(cpus)?;
            }
            thread.schedule(schedule)?;
        }
        Ok(threads)
    }
}

impl Drop for Threads {
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
