//! SOCKET: the top end of a path, a program's socket (SILK §3.1's SOCKET, an instance of
//! GenericNet). Over a byte stream it holds the buffers the program shares; over a datagram
//! protocol it hands every datagram to whoever runs the path. It must never look into what it
//! carries.
//!
//! # Configuration
//! None.
//!
//! # Services
//! `net` (net, wanted): a datagram protocol, UDP. `stream` (stream, client, wanted): a stream
//! protocol, TCP. `host` (stream, client, wanted): Linux's own TCP, HOST. `host_net` (net, wanted): its own UDP.
//!
//! # Attributes
//! With `Host`, the path leads to HOST. Else reads `ProtId`: IP's number of the protocol below, 6 for TCP, 17 for UDP; without it, TCP
//! where buffers were given or with `Listen`, else UDP. `Owner` names the socket to whoever created the path.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "socket"
//! kind = "socket"
//!
//! [[link]]
//! from = "socket.stream"
//! to = "tcp.up"
//! ```
//!
//! # See also
//! [`udp`](crate::udp) and [`tcp`](crate::tcp) below.

use alloc::boxed::Box;
use silk_path::service::{NET, STREAM_USER, Service};
use silk_path::{
    ByteStream, Create, CreateError, Cx, DropReason, Message, Module, Next, Stage, Step, Verdict,
};
use silk_wire::ipv4;

/// Its services.
pub const SERVICES: &[Service] = &[
    Service::wanted("net", NET),
    Service::wanted("stream", STREAM_USER),
    Service::wanted("host", STREAM_USER),
    Service::wanted("host_net", NET),
];
const DATAGRAMS: u8 = 0;
const STREAMS: u8 = 1;
const HOST: u8 = 2;
const HOST_NET: u8 = 3;

/// The module.
#[derive(Default)]
pub struct Socket;

impl Module for Socket {
    fn kind(&self) -> &'static str {
        "socket"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let tcp = u16::from(ipv4::TCP);
        let over_host = create.attrs.host() == Some(true);
        let over_stream = match create.attrs.prot_id() {
            Some(protocol) => protocol == tcp,
            None => create.stream.is_some() || create.attrs.listen() == Some(true),
        };
        let listens = create.attrs.listen() == Some(true);
        Ok(match (over_stream, create.stream.take()) {
            (true, Some(stream)) => Step {
                stage: Some(Box::new(StreamEnd { stream: Some(stream) })),
                next: Next::Service(if over_host { HOST } else { STREAMS }),
            },
            (true, None) if !listens => return Err(CreateError::Missing("a stream")),
            // A listening path: nothing arrives that a program would read.
            (true, None) => Step { stage: None, next: Next::Service(STREAMS) },
            (false, _) => Step {
                stage: Some(Box::new(DatagramEnd)),
                next: Next::Service(if over_host { HOST_NET } else { DATAGRAMS }),
            },
        })
    }
}

/// The end over a byte stream. Bytes move through the buffers, not as messages.
struct StreamEnd {
    // None once its creator has taken it back.
    stream: Option<Box<dyn ByteStream>>,
}

impl Stage for StreamEnd {
    fn up(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn stream(&mut self) -> Option<&mut dyn ByteStream> {
        self.stream.as_deref_mut().map(|stream| stream as &mut dyn ByteStream)
    }

    fn take_stream(&mut self) -> Option<Box<dyn ByteStream>> {
        self.stream.take()
    }
}

/// The end over datagrams: they leave the path at the top.
struct DatagramEnd;

impl Stage for DatagramEnd {
    fn up(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Forward
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Forward
    }
}
