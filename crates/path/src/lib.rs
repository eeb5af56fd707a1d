//! Explicit paths.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod account;
mod admit;
mod attrs;
pub mod classify;
mod cx;
mod drive;
mod drops;
mod graph;
mod message;
mod module;
mod path;
mod paths;
mod port;
mod queue;
pub mod service;
mod signal;
mod stage;
mod stream;
mod table;
pub mod transform;

pub use account::Account;
pub use admit::{ClassUse, Classes, Limits, Refused};
pub use attrs::{Attr, Attrs, AttrsFull, MAX_ATTRS, Route};
pub use cx::{Cx, Down, Env};
pub use drive::Outcome;
pub use drops::{DropReason, DropTotals, Drops};
pub use graph::*;
pub use message::{Checksum, Message, Meta, NOWHERE};
pub use module::{
    Create, CreateError, Module, ModuleId, Modules, Next, Parcel, Peer, Resolution, Resolve, Step,
};
pub use path::{Average, DEFAULT_QUEUE, MAX_STAGES, Path, PathId, PathState, Urgency, Wakeup, by_priority};
pub use paths::{Paths, Statement};
pub use port::{Port, Request};
pub use queue::{Queue, Ticket, Tickets};
pub use signal::{Bell, Event, Report};
pub use stage::{Slot, Stage, Verdict};
pub use stream::{ByteStream, Incoming, Outgoing};
