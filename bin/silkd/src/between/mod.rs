//! What the control thread and the executors give each other: orders, what became of them, and what an order carries. Neither
//! side knows the other but by these.

pub mod answer;
pub mod command;
pub mod idle_memory;
pub mod listener_hold;
pub mod names;
pub mod obeyed;
pub mod reported;
pub mod reserved;
pub mod sockets;
pub mod thread_end;
pub mod told;
pub mod watch;
