//! A flood, as fast as one CPU can send: SYNs from random addresses that nobody has, or small datagrams
//! of one sender. Frames leave through a packet socket, many with one system call, past Linux's IP.

use super::super::watch::Watch;
use super::MacAddress;
use super::frames::{SYN, datagrams, syn};
use super::window::{Figure, Seen, Unit, Window};
use clap::ValueEnum;
use silk_device::packet::{self, Options, Sending};
use silk_device::{Offload, Transmitted};
use silk_testkit::netns::CLIENT;
use silk_wire::MacAddr;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Frames between two looks at the clock, and two system calls.
const BURST: u32 = 64;
/// Networks for benchmarks (RFC 2544, appendix C.2.2): nobody on the hosts has an address there.
const NOWHERE: u32 = Ipv4Addr::new(198, 18, 0, 0).to_bits();
/// Addresses in those networks.
const ADDRESSES: u32 = 1 << 17;
/// The packet device filters what it would receive by an address: one that nothing is sent to.
const UNUSED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// What a flood is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// SYNs from random addresses
    Syns,
    /// Datagrams of 64 bytes
    Datagrams,
}

/// Floods until it is told that it is enough (SIGINT), and says how many frames left per second: `per_second` at
/// most.
pub fn flood(
    kind: Kind,
    (to, server): (SocketAddrV4, MacAddr),
    interface: &str,
    milliseconds: u64,
    per_second: Option<u32>,
) -> io::Result<Seen> {
    let macs = [own_address(interface)?, server];
    // Who goes past the queueing discipline must cut messages up by himself.
    let sending = Sending { bypass_qdisc: kind == Kind::Syns, ..Sending::default() };
    let options = Options { addresses: vec![UNUSED.into()], buffers: 16, sending, ..Options::default() };
    let mut transmit = packet::open(interface, &options).map_err(io::Error::other)?.transmit;
    let mut random = Random(0x5eed_f100d);
    let (message, cut) = datagrams(macs, SocketAddrV4::new(CLIENT, 9), to, BURST as usize);
    let window = Window::open(milliseconds);
    let watch = Watch::on_signals();
    let between = per_second.map(|rate| Duration::from_secs(1) * BURST / rate.max(1));
    let mut next = Instant::now();
    while !window.is_over() && watch.check().is_ok() {
        if let Some(between) = between {
            if Instant::now() < next {
                std::hint::spin_loop();
                continue;
            }
            // Up to twice as long: what comes as regularly as the timer that tells how busy a CPU is hides from it.
            next += between * (random.next() as u8).into() / 128;
        }
        match kind {
            Kind::Syns => {
                for _ in 0..BURST {
                    transmit.send(&stranger(macs, to, random.next()), [&[], &[]], Offload::NONE);
                }
            }
            Kind::Datagrams => transmit.send(&message, [&[], &[]], cut),
        }
        transmit.flush();
    }
    let (seconds, cpu) = window.close();
    let packets = packets(kind, &transmit.transmitted())?;
    Ok(Seen { figures: vec![Figure::new("sent", packets as f64 / seconds, Unit::PerSecond)], cpu })
}

/// How many packets left. A flood of none is no flood: beside it, everybody is fast.
fn packets(kind: Kind, sent: &Transmitted) -> io::Result<u64> {
    if sent.frames == 0 || sent.down + sent.malformed > 0 {
        return Err(io::Error::other(format!("frames did not leave: {sent:?}")));
    }
    Ok(sent.frames * if kind == Kind::Datagrams { BURST.into() } else { 1 })
}

/// The interface's own hardware address.
fn own_address(interface: &str) -> io::Result<MacAddr> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{interface}/address"))?;
    text.trim().parse::<MacAddress>().map(|address| address.0).map_err(io::Error::other)
}

/// A SYN from an address and a port that `random` chooses.
fn stranger(macs: [MacAddr; 2], to: SocketAddrV4, random: u64) -> [u8; SYN] {
    let address = Ipv4Addr::from(NOWHERE + (random as u32 % ADDRESSES));
    let from = SocketAddrV4::new(address, (random >> 32) as u16 | 1024);
    syn(macs, from, to, (random >> 20) as u32)
}

/// Numbers that look random (xorshift64*, Vigna 2016): the same ones in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_nothing_is_none() {
        let some = Transmitted { frames: 3, ..Transmitted::default() };
        assert_eq!(packets(Kind::Syns, &some).ok(), Some(3));
        assert_eq!(packets(Kind::Datagrams, &some).ok(), Some(192));
        for wrong in [Transmitted::default(), Transmitted { down: 1, ..some }] {
            assert!(packets(Kind::Syns, &wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn random_numbers_do_not_repeat_soon() {
        let mut random = Random(1);
        let numbers: std::collections::BTreeSet<u64> = (0..10_000).map(|_| random.next()).collect();
        assert_eq!(numbers.len(), 10_000);
    }
}
