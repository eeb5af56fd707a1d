//! The modules: each file is one protocol, or one end, as a module of the graph (Scout §3.1).
//! They read no clock, do no I/O and know nothing of devices, daemons or schedulers. Every
//! module's file opens with its manual: Configuration, Services, Attributes, Example, See
//! also; a test fails where one is missing.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod arp;
mod bound;
mod cache;
mod catalogue;
mod device;
pub mod echo;
mod errors;
pub mod eth;
mod faults;
pub mod filter;
pub mod host;
pub mod icmp;
pub mod icmp6;
pub mod igmp;
mod integrated;
pub mod ip;
pub mod ip6;
mod limit;
mod membership;
pub mod mflow;
pub mod mld;
pub mod nd;
mod neighbours;
mod ours;
pub mod rtp;
pub mod shell;
pub mod socket;
mod standing;
mod stations;
pub mod tcp;
mod telling;
mod template;
pub mod udp;
mod unsummed;
pub mod vnet;

pub use bound::place;
pub use catalogue::{KINDS, Setup, catalogue};
pub use device::Device;
pub use integrated::IntegratedLayers;
pub use standing::{Leads, Standing, Way};
pub use template::HeaderTemplate;
