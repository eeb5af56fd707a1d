//! Who makes receive threads ordinary ones when the daemon is killed. They are the kernel's, and stay as they were made: at a
//! real-time priority, and with nobody any more who lets them step down. So a process of its own waits for the daemon's end, by
//! which the pipe between them is closed. It must never do anything before.

use silk_device::Schedule;
use silk_device::napi;
use silk_device::netlink::Netlink;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The heir, as long as the daemon has it; dropping it spares it its duty.
pub struct Heir(Child);

impl Heir {
    /// One for the receive threads of the interfaces with these numbers.
    ///
    /// # Errors
    /// The kernel starts no process.
    pub fn of(interfaces: &[u32]) -> io::Result<Self> {
        let mut heir = Command::new("/proc/self/exe");
        heir.arg("--heir").args(interfaces.iter().map(u32::to_string));
        // Not of the daemon's group: what ends that leaves it.
        heir.stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map(Self)
    }
}

impl Drop for Heir {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the heir does: waits for the daemon's end, and makes the threads ordinary ones.
pub fn inherit(interfaces: &[u32]) {
    // Nor does it end by what is to end a service's processes.
    let _signals = crate::sys::signals();
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let Ok(mut netlink) = Netlink::open() else { return };
    for interface in interfaces.iter().filter_map(|index| netlink.interface_at(*index).ok()) {
        let threads = napi::threads(&interface).unwrap_or_default();
        threads.into_iter().for_each(|thread| _ = thread.schedule(Schedule::Other));
    }
}
