//! The C symbols. Each function finds out in a few instructions whether it is concerned, and
//! is then translation only: C's arguments to ours, our answer to `errno`.

mod aliases;
mod checked;
mod credentials;
mod descriptors;
mod execs;
mod formatted;
mod identity;
mod jumps;
mod limits;
#[cfg(target_arch = "x86_64")]
mod loading;
mod memory;
mod messages;
mod naming;
mod processes;
mod reading;
mod rings;
mod shutting_in;
mod spawns;
mod streams;
pub mod syscalls;
mod terminals;
mod waiting;
mod writing;

pub use descriptors::{close, closefrom, dup2, fcntl};
pub use execs::{execve, execvpe};
pub use reading::read;
pub use writing::write;
