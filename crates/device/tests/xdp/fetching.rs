//! Who expects packets fetches them.

use super::*;
use silk_device::Schedule;
use silk_device::busy_poll::BusyPoll;
use std::io::Write;

/// What a line of a thread's status says.
fn status(thread: napi::Thread, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", thread.pid)).unwrap();
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
}

/// How often a thread has fallen asleep.
pub fn sleeps(thread: napi::Thread) -> u64 {
    status(thread, "voluntary_ctxt_switches:").parse().unwrap()
}

/// Whether it waits for packets: until it is started it sleeps in another way.
pub fn is_asleep(thread: napi::Thread) -> bool {
    status(thread, "State:").starts_with('S')
}

#[test]
fn while_somebody_polls_the_receive_thread_sleeps_and_then_brings_packets_again() {
    const PACKETS: usize = 40;
    /// No NAPI has it.
    const NOBODY: u32 = u32::MAX;
    const PAUSE: Duration = Duration::from_millis(2);
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let (mut left, mut device, tables) = open(two_domains());
        tables.own_port(Protocol::Udp, None, PORT);
        let receiver = napi::make_threaded(&device.interface).unwrap()[0];
        let mut right = device.ends.remove(0);
        // Longer than a packet takes to come.
        let mut poll = match BusyPoll::new(NOBODY, 20 * PAUSE, (&right.receive.fds(), &[])) {
            Ok(poll) => poll,
            Err(error) => {
                let why = "SKIPPED, nothing tested: io_uring cannot poll NAPIs here";
                let _ = writeln!(std::io::stderr(), "{why}: {error}");
                return;
            }
        };
        poll.turn_to(receiver.napi).unwrap();
        // Whoever polls must not wait for the processor meanwhile: packets would come that nobody fetches.
        if Schedule::Fifo(1).set(0).is_err() {
            let _ = writeln!(std::io::stderr(), "SKIPPED, nothing tested: no real-time priorities");
            return;
        }
        let before = sleeps(receiver);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..PACKETS {
                    std::thread::sleep(PAUSE);
                    rig::send(&mut left, &rig::datagram(b"fetched"));
                }
            });
            let (mut frames, mut come) = (Vec::new(), 0);
            while come < PACKETS {
                poll.sleep(|_| ()).unwrap();
                right.receive.receive(&mut frames, 64);
                come += frames.drain(..).map(|frame| right.receive.release(frame)).count();
            }
        });
        let woken = sleeps(receiver) - before;
        assert!(
            woken < PACKETS as u64 / 2,
            "the receive thread was woken {woken} times for {PACKETS} packets"
        );
        rig::send(&mut left, &rig::datagram(b"brought"));
        assert_eq!(rig::arrivals(&mut right, 1).len(), 1);
    });
}
