//! Who makes receive threads ordinary ones when the daemon is killed. They are the kernel's, and stay as they were made: at a
//! real-time priority, and with nobody any more who lets them step down. So a process of its own waits for the daemon's end, by
//! which the pipe between them is closed. It must never do anything before. Where it is killed itself another takes its place.

use crate::say::say;
use silk_device::netlink::Netlink;
use silk_device::{Schedule, napi};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, sleep};
use std::time::Duration;

/// How long nobody takes the place of one that has ended, so that one that cannot live costs little.
const PAUSE: Duration = Duration::from_millis(500);

/// The heir, as long as the daemon has it; dropping it spares it its duty.
pub struct Heir(Arc<Mutex<Option<Child>>>);

impl Heir {
    /// One for the receive threads of the interfaces with these numbers.
    ///
    /// # Errors
    /// The kernel starts no process, or no thread to wait for its end.
    pub fn of(interfaces: Vec<u32>) -> io::Result<Self> {
        let (child, mut life) = start(&interfaces)?;
        let heir = Self(Arc::new(Mutex::new(Some(child))));
        let present = heir.0.clone();
        let follow = move || {
            while let Some(next) = outlive(life, &interfaces, &present) {
                life = next;
            }
        };
        Builder::new().name("silk-heir".into()).spawn(follow)?;
        Ok(heir)
    }
}

impl Drop for Heir {
    fn drop(&mut self) {
        if let Some(mut heir) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Both fail only when it has ended already.
            let _ = heir.kill();
            let _ = heir.wait();
        }
    }
}

/// Starts one. It has what is given with it as long as it lives.
fn start(interfaces: &[u32]) -> io::Result<(Child, ChildStdout)> {
    let mut heir = Command::new("/proc/self/exe");
    heir.arg("--heir").args(interfaces.iter().map(u32::to_string));
    // Not of the daemon's group: what ends that leaves it.
    let mut child =
        heir.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn()?;
    let life = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    Ok((child, life))
}

/// Waits until the present one has ended, and starts another; none where it was to end.
fn outlive(mut life: ChildStdout, interfaces: &[u32], present: &Mutex<Option<Child>>) -> Option<ChildStdout> {
    // It says nothing: this ends when it does.
    let _ = life.read_to_end(&mut Vec::new());
    let mut is_told = false;
    loop {
        sleep(PAUSE);
        let mut present = present.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = present.as_mut()?.wait();
        match start(interfaces) {
            Ok((child, life)) => {
                *present = Some(child);
                return Some(life);
            }
            Err(error) if !is_told => {
                is_told = true;
                say!(
                    Warning,
                    "silkd: where it is killed now, receive threads will keep their priority: {error}"
                );
            }
            Err(_) => {}
        }
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
