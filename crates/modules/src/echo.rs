//! ECHO: sends every datagram back to where it came from (RFC 862). The shortest path that
//! goes through a whole stack, up and, by the back link (Scout §3.2), down again. It must
//! never answer another echo, or two of them talk for ever.
//!
//! # Configuration
//! `port` — the UDP port; default 7. Used by whoever creates the path.
//!
//! # Services
//! `down` (net, needed): a datagram protocol, UDP.
//!
//! # Attributes
//! Sets `Local` (any of our addresses, `port`) where there is none.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "echo"
//! kind = "echo"
//! port = 7
//!
//! [[link]]
//! from = "echo.down"
//! to = "udp.up"
//! ```
//!
//! # See also
//! [`udp`](crate::udp) below.

use alloc::boxed::Box;
use core::net::Ipv4Addr;
use silk_path::service::{NET, Service};
use silk_path::{
    Attr, Create, CreateError, Cx, DropReason, Endpoint, Message, Module, Next, Parameter, ParameterKind,
    Stage, Step, Verdict,
};

/// Its services.
pub const SERVICES: &[Service] = &[Service::needed("down", NET)];
/// Its parameters.
pub const PARAMETERS: &[Parameter] =
    &[Parameter { name: "port", kind: ParameterKind::Number(1, 65535), required: false }];

/// The module.
pub struct Echo {
    port: u16,
}

impl Echo {
    /// The module at this UDP port.
    pub fn new(port: u16) -> Self {
        Self { port }
    }
}

impl Module for Echo {
    fn kind(&self) -> &'static str {
        "echo"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        if create.attrs.local().is_none() {
            create.set(Attr::Local(Endpoint::v4(Ipv4Addr::UNSPECIFIED, self.port)))?;
        }
        Ok(Step { stage: Some(Box::new(EchoStage)), next: Next::Service(0) })
    }
}

struct EchoStage;

impl Stage for EchoStage {
    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        if msg.meta.remote.port() == msg.meta.local.port() {
            return Verdict::Drop(DropReason::Unexpected);
        }
        // A drop on the way down has been counted there.
        let _ = cx.down(msg);
        Verdict::Consumed
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Forward
    }
}
