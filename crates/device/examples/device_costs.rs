//! What does a packet cost at the device, each way? Prints nanoseconds per packet over a veth
//! pair in a network namespace of its own (root): the median of the rounds, then the smallest
//! and the largest. The cases take turns within a round, so that a noisy moment hits all.
//!
//! On a veth pair sending includes what the receiving side's interrupt does.
//!
//! ```text
//! cargo run --release -p silk-device --example device_costs
//! ```

#[path = "../tests/rig/mod.rs"]
mod rig;

use std::hint::black_box;
use std::time::Instant as Clock;

use silk_device::{End, Frame, Offload, packet, xdp};

const ROUNDS: usize = 15;

/// One thing that is measured: nanoseconds per packet of one round.
type Case<'c> = (&'static str, Box<dyn FnMut() -> f64 + 'c>);

fn main() {
    rig::with_veth(|| {
        println!("{:<58} {:>8} {:>8} {:>8}", "ns per packet", "median", "min", "max");
        report(&mut sending("nothing attached to the receiver", false));
        report(&mut sending("past the queueing discipline", true));
        let device = xdp::open("right", &xdp::Options { domains: 3, ..Default::default() }).unwrap();
        rig::own_port(&device.tables, 2);
        report(&mut sending("XDP taking all at the receiver", false));
        drop(device);
        report(&mut [("receive, xdp: ticket, first line, release", Box::new(receiving_xdp()))]);
        report(&mut [("receive, packet: the same", Box::new(receiving_packet()))]);
    });
}

fn report(cases: &mut [Case<'_>]) {
    let mut results = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        cases.iter_mut().zip(&mut results).for_each(|((_, run), results)| results.push(run()));
    }
    for ((name, _), mut results) in cases.iter().zip(results) {
        results.sort_by(f64::total_cmp);
        let (low, high) = (results[0], results[ROUNDS - 1]);
        println!("{name:<58} {:>8.0} {low:>8.0} {high:>8.0}", results[ROUNDS / 2]);
    }
}

fn sending(circumstances: &str, bypass_qdisc: bool) -> [Case<'static>; 4] {
    println!("-- sending, {circumstances}");
    let options = packet::Sending { bypass_qdisc, ..Default::default() };
    let open =
        || packet::open("left", &packet::Options { sending: options.clone(), ..Default::default() }).unwrap();
    let small = |batch: usize| {
        let mut end = open();
        let packet = rig::datagram(&[0; 86]);
        move || send_small(&mut end, &packet, batch)
    };
    let mut large = open();
    [
        ("send 128 bytes, one at a time", Box::new(small(1))),
        ("send 128 bytes, 8 at a time", Box::new(small(8))),
        ("send 128 bytes, 64 at a time", Box::new(small(64))),
        ("send 56 KB as one GSO packet", Box::new(move || send_large(&mut large))),
    ]
}

fn send_small(end: &mut End, packet: &[u8], batch: usize) -> f64 {
    const COUNT: usize = 6400;
    let start = Clock::now();
    for _ in 0..COUNT / batch {
        (0..batch).for_each(|_| end.transmit.send(packet, [&[], &[]], Offload::NONE));
        end.transmit.flush();
    }
    start.elapsed().as_nanos() as f64 / COUNT as f64
}

fn send_large(end: &mut End) -> f64 {
    const COUNT: usize = 500;
    let payload = vec![7; 56 << 10];
    let (headers, offload) = rig::tcp_headers(payload.len(), 1448);
    let (first, second) = payload.split_at(20_000);
    let start = Clock::now();
    (0..COUNT).for_each(|_| end.transmit.send(&headers, [first, second], offload));
    start.elapsed().as_nanos() as f64 / COUNT as f64
}

fn receiving_xdp() -> impl FnMut() -> f64 {
    let mut device = None;
    move || {
        let device = device.get_or_insert_with(|| {
            let device = xdp::open("right", &xdp::Options { domains: 3, ..Default::default() }).unwrap();
            rig::own_port(&device.tables, 2);
            device
        });
        receive(&mut device.ends[2])
    }
}

fn receiving_packet() -> impl FnMut() -> f64 {
    let mut end = packet::open("right", &packet::Options::default()).unwrap();
    move || receive(&mut end)
}

/// Fills the ring, and measures the emptying of it alone.
fn receive(end: &mut End) -> f64 {
    let mut left = packet::open("left", &packet::Options::default()).unwrap();
    let packet = rig::datagram(&[0; 86]);
    let (mut nanos, mut count, mut frames) = (0, 0, Vec::<Frame>::new());
    for _ in 0..50 {
        send_small_batch(&mut left, &packet);
        let start = Clock::now();
        while end.receive.receive(&mut frames, 64) > 0 {
            for frame in frames.drain(..) {
                black_box(end.receive.bytes(frame)[frame.range()][0]);
                end.receive.release(frame);
                count += 1;
            }
        }
        nanos += start.elapsed().as_nanos();
    }
    nanos as f64 / f64::from(count)
}

fn send_small_batch(end: &mut End, packet: &[u8]) {
    (0..192).for_each(|_| end.transmit.send(packet, [&[], &[]], Offload::NONE));
    end.transmit.flush();
    // The receiving interrupt may still be at work on another CPU.
    std::thread::sleep(std::time::Duration::from_millis(1));
}
