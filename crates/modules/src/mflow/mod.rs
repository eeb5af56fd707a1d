//! MFLOW: video in datagrams, ordered but not reliable, with flow control (Scout §4.1). It tells
//! the source how far it may send: as far as the path's input queue reaches beyond the last
//! packet that the path has *processed*. It must never pass on a packet older than one before it.
//!
//! The input queue is as long as Scout §4.2 asks: two super-packets of n packets, where n packets
//! take as long to process as a round trip lasts. The path measures the first (the rule
//! *measure*), the source the second, by its clock that each advertisement echoes, and tells it
//! in its packets.
//!
//! # Configuration
//! `least` and `most`: the bounds of the input queue, in packets, 2 to 4096 (8 and 512). `port`:
//! the UDP port of paths that name none (5544).
//!
//! # Services
//! `up` (net): MPEG. `down` (net, needed): a datagram protocol, UDP.
//!
//! # Attributes
//! Sets `Local` (any of our addresses, `port`) where there is none. Reads `Remote`: without it the
//! path belongs to the source whose packet comes first, until that was silent for five seconds, and
//! its flow is entered into the classifier. Reads `InputQueue`, where the queue begins.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "mflow"
//! kind = "mflow"
//! most = 256
//!
//! [[link]]
//! from = "mflow.down"
//! to = "udp.up"
//! ```
//!
//! # See also
//! [`udp`](crate::udp) below; `silk_wire::mflow` for the packets.

mod order;
mod stage;
mod window;

pub use stage::{Figures, MflowStage};
pub use window::Bounds;

use alloc::boxed::Box;
use core::net::{Ipv4Addr, Ipv6Addr};
use silk_path::classify::{Found, Tables};
use silk_path::service::{NET, Service};
use silk_path::{
    Attr, Create, CreateError, DEFAULT_QUEUE, Endpoint, Module, Next, Parameter, ParameterKind, Step,
};

/// Its services.
pub const SERVICES: &[Service] = &[Service::offered("up", NET), Service::needed("down", NET)];
const DOWN: u8 = 1;
/// Its parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "least", kind: ParameterKind::Number(2, 4096), required: false },
    Parameter { name: "most", kind: ParameterKind::Number(2, 4096), required: false },
    Parameter { name: "port", kind: ParameterKind::Number(1, 65535), required: false },
];

/// The module.
pub struct Mflow {
    tables: Tables,
    domain: u8,
    bounds: Bounds,
    port: u16,
}

impl Mflow {
    /// The module of domain `domain`, whose flows are in `tables`, with these bounds of the input
    /// queue.
    pub fn new(tables: Tables, domain: u8, bounds: Bounds, port: u16) -> Self {
        Self { tables, domain, bounds, port }
    }
}

impl Module for Mflow {
    fn kind(&self) -> &'static str {
        "mflow"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let remote = create.attrs.remote();
        if create.attrs.local().is_none() {
            create.set(Attr::Local(match remote {
                Some(remote) if remote.is_v6() => Endpoint::v6(Ipv6Addr::UNSPECIFIED, self.port),
                _ => Endpoint::v4(Ipv4Addr::UNSPECIFIED, self.port),
            }))?;
        }
        let queue = create.attrs.input_queue().unwrap_or(DEFAULT_QUEUE);
        let found = Found { domain: self.domain, index: create.id.index };
        let stage = MflowStage::new(found, self.bounds, queue, remote.is_none());
        Ok(Step { stage: Some(Box::new(stage)), next: Next::Service(DOWN) })
    }
}
