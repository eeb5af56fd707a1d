//! What tests share: hosts to run real programs on.

pub mod netns;
