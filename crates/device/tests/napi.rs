//! The receive work of an interface in threads of its own.

mod rig;

use std::process::Command;

use silk_device::Schedule;
use silk_device::napi::{self, NapiError, Thread};
use silk_device::netlink::Netlink;
use silk_device::xdp;

/// What `chrt` and `taskset` of util-linux say about a thread.
fn said(program: &str, thread: Thread) -> String {
    let done = Command::new(program).args(["-p", &thread.pid.to_string()]).output().expect("util-linux");
    String::from_utf8(done.stdout).expect("text")
}

#[test]
fn the_receive_work_can_be_placed() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let right = Netlink::open().unwrap().interface("right").unwrap();
        let error = napi::make_threaded(&right).unwrap_err();
        assert!(matches!(error, NapiError::None { .. }), "{error}");

        let device = xdp::open("right", &xdp::Options { ring: 64, ..xdp::Options::default() }).unwrap();
        assert_eq!(napi::threads(&right).unwrap(), []);
        let threads = napi::make_threaded(&device.interface).unwrap();
        assert_eq!(threads.len(), 1);
        assert_eq!(threads[0].queue, Some(0));
        assert_eq!(napi::threads(&right).unwrap(), threads);
        let left = Netlink::open().unwrap().interface("left").unwrap();
        assert_eq!(napi::threads(&left).unwrap(), []);

        threads[0].pin(&[0]).unwrap();
        threads[0].schedule(Schedule::Fifo(7)).unwrap();
        assert!(said("taskset", threads[0]).trim_end().ends_with(": 1"), "one bit: CPU 0");
        let chrt = said("chrt", threads[0]);
        assert!(chrt.contains("SCHED_FIFO") && chrt.trim_end().ends_with(": 7"), "{chrt}");
        for (schedule, nice) in [(Schedule::Batch, "-20"), (Schedule::Fair, "0")] {
            threads[0].schedule(schedule).unwrap();
            assert!(said("chrt", threads[0]).contains("SCHED_BATCH"));
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", threads[0].pid)).unwrap();
            // Behind the name, which may have spaces; proc(5) counts from 1.
            let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
            assert_eq!(fields[19 - 3], nice, "{schedule:?}: {stat}");
        }
        threads[0].schedule(Schedule::Last).unwrap();
        assert!(said("chrt", threads[0]).contains("SCHED_IDLE"));
        threads[0].schedule(Schedule::First).unwrap();
        assert!(said("chrt", threads[0]).contains("SCHED_OTHER"));
        assert!(threads[0].pin(&[100_000]).is_err());
    });
}
