//! What tests share: hosts to run real programs on, and the weather between hosts. What is about
//! weather is pure: time and the seed are arguments.

pub mod dice;
pub mod emulator;
pub mod netns;
