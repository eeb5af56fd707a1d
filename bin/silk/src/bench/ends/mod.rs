//! `silk bench end`: the two ends of the TCP experiment, small ordinary programs that do one thing with
//! sockets and as little else as can be. The server's run unmodified over Linux and, by `silk run`, over
//! silk; the clients' run over Linux. Whoever measures also looks at the CPUs, at the same two moments,
//! and prints what it saw as JSON.

mod connect;
mod crowd;
mod datagrams;
mod descriptors;
mod flood;
mod frames;
mod hold;
mod serve;
mod stream;
mod turns;
mod window;

use super::Failure;
pub use flood::Kind;
use serde_json::to_string;
pub use serve::Service;
use silk_testkit::flow_steering::FlowSteering;
use silk_wire::MacAddr;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
pub use window::{Figure, Seen, Unit};

/// Which end.
#[derive(clap::Subcommand, Debug)]
pub enum End {
    /// Serve connections
    Serve {
        /// What to do with each
        #[arg(value_enum)]
        service: Service,
        /// Where to listen
        #[arg(long)]
        at: SocketAddrV4,
    },
    /// Receive one flow, and tell how much came
    Draw(Target),
    /// Send one flow, and tell how much went
    Push(Target),
    /// Send one flow from its beginning on, and tell how much of it was taken
    Deliver(Target),
    /// Send 64 bytes and wait until they come back, again and again
    Ping(Target),
    /// Open connections that the server closes, some at a time
    Knock {
        /// Where to and for how long
        #[command(flatten)]
        target: Target,
        /// Connections at a time
        #[arg(long, default_value_t = 16)]
        at_once: usize,
    },
    /// Ask for 1 KB over a new connection, again and again
    Ask(Target),
    /// Receive datagrams, and tell how many came
    Gather {
        /// Where to receive
        #[arg(long)]
        at: SocketAddrV4,
        /// How long to count, in milliseconds
        #[arg(long)]
        milliseconds: u64,
    },
    /// Open connections and keep them
    Hold {
        /// Where to, and how long to keep them
        #[command(flatten)]
        target: Target,
        /// The process whose memory to look at
        #[arg(long)]
        daemon: Option<u32>,
    },
    /// Have many connections in this process
    Crowd {
        /// How many
        #[arg(long)]
        connections: u32,
        /// How long to receive, in milliseconds
        #[arg(long)]
        milliseconds: u64,
    },
    /// Send frames made by hand, as fast as one CPU can or as often as is said
    Flood {
        /// What to send
        #[arg(value_enum)]
        kind: Kind,
        /// The server
        #[arg(long)]
        to: SocketAddrV4,
        /// The hardware address of the server
        #[arg(long)]
        mac: MacAddress,
        /// The interface to send through
        #[arg(long)]
        interface: String,
        /// How long at most, in milliseconds
        #[arg(long)]
        milliseconds: u64,
        /// How many in a second at most
        #[arg(long)]
        per_second: Option<u32>,
    },
    /// Put packets of one sender on a queue of their own, until it is ended
    Steer {
        /// The interface that they leave by
        #[arg(long)]
        interface: String,
        /// The sender
        #[arg(long)]
        source: Ipv4Addr,
        /// The queue, from 0
        #[arg(long)]
        queue: u16,
    },
}

/// A server and a time.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Target {
    /// The server
    #[arg(long)]
    to: SocketAddrV4,
    /// The address to come from
    #[arg(long)]
    from: Option<Ipv4Addr>,
    /// Milliseconds that pass before anything is measured
    #[arg(long, default_value_t = 0)]
    ramp: u64,
    /// How long to measure, in milliseconds
    #[arg(long)]
    milliseconds: u64,
}

/// A hardware address as people write it.
#[derive(Clone, Copy, Debug)]
pub struct MacAddress(MacAddr);

impl std::str::FromStr for MacAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes: Option<Vec<u8>> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
        let bytes = bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
        bytes.map(|bytes| Self(MacAddr(bytes))).ok_or_else(|| format!("`{text}` is no hardware address"))
    }
}

/// Does what the end does; the measuring ones print what they saw.
pub fn run(end: &End) -> Result<(), Failure> {
    let seen = match end {
        End::Serve { service, at } => serve::serve(*service, *at).map(|never| match never {}),
        End::Draw(target) => stream::draw(target),
        End::Push(target) => stream::push(target),
        End::Deliver(target) => stream::deliver(target),
        End::Ping(target) => turns::ping(target),
        End::Knock { target, at_once } => turns::knock(target, *at_once),
        End::Ask(target) => turns::ask(target),
        End::Hold { target, daemon } => hold::hold(target, *daemon),
        End::Crowd { connections, milliseconds } => crowd::crowd(*connections, *milliseconds),
        End::Gather { at, milliseconds } => datagrams::gather(*at, *milliseconds),
        End::Flood { kind, to, mac, interface, milliseconds, per_second } => {
            flood::flood(*kind, (*to, mac.0), interface, *milliseconds, *per_second)
        }
        End::Steer { interface, source, queue } => {
            steer(interface, *source, *queue).map(|never| match never {})
        }
    };
    let seen = seen.map_err(Failure::End)?;
    println!("{}", to_string(&seen).map_err(|error| Failure::End(io::Error::from(error)))?);
    Ok(())
}

/// Steers until the process is ended.
fn steer(interface: &str, source: Ipv4Addr, queue: u16) -> io::Result<Infallible> {
    let refused = |error: Box<dyn std::error::Error>| io::Error::other(error.to_string());
    let _steering = FlowSteering::start(interface, source, queue).map_err(refused)?;
    println!("steers what comes from {source} to queue {queue}");
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hardware_address_has_six_bytes() {
        let read = |text: &str| text.parse::<MacAddress>().map(|address| address.0);
        assert_eq!(read("02:00:00:00:00:ff"), Ok(MacAddr([2, 0, 0, 0, 0, 255])));
        for wrong in ["", "02:00:00:00:00", "02:00:00:00:00:00:00", "02:00:00:00:00:1ff"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
