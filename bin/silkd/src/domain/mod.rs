//! A domain: its paths, and the executor whose thread runs them. It knows nothing of the control thread but what is between
//! them.

pub mod acceptance;
pub mod accounts;
pub mod anticipation;
pub mod closing;
pub mod datagram_errors;
pub mod datagrams;
pub mod delivery;
pub mod departing;
pub mod disconnecting;
pub mod doorbells;
pub mod engine;
pub mod executor;
pub mod expulsion;
pub mod family_end;
pub mod files;
pub mod giving_back;
pub mod homes;
pub mod host;
pub mod host_datagrams;
pub mod host_errors;
pub mod host_socket;
pub mod incoming;
pub mod info;
pub mod keeping_copies;
pub mod lanes;
pub mod linux_sockets;
pub mod listening;
pub mod moving;
pub mod neighbours;
pub mod only_queue;
pub mod opening;
pub mod orders;
pub mod passing;
pub mod port;
pub mod prioritise;
pub mod refusing;
pub mod report;
pub mod requests;
pub mod sending;
pub mod sharing;
pub mod sibling;
pub mod sleep;
pub mod socket_end;
pub mod sockets;
pub mod sources;
pub mod spares;
pub mod standing;
pub mod telling;
pub mod thread_gone;
pub mod timers;
pub mod unblock;
pub mod wheel;
pub mod wishes;

#[cfg(test)]
mod rig;
#[cfg(test)]
mod tests_of_policies;
