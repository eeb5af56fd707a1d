//! Real paths over a device with faults, in real time: two hosts, a connection between them, and a line
//! on which frames are lost, late, out of order, twice and wrong. Both sleep on their descriptors alone.

mod host;
#[allow(dead_code, reason = "the rig of the modules' tests has more uses for it")]
#[path = "../../../modules/tests/rig/stream.rs"]
mod stream;
mod world;

use host::{Host, at};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use silk_device::{End, link};
use silk_executor::clock;
use silk_modules::Device;
use silk_path::Bell;
use silk_testkit::emulator::{Conditions, Loss};
use silk_testkit::faults::{Faulty, Line};
use std::time::Duration;

/// Nothing here takes so long; nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(60);

fn weather() -> Conditions {
    Conditions {
        loss: Loss::random(0.02),
        duplicate: 0.02,
        corrupt: 0.02,
        delay: Duration::from_millis(1),
        jitter: Duration::from_millis(1),
        reorder: 0.05,
        reorder_by: Duration::from_millis(2),
        ..Conditions::default()
    }
}

/// An end on which frames arrive in this weather, and the line they come over.
fn exposed(End { receive, transmit }: End, seed: u64) -> (End, Line) {
    let faulty = Faulty::new(receive, &weather(), seed).unwrap();
    let line = faulty.line();
    (End { receive: faulty.boxed(), transmit }, line)
}

/// What somebody sends: no two parts of it are alike.
fn octets(seed: u32) -> Vec<u8> {
    (0..100_000u32).flat_map(|n| n.wrapping_mul(seed).to_be_bytes()).collect()
}

/// Lets both run until `enough`; when neither has anything to do they sleep.
fn run_until(hosts: &mut [Host; 2], mut enough: impl FnMut(&[Host; 2]) -> bool) {
    while !enough(hosts) {
        let busy = hosts.each_mut().map(Host::turn);
        if busy == [false; 2] {
            sleep(hosts);
        }
    }
}

fn sleep(hosts: &[Host; 2]) {
    let mut ready = hosts.each_ref().map(|host| PollFd::from_borrowed_fd(host.fd(), PollFlags::IN));
    let due = hosts.iter().filter_map(Host::due).min();
    let most = due.map_or(PATIENCE, |due| due.since(clock::now()));
    let woken = poll(&mut ready, Some(&Timespec::try_from(most).unwrap())).unwrap();
    assert!(woken > 0 || due.is_some(), "both sleep for good");
}

/// Both send at once, and close.
fn converse(device: Device) {
    let (left, right) = link::pair(&link::Options::default()).unwrap();
    let ((left, there), (right, back)) = (exposed(left, 3), exposed(right, 4));
    let mut hosts = [Host::new(1, left, device), Host::new(2, right, device)];
    hosts[1].listen(at(2, 80), 256);
    hosts[0].connect(at(1, 5000), at(2, 80));
    run_until(&mut hosts, |[_, server]| !server.connections.is_empty());
    let (question, answer) = (octets(0x9e37_79b1), octets(0x85eb_ca77));
    let [client, server] = hosts.each_ref().map(|host| host.connections[0].1.clone());
    client.write(&question);
    server.write(&answer);
    hosts.iter_mut().for_each(|host| host.ring(Bell::Sent));
    let (mut heard, mut told) = (Vec::new(), Vec::new());
    run_until(&mut hosts, |_| {
        heard.extend(server.read());
        told.extend(client.read());
        heard.len() >= question.len() && told.len() >= answer.len()
    });
    assert!(heard == question && told == answer, "every byte, once and in order");
    hosts.iter_mut().for_each(|host| host.ring(Bell::Close));
    run_until(&mut hosts, |hosts| !hosts.iter().any(Host::is_connected));
    for line in [there, back] {
        let counts = line.counts();
        assert!(
            counts.lost.min(counts.duplicated).min(counts.corrupted).min(counts.held_back) > 0,
            "{counts}"
        );
    }
}

#[test]
fn a_conversation_over_a_device_with_faults_arrives_byte_for_byte() {
    converse(Device::default());
}

/// The device sums and cuts; it is the packets that meet the weather.
#[test]
fn so_it_does_where_the_device_has_messages_to_cut() {
    converse(Device { gso: 65_535, checksum_offload: true, ..Device::default() });
}

#[test]
fn what_finds_a_queue_full_is_counted_once_and_by_its_path() {
    let (left, right) = link::pair(&link::Options::default()).unwrap();
    let mut hosts = [Host::new(1, left, Device::default()), Host::new(2, right, Device::default())];
    let listening = hosts[1].listen(at(2, 80), 3);
    (5000..5008).for_each(|port| hosts[0].connect(at(1, port), at(2, 80)));
    while hosts[0].turn() {}
    while hosts[1].receive(clock::now()) {}
    assert_eq!(hosts[1].overflow(listening), [5, 0]);
}
