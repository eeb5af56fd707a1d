//! Which queue brings a packet, and which thread polls that.

use super::fetching::{is_asleep, sleeps};
use super::*;

/// The queue among these that something has come by.
fn only(brought: Queues) -> Option<u32> {
    let mut queues = (0..4).filter(|queue| brought.meets(Queues::one(0, *queue)));
    queues.next().filter(|_| queues.next().is_none())
}

#[test]
fn a_packet_wakes_the_thread_of_its_queue_and_no_other() {
    const PACKETS: usize = 20;
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_namespace(|| {
        with_queues();
        let (mut left, mut device, tables) = open(two_domains());
        tables.own_port(Protocol::Udp, None, PORT);
        let threads = napi::make_threaded(&device.interface).unwrap();
        assert_eq!(threads.iter().map(|thread| thread.queue).collect::<Vec<_>>(), [0, 1, 2, 3].map(Some));
        // A thread that is new falls asleep by itself.
        while !threads.iter().all(|thread| is_asleep(*thread)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let ours = &mut device.ends[0];
        let mut seen = Vec::new();
        for flow in 0..20 {
            let before: Vec<_> = threads.iter().map(|thread| sleeps(*thread)).collect();
            let mut packet = rig::datagram(b"of one flow");
            packet[34..36].copy_from_slice(&(10_000u16 + 7 * flow).to_be_bytes());
            for _ in 0..PACKETS {
                rig::send(&mut left, &packet);
                assert_eq!(rig::arrivals(ours, 1).len(), 1);
            }
            let queue = only(ours.receive.brought()).expect("one queue for one flow");
            assert!(ours.receive.brought().is_empty(), "that was asked");
            for (thread, before) in threads.iter().zip(before) {
                let woken = sleeps(*thread) - before;
                let own = thread.queue == Some(queue);
                assert_eq!(own, woken > 0, "queue {queue} woke {thread:?} {woken} times");
            }
            seen.push(queue);
        }
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.len() > 1, "all flows came by queue {seen:?}");
    });
}
