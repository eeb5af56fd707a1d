//! What daemon, library and command say to each other: one [`Request`], one [`Reply`], over
//! a Unix socket that keeps message boundaries.
//!
//! A process's socket is its *lifeline*: while it is open the process holds its references;
//! when it hangs up, for whatever reason, they go. Nothing on the data path comes here, it
//! moves through the arena (`silk-stream`).
//!
//! Messages are [postcard]; what cannot be parsed is answered with [`Reply::Refused`] by the
//! daemon and ends the conversation elsewhere. A message is at most [`MESSAGE`] bytes.
#![forbid(unsafe_code)]

mod message;
mod parcel;
mod report;
mod wire;

pub use message::{
    BellNumber, FamilyToken, Kind, Membership, ProcessNumber, Refusal, Reply, Request, SlotNumber, Wishes,
};
pub use parcel::{Parcel, beside_parcel, parcel};
pub use report::{
    ClassReport, DropCount, ModelReport, PathReport, ReceiverReport, Report, TcpReport, ThreadReport,
    UnblockReport, UnservedReport,
};
pub use wire::{DESCRIPTORS, Lifeline, MESSAGE, Received, WireError};

/// Where the daemon listens unless it is configured otherwise.
pub const DEFAULT_SOCKET: &str = "/run/silk/control.sock";
/// Environment variable that names another place for the control socket.
pub const SOCKET_VARIABLE: &str = "SILK_SOCKET";
/// Environment variable that carries the family's token to its processes.
pub const FAMILY_VARIABLE: &str = "SILK_FAMILY";
/// Environment variable: `1` makes what silk cannot serve an error instead of Linux's.
pub const STRICT_VARIABLE: &str = "SILK_STRICT";
/// Environment variable that names the command that carries programs that nothing can be loaded into.
pub const CARRIER_VARIABLE: &str = "SILK_CARRIER";
/// Environment variable that names the program that is to be carried by the one that is executed.
pub const CARRIED_VARIABLE: &str = "SILK_CARRIES";
/// The socket option level of silk's own options (SILK §5.3).
pub const SOL_SILK: i32 = 0x5117;
/// [`SOL_SILK`] option: the priority of the socket's path, an `int`.
pub const SILK_PRIORITY: i32 = 1;
/// [`SOL_SILK`] option, read only: the path's id, a `u64`.
pub const SILK_PATH: i32 = 2;
/// The protocol family whose sockets build any path the graph allows (SILK §3.1).
pub const PF_SCOUT: i32 = 0x5c;
