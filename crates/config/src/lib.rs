//! Text to validated configuration. [`Config::parse`] and [`Graph::parse`] take a text and
//! give either a value in which everything was checked, or [`Faults`]: every fault at once,
//! with line, column and a suggestion. [`Graph::spec`] is what `silk-path` builds. Nothing here opens a device, asks the kernel or
//! applies anything; what only the running machine knows (does the interface exist?) is
//! found out there.
#![forbid(unsafe_code)]

mod address;
mod class;
mod config;
mod daemon;
mod device;
mod fault;
mod graph;
mod memory;
mod name;
mod path;
mod policy;
mod read;
mod refuse;
mod reload;
mod route;
mod scheduler;
mod source;
mod spec;
mod suggest;
mod tcp;
mod value;

pub use address::{Dscp, Interface, Mac, Network, Prefix};
pub use class::{Class, Limits, PRIORITIES, RULES, Reserve, Rule};
pub use config::{Config, keys};
pub use daemon::{Control, Mode};
pub use device::{Device, DeviceKind, Napi, Receive, XdpMode};
pub use fault::{Drawn, Fault, Faults};
pub use graph::{Endpoint, Graph, Link, Module, Param};
pub use memory::Memory;
pub use path::NamedPath;
pub use policy::{POLICIES, SharedPolicy};
pub use refuse::{Refuse, Unlisted, networks};
pub use reload::Reload;
pub use route::Route;
pub use scheduler::{HIGHEST_FIFO, Listen, Policy, Scheduler};
pub use silk_path::Value;
pub use source::{LONGEST, Source, Unreadable};
pub use tcp::{Congestion, Ecn, Keepalive, MtuProbing, Tcp};
pub use value::{ByteSize, Percent};
