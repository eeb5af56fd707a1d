//! What does early discard (Scout §4.4) cost, what does it cost to refuse, and what do they save? Prints nanoseconds per packet
//! of the XDP program and of the classifier in user space: the median of the rounds, then the
//! smallest and the largest. The cases take turns within a round. TCP is never asked whether it is
//! wanted, so it is what a flow would cost without early discard.
//!
//! ```text
//! cargo run --release -p silk-device --example classifier_costs
//! ```

#[path = "../tests/rig/mod.rs"]
mod rig;

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant as Clock;

use silk_device::xdp;
use silk_path::classify::{Belongs, Domains, Filter, Flow, Found, Framed, Owned, Protocol, Refused, layout};

const ROUNDS: usize = 31;
const TIMES: u32 = 200_000;
const HERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 5544);

/// The sender whose flow has this index.
fn there(index: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 6000 + u16::from(index))
}

/// A packet of MFLOW, picture `picture`, or the same bytes in TCP.
fn frame(protocol: u8, index: u8, picture: u32) -> Vec<u8> {
    let mut bytes =
        vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
    bytes.extend(there(index).ip().octets());
    bytes.extend(HERE.ip().octets());
    bytes.extend([there(index).port().to_be_bytes(), HERE.port().to_be_bytes()].concat());
    bytes.extend([0; 4]);
    bytes.extend([0x10, 0, 2, 0, 0, 0, 0, 0]);
    bytes.extend(picture.to_be_bytes());
    bytes.resize(14 + 1400, 0);
    bytes[16..18].copy_from_slice(&1400u16.to_be_bytes());
    bytes
}

fn main() {
    rig::with_veth(|| {
        let device = xdp::open("right", &xdp::Options { domains: 1, ..Default::default() }).unwrap();
        let tables = rig::classifier(&device.tables);
        tables.configure(Owned::default(), Domains::default(), &[], &[*HERE.ip()]).unwrap();
        for (index, protocol) in [(0, Protocol::Tcp), (1, Protocol::Udp), (2, Protocol::Udp)] {
            let flow = Flow { protocol, local: HERE, remote: there(index) };
            tables.flows.insert(&flow, Found { domain: 0, index: index.into() }).unwrap();
        }
        let filter = Filter { every: 3, skips: 1 << 2, ..Filter::none(Framed::Mflow) };
        tables.discard(Found { domain: 0, index: 2 }, &filter).unwrap();
        let cases = [
            ("TCP", frame(6, 0, 3)),
            ("UDP without a filter", frame(17, 1, 3)),
            ("UDP with a filter, wanted", frame(17, 2, 3)),
            ("UDP with a filter, discarded", frame(17, 2, 4)),
        ];
        assert_eq!(tables.classify(&cases[3].1), Belongs::Discard { domain: 0, index: 2 });
        println!("{:<52} {:>8} {:>8} {:>8}", "ns per packet", "median", "min", "max");
        let both = |cases: &[(&str, Vec<u8>)]| {
            report("XDP program", cases, |frame| {
                device.time_frame(frame, TIMES).expect("the program runs").as_nanos() as f64
            });
            report("in user space", cases, |frame| {
                let start = Clock::now();
                for _ in 0..TIMES {
                    black_box(tables.classify(black_box(frame)));
                }
                start.elapsed().as_nanos() as f64 / f64::from(TIMES)
            });
        };
        both(&cases);
        // TCP that no flow owns, to a port of ours.
        tables.own_port(Protocol::Tcp, None, HERE.port());
        let stranger = frame(6, 3, 0);
        both(&[("TCP of a stranger, nobody is refused", stranger.clone())]);
        let some = |first: u32| {
            Refused::of((0..layout::REFUSED as u32).map(|n| ((first + 2 * n).to_be_bytes().into(), 32)))
        };
        let own = u32::from(*there(3).ip());
        tables.refuse(&some(own + 1)).unwrap();
        both(&[("TCP of a stranger, 16 384 others are refused", stranger.clone())]);
        tables.refuse(&some(own)).unwrap();
        assert_eq!(tables.classify(&stranger), Belongs::Refuse { domain: 0 });
        both(&[("TCP of one of 16 384 who are refused", stranger)]);
    });
}

fn report(place: &str, cases: &[(&str, Vec<u8>)], run: impl Fn(&[u8]) -> f64) {
    let mut results = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        cases.iter().zip(&mut results).for_each(|((_, frame), results)| results.push(run(frame)));
    }
    for ((name, _), mut results) in cases.iter().zip(results) {
        results.sort_by(f64::total_cmp);
        let (low, high) = (results[0], results[ROUNDS - 1]);
        println!("{:<52} {:>8.1} {low:>8.1} {high:>8.1}", format!("{place}: {name}"), results[ROUNDS / 2]);
    }
}
