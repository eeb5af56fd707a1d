//! Devices, SILK's GenericNet: where packets enter and leave the machine. One pair of
//! traits, [`Receive`] and [`Transmit`], and four devices: [`link`] (two hosts in one
//! process), [`tap`], [`packet`] (`AF_PACKET`) and [`xdp`] (early demultiplexing at interrupt
//! time, one receive ring for each domain). A device moves frames and says what it had to
//! drop; it must never wait for anything, and never interpret what it carries beyond what the
//! XDP program needs to choose a domain.
//!
//! `xdp` shares an interface and its addresses with Linux and takes only what paths own.
//! `packet` shares the interface but needs addresses of its own, and less privilege; `tap` is a
//! private line to Linux. Both can be opened for several domains, Linux choosing the end by the
//! same classifier. `link` is for tests and simulations.
//!
//! An executor owns one [`End`] and drives it so:
//!
//! ```
//! use silk_device::{Offload, link};
//!
//! let (mut ours, mut theirs) = link::pair(&link::Options::default()).unwrap();
//! ours.transmit.send(&[0; 60], [&[], &[]], Offload::NONE);
//! ours.transmit.flush(); // what was sent leaves here
//!
//! let mut frames = Vec::new(); // tickets, kept between rounds
//! theirs.receive.receive(&mut frames, 64); // never waits: poll `fd()` for that
//! for frame in frames.drain(..) {
//!     let bytes = theirs.receive.bytes(frame); // the whole buffer, headroom included
//!     assert_eq!(&bytes[frame.range()], &[0; 60]);
//!     theirs.receive.release(frame); // every frame, exactly once
//! }
//! ```
#![deny(unsafe_code)]

mod bpf;
pub mod busy_poll;
mod frame;
pub mod link;
pub mod napi;
pub mod netlink;
mod offload;
mod open;
pub mod packet;
mod pool;
mod queues;
mod receive;
mod schedule;
mod segment;
pub mod settings;
mod several;
pub mod steering;
mod sys;
mod tables;
pub mod tap;
mod transmit;
pub mod vlan;
mod vnet;
pub mod xdp;

pub use frame::{Checksum, Frame};
pub use offload::{Offload, Segment};
pub use open::OpenError;
pub use queues::Queues;
pub use receive::{Receive, Received};
pub use schedule::Schedule;
pub use several::several;
pub use sys::readable;
pub use tables::Tables;
pub use transmit::{Refusal, Transmit, Transmitted};

/// One domain's two directions of a device. The halves are independent: either may be
/// wrapped or moved to another thread.
pub struct End {
    /// Where this domain's frames arrive.
    pub receive: Box<dyn Receive>,
    /// Where this domain's frames leave.
    pub transmit: Box<dyn Transmit>,
}

/// A device that Linux hands packets over for, opened for several domains.
pub struct Steered {
    /// One for each domain, in order.
    pub ends: Vec<End>,
    /// The classifier's tables, all zero. Linux reads them to choose the end; who owns a
    /// packet is to be asked of them again, for Linux sees these packets too.
    pub tables: Tables,
}

/// Room left before every received frame, so that headers can be pushed in place when a
/// path turns a message around.
pub const HEADROOM: usize = 256;
