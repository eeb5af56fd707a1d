//! HOST: the bottom end of a path over a socket of Linux's own: a connection, or datagrams, that came
//! to the machine another way than over silk's device, from the machine itself above all. Linux keeps
//! the protocol; HOST moves the bytes between Linux's socket and the program's. It must never wait, and
//! of a stream it must never take more from one side than the other has room for.
//!
//! # Configuration
//! None.
//!
//! # Services
//! `up` (stream, provider): SOCKET, for a connection. `net` (net): SOCKET, for datagrams.
//!
//! # Attributes
//! [`Host`](silk_path::Attr::Host) leads here. Reads `ProtId`: 17 is a path of datagrams, which hears
//! nobody but its `Remote`, where it has one. The socket is the one that the module was
//! [offered](Host::offer) last.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "host"
//! kind = "host"
//!
//! [[link]]
//! from = "socket.host"
//! to = "host.up"
//!
//! [[link]]
//! from = "socket.host_net"
//! to = "host.net"
//! ```
//!
//! # See also
//! [`socket`](crate::socket) above; [`tcp`](crate::tcp) and [`udp`](crate::udp), which it stands in for.

mod datagrams;
mod stage;

pub use datagrams::DatagramStage;
pub use stage::HostStage;

use alloc::boxed::Box;
use alloc::vec;
use core::net::IpAddr;
use silk_path::service::{NET, STREAM, Service};
use silk_path::{Bell, Create, CreateError, Endpoint, Event, Module, Next, Step};
use silk_wire::ipv4;

/// Its services.
pub const SERVICES: &[Service] = &[Service::offered("up", STREAM), Service::offered("net", NET)];

/// The most bytes that are read at once.
const PIECE: usize = 64 << 10;

/// A connected socket of Linux's: what HOST's stage does to the world. No call ever waits.
pub trait HostSocket: Send {
    /// Reads what has arrived, as much as `into` takes, which is not empty; 0: the peer sends
    /// no more.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, HostFault>;
    /// Whether the next byte, there or announced, is the peer's urgent one, in its place; none is where it sends no more. No read
    /// goes beyond such a one unless it begins there. What is not there yet ([`HostFault::NotNow`]) must not be read before it
    /// was looked at.
    fn is_at_urgent(&mut self) -> Result<bool, HostFault>;
    /// Sends from the two pieces in turn, of which one is not empty; how many bytes. The last of them is urgent or not.
    fn write(&mut self, from: [&[u8]; 2], urgent: bool) -> Result<usize, HostFault>;
    /// What has become of the connection, if that is something that a read or a write would say; it is said once.
    fn fault(&mut self) -> Option<Event>;
    /// Whether Linux has nothing left to do for the connection: both sides have ended, and our end is
    /// acknowledged; or it has failed.
    fn is_over(&self) -> bool;
    /// Writes what is known of the connection, as Linux's `struct tcp_info`, as much as there is.
    fn info(&self, into: &mut [u8]);
    /// Nothing more is sent.
    fn finish(&mut self);
    /// When the socket is dropped, the peer is reset.
    fn reset(&mut self);
    /// Passes on an option of the program's, if Linux has the like.
    fn set(&mut self, option: Bell);
}

/// A datagram socket of Linux's: what HOST's stage does to the world. No call ever waits.
pub trait HostDatagrams: Send {
    /// Sends the pieces as one datagram, from this address of the machine's if it is one; whether Linux took it.
    fn send(&mut self, from: IpAddr, to: Endpoint, pieces: [&[u8]; 3]) -> bool;
    /// Passes on an option of the program's, if Linux has the like.
    fn set(&mut self, option: Bell);
}

/// What a path is about to be created over.
enum Offered {
    Connection(Box<dyn HostSocket>),
    Datagrams(Box<dyn HostDatagrams>),
}

/// Why nothing was read or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFault {
    /// Not now: [`Report::Ready`](silk_path::Report::Ready) will tell.
    NotNow,
    /// The connection is over, and this is what became of it.
    Over(Event),
}

/// The module.
pub struct Host {
    // What the path that is about to be created leads to.
    offered: Option<Offered>,
    // Where bytes lie between two copies; empty only while a stage has it.
    piece: Box<[u8]>,
}

impl Default for Host {
    fn default() -> Self {
        Self { offered: None, piece: vec![0; PIECE].into_boxed_slice() }
    }
}

impl Host {
    /// The connection of the path that is created next.
    pub fn offer(&mut self, socket: Box<dyn HostSocket>) {
        self.offered = Some(Offered::Connection(socket));
    }

    /// The datagram socket of the path that is created next.
    pub fn offer_datagrams(&mut self, socket: Box<dyn HostDatagrams>) {
        self.offered = Some(Offered::Datagrams(socket));
    }

    /// There is no such path after all.
    pub fn withdraw(&mut self) {
        self.offered = None;
    }
}

impl Module for Host {
    fn kind(&self) -> &'static str {
        "host"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let of_datagrams = create.attrs.prot_id() == Some(ipv4::UDP.into());
        match (self.offered.take(), of_datagrams) {
            (Some(Offered::Connection(socket)), false) => {
                Ok(Step { stage: Some(Box::new(HostStage::new(socket))), next: Next::End })
            }
            (Some(Offered::Datagrams(socket)), true) => {
                let stage = DatagramStage::new(socket, create.attrs.remote());
                Ok(Step { stage: Some(Box::new(stage)), next: Next::End })
            }
            _ => Err(CreateError::Gone),
        }
    }
}
