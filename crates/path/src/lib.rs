//! Explicit paths (Scout §3): one named thing that runs from the device, through the protocols,
//! into the program that uses the data, and that is scheduled, paid for and limited as a whole.
//! This crate knows modules, graphs, paths, messages and the classifier; it knows no protocol,
//! no scheduler, no device, reads no clock and does no I/O.
//!
//! | file | what | from |
//! |---|---|---|
//! | `service`, `module`, `graph` | modules, their typed services, the checked graph | Scout §3.1 |
//! | `id`, `route`, `attrs`, `state`, `path`, `paths`, `table` | a path, its attributes, its four phases of creation | §3.2 |
//! | `stage`, `cx`, `drive`, `onward`, `message`, `framing` | stages, what they see, what carries messages between them | §3.2 |
//! | `transform` | pattern → rewritten path | §3.2, §4.2 |
//! | `queue` | the queue at a path's lower end, tickets | §4.1 |
//! | `signal`, `port`, `stream` | bells, events, reports; effects; a program's buffers | – |
//! | `account`, `admit`, `drops` | what a path uses, may use, and drops | §4.4 |
//! | `classify` | packet → path | §3.4 |
//!
//! # How an executor drives it
//! One thread owns one [`Paths`]. Everything it does is one of the calls below, each with the
//! time and a [`Port`], each run to completion, none ever blocking:
//!
//! 1. **A frame arrives** with the classifier's word (the XDP program's hint through
//!    [`classify::Belongs::from_hint`], else [`classify::Tables::classify`]).
//!    [`Paths::target`] finds the path, [`Paths::enqueue`] puts a [`Ticket`] on its input
//!    queue, which drops at once when full. When that made the path ready, [`Paths::urgency`]
//!    says how urgent it is, and the scheduling policy is told.
//! 2. **The policy chooses a path.** For a bounded batch: [`Paths::dequeue`], make a
//!    [`Message`] of the frame (with headroom in front, so that it can be turned around),
//!    [`Paths::up`]. The frame can be given back when that returns, whatever the outcome,
//!    except for [`Outcome::Handoff`]: the message is for a path that the run has asked for;
//!    do the requests (below), then classify the same frame again. Afterwards
//!    [`Paths::charge_cpu`].
//! 3. **The program's end**: [`Paths::bell`] for streams ([`Bell::Sent`], [`Bell::Read`],
//!    [`Bell::Close`], …), [`Paths::down`] for datagrams.
//! 4. **A timer**: [`Port::arm`] has told each path's earliest; when it is due,
//!    [`Paths::expire`].
//! 5. **After each run, the requests** that the port collected ([`Request`]): create, destroy,
//!    wake, report, frames that were put together from fragments.
//!
//! ```
//! # use silk_path::*;
//! # use silk_path::classify::{Belongs, Tables};
//! # use silk_instant::Instant;
//! fn frame_arrived(paths: &mut Paths, tables: &Tables, port: &mut dyn Port, now: Instant, frame: &mut [u8], head: usize) {
//!     let belongs = tables.classify(&frame[head..]);
//!     let Some(path) = paths.target(&frame[head..], belongs) else { return };
//!     let end = frame.len();
//!     let mut message = Message::new(frame, head, end, Meta { arrival: now, ..Meta::default() });
//!     if paths.up(path, now, port, &mut message) == Outcome::Handoff {
//!         // Do the port's requests, which create the path, and then this again.
//!     }
//! }
//! ```
//!
//! # What a path costs
//! Creating allocates one box per stage and reuses the list of them; the queues of all paths
//! share one arena. Destroying gives everything back, which is asserted: the account of a path
//! that ended is zero.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod account;
mod admit;
mod attrs;
mod average;
pub mod classify;
mod cx;
mod deadlines;
mod drive;
mod drops;
mod endpoint;
mod framing;
mod graph;
mod id;
mod message;
mod module;
mod onward;
mod path;
mod paths;
mod port;
mod queue;
mod route;
pub mod service;
mod signal;
mod stage;
mod state;
mod stream;
mod table;
pub mod transform;
mod wishes;

pub use account::Account;
pub use admit::{ClassUse, Classes, Limits, Refusals, Refused};
pub use attrs::{Attr, Attrs, AttrsFull, MAX_USER, Sharing};
pub use average::Average;
pub use cx::{Cx, Env};
pub use drive::Outcome;
pub use drops::{DropReason, DropTotals, Drops};
pub use endpoint::Endpoint;
pub use framing::{Coded, Framing};
pub use graph::*;
pub use id::{ModuleId, PathId};
pub use message::{Checksum, Message, Meta, NOWHERE, Station, Unsummed};
pub use module::{Create, CreateError, Module, Modules, Next, Parcel, Peer, Resolution, Resolve, Step};
pub use onward::Down;
pub use path::{DEFAULT_QUEUE, Path, Urgency, Wakeup, without_deadline};
pub use paths::{Paths, Statement};
pub use port::{Advertised, Port, Request};
pub use queue::{Queue, Ticket, Tickets};
pub use route::{MAX_STAGES, Route};
pub use signal::{Bell, Cork, Event, Quoted, Report};
pub use stage::{Slot, Stage, Verdict};
pub use state::PathState;
pub use stream::{ByteStream, Incoming, Outgoing};
pub use wishes::{Discovery, Wishes};
