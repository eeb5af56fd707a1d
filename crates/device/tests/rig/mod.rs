//! A network namespace for one test, and packets to send through it. The namespace goes away
//! with the thread that lives in it, however that ends.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use silk_device::{End, Frame, Offload, Tables, readable};
use silk_path::classify::{Store32, Store64};
use silk_wire::checksum::{self, Sum};
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

/// Held by the one test that opens devices at present. A child that another test forks has all
/// descriptors until it runs its program, so a device that was just closed would still be taken.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs the test in a fresh network namespace, with the veth pair `left` and `right`, both up
/// and without addresses; what is sent arrives. Without root it says that it does nothing.
pub fn with_veth(test: impl FnOnce() + Send + 'static) {
    with_namespace(|| {
        ip("link add left type veth peer name right");
        up();
        test();
    });
}

/// The classifier in user space over a device's tables, whose seeds and virtual LANs are there already.
pub fn classifier(words: &Tables) -> silk_path::classify::Tables {
    silk_path::classify::Tables::from_words(
        Store64::Lent(words.flows),
        Store64::Lent(words.homes),
        Store32::Lent(words.ports),
        Store64::Lent(words.rules),
        Store64::Lent(words.refused),
        Store64::Lent(words.settings),
        Store64::Lent(words.discards),
    )
    .expect("the device's tables have the layout's sizes")
}

/// Brings both ends of the pair up.
pub fn up() {
    ip("link set left up");
    ip("link set right up");
    // Linux takes note of the carrier later, by a work of its own, and until then drops what is sent without a
    // word (the discipline `noop`). It does it before it answers a question about the link (`rtnl_getlink`).
    ip("link show left");
    ip("link show right");
}

/// Runs the test in a fresh network namespace, when no other test of this program has one.
pub fn with_namespace(test: impl FnOnce() + Send + 'static) {
    let run = move || {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS) {
            say(&format!("SKIPPED, nothing tested: a network namespace needs root ({error})"));
            return;
        }
        let none: Option<&str> = None;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("private mounts");
        mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none).expect("this namespace's /sys");
        // Linux itself must stay silent, or its neighbour discovery would be received.
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").expect("IPv6 off");
        test();
    };
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let done = std::thread::spawn(run).join();
    drop(alone);
    if let Err(panic) = done {
        std::panic::resume_unwind(panic);
    }
}

/// Whether this is root of the whole machine, who may load BPF programs and open taps, and
/// not of a user namespace. If not, it says that nothing is tested.
pub fn root_of_the_machine() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    if !whole {
        say("SKIPPED, nothing tested: it needs root of the machine, not of a user namespace");
    }
    whole
}

/// Says it past the test runner, which hides what passing tests print.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Runs `ip` with the words of `arguments`.
pub fn ip(arguments: &str) {
    run("ip", arguments);
}

/// Runs a program with the words of `arguments`.
pub fn run(program: &str, arguments: &str) {
    let done = Command::new(program).args(arguments.split(' ')).output().expect("it is installed");
    assert!(done.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The same frame with the tag of a virtual LAN; with 0 as it is.
pub fn on_vlan(frame: &[u8], vlan: u16) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if vlan != 0 {
        frame.splice(12..12, [[0x81, 0], vlan.to_be_bytes()].concat());
    }
    frame
}

pub const LEFT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const PORT: u16 = 7;
pub const IP: usize = 14;
pub const TRANSPORT: usize = 34;
pub const PAYLOAD: usize = 42;

/// A UDP packet from [`LEFT`] to [`RIGHT`]'s [`PORT`], its checksums complete.
pub fn datagram(payload: &[u8]) -> Vec<u8> {
    let mut packet = unsummed(17, &[0x30, 0x39, 0, PORT as u8, 0, 0, 0, 0], payload);
    let len = (packet.len() - TRANSPORT) as u16;
    packet[TRANSPORT + 4..TRANSPORT + 6].copy_from_slice(&len.to_be_bytes());
    let sum = pseudo(&packet).bytes(&packet[TRANSPORT..]).checksum();
    packet[TRANSPORT + 6..TRANSPORT + 8].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// The same with the checksum left to the device.
pub fn unsummed_datagram(payload: &[u8]) -> (Vec<u8>, Offload) {
    let mut packet = datagram(payload);
    let sum = pseudo(&packet).folded();
    packet[TRANSPORT + 6..TRANSPORT + 8].copy_from_slice(&sum.to_be_bytes());
    (packet, Offload::checksum(TRANSPORT as u16, 6))
}

/// The headers of a TCP message from [`LEFT`] to [`RIGHT`]'s [`PORT`] that is to be cut.
pub fn tcp_headers(payload_len: usize, size: u16) -> (Vec<u8>, Offload) {
    let tcp = [0x30, 0x39, 0, PORT as u8, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0];
    let mut headers = unsummed(6, &tcp, &[]);
    let total = (20 + 20 + payload_len) as u16;
    headers[IP + 2..IP + 4].copy_from_slice(&total.to_be_bytes());
    sum_ip(&mut headers);
    let sum = checksum::pseudo(LEFT, RIGHT, 6, total - 20).folded();
    headers[TRANSPORT + 16..TRANSPORT + 18].copy_from_slice(&sum.to_be_bytes());
    (headers, Offload::tcp4(size, TRANSPORT as u16, TRANSPORT as u16 + 20))
}

fn unsummed(protocol: u8, transport: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let total = (20 + transport.len() + payload.len()) as u16;
    let [high, low] = total.to_be_bytes();
    packet.extend([0x45, 0, high, low, 0, 1, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend(LEFT.octets());
    packet.extend(RIGHT.octets());
    packet.extend_from_slice(transport);
    packet.extend_from_slice(payload);
    sum_ip(&mut packet);
    packet
}

fn sum_ip(packet: &mut [u8]) {
    packet[IP + 10..IP + 12].fill(0);
    let sum = Sum::ZERO.bytes(&packet[IP..TRANSPORT]).checksum();
    packet[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
}

/// The pseudo-header's sum of a packet made here.
pub fn pseudo(packet: &[u8]) -> Sum {
    checksum::pseudo(LEFT, RIGHT, packet[IP + 9], (packet.len() - TRANSPORT) as u16)
}

/// Gives silk [`PORT`] of [`RIGHT`], for TCP and UDP, with `domain` as the default domain.
pub fn own_port(tables: &Tables, domain: u32) {
    tables.settings[2].store(u32::from_le_bytes(RIGHT.octets()).into(), Ordering::Relaxed);
    tables.ports[usize::from(PORT)].store(1 | 1 << 16, Ordering::Relaxed);
    tables.settings[0].store(1 << 48 | u64::from(domain) << 8, Ordering::Release);
}

/// Sends one packet and lets it leave.
pub fn send(end: &mut End, packet: &[u8]) {
    end.transmit.send(packet, [&[], &[]], Offload::NONE);
    end.transmit.flush();
}

/// Receives until `count` frames are there, or nothing more comes; what arrived is copied
/// and released.
pub fn arrivals(end: &mut End, count: usize) -> Vec<(Frame, Vec<u8>)> {
    let (mut frames, mut all) = (Vec::new(), Vec::new());
    while all.len() < count {
        end.receive.receive(&mut frames, 64);
        if frames.is_empty() && !readable(end.receive.fd(), Duration::from_secs(2)).expect("poll") {
            break;
        }
        for frame in frames.drain(..) {
            all.push((frame, end.receive.bytes(frame)[frame.range()].to_vec()));
            end.receive.release(frame);
        }
    }
    all
}

/// Takes and releases everything that is there or still comes.
pub fn drain(end: &mut End) {
    let mut frames = Vec::new();
    while end.receive.receive(&mut frames, 64) > 0
        || readable(end.receive.fd(), Duration::from_millis(50)).expect("poll")
    {
        frames.drain(..).for_each(|frame| end.receive.release(frame));
    }
}
