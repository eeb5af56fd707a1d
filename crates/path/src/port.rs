//! The ends of a path as effects: what a stage can make happen beyond its path goes through
//! a [`Port`] that whoever runs the path provides, the daemon's executor or a test. A port
//! must never run the path that calls it; what asks for that is a [`Request`], done after.

use crate::signal::{Event, Quoted, Report};
use crate::{Attrs, Checksum, DropReason, Endpoint, Message, ModuleId, PathId};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use silk_instant::Instant;

// A request is made once per connection and moved once: a box would cost more than its size.
#[allow(clippy::large_enum_variant)]
/// What is to be done after the run.
#[derive(Debug)]
pub enum Request {
    /// Create a path from `top` with these attributes. When a message caused it and the run
    /// ended in [`Outcome::Handoff`](crate::Outcome::Handoff), classify that message again
    /// afterwards.
    Create {
        /// The module at the top.
        top: ModuleId,
        /// Its attributes.
        attrs: Attrs,
        /// The path that asks: a listening one.
        by: PathId,
        /// The service bits (`IP_TOS`) of the message that caused it.
        service: u8,
    },
    /// Destroy the path.
    Destroy(PathId),
    /// Find the Ethernet address of this neighbour and tell the resolver: only from a
    /// resolver that does not ask the link itself.
    Resolve {
        /// The device that it is beside.
        device: u8,
        /// Its address.
        address: IpAddr,
    },
    /// Tell a path that its next hop is resolved, or is not going to be.
    Wake(PathId),
    /// Tell the path of this flow what the network said about a packet it sent. `udp` or TCP,
    /// the addresses as the path's own packets have them.
    Report {
        /// UDP, else TCP.
        udp: bool,
        /// Our side.
        local: Endpoint,
        /// The other side.
        remote: Endpoint,
        /// What it said.
        report: Report,
        /// For a datagram: the message.
        quoted: Option<Box<Quoted>>,
    },
    /// A frame that was put together from fragments: classify it and run its path. The bytes
    /// are an Ethernet frame.
    Arrived {
        /// Over which device its last fragment came.
        device: u8,
        /// The frame.
        frame: Vec<u8>,
        /// What is known of its transport checksum.
        checksum: Checksum,
    },
    /// What the routers of a link of our own tell is this from now on.
    Routers(Advertised),
    /// Another station has this address of ours (RFC 4862 §5.4.5, RFC 5227 §2.1.1): nothing is to be sent from it any more.
    Duplicate {
        /// The address.
        address: IpAddr,
        /// The Ethernet address of the station.
        station: [u8; 6],
    },
    /// Another station claims this address of ours, which we have had for longer, and keep (RFC 5227 §2.4).
    Claimed {
        /// The address.
        address: IpAddr,
        /// The Ethernet address of the station.
        station: [u8; 6],
    },
    /// This router on a link of our own does not answer (RFC 4861 §7.3): whoever hears of routers prefers another, until
    /// it does. It may be a neighbour that is no router.
    RouterLost(Ipv6Addr),
    /// A router says that packets to a destination are better given to another first hop.
    Redirected {
        /// The router.
        router: IpAddr,
        /// Where the packets go.
        destination: IpAddr,
        /// The first hop, or the destination itself.
        hop: IpAddr,
        /// The hop's Ethernet address, where the router says it (RFC 4861 §4.6.1): to be believed as far as the rest is.
        link: Option<[u8; 6]>,
    },
}

/// What the routers of a link tell (RFC 4861 §6.3.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advertised {
    /// Our addresses by their prefixes, each with the length of its network on the link.
    pub addresses: Vec<(Ipv6Addr, u8)>,
    /// Those of them that nothing new is to be begun from, where there is another (RFC 4862 §5.5.4).
    pub deprecated: Vec<Ipv6Addr>,
    /// Who leads beyond the link.
    pub router: Option<Ipv6Addr>,
    /// Networks that a router leads to, with the lengths of their prefixes; of the same ones the better router first
    /// (RFC 4191 §2.3).
    pub routes: Vec<((Ipv6Addr, u8), Ipv6Addr)>,
    /// The hop limit of what is sent.
    pub hops: Option<u8>,
    /// The MTU of the link, bytes.
    pub mtu: Option<u16>,
}

/// The world around a path.
pub trait Port {
    /// Sends what has reached the bottom. The bytes are gone when this returns.
    fn transmit(&mut self, path: PathId, msg: &Message<'_>) -> Result<(), DropReason>;

    /// Takes what has reached the top. The bytes are gone when this returns.
    fn deliver(&mut self, path: PathId, msg: &Message<'_>) -> Result<(), DropReason>;

    /// From now on the path's earliest timer is due at `at` ([`Instant::FAR`]: none).
    fn arm(&mut self, path: PathId, at: Instant);

    /// Something became true that the program's end wants to know.
    fn event(&mut self, path: PathId, event: Event);

    /// Asks for something to be done after the run.
    fn request(&mut self, request: Request);

    /// 64 bits nobody else can guess.
    fn random(&mut self) -> u64;

    /// What time it is *now*, for the *measure* transformation and for stages that work for long.
    /// A port without a clock answers nothing and nothing is measured.
    fn clock(&mut self) -> Option<Instant> {
        None
    }
}
