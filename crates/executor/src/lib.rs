//! What every program that runs paths on a device has: the daemon, for each of its domains, and an
//! appliance. Neither `path`, nor `sched`, nor `device` knows the others; here they meet. What such a
//! program does with the paths, and how it sleeps, is its own (docs/design/one-dispatch.md).
//!
//! | file | what |
//! |---|---|
//! | `dispatch` | paths at one end of a device, under one policy |
//! | `refusal` | what came to us, and nobody takes |
//! | `rules` | which of Linux's routes count for packets from one address |
//! | `join` | what a device's frames and tables mean to paths |
//! | `link` | what modules must know of a link |
//! | `clock` | what time it is |
#![forbid(unsafe_code)]

pub mod clock;
mod dispatch;
pub mod join;
pub mod link;
mod refusal;
mod rules;

pub use dispatch::{BATCH, Classify, Dispatch};
pub use join::random;
