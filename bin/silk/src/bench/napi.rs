//! Linux with the receive processing that silk uses: a threaded NAPI, pinned to the server's CPU, instead
//! of receive packet steering. It is a second Linux to compare with, so that nobody need wonder how much
//! of a difference comes from there.

use super::Failure;
use super::cpus::SERVER_CPU;
use super::stage::Stage;
use silk_testkit::netns::{INTERFACE, output};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// Turns steering off and the threaded NAPI on, on the server's interface. A veth has a NAPI while it
/// aggregates received packets (GRO) or has an XDP program; it uses the former only for packets of a
/// peer without segmentation offload, and else receives on the sender's CPU: without charging the server.
pub fn receive_in_thread(stage: &Stage) -> Result<(), Failure> {
    let server = &stage.rig.server;
    let others = threads();
    server.set(&format!("/sys/class/net/{INTERFACE}/queues/rx-0/rps_cpus"), "0")?;
    server.run("ethtool", ["-K", INTERFACE, "gro", "on"])?;
    stage.rig.client.run("ethtool", ["-K", INTERFACE, "tso", "off"])?;
    server.set(&format!("/sys/class/net/{INTERFACE}/threaded"), "1")?;
    for thread in threads().difference(&others) {
        output(Command::new("taskset").args(["-pc", SERVER_CPU, &thread.to_string()]))?;
    }
    Ok(())
}

/// The kernel's threads that poll interfaces of that name, of any host on this machine.
pub fn threads() -> BTreeSet<u32> {
    let name = format!("napi/{INTERFACE}-");
    let polls = |process: &u32| {
        fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|comm| comm.starts_with(&name))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(polls).collect()
}
