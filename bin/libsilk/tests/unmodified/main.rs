//! Unmodified programs with their sockets on a daemon made for tests.

mod daemon;
mod faults;
mod programs;
mod servers;
