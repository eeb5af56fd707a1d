//! The low class that floods: TCP segments of the least size, from the standard clients' address to the
//! server's port, as fast as one CPU can send them, for a bounded time.
//!
//! Each segment is a bare acknowledgement from another port, so that it belongs to the standard class
//! and to no connection: the server must look at every one. Headers are written by the rules of RFC 791
//! and RFC 9293 §3.1; a raw socket lets the kernel fill in the IP length, identification and checksum.

use super::Failure;
use silk_testkit::netns::RigError;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Segments sent between two looks at the clock.
const BURST: u16 = 64;
/// How often it says how many were sent.
const TELLING: Duration = Duration::from_millis(10);
/// Length of the TCP header: a segment without options and data.
const HEADER: usize = 20;

/// What to send, where and for how long.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The source address
    #[arg(long)]
    pub from: Ipv4Addr,
    /// The server's address and port
    #[arg(long)]
    pub to: SocketAddrV4,
    /// How long
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
}

/// Floods, and prints again and again how many packets were sent.
pub fn run(options: &Options) -> Result<(), Failure> {
    flood(options).map_err(unsent)
}

fn flood(options: &Options) -> std::io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP))?;
    socket.bind(&SocketAddrV4::new(options.from, 0).into())?;
    socket.connect(&SocketAddrV4::new(*options.to.ip(), 0).into())?;
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let (mut sent, mut port, mut refused) = (0u64, 1024u16, None);
    let (mut now, mut told) = (Instant::now(), Instant::now());
    while now < end {
        for _ in 0..BURST {
            let segment = acknowledgement(options.from, port, options.to);
            match socket.send(&segment) {
                Ok(_) => sent += 1,
                Err(why) => refused = Some(why),
            }
            port = port.checked_add(1).unwrap_or(1024);
        }
        now = Instant::now();
        if now - told >= TELLING {
            told = now;
            println!("{sent}");
        }
    }
    if let Some(why) = refused.filter(|_| sent == 0) {
        return Err(why);
    }
    println!("{sent}");
    Ok(())
}

/// How many were sent, from what the program has said so far; none where it said something else, or that it was not one: beside that,
/// everybody is fast.
pub fn sent(said: &str) -> Option<u64> {
    // What stands behind the last line's end may be half of one.
    let (lines, _) = said.rsplit_once('\n')?;
    lines.lines().next_back()?.parse().ok().filter(|sent| *sent > 0)
}

fn unsent(source: std::io::Error) -> Failure {
    Failure::Rig(RigError::NotStarted { program: "flood (raw socket)".into(), source })
}

/// A bare ACK with its checksum over the pseudo header.
fn acknowledgement(from: Ipv4Addr, port: u16, to: SocketAddrV4) -> [u8; HEADER] {
    let mut segment = [0; HEADER];
    segment[0..2].copy_from_slice(&port.to_be_bytes());
    segment[2..4].copy_from_slice(&to.port().to_be_bytes());
    segment[4..8].copy_from_slice(&u32::from(port).to_be_bytes());
    segment[8..12].copy_from_slice(&1u32.to_be_bytes());
    segment[12] = 5 << 4;
    segment[13] = 0x10;
    segment[14..16].copy_from_slice(&1024u16.to_be_bytes());
    let pseudo = [from.octets(), to.ip().octets(), [0, 6, 0, HEADER as u8]].concat();
    let checksum = !sum(&pseudo, &segment);
    segment[16..18].copy_from_slice(&checksum.to_be_bytes());
    segment
}

/// The Internet checksum's ones' complement sum (RFC 1071) of two pieces of even length.
fn sum(first: &[u8], second: &[u8]) -> u16 {
    let words = first.chunks_exact(2).chain(second.chunks_exact(2));
    let total: u32 = words.map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let folded = (total & 0xffff) + (total >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_nothing_is_none() {
        let said = ["3\n17\n", "3\n17\n2", "0\n", "17", "", "silk: cannot start `flood (raw socket)`: no\n"];
        assert_eq!(said.map(sent), [Some(17), Some(17), None, None, None, None]);
    }

    #[test]
    fn a_segment_sums_to_zero_with_its_pseudo_header() {
        let (from, to) = (Ipv4Addr::new(10, 99, 0, 2), SocketAddrV4::new(Ipv4Addr::new(10, 99, 0, 1), 80));
        let segment = acknowledgement(from, 40_000, to);
        let pseudo = [[10, 99, 0, 2], [10, 99, 0, 1], [0, 6, 0, 20]].concat();
        assert_eq!(sum(&pseudo, &segment), 0xffff);
        assert_eq!(segment[13], 0x10, "only ACK is set");
    }
}
