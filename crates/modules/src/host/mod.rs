//! HOST: the bottom end of a path over Linux's own TCP: a connection that came to the machine
//! another way than over silk's device, from the machine itself above all. Linux keeps the
//! protocol; HOST moves the bytes between Linux's socket and the program's buffers. It must
//! never wait, and must never take more from one side than the other has room for.
//!
//! # Configuration
//! None.
//!
//! # Services
//! `up` (stream, provider): SOCKET.
//!
//! # Attributes
//! None of its own: [`Host`](silk_path::Attr::Host) leads here, and the connection is the one
//! that the module was [offered](Host::offer) last.
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
//! ```
//!
//! # See also
//! [`socket`](crate::socket) above; [`tcp`](crate::tcp), which it stands in for.

mod stage;

pub use stage::HostStage;

use alloc::boxed::Box;
use alloc::vec;
use silk_path::service::{STREAM, Service};
use silk_path::{Bell, Create, CreateError, Event, Module, Next, Step};

/// Its services.
pub const SERVICES: &[Service] = &[Service::offered("up", STREAM)];

/// The most bytes that are read at once.
const PIECE: usize = 64 << 10;

/// A connected socket of Linux's: what HOST's stage does to the world. No call ever waits.
pub trait HostSocket: Send {
    /// Reads what has arrived, as much as `into` takes, which is not empty; 0: the peer sends
    /// no more.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, HostFault>;
    /// Sends from the two pieces in turn, of which one is not empty; how many bytes.
    fn write(&mut self, from: [&[u8]; 2]) -> Result<usize, HostFault>;
    /// Nothing more is sent.
    fn finish(&mut self);
    /// When the socket is dropped, the peer is reset.
    fn reset(&mut self);
    /// Passes on an option of the program's, if Linux has the like.
    fn set(&mut self, option: Bell);
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
    // The connection whose path is about to be created.
    offered: Option<Box<dyn HostSocket>>,
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
        self.offered = Some(socket);
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

    fn create_stage(&mut self, _: &mut Create<'_>) -> Result<Step, CreateError> {
        let socket = self.offered.take().ok_or(CreateError::Gone)?;
        Ok(Step { stage: Some(Box::new(HostStage::new(socket))), next: Next::End })
    }
}
