//! Streams of a player, in virtual time: how they are let in, and what commands make of them.

mod admission;
mod commands;
mod theatre;
