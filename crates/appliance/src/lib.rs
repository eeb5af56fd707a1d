//! A network appliance (Scout §1, §4): one program that owns a graph of modules, a device and the
//! processor time it is given, and runs paths from end to end. There are no programs' sockets, no
//! arena and no domains; for those there is the daemon. What runs is a [`Paths`](silk_path::Paths)
//! under one scheduling policy.
//!
//! Time comes from a [`Clock`], so the same appliance plays video over a real interface and, in a
//! test, over the memory link in virtual time, where each run costs what was recorded.
//!
//! | file | what |
//! |---|---|
//! | `appliance` | the executor: a message of the chosen path at a time, timers, effects out |
//! | `port` | the world around a path: its device, its timers, what is asked for |
//! | `clock` | what time it is |
//! | `receiving` | who does the interface's receive work |
//! | `network` | opens a device and says what the modules must know of it |
//! | `debt` | what a program at a real-time priority leaves to others |
//! | `machine` | an appliance on a real machine: its standing paths, its neighbours, its sleep |
#![forbid(unsafe_code)]

mod appliance;
mod clock;
mod debt;
mod machine;
mod network;
mod port;
mod receiving;

pub use appliance::{Appliance, Conflict, Dropped, Parts, soon};
pub use clock::{Clock, Monotonic, Virtual};
pub use machine::{Machine, Unbuildable};
pub use network::{DeviceKind, Network, NetworkOptions};
pub use silk_device::Schedule as ReceiveSchedule;
pub use silk_executor::random;
