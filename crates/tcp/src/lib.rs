//! TCP as a state machine without input or output (RFC 9293 and its relatives): segments, time and
//! the program's wishes go in, headers, deadlines and [`Progress`] come out. It reads no clock,
//! owns no socket, knows no address and never copies what it sends.
//!
//! The order of calls for one [`Connection`]:
//! 1. [`Connection::on_segment`] for every segment, [`Connection::on_timeout`] when
//!    [`Connection::poll_timeout`] has come, and the mutators ([`Connection::close`],
//!    [`Connection::on_read`], …) as the program acts; writing to the send buffer needs no call.
//! 2. After one or several of these, [`Connection::poll_transmit`] until it answers `None`.
//! 3. Then [`Connection::poll_timeout`], for it may have moved.
//!
//! ```
//! use silk_instant::Instant;
//! use silk_tcp::listen::{Admission, ListenAction, SynTable};
//! use silk_tcp::{
//!     Codepoint, Config, Connection, Header, IsnSecret, Progress, RecvBuffer, Segment, SendBuffer, State,
//! };
//!
//! /// Buffers of a program that neither writes nor is sent anything.
//! struct Nothing;
//! impl SendBuffer for Nothing {
//!     fn len(&self) -> usize { 0 }
//!     fn consume(&mut self, _octets: usize) {}
//! }
//! impl RecvBuffer for Nothing {
//!     fn room(&self) -> usize { 65_536 }
//!     fn write(&mut self, bytes: &[u8]) -> usize { bytes.len() }
//! }
//! /// What a network would do with a segment without text.
//! fn carry(header: Header) -> Segment<'static> {
//!     let Header { seq, ack, flags, window, urgent, options } = header;
//!     Segment { seq, ack, flags, window, urgent, ecn: Codepoint::NotEct, options, payload: &[] }
//! }
//!
//! let (now, secret, config) = (Instant::ZERO, IsnSecret::new([1, 2]), Config::default());
//! let name = ("10.0.0.1", 40_000, "10.0.0.2", 80);
//! let mut listener = SynTable::new(config.clone(), secret, 128);
//! let mut client = Connection::connect(&config, secret.iss(now, &name), now);
//!
//! let syn = client.poll_transmit(now, &Nothing, &Nothing, 0).expect("a SYN");
//! let ListenAction::Reply(syn_ack) =
//!     listener.on_segment(now, name, &carry(syn.header), Admission::default()) else { panic!() };
//! let progress = client.on_segment(now, &carry(syn_ack), &mut Nothing, &mut Nothing);
//! assert_eq!(progress, Ok(Progress::ESTABLISHED));
//! let ack = client.poll_transmit(now, &Nothing, &Nothing, 0).expect("an acknowledgement");
//! let ListenAction::Established(established) =
//!     listener.on_segment(now, name, &carry(ack.header), Admission::default()) else { panic!() };
//! let server = Connection::from_handshake(established, listener.config(), now);
//! assert_eq!((client.state(), server.state()), (State::Established, State::Established));
//! ```
//!
//! A listener is a [`listen::SynTable`]: half-open connections are entries of a bounded table, and
//! only a completed handshake becomes a connection. A connection that reaches TIME-WAIT can become
//! an entry of a [`time_wait::TimeWaitTable`].
//!
//! | file | what it is about | from |
//! |---|---|---|
//! | `seq`, `segment`, `options` | numbers, headers, options | RFC 9293 §3.1, §3.4 |
//! | `state`, `connection`, `agree`, `handshake` | states, opening and closing | RFC 9293 §3.3.2, §3.10 |
//! | `arrive`, `predict`, `acknowledge`, `text` | a segment arrives | RFC 9293 §3.10.7, RFC 5961 |
//! | `company` | when an acknowledgement is sent alone | RFC 9293 §3.8.6.3 |
//! | `transmit`, `choose` | a segment leaves | RFC 9293 §3.8 |
//! | `sender`, `receiver`, `reassembly`, `tuning` | the two halves' variables | RFC 9293 §3.3.1 |
//! | `flight`, `rack`, `minimum`, `tail` | what is outstanding, and which of it is lost | RFC 8985, RFC 2018 |
//! | `losses`, `recovery`, `newreno`, `prr` | the repair of losses | RFC 6675, RFC 6582, RFC 6937 |
//! | `undo`, `frto` | repairs that were not needed | RFC 3522, RFC 3708, RFC 4015, RFC 5682 |
//! | `congestion`, `controller`, `cubic`, `hystart`, `train`, `reno` | the congestion window | RFC 5681, RFC 9438, RFC 9406 |
//! | `ensemble` | what connections to one peer share | RFC 9040 |
//! | `bbr`, `bbr_probing`, `path_model`, `rate`, `pacing` | the rate of sending | draft-ietf-ccwg-bbr |
//! | `path_mtu`, `search` | how large segments may be | RFC 1191, RFC 4821, RFC 8899 |
//! | `codepoint`, `ecn` | marks instead of drops | RFC 3168 |
//! | `rto`, `timers`, `timeout`, `keepalive` | time | RFC 6298, RFC 9293 §3.8 |
//! | `advertised`, `user_timeout` | how long to insist | RFC 5482 |
//! | `stamps`, `challenge`, `isn` | defences | RFC 7323, RFC 5961, RFC 6528 |
//! | `listen`, `cookie`, `time_wait`, `table` | before and after a connection | RFC 9293 §3.10.7.2, RFC 4987, RFC 6191 |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod account;
mod acknowledge;
mod advertised;
mod agree;
mod arrive;
mod bbr;
mod bbr_probing;
mod buffer;
mod challenge;
mod choose;
mod codepoint;
mod company;
mod config;
mod congestion;
mod connection;
mod controller;
mod cookie;
mod cubic;
mod ecn;
pub mod ensemble;
mod flight;
mod frto;
mod handshake;
mod hystart;
mod info;
mod isn;
mod keepalive;
pub mod listen;
mod losses;
mod minimum;
mod newreno;
mod options;
mod pacing;
mod path_model;
mod path_mtu;
mod predict;
mod progress;
mod prr;
mod rack;
mod rate;
mod reassembly;
mod receiver;
mod recovery;
mod reno;
mod rto;
mod search;
mod segment;
mod sender;
mod seq;
mod siphash;
mod stamps;
mod state;
mod table;
mod tail;
mod text;
pub mod time_wait;
mod timeout;
mod timers;
mod train;
mod transmit;
mod tuning;
mod undo;
mod urgent;
mod user_timeout;
mod wants;

pub use account::Waits;
pub use advertised::Advertised;
pub use bbr::Bbr;
pub use buffer::{RecvBuffer, SendBuffer};
pub use codepoint::Codepoint;
pub use config::{Config, KeepaliveConfig};
pub use congestion::{Acked, Algorithm, Congestion, Delivery, Model};
pub use connection::Connection;
pub use cubic::Cubic;
pub use ecn::Ecn;
pub use info::{Info, Repair};
pub use isn::IsnSecret;
pub use options::{MalformedOption, Options, SackBlocks};
pub use progress::{DropReason, Progress};
pub use reno::Reno;
pub use search::MtuProbing;
pub use segment::{Flags, Header, Segment, Transmit, reset_for};
pub use sender::Cork;
pub use seq::SeqNumber;
pub use siphash::SipHasher;
pub use state::State;
