//! What tests and experiments share: hosts to run real programs on, one of those programs, how a CPU spends its
//! time, whether results can be written, how a test is skipped, and the weather between hosts. The weather itself is pure: time and the seed are arguments.
//! What brings it over a device reads a clock, which a test may set.

pub mod apache;
pub mod dice;
pub mod emulator;
pub mod faults;
pub mod flow_steering;
pub mod netns;
mod skipping;
pub mod ticks;
pub mod writable;

pub use skipping::skip;
