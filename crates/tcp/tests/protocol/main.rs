//! The protocol from outside, in virtual time: two connections over a bad link, and one connection
//! against hand-made segments. Nothing here reads a clock, so every run is the same run.

mod accounts;
mod buffers;
mod clauses;
mod closing;
mod defences;
mod ecn;
mod growing;
mod hostile;
mod link;
mod loss;
mod matrix;
mod narrowing;
mod opening;
mod options;
mod pacing;
mod pair;
mod racking;
mod recovering;
mod sending;
mod sharing;
mod simulation;
mod solo;
mod spurts;
mod undoing;
mod urgent;
mod user_timeout;
mod waiting;
mod windows;
